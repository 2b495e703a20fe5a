"""Hand-over from one method to the next: where the next one starts."""

import numpy as np
import pytest

from linsep.data import Memory
from linsep.losses import Hinge
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.solution import Stop
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
