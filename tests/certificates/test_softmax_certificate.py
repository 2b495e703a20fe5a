"""The certificate of the multinomial loss, with and without a penalty."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from small_problems import assert_same_sums, softmax_objective, softmax_optimum, softmax_problem

from linsep.certificates import (
    CoupledSums,
    Part,
    from_softmax_sums,
    softmax_local_certificate,
    softmax_sums_numpy,
)
from linsep.losses import Multinomial
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
        settings = {"lam": lam, "fit_intercept": fit_intercept, "scale": 1.0, "tol": 1e-6}
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
                found = from_softmax_sums(sums, W[:-1], loss=loss, rows_per_sum=80, **settings)
                assert found.primal == pytest.approx(value, rel=1e-12)
                assert found.gap >= value - minimum - 1e-11
                assert found.dual <= minimum + 1e-11
            penalty = ElasticNet(1.0 / lam if lam else math.inf)
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
            loss=Multinomial(3),
            lam=0.5,
            fit_intercept=True,
            scale=1.0,
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
                    loss=Multinomial(3),
                    lam=lam,
                    fit_intercept=True,
                    scale=1.0,
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
