"""Multinomial logistic regression: its passes against numpy, its solver against laws and scikit-learn."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from catalogue import STORAGES
from scipy.special import logsumexp, softmax
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression

import linsep
from linsep import _kernels
from linsep.certificates import CoupledSums, softmax_sums_numpy
from linsep.certificates.softmax import bounds
from linsep.data import Memory
from linsep.errors import NonFinite, SeparableData
from linsep.losses import Multinomial
from linsep.penalties import ElasticNet
from linsep.problem.coupled import CoupledProblem
from linsep.solution import Explicit, Linearised, Status, Stop
from linsep.solvers.multiclass import softmax_directions as coupled_directions
from linsep.solvers.multiclass.softmax import solve
from linsep.solvers.multiclass.softmax_directions import (
    Blocks,
    ConjugateGradients,
    Target,
    zero_sum,
)

CLASSES = (3, 4, 8, 10, 17)


def draw(n, d, k, seed=0, scale=1.0, bias=None):
    """Rows, labels that follow a softmax of them (every class present), weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Z = scale * X @ rng.normal(size=(d, k)) + (0.0 if bias is None else np.asarray(bias))
    y = (Z + rng.gumbel(size=(n, k))).argmax(axis=1)
    y[:k] = np.arange(k)
    return X, y.astype(np.int64), 2 * rng.random(n)


def problem_of(X, y, C=1.0, weight=None, fit_intercept=True, n_threads=2):
    data = Memory(X, weight=weight, labels=y, n_threads=n_threads)
    return CoupledProblem(Multinomial(int(y.max()) + 1), ElasticNet(C), data, fit_intercept)


def fit(X, y, C=1.0, weight=None, fit_intercept=True, tol=1e-6, **limits):
    problem = problem_of(X, y, C, weight, fit_intercept)
    start = np.zeros((problem.order, problem.k))
    return problem, solve(problem, start, Stop(tol, **limits))


def gap_of(problem, solution):
    """Guaranteed gap and primal value, internal units, recomputed."""
    sums = problem.closing(solution.W, solution.dual)
    primal, dual, rounding = bounds(
        CoupledSums.from_flat(sums, problem.data.d, problem.k),
        solution.W[:-1],
        loss=problem.loss,
        lam=problem.lam,
        fit_intercept=problem.fit_intercept,
        rows_per_sum=problem.longest_sum(len(sums)),
        rows=problem.data.n,
    )
    return primal - dual + rounding, primal


class Plain:
    """The objective and what belongs to it, in numpy."""

    def __init__(self, X, y, s, lam):
        X = X.toarray() if sp.issparse(X) else np.asarray(X)
        self.X1 = np.c_[X.astype(float), np.ones(len(y))]
        self.y, self.s, self.lam = y, np.ones(len(y)) if s is None else s, lam
        self.Y = np.eye(int(y.max()) + 1)[y]

    def value(self, W):
        Z = self.X1 @ W
        loss = logsumexp(Z, axis=1) - Z[np.arange(len(Z)), self.y]
        return self.s @ loss + 0.5 * self.lam * (W[:-1] ** 2).sum()

    def gradient(self, W):
        g = self.X1.T @ (self.s[:, None] * (softmax(self.X1 @ W, axis=1) - self.Y))
        g[:-1] += self.lam * W[:-1]
        return g

    def hess_vec(self, W, V):
        P, T = softmax(self.X1 @ W, axis=1), self.X1 @ V
        out = self.X1.T @ (self.s[:, None] * P * (T - (P * T).sum(axis=1, keepdims=True)))
        out[:-1] += self.lam * V[:-1]
        return out


class TestSteps:
    """Conjugate gradients in one native call, and product by product."""

    @pytest.mark.parametrize("storage", STORAGES)
    @pytest.mark.parametrize("fit_intercept", [True, False])
    def test_one_call_is_many_products(self, storage, fit_intercept):
        X, y, s = draw(900, 60, 5, seed=4, scale=0.2)
        found = []
        for limited, n_threads in ((True, 2), (False, 2), (False, 1)):
            problem = problem_of(STORAGES[storage](X), y, 3.0, s, fit_intercept, n_threads)
            W = np.zeros((61, 5))
            value, g = problem.value_gradient(W)
            target = Target(value, problem.lam, 1e-6, np.inf, 1e-9, False)
            direction = ConjugateGradients(problem, problem, lambda: None, limited)
            D = direction(W, g, target)
            W = zero_sum(0.9 * D)
            value, g = problem.value_gradient(W)
            target = Target(value, problem.lam, 1e-9, np.inf, 1e-9, False)
            found.append((direction(W, g, target), problem.passes))
            R = -g - problem.hess_vec(found[-1][0])
            assert np.vdot(R[:-1], R[:-1]) <= target.residual(-np.vdot(g, found[-1][0]))
        (by_products, passes), (at_once, fewer), (alone, _) = found
        assert passes == fewer
        np.testing.assert_allclose(at_once, by_products, rtol=0, atol=1e-8)
        np.testing.assert_array_equal(at_once, alone)

    def test_large_blocks_are_inverted(self, tuned):
        """In single precision or in double, and whatever rounding has done to them."""
        rng = np.random.default_rng(0)
        A = rng.normal(size=(3, 40, 30))
        G = A.transpose(0, 2, 1) @ A
        R = rng.normal(size=(30, 3))
        exact = [np.linalg.solve(G[c] + np.diag([1.0] * 29 + [0.0]), R[:, c]) for c in range(3)]
        small = Blocks(G.copy(), np.zeros(29), 1.0)(R)
        tuned(softmax_factorised=1)
        for single, close in ((1e-5, 1e-4), (1e9, 1e-8)):
            tuned(softmax_single=single)
            large = Blocks(G.copy(), np.zeros(29), 1.0)(R)
            np.testing.assert_allclose(large, np.array(exact).T, rtol=0, atol=close)
        np.testing.assert_allclose(small, np.array(exact).T, rtol=0, atol=1e-8)
        broken = Blocks(-np.ones((1, 30, 30)), np.zeros(29), 1e-3)(R)
        assert np.isfinite(broken).all()


@pytest.mark.usefixtures("instructions")
class TestPasses:
    @pytest.fixture(params=CLASSES)
    def k(self, request):
        return request.param

    @pytest.fixture(params=STORAGES)
    def case(self, request, k):
        X, y, s = draw(301, 7, k, seed=k)
        X[np.abs(X) < 0.5] = 0.0
        s[3] = 0.0
        problem = problem_of(STORAGES[request.param](X), y, C=2.0, weight=s)
        rng = np.random.default_rng(1)
        W, V = rng.normal(size=(2, 8, k))
        return problem, Plain(problem.data.X, y, s, 0.5), W, V

    def test_value_gradient_and_counts(self, case):
        problem, plain, W, _ = case
        value, g = problem.value_gradient(W)
        assert value == pytest.approx(plain.value(W), rel=1e-13)
        np.testing.assert_allclose(g, plain.gradient(W), rtol=0, atol=1e-11)
        Z = plain.X1 @ W
        rival = np.where(plain.Y > 0, -np.inf, Z).max(axis=1)
        margin = (Z * plain.Y).sum(axis=1) - rival
        assert problem.misfits == np.count_nonzero((margin <= 0) & (plain.s > 0))

    def test_hessian(self, case):
        problem, plain, W, V = case
        problem.value_gradient(W)
        expected = plain.hess_vec(W, V)
        np.testing.assert_allclose(problem.hess_vec(V), expected, rtol=0, atol=1e-11)
        k, order = problem.k, problem.order
        H = problem.hessian(np.zeros(7))
        full = (H @ V.T.ravel()).reshape(k, order).T
        np.testing.assert_allclose(full, expected, rtol=0, atol=1e-11)
        B = H.reshape(k, order, k, order)[:, -1, :, -1]
        np.testing.assert_allclose(problem.intercept_hessian(), B, rtol=0, atol=1e-11)
        own = problem.own_blocks(problem.curvatures(), np.zeros(7))
        for c in range(k):
            diagonal = H.reshape(k, order, k, order)[c, :, c]
            penalty = np.diag([problem.lam] * 7 + [0.0])
            np.testing.assert_allclose(own[c], diagonal - penalty, rtol=0, atol=1e-11)

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize("d", [1, 8, 19, 64, 403])
    def test_every_width(self, d, dtype):
        """Rows shorter than a vector, whole vectors, a tail, more columns than are taken at once."""
        for n, k in ((5, 3), (70, 11)):
            X, y, s = draw(max(n, k), d, k, seed=d)
            problem = problem_of(X.astype(dtype), y, weight=s)
            plain = Plain(problem.data.X, y, s, 1.0)
            W, V = np.random.default_rng(d).normal(size=(2, d + 1, k)) / np.sqrt(d)
            value, g = problem.value_gradient(W)
            assert value == pytest.approx(plain.value(W), rel=1e-13)
            np.testing.assert_allclose(g, plain.gradient(W), rtol=0, atol=1e-11)
            expected = plain.hess_vec(W, V)
            np.testing.assert_allclose(problem.hess_vec(V), expected, rtol=0, atol=1e-11)
            dual = Linearised(W, 0.1 * V)
            found = CoupledSums.from_flat(problem.closing(W, dual), d, k)
            sums = softmax_sums_numpy(Multinomial(k), problem.data.X, y, s, W, dual)
            np.testing.assert_allclose(found.v, sums.v, rtol=0, atol=1e-11)

    def test_along(self, case):
        problem, plain, W, V = case
        steps = np.array([0.0, 0.3, 1.0, 2.5])
        values, slopes = problem.along(W, V, steps)
        for t, value, slope in zip(steps, values, slopes, strict=True):
            assert value == pytest.approx(plain.value(W + t * V), rel=1e-13)
            assert slope == pytest.approx(np.vdot(plain.gradient(W + t * V), V), rel=1e-10)

    def test_scores(self, case):
        problem, plain, W, _ = case
        block = problem.data.whole
        width = -(-problem.k // 8) * 8
        padded = np.zeros((8, width))
        padded[:, : problem.k] = W
        z = np.empty((problem.data.n, width))
        _kernels.scores_k(block.rows, 0, problem.data.n, padded, z.reshape(-1))
        np.testing.assert_allclose(z[:, : problem.k], plain.X1 @ W, rtol=0, atol=1e-12)

    def test_closing(self, case):
        problem, plain, W, V = case
        k = problem.k
        P = np.random.default_rng(2).dirichlet(np.ones(k), problem.data.n)
        for dual in (Linearised(W, 0.1 * V), Linearised(W, 3 * V), Explicit(plain.Y - P)):
            sums = problem.closing(W, dual)
            found = CoupledSums.from_flat(sums, 7, k)
            expected = softmax_sums_numpy(Multinomial(k), problem.data.X, plain.y, plain.s, W, dual)
            for name in ("loss", "entropy", "absolute"):
                assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-12)
            for name in ("mass", "residual", "v", "features"):
                np.testing.assert_allclose(
                    getattr(found, name), getattr(expected, name), rtol=0, atol=1e-11
                )
            assert expected.magnitude <= found.magnitude <= 3 * expected.magnitude
            assert sums[-2] == pytest.approx(expected.spread, rel=1e-12)
            norms = np.linalg.norm(plain.X1[:, :-1], axis=1)
            assert sums[-1] == pytest.approx(plain.s @ norms, rel=1e-12)

    @pytest.mark.parametrize("far", [1.0, 30.0, 300.0])
    def test_keeps_relative_accuracy_in_both_tails(self, far):
        """Losses of 1e-300 and of 1e3 alike: the entries off the label define everything."""
        X = np.array([[1.0]])
        for label in (0, 2):
            data = Memory(X, labels=np.array([label]))
            problem = CoupledProblem(Multinomial(3), ElasticNet(np.inf), data)
            W = np.array([[far, 0.5 * far, 0.0], [0.0, 0.0, 0.0]])
            value, g = problem.value_gradient(W)
            others = np.exp(np.array([-far, -0.5 * far]))
            expected = np.log1p(others.sum()) + (0.0 if label == 0 else far)
            assert value == pytest.approx(expected, rel=1e-14)
            p = np.array([1.0, others[1], others[0]]) / (1 + others.sum())
            p[label] = -np.delete(p, label).sum()
            np.testing.assert_allclose(g[0], p, rtol=1e-13)


class TestAnyData:
    def test_bits_do_not_depend_on_threads(self):
        X, y, s = draw(30000, 40, 5, scale=0.3)
        found = []
        for n_threads in (1, 2, 8):
            problem = problem_of(X, y, weight=s, n_threads=n_threads)
            solution = solve(problem, np.zeros((41, 5)), Stop())
            found.append((solution.W.tobytes(), problem.closing(*_at(solution)).tobytes()))
        assert found[0] == found[1] == found[2]

    def test_layouts_that_are_converted_by_block(self):
        X, y, s = draw(4000, 6, 4)
        layouts = (np.asfortranarray(X), X.astype(np.float16), X[:, ::-1])
        for layout in layouts:
            problem = problem_of(layout, y, weight=s)
            plain = Plain(np.asarray(layout, float), y, s, 1.0)
            W = np.random.default_rng(0).normal(size=(7, 4))
            value, g = problem.value_gradient(W)
            assert value == pytest.approx(plain.value(W), rel=1e-12)
            np.testing.assert_allclose(g, plain.gradient(W), rtol=0, atol=1e-9)

    def test_labels_are_checked(self):
        with pytest.raises(ValueError, match="labels"):
            _kernels.Classes(np.array([0, 1, 3]), None, 3)

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    @pytest.mark.parametrize("size", [(50, 3), (3000, 60)])
    def test_names_numbers_that_are_not_finite(self, bad, size):
        X, y, _ = draw(*size, 3)
        X[7, 1] = bad
        with pytest.raises(NonFinite, match="not finite"):
            fit(X, y)


def _at(solution):
    return solution.W, solution.dual


def _reference(X, y, C, weight=None):
    """The lowest objective (reported units) that scikit-learn reaches."""
    plain = Plain(X, y, weight, 1.0 / C)
    best = np.inf
    for solver in ("newton-cholesky", "lbfgs"):
        model = LogisticRegression(C=C, solver=solver, tol=1e-12, max_iter=3000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y, sample_weight=weight)
        best = min(best, C * plain.value(np.vstack([model.coef_.T, model.intercept_])))
    return best


REAL = {"iris": load_iris, "wine": load_wine}


class TestOptimum:
    @pytest.mark.slow  # it is the reference that is slow
    @pytest.mark.parametrize("C", [1e-2, 1.0, 1e3])
    @pytest.mark.parametrize("name", REAL)
    def test_is_below_scikit_learn(self, name, C):
        X, y = REAL[name](return_X_y=True)
        problem, solution = fit(X, y, C)
        assert solution.status is Status.CERTIFIED
        gap, primal = gap_of(problem, solution)
        reference = _reference(X, y, C)
        assert C * primal <= reference * (1 + 1e-12)
        assert C * gap >= C * primal - reference
        assert C * primal >= reference * (1 - 1e-6)

    @pytest.mark.slow  # it is the reference that is slow
    def test_digits(self):
        X, y = load_digits(return_X_y=True)
        X, y = X[:600], y[:600]
        problem, solution = fit(X, y, 0.1, tol=1e-9)
        assert solution.status is Status.CERTIFIED
        assert 0.1 * gap_of(problem, solution)[1] <= _reference(X, y, 0.1) * (1 + 1e-9)

    @pytest.mark.parametrize("C", [1e-4, 1.0, 1e6])
    @pytest.mark.parametrize("kind", ["plain", "unscaled", "shifted", "dependent", "rare"])
    @pytest.mark.parametrize("size", [(400, 6, 3), (3000, 40, 6)])
    def test_is_certified_on_awkward_columns(self, size, kind, C):
        n, d, k = size
        bias = np.append(0.0, np.full(k - 1, -4.0)) if kind == "rare" else None
        X, y, s = draw(n, d, k, scale=0.5, bias=bias)
        if kind == "unscaled":
            X = X * np.logspace(-6, 6, d)
        if kind == "shifted":
            X = X + np.logspace(0, 4, d)
        if kind == "dependent":
            X = np.c_[X, X[:, 0], X[:, 1] - X[:, 2], np.full(n, 3.0), np.zeros(n)]
        problem, solution = fit(X, y, C, weight=s)
        gap, primal = gap_of(problem, solution)
        assert solution.status is Status.CERTIFIED
        assert gap <= 1e-6 * primal
        np.testing.assert_allclose(
            solution.W.sum(axis=1), 0.0, atol=1e-8 * np.abs(solution.W).max()
        )

    def test_gap_covers_the_suboptimality_of_any_point(self):
        X, y, s = draw(200, 4, 4)
        problem, solution = fit(X, y, 0.5, weight=s, tol=1e-12)
        least = Plain(X, y, s, 2.0).value(solution.W)
        rng = np.random.default_rng(3)
        for size in (1e-9, 1e-5, 1e-2, 1.0, 30.0):
            W, D = solution.W + size * rng.normal(size=(2, 5, 4))
            sums = problem.closing(W, Linearised(W, 0.1 * size * (D - solution.W)))
            named = CoupledSums.from_flat(sums, 4, 4)
            primal, dual, rounding = bounds(
                named,
                W[:-1],
                loss=problem.loss,
                lam=2.0,
                fit_intercept=True,
                rows_per_sum=201,
                rows=200,
            )
            assert primal == pytest.approx(Plain(X, y, s, 2.0).value(W), rel=1e-12)
            assert dual - rounding <= least
            assert primal - dual + rounding >= primal - least

    def test_without_intercept(self):
        X, y, _ = draw(500, 5, 3)
        problem, solution = fit(X, y, 1.0, fit_intercept=False)
        assert not solution.W[-1].any()
        g = Plain(X, y, None, 1.0).gradient(solution.W)
        np.testing.assert_allclose(g[:-1], 0.0, atol=1e-8)
        assert gap_of(problem, solution)[0] <= 1e-6

    @pytest.mark.parametrize("size", [(300, 5, 4), (3000, 60, 3)])
    def test_weight_two_is_a_row_twice(self, size):
        X, y, _ = draw(*size, scale=0.4)
        weight = np.where(np.arange(len(y)) % 3 == 0, 2.0, 1.0)
        twice = np.repeat(np.arange(len(y)), weight.astype(int))
        weighted = fit(X, y, 1.0, weight=weight)[1].W
        repeated = fit(X[twice], y[twice], 1.0)[1].W
        np.testing.assert_allclose(weighted, repeated, rtol=0, atol=1e-8)

    @pytest.mark.parametrize("size", [(300, 5, 4), (2000, 80, 5)])
    def test_dense_is_sparse(self, size):
        X, y, _ = draw(*size, scale=0.3)
        X[np.abs(X) < 1.0] = 0.0
        dense, sparse = fit(X, y), fit(sp.csr_matrix(X), y)
        values = [gap_of(*pair)[1] for pair in (dense, sparse)]
        assert values[0] == pytest.approx(values[1], rel=1e-6)
        assert sparse[1].status is Status.CERTIFIED

    def test_many_sparse_features(self):
        rng = np.random.default_rng(0)
        X = sp.random(400, 3000, density=0.01, format="csr", random_state=rng)
        y = rng.integers(0, 4, 400)
        problem, solution = fit(X, y, 10.0)
        assert solution.status is Status.CERTIFIED
        assert gap_of(problem, solution)[0] <= 1e-6 * gap_of(problem, solution)[1]

    def test_order_of_rows_and_names_of_classes_do_not_matter(self):
        X, y, _ = draw(300, 4, 4)
        W = fit(X, y)[1].W
        shuffle, rename = np.random.default_rng(0).permutation(300), np.array([2, 0, 3, 1])
        other = fit(X[shuffle], rename[y[shuffle]])[1].W
        np.testing.assert_allclose(other[:, rename], W, rtol=0, atol=1e-8)

    def test_a_pilot_and_a_sample_lead_to_the_same_optimum(self, tuned):
        X, y, s = draw(60000, 5, 3, scale=0.5)
        tight = fit(X, y, weight=s, tol=1e-10)
        tuned(softmax_pilot_work=1, softmax_polish=0, softmax_sample_price=1e-3, softmax_worth=1e9)
        problem, solution = fit(X, y, weight=s)
        assert solution.status is Status.CERTIFIED
        assert gap_of(problem, solution)[1] == pytest.approx(gap_of(*tight)[1], rel=1e-6)

    def test_every_preconditioner_leads_to_the_optimum(self, monkeypatch):
        X, y, _ = draw(2000, 60, 4, scale=0.3)
        tight = gap_of(*fit(X, y, tol=1e-10))[1]
        for name, value in (("_BLOCK_ORDER", 1), ("_BLOCK_NUMBERS", 1), ("_WORTH", -1.0)):
            with monkeypatch.context() as patch:
                patch.setattr(coupled_directions, name, value)
                problem, solution = fit(X, y)
                assert solution.status is Status.CERTIFIED
                assert gap_of(problem, solution)[1] == pytest.approx(tight, rel=1e-6)

    def test_warm_start(self):
        X, y, _ = draw(3000, 60, 4, scale=0.3)
        problem, first = fit(X, y)
        before = problem.passes
        again = solve(problem, first.W, Stop())
        assert again.status is Status.CERTIFIED
        assert problem.passes - before < before / 2

    @pytest.mark.parametrize("size", [(200, 5, 4), (3000, 60, 4)])
    @pytest.mark.parametrize("length", [1.0, 100.0, 1e4])
    def test_bad_start(self, size, length):
        """Saturated exponentials tell nothing; the run begins anew where they do not."""
        X, y, _ = draw(*size, scale=0.3)
        _, d, k = size
        start = length * np.random.default_rng(0).normal(size=(d + 1, k))
        problem = problem_of(X, y)
        solution = solve(problem, start, Stop())
        assert solution.status is Status.CERTIFIED
        assert gap_of(problem, solution)[1] == pytest.approx(gap_of(*fit(X, y))[1], rel=1e-6)


class TestLimits:
    @pytest.mark.parametrize("size", [(300, 5, 4), (3000, 60, 4)])
    def test_passes(self, size):
        X, y, _ = draw(*size, scale=0.5)
        for most in (1, 3, 6):
            problem, solution = fit(X, y, max_passes=most)
            assert solution.status is Status.PASS_LIMIT
            assert solution.passes <= most + 2
            gap, primal = gap_of(problem, solution)
            assert 0 < gap < np.inf
            assert primal <= len(y) * np.log(problem.k) * (1 + 1e-12)

    def test_time(self):
        X, y, _ = draw(3000, 60, 4)
        _, solution = fit(X, y, time_limit=0.0)
        assert solution.status is Status.TIME_LIMIT
        assert np.isfinite(solution.W).all()

    def test_trace_is_in_reported_units(self):
        X, y, _ = draw(3000, 60, 4, scale=0.3)
        problem, solution = fit(X, y, 7.0)
        last = solution.trace[-1]
        assert last.primal == pytest.approx(7.0 * gap_of(problem, solution)[1])
        assert last.primal * (1 - 1e-6) <= last.dual <= last.primal * (1 + 1e-12)
        assert [r.passes for r in solution.trace] == sorted(r.passes for r in solution.trace)


class TestNoPenalty:
    @pytest.mark.parametrize("size", [(500, 4, 3), (4000, 40, 5)])
    def test_gradient_vanishes(self, size):
        X, y, s = draw(*size, scale=0.3)
        _, solution = fit(X, y, np.inf, weight=s)
        assert solution.status is Status.WORKING_PRECISION
        g = Plain(X, y, s, 0.0).gradient(solution.W)
        assert np.abs(g).max() <= 1e-7
        np.testing.assert_allclose(solution.W.sum(axis=1), 0.0, atol=1e-12)

    def test_shortest_of_many_minimisers(self):
        X, y, _ = draw(500, 3, 3, scale=0.3)
        single = fit(X, y, np.inf)[1].W
        doubled = fit(np.c_[X, X[:, 0], np.full(500, 2.0)], y, np.inf)[1].W
        np.testing.assert_allclose(doubled[3], doubled[0], atol=1e-9)
        np.testing.assert_allclose(2 * doubled[0], single[0], atol=1e-8)
        np.testing.assert_allclose(doubled[4], 0.0, atol=1e-9)
        np.testing.assert_allclose(doubled[-1], single[-1], atol=1e-8)

    @pytest.mark.parametrize("size", [(120, 4, 3), (600, 60, 4)])
    def test_refuses_separable_classes(self, size):
        X, y, _ = draw(*size)
        X[:, 0] += 20 * y
        X[:, 1] -= 5 * y**2
        X = X + 30 * np.eye(size[1])[y]
        with pytest.raises(SeparableData, match="strictly correctly") as caught:
            fit(X, y, np.inf)
        V, b = caught.value.direction
        Z = X @ V + b
        own = Z[np.arange(len(y)), y]
        Z[np.arange(len(y)), y] = -np.inf
        assert (own > Z.max(axis=1)).all()

    def test_refuses_one_class_apart(self):
        X, y, _ = draw(300, 3, 3, scale=0.3)
        X[y == 0] += 15.0
        with pytest.raises(SeparableData, match="no row's loss rises") as caught:
            fit(X, y, np.inf)
        V, b = caught.value.direction
        Z = X @ V + b
        margin = Z[np.arange(300), y][:, None] - Z
        assert margin.min() >= -1e-12
        assert margin.max() > 0.1

    def test_refuses_a_feature_of_one_class(self):
        X, y, _ = draw(600, 3, 3, scale=0.3)
        X = np.c_[X, (y == 0) & (np.arange(600) % 3 == 0)]
        with pytest.raises(SeparableData, match="no row's loss rises") as caught:
            fit(X, y, np.inf)
        V, _ = caught.value.direction
        assert V[3, 0] > 0 > V[3, 1]


def test_nearly_separable_classes_end_by_the_whole_hessian():
    """Blocks of one class each took 337 passes here; of 16,713 x 359 and five classes, 7,800 passes and 20 s."""
    rng = np.random.default_rng(0)
    X = np.round(20.0 * rng.standard_normal((1500, 60)))
    z = X @ rng.standard_normal(60)
    problem, solution = fit(X, np.digitize(z, np.quantile(z, [0.2, 0.4, 0.6, 0.8])), C=100.0)
    assert solution.status is Status.CERTIFIED
    assert problem.passes < 250


def test_rows_without_curvature_are_left_out_of_the_preconditioner():
    X, y = draw(400, 5, 3, seed=1)[:2]
    problem = problem_of(X, y, C=1e4)
    W = np.zeros((6, 3))
    problem.value_gradient(W)
    assert coupled_directions.carry_curvature(problem) is problem
    W[:3] = 200.0 * np.eye(3)
    problem.value_gradient(W)
    some = coupled_directions.carry_curvature(problem)
    mu = problem.centre()
    assert some.data.n < 0.8 * problem.data.n
    lost = problem.hessian(mu) - some.hessian(mu)
    assert np.linalg.eigvalsh(lost)[-1] <= 100.0 * problem.lam


def test_features_absent_from_different_classes_have_no_minimiser():
    """Each feature excludes other classes, so no two columns of the recession direction agree as a whole."""
    rng = np.random.default_rng(338)
    n, k = 900, 5
    y = rng.integers(0, k, n)
    X = rng.normal(size=(n, 6))
    X[:, 3] = np.where(y < 2, 0, rng.poisson(1.0, n))
    X[:, 4] = np.where((y == 1) | (y == 3), 0, rng.poisson(1.0, n))
    X[:, 5] = np.where(y == 4, 0, rng.poisson(1.0, n))
    with pytest.raises(SeparableData) as caught:
        linsep.LogisticRegression(np.inf).fit(X, y)
    W, b = caught.value.direction
    scores = X @ W + b
    margins = scores[np.arange(n), y][:, None] - scores
    assert margins.min() >= 0.0 and margins.max() > 0.0
