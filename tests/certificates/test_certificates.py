"""A certificate must never claim more than is true, whatever the solver proposes."""

import dataclasses
import math
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from small_problems import (
    CONVEX,
    SMOOTH,
    assert_same_sums,
    certificate,
    duals_for,
    naming,
    newton_step,
    objective,
    optimum,
    problem,
)

from linsep.certificates import (
    ClosingSums,
    Optimality,
    closing_sums_numpy,
    combine,
    from_sums,
    parts,
)
from linsep.certificates.optimality import enclose
from linsep.errors import CertificateError, ConvergenceWarning, SeparableData
from linsep.losses import Exponential, Logistic
from linsep.penalties import ElasticNet
from linsep.solution import Explicit, Linearised


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", SMOOTH, ids=naming)
def test_slopes_far_from_the_optimum_still_bound_something(loss, fit_intercept):
    """As they are they make a dual point that is far too long; shrunk, its bound is positive."""
    part = problem(loss, 0, fit_intercept=fit_intercept, C=1e4)
    best = optimum(part)
    theta = np.zeros_like(best)
    dual = Linearised(theta[:, None], theta[:, None])
    found = certificate(part._replace(W=theta[:, None], dual=dual))
    assert 0.0 < found.dual <= 1e4 * objective(part, best)[0]


@pytest.mark.sampled(7)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", SMOOTH, ids=naming)
def test_gap_covers_the_true_suboptimality(loss, fit_intercept):
    for seed, C in enumerate((0.01, 1.0, 100.0)):
        part = problem(loss, seed, fit_intercept=fit_intercept, C=C)
        best = optimum(part)
        minimum = C * objective(part, best)[0]
        for distance in (0.0, 1e-6, 1e-2, 0.5):
            theta = best + distance * np.random.default_rng(seed).normal(size=len(best))
            theta[-1] *= fit_intercept
            for kind, dual in duals_for(part, theta, seed).items():
                found = certificate(part._replace(W=theta[:, None], dual=dual))
                value = C * objective(part, theta)[0]
                assert found.primal == pytest.approx(value, rel=1e-13)
                assert found.dual <= minimum * (1 + 1e-13), kind
                assert found.gap >= value - minimum - 1e-13 * value, kind
                assert found.gap >= found.primal - found.dual
                assert np.linalg.norm(theta[:-1] - best[:-1]) <= found.coef_error + 1e-9, kind


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", SMOOTH, ids=naming)
def test_newton_dual_proves_a_newton_answer(loss, fit_intercept):
    """At the optimum the gap is rounding, so the test above does not hold for want of trying."""
    part = problem(loss, 5, fit_intercept=fit_intercept)
    best = optimum(part)
    found = certificate(part._replace(W=best[:, None], dual=duals_for(part, best)["newton"]))
    assert found.relative_gap < 1e-12
    assert found.certified
    assert found.rounding <= found.gap


@pytest.mark.parametrize("loss", SMOOTH, ids=naming)
def test_newton_dual_sees_beyond_the_slopes(loss):
    """After one Newton step the linearised slopes prove far more than the plain ones."""
    part = problem(loss, 5, C=100.0)
    base = optimum(part) + 1e-3
    step = newton_step(part, base)
    after = part._replace(W=(base + step)[:, None])
    newton = certificate(after._replace(dual=Linearised(base[:, None], step[:, None])))
    plain = certificate(after._replace(dual=Linearised(base[:, None], 0 * step[:, None])))
    assert newton.gap < 0.01 * plain.gap


@pytest.mark.sampled(4)
@pytest.mark.parametrize("loss", CONVEX, ids=naming)
@given(
    seed=st.integers(0, 10_000),
    l1_ratio=st.sampled_from([0.0, 0.3, 1.0]),
    fit_intercept=st.booleans(),
    C=st.sampled_from([0.1, 1.0, 30.0]),
)
def test_weak_duality(loss, seed, l1_ratio, fit_intercept, C):
    """No lower bound ever exceeds the objective anywhere, for any dual point and penalty."""
    rng = np.random.default_rng(seed)
    part = problem(loss, seed, n=12, d=2, fit_intercept=fit_intercept)
    part = part._replace(penalty=ElasticNet(C, l1_ratio))
    theta = rng.normal(size=3) * [1, 1, fit_intercept]
    for kind, dual in duals_for(part, theta, seed).items():
        found = certificate(part._replace(W=theta[:, None], dual=dual))
        for scale in (0.0, 0.1, 1.0):
            other = scale * rng.normal(size=3) * [1, 1, fit_intercept]
            ridge, lasso = part.penalty.l2, part.penalty.l1
            plain = part._replace(penalty=ElasticNet(math.inf))
            value = objective(plain, other)[0] + ridge / 2 * other[:-1] @ other[:-1]
            value += lasso * np.abs(other[:-1]).sum()
            assert found.dual <= part.penalty.scale * value * (1 + 1e-12) + 1e-12, kind


def test_without_balance_an_infeasible_dual_would_lie():
    """Why the heavier side is shrunk: three rows of one class and one of the other.

    With u = 1/2 throughout and a strong penalty, minus the conjugates alone is 4 log 2, but the free
    intercept attains the entropy of (3/4, 1/4), which is less.
    """
    X, sigma = np.zeros((4, 1)), np.array([1.0, 1.0, 1.0, -1.0])
    minimum = 4 * math.log(4) - 3 * math.log(3)
    W = np.array([[0.0], [math.log(3)]])
    sums = closing_sums_numpy(Logistic(), X, sigma, None, None, W, Explicit(np.full(4, 0.5)))
    settings = {"tol": 1e-6, "rows_per_sum": 5}
    naive = from_sums(sums, W[:-1, 0], ElasticNet(), fit_intercept=False, **settings)
    honest = from_sums(sums, W[:-1, 0], ElasticNet(), fit_intercept=True, **settings)
    assert -sums.conj_plus - sums.conj_minus > minimum + 0.5
    # A bound above what is attained proves nothing.
    assert not naive.certified and naive.dual == 0.0
    assert honest.primal == pytest.approx(minimum)
    assert honest.dual <= minimum


@pytest.mark.parametrize("loss", CONVEX, ids=naming)
def test_weight_two_is_the_row_twice(loss):
    part = problem(loss, 2, weighted=False)
    n = len(part.X)
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 3, n)
    again = np.repeat(np.arange(n), counts)
    theta = rng.normal(size=(4, 1))
    u = rng.uniform(*np.clip(loss.domain, -1, 1), n)
    offset = None if part.offset is None else part.offset[again]
    for dual, dual_again in (
        (Explicit(u), Explicit(u[again])),
        (Linearised(theta, 0.01 * theta), Linearised(theta, 0.01 * theta)),
    ):
        once = closing_sums_numpy(
            loss, part.X, part.sigma, part.offset, counts.astype(float), theta, dual
        )
        twice = closing_sums_numpy(
            loss, part.X[again], part.sigma[again], offset, None, theta, dual_again
        )
        assert_same_sums(once, twice)


@pytest.mark.parametrize("form", ["csr", "csr_array", "float32", "int", "fortran", "chunks"])
def test_storage_does_not_matter(form, tuned):
    part = problem(Logistic(), 3, n=60, d=4)
    X = np.round(part.X * 4) * (np.abs(part.X) > 0.5)
    forms = {
        "csr": sp.csr_matrix,
        "csr_array": lambda X: sp.csr_array(X.astype(np.float32)),
        "float32": lambda X: X.astype(np.float32),
        "int": lambda X: X.astype(np.int32),
        "fortran": np.asfortranarray,
        "chunks": lambda X: X,
    }
    theta = np.linspace(-1, 1, 5)[:, None]
    args = part.sigma, None, part.weight, theta, Linearised(theta, 0.1 * theta)
    dense = closing_sums_numpy(part.loss, X, *args)
    if form == "chunks":
        tuned(recheck_entries=16)
        assert parts.longest_sum(X) == 4 + 15
    assert_same_sums(closing_sums_numpy(part.loss, forms[form](X), *args), dense)


def test_flat_layout():
    d = 3
    vec = np.arange(8.0 + 2 * d)
    sums = ClosingSums.from_flat(vec, d)
    assert (sums.loss, sums.conj_plus, sums.conj_minus) == (0, 1, 2)
    assert (sums.mass_plus, sums.mass_minus, sums.magnitude, sums.absolute) == (3, 4, 5, 6)
    assert sums.v_plus.tolist() == [8, 9, 10]
    assert sums.v_minus.tolist() == [11, 12, 13]


def test_exponential_overflow_is_no_certificate():
    part = problem(Exponential(), 0)
    found = certificate(part._replace(W=np.full((4, 1), -1e6)))
    assert found.primal == math.inf
    assert not found.certified
    assert "not finite" in str(found)


class TestOptimality:
    good = Optimality(123.456789, 123.45678, 9e-6, 7.3e-8, 1.3e-4, 1e-6, True)
    poor = Optimality(10.0, 9.0, 1.0, 0.1, 1.4, 1e-6, False, rounding=1e-9)

    def test_reads_as_one_line(self):
        assert str(self.good) == (
            "certified optimum: objective 123.456789, lower bound 123.45678, "
            "relative gap 7.3e-08 <= tol 1e-06, |w - w*| <= 1.3e-04"
        )

    def test_not_certified_says_what_to_do(self):
        text = str(self.poor)
        assert text.startswith(
            "not certified: objective 10, lower bound 9, relative gap 1.0e-01 > tol"
        )
        assert "time_limit" in text
        assert "\n" not in text
        rounded = dataclasses.replace(self.poor, rounding=0.9)
        assert "rounding" in str(rounded)
        assert "raise tol above" in str(rounded)
        assert "not finite" in str(dataclasses.replace(self.poor, primal=math.inf))

    def test_combine_adds_bounds_and_asks_every_part(self):
        both = combine([self.good, self.good])
        assert both.primal == 2 * self.good.primal
        assert both.gap == 2 * self.good.gap
        assert both.coef_error == pytest.approx(math.sqrt(2) * self.good.coef_error)
        assert both.certified
        assert both.parts == (self.good, self.good)
        mixed = combine([self.good, self.poor])
        assert not mixed.certified
        assert "1 of 2 parts" in str(mixed)
        assert combine([self.poor]) is self.poor

    def test_is_frozen_and_picklable(self):
        with pytest.raises(dataclasses.FrozenInstanceError):
            self.good.certified = False
        assert pickle.loads(pickle.dumps(self.good)) == self.good

    def test_errors_survive_a_process_border(self):
        error = pickle.loads(pickle.dumps(CertificateError("no", self.good)))
        assert (str(error), error.certificate) == ("no", self.good)
        warning = pickle.loads(pickle.dumps(ConvergenceWarning("slow", self.poor)))
        assert warning.certificate == self.poor
        separable = pickle.loads(pickle.dumps(SeparableData("apart", ([1.0], 0.0), [3])))
        assert (separable.direction, separable.rows) == (([1.0], 0.0), [3])


def test_a_bound_above_the_objective_proves_nothing():
    found = enclose(1.0, 2.0, 1e-9, scale=1.0, tol=1e-6, distance=1.0, kind="dual")
    assert not found.certified and found.dual <= found.primal and found.gap >= 1.0
