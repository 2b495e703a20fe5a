"""C = inf: no certificate rests on a rank that is known to working precision only.

The truth is found in rational arithmetic, or by the same problem in columns that float64 resolves.
"""

import contextlib
import math
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.optimize
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st

from linsep import LinearClassifier, LinearRegressor, LogisticRegression, verify
from linsep.certificates import (
    Part,
    local_certificate,
    softmax_local_certificate,
)
from linsep.certificates.curvature import dependence, repaired_dual
from linsep.certificates.curvature.certificate import constant_loss, exact_fit
from linsep.certificates.curvature.dependence import (
    describe_near_dependence,
    independent_columns,
    vanishes,
)
from linsep.certificates.curvature.metric import gram_loss, smallest_eigenvalue
from linsep.certificates.curvature.rows import DoubledRows, Evaluation, Rows
from linsep.errors import ConvergenceWarning, SeparableData
from linsep.exact.sliced import product
from linsep.losses import Absolute, Logistic, Multinomial, Squared
from linsep.penalties import ElasticNet
from linsep.solution import Linearised


@pytest.fixture(autouse=True)
def _uncertified_is_an_answer():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def rational(A):
    """The matrix as lists of fractions."""
    return [[Fraction(float(x)) for x in row] for row in np.atleast_2d(A)]


def eliminated(A):
    """Row echelon form by Gauss and the pivot columns."""
    A, pivots, row = [list(r) for r in A], [], 0
    for column in range(len(A[0])):
        found = next((i for i in range(row, len(A)) if A[i][column]), None)
        if found is None:
            continue
        A[row], A[found] = A[found], A[row]
        for i in range(row + 1, len(A)):
            ratio = A[i][column] / A[row][column]
            if ratio:
                A[i] = [a - ratio * b for a, b in zip(A[i], A[row], strict=True)]
        pivots.append(column)
        row += 1
    return A, pivots


def least_squares(X, target):
    """Exact minimum of |target - X w - b|^2 over the reals."""
    A = [[*row, Fraction(1)] for row in rational(X)]
    t = [Fraction(float(v)) for v in target]
    _, basis = eliminated(A)
    columns = [[row[j] for row in A] for j in basis]
    dot = [[sum(a * b for a, b in zip(u, v, strict=True)) for v in (*columns, t)] for u in columns]
    E, pivots = eliminated(dot)
    assert len(pivots) == len(basis)
    w = [Fraction(0)] * len(basis)
    for i in reversed(range(len(basis))):
        rest = sum((E[i][j] * w[j] for j in range(i + 1, len(basis))), Fraction(0))
        w[i] = (E[i][-1] - rest) / E[i][i]
    return float(
        sum(v * v for v in t)
        - sum(
            x * sum(a * b for a, b in zip(c, t, strict=True))
            for x, c in zip(w, columns, strict=True)
        )
    )


class TestNearlyDependent:
    """Data whose last bits matter: a true bound or none, never a false one."""

    @pytest.mark.parametrize("bits", [1, 4, 64])
    def test_separable_by_the_last_bits(self, bits):
        raised = 0
        for seed in range(8):
            rng = np.random.default_rng(seed)
            x, y = rng.normal(size=20), np.where(rng.random(20) < 0.5, 1, -1)
            X = np.column_stack([x, x + y * bits * 2.0**-52])
            moved = [Fraction(b) - Fraction(a) for a, b in X.tolist()]
            if any(m * int(s) <= 0 for m, s in zip(moved, y, strict=True)):
                continue  # rounding of x + y 2^-52 has taken the label away
            try:
                found = LogisticRegression(C=math.inf).fit(X, y).certificate_
            except SeparableData:
                raised += 1
                continue
            assert not found.certified
            assert found.dual == 0.0
        assert raised

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("seed", range(30))
    def test_a_rounded_sum_of_two_columns(self, seed):
        rng = np.random.default_rng(seed)
        a, b = rng.normal(size=(2, 25))
        X, target = np.column_stack([a, b, a + b]), a - b + 10 * rng.normal(size=25)
        found = LinearRegressor().fit(X, target).certificate_
        minimum = least_squares(X, target)
        assert found.dual <= minimum * (1 + 1e-12)
        if found.certified:
            assert found.primal - minimum <= found.gap

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "huberised_hinge"])
    @pytest.mark.parametrize("span", [8.64e13, 6e10])
    @pytest.mark.parametrize("C", [math.inf, 1.0])
    def test_start_and_end_in_nanoseconds(self, loss, span, C):
        """The difference of the columns, a few microseconds, is exact; its model is attainable."""
        rng = np.random.default_rng(0)
        start = np.floor(1.7e18 + rng.uniform(0, span, 200))
        end = start + np.round(2000 * rng.gamma(2.0, 1.0, 200))
        took = end - start
        y = rng.random(200) < 1 / (1 + np.exp(-(took - 4000) / 700))
        found = LinearClassifier(loss, C=C).fit(np.column_stack([start, end]), y).certificate_
        short = LinearClassifier(loss, C=C).fit(took[:, None], y)
        # w = (-v, v) scores like v on the difference and costs one v^2 / 2 more
        extra = 0.5 * float(short.coef_[0, 0]) ** 2 if math.isfinite(C) else 0.0
        assert found.dual <= short.certificate_.primal + extra

    def test_a_column_that_varies_in_its_last_digits(self):
        """Least absolute deviations: centring the column is exact and shows what is attainable."""
        rng = np.random.default_rng(3)
        for _ in range(10):
            others = rng.normal(size=(30, 3))
            column = 4784518.7689 + 1.4e-7 * rng.normal(size=30)
            target = 1e8 * rng.normal(size=30)
            X = np.column_stack([others, column])
            found = LinearRegressor("absolute", C=math.inf).fit(X, target).certificate_
            A = np.column_stack([others, (column - column[0]) * 2.0**22, np.ones(30)])
            cost = np.concatenate([np.zeros(10), np.ones(60)])
            equal = np.hstack([A, -A, np.eye(30), -np.eye(30)])
            attained = scipy.optimize.linprog(cost, A_eq=equal, b_eq=target, method="highs").fun
            assert found.dual <= attained * (1 + 1e-9)

    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("degree", [4, 8, 12, 20])
    @pytest.mark.parametrize(("low", "high"), [(0, 1), (1, 10), (-9, -3), (2000, 2024)])
    def test_polynomials(self, degree, low, high):
        """Chebyshev polynomials span the same functions but for the rounding of the powers."""
        x = np.linspace(low, high, 40)
        rng = np.random.default_rng(degree)
        target = np.sin(6 * (x - low) / (high - low)) + 0.1 * rng.normal(size=40)
        X = x[:, None] ** np.arange(1, degree + 1)
        found = LinearRegressor().fit(X, target).certificate_
        minimum = least_squares(X, target)
        assert found.dual <= minimum * (1 + 1e-12)
        if found.certified:
            assert found.primal - minimum <= found.gap * (1 + 1e-12)


def indicators(rng, n):
    return np.eye(4)[rng.integers(0, 4, n)]


def total_of_counts(rng, n):
    counts = rng.poisson(20, (n, 3)).astype(float)
    return np.column_stack([counts, counts.sum(axis=1)])


def two_units(rng, n):
    metres = np.round(rng.uniform(0, 50, n), 0)
    return np.column_stack([metres, 1000 * metres, rng.normal(size=n)])


def twice(rng, n):
    x = rng.normal(size=(n, 2))
    return np.column_stack([x, x[:, 0], -x[:, 1]])


def constants(rng, n):
    return np.column_stack([rng.normal(size=n), np.full(n, 0.1), np.zeros(n)])


def start_end_duration(rng, n):
    start = np.floor(1.7e9 + rng.uniform(0, 1e5, n))
    took = np.floor(rng.uniform(1, 3600, n))
    return np.column_stack([start - 1.7e9, start + took - 1.7e9, took])


def everything(rng, n):
    return np.column_stack([f(rng, n) for f in (indicators, total_of_counts, twice, constants)])


TABLES = [indicators, total_of_counts, two_units, twice, constants, start_end_duration, everything]
STORAGES = {
    "dense": lambda X: X,
    "single": lambda X: X.astype(np.float32),
    "by columns": np.asfortranarray,
    "sparse": sp.csr_matrix,
}
by_table = pytest.mark.parametrize("table", TABLES, ids=lambda f: f.__name__)
by_storage = pytest.mark.parametrize("storage", STORAGES)


@by_table
@by_storage
class TestExactlyDependent:
    """Ordinary tables whose columns are dependent exactly stay certified."""

    @pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "huberised_hinge"])
    def test_classification(self, table, storage, loss):
        rng = np.random.default_rng(5)
        X = STORAGES[storage](table(rng, 200))
        y = rng.random(200) < 0.5
        model = LinearClassifier(loss, C=math.inf).fit(X, y)
        assert model.certificate_.certified, str(model.certificate_)
        assert verify(model, X, y).certified

    @pytest.mark.sampled(20)
    @pytest.mark.parametrize("loss", ["squared", "huber", "absolute"])
    def test_regression(self, table, storage, loss):
        rng = np.random.default_rng(6)
        X = STORAGES[storage](table(rng, 200))
        target = rng.normal(size=200)
        model = LinearRegressor(loss, C=math.inf).fit(X, target)
        assert model.certificate_.certified, str(model.certificate_)
        assert verify(model, X, target).certified

    def test_multinomial(self, table, storage):
        rng = np.random.default_rng(7)
        X = STORAGES[storage](table(rng, 200))
        y = rng.integers(0, 3, 200)
        model = LogisticRegression(C=math.inf, multiclass="multinomial").fit(X, y)
        assert model.certificate_.certified, str(model.certificate_)
        assert verify(model, X, y).certified


def rows_of(X, fit_intercept=True, lam=0.0, weight=None):
    n = X.shape[0]
    weight = np.ones(n) if weight is None else weight
    return Rows(X, np.ones(n), np.zeros(n), weight, fit_intercept, lam)


class TestDependence:
    """Exact linear dependence of columns."""

    @given(seed=st.integers(0, 10_000), fit_intercept=st.booleans())
    def test_integer_combinations_are_found(self, seed, fit_intercept):
        """As many columns are left as the rank in rational arithmetic, and they span the others."""
        rng = np.random.default_rng(seed)
        n, rank, extra = 12, int(rng.integers(1, 5)), int(rng.integers(0, 4))
        base = rng.integers(-20, 21, (n, rank)).astype(float) * 2.0 ** rng.integers(-3, 4, rank)
        mixed = base @ rng.integers(-3, 4, (rank, extra))
        X = np.column_stack([base, mixed])[:, rng.permutation(rank + extra)]
        if fit_intercept:
            X += rng.integers(-1, 2, rank + extra) * 10.0 ** rng.integers(0, 8)
        kept = independent_columns(rows_of(X, fit_intercept), np.ones(n, dtype=bool))
        A = np.column_stack([X, np.ones(n)]) if fit_intercept else X
        assert len(kept) == len(eliminated(rational(A))[1])
        assert len(eliminated(rational(A[:, kept]))[1]) == len(kept)

    @given(seed=st.integers(0, 10_000))
    def test_a_column_off_by_one_bit_is_kept(self, seed):
        rng = np.random.default_rng(seed)
        base = rng.integers(1, 50, (15, 3)).astype(float)
        X = np.column_stack([base, base.sum(axis=1)])
        assert len(independent_columns(rows_of(X), np.ones(15, dtype=bool))) == 4
        row = int(rng.integers(15))
        X[row, 3] = np.nextafter(X[row, 3], math.inf)
        assert len(independent_columns(rows_of(X), np.ones(15, dtype=bool))) == 5

    def test_rows_that_do_not_count_need_not_obey(self):
        X = np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0], [1.0, 7.0]])
        counts = np.array([True, True, True, False])
        assert list(independent_columns(rows_of(X, False), counts)) in ([0], [1])
        assert len(independent_columns(rows_of(X, False), ~counts | counts)) == 2

    def test_no_more_different_rows_than_columns(self):
        """Five different rows have rank five: a basis of five columns spans them all, whatever the coefficients."""
        rng = np.random.default_rng(0)
        X = np.repeat(rng.normal(size=(5, 20)), 2, axis=0)
        X[::2][X[::2] == 0] = -0.0
        everyone = np.ones(10, dtype=bool)
        assert len(independent_columns(rows_of(X), everyone)) == 5
        assert dependence.proven_metric(rows_of(X), np.ones(10), everyone) is not None
        X[0, 0] = np.nextafter(X[0, 0], 9)
        kept = independent_columns(rows_of(X), everyone)
        assert dependence.proven_metric(rows_of(X), np.ones(10), everyone) is None or len(kept) == 6

    def test_a_rounded_sum_is_no_combination(self):
        rng = np.random.default_rng(0)
        a, b = rng.normal(size=(2, 40))
        part, everyone = rows_of(np.column_stack([a, b, a + b])), np.ones(40, dtype=bool)
        assert len(independent_columns(part, everyone)) == 4
        told = describe_near_dependence(part.X, None, True)
        assert told.startswith("Columns 0, 1, 2 are nearly linearly dependent")

    def test_the_warning_gives_the_cause_in_place_of_likely_causes(self):
        rng = np.random.default_rng(0)
        a, b, t = rng.normal(size=(3, 400))
        with pytest.warns(
            ConvergenceWarning, match="^Columns 0, 1, 2 are nearly .* Now: "
        ) as caught:
            LinearRegressor("absolute").fit(np.column_stack([a, b, a + b]), t)
        assert "Likely causes" not in str(caught[0].message)

    def test_the_warning_names_the_columns(self):
        # more rows than decimal arithmetic takes
        rng = np.random.default_rng(0)
        start = np.floor(1.7e18 + rng.uniform(0, 8.64e13, 3000))
        table = pd.DataFrame(
            {
                "price": rng.normal(size=3000),
                "start": start,
                "end": start + 256.0 * rng.integers(0, 3, 3000),
            }
        )
        with pytest.warns(
            ConvergenceWarning, match=r"Columns 1 \('start'\), 2 \('end'\) are nearly"
        ):
            LogisticRegression(C=math.inf).fit(table, rng.random(3000) < 0.5)
        almost = 4784518.7689 + 1.4e-7 * rng.normal(size=(60, 1))
        assert "Column 0 is nearly constant" in describe_near_dependence(almost, None, True)
        assert describe_near_dependence(rng.normal(size=(60, 3)), None, True) == ""

    @pytest.mark.parametrize(
        ("block", "factors", "expected"),
        [
            ([[1.0, 2.0], [3.0, 6.0]], (2, -1), True),
            ([[1.0, 2.0], [3.0, 6.0000000000000009]], (2, -1), False),
            ([[0.1, 0.2, 0.30000000000000004]], (1, 1, -1), False),  # rounds to 0, is not 0
            ([[2.0**60, 1.0, 2.0**60]], (1, 1, -1), False),
            ([[2.0**60, 1.0, 2.0**60 + 2**10]], (1, 2**10, -1), True),
            ([[1e-300, 1e300, 1.0]], (3, 0, 0), False),
            ([[5e-324, 5e-324]], (1, -1), True),
            ([[5e-324, 1e-323, 0.0]], (2, -1, 3), True),
            ([[0.1, 0.1], [0.1, 0.1]], (1, -1), True),
            ([[0.5, 1.0], [0.5, 1.0]], (2 * 3**50, -(3**50)), True),
            ([[0.5, 1.0], [0.5, 1.0]], (2 * 3**50, -(3**50) - 1), False),
        ],
    )
    def test_sums_are_exact(self, block, factors, expected):
        assert vanishes(np.array(block), factors) == expected


def positive_definite(A):
    """Whether a symmetric rational matrix is positive semidefinite with positive pivots."""
    A = [list(r) for r in A]
    for k in range(len(A)):
        if A[k][k] <= 0:
            return False
        for i in range(k + 1, len(A)):
            ratio = A[i][k] / A[k][k]
            A[i] = [a - ratio * b for a, b in zip(A[i], A[k], strict=True)]
    return True


def check_metric(X, part, metric, h):
    """In rational arithmetic: the floor is below T'HT, the reach above |T'x~|; with an intercept."""
    d, lam = X.shape[1], part.lam
    A, T = [[*row, Fraction(1)] for row in rational(X)], rational(metric.T)
    Z = [
        [sum(a * t for a, t in zip(row, c, strict=True)) for c in zip(*T, strict=True)] for row in A
    ]
    reach = part.reach(metric)
    for row, bound in zip(Z, reach.tolist(), strict=True):
        assert sum(z * z for z in row) <= Fraction(bound) ** 2
    weights = [Fraction(float(v)) for v in h]
    G = [
        [
            sum(w * z[i] * z[j] for w, z in zip(weights, Z, strict=True))
            + Fraction(lam) * sum(T[k][i] * T[k][j] for k in range(d))
            - (Fraction(metric.floor) if i == j else 0)
            for j in range(d + 1)
        ]
        for i in range(d + 1)
    ]
    assert positive_definite(G)


class TestMetric:
    """Bounds on eigenvalues and lengths hold for the true numbers."""

    @given(seed=st.integers(0, 10_000))
    def test_floor_and_reach_against_rationals(self, seed):
        rng = np.random.default_rng(seed)
        n, d, lam = 9, 3, float(rng.choice([0.0, 1e-3]))
        X = rng.normal(size=(n, d)) + 10.0 ** rng.uniform(0, 14)
        if seed % 2:
            X[:, 1] = X[:, 0] * (1 + 10.0 ** rng.uniform(-16, -3) * rng.normal(size=n))
        h = rng.random(n)
        part = rows_of(X, True, lam)
        metric = part.metric(h)
        assume(metric is not None)
        check_metric(X, part, metric, h)

    def test_a_matrix_far_from_the_identity(self):
        rng = np.random.default_rng(0)
        for _ in range(20):
            Q = np.linalg.qr(rng.normal(size=(5, 5)))[0]
            values = 10.0 ** rng.uniform(-6, 2, 5)
            found = smallest_eigenvalue((Q * values) @ Q.T, 0.0)
            assert 0.8 * values.min() <= found <= values.min() * (1 + 1e-9)
        assert smallest_eigenvalue(np.diag([1.0, -1e-3]), 0.0) == 0.0
        assert smallest_eigenvalue(np.diag([1.0, 0.5]), 0.6) == 0.0
        assert smallest_eigenvalue(np.full((2, 2), math.nan), 0.0) == 0.0

    def test_long_sums_lose_everything(self):
        assert gram_loss(np.eye(2), np.eye(2), 0.01) == math.inf
        assert gram_loss(np.eye(2), np.eye(2), 1e-6) >= 2e-6

    def test_the_penalty_is_never_left_out(self):
        """Equal columns with a tiny penalty: M is definite only through it, and is not dropped."""
        x = np.arange(1.0, 9.0)
        X = np.column_stack([x, x])
        assert rows_of(X, lam=1.0).metric(np.ones(8)).full
        part = rows_of(X, lam=1e-30)
        assert dependence.proven_metric(part, np.ones(8), np.ones(8, dtype=bool)) is None
        assert dependence.proven_metric(rows_of(X), np.ones(8), np.ones(8, dtype=bool)) is not None


class TestExactFit:
    """An objective that is zero to working precision."""

    @staticmethod
    def says(primal, rounding, lam=0.0, tol=1e-6, loss=None, shift=0.0):
        """The rule for targets -1 and 1, moved by ``shift``; their mean loses 2."""
        at = Evaluation.empty(2, np.zeros(2))
        at.primal, at.rounding = primal, rounding
        offset = np.array([-1.0, 1.0]) - shift
        part = Rows(np.ones((2, 1)), np.ones(2), offset, np.ones(2), True, lam)
        return exact_fit(loss or Squared(centre=0.0), part, at, tol)

    def test_not_with_a_penalty(self):
        assert self.says(1e-20, 1e-19)
        assert not self.says(1e-20, 1e-19, lam=1e-9)

    def test_only_if_tiny_beside_every_constant_model(self):
        assert not self.says(1e-9, 1e-8)
        assert not self.says(1e-9, 1e-8, shift=1e9)

    def test_not_of_a_loss_that_is_never_zero(self):
        assert not self.says(1e-20, 1e-19, loss=Logistic())

    def test_constant_models_lose_more_than_the_bound(self):
        rng = np.random.default_rng(3)
        for loss, sigma in (
            (Squared(centre=0.0), np.ones(30)),
            (Logistic(), rng.choice([-1.0, 1.0], 30)),
        ):
            offset, weight = rng.normal(size=30) + 5.0, 10.0 ** rng.uniform(-4, 4, 30)
            bound = constant_loss(loss, sigma, offset, weight, True)
            best = min(weight @ loss.value(sigma * b + offset) for b in np.linspace(-20, 20, 2001))
            assert 0.0 < bound <= 2.0 * best
            zero = constant_loss(loss, sigma, offset, weight, False)
            assert zero == pytest.approx(weight @ loss.value(offset))

    def test_targets_far_from_zero_are_no_exact_fit(self):
        """Residuals of 1 beside targets of 1e9 and columns that float64 hardly resolves."""
        rng = np.random.default_rng(0)
        X = rng.standard_normal((60, 8)) * 10.0 ** np.arange(-6, 2) + 1e9
        target = 1e9 + rng.choice([-1.0, 1.0], 60)
        found = LinearRegressor().fit(X, target).certificate_
        assert not found.certified or found.gap <= found.tol * found.primal
        found = LinearRegressor("absolute").fit(X[:, -2:] - 1e9, target + 1e12).certificate_
        assert not found.certified or found.gap <= found.tol * found.primal

    @pytest.mark.slow
    def test_large_offsets_with_a_penalty(self):
        rng = np.random.default_rng(116)
        for _ in range(20):
            n, d = int(rng.choice([4, 8, 15])), int(rng.choice([10, 20, 40]))
            X = rng.normal(size=(n, d)) + 10.0 ** rng.uniform(3, 10)
            target = 10.0 ** rng.uniform(-2, 8) * (X[:, 0] - X[:, 1] + rng.normal(size=n))
            model = LinearRegressor("squared", C=10.0 ** rng.uniform(0, 12)).fit(X, target)
            found = model.certificate_
            if found.certified:
                assert found.gap <= found.tol * max(found.primal, found.dual) * (1 + 1e-12)


def test_multinomial_bound_is_true_on_a_rounded_sum():
    """The last column is fixed by an exact invariance; the rounded sum of two columns is not."""
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 60))
    y = rng.integers(0, 3, 60)
    X, free = np.column_stack([a, b]), ElasticNet(math.inf)
    with contextlib.suppress(SeparableData):
        W = LogisticRegression(C=math.inf, multiclass="multinomial").fit(X, y)
        theta = np.vstack([W.coef_.T, W.intercept_[None]])
        loss = Multinomial(3)
        part = Part(loss, free, True, X, None, None, None, y, theta, None, 1e-6)
        assert softmax_local_certificate(part).certified
        wide = np.vstack([theta[:2], np.zeros((1, 3)), theta[2:]])
        X3 = np.column_stack([a, b, a + b])
        assert softmax_local_certificate(part._replace(X=X3, W=wide)).dual == 0.0


class TestDoubled:
    """Products in doubled precision, and what they prove."""

    @given(seed=st.integers(0, 10_000))
    def test_products_against_rationals(self, seed):
        rng = np.random.default_rng(seed)
        n, p, q = rng.integers(1, 6, 3)
        A = rng.normal(size=(n, p)) * 10.0 ** rng.uniform(-12, 12, (n, p))
        B = rng.normal(size=(p, q)) * 10.0 ** rng.uniform(-12, 12, (p, q))
        A[rng.random((n, p)) < 0.2] = 0.0
        if seed % 2:  # what is left is far smaller than the terms
            A, B = np.hstack([A, -A * (1 + 2.0**-50)]), np.vstack([B, B])
        high, low, error = product(A, B)
        left, right = rational(A), rational(B.T)
        for i in range(n):
            for j in range(q):
                exact = sum(a * b for a, b in zip(left[i], right[j], strict=True))
                miss = abs(exact - Fraction(high[i, j]) - Fraction(low[i, j]))
                assert miss <= Fraction(error[i, j])
        size = A.shape[1] * np.abs(A).max() * np.abs(B).max()
        assert (error <= 2.0**-75 * size + 1e-60).all()

    @pytest.mark.parametrize("size", [1e-320, 1e-200, 1e200, 1e305])
    def test_extreme_exponents_cost_no_precision(self, size):
        found = product(np.full((2, 3), size), np.ones((3, 2)) / 3.0)
        exact = 3 * Fraction(size) * Fraction(1.0 / 3.0)
        for hi, lo, error in zip(*(values.flat for values in found), strict=True):
            assert abs(Fraction(hi) + Fraction(lo) - exact) <= Fraction(error)
            assert error <= 2.0**-70 * size + 2.0**-1050

    @given(seed=st.integers(0, 10_000))
    def test_margins_and_gradients_against_rationals(self, seed):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(6, 3)) + 10.0 ** rng.uniform(0, 12)
        theta, push = rng.normal(size=4) * [1, -1, 1, 1e6], rng.normal(size=6)
        plain = rows_of(X)
        part = DoubledRows.of(plain)
        A = np.column_stack([X, np.ones(6)])
        exact = rational(A)
        for of in (plain, part):
            m, e = of.margins(slice(0, 6), A, theta)
            g, slack = of.pull(A, push)
            for i in range(6):
                true = sum(a * Fraction(float(t)) for a, t in zip(exact[i], theta, strict=True))
                assert abs(true - Fraction(m[i])) <= Fraction(e[i])
            for j in range(4):
                true = sum(exact[i][j] * Fraction(float(push[i])) for i in range(6))
                assert abs(true - Fraction(g[j])) <= Fraction(slack[j])
        assert (e <= 1e-15 * np.abs(m) + 1e-7 * plain.margins(slice(0, 6), A, theta)[1]).all()

    @given(seed=st.integers(0, 10_000))
    def test_floor_and_reach_against_rationals(self, seed):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(8, 3))
        X[:, 1] = X[:, 0] * (1 + 10.0 ** rng.uniform(-16, -10) * rng.normal(size=8))
        part, h = DoubledRows.of(rows_of(X)), rng.random(8)
        metric = part.metric(h)
        assume(metric is not None)
        check_metric(X, part, metric, h)

    @pytest.mark.parametrize("seed", range(4))
    def test_polynomials_are_certified(self, seed):
        """Degree 12 on [0, 1], condition number 1e15 of the Gram matrix: solved and proven."""
        rng = np.random.default_rng(seed)
        x = np.linspace(0, 1, 40)
        X, target = x[:, None] ** np.arange(1, 13), np.sin(6 * x) + 0.1 * rng.normal(size=40)
        model = LinearRegressor().fit(X, target)
        assert model.certificate_.certified
        minimum = least_squares(X, target)
        found = model.certificate_
        assert minimum - found.rounding <= found.primal <= minimum * (1 + 1e-6)
        assert found.dual <= minimum
        assert verify(model, X, target).certified

    def test_logistic_regression_on_years(self):
        rng = np.random.default_rng(0)
        year = rng.integers(1990, 2024, 300).astype(float)
        X = np.column_stack([year, year**2, year**3])
        y = rng.random(300) < 1 / (1 + np.exp((2007 - year) / 5))
        model = LogisticRegression(C=math.inf).fit(X, y)
        z = (year - 2007) / 17
        same = LogisticRegression(C=math.inf).fit(np.column_stack([z, z**2, z**3]), y)
        assert same.certificate_.certified
        assert model.certificate_.certified
        assert model.certificate_.primal == pytest.approx(same.certificate_.primal, rel=1e-6)

    def test_coefficients_that_float64_cannot_use_are_not_returned(self):
        """The exact minimiser on [a, b, a + b] has coefficients of 1e15, whose predictions are noise."""
        rng = np.random.default_rng(2)
        a, b = rng.normal(size=(2, 50))
        X, target = np.column_stack([a, b, a + b]), a - b + 10 * rng.normal(size=50)
        model = LinearRegressor().fit(X, target)
        assert np.abs(model.coef_).max() < 1e3


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e7])
def test_multinomial_with_offsets(offset):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4)) + offset
    y = rng.integers(0, 3, 150)
    model = LogisticRegression(C=math.inf, multiclass="multinomial").fit(X, y)
    centred = LogisticRegression(C=math.inf, multiclass="multinomial").fit(X - offset, y)
    assert model.certificate_.certified
    assert model.certificate_.dual <= centred.certificate_.primal
    assert centred.certificate_.dual <= model.certificate_.primal + model.certificate_.rounding


def test_rows_without_room_keep_their_columns():
    """Where only the rows with room obey x_2 = 2 x_1, moving them cannot balance the row that does not."""
    X = np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0], [1.0, 7.0]])
    part, u = rows_of(X, fit_intercept=False), np.array([0.1, -0.2, 0.1, 1.0])
    room = np.array([0.9, 0.8, 0.9, 0.0])
    assert repaired_dual._move_to_feasible(Absolute(), part, u, room) is None
    free = rows_of(X[:3], fit_intercept=False)
    assert repaired_dual._move_to_feasible(Absolute(), free, u[:3], room[:3]) is not None


@pytest.mark.parametrize("loss", [Logistic(), Squared()], ids=lambda loss: loss.name)
def test_subnormal_weights_prove_nothing(loss):
    """Products with weights of 5e-324 are noise: the allowance is as large as the objective."""
    rng = np.random.default_rng(0)
    X, sigma = rng.normal(size=(30, 2)), rng.choice([-1.0, 1.0], 30)
    W, weight = np.zeros((3, 1)), np.full(30, 5e-324)
    found = local_certificate(
        Part(
            *(loss, ElasticNet(math.inf), True, X, sigma, None, weight, None),
            *(W, Linearised(W, W), 1e-6),
        )
    )
    assert not found.certified
    assert found.dual == 0.0
