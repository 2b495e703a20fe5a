"""Certificates without a penalty: curvature around the answer, or a dual point made feasible."""

import math

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from catalogue import dense
from hypothesis import given, settings
from hypothesis import strategies as st
from small_problems import CONVEX, SMOOTH, duals_for, naming, objective, optimum, problem

from linsep import LinearClassifier, losses, verify
from linsep.certificates import local_certificate
from linsep.certificates.curvature import certificate as local
from linsep.certificates.curvature.kernel_rows import KernelRows
from linsep.certificates.curvature.metric import bound
from linsep.certificates.curvature.rows import Rows
from linsep.data import Memory
from linsep.losses import Absolute, Hinge, Logistic, Squared
from linsep.penalties import ElasticNet
from linsep.solution import Explicit, Linearised


class TestLocal:
    """Without a penalty: curvature around the answer."""

    def certify(self, part, theta):
        W = theta[:, None]
        return local_certificate(part._replace(W=W, dual=Linearised(W, np.zeros_like(W))))

    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("C", [math.inf, 10.0])
    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("loss", SMOOTH, ids=naming)
    def test_covers_the_true_suboptimality(self, loss, fit_intercept, C):
        for seed in range(3):
            part = problem(loss, seed, n=60, fit_intercept=fit_intercept, C=C)
            best = optimum(part)
            scale = part.penalty.scale
            minimum = scale * objective(part, best)[0]
            for distance in (0.0, 1e-9, 1e-4, 1e-2, 0.1, 1.0):
                theta = best + distance * np.random.default_rng(seed).normal(size=len(best))
                theta[-1] *= fit_intercept
                found = self.certify(part, theta)
                value = scale * objective(part, theta)[0]
                assert found.primal == pytest.approx(value, rel=1e-13)
                assert found.gap >= value - minimum - 1e-13 * value
                assert found.dual <= minimum * (1 + 1e-13)
                assert np.linalg.norm(theta[:-1] - best[:-1]) <= found.coef_error + 1e-10
                if distance == 0.0:
                    assert found.kind == "local"
                    assert found.certified
                    assert found.coef_error < 1e-6
                if distance == 1e-4:  # close to the truth, not merely above it
                    assert found.gap <= 4 * (value - minimum) + 1e-9 * value

    @pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
    def test_replaces_a_dual_point_that_is_lost_in_rounding(self, loss):
        """Unscaled columns: curvature proves the optimum, the far slower doubled precision is not needed."""
        rng = np.random.default_rng(0)
        X = rng.normal(rng.uniform(-3, 3, 8), size=(2000, 8))
        y = np.where(X @ rng.normal(size=8) + 4 * rng.normal(size=2000) > 0, 1, -1)
        X *= 10.0 ** rng.uniform(0, 9, 8)
        model = LinearClassifier(loss=loss).fit(X, y)
        assert model.certificate_.certified
        assert model.certificate_.kind == "local"
        assert verify(model, X, y).certified

    def test_ill_conditioned_polynomial(self):
        x = np.linspace(0, 1, 200)
        X = x[:, None] ** np.arange(1, 11)
        target = np.sin(6 * x) + 0.1 * np.cos(50 * x)
        theta = np.linalg.lstsq(np.column_stack([X, np.ones(200)]), target, rcond=None)[0]
        part = problem(Squared())._replace(
            X=X, sigma=np.ones(200), offset=1 - target, weight=None, penalty=ElasticNet(math.inf)
        )
        assert np.linalg.cond(X) > 1e6
        assert self.certify(part, theta).certified
        assert not self.certify(part, theta + 0.01).certified

    def test_dependent_columns_are_certified_but_not_unique(self):
        part = problem(Logistic(), 4, n=80, C=math.inf)
        X = np.column_stack([part.X, part.X[:, 0], np.zeros(80), np.ones(80)])
        part = part._replace(X=X)
        found = self.certify(part, optimum(part))
        assert found.certified
        assert found.coef_error == math.inf
        assert "w*" not in str(found)

    def test_separable_data_have_no_certificate(self):
        X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
        part = problem(Logistic(), C=math.inf)._replace(
            X=X, sigma=np.sign(X[:, 0]), weight=None, penalty=ElasticNet(math.inf)
        )
        for size in (1.0, 10.0, 100.0, 700.0):  # the infimum 0 is never attained
            assert not self.certify(part, np.array([size, 0.0])).certified

    def test_exact_fit_is_certified(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(30, 3))
        theta = np.array([1.0, -2.0, 0.5, 3.0])
        target = X @ theta[:-1] + theta[-1]
        part = problem(Squared())._replace(
            X=X, sigma=np.ones(30), offset=1 - target, weight=None, penalty=ElasticNet(math.inf)
        )
        found = self.certify(part, theta * (1 + 1e-16))
        assert found.certified
        assert found.gap < 1e-25
        assert not self.certify(part, theta + 1e-9).certified

    def test_linear_tails_without_curvature_prove_nothing(self):
        """All rows in the tails of the Huber loss: H = 0, g is not in its range."""
        part = problem(losses.Huber(1e-3), C=math.inf)._replace(penalty=ElasticNet(math.inf))
        assert self.certify(part, np.array([50.0, 0.0, 0.0, 80.0])).dual == 0.0

    def test_kinks_do_not_pass_for_curvature(self):
        """At a kink the rounding error of the slope is as large as the slope: no excuse for a claim."""
        target = np.array([0.0, 1.0, 2.0, 10.0])
        part = problem(Absolute())._replace(
            X=np.zeros((4, 1)),
            sigma=np.ones(4),
            offset=1 - target,
            weight=None,
            penalty=ElasticNet(math.inf),
        )
        assert self.certify(part, np.array([0.0, 10.0])).dual == 0.0

    @pytest.mark.parametrize("kind", [sp.csr_matrix, lambda X: X.astype(np.float32)])
    def test_storage(self, kind):
        part = problem(Logistic(), 6, n=80, C=math.inf)
        part = part._replace(X=np.round(part.X * 8) / 8)
        best = optimum(part)
        dense, other = self.certify(part, best), self.certify(part._replace(X=kind(part.X)), best)
        assert other.primal == pytest.approx(dense.primal, rel=1e-14)
        assert other.certified


def test_the_radius_must_hold_the_minimiser():
    """2 mu / kappa <= rho is what the argument stands on."""
    tried = []

    def fading(rho):
        tried.append(rho)
        return 1.0 / (1.0 + rho)

    assert bound(1.0, fading) is None
    assert len(tried) == len(set(tried)) > 1
    assert bound(1.0, lambda rho: 0.1) == (5.0, 0.1)
    assert bound(1e-3, fading)[1] > 0.99
    assert bound(0.0, lambda rho: 1.0) == (0.0, 1.0)


class TestUnpenalised:
    """Without penalty and without curvature: a dual point made feasible."""

    def certify(self, part):
        return local_certificate(part._replace(penalty=ElasticNet(math.inf)))

    def least_absolute(self, seed, *, columns=None):
        """Solution and dual point of min sum s |t - z| by linear programming."""
        part = problem(Absolute(), seed, C=math.inf)
        X = part.X if columns is None else columns(part.X)
        n = len(X)
        A, target = np.column_stack([X, np.ones(n)]), 1 - part.offset
        cost = np.concatenate([np.zeros(2 * A.shape[1]), part.weight, part.weight])
        equal = np.hstack([A, -A, np.eye(n), -np.eye(n)])
        lp = scipy.optimize.linprog(cost, A_eq=equal, b_eq=target, method="highs")
        theta = lp.x[: A.shape[1]] - lp.x[A.shape[1] : 2 * A.shape[1]]
        u = np.divide(lp.eqlin.marginals, part.weight, out=np.zeros(n), where=part.weight > 0)
        return part._replace(X=X, W=theta[:, None], dual=Explicit(u)), lp.fun

    @pytest.mark.parametrize("seed", range(4))
    def test_least_absolute_deviations(self, seed):
        part, minimum = self.least_absolute(seed)
        found = self.certify(part)
        assert found.certified
        assert found.kind == "dual"
        assert found.dual <= minimum * (1 + 1e-13)
        further = self.certify(part._replace(W=part.W + 0.01))
        assert not further.certified
        assert further.gap >= further.primal - minimum - 1e-12

    def test_a_rounded_dual_point_is_repaired(self):
        """Targets near 1000: a balance that is off by 1e-6 would cost 1e-3 if it were only charged."""
        part, minimum = self.least_absolute(2)
        far = part._replace(offset=part.offset - 1000, W=part.W + np.array([[0], [0], [0], [1000]]))
        found = self.certify(far._replace(dual=Explicit(np.round(part.dual.u, 6))))
        assert found.certified
        assert found.dual <= minimum * (1 + 1e-10)

    def test_separable_by_a_hair(self):
        """0.1 + 0.2 > 0.3 in float64, so a huge w separates the two rows and the minimum is 0.

        The dual point u = (1, 1) misses feasibility by 5e-17, within the rounding of its own check.
        """
        part = problem(Hinge())._replace(
            X=np.array([[0.1 + 0.2], [0.3]]),
            sigma=np.array([1.0, -1.0]),
            weight=None,
            penalty=ElasticNet(math.inf),
            W=np.zeros((2, 1)),
            dual=Explicit(np.ones(2)),
        )
        assert self.certify(part).dual == 0.0

    def test_what_cannot_be_repaired_is_charged(self, tuned):
        """A balance that is off by 1e-8 times a target of 1e6 would lift the bound above the minimum."""
        tuned(refinements=0)
        target = 1e6 + np.array([0.0, 1.0, 2.0, 3.0, 4.0])
        part = problem(Absolute())._replace(
            X=np.zeros((5, 1)),
            sigma=np.ones(5),
            offset=1 - target,
            weight=None,
            penalty=ElasticNet(math.inf),
            W=np.array([[0.0], [1e6 + 2]]),
            dual=Explicit(np.array([-1.0, -1.0, 1e-8, 1.0, 1.0])),
        )
        found = self.certify(part)
        assert found.dual <= 6.0
        assert found.dual > 5.9

    def test_dependent_columns(self):
        def columns(X):
            rounded = np.round(64 * X) / 64
            return np.column_stack([rounded, rounded @ [1, 2, 3]])

        part, _ = self.least_absolute(1, columns=columns)
        assert self.certify(part).certified

    def test_huber_far_from_its_bend(self):
        """Almost every row in a straight tail: too few curved ones for the local argument."""
        part = problem(losses.Huber(0.01), 2, C=math.inf, weighted=False)
        best = optimum(part)
        found = self.certify(
            part._replace(W=best[:, None], dual=Linearised(best[:, None], 0 * best[:, None]))
        )
        minimum = objective(part, best)[0]
        assert found.dual <= minimum * (1 + 1e-13)
        assert found.certified

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("loss", CONVEX, ids=naming)
    @settings(max_examples=12)
    @given(seed=st.integers(0, 10_000), fit_intercept=st.booleans())
    def test_weak_duality(self, loss, seed, fit_intercept):
        rng = np.random.default_rng(seed)
        part = problem(loss, seed, n=12, d=2, fit_intercept=fit_intercept, C=math.inf)
        theta = rng.normal(size=3) * [1, 1, fit_intercept]
        for kind, dual in duals_for(part, theta, seed).items():
            found = self.certify(part._replace(W=theta[:, None], dual=dual))
            for scale in (0.0, 0.1, 1.0):
                other = scale * rng.normal(size=3) * [1, 1, fit_intercept]
                assert found.dual <= objective(part, other)[0] * (1 + 1e-12) + 1e-12, kind


STORED = {
    "dense": lambda X: X,
    "single": lambda X: X.astype(np.float32),
    "by columns": np.asfortranarray,
    "sparse": sp.csr_matrix,
}


@pytest.mark.sampled(14)
@pytest.mark.parametrize("storage", STORED)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", SMOOTH, ids=naming)
def test_kernels_find_what_numpy_finds(loss, fit_intercept, storage, tuned):
    """The certificate of a fit, whose sums are made by kernels, and that of ``verify``, in several blocks."""
    tuned(block_bytes=1 << 9, converted_bytes=1 << 9)
    part = problem(loss, 5, n=600, fit_intercept=fit_intercept, C=math.inf)
    X = STORED[storage](part.X)
    data = Memory(X, part.sigma, part.offset, part.weight, n_threads=2)
    theta = optimum(part) + 1e-5
    theta[-1] *= fit_intercept
    rows = KernelRows.of(data, fit_intercept)
    at = rows.visit(loss, theta[: rows.size])
    plain = Rows(X, rows.sigma, rows.offset, rows.weight, fit_intercept, 0.0)
    want = local.visit(loss, plain, theta[: rows.size])
    for name in ("m", "slope", "g", "primal"):
        expected = getattr(want, name)
        close = 1e-12 * np.abs(expected).max() + 1e-11
        np.testing.assert_allclose(getattr(at, name), expected, rtol=1e-12, atol=close)
    for name in ("e", "slope_error"):
        np.testing.assert_allclose(getattr(at, name), getattr(want, name), rtol=0.2, atol=1e-15)
    absolute = np.column_stack([np.abs(dense(X)), np.ones(600)])[:, : rows.size].T @ np.abs(
        at.slope
    )
    assert (at.sum_error >= 0.99 * rows.chain * absolute).all()
    h = np.random.default_rng(0).random(data.n)
    np.testing.assert_allclose(rows.gram(h), plain.gram(h), rtol=0, atol=1e-10)
    metric = plain.metric(h)
    np.testing.assert_allclose(rows.reach(metric), plain.reach(metric), rtol=1e-9)
    settings = {"scale": 1.0, "tol": 1e-6, "dual": None}
    found, expected = (
        local.certify_locally(loss, *pair, **settings) for pair in ((rows, at), (plain, want))
    )
    assert found.certified == expected.certified
    assert found.dual == pytest.approx(expected.dual, rel=1e-9)
