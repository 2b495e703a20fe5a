"""The report: structure, escaping, sizes, the same bytes, and numbers that others compute too."""

import base64
import hashlib
import io
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import beta
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression as Other
from sklearn.metrics import average_precision_score, brier_score_loss, log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from linsep import (
    Encoder,
    LinearClassifier,
    LinearRegressor,
    LinearSVC,
    LogisticRegression,
    ZeroOneClassifier,
    read_table,
    tune,
    write_report,
)
from linsep.data.scanning import stored_rows
from linsep.errors import BadInput
from linsep.report import formatting as words
from linsep.report import repeats
from linsep.report.columns import columns
from linsep.report.ranking import calibration, ranking
from linsep.report.subject import Rows

ATTACKS = [
    '<script>alert("x")</script>',
    '"><img src=x onerror=alert(1)>',
    "</title></style></script><svg onload=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "$\\frac{1}{0$ & <b>",
    "\u202eevil\u0000\x1b[31m",
    "🦉" * 20,
    "x" * 10_000,
]


class Page(HTMLParser):
    """Elements, texts and ids; unknown to the template."""

    def __init__(self, path):
        super().__init__()
        self.source = path.read_text(encoding="utf-8")
        self.tags, self.attributes, self.ids, self.words, self.stack = [], [], {}, [], []
        self.feed(self.source)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]
        if "id" in dict(attrs):
            self.stack.append(dict(attrs)["id"])
            assert self.stack[-1] not in self.ids, "ids are unique"
            self.ids[self.stack[-1]] = ""

    def handle_data(self, data):
        self.words.append(data)
        if self.stack:
            self.ids[self.stack[-1]] += data.strip() if not self.ids[self.stack[-1]] else ""


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return X[::2], y[::2], X[1::2], y[1::2]


@pytest.fixture(scope="module")
def written(cancer, tmp_path_factory):
    X, y, X_test, y_test = cancer
    model = LogisticRegression().fit(X, y)
    path = tmp_path_factory.mktemp("report") / "cancer.html"
    assert write_report(model, X, y, path, test=(X_test, y_test)) == path
    return model, Page(path)


def report(tmp_path, model, X, y, **options):
    return Page(write_report(model, X, y, tmp_path / "page.html", **options))


def test_sections_and_policy(written):
    page = written[1]
    wanted = {"verdict", "quality", "features", "rows", "proof", "bounds", "data", "reproduce"}
    assert wanted <= set(page.ids)
    policy = next(
        v for tag, k, v in page.attributes if tag == "meta" and "default-src" in (v or "")
    )
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy
    for kind in ("style", "script"):
        text = re.search(rf"<{kind}>(.*?)</{kind}>", page.source, re.S)[1]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert not [a for a in page.attributes if a[1] == "style" or a[1].startswith("on")]
    links = [value for _, key, value in page.attributes if key in ("href", "src", "xlink:href")]
    assert all(link.startswith("#") or link == "data:," for link in links)
    assert {link[1:] for link in links if link != "data:,"} <= set(page.ids)
    assert {"h1", "table", "svg", "input"} <= set(page.tags)


def test_figures_and_tables_can_be_read_aloud(written):
    page = written[1]
    drawings = [a for a in page.attributes if a[:2] == ("svg", "aria-labelledby")]
    assert len(drawings) == page.tags.count("svg") >= 5
    assert all(page.ids[title] for _, _, title in drawings)
    heads = page.tags.count("th")
    assert heads == sum(a[:2] == ("th", "scope") for a in page.attributes) > 20


def test_numbers_are_those_of_others(written, cancer):
    (model, page), (*_, X_test, y_test) = written, cancer
    z, p = model.decision_function(X_test), model.predict_proba(X_test)[:, 1]
    wrong, n = int((model.predict(X_test) != y_test).sum()), len(y_test)
    bound = np.ceil(1000 * beta.ppf(0.95, wrong + 1, n - wrong)) / 10
    assert f"{100 * wrong / n:.1f} % error" in page.text
    assert f"{wrong} wrong of {n} held-out rows" in page.text
    assert f"95 % upper confidence bound on the true error: {bound:.1f} %" in page.text
    assert f"errs on {100 * np.mean(y_test != 1):.1f} %" in page.text
    assert f"Area {roc_auc_score(y_test, z):.4f}:" in page.text
    assert f"Average precision {average_precision_score(y_test, z):.4f};" in page.text
    assert f"(Brier) {words.number(brier_score_loss(y_test, p))}" in page.text
    assert f"Mean log loss {words.number(log_loss(y_test, p))}" in page.text
    assert f"Objective at these coefficients {model.certificate_.primal:.12g}" in page.text
    called, truth = z >= 0, y_test == 1
    cells = [~called & ~truth, called & ~truth, ~called & truth, called & truth]
    shown = [page.ids[cell] for cell in ("tn", "fp", "fn", "tp")]
    assert shown == [str(int(cell.sum())) for cell in cells]
    loss = np.logaddexp(0, -np.where(truth, z, -z))
    assert re.search(rf"largest contributions to the score {np.argmax(loss)} ", page.text)


def test_curves_agree_with_scikit_learn_under_weights_and_ties():
    rng = np.random.default_rng(0)
    z = rng.integers(-5, 6, 500) / 3.0
    y = rng.random(500) < 1 / (1 + np.exp(-z))
    s = rng.integers(1, 4, 500).astype(float)
    found = ranking(z, y, s)
    assert found.auc == pytest.approx(roc_auc_score(y, z, sample_weight=s), abs=1e-12)
    wanted = average_precision_score(y, z, sample_weight=s)
    assert found.average_precision == pytest.approx(wanted, abs=1e-12)
    twice = ranking(np.repeat(z, s.astype(int)), np.repeat(y, s.astype(int)), np.ones(int(s.sum())))
    assert twice.auc == pytest.approx(found.auc, abs=1e-12)
    p = 1 / (1 + np.exp(-z))
    bins = calibration(p, 1 - p, y, s)
    assert bins.rows.sum() == s.sum()
    assert bins.rows @ bins.observed == pytest.approx(s @ y)
    assert ranking(z, np.ones(500, bool), s) is None


def test_many_points_make_few(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60_000, 3)).astype(np.float32)
    y = X[:, 0] + rng.standard_normal(len(X)) > 0
    model = LogisticRegression().fit(X, y)
    page = report(tmp_path, model, X, y)
    assert len(page.source) < 200_000
    assert "Everything below is measured on the rows the model was fitted to" in page.text


def test_same_input_same_bytes(cancer, tmp_path, written):
    X, y, X_test, y_test = cancer
    page = report(tmp_path, written[0], X, y, test=(X_test, y_test))
    assert page.source == written[1].source
    assert not re.search(r"\b20[2-9]\d-\d\d-\d\d\b", page.source)


def titled(tmp_path, text):
    """A report full of one text: names, labels, title, source."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((60, 3)), columns=[text, text + "2", "plain"])
    y = np.where(X["plain"] + rng.standard_normal(60) > 0, text, "~").astype(object)
    model = LogisticRegression().fit(X, y)
    return report(tmp_path, model, X, y, test=(X, y), title=text, source=text)


@pytest.fixture(scope="module")
def harmless(tmp_path_factory):
    return titled(tmp_path_factory.mktemp("harmless"), "name")


@pytest.mark.parametrize(
    "attack",
    [ATTACKS[0], *(pytest.param(text, marks=pytest.mark.slow) for text in ATTACKS[1:])],
    ids=range(len(ATTACKS)),
)
def test_names_and_labels_are_only_text(attack, harmless, tmp_path):
    page = titled(tmp_path, attack)
    assert page.tags == harmless.tags  # no element more, none less
    assert len(page.source) < 300_000
    assert not [a for a in page.attributes if a[1].startswith("on")]
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", page.source)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("plain", "plain"),
        ("two\nlines", "two lines"),
        ("\ud800\x00\u202e", "\ufffd\ufffd\ufffd"),
        ("", "(empty)"),
        ("y" * 10**6, "y" * 31 + "…" + "y" * 16),
        (f"{'how content are you ' * 9}(17)", "how content are you how content…ent are you (17)"),
        (3.5, "3.5"),
    ],
)
def test_names_are_cut_and_cleaned(given, shown):
    assert words.name(given) == shown


@pytest.mark.parametrize(
    ("bound", "above", "below"),
    [(0.07211, "7.3", "7.2"), (0.05, "5.0", "5.0"), (1.0, "100", "100")],
)
def test_bounds_are_never_rounded_in_their_own_favour(bound, above, below):
    assert words.percent_above(bound) == f"{above}\N{NO-BREAK SPACE}%"
    assert words.percent_below(bound) == f"{below}\N{NO-BREAK SPACE}%"


def test_several_classes(tmp_path):
    X, y = load_digits(return_X_y=True)
    model = LogisticRegression(C=0.01).fit(X[::2], y[::2])
    page = report(tmp_path, model, X[::2], y[::2], test=(X[1::2], y[1::2]))
    truth, answer = y[1::2], model.predict(X[1::2])
    eights = np.sum((truth == 8) & (answer == 8))
    assert (
        f"8 {np.sum(truth == 8)} {words.percent(eights / np.sum(answer == 8))}".replace(
            "\N{NO-BREAK SPACE}", " "
        )
        in page.text
    )
    area = roc_auc_score(truth == 8, model.decision_function(X[1::2])[:, 8])
    assert words.number(area) in page.text


def test_losses_of_crammer_and_singer_are_those_of_the_objective(tmp_path, without_figures):
    """The rows with the largest losses are listed with max_c (z_c + 1[c != y]) - z_y."""
    X, y = load_iris(return_X_y=True)
    model = LinearSVC(C=0.01, multiclass="crammer_singer").fit(X, y)
    Z = model.decision_function(X) + 1.0 - np.eye(3)[y]
    worst = float((Z.max(axis=1) - Z[np.arange(len(y)), y]).max())
    page = report(tmp_path, model, X, y)
    assert words.number(worst) in page.text


def test_regression(tmp_path):
    X, t = load_diabetes(return_X_y=True)
    model = LinearRegressor().fit(X[::2], t[::2])
    page = report(tmp_path, model, X[::2], t[::2], test=(X[1::2], t[1::2]))
    r = t[1::2] - model.predict(X[1::2])
    assert f"Mean absolute error {words.number(np.abs(r).mean())}" in page.text
    assert f"R² {words.number(model.score(X[1::2], t[1::2]))}" in page.text
    assert "95 % interval" in page.text  # unpenalised least squares: intervals are valid
    assert f"largest contributions to the score {np.abs(r).argmax()} " in page.text


@pytest.mark.slow
def test_huge_inputs_stay_small(tmp_path):
    rng = np.random.default_rng(0)
    wide = sp.random_array((60, 100_000), density=1e-3, rng=rng, format="csr")
    y = np.arange(60) % 2
    page = report(tmp_path, LogisticRegression().fit(wide, y), wide, y)
    assert len(page.source) < 400_000
    assert "smaller coefficients are left out" in page.text
    X, y = rng.standard_normal((2000, 4)), np.arange(2000) % 1000
    model = LogisticRegression(C=1e-3, max_passes=None).fit(
        X, np.array([f"{'<k>' * 3000}{c}" for c in y])
    )
    page = report(tmp_path, model, X, np.array([f"{'<k>' * 3000}{c}" for c in y]))
    assert len(page.source) < 400_000
    assert "970 more are left out" in page.text


def test_the_wrong_rows_are_noticed(cancer, tmp_path, without_figures):
    X, y, X_test, y_test = cancer
    model = LogisticRegression().fit(X, y)
    page = report(tmp_path, model, X_test, y_test)
    assert "The certificate does not hold for these rows" in page.text
    with pytest.warns(UserWarning, match="pass"):
        short = LogisticRegression(max_passes=1, solver="newton").fit(X, y)
    assert "Not proven optimal to 1e-06" in report(tmp_path, short, X, y).text


def test_health_finds_what_is_planted(tmp_path, without_figures):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5))
    X[:, 1], X[:, 3] = 7.0, X[:, 0]
    X[10] = X[11]
    y = X[:, 2] + rng.standard_normal(200) > 0
    y[10], y[11] = True, False
    page = report(tmp_path, LogisticRegression().fit(X, y), X, y, test=(X[:5], y[:5]))
    assert "Constant columns 1" in page.text and "of no use: x1." in page.text
    assert "x3 = x0" in page.text
    assert "Repeated rows 1" in page.text and "1 row with the same numbers" in page.text
    assert "5 of 5 held-out rows are also among the training rows" in page.text
    for matrix in (X, sp.csr_array(X)):
        rows = Rows(matrix, y, None, matrix, matrix)
        found = columns(rows)
        assert np.allclose(found.mean, X.mean(axis=0)) and np.allclose(found.std, X.std(axis=0))
        assert found.duplicates == [(0, 3)]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.sampled(2)
def test_rows_on_disk_make_the_same_page(make, classes, tmp_path):
    rng = np.random.default_rng(4)
    X = rng.integers(0, 4, (900, 6)) * rng.normal(size=6)
    X[:, 3] = X[:, 0]
    y = (X[:, :2].sum(axis=1) + rng.normal(size=900) > rng.random(900)) + (classes - 2) * (
        X[:, 1] > 0
    )
    model = LogisticRegression().fit(make(X[:600]), y[:600])
    pages = []
    scans = [stored_rows([make(part)[:70], make(part)[70:]], 6) for part in (X[:600], X[600:])]
    for train, test in ((make(X[:600]), make(X[600:])), scans):
        path = tmp_path / f"{len(pages)}.html"
        write_report(model, train, y[:600], path, test=(test, y[600:]))
        pages.append(path.read_bytes())
    assert pages[0] == pages[1]


def test_weights_count_rows(tmp_path, without_figures):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 2))
    y = X[:, 0] + rng.standard_normal(80) > 0
    s = rng.integers(1, 4, 80)
    once = report(tmp_path, LogisticRegression().fit(X, y, s), X, y, sample_weight=s)
    R, t = np.repeat(X, s, axis=0), np.repeat(y, s)
    twice = report(tmp_path, LogisticRegression().fit(R, t), R, t)
    for cell in ("tn", "fp", "fn", "tp", "error", "recall"):
        assert once.ids[cell] == twice.ids[cell]


@pytest.mark.slow
def test_tuning_pipelines_and_encoders(cancer, tmp_path):
    X, y, X_test, y_test = cancer
    tuning = tune(LogisticRegression(), X, y, Cs=[0.1, 1.0, 10.0], cv=3, scoring="error")
    page = report(tmp_path, tuning.best_estimator_, X, y, tuning=tuning)
    assert "validation" in page.ids and f"C = {tuning.best_C:g} (best)" in page.text
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    page = report(tmp_path, pipeline, X, y, test=(X_test, y_test))
    assert f"{int((pipeline.predict(X_test) != y_test).sum())} wrong of" in page.text
    assert "yes, by linsep.verify" in page.text
    table = read_table(io.BytesIO(b"age,city\n" + b"31,Oslo\n58,Bergen\n,Oslo\n40,Bergen\n" * 9))
    encoder = Encoder().fit(table)
    answer = np.array(["a", "b", "b", "a"] * 9)
    model = LogisticRegression().fit(encoder.transform(table), answer)
    whole = report(tmp_path, model, table, answer, encoder=encoder)
    assert "city=Oslo" in whole.text and "Missing values 9" in whole.text
    matrix = report(tmp_path, model, encoder.transform(table), answer, encoder=encoder)
    assert "city=Oslo" in matrix.text


@pytest.mark.parametrize("kind", ["frame", "array", "sparse"])
@pytest.mark.sampled(1)
def test_gaps_before_a_pipeline_are_counted(kind, tmp_path, without_figures):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = (X[:, 0] > 0).astype(int)
    X[:7, 1] = np.nan
    given = pd.DataFrame(X, columns=["a", "b", "c"]) if kind == "frame" else X
    given = sp.csr_array(X) if kind == "sparse" else given
    pipeline = make_pipeline(SimpleImputer(), LogisticRegression()).fit(given, y)
    page = report(tmp_path, pipeline, given, y)
    assert "Missing values 7 (3.9" in page.text
    assert f"most missing values: {'b' if kind == 'frame' else 'x1'} (7)" in page.text


def test_fewest_errors_are_proven_on_the_page(tmp_path, without_figures):
    X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0]])
    y = np.array(["a", "b", "a", "b", "b"])
    model = ZeroOneClassifier().fit(X, y)
    page = report(tmp_path, model, X, y)
    assert "Proven: no hyperplane makes fewer errors" in page.text
    assert "yes, by linsep.verify" in page.text
    page = report(tmp_path, model, X, y[::-1])
    assert "The certificate does not hold for these rows" in page.text


def test_support_vectors_are_shown_where_there_are_any(cancer, tmp_path, without_figures):
    X, y, *_ = cancer
    model = LinearClassifier("squared_hinge").fit(X, y)
    model.support_, model.margin_width_ = np.arange(7), 0.25
    page = report(tmp_path, model, X, y)
    assert "Support vectors 7 (2.5 % of the rows)" in page.text
    assert "Width of the margin 0.25" in page.text
    assert "This loss gives scores, not probabilities" in page.text


def test_unknown_labels_are_errors(cancer, tmp_path, without_figures):
    X, y, X_test, y_test = cancer
    strange = y_test.copy()
    strange[:3] = 9
    model = LogisticRegression().fit(X, y)
    page = report(tmp_path, model, X, y, test=(X_test, strange))
    assert f"{int((model.predict(X_test) != strange).sum())} wrong of" in page.text
    assert "3 held-out rows with a label that the model does not know" in page.text


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"model": LogisticRegression()}, NotFittedError, "call fit before write_report"),
        ({"model": Other()}, BadInput, "needs a fitted estimator of linsep"),
        ({"test": np.ones((2, 3))}, BadInput, r"pair \(X_test, y_test\)"),
        ({"tuning": 3}, BadInput, "what linsep.tune returns, got int"),
        ({"encoder": "csv"}, BadInput, "linsep.Encoder, got str"),
        ({"y": np.arange(3)}, BadInput, "y has 3"),
    ],
)
def test_bad_input(cancer, written, tmp_path, change, error, match):
    given = {"model": written[0], "X": cancer[0], "y": cancer[1], "path": tmp_path / "p.html"}
    with pytest.raises(error, match=match):
        write_report(**(given | change))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_without_the_extra():
    code = (
        "import sys; sys.modules['jinja2'] = None\n"
        "import importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'jinja2' else find(name, *a)\n"
        "from linsep import write_report\n"
        "try: write_report(None, [], [], 'x')\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "write_report needs jinja2: pip install jinja2." in done.stdout


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("weak", [False, True])
def test_repeated_rows_are_counted_exactly(make, weak, monkeypatch):
    """Against sets of tuples; a hash that is the same for all rows changes nothing."""
    if weak:
        monkeypatch.setattr(repeats, "_hash_numbers", lambda x, odd: np.zeros(x.shape, np.uint64))
    rng = np.random.default_rng(1)
    X = rng.integers(0, 3, size=(300, 4)) * 1.0
    X[X == 0] *= rng.choice([-1.0, 1.0], int((X == 0).sum()))  # -0 is 0
    if weak:
        X[1:] = X[0]  # one group: whoever equals its first row repeats it
        X[7] += 1
    y, Z = rng.integers(0, 2, 300), rng.integers(0, 4, size=(50, 4)) * 1.0
    rows, others = Rows(make(X), y, None, X, X), Rows(make(Z), y[:50], None, Z, Z)
    found = repeats.repeats(rows, None if weak else others)
    first, repeated, contradictory = {}, 0, 0
    for row, label in zip(map(tuple, X + 0.0), y.tolist(), strict=True):
        repeated += row in first
        contradictory += first.setdefault(row, label) != label
    assert (found.repeated, found.contradictory) == (repeated, contradictory)
    assert weak or found.leaked == sum(row in first for row in map(tuple, Z))


def test_exponents_stay_on_the_line_of_their_number():
    """Browsers break lines after a hyphen; numbers to be copied into a program keep theirs."""
    assert words.tiny(8.24e-12) == "8.3e\u201112" and words.number(0.000012345) == "1.234e\u201105"
    assert words.number(-0.25) == "-0.25" and words.copyable(1e-5) == "1e-05"


def test_rows_of_a_penalised_model_are_opened_once(tmp_path, monkeypatch):
    """To verify it, and not again to say that there are no intervals: labels of many rows take memory."""
    X, y = load_breast_cancer(return_X_y=True)
    model = LogisticRegression().fit(X, y)
    opened = []
    parts = LogisticRegression._verification_parts
    monkeypatch.setattr(
        LogisticRegression,
        "_verification_parts",
        lambda self, *given: opened.append(1) or parts(self, *given),
    )
    page = write_report(model, X, y, tmp_path / "page.html").read_text()
    assert len(opened) == 1 and "the coefficients are penalised" in page
