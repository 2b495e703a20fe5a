"""The move on along the way of the last epoch: where it ends, and that it leaves w, e and the intervals in order."""

import numpy as np
import pytest
from catalogue import STORAGES, Sample, dense, naming

from linsep.losses import HuberisedHinge, get
from linsep.solvers.dual_ascent.native import Ascent

LOSSES = [get("squared_hinge"), get("squared"), HuberisedHinge(0.5)]
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=naming)


def sample(shift, seed=0, n=60, d=20):
    """Rows of length about 1, their mean at a distance of ``shift``; weights of 1, 2 and 3."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6) / np.sqrt(0.6 * d)
    X[:, 0] += shift
    X = X.astype(np.float32).astype(float)
    sign = np.where(X[:, 1] + 0.1 * rng.normal(size=n) > -0.05, 1.0, -1.0)
    return Sample(X, sign, weight=rng.choice([1.0, 2.0, 3.0], size=n))


def state(native, sample, C, b0):
    """u, theta, e and the slopes of F (kernels/dual/coordinate_ascent.hpp) by each u, from the rows themselves."""
    X, e = dense(sample.X), native.e
    c = native.centre if len(native.along) else np.zeros(X.shape[1])
    w = native.theta[:-1] - e * C * c
    margins = sample.sign * ((X - c) @ w + b0 + native.stiffness * e)
    return native.u.copy(), native.theta.copy(), e, margins


@each_loss
@pytest.mark.parametrize("kind", STORAGES)
@pytest.mark.parametrize("shift", [0.0, 1.0], ids=["about 0", "far off"])
def test_it_ends_where_the_dual_is_highest_on_its_way(loss, kind, shift):
    table, C = sample(shift).in_storage(kind), 0.004
    X, y, s = dense(table.X), table.sign, table.weight
    problem = table.problem(loss, C)
    native = Ascent(problem, np.zeros(problem.order), 0).native
    assert native.hardness <= 0.3
    before = native.u.copy()
    for epoch in range(4):
        b0 = native.theta[-1]
        native.epoch()
        u, theta, e, margins = state(native, table, C, b0)
        assert e == pytest.approx(s @ (y * u), rel=1e-12, abs=1e-12)
        assert theta[:-1] == pytest.approx(C * X.T @ (s * y * u), rel=1e-11, abs=1e-13)
        assert u.min() >= loss.domain[0] and u.max() <= loss.domain[1]
        slopes, way = s * (margins - 1.0 + 0.5 * u), u - before  # the conjugates have l*'' = 1/2
        free = (u > loss.domain[0]) & (u < loss.domain[1])
        if epoch and (free | (way == 0.0)).all() and np.abs(way).max() > 1e-6:
            rounding = 1e-16 * s @ np.abs(u)  # of e, which the last move of it comes from
            size = np.linalg.norm(slopes) * np.linalg.norm(way)
            assert abs(slopes @ way) <= 1e-7 * size + rounding
        before = u
