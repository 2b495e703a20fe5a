"""The certificate of the multinomial loss, with and without a penalty."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from small_problems import assert_same_sums, softmax_objective, softmax_optimum, softmax_problem

from linsep import LinearSVC, LogisticRegression, verify
from linsep.certificates import (
    CoupledSums,
    Part,
    from_softmax_sums,
    softmax_local_certificate,
    softmax_sums_numpy,
)
from linsep.certificates.softmax_precise import precise_coupled_certificate
from linsep.losses import CrammerSinger, Multinomial
from linsep.penalties import ElasticNet
from linsep.solution import Explicit, Linearised


class TestSoftmax:
    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("lam", [0.0, 1e-2, 1.0])
    def test_covers_the_true_suboptimality(self, lam, fit_intercept):
        k = 3
        loss = Multinomial(k)
        X, labels, s = softmax_problem()
        best = softmax_optimum(X, labels, s, lam, fit_intercept)
        minimum = best.fun
        penalty = ElasticNet(1.0 / lam if lam else math.inf)
        settings = {"fit_intercept": fit_intercept, "tol": 1e-6, "rows_per_sum": 80}
        rng = np.random.default_rng(1)
        for distance in (0.0, 1e-6, 1e-3, 0.3):
            W = (best.x + distance * rng.normal(size=9)).reshape(3, 3)
            W[-1] *= fit_intercept
            value = softmax_objective(W.ravel(), X, labels, s, lam, fit_intercept, k)[0]
            P = rng.dirichlet(np.ones(k), len(X))
            step = 0.01 * rng.normal(size=(3, 3))
            for dual in (
                Linearised(W, np.zeros((3, 3))),
                Linearised(W, step),
                Explicit(np.eye(k)[labels] - P),
                Explicit(rng.normal(size=(len(X), k))),
            ):
                sums = softmax_sums_numpy(loss, X, labels, s, W, dual)
                found = from_softmax_sums(sums, W[:-1], loss, penalty, **settings)
                assert found.primal == pytest.approx(penalty.scale * value, rel=1e-12)
                assert found.gap >= penalty.scale * (value - minimum - 1e-11)
                assert found.dual <= penalty.scale * (minimum + 1e-11)
            part = Part(loss, penalty, fit_intercept, X, None, None, s, labels, W, dual, 1e-6)
            local = softmax_local_certificate(part)
            assert local.gap >= penalty.scale * (value - minimum - 1e-11)
            assert local.dual <= penalty.scale * (minimum + 1e-11)
            if distance == 0.0:
                assert local.certified

    def test_gap_closes_at_the_optimum(self):
        X, labels, s = softmax_problem(3)
        W = softmax_optimum(X, labels, s, 0.5).x.reshape(3, 3)
        sums = softmax_sums_numpy(Multinomial(3), X, labels, s, W, Linearised(W, np.zeros((3, 3))))
        found = from_softmax_sums(
            sums,
            W[:-1],
            Multinomial(3),
            ElasticNet(2.0),
            fit_intercept=True,
            tol=1e-6,
            rows_per_sum=80,
        )
        assert found.relative_gap < 1e-9
        assert found.certified

    def test_newton_dual_sees_beyond_the_slopes(self):
        X, labels, s = softmax_problem(3)
        lam = 0.01
        base = softmax_optimum(X, labels, s, lam).x + 1e-3 * np.linspace(-1, 1, 9)

        def gradient(flat):
            return softmax_objective(flat, X, labels, s, lam, True, 3)[1]

        h = 1e-5
        H = np.stack(
            [(gradient(base + h * e) - gradient(base - h * e)) / (2 * h) for e in np.eye(9)]
        )
        step = -np.linalg.lstsq(H, gradient(base), rcond=1e-9)[0].reshape(3, 3)
        base = base.reshape(3, 3)
        gaps = []
        for change in (step, 0 * step):
            dual = Linearised(base, change)
            sums = softmax_sums_numpy(Multinomial(3), X, labels, s, base + step, dual)
            gaps.append(
                from_softmax_sums(
                    sums,
                    (base + step)[:-1],
                    Multinomial(3),
                    ElasticNet(1.0 / lam),
                    fit_intercept=True,
                    tol=1e-6,
                    rows_per_sum=80,
                ).gap
            )
        assert gaps[0] < 0.01 * gaps[1]

    def test_storage_and_weights(self):
        X, labels, _ = softmax_problem(4)
        X = np.round(X * 4)
        counts = np.random.default_rng(0).integers(0, 3, len(X))
        again = np.repeat(np.arange(len(X)), counts)
        W = np.linspace(-1, 1, 9).reshape(3, 3)
        dual = Linearised(W, 0.1 * W)
        once = softmax_sums_numpy(Multinomial(3), X, labels, counts.astype(float), W, dual)
        twice = softmax_sums_numpy(
            Multinomial(3), sp.csr_array(X[again]), labels[again], None, W, dual
        )
        assert_same_sums(once, twice)


def test_flat_layout():
    d, k = 3, 2
    flat = np.arange(4.0 + 2 * k + 2 * d * k + 2)
    assert CoupledSums.from_flat(flat[:-2], d, k).spread == 0.0
    soft = CoupledSums.from_flat(flat, d, k)
    assert (soft.loss, soft.entropy, soft.magnitude, soft.absolute) == (0, 1, 2, 3)
    assert soft.mass.tolist() == [4, 5]
    assert soft.residual.tolist() == [6, 7]
    assert soft.v.tolist() == [[8, 9], [10, 11], [12, 13]]
    assert soft.features[0].tolist() == [14, 15]
    assert (soft.spread, soft.bulk) == (20, 21)


class TestDoubledPrecision:
    """Sums in doubled precision prove what rounding hides: columns of identifiers and timestamps."""

    @staticmethod
    def _part(seed, loss, far, weight, fit_intercept=True):
        rng = np.random.default_rng(seed)
        n, k = 60, loss.k
        X = np.column_stack([rng.normal(size=n), far + 1e7 * rng.random(n)])
        labels = rng.permutation(np.arange(n) % k)
        s = rng.exponential(1.0, n) if weight else None
        W = rng.normal(size=(3, k)) * np.array([1.0, 1e-7, 1.0])[:, None]
        W[-1] = -far * W[1] if fit_intercept else 0.0
        U = np.eye(k)[labels] - rng.dirichlet(np.ones(k), n)
        penalty = ElasticNet(1e-3)
        return Part(loss, penalty, fit_intercept, X, None, None, s, labels, W, Explicit(U), 1e-6)

    @pytest.mark.parametrize("loss", [Multinomial(3), CrammerSinger(4)])
    @pytest.mark.parametrize("weight", [True, False])
    @pytest.mark.parametrize("fit_intercept", [True, False])
    def test_agrees_with_single_sums_where_these_are_accurate(self, loss, weight, fit_intercept):
        part = self._part(1, loss, 0.0, weight, fit_intercept)
        part = part._replace(X=part.X * np.array([1.0, 1e-7]))
        sums = softmax_sums_numpy(loss, part.X, part.labels, part.weight, part.W, part.dual)
        plain = from_softmax_sums(
            *(sums, part.W[:-1], loss, part.penalty),
            **{"fit_intercept": fit_intercept, "tol": 1e-6, "rows_per_sum": 60},
        )
        found = precise_coupled_certificate(part)
        assert found.primal == pytest.approx(plain.primal, rel=1e-13)
        assert found.dual == pytest.approx(plain.dual, rel=1e-10)
        assert found.rounding < plain.rounding

    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("far", [0.0, 1.6e9, 1e13])
    def test_the_objective_is_enclosed(self, seed, far):
        part = self._part(seed, CrammerSinger(4), far, True)
        part = part._replace(dual=Explicit(np.zeros((60, 4))))  # no V, whose error would count
        W = [[Fraction(float(w)) for w in row] for row in part.W]
        exact = Fraction(float(part.penalty.l2)) / 2 * sum(w * w for row in W[:-1] for w in row)
        for x, y, s in zip(part.X, part.labels, part.weight, strict=True):
            row = [Fraction(float(v)) for v in x] + [Fraction(1)]
            z = [sum(v * w[c] for v, w in zip(row, W, strict=True)) for c in range(4)]
            exact += Fraction(float(s)) * (max(z[c] + (c != y) for c in range(4)) - z[y])
        found = precise_coupled_certificate(part)
        exact = float(exact * Fraction(part.penalty.scale))
        assert abs(found.primal - exact) <= found.rounding
        assert found.rounding <= 1e-9 * exact

    @pytest.mark.parametrize("loss", ["hinge", "logistic"])
    def test_no_bound_exceeds_an_attained_objective(self, loss):
        rng = np.random.default_rng(3)
        X = np.column_stack([rng.normal(size=80), 1.6e9 + 1e8 * rng.random(80)])
        y = np.digitize(X[:, 0] + rng.normal(size=80), [-0.5, 0.5])
        if loss == "hinge":
            model = LinearSVC(0.1, multiclass="crammer_singer").fit(X, y)
        else:
            model = LogisticRegression(0.1).fit(X, y)
        (part,) = (Part(*part) for part in model._verification_parts(X, y, None))
        best = precise_coupled_certificate(part)
        assert best.certified
        for _ in range(20):
            P = rng.dirichlet(np.ones(3), 80)
            U = (np.eye(3)[part.labels] - P) * rng.choice([1.0, 1e-3, 1e-9])
            found = precise_coupled_certificate(part._replace(dual=Explicit(U)))
            assert found.dual <= best.primal
            assert found.gap >= (best.dual - best.rounding) - best.primal


def test_a_crammer_singer_fit_on_timestamps_is_certified_and_verified():
    rng = np.random.default_rng(442)
    n = 287
    X = np.column_stack([1.6e9 + 1e8 * rng.random((n, 2)), rng.integers(1, 10**7, (n, 2))])
    X = np.column_stack([X, rng.normal(size=(n, 3))])
    y = np.argmax(X[:, -3:] + 0.3 * rng.normal(size=(n, 3)), axis=1)
    model = LinearSVC(0.06, multiclass="crammer_singer").fit(X, y)
    assert model.certificate_.certified
    assert verify(model, X, y).certified
    assert verify(model, X, y, exact=True).certified
