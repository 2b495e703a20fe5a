"""Hand-over from one method to the next: where the next one starts."""

import numpy as np
import pytest

from linsep.data import Memory
from linsep.losses import Hinge, Logistic
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.solution import Explicit, Solution, Status, Stop
from linsep.solvers import plan


def overlapping_classes(n, d, noise):
    """Rows with ten common factors and the problem of the hinge on them, C = 1."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 10)) @ rng.normal(size=(10, d)) + rng.normal(size=(n, d))
    y = np.where(X @ rng.normal(size=d) + noise * rng.normal(size=n) > 0, 1.0, -1.0)
    data = Memory(X, y, None, None, None, 1)
    return Problem(Hinge(), ElasticNet(1.0), data, fit_intercept=True)


@pytest.mark.parametrize(
    ("after", "gap", "warm"),
    [
        ("interior", 0.1, True),
        ("interior", 0.9, False),
        ("sifting", 5e-4, True),
        ("sifting", 0.1, False),
    ],
)
def test_start_after_ascent(monkeypatch, after, gap, warm):
    """The next method starts where ascent stopped if that is near; sifting needs to be nearer."""
    problem = overlapping_classes(300, 40, 3.0)
    starts = []
    monkeypatch.setattr(plan, "_after_ascent", lambda problem, stop: [after])
    monkeypatch.setattr(plan.Relay, "gap", gap)
    inner = plan._AFTER_ASCENT[after]

    def record(problem, theta, stop, seed):
        starts.append(theta)
        return inner(problem, theta, stop, seed)

    monkeypatch.setitem(plan._AFTER_ASCENT, after, record)
    plan.ascent_then_primal(problem, np.zeros(41), Stop(1e-9), 0)
    assert [bool(theta.any()) for theta in starts] == [warm]


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [(0.5, 0.1, "first"), (0.1, 0.5, "second"), (0.5, None, "first"), (None, 0.5, "second")],
)
def test_of_two_methods_that_fall_short_the_better_result_is_kept(first, second, kept):
    """Points between 0 and the optimum, given by their share of the way; None for one without a closing pass."""
    problem = overlapping_classes(300, 40, 3.0)
    best = plan.ascent_then_primal(problem, np.zeros(41), Stop(1e-9), 0)
    results = {}

    def method(name, share):
        def solve(problem, theta, stop, seed):
            near = 0.0 if share is None else share
            W, dual = near * best.W, Explicit(near * best.dual.u)
            sums = None if share is None else problem.closing(np.ascontiguousarray(W[:, 0]), dual)
            status = Status.WORKING_PRECISION
            results[name] = Solution(W, dual, status, problem.passes, 1.0, sums=sums)
            return results[name]

        return solve

    both = plan.straight_lines(method("first", first), method("second", second), lambda _: True)
    found = both(problem, np.zeros(41), Stop(1e-6), 0)
    assert np.array_equal(found.W, results[kept].W)
    assert found.dual is results[kept].dual
    assert found.sums is results[kept].sums
    assert found.seconds == 2.0


def ill_conditioned_rows():
    """Logistic loss at C = 100 on polynomials of one variable: conjugate gradients need many products."""
    rng = np.random.default_rng(1)
    t = rng.uniform(-1, 1, size=400)
    X = np.vander(t, 40) + 0.01 * rng.normal(size=(400, 40))
    y = np.where(np.sin(7 * t) + 0.3 * rng.normal(size=400) > 0, 1.0, -1.0)
    data = Memory(X, y, None, None, None, 1)
    return Problem(Logistic(), ElasticNet(100.0), data, fit_intercept=True)


def test_conjugate_gradients_over_budget_are_followed_by_a_factorisation(monkeypatch):
    found = {}
    for budget in (10.0, np.inf):
        monkeypatch.setattr(plan, "_passes_worth_factorising", lambda *_, k=budget: k)
        problem = ill_conditioned_rows()
        found[budget] = plan.newton_truncated(problem, np.zeros(problem.order), Stop(1e-9), 0)
        assert found[budget].status is Status.CERTIFIED
        assert (problem.passes < 60) is (budget == 10.0)
    first, last = found.values()
    assert abs(first.trace[-1].primal - last.trace[-1].primal) <= 2e-9 * last.trace[-1].primal
    assert all(np.diff([t.dual for t in first.trace]) >= 0.0)


def test_a_limit_of_the_user_below_the_budget_ends_the_fit(monkeypatch):
    monkeypatch.setattr(plan, "_passes_worth_factorising", lambda *_: 20.0)
    problem = ill_conditioned_rows()
    stop = Stop(1e-9, max_passes=8)
    assert plan.newton_truncated(problem, np.zeros(problem.order), stop, 0).status is (
        Status.PASS_LIMIT
    )


def test_the_budget_of_conjugate_gradients_is_finite_only_where_costs_are_predicted():
    problem = ill_conditioned_rows()
    assert 1.0 < plan._passes_worth_factorising(problem, Stop(1e-6)) < np.inf
    unpenalised = Problem(Logistic(), ElasticNet(np.inf), problem.data, fit_intercept=True)
    assert plan._passes_worth_factorising(unpenalised, Stop(1e-6)) == np.inf
