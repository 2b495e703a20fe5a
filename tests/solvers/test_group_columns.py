"""Group penalties by descent over columns: optimality conditions, limits, and texts that Hessians cannot fit."""

from __future__ import annotations

import time

import numpy as np
import pytest
import scipy.sparse as sp

import linsep
from linsep import ConvergenceWarning, _kernels, losses
from linsep.data import Memory
from linsep.penalties import GroupElasticNet
from linsep.problem import GroupProblem
from linsep.solution import Stop
from linsep.solvers.l1 import coordinate
from linsep.solvers.run import Run

LOSSES = ("logistic", "squared_hinge", "huberised_hinge", "squared", "huber")


def sparse_rows(n, d, seed):
    """Sparse rows whose columns occur with falling frequency, as words do, and labels of a few of them."""
    rng = np.random.default_rng(seed)
    words = (d * rng.random((n, 12)) ** 3).astype(np.int64)
    X = sp.csr_matrix(
        (np.ones(words.size), (np.repeat(np.arange(n), 12), words.ravel())), shape=(n, d)
    )
    return X, np.where(X[:, :40] @ rng.normal(size=40) + rng.normal(size=n) > 0.0, 1.0, -1.0)


def groups_of(d, seed):
    """Groups of one to seven features, not adjacent, with factors 0.5 to 2."""
    rng = np.random.default_rng(seed)
    number = np.repeat(np.arange(d), rng.integers(1, 8, d))[:d]
    group = np.unique(rng.permutation(number), return_inverse=True)[1].astype(np.int64)
    return rng.choice([0.5, 1.0, 2.0], group.max() + 1)[group], group


def violation(problem, theta):
    """Largest distance of v_g from weight_g w_g/|w_g| + ridge_g w_g, relative to weight_g, by plain numpy."""
    penalty, data = problem.penalty, problem.data
    X = data.X.toarray() if sp.issparse(data.X) else data.X
    v = -X.T @ (data.sign * problem.loss.slope(data.sign * (X @ theta[:-1] + theta[-1])))
    away = []
    for g, weight in enumerate(penalty.thresholds):
        own = penalty.group == g
        w, rest = theta[:-1][own], (v - penalty.ridge * theta[:-1])[own]
        length = np.linalg.norm(w)
        off = (
            np.linalg.norm(rest - weight * w / length) if length else np.linalg.norm(rest) - weight
        )
        away.append(off / weight)
    return max(away)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.6])
@pytest.mark.parametrize("loss", LOSSES)
def test_descent_meets_the_optimality_conditions(loss, l1_ratio, dense):
    X, y = sparse_rows(300, 400, seed=1)
    factor, group = groups_of(400, seed=2)
    data = Memory(X.toarray() if dense else X, y)
    penalty = GroupElasticNet(2.0, l1_ratio, factor, group)
    problem = GroupProblem(losses.get(loss), penalty, data)
    run = Run(problem, Stop(1e-9))
    assert coordinate.applies(problem)
    assert not coordinate.close_start(run, np.zeros(401))
    assert coordinate.solve(run, run.best[1])
    theta = run.best[1]
    assert violation(problem, theta) <= 1e-3
    norms = penalty.norms(theta[:-1])
    assert 0 < np.count_nonzero(norms) < len(norms)


def test_unpenalised_features_are_left_to_hessians():
    X, y = sparse_rows(100, 300, seed=3)
    factor, group = np.ones(300), np.arange(300)
    factor[0] = 0.0
    problem = GroupProblem(
        losses.get("logistic"), GroupElasticNet(1.0, 1.0, factor, group), Memory(X, y)
    )
    assert not coordinate.applies(problem)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_weak_penalty_on_texts(loss):
    """With Hessians of the working sets these take minutes, or stall far from the optimum."""
    X, y = sparse_rows(2000, 9000, seed=4)
    _, group = groups_of(9000, seed=5)
    kind = linsep.LinearRegressor if loss == "squared" else linsep.LinearClassifier
    model = kind(loss, C=20.0, l1_ratio=1.0, feature_groups=group.tolist())
    began = time.process_time()
    model.fit(X, y)
    assert time.process_time() - began < 20.0
    assert model.certificate_.certified
    assert linsep.verify(model, X, y).certified


def test_time_limit_and_threads():
    X, y = sparse_rows(3000, 20000, seed=6)
    _, group = groups_of(20000, seed=7)
    options = {"loss": "squared", "C": 1e4, "l1_ratio": 1.0, "feature_groups": group.tolist()}
    with pytest.warns(ConvergenceWarning, match="time"):
        short = linsep.LinearRegressor(**options, time_limit=0.2).fit(X, y)
    assert np.isfinite(short.coef_).all()
    options["C"] = 0.5
    fits = [linsep.LinearRegressor(**options, n_threads=k).fit(X, y) for k in (1, 2)]
    assert fits[0].certificate_.certified
    assert np.array_equal(fits[0].coef_, fits[1].coef_)


def test_kernel_refuses_groups_that_do_not_cover_the_list():
    X, y = sparse_rows(50, 60, seed=8)
    columns = _kernels.Rows(np.ascontiguousarray(X.toarray().T))
    targets, at = _kernels.Targets(y, None, None), np.zeros(5)

    def call(first, weights):
        _kernels.column_newton(
            *(columns, targets, _kernels.Loss("logistic"), np.arange(4), np.array(first)),
            *(np.array(weights), np.zeros(len(weights)), 1e-3, 1, True),
            *(at, np.zeros(50), at.copy(), at.copy()),
        )

    call([0, 1, 4], [1.0, 1.0])
    for first, weights in (([0, 1, 3], [1.0, 1.0]), ([0, 0, 4], [1.0, 1.0]), ([0, 4], [0.0])):
        with pytest.raises(ValueError, match=r"group|weights"):
            call(first, weights)
