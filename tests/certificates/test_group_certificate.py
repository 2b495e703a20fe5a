"""The certificate of penalties with factors and groups: every dual point, however bad, proves a true bound."""

import time
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from linsep.certificates import Part, recheck_part
from linsep.certificates.exact.penalty import enclose_norm
from linsep.certificates.group import group_certificate
from linsep.data import Memory
from linsep.interrupts import until
from linsep.losses import get
from linsep.penalties import GroupElasticNet
from linsep.problem import GroupProblem
from linsep.solution import Explicit, Linearised, Stop
from linsep.solvers.group import block_newton

LOSSES = ("logistic", "squared_hinge", "huberised_hinge", "exponential")
FACTORS = {
    "even": [1.0] * 5,
    "spread": [1e-6, 1.0, 1e6, 3.0, 0.1],
    "free": [0.0, 1.0, 2.0, 0.0, 0.3],
}


def drawn(seed, loss, factors, ratio, groups=(0, 1, 2, 3, 4), n=40, intercept=True):
    """A problem with a solution whose gap is far below tol."""
    rng = np.random.default_rng(seed)
    factor, group = np.array(FACTORS[factors]), np.array(groups)
    factor = factor[np.unique(group, return_index=True)[1]][group]
    X = rng.normal(size=(n, 5)) + 0.3
    y = np.sign(X @ rng.normal(size=5) + 2.0 * rng.normal(size=n))
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], n)
    penalty = GroupElasticNet(10.0 ** rng.uniform(-2, 1), ratio, factor, group)
    problem = GroupProblem(get(loss), penalty, Memory(X, y, None, weight), intercept)
    found = block_newton.solve(problem, np.zeros(6), Stop(1e-9), 0)
    return Part(get(loss), penalty, intercept, X, y, None, weight, None, found.W, found.dual, 1e-6)


def test_dual_variables_are_not_repaired_past_the_deadline():
    """Repairing them may take minutes for thousands of features without a penalty; 0 is a bound at once."""
    part = drawn(0, "logistic", "free", 0.0)
    assert group_certificate(part).certified
    with until(time.perf_counter() - 60.0):
        found = group_certificate(part)
    assert found.dual == 0.0 and not found.certified


def objective(part):
    """P in the units that users read, to 50 digits, by its formula."""
    formulas = {
        "logistic": lambda m: mpmath.log1p(mpmath.exp(-m)),
        "squared_hinge": lambda m: max(mpmath.mpf(0), 1 - m) ** 2,
        "exponential": lambda m: mpmath.exp(-m),
        "hinge": lambda m: max(mpmath.mpf(0), 1 - m),
    }
    with mpmath.workdps(50):
        w = [mpmath.mpf(float(x)) for x in part.W[:, 0]]
        total = mpmath.mpf(0)
        for x, sign, s in zip(np.asarray(part.X), part.sigma, part.weight, strict=True):
            z = sum(mpmath.mpf(float(a)) * b for a, b in zip(x, w, strict=False)) + w[-1]
            total += mpmath.mpf(float(s)) * formulas[part.loss.name](mpmath.mpf(float(sign)) * z)
        p, r = part.penalty, mpmath.mpf(part.penalty.l1_ratio)
        value = mpmath.mpf(p.C) * total
        for j, f in enumerate(p.factor):
            value += (1 - r) / 2 * mpmath.mpf(float(f)) * w[j] ** 2
        for g, q in enumerate(p.group_weights):
            own = sum(w[j] ** 2 for j in np.flatnonzero(p.group == g))
            value += r * mpmath.mpf(float(q)) * mpmath.sqrt(own)
        return value


@pytest.mark.sampled(20)
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "exponential"])
@pytest.mark.parametrize("factors", FACTORS)
@pytest.mark.parametrize("ratio", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("groups", [(0, 1, 2, 3, 4), (0, 1, 1, 2, 1), (0, 0, 0, 0, 0)])
def test_the_enclosure_contains_the_objective(loss, factors, ratio, groups):
    part = drawn(3, loss, factors, ratio, groups)
    found, truth = recheck_part(part), objective(part)
    assert found.certified
    assert abs(mpmath.mpf(found.primal) - truth) <= found.rounding
    assert found.dual <= truth
    exact = recheck_part(part, exact=True)
    assert exact.certified and exact.primal >= truth - mpmath.mpf(2) ** -50 * truth
    assert exact.dual >= found.dual and exact.dual <= truth


@pytest.mark.slow
@given(
    st.integers(0, 10**6),
    st.sampled_from(LOSSES),
    st.sampled_from(sorted(FACTORS)),
    st.sampled_from([0.0, 0.4, 1.0]),
    st.sampled_from([(0, 1, 2, 3, 4), (0, 1, 1, 2, 1), (0, 0, 0, 0, 0)]),
    st.booleans(),
    st.sampled_from(["random", "outside", "not finite", "one sided", "slopes", "near"]),
)
def test_no_dual_point_proves_too_much(seed, loss, factors, ratio, groups, intercept, kind):
    """Lower bounds lie below the objective at the optimum, and so does that of exact arithmetic."""
    part = drawn(seed, loss, factors, ratio, groups, intercept=intercept)
    best = recheck_part(part)
    rng, n = np.random.default_rng(seed), 40
    dual = {
        "random": Explicit(rng.uniform(0, 1, n)),
        "outside": Explicit(rng.normal(scale=50.0, size=n)),
        "not finite": Explicit(rng.choice([np.nan, np.inf, -np.inf, 0.1], n)),
        "one sided": Explicit(np.full(n, 0.9)),
        "slopes": Linearised(part.W, np.zeros_like(part.W)),
        "near": Linearised(part.W, 1e-3 * rng.normal(size=part.W.shape)),
    }[kind]
    other = part._replace(dual=dual)
    for found in (recheck_part(other), recheck_part(other, exact=True)):
        assert found.dual <= best.primal + best.rounding
        assert found.gap >= 0.0


@pytest.mark.parametrize("factors", ["free", "spread"])
@pytest.mark.parametrize("ratio", [0.0, 0.4, 1.0])
def test_other_coefficients_are_not_certified(factors, ratio):
    part = drawn(5, "logistic", factors, ratio)
    for j in range(6):
        W = part.W.copy()
        W[j] += 0.3
        assert not recheck_part(part._replace(W=W)).certified


def test_sparse_rows_give_the_same():
    part = drawn(7, "logistic", "free", 0.4)
    sparse = recheck_part(part._replace(X=sp.csr_matrix(part.X)))
    assert sparse.primal == pytest.approx(recheck_part(part).primal, rel=1e-14)
    assert sparse.certified


def test_unpenalised_columns_that_no_dual_point_suits_prove_nothing():
    """With u = 0 everywhere no row has room to clear a column: the bound is that of u = 0, which is 0."""
    part = drawn(9, "squared_hinge", "free", 1.0)
    found = recheck_part(part._replace(dual=Explicit(np.zeros(40))))
    assert found.dual == 0.0


def test_penalties_below_the_smallest_numbers_prove_nothing():
    part = drawn(9, "logistic", "even", 1.0)
    tiny = GroupElasticNet(1.0, 1.0, np.full(5, 1e-300), np.arange(5))
    found = recheck_part(part._replace(penalty=tiny))
    assert not found.certified and found.dual == 0.0


def test_a_norm_is_enclosed():
    for values in (
        [Fraction(3), Fraction(4)],
        [Fraction(1, 10**40), Fraction(2)],
        [Fraction(-7, 3)],
    ):
        found = enclose_norm(values)
        square = sum(x * x for x in values)
        assert found.low**2 <= square <= found.high**2
        assert (found.high - found.low) * 2**150 <= found.high
    assert enclose_norm([Fraction(0), Fraction(0)]).high == 0
