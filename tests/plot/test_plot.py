"""Figures show what they claim: positions are read back from the drawing and checked."""

import json
import re
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.contour import ContourSet
from PIL import Image
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import linsep
from linsep import LinearClassifier, LogisticRegression, bounds, datasets, plot
from linsep.basis import Interactions
from linsep.errors import BadInput
from linsep.plot.sketches import descend

X, Y = datasets.blobs_margin(40, margin=0.3, seed=2)
OVER_X, OVER_Y = datasets.overlapping(60)
W, B = np.array([0.3, -1.2]), 0.4


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def lines(ax, label):
    return [np.array(line.get_xydata()) for line in ax.get_lines() if line.get_label() == label]


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def every_figure():
    """One call of each function."""
    model = LinearClassifier("squared_hinge").fit(X, Y)
    Cs = np.logspace(-2, 2, 5)
    return {
        "separability": lambda: plot.separability(X, Y),
        "separators": lambda: plot.separators(X, Y),
        "boundary": lambda: plot.boundary(model, X, Y),
        "effect_of_strength": lambda: plot.effect_of_strength([model, (W, B)], X, Y),
        "losses": plot.losses,
        "geometry": plot.geometry,
        "step_sizes": plot.step_sizes,
        "validation_curve": lambda: plot.validation_curve(Cs, [0.4, 0.2, 0.1, 0.2, 0.3]),
        "risks": lambda: plot.risks([3.0, 1.0, 2.0]),
        "updates_against_bound": lambda: plot.updates_against_bound([3, 9], [10, 20]),
        "coefficients": lambda: plot.coefficients(model),
    }


FIGURES = every_figure()


def test_the_module_offers_what_it_names():
    assert linsep.plot is plot
    assert {*FIGURES, "perceptron_animation"} == set(plot.__all__)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FIGURES)
def test_saved_as_vector_graphics_with_all_labels_inside(name, tmp_path):
    """Nothing warns, every text lies within the page, and no two axes labels are missing."""
    axes = np.ravel(FIGURES[name]())
    figure = axes[0].figure
    path = tmp_path / "figure.svg"
    figure.savefig(path)
    assert ET.parse(path).getroot().tag.endswith("svg")
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    page = figure.bbox
    for ax in axes:
        assert ax.get_xlabel()
        texts = [ax.title, ax.xaxis.label, ax.yaxis.label, *ax.texts]
        texts += [] if ax.get_legend() is None else ax.get_legend().get_texts()
        for text in texts:
            if text.get_text():
                box = text.get_window_extent(renderer)
                assert box.x0 >= page.x0 - 1
                assert box.x1 <= page.x1 + 1, text.get_text()
                assert box.y0 >= page.y0 - 1
                assert box.y1 <= page.y1 + 1


@pytest.mark.parametrize(
    "name", sorted(set(FIGURES) - {"effect_of_strength", "step_sizes", "losses", "geometry"})
)
def test_given_axes_are_used(name):
    figure, ax = plt.subplots()
    call = {
        "separability": lambda: plot.separability(X, Y, ax=ax),
        "separators": lambda: plot.separators(X, Y, ax=ax),
        "boundary": lambda: plot.boundary((W, B), X, Y, ax=ax),
        "validation_curve": lambda: plot.validation_curve([0.1, 1.0], [0.2, 0.1], ax=ax),
        "risks": lambda: plot.risks([2.0, 1.0], ax=ax),
        "updates_against_bound": lambda: plot.updates_against_bound([1], [2], ax=ax),
        "coefficients": lambda: plot.coefficients((W, B), ax=ax),
    }[name]
    assert call() is ax
    assert plt.get_fignums() == [figure.number]


class TestBoundary:
    def test_lines_lie_where_the_scores_say(self):
        ax = plot.boundary((W, B), X, Y)
        (middle,) = lines(ax, "$g(x) = 0$")
        np.testing.assert_allclose(middle @ W + B, 0, atol=1e-12)
        (one,) = lines(ax, r"$g(x) = \pm 1$")
        dashed = [
            np.array(line.get_xydata()) for line in ax.get_lines() if line.get_linestyle() == "--"
        ]
        levels = sorted(round(float((ends @ W + B).mean()), 9) for ends in dashed)
        assert levels == [-1, 1]
        np.testing.assert_allclose(np.abs(one @ W + B) / np.linalg.norm(W), 1 / np.linalg.norm(W))

    def test_rows_and_support_vectors(self):
        model = SimpleNamespace(coef_=W[None], intercept_=np.array([B]), support_=np.array([3, 5]))
        ax = plot.boundary(model, X, Y)
        drawn = {c.get_label(): np.array(c.get_offsets()) for c in ax.collections}
        np.testing.assert_array_equal(drawn["class 1"], X[Y == 1])
        np.testing.assert_array_equal(drawn["class -1"], X[Y == -1])
        np.testing.assert_array_equal(drawn["support vectors"], X[[3, 5]])
        assert "support vectors" in labels(ax)
        ax = plot.boundary(model, X, Y, support=[0])
        np.testing.assert_array_equal(ax.collections[-1].get_offsets(), X[[0]])

    def test_shading_is_on_the_right_side(self):
        ax = plot.boundary((W, B), X, Y)
        negative, positive = (np.array(patch.get_xy()) for patch in ax.patches)
        assert (negative @ W + B <= 1e-9).all()
        assert (positive @ W + B >= -1e-9).all()

    def test_a_boundary_outside_the_picture(self):
        ax = plot.boundary((np.array([1.0, 0.0]), 100.0), X, Y)
        assert not lines(ax, "$g(x) = 0$")
        assert len(ax.patches) == 1

    @pytest.mark.parametrize("frame", [np.asarray, lambda X: pd.DataFrame(X, columns=["a", "b"])])
    def test_curves_of_a_pipeline(self, frame):
        """Vertices of the contours have the scores they stand for, and the sides the right shade."""
        X, y = datasets.exclusive_or(80)
        model = make_pipeline(Interactions(), LogisticRegression(C=100)).fit(frame(X), y)
        ax = plot.boundary(model, frame(X), y)
        assert {"$g(x) = 0$", r"$g(x) = \pm 1$", "class 1"} <= set(labels(ax))
        found = {}
        for contours in ax.collections:
            if isinstance(contours, ContourSet) and not contours.filled:
                for level, path in zip(contours.levels, contours.get_paths(), strict=True):
                    found[float(level)] = model.decision_function(frame(path.vertices))
        assert set(found) == {-1.0, 0.0, 1.0}
        scale = np.abs(model.decision_function(frame(X))).max()
        for level, scores in found.items():
            np.testing.assert_allclose(scores, level, atol=1e-2 * scale)

    def test_a_scaled_pipeline_has_a_straight_boundary(self):
        model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
        ax = plot.boundary(model, X, Y, margins=False)
        (contours,) = (c for c in ax.collections if isinstance(c, ContourSet) and not c.filled)
        (path,) = contours.get_paths()
        assert np.linalg.matrix_rank(path.vertices - path.vertices.mean(axis=0), tol=1e-6) == 1

    def test_three_classes_are_refused(self):
        y = np.arange(len(X)) % 3
        model = make_pipeline(Interactions(), LogisticRegression()).fit(X, y)
        with pytest.raises(BadInput, match="the model scores 3"):
            plot.boundary(model, X, Y)

    def test_names_of_columns_and_classes(self):
        frame = pd.DataFrame(X, columns=["age", "dose"])
        names = np.where(Y > 0, "ill", "well")
        ax = plot.boundary(LogisticRegression().fit(frame, names), frame, names)
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("age", "dose")
        assert {"class ill", "class well"} <= set(labels(ax))

    def test_classes_differ_in_marker_and_colour(self):
        ax = plot.boundary((W, B), X, Y)
        one, two = ax.collections[:2]
        assert not np.array_equal(one.get_facecolor(), two.get_facecolor())
        assert len(one.get_paths()[0].vertices) != len(two.get_paths()[0].vertices)


class TestSeparability:
    def test_titles_tell_the_truth(self):
        assert plot.separability(X, Y).get_title() == "linearly separable"
        assert plot.separability(OVER_X, OVER_Y).get_title() == "not linearly separable"
        assert plot.separability(*datasets.touching_hulls()).get_title() == "not linearly separable"
        shifted = plot.separability(X * 1e-6 + 1e3, Y)
        assert shifted.get_title() == "linearly separable"

    def test_hulls_of_few_rows(self):
        ax = plot.separability([[0.0, 0.0], [1.0, 1.0], [3.0, 0.0]], [0, 0, 1])
        assert ax.get_title() == "linearly separable"
        ax = plot.separability([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [1.5, 1.5]], [0, 0, 0, 1])
        assert ax.get_title() == "not linearly separable"


class TestSeparators:
    def test_every_line_separates_and_the_bold_one_is_widest(self):
        ax = plot.separators(X, Y)
        drawn = [line for line in ax.get_lines() if line.get_label().startswith("margin")]
        assert len(drawn) == 5
        margins = []
        for line in drawn:
            p, q = line.get_xydata()
            normal = np.array([p[1] - q[1], q[0] - p[0]])
            g = X @ normal - p @ normal
            side = np.sign(g[0] * Y[0])
            assert (side * Y * g > 0).all()
            margins.append((side * Y * g).min() / np.linalg.norm(normal))
        widths = [line.get_linewidth() for line in drawn]
        assert int(np.argmax(widths)) == int(np.argmax(margins))
        named = [float(line.get_label().split()[1]) for line in drawn]
        np.testing.assert_allclose(named, margins, rtol=1e-2)

    def test_lines_of_the_users(self):
        ax = plot.separators(X, Y, lines=[(W, B), LogisticRegression().fit(X, Y)])
        assert len([text for text in labels(ax) if text.startswith("margin")]) == 2

    def test_no_separator(self):
        with pytest.raises(BadInput, match="not linearly separable"):
            plot.separators(OVER_X, OVER_Y)


def test_effect_of_strength_names_c_and_width():
    models = [LinearClassifier("squared_hinge", C=C).fit(OVER_X, OVER_Y) for C in (0.01, 10.0)]
    axes = plot.effect_of_strength(models, OVER_X, OVER_Y)
    for ax, model in zip(axes, models, strict=True):
        width = 2 / np.linalg.norm(model.coef_)
        assert ax.get_title() == f"C = {model.C:g}, width {width:.3g}"
    with pytest.raises(BadInput, match="2 axes are needed, got 1"):
        plot.effect_of_strength(models, OVER_X, OVER_Y, axes=[plt.subplots()[1]])


class TestLosses:
    def test_curves_are_the_losses(self):
        ax = plot.losses()
        for name in linsep.losses.NAMES:
            loss = linsep.losses.get(name)
            if loss.classification and name != "zero_one":
                ((m, value),) = (curve.T for curve in lines(ax, name.replace("_", " ")))
                np.testing.assert_allclose(value, loss.value(m))
        ((m, value),) = (curve.T for curve in lines(ax, "logistic, base 2"))
        assert value[m == 0] == pytest.approx(1)

    def test_dominance_is_noted(self):
        texts = labels(plot.losses())
        above, rest = texts.index("above the 0-1 loss:"), texts.index("not always above it:")
        assert texts[0] == "0-1"
        assert above < texts.index("logistic, base 2") < rest < texts.index("logistic")
        assert {"perceptron", "huberised hinge", "logistic"} == set(texts[rest + 1 :])

    def test_every_curve_has_its_own_look(self):
        curves = [line for line in plot.losses().get_lines() if len(line.get_xdata()) > 3]
        looks = {(c.get_color(), c.get_linestyle(), c.get_linewidth()) for c in curves}
        assert len(looks) == len(curves) == 10

    def test_chosen_losses(self):
        ax = plot.losses(
            ["hinge", linsep.losses.HuberisedHinge(0.2), linsep.losses.LOGISTIC_BASE_2]
        )
        assert "1.4427 logistic" in labels(ax)


@pytest.mark.parametrize(
    ("w", "b", "x"),
    [
        ((2.0, 1.0), -3.0, (3.0, 2.5)),
        ((-1.0, 2.0), 2.0, (1.0, -3.0)),
        ((0.0, 1.0), 0.0, (1.0, 0.0)),
    ],
)
def test_geometry_is_right(w, b, x):
    ax = plot.geometry(w, b, x)
    w, x = np.array(w), np.array(x)
    size = np.linalg.norm(w)
    texts = " ".join(text.get_text() for text in ax.texts)
    assert f"distance {abs(x @ w + b) / size:.3g}" in texts
    assert f"= {abs(b) / size:.3g}$" in texts
    plane, to_x, to_plane, *_ = (np.array(line.get_xydata()) for line in ax.get_lines())
    np.testing.assert_allclose(plane @ w + b, 0, atol=1e-12)
    np.testing.assert_allclose(to_x[0], x)
    np.testing.assert_allclose(to_x[1] @ w + b, 0, atol=1e-12)
    assert abs((to_x[1] - x) @ [-w[1], w[0]]) <= 1e-12
    np.testing.assert_allclose(np.linalg.norm(to_plane[1]), abs(b) / size)


def test_step_sizes_do_what_their_titles_say():
    small, large, falling = plot.step_sizes()
    assert "too small" in small.get_title()
    path = small.get_lines()[1].get_xdata()
    assert (np.diff(np.abs(path)) < 0).all()
    assert abs(path[-1]) > 1
    path = large.get_lines()[1].get_xdata()
    assert (path[1:] * path[:-1] < 0).all()  # overshoots every time
    assert (np.diff(np.abs(path)) > 0).all()  # and by more and more
    path = falling.get_lines()[1].get_xdata()
    assert abs(path[-1]) < 0.01
    assert np.array_equal(descend(1.0, lambda k: 0.5, 2), [1.0, 0.5, 0.25])


def test_geometry_of_a_hyperplane_and_of_a_model():
    plane = linsep.Hyperplane([1.0, 2.0], -1.0)
    model = SimpleNamespace(coef_=np.array([[1.0, 2.0]]), intercept_=np.array([-1.0]))
    shown = [
        {text.get_text() for text in ax.texts}
        for ax in (plot.geometry((1.0, 2.0), -1.0), plot.geometry(plane), plot.geometry(model))
    ]
    assert shown[0] == shown[1] == shown[2]


def test_three_classes_are_refused_with_a_way_out():
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 3
    with pytest.raises(BadInput, match="show one against the others, for instance y == "):
        plot.separability(X, y)
    with pytest.raises(BadInput, match=r"as the pair \(coef_\[c\], intercept_\[c\]\)"):
        plot.coefficients(LogisticRegression().fit(X, y))


class TestCurves:
    def test_validation_curve(self):
        Cs = np.array([10.0, 0.1, 1.0])
        folds = np.array([[0.3, 0.5], [0.2, 0.4], [0.1, 0.2]])
        ax = plot.validation_curve(Cs, folds, train=[0.1, 0.3, 0.2])
        (curve,) = lines(ax, "validation")
        np.testing.assert_allclose(curve, [[0.1, 0.3], [1.0, 0.15], [10.0, 0.4]])
        (training,) = lines(ax, "training")
        np.testing.assert_allclose(training[:, 1], [0.3, 0.2, 0.1])
        band = ax.collections[0].get_paths()[0].vertices[:, 1]
        assert band.min() == pytest.approx(0.1)
        assert band.max() == pytest.approx(0.5)
        assert "best C = 1" in labels(ax)
        assert ax.get_xscale() == "log"

    def test_ties_go_to_the_smallest_c(self):
        assert "best C = 0.1" in labels(plot.validation_curve([1.0, 0.1], [0.2, 0.2]))

    def test_validation_curve_of_a_tuning(self):
        X, y = datasets.overlapping(60)
        found = linsep.tune(LogisticRegression(), X, y, Cs=[0.1, 1.0, 10.0], scoring="auc")
        ax = plot.validation_curve(found)
        line = next(line for line in ax.lines if line.get_label() == "validation")
        assert np.allclose(line.get_ydata(), found.curve.mean)
        assert ax.get_ylabel() == "auc"
        assert f"best C = {found.best_C:.3g}" in {line.get_label() for line in ax.lines}
        with pytest.raises(BadInput, match="validation is needed"):
            plot.validation_curve([0.1, 1.0])

    def test_risks_of_a_model(self):
        X, y = datasets.overlapping(60)
        model = linsep.SGDClassifier(epochs=3).fit(X, y)
        ax = plot.risks(model)
        assert np.array_equal(ax.lines[0].get_ydata(), model.history_.last)
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("step", "objective")
        with pytest.raises(BadInput, match="last must be a sequence of numbers, got 'no'"):
            plot.risks("no")

    def test_risks(self):
        ax = plot.risks([3.0, 1.0, 2.0])
        np.testing.assert_allclose(lines(ax, "last iterate")[0], [[1, 3], [2, 1], [3, 2]])
        np.testing.assert_allclose(lines(ax, "best so far")[0][:, 1], [3, 1, 1])
        np.testing.assert_allclose(lines(plot.risks([3.0], [2.0]), "best so far")[0][:, 1], [2])
        placed = plot.risks([3.0, 1.0], epochs=[0.5, 1.0])
        np.testing.assert_allclose(lines(placed, "last iterate")[0][:, 0], [0.5, 1.0])

    def test_updates_against_bounds(self):
        found = bounds.mistake_bounds([1.0], -0.1, [[0.11], [0.09]], [1, -1])
        ax = plot.updates_against_bound([921, 921], [found["novikoff_printed"], found["novikoff"]])
        assert lines(ax, "above it")[0][0] == pytest.approx([484, 921])
        assert lines(ax, "within the bound")[0][0, 1] == 921

    def test_coefficients(self):
        model = SimpleNamespace(
            coef_=np.array([[0.5, -3.0, 0.0, 2.0]]), intercept_=np.zeros(1), classes_=["no", "yes"]
        )
        ax = plot.coefficients(model, ["a", "b", "c", "d"], top=3)
        assert [text.get_text() for text in ax.get_yticklabels()] == ["a", "d", "b"]
        widths = {round(bar.get_y() + bar.get_height() / 2): bar.get_width() for bar in ax.patches}
        assert widths == {0: 0.5, 1: 2.0, 2: -3.0}
        assert "towards no" in ax.get_xlabel()
        scaled = plot.coefficients(model, top=1, scale=[100.0, 1.0, 1.0, 1.0])
        assert [text.get_text() for text in scaled.get_yticklabels()] == ["x0"]
        assert {bar.get_hatch() for bar in ax.patches} == {"", "///"}


class Outline(HTMLParser):
    """Tags with their attributes, in order."""

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


class TestAnimation:
    @staticmethod
    def data(page, name):
        return json.loads(re.search(rf"^const {name} = (.*);$", page, re.MULTILINE)[1])

    def test_frames_are_the_updates(self):
        """Repeat the updates by hand and compare what the page holds."""
        page = plot.perceptron_animation(X, Y)
        frames, rows = self.data(page, "frames"), self.data(page, "rows")
        v, Z = np.zeros(3), np.column_stack([X, np.ones(len(X))])
        assert frames[0]["row"] is None
        assert frames[0]["line"] is None
        for number, frame in enumerate(frames[1:], 1):
            row = frame["row"]
            assert Y[row] * (Z[row] @ v) <= 0
            v = v + Y[row] * Z[row]
            assert frame["number"] == number
            assert frame["w"] == [f"{value:.4g}" for value in v]
            assert frame["wrong"] == int((Y * (Z @ v) <= 0).sum())
        assert frames[-1]["wrong"] == 0
        assert len(rows) == len(X)

    def test_lines_in_pixels_are_the_lines_of_the_model(self):
        page = plot.perceptron_animation(X, Y)
        frames, rows = self.data(page, "frames"), np.array([r[:2] for r in self.data(page, "rows")])
        affine = np.linalg.lstsq(np.column_stack([rows, np.ones(len(rows))]), X, rcond=None)[0]
        line = np.array(frames[-1]["line"]).reshape(2, 2)
        w = [float(value) for value in frames[-1]["w"]]
        ends = np.column_stack([line, np.ones(2)]) @ affine
        np.testing.assert_allclose(ends @ w[:2] + w[2], 0, atol=0.02)

    def test_a_given_history_in_both_forms(self):
        steps = [(np.array([1.0, 2.0]), 0.5, 3), (np.array([0.0, -1.0]), 0.0, 7)]
        arrays = (np.array([[1.0, 2.0, 0.5], [0.0, -1.0, 0.0]]), np.array([3, 7]))
        one, two = (plot.perceptron_animation(X, Y, history) for history in (steps, arrays))
        assert one == two
        assert [frame["row"] for frame in self.data(one, "frames")] == [None, 3, 7]

    def test_no_updates_at_all(self):
        page = plot.perceptron_animation(X, Y, (np.zeros((0, 3)), np.zeros(0, dtype=int)))
        assert len(self.data(page, "frames")) == 1

    def test_long_histories_are_thinned_and_inseparable_data_end(self):
        page = plot.perceptron_animation(OVER_X, OVER_Y)
        frames = self.data(page, "frames")
        assert frames[-1]["number"] == 500
        many = (np.ones((2000, 3)), np.zeros(2000, dtype=int))
        numbers = [f["number"] for f in self.data(plot.perceptron_animation(X, Y, many), "frames")]
        assert (numbers[0], numbers[-1], len(numbers)) == (0, 2000, 501)

    def test_the_page_is_self_contained_and_operable(self, tmp_path):
        path = plot.perceptron_animation(X, Y, path=tmp_path / "player.html")
        page = path.read_text(encoding="utf-8")
        outline = Outline(page)
        tags = [tag for tag, _ in outline.tags]
        assert not {"link", "img", "iframe", "object"} & set(tags)
        assert not any("src" in a or "href" in a for _, a in outline.tags)
        assert "http://" not in page
        assert "https://" not in page
        policy = next(a["content"] for t, a in outline.tags if a.get("http-equiv"))
        assert policy.startswith("default-src 'none'")
        assert tags.count("button") == 5
        assert tags.count("circle") + tags.count("path") == len(X) + 1
        slider = next(a for t, a in outline.tags if t == "input")
        assert slider["aria-label"] == "Frame"
        assert len(page) < 100_000

    def test_labels_cannot_break_out(self):
        names = np.where(Y > 0, "</script><b>", "&amp;")
        page = plot.perceptron_animation(X, names)
        assert page.count("</script>") == 1
        assert "<b>" not in page

    @pytest.mark.slow
    def test_gif(self, tmp_path):
        history = (np.array([[1.0, 2.0, 0.5], [0.0, -1.0, 0.0]]), np.array([3, 7]))
        path = plot.perceptron_animation(X, Y, history, tmp_path / "p.gif", seconds=0.5)
        with Image.open(path) as image:
            assert image.n_frames == 3
            assert image.info["duration"] == 500
        assert not plt.get_fignums()


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install matplotlib"):
        plot.boundary((W, B), X, Y)
    assert "<svg" in plot.perceptron_animation(X, Y)  # the player needs no matplotlib


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: plot.boundary((W, B), np.ones((3, 3)), [0, 1, 1]),
            r"shape \(n, 2\), got \(3, 3\)",
        ),
        (lambda: plot.boundary((W, B), X, Y[:5]), "one label for each of 40 rows"),
        (lambda: plot.boundary((W, B), X, np.ones(40)), "two classes, y has 1"),
        (lambda: plot.boundary((W * 0, B), X, Y), "has no boundary"),
        (lambda: plot.boundary(LogisticRegression(), X, Y), "fitted linear model"),
        (lambda: plot.boundary((np.ones(3), B), X, Y), "2 coefficients and one intercept"),
        (lambda: plot.boundary((np.ones((3, 2)), np.ones(3)), X, Y), "has 3 rows of coefficients"),
        (lambda: plot.separability(X * np.nan, Y), "must be finite"),
        (lambda: plot.effect_of_strength([], X, Y), "at least one model"),
        (lambda: plot.geometry((0.0, 0.0)), "w = 0 does not define a hyperplane"),
        (lambda: plot.losses(["nope"]), "Unknown loss 'nope'"),
        (lambda: plot.validation_curve([0.0, 1.0], [1.0, 1.0]), "positive and finite"),
        (lambda: plot.validation_curve([0.1, 1.0], [1.0]), r"shape \(2,\) or \(2, folds\)"),
        (lambda: plot.risks([]), "sequence of numbers"),
        (lambda: plot.risks([1.0], [1.0, 2.0]), "equally long"),
        (lambda: plot.risks([1.0, 0.5], epochs=[1.0]), "equally long"),
        (lambda: plot.updates_against_bound([0], [1]), "positive and equally many"),
        (lambda: plot.coefficients((W, B), names=["a"]), "2 names are needed, got 1"),
        (lambda: plot.coefficients((W, B), top=0), "top must be at least 1"),
        (lambda: plot.coefficients((W, B), scale=[1.0]), "scale must be 2 numbers"),
        (lambda: plot.perceptron_animation(X, Y, path="p.mp4"), "end in .html or .gif"),
        (lambda: plot.perceptron_animation(X, Y, seconds=0.0), "between 0.02 and 60"),
        (lambda: plot.perceptron_animation(X, Y, [(W, B)]), "history must be a pair"),
        (lambda: plot.perceptron_animation(X, Y, (np.ones((2, 4)), [0, 1])), "got W"),
        (lambda: plot.perceptron_animation(X, Y, (np.ones((1, 3)), [40])), "rows lie in 0 ... 39"),
    ],
)
def test_bad_arguments_say_what_is_wanted(call, message):
    with pytest.raises(BadInput, match=message):
        call()
