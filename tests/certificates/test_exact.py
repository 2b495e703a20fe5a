"""Exact arithmetic: the judge of the rounding allowance, and a proof in its own right."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from small_problems import part_of

import linsep
from linsep import losses
from linsep.certificates import (
    closing,
    closing_sums_numpy,
    exact_certificate,
    from_sums,
    parts,
)
from linsep.certificates.exact.certificate import ANY, Goal
from linsep.errors import CertificateError, Refused
from linsep.exact import rational
from linsep.exact.dyadic import Dyadic, DyadicRows, nearest
from linsep.losses import Absolute, Hinge, Huber, HuberisedHinge, Multinomial, Squared
from linsep.penalties import ElasticNet
from linsep.solution import Explicit, Linearised

RATIONAL = [
    losses.get(name) for name in losses.NAMES if name not in ("zero_one", "logistic", "exponential")
]
RATIONAL += [HuberisedHinge(0.3), Huber(0.1)]
IDS = [f"{loss.name}{''.join(f'-{p:g}' for p in loss.params)}" for loss in RATIONAL]

floats = st.floats(allow_nan=False, allow_infinity=False)


class TestDyadic:
    @given(a=st.lists(floats, min_size=1, max_size=4), b=floats)
    def test_is_exact(self, a, b):
        x, y = Dyadic.of(a), Dyadic.of(b)
        fractions, other = [Fraction(v) for v in a], Fraction(b)
        assert x.fractions() == fractions
        assert (x + y).fractions() == [f + other for f in fractions]
        assert (x - y).fractions() == [f - other for f in fractions]
        assert (x * y).fractions() == [f * other for f in fractions]
        assert abs(x).fractions() == [abs(f) for f in fractions]
        assert x.positive().fractions() == [max(f, Fraction(0)) for f in fractions]
        assert x.at_most(y).fractions() == [min(f, other) for f in fractions]
        assert x.halve().fractions() == [f / 2 for f in fractions]
        assert x.sum() == sum(fractions)

    @given(
        rows=st.lists(st.lists(floats, min_size=3, max_size=3), min_size=1, max_size=3),
        w=st.lists(floats, min_size=3, max_size=3),
    )
    def test_products_with_rows(self, rows, w):
        matrix = DyadicRows.of(np.array(rows))
        fractions = [[Fraction(v) for v in row] for row in rows]
        w_exact = [Fraction(v) for v in w]
        products = [sum(a * b for a, b in zip(row, w_exact, strict=True)) for row in fractions]
        assert matrix.dot(Dyadic.of(w)).fractions() == products
        ones = Dyadic.of(np.arange(1.0, len(rows) + 1))
        sums = [sum((i + 1) * row[j] for i, row in enumerate(fractions)) for j in range(3)]
        assert matrix.transposed_dot(ones).fractions() == sums

    def test_integers_stay_small(self):
        """Features of very different size do not blow each other up."""
        matrix = DyadicRows.of(np.array([[1e300, 1e-300, 3.0], [2e300, 5e-300, 4.0]]))
        assert max(abs(int(x)) for x in matrix.num.ravel()).bit_length() < 64


def exact_value(loss, m):
    """The loss at a rational margin, written out once more."""
    r = 1 - m
    width = Fraction(getattr(loss, "width", 1.0))
    beyond = max(abs(r) - Fraction(getattr(loss, "epsilon", 0.0)), 0)
    bent = {
        "squared": r * r,
        "squared_hinge": max(r, 0) ** 2,
        "hinge": max(r, 0),
        "absolute": abs(r),
        "perceptron": max(-m, 0),
        "pinball": abs(r) / 2,
        "epsilon_insensitive": beyond,
        "squared_epsilon_insensitive": beyond * beyond,
        "huber": r * r / 2 if abs(r) <= width else width * (abs(r) - width / 2),
        "huberised_hinge": 0 if r <= 0 else r * r / (2 * width) if r <= width else r - width / 2,
    }
    return Fraction(bent[loss.name])


def exact_conjugate(loss, u):
    width = Fraction(getattr(loss, "width", 1.0))
    zone = Fraction(getattr(loss, "epsilon", 0.0)) * abs(u) - u
    return {
        "pinball": -u,
        "epsilon_insensitive": zone,
        "squared_epsilon_insensitive": u * u / 4 + zone,
        "squared": u * u / 4 - u,
        "squared_hinge": u * u / 4 - u,
        "hinge": -u,
        "absolute": -u,
        "perceptron": Fraction(0),
        "huber": u * u / 2 - u,
        "huberised_hinge": width * u * u / 2 - u,
    }[loss.name]


def by_fractions(loss, X, vectors, W, C, fit_intercept):
    """P and D of a small problem, one Fraction at a time."""
    rows = [[Fraction(x) for x in row] for row in X.tolist()]
    *w, b = (Fraction(x) for x in W[:, 0].tolist())
    vectors = [[Fraction(x) for x in a.tolist()] for a in vectors]
    C = Fraction(C)
    P = sum(x * x for x in w) / 2
    sides = {1: [Fraction(0)] * (2 + len(w)), -1: [Fraction(0)] * (2 + len(w))}
    for row, sign, o, s, dual in zip(rows, *vectors, strict=True):
        m = sign * (sum(x * y for x, y in zip(row, w, strict=True)) + b) + o
        P += C * s * exact_value(loss, m)
        side = sides[1 if sign * dual >= 0 else -1]
        side[0] += s * (exact_conjugate(loss, dual) + dual * o)
        for j, x in enumerate([Fraction(1), *row]):
            side[1 + j] += s * sign * dual * x
    light = min(sides[1][1], -sides[-1][1])
    D, v = Fraction(0), [Fraction(0)] * len(w)
    for direction, (conj, mass, *sums) in sides.items():
        kappa = light / (direction * mass) if fit_intercept and mass else Fraction(1)
        D -= C * kappa * conj
        v = [a + kappa * x for a, x in zip(v, sums, strict=True)]
    square = C * C * sum(x * x for x in v)
    # of all multiples t u with 0 <= t <= 1 the best: t D - t^2 |v|^2 / 2
    return P, max(D * D / (2 * square) if 0 < D < square else D - square / 2, Fraction(0))


def awkward(seed, loss, n=7, d=3):
    """Few rows with features, weights and coefficients of very different size."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-6, 7, d)
    W = (rng.normal(size=d + 1) / np.append(np.abs(X).max(axis=0), 1.0))[:, None]
    sigma = np.ones(n) if loss.regression else rng.choice([-1.0, 1.0], n)
    offset = rng.normal(size=n) * 10.0 ** rng.integers(-3, 4) if loss.regression else np.zeros(n)
    weight = 10.0 ** rng.uniform(-3, 3, n)
    low, high = np.clip(loss.domain, -2.0, 2.0)
    return X, sigma, offset, weight, W, rng.uniform(low, high, n)


def consistent(seed, loss, C, n=15, d=3):
    """The same with w = C v, as at an optimum: rounding is then nearly all that could hide in the gap."""
    X, sigma, offset, weight, W, u = awkward(seed, loss, n, d)
    X, weight = X / np.abs(X).max(axis=0), weight / weight.sum()
    W[:-1, 0] = C * X.T @ (weight * sigma * u)
    return X, sigma, offset, weight, W, u


@pytest.mark.sampled(6)
@pytest.mark.parametrize("loss", RATIONAL, ids=IDS)
@pytest.mark.parametrize("rows", ["awkward", "consistent"])
@given(
    seed=st.integers(0, 100_000), fit_intercept=st.booleans(), C=st.sampled_from([1e-3, 0.7, 50.0])
)
def test_allowance_covers_the_rounding(loss, rows, seed, fit_intercept, C):
    """The float64 certificate against the truth, digit for digit."""
    made = awkward(seed, loss) if rows == "awkward" else consistent(seed, loss, C)
    X, sigma, offset, weight, W, u = made
    W[-1] *= fit_intercept
    P, D = by_fractions(loss, X, (sigma, offset, weight, u), W, C, fit_intercept)
    penalty = ElasticNet(C)
    sums = closing_sums_numpy(loss, X, sigma, offset, weight, W, Explicit(u))
    found = from_sums(
        sums,
        W[:-1, 0],
        penalty,
        fit_intercept=fit_intercept,
        tol=1e-6,
        rows_per_sum=parts.longest_sum(X),
    )
    assert Fraction(found.gap) >= P - D
    assert Fraction(found.dual) <= D
    assert abs(Fraction(found.primal) - P) <= Fraction(found.rounding)
    proven = prove_exactly(
        *(loss, X, sigma, offset, weight, W, Explicit(u)),
        penalty=penalty,
        fit_intercept=fit_intercept,
        tol=1.0,  # any bound will do, so that no other dual point is looked for
    )
    assert proven.primal == float(P)
    assert 0 <= Fraction(proven.gap) - (P - D) <= Fraction(proven.gap) * Fraction(2) ** -50
    assert 0 <= D - Fraction(proven.dual) <= D * Fraction(2) ** -50
    assert proven.certified
    assert proven.rounding == 0.0


def prove_exactly(*rows, **settings):
    return exact_certificate(part_of(*rows, **settings))


def test_repair_covers_masses_that_err():
    """Masses wrong by all that summation allows: the honest bound is lower, by no more than the rounding."""
    rng = np.random.default_rng(0)
    chain = 1e9 * closing.ROUNDOFF
    for _ in range(50):
        conj = -rng.uniform(100.0, 200.0, size=2)
        sides = rng.normal(size=(2, 3))
        sums = closing.BoundedSums(
            *(300.0, tuple(conj), (1.0, 1.0), tuple(sides)), *(0.0, 0.0, 0.0, 0.0), mass_share=chain
        )
        _, bound, rounding = closing._values(sums, np.zeros(3), lam=1.0, l1=0.0, fit_intercept=True)
        for heavier in (0, 1):  # its true mass is (1 + chain) / (1 - chain) of the other's
            factors = np.ones(2)
            factors[heavier] = (1 - chain) / (1 + chain)
            v = factors @ sides
            assert bound - (-factors @ conj - 0.5 * v @ v) <= rounding
        assert rounding < 1000 * chain * (1 + (sides**2).sum())


def test_allowance_is_not_absurdly_large():
    """Well scaled rows: the allowance stays near n u, so that even tol = 1e-12 can be certified."""
    X, y = overlapping(300, 5)
    W, dual = least_squares(X, y, 1.0)
    sums = closing_sums_numpy(Squared(), X, y, None, None, W, dual)
    settings = {"fit_intercept": True, "tol": 1e-12, "rows_per_sum": 301}
    found = from_sums(sums, W[:-1, 0], ElasticNet(), **settings)
    assert found.rounding <= 2000 * 2.0**-53 * found.primal
    assert found.certified


def overlapping(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)


def least_squares(X, y, C):
    """Minimiser of 1/2 |w|^2 + C sum (1 - m)^2 and the slopes there as a dual point."""
    A = np.column_stack([X, np.ones(len(X))])
    ridge = np.diag(np.append(np.ones(X.shape[1]), 0.0))
    theta = np.linalg.solve(2 * C * A.T @ A + ridge, 2 * C * A.T @ y)
    return theta[:, None], Linearised(theta[:, None], np.zeros((len(theta), 1)))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("shape", [(200, 8), pytest.param((3000, 30), marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, lambda X: X.astype(np.float32)])
def test_many_rows_are_proven(kind, shape):
    X, y = overlapping(*shape)
    X = np.round(X * 64) / 64
    W, dual = least_squares(X, y, 0.5)
    proven = prove_exactly(
        *(Squared(), kind(X), y, None, None, W, dual),
        penalty=ElasticNet(0.5),
        fit_intercept=True,
        tol=1e-12,
    )
    assert proven.certified
    assert proven.kind == "exact"
    assert 0 < proven.gap < 1e-9
    wrong = prove_exactly(
        *(Squared(), kind(X), y, None, None, W * 1.001, dual),
        penalty=ElasticNet(0.5),
        fit_intercept=True,
        tol=1e-12,
    )
    assert not wrong.certified


def test_chunks_do_not_matter(tuned):
    X, y = overlapping(50, 4)
    W, _ = least_squares(X, y, 2.0)
    args = Squared(), X, y, None, np.linspace(0.1, 2, 50), W, Explicit(np.full(50, 0.3))
    settings = {"penalty": ElasticNet(2.0, 0.25), "fit_intercept": True, "tol": 1.0}
    whole = prove_exactly(*args, **settings)
    tuned(exact_entries=12)
    assert prove_exactly(*args, **settings) == whole
    assert prove_exactly(args[0], sp.csr_matrix(X), *args[2:], **settings) == whole


@pytest.mark.parametrize("l1_ratio", [0.0, 0.4, 1.0])
def test_elastic_net_agrees_with_float64(l1_ratio):
    X, y = overlapping(60, 3)
    W, _ = least_squares(X, y, 1.0)
    u = np.random.default_rng(0).uniform(0, 1, 60)
    penalty = ElasticNet(0.05, l1_ratio)
    proven = prove_exactly(
        *(Hinge(), X, y, None, None, W, Explicit(u)), penalty=penalty, fit_intercept=True, tol=1.0
    )
    sums = closing_sums_numpy(Hinge(), X, y, None, None, W, Explicit(u))
    found = from_sums(
        sums,
        W[:-1, 0],
        penalty,
        fit_intercept=True,
        tol=1e-6,
        rows_per_sum=61,
    )
    assert found.primal == pytest.approx(proven.primal, rel=1e-14)
    assert found.dual == pytest.approx(proven.dual, rel=1e-12)
    assert found.gap >= proven.gap
    assert (proven.coef_error == math.inf) == (l1_ratio == 1.0)


def test_support_vector_machine_by_hand():
    """Two points, w = 1, b = 0, alpha = 1/2 each: the gap is zero, not merely small."""
    proven = prove_exactly(
        Hinge(),
        np.array([[1.0], [-1.0]]),
        np.array([1.0, -1.0]),
        None,
        None,
        np.array([[1.0], [0.0]]),
        Explicit(np.array([0.5, 0.5])),
        penalty=ElasticNet(1.0),
        fit_intercept=True,
        tol=0.0,
    )
    assert (proven.primal, proven.dual, proven.gap) == (0.5, 0.5, 0.0)
    assert proven.certified
    assert proven.coef_error == 0.0


class TestRefusals:
    def certify(self, loss):
        return prove_exactly(
            *(loss, np.zeros((1, 1)), np.ones(1), None, None),
            *(np.zeros((2, getattr(loss, "k", 1))), Explicit(np.zeros((1, getattr(loss, "k", 1))))),
            penalty=ElasticNet(),
            fit_intercept=True,
            tol=1e-6,
            labels=np.zeros(1, dtype=int),
        )

    @pytest.mark.parametrize("loss", [losses.Logistic(), losses.Exponential(), Multinomial(3)])
    def test_values_that_are_no_fractions_need_flint(self, loss, tuned):
        tuned(has_flint=False)
        with pytest.raises(Refused, match=r"pip install python-flint"):
            self.certify(loss)

    def test_a_loss_of_the_user_has_no_exact_text(self):
        class Quartic(Squared):
            name = "quartic"
            conjugate_quadratic = None

        with pytest.raises(Refused, match="not 'quartic'"):
            self.certify(Quartic())


def test_a_loss_of_the_user_that_declares_its_conjugate_is_proven_exactly():
    """|r| counts twice above the target: u in [-1, 2], rounded by a parabola of q = 3/8."""

    @dataclass(frozen=True)
    class Tilted(losses.Loss):
        name = "tilted"
        domain = (-1.0, 2.0)
        conjugate_quadratic = 0.375
        curvature_bound = 1 / 0.75

        def _u(self, m):
            return np.clip((1.0 - m) / 0.75, -1.0, 2.0)

        def value(self, m):
            return self._u(m) * (1.0 - m) - 0.375 * self._u(m) ** 2

        def slope(self, m):
            return -self._u(m)

        def curvature(self, m):
            return np.where((m >= -0.5) & (m <= 1.75), 1 / 0.75, 0.0)

        def conjugate(self, q):
            return np.where((q >= -2.0) & (q <= 1.0), 0.375 * q * q + q, np.inf)

    rng = np.random.default_rng(3)
    X = rng.normal(size=(50, 3))
    y = X[:, 0] + rng.logistic(size=50) > 0
    model = linsep.LinearClassifier(Tilted(), C=0.7, tol=1e-9).fit(X, y)
    found = linsep.verify(model, X, y, exact=True)
    assert found.certified and found.kind == "exact"
    assert found.primal == pytest.approx(model.certificate_.primal, rel=1e-13)


class TestWithoutPenalty:
    def certify(self, loss, X, target, theta, u):
        return prove_exactly(
            *(loss, X, np.ones(len(X)), 1 - target, None, theta[:, None], Explicit(u)),
            penalty=ElasticNet(math.inf),
            fit_intercept=True,
            tol=1e-6,
        )

    def test_median_is_proven(self):
        """min_b sum |t - b| over 0, 1, 5: the median 1, total 5, with residual signs as dual point."""
        found = self.certify(
            Absolute(),
            np.zeros((3, 1)),
            np.array([0.0, 1.0, 5.0]),
            np.array([0.0, 1.0]),
            np.array([-1.0, 0.0, 1.0]),
        )
        assert (found.primal, found.dual, found.certified) == (5.0, 5.0, True)
        assert found.coef_error == math.inf

    def test_exact_fit_is_proven(self):
        X = np.array([[1.0], [2.0], [3.0]])
        found = self.certify(
            Squared(), X, np.array([3.0, 5.0, 7.0]), np.array([2.0, 1.0]), np.full(3, 0.3)
        )
        assert (found.primal, found.gap, found.certified) == (0.0, 0.0, True)

    @pytest.mark.parametrize("loss", [Squared(), Absolute(), Huber()], ids=lambda loss: loss.name)
    def test_an_answer_that_is_not_optimal_is_not_proven(self, loss):
        X, _ = overlapping(10, 1)
        found = self.certify(loss, X, X[:, 0] ** 2, np.array([0.1, 0.2]), np.linspace(-1, 1, 10))
        assert not found.certified
        assert 0 <= found.dual < found.primal


def rows_of(kind, seed, n=40, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    scores = X @ rng.normal(size=(d, 3)) + 2 * rng.normal(size=(n, 3))
    target = {"two": scores[:, 0] > 0, "three": scores.argmax(axis=1), "number": scores[:, 0]}[kind]
    return X, target * 1.0 if kind == "number" else target.astype(int), rng.uniform(0.1, 3, n)


def estimator(name, **settings):
    if name == "multinomial":
        return linsep.LogisticRegression(**settings)
    if name == "crammer_singer":
        return linsep.LinearSVC(multiclass="crammer_singer", **settings)
    if name.startswith("residual "):
        return linsep.LinearRegressor(name.removeprefix("residual "), **settings)
    loss = losses.LOGISTIC_BASE_2 if name == "logistic, base 2" else name
    return linsep.LinearClassifier(loss, **settings)


CLASSIFIED = "logistic,exponential,squared_hinge,huberised_hinge,squared,hinge,absolute".split(",")
CASES = [(name, "two") for name in [*CLASSIFIED, "logistic, base 2"]]
CASES += [(f"residual {name}", "number") for name in ("squared", "absolute", "huber")]
CASES += [("multinomial", "three"), ("crammer_singer", "three"), ("hinge", "three")]


def at(*Cs):
    """The cases at every C that they take: those of hard margins are in test_hard_margin.py."""
    hard = ("crammer_singer", "hinge")
    return [(*case, C) for case in CASES for C in Cs if C < math.inf or case[0] not in hard]


class TestModels:
    """Every model that is certified is proven anew without rounding, and no other is."""

    @pytest.mark.sampled(25)
    @pytest.mark.parametrize(("name", "kind", "C"), at(0.01, 10.0, 1e6, math.inf))
    def test_are_proven(self, name, kind, C):
        ratios = [0.0]
        if C <= 10.0 and name not in ("hinge", "absolute", "residual absolute", "crammer_singer"):
            ratios += [0.5, 1.0]
        for at, l1_ratio in enumerate(ratios):
            X, target, weight = rows_of(kind, 10 * at)
            settings = {} if name == "crammer_singer" else {"l1_ratio": l1_ratio}
            for fit_intercept, store, s in (
                (True, np.asarray, None),
                (False, sp.csr_array, weight),
            ):
                model = estimator(name, C=C, fit_intercept=fit_intercept, **settings)
                model.fit(store(X), target, sample_weight=s)
                assert model.certificate_.certified
                found = linsep.verify(model, store(X), target, sample_weight=s, exact=True)
                assert found.certified
                assert found.kind == "exact"
                assert found.dual <= model.certificate_.primal + model.certificate_.rounding

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize(("name", "kind", "C"), at(1.0, math.inf))
    def test_that_were_altered_are_not(self, name, kind, C):
        X, target, _ = rows_of(kind, 3, n=25)
        model = estimator(name, C=C).fit(X, target)
        coef = model.coef_
        model.coef_ = coef * 1.01
        with pytest.raises(CertificateError):
            linsep.verify(model, X, target, exact=True)
        model.coef_ = coef
        wrong = target.copy()
        wrong[0] = wrong[0] + 1 if kind == "number" else (wrong[0] + 1) % (2 + (kind == "three"))
        with pytest.raises(CertificateError):
            linsep.verify(model, X, wrong, exact=True)
        if C < math.inf:
            recipe = model._fits[0].recipe
            model._fits[0] = replace(
                model._fits[0], recipe=replace(recipe, penalty=ElasticNet(2.0))
            )
            with pytest.raises(CertificateError):
                linsep.verify(model, X, target, exact=True)

    @pytest.mark.parametrize("loss", ["squared", "absolute", "huber"])
    def test_an_exact_fit_is_an_answer(self, loss):
        """As many coefficients as rows: the objective is rounding alone, and 0 is the lower bound."""
        X, target, _ = rows_of("number", 5, n=4, d=6)
        model = linsep.LinearRegressor(loss).fit(X, target)
        found = linsep.verify(model, X, target, exact=True)
        assert found.certified
        assert found.primal <= 1e-12

    @pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
    def test_columns_that_depend_on_each_other(self, loss):
        """Indicators of all categories add up to the intercept: v = 0 holds in all columns or in none."""
        X, target, _ = rows_of("two", 7)
        X = np.column_stack([X[:, :1], np.eye(3)[np.arange(len(X)) % 3]])
        model = linsep.LinearClassifier(loss, C=math.inf).fit(X, target)
        assert linsep.verify(model, X, target, exact=True).certified

    def test_a_direction_that_floats_do_not_see_is_not_forgiven(self):
        """The third column is the sum of the others but for its rounding: other coefficients reach less."""
        rng = np.random.default_rng(1)
        a, b = rng.normal(size=(2, 30))
        X, t = np.column_stack([a, b, a + b]), rng.normal(size=30)
        theta = np.linalg.lstsq(np.column_stack([X, np.ones(30)]), t, rcond=1e-10)[0]
        found = prove_exactly(
            *(Squared(), X, np.ones(30), 1 - t, None, theta[:, None]),
            Linearised(theta[:, None], np.zeros((4, 1))),
            penalty=ElasticNet(math.inf),
            fit_intercept=True,
            tol=1e-6,
        )
        assert not found.certified


def test_interpolation_needs_no_search_for_a_dual_point(monkeypatch):
    """0 is a lower bound of every loss; rational systems of 900 features would take seconds."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((8, 30))
    t = rng.standard_normal(8)
    model = linsep.LinearRegressor().fit(X, t)
    monkeypatch.setattr("linsep.certificates.exact.penalty.sums_with_zero_v", None)
    found = linsep.verify(model, X, t, exact=True)
    assert found.certified and found.dual == 0.0 < found.primal < 1e-20


class TestSolveRational:
    @settings(max_examples=15)
    @given(
        st.lists(
            st.lists(st.fractions(max_denominator=50), min_size=5, max_size=5),
            min_size=4,
            max_size=4,
        )
    )
    def test_both_ways_agree(self, rows):
        whole = [rational.common_denominator(row)[0] for row in rows]
        found = rational._by_elimination(whole)
        assert found == rational._by_flint(whole)
        if found is not None:
            for row in rows:
                assert sum(a * x for a, x in zip(row, found, strict=False)) == row[-1]


@pytest.mark.parametrize("sign", [1, -1])
def test_numbers_beyond_the_floats_are_infinite(sign):
    assert nearest(sign * Fraction(10) ** 400) == sign * math.inf


@pytest.mark.parametrize(
    ("loss", "C"), [("squared", 1e-2), ("logistic", 1e-10), ("squared_hinge", 1e-2)]
)
def test_powers_of_years_to_the_twelfth_are_proven(loss, C):
    # Columns from 2e3 to 5e39: in float64 one step towards v = lam w moves v away from it by rounding alone.
    rng = np.random.default_rng(3)
    X = rng.uniform(2000.0, 2024.0, 40)[:, None] ** np.arange(1, 13)
    y = (np.arange(40) % 2).astype(float)
    model = linsep.LinearClassifier(loss=loss, C=C).fit(X, y)
    assert model.certificate_.certified
    assert linsep.verify(model, X, y, exact=True).relative_gap <= 1e-6


def test_weights_over_many_decades_do_not_hide_independent_columns():
    rng = np.random.default_rng(3)
    X, t = np.eye(5)[rng.integers(0, 5, 15)], rng.normal(size=15)
    t[0] = 1e8
    weight = 10.0 ** rng.uniform(-12, 12, 15)
    model = linsep.LinearRegressor(losses.Huber(1e8)).fit(X, t, weight)
    assert model.certificate_.certified
    assert linsep.verify(model, X, t, weight, exact=True).certified


def test_tiny_dual_variables_beside_an_unpenalised_feature():
    rng = np.random.default_rng(0)
    X = 100.0 * rng.random((28, 1)) ** np.arange(1, 4)
    y = rng.random(28) < 0.5
    X, y = np.vstack([X, [[1e4, 1e4, 1e4]]]), np.append(y, True)
    model = linsep.LinearClassifier("logistic", C=30.0, penalty_factor=[1.0, 0.0, 1.0]).fit(X, y)
    assert model.certificate_.certified
    assert linsep.verify(model, X, y, exact=True).certified


def test_independent_columns_are_told_exactly():
    X = [[1, 2, 0, 3], [0, 0, 1, 1], [2, 4, 0, 6]]
    gram = [[sum(r[a] * r[b] for r in X) for b in range(4)] for a in range(4)]
    assert rational.independent_columns(gram) == [0, 2]


@pytest.mark.parametrize("exponent", [-3000, 3000])
def test_goals_of_targets_beyond_the_floats(exponent):
    large = Fraction(2) ** 2000
    assert ANY.times_power_of_two(exponent) == ANY
    found = Goal(large, large).times_power_of_two(exponent)
    assert found == (large * Fraction(2) ** exponent,) * 2


def test_a_model_of_astronomical_objective_is_rejected_in_little_memory():
    # exp(1e16) has as many binary digits before the point as a rational number would need bytes.
    pytest.importorskip("flint")
    X, y = np.array([[1e16], [-1e16], [1.0], [-1.0]]), np.array([1, 0, 1, 0])
    model = linsep.LinearClassifier(loss="exponential", C=1e-3).fit(X / 1e16, y)
    with pytest.raises(Refused, match="beyond what ball arithmetic"):
        linsep.verify(model, -X, y, exact=True)
    with pytest.raises(CertificateError):
        linsep.verify(model, -X, y)


def test_a_row_at_the_end_of_a_dead_zone_balances_the_others():
    """Two heavy rows lie on the tube, one of them with u = 0 in float64: both must move for v = 0 exactly."""
    X = np.array([[100.0], [68.0], [-100.0], [100.0], [-100.0], [-32.0]])
    t = np.array([1.371e-4, 1.695e-5, 9.951e-5, -1.52e-4, 8.882e-5, 3.807e-5])
    weight = np.array([1.4e-9, 7.23e-5, 13.9, 8.73e-6, 3.35e9, 8.8e9])
    loss = losses.EpsilonInsensitive(1.1e-7)
    model = linsep.LinearRegressor(loss, C=np.inf, tol=1e-3).fit(X, t, weight)
    assert model.certificate_.certified
    assert linsep.verify(model, X, t, weight, exact=True).certified
