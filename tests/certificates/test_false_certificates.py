"""Problems on which a certificate once was, or could easily be, false: each must stay true for ever."""

import copy
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hostile import coefficients
from judge import Task, fewest_errors, judge
from lawful import assert_lawful, assert_true, fit_quietly, task_of
from sklearn import datasets
from tampering import alterations

from linsep import (
    LinearClassifier,
    LinearRegressor,
    LinearSVC,
    LinearSVCCV,
    LogisticRegression,
    LogisticRegressionCV,
    ZeroOneClassifier,
    losses,
    path,
    separate,
    tune,
    verify,
)
from linsep.certificates.reductions.loss_factor import loss_factor
from linsep.errors import CertificateError, LinsepError, SeparableData
from linsep.penalties import ElasticNet
from linsep.solution import Explicit

pytestmark = pytest.mark.filterwarnings("ignore::linsep.errors.ConvergenceWarning")

TWO_CLASS = [
    "logistic",
    "hinge",
    "squared_hinge",
    "squared",
    "huberised_hinge",
    "exponential",
    "absolute",
]
STORAGES = {
    "float64": np.ascontiguousarray,
    "float32": lambda X: X.astype(np.float32),
    "int64": lambda X: X.astype(np.int64),
    "fortran": np.asfortranarray,
    "csr": sp.csr_matrix,
}


def slow(*cases):
    """The same cases, for the slow suite."""
    return [pytest.param(case, marks=pytest.mark.slow) for case in cases]


def cancelling_rows(size=2.0**56, n=64):
    """w = (1, -1) separates the small rows; those of size M, alike in both classes, drown them in every sum."""
    y = np.where(np.arange(n) % 2 == 0, 1, -1)
    X = np.column_stack([y, -y]).astype(float)
    for c in (1, -1):
        rows = np.flatnonzero(y == c)
        X[rows[: n // 8]], X[rows[-n // 8 :]] = size, -size
    return X, y


class TestSumsThatLoseSmallRows:
    """sum s sigma u x errs by rounding: what is lost there is no proof that w = 0 is optimal."""

    @pytest.mark.sampled(8)
    @pytest.mark.parametrize("size", [2.0**48, 2.0**54, 2.0**56, 1e18])
    @pytest.mark.parametrize("loss", TWO_CLASS)
    def test_losses(self, loss, size):
        X, y = cancelling_rows(size)
        assert_lawful(fit_quietly(LinearClassifier(loss, C=1.0), X, y), X, y)

    @pytest.mark.parametrize("C", [1e-6, 1e-3, 1.0, 1e3])
    @pytest.mark.parametrize("loss", ["squared", "absolute", "huber"])
    def test_regression(self, loss, C):
        X, y = cancelling_rows()
        assert_lawful(fit_quietly(LinearRegressor(loss, C=C), X, y), X, y)

    @pytest.mark.parametrize("storage", STORAGES)
    @pytest.mark.parametrize("loss", ["logistic", "hinge", "squared_hinge"])
    def test_storages(self, loss, storage):
        X, y = cancelling_rows()
        X = STORAGES[storage](X)
        assert_lawful(fit_quietly(LinearClassifier(loss, C=1.0), X, y), X, y)

    @pytest.mark.parametrize("l1_ratio", [0.5, 1.0])
    def test_absolute_penalty(self, l1_ratio):
        X, y = cancelling_rows()
        model = fit_quietly(LinearClassifier("logistic", C=1.0, l1_ratio=l1_ratio), X, y)
        assert_lawful(model, X, y)

    @pytest.mark.slow
    def test_several_classes(self):
        X, y = cancelling_rows()
        X, y = np.vstack([X, X[:8] * [1, 0.5]]), np.append(y, np.full(8, 2))
        for kind in (LogisticRegression(), LinearSVC(multiclass="crammer_singer")):
            model = fit_quietly(kind, X, y)
            task = replace(task_of(model, X, y), y=np.searchsorted(model.classes_, y))
            assert_true(task, coefficients(model), model.certificate_)

    @pytest.mark.parametrize(
        "model",
        [
            LogisticRegression(),
            LinearSVC(),
            LinearClassifier("squared_hinge"),
            LinearRegressor("squared"),
        ],
        ids=lambda model: type(model).__name__,
    )
    def test_path_and_tune(self, model):
        X, y = cancelling_rows()
        Cs = [1e-3, 1.0, 10.0]
        found = path(model, X, y, Cs)
        trained = fit_quietly(copy.deepcopy(model), X, y)
        task = task_of(trained, X, y)
        for C, w, b, claim in zip(
            Cs, found.coefs, found.intercepts, found.certificates, strict=True
        ):
            assert_true(replace(task, C=C), np.vstack([w.T, b]), claim)
        rows = np.arange(len(y))
        folds = [(rows[rows % 4 > 1], rows[rows % 4 < 2]), (rows[rows % 4 < 2], rows[rows % 4 > 1])]
        tuned = tune(model, X, y, Cs, cv=folds, keep=True)
        for c, C in enumerate(Cs):
            for f, (kept, _) in enumerate(folds):
                W = np.vstack([tuned.coefs[c, f].T, tuned.intercepts[c, f]])
                part = replace(task, C=C, X=X[kept], y=y[kept])
                assert_true(part, W, tuned.certificates[c, f])
        assert_lawful(tuned.best_estimator_, X, y, C=tuned.best_C)

    @pytest.mark.parametrize("kind", [LogisticRegressionCV, LinearSVCCV])
    def test_cross_validated(self, kind):
        X, y = cancelling_rows()
        model = fit_quietly(kind(Cs=[1e-3, 1.0], cv=2), X, y)
        assert_lawful(model, X, y, C=model.C_)


def start_and_end(seed, unit, span, scale, n=200):
    """Two timestamps whose difference, a few last digits, decides the class."""
    rng = np.random.default_rng(seed)
    start = np.floor(unit + rng.uniform(0, span, n))
    end = start + np.round(scale * rng.gamma(2.0, 1.0, n))
    took = end - start
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-(took - 2 * scale) / (0.35 * scale))), 1, -1)
    return np.column_stack([start, end]), y


def attained_by_duration(loss, X, y):
    """The optimum over w = (-e, e): an upper bound on the minimum that float coefficients attain."""
    took = (X[:, 1] - X[:, 0])[:, None]
    narrow = fit_quietly(LinearClassifier(loss, C=math.inf), took, y)
    e, b = float(narrow.coef_[0, 0]), float(narrow.intercept_[0])
    return judge(Task(loss, X, y, math.inf), [-e, e, b], narrow.certificate_)[1]["true"]


class TestDirectionsThatFloatsHardlySee:
    """Without a penalty the objective may fall along directions that rank decisions in floats overlook."""

    @pytest.mark.sampled(6)
    @pytest.mark.parametrize("loss", ["logistic", "exponential"])
    @pytest.mark.parametrize("bits", [44, 47, 49, 50, 51, 52])
    def test_separable_by_the_last_bits(self, loss, bits):
        for seed in range(5):
            rng = np.random.default_rng(seed)
            x, sign = rng.normal(size=20), np.where(rng.random(20) < 0.5, 1, -1)
            X = np.column_stack([x, x + sign * 2.0**-bits])
            if not separate(X, sign):
                continue
            try:
                model = fit_quietly(LinearClassifier(loss, C=math.inf), X, sign)
            except SeparableData:
                continue
            assert not model.certificate_.certified
            assert model.certificate_.dual <= 0.0

    @pytest.mark.sampled(1)
    @pytest.mark.parametrize("loss", ["squared", "huber", "absolute"])
    def test_a_column_that_is_nearly_the_sum_of_two(self, loss):
        for seed in range(4):
            rng = np.random.default_rng(seed)
            a, b = rng.normal(size=50), rng.normal(size=50)
            X = np.column_stack([a, b, a + b])
            t = a - b + 10 * rng.normal(size=50)
            assert_lawful(fit_quietly(LinearRegressor(loss), X, t), X, t)

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("C", [math.inf, 1e6, 1.0])
    @pytest.mark.parametrize(
        "times",
        [(1.7e18, 8.64e13, 2000.0), (1.7e18, 3.6e12, 300.0), (1.7e15, 6e7, 5.0)],
        ids=["ns-day", "ns-hour", "us-minute"],
    )
    @pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
    def test_start_and_end_of_short_durations(self, loss, times, C):
        for seed in range(3):
            X, y = start_and_end(seed, *times)
            try:
                model = fit_quietly(LinearClassifier(loss, C=C), X, y)
            except LinsepError:
                continue
            assert_lawful(model, X, y)
            if math.isinf(C):
                assert model.certificate_.dual <= attained_by_duration(loss, X, y)

    @pytest.mark.slow
    def test_a_column_of_nearly_one_number(self):
        for seed in range(10):
            rng = np.random.default_rng(seed)
            X = rng.normal(size=(30, 8))
            X[:, 3] = 4784518.7689 + 1.4e-7 * rng.normal(size=30)
            t = 1e6 * rng.normal(size=30) * 10.0 ** rng.uniform(0, 3, 30)
            assert_lawful(fit_quietly(LinearRegressor("absolute"), X, t), X, t)

    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("seed", [0, *slow(1, 2)])
    @pytest.mark.parametrize("degree", [4, 10, 20])
    @pytest.mark.parametrize("interval", [(0.0, 1.0), (-1.0, 1.0), (2000.0, 2024.0)])
    def test_polynomials(self, interval, degree, seed):
        rng = np.random.default_rng(seed)
        x = np.linspace(*interval, 40)
        X = x[:, None] ** np.arange(1, degree + 1)
        t = np.sin(6 * (x - interval[0]) / (interval[1] - interval[0])) + 0.1 * rng.normal(size=40)
        for loss in ("squared", "huber"):
            assert_lawful(fit_quietly(LinearRegressor(loss), X, t), X, t)
        y = np.where(t > 0, 1, -1)
        y[::7] *= -1
        try:
            model = fit_quietly(LogisticRegression(C=math.inf), X, y)
        except LinsepError:
            return  # to refuse is honest
        assert_lawful(model, X, y)


class TestSmallTargets:
    """Targets keep all their digits, whatever their unit."""

    @pytest.mark.sampled(12)
    @pytest.mark.parametrize("scale", [1e-6, 1e-9, 1e-12, 1e-15, 1.6e-19, 1e-30, 1e-100, 1e-160])
    @pytest.mark.parametrize("loss", ["squared", "absolute", "huber"])
    @pytest.mark.parametrize("C", [1.0, 1e6, math.inf])
    def test_claims_are_true(self, loss, C, scale):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(100, 3))
        t = scale * (X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=100))
        assert_lawful(fit_quietly(LinearRegressor(loss, C=C), X, t), X, t)

    @pytest.mark.parametrize("scale", [1e-9, 1e-12, 1.6e-19, 1e-30, 1e30])
    @pytest.mark.parametrize("loss", ["squared", "absolute"])
    def test_the_unit_does_not_matter(self, loss, scale):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(100, 3))
        t = scale * (X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=100))
        model = LinearRegressor(loss).fit(X, t)
        assert model.certificate_.certified
        assert model.score(X, t) > 0.98


class TestRowsOnKinks:
    """The loss of a row on the kink is as uncertain as its margin, whatever its dual number."""

    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("size", [1e8, 1e13, 1e16, 1e18])
    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "huberised_hinge"])
    def test_scores_that_are_all_rounding(self, loss, size):
        rng = np.random.default_rng(0)
        y = np.where(np.arange(40) % 2 == 0, 1, -1)
        X = np.column_stack([y * 0.5, y * 0.5, y + 0.6 * rng.normal(size=40)])
        X = np.vstack([X, [[size, -size, -3], [-size, size, 3]] * 4])
        y = np.append(y, [1, -1] * 4)
        assert_lawful(fit_quietly(LinearClassifier(loss, C=1.0), X, y), X, y)

    @pytest.mark.parametrize("seeds", [range(800, 808), *slow(range(808, 860))])
    def test_absolute_loss_with_weights_of_many_sizes(self, seeds):
        for seed in seeds:
            rng = np.random.default_rng(seed)
            n = int(rng.integers(3, 8))
            d = int(rng.integers(n, 2 * n + 4))
            X = rng.integers(-4, 5, size=(n, d)).astype(float)
            t, s = rng.normal(size=n), 10.0 ** rng.uniform(-8, 8, n)
            assert_lawful(fit_quietly(LinearRegressor("absolute", C=1.0), X, t, s), X, t, s)

    @pytest.mark.sampled(1)
    @pytest.mark.parametrize("C", [1.0, 1e4, 1e6, 1e8])
    def test_absolute_loss_that_interpolates(self, C):
        for seed in range(8):
            rng = np.random.default_rng(seed)
            X, t = rng.normal(size=(12, 30)), rng.normal(size=12)
            assert_lawful(fit_quietly(LinearRegressor("absolute", C=C), X, t), X, t)

    @pytest.mark.sampled(1)
    @pytest.mark.parametrize(
        ("n", "d", "C", "mean"),
        [
            (200, 5, 1e8, 100),
            (150, 4, 1e11, 30),
            pytest.param(150, 4, 1e10, 0, marks=pytest.mark.slow),
            pytest.param(150, 4, 1e10, 30, marks=pytest.mark.slow),
            pytest.param(150, 4, 1e11, 1000, marks=pytest.mark.slow),
        ],
    )
    def test_hinge_on_separable_shifted_rows(self, n, d, C, mean):
        for seed in range(2):
            rng = np.random.default_rng(seed)
            X = rng.normal(size=(n, d)) + mean
            z = (X - mean) @ rng.normal(size=d)
            y = np.where(z > 0, 1, -1)
            assert_lawful(fit_quietly(LinearSVC(C=C), X, y), X, y)

    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("C", [100.0, *slow(1e4, 1e6), 1e8])
    @pytest.mark.parametrize(
        "name", ["digits 3 8", "iris 0", "wine 0", *slow("digits 0 1", "digits 4 9")]
    )
    def test_hinge_on_raw_features(self, name, C):
        source, *classes = name.split()
        X, y = getattr(datasets, f"load_{source}")(return_X_y=True)
        classes = [int(c) for c in classes]
        if len(classes) == 2:
            kept = np.isin(y, classes)
            X, y = X[kept], y[kept]
        y = np.where(y == classes[0], 1, -1)
        assert_lawful(fit_quietly(LinearSVC(C=C), X, y), X, y)


class TestExactFit:
    """A gap may be called zero only where nothing is left of the objective."""

    @pytest.mark.slow
    def test_ridge_on_shifted_columns(self):
        for seed in range(100, 150):
            rng = np.random.default_rng(seed)
            n, d = int(rng.choice([4, 8, 15])), int(rng.choice([10, 20, 40]))
            shift, C, unit = (
                10.0 ** rng.uniform(3, 10),
                10.0 ** rng.uniform(0, 12),
                10.0 ** rng.uniform(-2, 8),
            )
            X = rng.normal(size=(n, d)) + shift
            t = unit * (X[:, 0] - X[:, 1] + rng.normal(size=n))
            model = fit_quietly(LinearRegressor("squared", C=C), X, t)
            claim = model.certificate_
            assert_lawful(model, X, t)
            assert not claim.certified or claim.gap <= claim.tol * max(claim.primal, claim.dual)

    def test_wide_ridge(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(50, 200)) + 1e8
        t = rng.normal(size=50)
        model = fit_quietly(LinearRegressor("squared", C=1e8), X, t)
        claim = model.certificate_
        assert not claim.certified or claim.gap <= claim.tol * max(claim.primal, claim.dual)


class TestUnderflowAndOverflow:
    @pytest.mark.parametrize("weight", [5e-324, 1e-320, 1e-310, 1e-300])
    @pytest.mark.parametrize("loss", ["logistic", "hinge", "squared_hinge"])
    def test_subnormal_weights(self, loss, weight):
        rng = np.random.default_rng(0)
        y = np.where(rng.random(30) < 0.5, 1, -1)
        X, s = rng.normal(size=(30, 2)), np.full(30, weight)
        try:
            model = fit_quietly(LinearClassifier(loss), X, y, s)
        except LinsepError:
            return  # to refuse is honest
        assert_lawful(model, X, y, s)

    @pytest.mark.parametrize("C", [1e-308, 1e300, 1e308])
    def test_extreme_strengths(self, C):
        rng = np.random.default_rng(0)
        y = np.where(rng.random(30) < 0.5, 1, -1)
        X = rng.normal(size=(30, 2))
        for loss in ("logistic", "hinge"):
            try:
                model = fit_quietly(LinearClassifier(loss, C=C), X, y)
            except LinsepError:
                continue
            claim = model.certificate_
            assert not claim.certified or math.isfinite(claim.primal)
            assert_lawful(model, X, y)

    @pytest.mark.parametrize("scale", [1e-160, 1e-200, 1e-310])
    def test_features_whose_squares_underflow(self, scale):
        rng = np.random.default_rng(0)
        y = np.where(rng.random(30) < 0.5, 1, -1)
        X = rng.normal(size=(30, 2)) * scale
        for loss in ("logistic", "hinge", "squared_hinge"):
            assert_lawful(fit_quietly(LinearClassifier(loss), X, y), X, y)


class TestFewestErrors:
    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("weight", [1e-12, 1e-10, 1e-3, 1.0, 1e12])
    def test_the_size_of_the_weights_does_not_matter(self, weight):
        for seed in range(6):
            rng = np.random.default_rng(seed)
            X = rng.normal(size=(12, 2))
            y = np.where(X[:, 0] + 0.7 * rng.normal(size=12) > 0, 1, -1)
            s = np.full(12, weight)
            model = fit_quietly(ZeroOneClassifier(), X, y, s)
            least = float(fewest_errors(X, y, s))
            assert model.proven_
            assert model.errors_ == pytest.approx(least, rel=1e-9)
            assert verify(model, X, y, s).errors == model.errors_

    def test_reversed_classes_are_refused(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(12, 2))
        y = np.where(X[:, 0] + 0.7 * rng.normal(size=12) > 0, 1, 0)
        model = ZeroOneClassifier().fit(X, y)
        model.classes_ = model.classes_[::-1].copy()
        with pytest.raises(CertificateError):
            verify(model, X, y)


def small_models():
    """One certified model of each kind, with its data (labels +-1 or targets)."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(14, 2))
    y = np.where(X @ [1.0, -1.0] + 1.2 * rng.normal(size=14) > 0, 1, -1)
    t = X @ [1.0, -2.0] + rng.normal(size=14)
    made = {f"{loss}": (LinearClassifier(loss), X, y) for loss in TWO_CLASS}
    made |= {
        f"regression-{loss}": (LinearRegressor(loss, C=1.0), X, t)
        for loss in ("squared", "absolute", "huber")
    }
    made["unpenalised"] = LogisticRegression(C=math.inf), X, y
    made["least-squares"] = LinearRegressor(), X, t
    made["sparse"] = LogisticRegression(l1_ratio=1.0), X, y
    return made


#: Those of the fast suite: every kind of domain, of penalty and of target.
KINDS = ("logistic", "hinge", "regression-squared", "regression-absolute", "unpenalised", "sparse")


class TestTampering:
    """verify trusts nothing that the model says about itself."""

    @pytest.mark.sampled(1)
    @pytest.mark.parametrize(
        "kind", [*KINDS, *slow(*(k for k in small_models() if k not in KINDS))]
    )
    def test_alterations_are_refused(self, kind):
        estimator, X, y = small_models()[kind]
        model = estimator.fit(X, y)
        assert model.certificate_.certified
        verify(model, X, y)
        refused, accepted = 0, []
        for altered in alterations(model, X, y, None):
            try:
                verify(altered.model, altered.X, altered.y, altered.weight)
            except CertificateError:
                refused += 1
            except LinsepError as error:  # any refusal will do, but say so
                assert "fit" in str(error) or "classes" in str(error), altered.name
            else:
                if altered.certain or self.is_false(altered):
                    accepted.append(altered.name)
        assert refused >= 30 and not accepted

    @staticmethod
    def is_false(altered):
        """Whether the judge refutes the altered claim."""
        y = altered.y
        if hasattr(altered.model, "classes_"):
            y = np.where(y == altered.model.classes_[1], 1, -1)
        task = task_of(altered.model, altered.X, y, altered.weight)
        return bool(judge(task, coefficients(altered.model), altered.model.certificate_)[0])


class TestExactFits:
    """An objective that is small beside that of the zero model is zero only where rounding hides it."""

    X = np.random.default_rng(0).normal(size=(30, 3))
    t = 1e6 + X @ [1.0, 2.0, 3.0] + 1e-3 * np.random.default_rng(1).normal(size=30)

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("exact", [False, True])
    @pytest.mark.parametrize("loss", ["squared", "absolute", "huber"])
    def test_small_residuals_far_from_zero_need_a_proof(self, loss, exact):
        model = LinearRegressor(loss).fit(self.X, self.t)
        assert verify(model, self.X, self.t, exact=exact).relative_gap > 0.0
        fit = model._fits[0]
        worse = fit.W + 1e-3
        value = float(fit.recipe.loss.value(self.X @ worse[:-1, 0] + worse[-1, 0] - self.t).sum())
        claim = replace(fit.certificate, primal=value, dual=0.0, gap=value, relative_gap=0.0)
        claim = replace(claim, kind="exact", rounding=0.0, coef_error=math.inf)
        forged = copy.deepcopy(model)
        forged.coef_, forged.intercept_ = worse[:-1, 0].copy(), float(worse[-1, 0])
        forged._fits = [replace(fit, W=worse, certificate=claim)]
        forged.certificate_ = claim
        with pytest.raises(CertificateError):
            verify(forged, self.X, self.t, exact=exact)


@pytest.mark.parametrize(("C", "penalty_factor"), [(1.0, None), (1.0, [1e-3]), (math.inf, None)])
@pytest.mark.parametrize("name", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_targets_inside_the_dead_zone_leave_nothing_to_fit(name, C, penalty_factor):
    rng = np.random.default_rng(0)
    X, t = rng.normal(size=(20, 1)), rng.uniform(-3.0, 3.0, 20)
    loss = replace(losses.get(name), epsilon=float(np.abs(t).max()))
    model = LinearRegressor(loss, C=C, penalty_factor=penalty_factor, fit_intercept=False)
    model.fit(X, t)
    assert model.certificate_.certified and model.certificate_.primal == 0.0
    for exact in (False, True):
        assert verify(model, X, t, exact=exact).certified


@pytest.mark.parametrize("seed", range(3))
def test_an_exact_proof_of_a_scaled_loss_is_rounded_with_its_factor(seed):
    """c C is rounded, so a certificate that is exact for c C is not exact for the loss that was asked for."""
    rng = np.random.default_rng(seed)
    stamp = 1.7e18 + rng.integers(0, 10**9, 31) * 1e6
    X = np.column_stack([stamp, stamp + rng.integers(0, 10**6, 31) * 256.0, rng.normal(size=31)])
    y, weight = rng.random(31) < 0.5, 10.0 ** rng.uniform(-12, 12, 31)
    loss = losses.Scaled(losses.Squared(), 3e4)
    model = LinearClassifier(loss, C=0.0017413817873696256, l1_ratio=0.5, tol=1e-3).fit(
        X, y, weight
    )
    assert model.certificate_.certified
    for exact in (False, True):
        assert verify(model, X, y, weight, exact=exact).certified


def test_the_digits_of_a_dual_point_survive_the_factor_of_a_scaled_loss():
    """u + rest of the plain loss, stored as the dual point of c times that loss, and read again."""
    rng = np.random.default_rng(0)
    u = rng.uniform(-1.0, 1.0, 50)
    stored = Explicit(u, u * 2.0**-54 * rng.uniform(-1.0, 1.0, 50))
    factor = loss_factor(losses.Scaled(losses.Absolute(), 0.1), ElasticNet(1.0, 0.0))
    again = factor._plain_dual(factor.user_dual(stored))
    apart = [
        Fraction(a) + Fraction(b) - Fraction(c) - Fraction(d)
        for a, b, c, d in zip(stored.u, stored.rest, again.u, again.rest, strict=True)
    ]
    assert max(map(abs, apart)) < 2.0**-100


@pytest.mark.sampled(3)
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("loss", ["squared_epsilon_insensitive", "huber", "absolute"])
def test_a_lower_bound_above_the_minimum_is_refused_however_loose_tol_is(loss, exact):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(22, 3))
    t = X @ rng.normal(size=3) + rng.normal(size=22)
    least = LinearRegressor(loss, C=1.0, tol=1e-12).fit(X, t).certificate_.primal
    model = LinearRegressor(loss, C=1.0, tol=0.05).fit(X, t)
    fit = model._fits[0]
    W = 1.001 * fit.W  # not quite optimal
    model.coef_, model.intercept_ = W[:-1, 0].copy(), float(W[-1, 0])
    w = model.coef_
    primal = 0.5 * w @ w + float(fit.recipe.loss.value(X @ w + W[-1, 0] - t).sum())
    dual = least + 0.5 * (primal - least)
    gap = (primal - dual) * (1.0 + 1e-12) + 1e-12 * primal
    claim = replace(
        fit.certificate,
        **{"primal": primal, "dual": dual, "gap": gap, "relative_gap": gap / primal},
        **{"coef_error": math.sqrt(2.0 * gap), "rounding": 1e-12 * primal, "kind": "dual"},
    )
    model._fits, model.certificate_ = [replace(fit, W=W, certificate=claim)], claim
    with pytest.raises(CertificateError, match="smaller than the one that can be proven"):
        verify(model, X, t, exact=exact)
