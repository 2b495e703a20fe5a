"""Rounds of Newton's method where they are dear: few, whatever the columns, the rows and the classes are like."""

import numpy as np
import pytest

from linsep.data import Location, Memory
from linsep.losses import get
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.solution import Status, Stop
from linsep.solvers import plan
from linsep.solvers.newton import cluster as newton_rounds
from linsep.solvers.newton.cluster import Model, NonquadraticProbe


class Counted(Memory):
    """Rows in memory that count what would be rounds on a cluster, the opening among them."""

    location = Location.DISK
    rounds = 1
    come: np.ndarray = np.zeros(0, dtype=np.int64)

    def sum(self, fn, size, **notes):
        self.rounds += 1
        return super().sum(fn, size, **notes)

    def sums(self, wanted, **notes):
        self.rounds += 1
        return super().sums(wanted, **notes)

    def visits(self, wanted, **notes):
        totals, found = super().visits(wanted, **notes)
        if "prefetch_rows" in notes:
            self.come = np.union1d(self.come, notes["prefetch_rows"](found))
        return totals, found

    def sample(self, rows, share=None):
        self.rounds += not np.isin(rows, self.come).all()
        return super().sample(rows, share)


def table(kind, n, d):
    rng = np.random.default_rng(0)
    X, shift = rng.normal(size=(n, d)), 0.0
    if kind == "heavy tails":
        X = rng.standard_t(2.5, size=(n, d))
    if kind == "rare columns":
        X = (rng.random((n, d)) < 10.0 ** rng.uniform(-4, -0.3, size=d)).astype(float)
    if kind == "rare class":
        shift = -8.0
    z = 2.0 * X @ rng.normal(size=d) / np.sqrt(d) + shift
    y = z + rng.logistic(size=n) > 0
    if kind == "scales and offsets":
        scale = 10.0 ** rng.uniform(-3, 3, size=d)
        X = X * scale + scale * rng.normal(size=d)
    if kind == "outliers":
        X[rng.random(n) < 1e-3] *= 1000.0
    return np.ascontiguousarray(X), np.where(y, 1.0, -1.0)


def fitted(X, sign, C, loss="logistic"):
    data = Counted(X, sign, n_threads=1)
    problem = Problem(get(loss), ElasticNet(C=C), data, True)
    return (
        data,
        problem,
        plan.newton_in_few_rounds(problem, np.zeros(X.shape[1] + 1), Stop(1e-6), 0),
    )


@pytest.mark.parametrize(
    "kind",
    [
        "normal",
        "scales and offsets",
        "heavy tails",
        "rare columns",
        "rare class",
        pytest.param("outliers", marks=pytest.mark.slow),
    ],
)
def test_six_rounds_are_enough(kind):
    X, sign = table(kind, 40_000, 40)
    for C in (0.01, 100.0):
        data, problem, solution = fitted(X, sign, C)
        assert solution.status is Status.CERTIFIED and data.rounds <= 6
        _, g = problem.value_gradient(solution.W[:, 0])
        H = problem.hessian(np.zeros(40))
        assert 0.5 * g @ np.linalg.solve(H, g) <= 1e-6 * problem.value_gradient(solution.W[:, 0])[0]


def test_rows_that_are_soon_here_come_when_steps_are_many(tuned):
    X, sign = table("outliers", 20_000, 60)
    data, problem, solution = fitted(X, sign, 100.0, "huberised_hinge")
    # brought: a fit in memory, whose last point is certified by all rows where they are
    assert data.rounds <= 14 and solution.sums is None and solution.status is Status.CERTIFIED
    at = solution.W[:, 0]
    primal, dual = problem.values(at, problem.closing(at, solution.dual))
    assert 0.0 <= primal - dual <= 1e-6 * primal
    tuned(cluster_few_entries=0)
    data, _, slow = fitted(X, sign, 100.0, "huberised_hinge")
    assert slow.sums is not None and data.rounds > 28


@pytest.mark.parametrize("kind", ["scales and offsets", "rare class", "rare columns"])
def test_a_table_with_few_rows_for_each_column_is_its_own_pilot(kind):
    X, sign = table(kind, 6_000, 200)
    data, _, solution = fitted(X, sign, 100.0)
    assert solution.status is Status.CERTIFIED and data.rounds == 4


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "exponential"])
def test_the_model_that_knows_all_rows_is_the_objective(loss):
    X, sign = table("normal", 300, 4)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, size=300)
    data = Memory(X, sign, None, weight)
    problem = Problem(get(loss), ElasticNet(C=0.1), data, True)
    theta, mu = np.array([0.3, -0.2, 0.1, 0.4, -0.1]), X.mean(axis=0)
    _, g = problem.value_gradient(theta)
    H = problem.hessian(mu)
    centred = np.append(g[:-1] - mu * g[-1], g[-1])
    step = Model(problem.loss, data, theta, mu, H, centred).minimiser()
    step[-1] -= mu @ step[:-1]
    _, at_end = problem.value_gradient(theta + step)
    assert np.abs(at_end).max() <= 1e-5 * np.abs(g).max()


def test_odd_rows_are_those_that_the_quadratic_model_misses_most():
    X, sign = table("outliers", 5_000, 3)
    data = Memory(X, sign)
    loss, step = get("logistic"), np.array([0.5, -0.5, 0.5, 0.0])
    base = np.array([0.1, 0.2, -0.1, 0.0])
    _, found = data.visit(lambda b, _: NonquadraticProbe(loss, base, step, 100_000, 5_000)(b), 1)
    rows = NonquadraticProbe.rows_of(found)
    m, dm = sign * (X @ base[:-1]), sign * (X @ step[:-1])
    p = 1.0 / (1.0 + np.exp(np.clip(m, -700, 700)))
    quadratic = np.logaddexp(0, -m) - p * dm + 0.5 * p * (1 - p) * dm**2
    error = np.abs(np.logaddexp(0, -m - dm) - quadratic)
    assert np.array_equal(rows, np.flatnonzero(error > newton_rounds.MODEL_ERROR))
    _, few = data.visit(lambda b, _: NonquadraticProbe(loss, base, step, 10, 5_000)(b), 1)
    chosen = NonquadraticProbe.rows_of(few)
    assert len(chosen) == 10 and error[chosen].min() >= np.sort(error)[-10]


@pytest.mark.parametrize("loss, bounded", [("logistic", True), ("exponential", False)])
def test_rows_that_move_little_are_not_evaluated(monkeypatch, loss, bounded):
    """The curvature of the logistic loss is at most 1/4, that of the exponential loss is unbounded."""
    X, sign = table("normal", 1_000, 3)
    data, step = Memory(X, sign), np.array([0.03, 0.0, 0.0, 0.0])
    data.X[7, 0] = 100.0
    evaluated, excess = [], newton_rounds.excess

    def counted(loss, m, change):
        evaluated.append(len(m))
        return excess(loss, m, change)

    monkeypatch.setattr(newton_rounds, "excess", counted)
    probe = NonquadraticProbe(get(loss), np.zeros(4), step, 1_000, 1_000)
    _, found = data.visit(lambda b, _: probe(b), 1)
    assert NonquadraticProbe.rows_of(found).tolist() == [7]
    assert sum(evaluated) == (1 if bounded else 1_000)
