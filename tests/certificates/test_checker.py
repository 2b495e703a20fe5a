"""The checker that shares nothing with linsep: it proves what was saved, and rejects what was altered."""

import ast
import importlib.util
import json
import math
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import flint
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hostile import answers, draw
from hypothesis import given
from hypothesis import strategies as st

import linsep
from linsep import losses
from linsep.cli import main
from linsep.model_files import container
from linsep.solution import Explicit

CHECKER = Path(__file__).parents[2] / "checker" / "linsep_check.py"
spec = importlib.util.spec_from_file_location("linsep_check", CHECKER)
checker = importlib.util.module_from_spec(spec)
sys.modules["linsep_check"] = checker
spec.loader.exec_module(checker)


def make_rows(kind, seed=0, n=30, d=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    scores = X @ rng.normal(size=(d, 3)) + 2 * rng.normal(size=(n, 3))
    target = {
        "two": (scores[:, 0] > 0).astype(int),
        "three": np.array(["no", "perhaps", "yes"])[scores.argmax(axis=1)],
        "number": scores[:, 0],
        "apart": (X[:, 0] > 0) * 1.0,
    }[kind]
    if kind == "apart":
        X[:, 0] += np.sign(X[:, 0])
    return X, target, rng.uniform(0.1, 3, n)


def write_rows(path, X, y, weight=None):
    more = {} if weight is None else {"sample_weight": weight}
    if sp.issparse(X):
        parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape}
        np.savez_compressed(path, **parts, y=y, **more)
    else:
        np.savez(path, X=X, y=y, **more)
    return path


def run(*paths):
    """The checker without any package: -S leaves site-packages out."""
    command = [sys.executable, "-I", "-S", str(CHECKER), *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert not done.stderr
    return done.returncode, done.stdout


def test_imports_the_standard_library_only():
    imported = set()
    for node in ast.walk(ast.parse(CHECKER.read_text())):
        if isinstance(node, ast.Import):
            imported |= {name.name for name in node.names}
        if isinstance(node, ast.ImportFrom):
            imported.add(node.module)
    assert imported <= set(sys.stdlib_module_names)


MODELS = {
    "logistic": ("two", lambda: linsep.LogisticRegression(C=2.0)),
    "base 2": ("two", lambda: linsep.LinearClassifier(losses.LOGISTIC_BASE_2)),
    "scaled hinge": ("two", lambda: linsep.LinearClassifier(losses.Scaled(losses.Hinge(), 0.3))),
    "scaled, C=inf": ("two", lambda: linsep.LinearClassifier(losses.LOGISTIC_BASE_2, C=math.inf)),
    "scaled, hard margin": (
        "apart",
        lambda: linsep.LinearClassifier(losses.Scaled(losses.Hinge(), 3.0), C=math.inf),
    ),
    "exponential": ("two", lambda: linsep.LinearClassifier("exponential")),
    "squared hinge": ("two", lambda: linsep.LinearSVC(loss="squared_hinge")),
    "huberised": ("two", lambda: linsep.LinearClassifier(losses.HuberisedHinge(0.5))),
    "hinge": ("two", lambda: linsep.LinearSVC(C=0.1, class_weight="balanced")),
    "perceptron": ("two", lambda: linsep.LinearClassifier("perceptron")),
    "no intercept": ("two", lambda: linsep.LogisticRegression(fit_intercept=False)),
    "lasso": ("two", lambda: linsep.LogisticRegression(C=0.3, l1_ratio=1.0)),
    "elastic net": ("number", lambda: linsep.LinearRegressor(C=0.3, l1_ratio=0.5)),
    "least squares": ("number", linsep.LinearRegressor),
    "median": ("number", lambda: linsep.LinearRegressor("absolute")),
    "huber": ("number", lambda: linsep.LinearRegressor("huber", C=3.0)),
    "C=inf": ("two", lambda: linsep.LogisticRegression(C=math.inf)),
    "one against the rest": ("three", lambda: linsep.LinearSVC(class_weight={"yes": 2.0})),
    "multinomial": ("three", linsep.LogisticRegression),
    "multinomial, C=inf": ("three", lambda: linsep.LogisticRegression(C=math.inf)),
    "Crammer and Singer": ("three", lambda: linsep.LinearSVC(multiclass="crammer_singer")),
    "quantile": ("number", lambda: linsep.LinearRegressor(losses.Pinball(quantile=0.2), C=3.0)),
    "tube": (
        "number",
        lambda: linsep.LinearRegressor(losses.EpsilonInsensitive(epsilon=0.5), C=2.0),
    ),
    "squared tube": (
        "number",
        lambda: linsep.LinearRegressor(losses.SquaredEpsilonInsensitive(epsilon=0.5), C=2.0),
    ),
    "log_loss": ("two", lambda: linsep.LinearClassifier("log_loss")),
    "modified_huber": ("two", lambda: linsep.LinearClassifier("modified_huber")),
    "squared_error": ("number", lambda: linsep.LinearRegressor("squared_error", C=2.0)),
    "name of a quantile": ("number", lambda: linsep.LinearRegressor("quantile", C=2.0)),
    "hard margin": ("apart", lambda: linsep.LinearSVC(C=math.inf)),
    "fewest errors": ("two", linsep.ZeroOneClassifier),
}


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", MODELS)
def test_models_are_proven(name, tmp_path):
    kind, make = MODELS[name]
    X, y, weight = make_rows(kind)
    if name in ("logistic", "huber", "median", "multinomial"):
        X = sp.csr_array(X)
    weight = None if kind == "apart" or name == "fewest errors" else weight
    model = make().fit(X, y, sample_weight=weight)
    assert model.certificate_.certified
    linsep.save(model, tmp_path / "model.linsep")
    code, line = run(tmp_path / "model.linsep", write_rows(tmp_path / "rows.npz", X, y, weight))
    assert code == 0, line
    assert line.startswith(f"proven: {type(model).__name__}, 30 rows: ")
    assert line.count("\n") == 1


@pytest.mark.parametrize("C", [0.25, 1e4])
def test_weights_over_many_decades(C, tmp_path):
    X, y, _ = make_rows("two", n=10)
    weight = 2.0 ** np.linspace(-280, 290, 10)
    model = linsep.LogisticRegression(C).fit(X, y, weight)
    assert model.certificate_.certified
    linsep.save(model, tmp_path / "model.linsep")
    assert run(tmp_path / "model.linsep", write_rows(tmp_path / "rows.npz", X, y, weight))[0] == 0


@pytest.mark.parametrize(
    ("loss", "C", "scale", "tiny"),
    [("huber", 16.0, 1e150, 1.0), ("absolute", math.inf, 1.0, 1e-300)],
)
def test_rows_on_a_kink_that_decide_the_bound(loss, C, scale, tiny, tmp_path):
    rng = np.random.default_rng(0)
    X = np.eye(3)[rng.integers(3, size=30)]
    t = scale * rng.normal(size=30)
    weight = np.where(rng.random(30) < 0.3, tiny, 1.0)
    model = linsep.LinearRegressor(loss, C=C).fit(X, t, weight)
    assert model.certificate_.certified
    linsep.save(model, tmp_path / "model.linsep")
    assert run(tmp_path / "model.linsep", write_rows(tmp_path / "rows.npz", X, t, weight))[0] == 0


@pytest.mark.parametrize(
    ("model", "kind"), [("LinearClassifier", "two"), ("LinearRegressor", "number")]
)
@pytest.mark.parametrize("l1_ratio", [0.0, 0.01])
def test_large_features_need_long_dual_variables(model, kind, l1_ratio, tmp_path):
    X, y, weight = make_rows(kind, n=20, d=4)
    X *= 1e121
    fit = getattr(linsep, model)("squared", C=1.0, l1_ratio=l1_ratio).fit(X, y, weight)
    assert fit.certificate_.certified
    linsep.save(fit, tmp_path / "model.linsep")
    assert run(tmp_path / "model.linsep", write_rows(tmp_path / "rows.npz", X, y, weight))[0] == 0


@pytest.mark.parametrize("seed", [None, 0, 3, 4, 7])
def test_columns_that_depend_on_others_up_to_rounding(seed, tmp_path):
    """Heavy rows turn the last bits of a score into another bound, so that the dual variables are stored.

    Rows that differ by a rounding stand for the other bits of other processors.
    """
    rng = np.random.default_rng(5)
    X = rng.normal(size=(17, 5))
    X = np.column_stack([X, X.sum(axis=1)])
    y, weight = rng.random(17) < 0.5, 10.0 ** rng.uniform(-12, 12, 17)
    if seed is not None:
        X *= 1.0 + 2.0**-52 * np.random.default_rng(seed).choice([-1, 0, 1], size=X.shape)
    groups = [2, 0, 0, 0, 0, 2]
    model = linsep.LinearClassifier("squared_hinge", l1_ratio=1.0, feature_groups=groups, tol=1e-5)
    model.fit(X, y, weight)  # the gap that is proven varies with the instruction set: 3e-8 to 2e-6
    assert model.certificate_.certified
    assert isinstance(model._fits[0].dual, Explicit)
    linsep.save(model, tmp_path / "model.linsep")
    assert run(tmp_path / "model.linsep", write_rows(tmp_path / "rows.npz", X, y, weight))[0] == 0


def test_an_exact_fit(tmp_path):
    X, y, _ = make_rows("number", n=4, d=6)
    linsep.save(linsep.LinearRegressor().fit(X, y), tmp_path / "model.linsep")
    code, line = run(tmp_path / "model.linsep", write_rows(tmp_path / "rows.npz", X, y))
    assert code == 0
    assert "zero to working precision" in line


@pytest.mark.parametrize("C", [1e-3, 50.0])
def test_an_exact_fit_by_features_without_a_penalty(C, tmp_path):
    X, y, _ = make_rows("number", n=4, d=9)
    factor = np.where(np.arange(9) % 2, 1.0, 0.0)
    model = linsep.LinearRegressor(C=C, penalty_factor=factor).fit(X, y)
    linsep.save(model, tmp_path / "model.linsep")
    code, line = run(tmp_path / "model.linsep", write_rows(tmp_path / "rows.npz", X, y))
    assert code == 0
    assert "zero to working precision" in line


@pytest.mark.parametrize("d", [1, 2, 4])
def test_the_fewest_errors_are_proven_by_enumeration_or_by_witnesses(d, tmp_path):
    X, y, _ = make_rows("two", 3, n=20, d=d)
    model = linsep.ZeroOneClassifier().fit(X, y)
    assert model.proven_
    linsep.save(model, tmp_path / "model.linsep")
    rows = write_rows(tmp_path / "rows.npz", X, y)
    assert checker.main([str(tmp_path / "model.linsep"), str(rows)]) == 0
    flipped = write_rows(tmp_path / "flipped.npz", X, 1 - y)
    assert checker.main([str(tmp_path / "model.linsep"), str(flipped)]) == 1


def test_the_least_errors_of_lines_by_brute_force():
    """All lines in 300 directions: more than there are between points with coordinates 0 to 3."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        points = rng.integers(0, 4, size=(7, 2))
        signs = rng.choice([-1, 1], 7)
        best = 7
        for angle in np.linspace(0, 2 * np.pi, 300, endpoint=False) + 1e-4:
            along = points @ [math.cos(angle), math.sin(angle)]
            above = along[:, None] >= np.append(along, math.inf)
            best = min(best, int((above != (signs > 0)[:, None]).sum(axis=0).min()))
        given_points = [
            (tuple(Fraction(int(x)) for x in p), Fraction(int(s)))
            for p, s in zip(points, signs, strict=True)
        ]
        assert checker.fewest_in_a_plane(given_points) == best


def test_tables_pass_through_the_command_line(tmp_path):
    """A table with words: the model holds an encoder, ``convert --like`` writes what the checker reads."""
    rng = np.random.default_rng(0)
    lines = ["age,town,bought"]
    for age, town, luck in zip(
        rng.integers(18, 80, 60), rng.choice(["Bonn", "Ulm"], 60), rng.normal(size=60), strict=True
    ):
        lines.append(f"{age},{town},{'yes' if age / 40 + (town == 'Ulm') + luck > 1.8 else 'no'}")
    table, model = tmp_path / "table.csv", tmp_path / "model.linsep"
    table.write_text("\n".join(lines) + "\n")
    options = ["--target", "bought", "--quiet"]
    assert main(["fit", str(table), *options, "--C", "1", "--no-report", "-o", str(model)]) == 0
    for suffix in ("npz", "csv"):
        rows = tmp_path / f"rows.{suffix}"
        assert main(["convert", str(table), str(rows), *options, "--like", str(model)]) == 0
        assert run(model, rows)[0] == 0


class TestTampering:
    """Files whose checksums are right and whose content is not."""

    @pytest.fixture(scope="class")
    @classmethod
    def files(cls, tmp_path_factory):
        folder = tmp_path_factory.mktemp("files")
        made = {}
        for name in ("logistic", "hinge", "multinomial, C=inf", "least squares", "lasso"):
            kind, make = MODELS[name]
            X, y, _ = make_rows(kind)
            path = folder / f"{name}.linsep"
            linsep.save(make().fit(X, y), path)
            made[name] = path, write_rows(folder / f"{name}.npz", X, y)
        return made

    def altered(self, files, name, tmp_path, change):
        path, rows = files[name]
        manifest, arrays = container.unpack(path.read_bytes(), "model")
        change(manifest, arrays)
        forged = tmp_path / "forged.linsep"
        forged.write_bytes(container.pack(manifest, arrays))
        return checker.main([str(forged), str(rows)])

    @pytest.mark.parametrize("name", ["logistic", "hinge", "multinomial, C=inf", "lasso"])
    def test_untouched(self, files, name, tmp_path):
        assert self.altered(files, name, tmp_path, lambda manifest, arrays: None) == 0

    @pytest.mark.parametrize("name", ["logistic", "hinge", "multinomial, C=inf", "least squares"])
    @pytest.mark.parametrize("attribute", ["coef_", "intercept_"])
    def test_coefficients(self, files, name, attribute, tmp_path):
        def change(manifest, arrays):
            node = manifest["fitted"][attribute]
            if isinstance(node, float):
                manifest["fitted"][attribute] = node + 0.01
            else:
                arrays.append(arrays[node["array"]] + 0.01)
                arrays[-1].ravel()[0] += 0.01
                node["array"] = len(arrays) - 1

        assert self.altered(files, name, tmp_path, change) == 1

    @pytest.mark.parametrize(
        ("name", "value"), [("loss", "squared_hinge"), ("multiclass", "ovr"), ("C", 2.0)]
    )
    def test_parameters_of_all_classes_together(self, name, value, tmp_path):
        X, y, _ = make_rows("three")
        path, rows = tmp_path / "all.linsep", write_rows(tmp_path / "rows.npz", X, y)
        linsep.save(linsep.LinearSVC(multiclass="crammer_singer").fit(X, y), path)

        def change(manifest, arrays):
            manifest["params"][name] = value

        assert checker.main([str(path), str(rows)]) == 0
        assert self.altered({"all": (path, rows)}, "all", tmp_path, change) == 1

    @pytest.mark.parametrize("attribute", ["coef_", "intercept_"])
    def test_coefficients_by_one_bit(self, files, attribute, tmp_path):
        def change(manifest, arrays):
            node = manifest["fitted"][attribute]
            arrays.append(np.nextafter(arrays[node["array"]], np.inf))
            node["array"] = len(arrays) - 1

        assert self.altered(files, "hinge", tmp_path, change) == 1

    @pytest.mark.parametrize("name", ["primal", "dual", "gap", "relative_gap", "coef_error"])
    def test_sums_of_parts_by_one_bit(self, name, tmp_path):
        X, y, _ = make_rows("three")
        path, rows = tmp_path / "ovr.linsep", write_rows(tmp_path / "rows.npz", X, y)
        linsep.save(linsep.LogisticRegression(multiclass="ovr").fit(X, y), path)

        def change(manifest, arrays):
            fields = manifest["fitted"]["certificate_"]["fields"]
            fields[name] = math.nextafter(fields[name], math.inf)

        assert checker.main([str(path), str(rows)]) == 0
        assert self.altered({"ovr": (path, rows)}, "ovr", tmp_path, change) == 1

    @pytest.mark.parametrize(
        "lie",
        [
            {"primal": 1.0, "dual": 1.0},
            {"dual": 1e9, "gap": 0.0},
            {"gap": 0.0},
            {"relative_gap": 1e-30, "gap": 1.0},
            {"rounding": 1e9, "primal": 0.0, "dual": 0.0, "gap": 0.0},
            {"rounding": 1e9, "gap": 1e9},
            {"rounding": {"float": "inf"}, "primal": 123.0},
            {"primal": {"float": "nan"}},
            {"tol": 1.0},
            {"certified": False},
            {"coef_error": 0.0},
        ],
        ids="-".join,
    )
    @pytest.mark.parametrize("everywhere", [False, True])
    def test_claims(self, files, lie, everywhere, tmp_path):
        def change(manifest, arrays):
            manifest["fitted"]["certificate_"]["fields"].update(lie)
            if everywhere:
                manifest["fitted"]["_fits"][0]["fields"]["certificate"]["fields"].update(lie)

        assert self.altered(files, "hinge", tmp_path, change) == 1

    def test_the_width_of_a_loss(self, tmp_path):
        """A name stands for a loss with its default parameters."""
        X, y, _ = make_rows("number")
        rows = write_rows(tmp_path / "rows.npz", X, y)
        model = linsep.LinearRegressor(losses.Huber(0.7), C=3.0).fit(X, y)
        for loss, code in ((losses.Huber(0.7), 0), ("huber", 1), (losses.Huber(0.8), 1)):
            linsep.save(model.set_params(loss=loss), tmp_path / "model.linsep")
            assert run(tmp_path / "model.linsep", rows)[0] == code

    @pytest.mark.parametrize(
        ("field", "value"), [("C", 2.5), ("l1_ratio", 0.5), ("fit_intercept", False)]
    )
    def test_recipes(self, files, field, value, tmp_path):
        def change_both(manifest, arrays):
            recipe = manifest["fitted"]["_fits"][0]["fields"]["recipe"]["fields"]
            place = recipe if field == "fit_intercept" else recipe["penalty"]["fields"]
            place[field] = manifest["params"][field] = value

        def change_parameter(manifest, arrays):
            manifest["params"][field] = value

        assert self.altered(files, "logistic", tmp_path, change_both) == 1
        assert self.altered(files, "logistic", tmp_path, change_parameter) == 1

    def test_classes(self, files, tmp_path):
        def change(manifest, arrays):
            manifest["fitted"]["classes_"]["strings"].reverse()

        assert self.altered(files, "multinomial, C=inf", tmp_path, change) == 1

    def test_a_dual_point_that_was_lost_is_found_again_where_the_loss_is_smooth(
        self, files, tmp_path
    ):
        def change(manifest, arrays):
            for array in arrays[1:3]:
                array[:] = 0.5

        assert self.altered(files, "logistic", tmp_path, change) == 0

    @pytest.mark.parametrize("name", ["logistic", "hinge", "multinomial, C=inf", "least squares"])
    def test_other_rows(self, files, name, tmp_path):
        path, rows = files[name]
        with np.load(rows) as arrays:
            X, y = arrays["X"], arrays["y"]
        for other, target in ((X[:-1], y[:-1]), (X[:, ::-1], y), (X, np.roll(y, 1))):
            assert checker.main([str(path), str(write_rows(tmp_path / "other.npz", other, target))])

    def test_unusable_files(self, files, tmp_path):
        path, rows = files["logistic"]
        content = bytearray(path.read_bytes())
        content[200] ^= 1
        (tmp_path / "damaged.linsep").write_bytes(content)
        assert run(tmp_path / "damaged.linsep", rows)[0] == 2
        assert run(rows, path)[0] == 2
        assert run(path, tmp_path / "nowhere.npz")[0] == 2
        assert run(path)[0] == 2
        wide = write_rows(tmp_path / "wide.npz", np.zeros((3, 9)), np.zeros(3))
        assert run(path, wide)[0] == 2


CURVED = {
    "logistic": ("two", "logistic"),
    "exponential": ("two", "exponential"),
    "squared hinge": ("two", "squared_hinge"),
    "huberised hinge": ("two", losses.HuberisedHinge(2.0)),
    "least squares": ("number", "squared"),
    "huber": ("number", losses.Huber(0.7)),
    "squared tube": ("number", losses.SquaredEpsilonInsensitive(epsilon=0.5)),
}


class TestErrorOfTheCoefficients:
    """That which follows from the curvature of the losses, not from the penalty."""

    def fitted(self, name, C, folder):
        kind, loss = CURVED[name]
        X, y, weight = make_rows(kind)
        estimator = linsep.LinearClassifier if kind == "two" else linsep.LinearRegressor
        model = estimator(loss, C=C).fit(X, y, sample_weight=weight)
        linsep.save(model, folder / "model.linsep")
        return model, write_rows(folder / "rows.npz", X, y, weight)

    @pytest.mark.parametrize("C", [math.inf, 3.0])
    @pytest.mark.parametrize("name", CURVED)
    def test_encloses_the_way_to_the_optimum(self, name, C, tmp_path):
        _, rows = self.fitted(name, C, tmp_path)
        found = checker.read_model(tmp_path / "model.linsep"), checker.read_rows(rows)
        ((problem, _, _),) = checker.problems(*found)
        start = checker.coefficient_error(
            problem
        )  # the fit may be that far from the optimum itself
        assert 0 < start <= 1e-6
        for size in (1e-6, 1e-3):
            moved = [w + Fraction(size) * (-1) ** j for j, w in enumerate(problem.W[0])]
            again = type(problem)(**{**vars_of(problem), "W": [moved], "scores": []})
            error = checker.coefficient_error(again)
            way = math.sqrt(2) * size  # two features; the intercept does not count
            assert (1 - 1e-6) * way - start <= error
            assert error <= 1.5 * way

    @pytest.mark.parametrize("name", CURVED)
    def test_without_a_penalty_it_is_found_anew(self, name, tmp_path):
        model, rows = self.fitted(name, math.inf, tmp_path)
        assert math.isfinite(model.certificate_.coef_error)
        assert checker.main([str(tmp_path / "model.linsep"), str(rows)]) == 0
        manifest, arrays = container.unpack((tmp_path / "model.linsep").read_bytes(), "model")
        for fields in certificates_of(manifest):
            fields["coef_error"] = 1e-300
        (tmp_path / "forged.linsep").write_bytes(container.pack(manifest, arrays))
        assert checker.main([str(tmp_path / "forged.linsep"), str(rows)]) == 1

    def test_a_singular_problem_has_none(self, tmp_path):
        X, y, _ = make_rows("number")
        model = linsep.LinearRegressor().fit(np.column_stack([X, X[:, 0]]), y)
        assert model.certificate_.coef_error == math.inf
        linsep.save(model, tmp_path / "model.linsep")
        rows = write_rows(tmp_path / "rows.npz", np.column_stack([X, X[:, 0]]), y)
        found = checker.read_model(tmp_path / "model.linsep"), checker.read_rows(rows)
        ((problem, _, _),) = checker.problems(*found)
        assert checker.coefficient_error(problem) is None


def vars_of(problem):
    """The arguments that a problem of the checker was made of."""
    return {name: getattr(problem, name) for name in problem.__dataclass_fields__}


def certificates_of(manifest):
    """The fields of every certificate in a file."""
    yield manifest["fitted"]["certificate_"]["fields"]
    for fit in manifest["fitted"]["_fits"]:
        yield fit["fields"]["certificate"]["fields"]


def encloses(bounds, function, x):
    """Whether two fractions lie around f(x), by ball arithmetic of 900 bits."""
    with flint.ctx.workprec(900):
        low, high, ball = (flint.arb(flint.fmpq(v.numerator, v.denominator)) for v in (*bounds, x))
        truth = function(ball)
        return bool(low <= truth) and bool(truth <= high)


class TestArithmetic:
    @given(st.fractions(min_value=-3000, max_value=3000))
    def test_exp(self, x):
        low, high = checker.exp_bounds(x)
        assert encloses((low, high), flint.arb.exp, x)
        assert high - low <= low * Fraction(1, 1 << 280)

    @given(st.fractions(min_value=Fraction(1, 10**30), max_value=10**30))
    def test_log(self, y):
        low, high = checker.log_bounds(y)
        assert encloses((low, high), flint.arb.log, y)
        assert high - low <= Fraction(1, 1 << 290)

    @given(st.fractions(min_value=0, max_value=1), st.integers(0, 400))
    def test_p_log_p(self, p, shift):
        p = p / (1 << shift) + Fraction(1, 3 ** (shift + 1))  # also long fractions
        low, high = checker.p_log_p(p)
        assert encloses((low, high), lambda q: q * q.log(), p)
        assert high - low <= Fraction(1, 1 << 240)

    @given(
        st.lists(st.lists(st.integers(-3, 3), min_size=4, max_size=4), min_size=1, max_size=5),
        st.lists(st.integers(-3, 3), min_size=4, max_size=4),
    )
    def test_systems_that_may_be_singular(self, rows, x):
        A = np.array(rows, dtype=object)
        gram = (A.T @ A).tolist()
        matrix = [[Fraction(v) for v in row] for row in gram]
        rhs = [sum(a * b for a, b in zip(row, x, strict=True)) for row in matrix]
        for solve in (checker.solve_exactly, checker.solve_nearly):
            found = solve(matrix, rhs)
            for row, b in zip(matrix, rhs, strict=True):
                got = sum(a * v for a, v in zip(row, found, strict=True))
                assert abs(got - b) <= Fraction(1, 10**25)
        assert checker.solve_exactly(matrix, rhs) is not None


def test_the_format_is_the_documented_one():
    """The page that specifies the file names every kind of value and every record the checker reads."""
    page = (CHECKER.parents[1] / "docs" / "model-format.md").read_text()
    words = "Optimality ZeroOne Recipe ElasticNet Fit Linearised Explicit loss:Scaled _class_weight"
    for word in words.split():
        assert f"`{word}`" in page, word
    assert json.dumps("LINSEP\r\n").strip('"') in page


UNEVEN = {
    "factors": ("two", lambda: linsep.LogisticRegression(penalty_factor=[0.5, 2.0, 1.0, 3.0])),
    "one feature free": ("two", lambda: linsep.LinearSVC(penalty_factor=[0.0, 2.0, 1.0, 1.0])),
    "least squares, two free": (
        "number",
        lambda: linsep.LinearRegressor(C=0.3, penalty_factor=[0.0, 0.0, 1.0, 2.0]),
    ),
    "lasso with factors": (
        "number",
        lambda: linsep.LinearRegressor(C=0.3, l1_ratio=1.0, penalty_factor=[0.0, 1.0, 2.0, 9.0]),
    ),
    "groups": (
        "two",
        lambda: linsep.LogisticRegression(C=0.4, l1_ratio=1.0, feature_groups=[[0, 2], [1, 3]]),
    ),
    "groups, one free, and a ridge": (
        "two",
        lambda: linsep.LinearClassifier(
            "squared_hinge",
            C=0.2,
            l1_ratio=0.5,
            feature_groups=["a", "b", "b", "b"],
            penalty_factor=[0.0, 1.5, 1.5, 1.5],
        ),
    ),
    "one against the rest": (
        "three",
        lambda: linsep.LogisticRegression(
            l1_ratio=1.0, multiclass="ovr", feature_groups=[0, 0, 1, 1]
        ),
    ),
}


class TestFactorsAndGroups:
    @pytest.mark.parametrize("name", UNEVEN)
    def test_models_are_proven(self, name, tmp_path):
        kind, make = UNEVEN[name]
        X, y, weight = make_rows(kind, d=4)
        model = make().fit(X, y, sample_weight=weight)
        assert model.certificate_.certified
        linsep.save(model, tmp_path / "model.linsep")
        code, line = run(tmp_path / "model.linsep", write_rows(tmp_path / "rows.npz", X, y, weight))
        assert code == 0, line

    @pytest.mark.parametrize("name", ["one feature free", "groups", "lasso with factors"])
    def test_other_coefficients_are_rejected(self, name, tmp_path):
        kind, make = UNEVEN[name]
        X, y, weight = make_rows(kind, d=4)
        model = make().fit(X, y, sample_weight=weight)
        model.coef_ += 1e-2
        model._fits[0].W[:-1] += 1e-2
        linsep.save(model, tmp_path / "model.linsep")
        code, line = run(tmp_path / "model.linsep", write_rows(tmp_path / "rows.npz", X, y, weight))
        assert code == 1, line

    @pytest.mark.parametrize(
        ("given", "told"),
        [
            ({"penalty_factor": [0.0, 2.0]}, {"penalty_factor": [0.0, 3.0]}),
            ({"penalty_factor": [0.0, 2.0]}, {"penalty_factor": None}),
            ({"feature_groups": [0, 0], "l1_ratio": 1.0}, {"feature_groups": [0, 1]}),
            ({"feature_groups": [0, 0], "l1_ratio": 1.0}, {"feature_groups": None}),
        ],
    )
    def test_other_parameters_are_rejected(self, given, told, tmp_path):
        X, y, _ = make_rows("two")
        model = linsep.LogisticRegression(**given).fit(X, y)
        linsep.save(model.set_params(**told), tmp_path / "model.linsep")
        code, line = run(tmp_path / "model.linsep", write_rows(tmp_path / "rows.npz", X, y))
        assert code == 1 and next(iter(told)) in line

    def test_names_of_columns(self, tmp_path):
        X, y, _ = make_rows("two")
        frame = pd.DataFrame(X, columns=["age", "dose"])
        model = linsep.LogisticRegression(penalty_factor={"dose": 0.0}).fit(frame, y)
        linsep.save(model, tmp_path / "model.linsep")
        rows = write_rows(tmp_path / "rows.npz", X, y)
        assert run(tmp_path / "model.linsep", rows)[0] == 0
        linsep.save(model.set_params(penalty_factor={"age": 0.0}), tmp_path / "model.linsep")
        assert run(tmp_path / "model.linsep", rows)[0] == 1


def test_a_row_at_the_end_of_its_piece_may_move(tmp_path):
    """An entry of 5e15: its row has u = 3e-18, below the rounding of its margin."""
    case = draw(861927)
    model, _ = answers(case)
    linsep.save(model, tmp_path / "model.linsep")
    write_rows(tmp_path / "rows.npz", case.X, case.y, case.weight)
    assert checker.check(tmp_path / "model.linsep", tmp_path / "rows.npz")


def test_tiny_targets_on_a_line_beside_large_features(tmp_path):
    """v = C w has to hold to 10^-260 while u is of order 1: the equations need as many digits."""
    steps = [1.014, 0.0475, 0.1625, 0.7172, -1.329, 1.4386, 1.7863, -0.4814, 0.8168]
    X = 1e8 + np.array(steps)[:, None]
    t = X[:, 0] * 7.9e-247
    model = linsep.LinearRegressor("absolute", C=1297.0).fit(X, t)
    assert model.certificate_.certified
    linsep.save(model, tmp_path / "model.linsep")
    assert run(tmp_path / "model.linsep", write_rows(tmp_path / "rows.npz", X, t))[0] == 0


def test_the_sum_of_exact_fits(tmp_path):
    """One-vs-rest without a penalty: the objective is 0 to working precision, and nothing can be relative to it."""
    case = draw(2000311)
    model, _ = answers(case)
    assert model.certificate_.certified
    linsep.save(model, tmp_path / "model.linsep")
    write_rows(tmp_path / "rows.npz", case.X, case.y, case.weight)
    assert checker.check(tmp_path / "model.linsep", tmp_path / "rows.npz")


def test_huge_targets_with_an_absolute_penalty(tmp_path):
    """|C v| <= 1 has to hold for dual variables of 1e153."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(11, 2)) + 1000.0
    t = (X @ [1.0, -2.0] + rng.normal(size=11)) * 1e150
    model = linsep.LinearRegressor("squared", C=2.6e5, l1_ratio=1.0).fit(X, t)
    assert model.certificate_.certified
    linsep.save(model, tmp_path / "model.linsep")
    assert run(tmp_path / "model.linsep", write_rows(tmp_path / "rows.npz", X, t))[0] == 0


def test_a_row_is_missed_if_its_loss_exceeds_the_rounding_claimed(tmp_path):
    """The last row holds 5.7e-15 of the objective, the claim states a rounding of 5.4e-15: two roundoffs decide."""
    case = draw(2302328)
    model, _ = answers(case)
    linsep.save(model, tmp_path / "model.linsep")
    write_rows(tmp_path / "rows.npz", case.X, case.y, case.weight)
    assert checker.check(tmp_path / "model.linsep", tmp_path / "rows.npz")
    write_rows(tmp_path / "fewer.npz", case.X, case.y, np.append(case.weight[:-1], 0.0))
    with pytest.raises(checker.Rejected, match="objective"):
        checker.check(tmp_path / "model.linsep", tmp_path / "fewer.npz")
