"""The report as a reader meets it: a real browser, a real slider, a real printer."""

import io
import re

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits

from linsep import LinearClassifier, LinearRegressor, LogisticRegression, write_report

pytestmark = pytest.mark.browser

RIGHT, LEFT, HOME, END = "\ue014", "\ue012", "\ue011", "\ue010"
ATTACK = '"><script>document.title="broken"</script><img src=x onerror=alert(1)>'
CELLS = ["tn", "fp", "fn", "tp"]


def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return X[::2], y[::2], X[1::2], y[1::2]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    X, y, X_test, y_test = cancer()
    made = {}

    def write(name, model, X, y, **options):
        made[name] = write_report(model.fit(X, y), X, y, folder / f"{name}.html", **options)

    write("two", LogisticRegression(), X, y, test=(X_test, y_test))
    write("scores", LinearClassifier("squared_hinge"), X, y)
    write("several", LogisticRegression(C=0.01), *load_digits(return_X_y=True))
    write("regression", LinearRegressor(), X[:, 1:], X[:, 0])
    labels = np.where(y == 1, ATTACK, "</script><!--")
    write("attack", LogisticRegression(), X, labels, title=ATTACK, source=ATTACK)
    return made


@pytest.fixture
def window(chromium):
    chromium.size(1100, 900)
    chromium.scheme("light")
    return chromium


def shown(window):
    text = window.run(
        "return arguments[0].map(id => document.getElementById(id).textContent)", CELLS
    )
    return [float(cell.replace(",", "")) for cell in text]


@pytest.mark.parametrize("name", ["two", "scores", "several", "regression", "attack"])
def test_the_page_is_quiet_and_loads_nothing(window, pages, name):
    window.open(pages[name])
    assert window.log() == []  # no errors, no warnings, no breach of the policy
    fetched = window.run("return performance.getEntriesByType('resource').map(e => e.name)")
    assert [address for address in fetched if address != "data:,"] == []
    assert window.run("return document.querySelectorAll('svg').length") >= (
        1 if name == "several" else 3
    )


def test_names_cannot_act(window, pages):
    window.open(pages["attack"])
    assert window.run("return document.querySelectorAll('img, iframe, object').length") == 0
    assert window.run("return document.querySelectorAll('script').length") == 2
    assert window.run("return document.title").startswith('"><script>')


def test_the_policy_is_in_force(window, pages):
    window.open(pages["two"])
    window.run(
        "const s = document.createElement('script'); s.textContent = 'window.intruder = 1'; document.body.append(s);"
        "const i = document.createElement('img'); i.src = 'https://example.org/x.png'; document.body.append(i);"
    )
    assert window.run("return window.intruder === undefined")
    assert any("Content Security Policy" in entry["message"] for entry in window.log())


def test_the_slider_counts_right(window, pages):
    X, y, X_test, y_test = cancer()
    p = LogisticRegression().fit(X, y).predict_proba(X_test)[:, 1]
    window.open(pages["two"])
    for keys in ("", RIGHT * 37, LEFT * 80, END, HOME):
        if keys:
            window.press("threshold", keys)
        called = p >= float(window.run("return document.getElementById('at').textContent"))
        truth = y_test == 1
        wanted = [
            np.sum(~called & ~truth),
            np.sum(called & ~truth),
            np.sum(~called & truth),
            np.sum(called & truth),
        ]
        assert shown(window) == wanted
    window.click("reset")
    assert window.run("return document.getElementById('at').textContent") == "0.5"
    assert sum(shown(window)[1:3]) == np.sum((p >= 0.5) != (y_test == 1))


def test_the_dot_follows_the_slider(window, pages):
    window.open(pages["two"])
    where = (
        "const d = document.getElementById('roc-dot');"
        "return [+d.getAttribute('cx'), +d.getAttribute('cy'), d.dataset.frame]"
    )
    window.press("threshold", HOME)  # all rows are called positive: the corner (1, 1)
    x, y, frame = window.run(where)
    assert [x, y] == pytest.approx([float(v) for v in frame.split()[2:]])


def test_dark_mode(window, pages):
    colour = "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    window.open(pages["two"])
    light = window.run(colour)
    window.scheme("dark")
    window.open(pages["two"])
    assert min(light) > 200
    assert max(window.run(colour)) < 60


@pytest.mark.parametrize("name", ["two", "scores", "several", "regression", "attack"])
def test_a_phone_needs_no_sideways_scrolling(window, pages, name):
    window.size(390, 844, phone=True)
    window.open(pages[name])
    assert window.run("return [document.documentElement.scrollWidth, innerWidth]") == [390, 390]


def test_it_prints(window, pages):
    window.open(pages["two"])
    paper = window.pdf()
    assert paper.startswith(b"%PDF-")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", paper)) <= 15


def test_the_picture_is_not_blank(window, pages):
    from matplotlib.image import imread

    window.open(pages["two"])
    picture = imread(io.BytesIO(window.picture()))
    assert picture.shape[:2] == (900, 1100)
    assert len(np.unique(picture.reshape(-1, picture.shape[2]), axis=0)) > 50


def test_text_in_figures_is_large_enough_on_a_phone(window, pages):
    """Wide figures are scrolled inside the page, which itself is not."""
    window.size(375, 800, phone=True)
    window.open(pages["two"])
    assert window.run("return document.documentElement.scrollWidth") == 375
    heights = window.run(
        "return [...document.querySelectorAll('figure svg text')].map(t => t.getBoundingClientRect().height)"
    )
    assert min(height for height in heights if height) > 6


def test_paper_is_not_wasted(window, pages):
    """Two figures side by side, and no table held together over a page that is half empty."""
    window.open(pages["two"])
    assert 4 <= window.pdf().count(b"/Type /Page\n") <= 10
