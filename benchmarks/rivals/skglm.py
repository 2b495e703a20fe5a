"""skglm: compiled by numba at first use, which is done outside the clock.

Its objective is the mean loss + alpha/2 |w|^2, so alpha = 1/(C n). The quadratic penalty is served by L-BFGS, which
has no intercept; it is judged on the objective without one. The hinge is served by LinearSVC, coordinate descent with
working sets in the dual, without an intercept too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rivals.contest import TOLERANCES, Answer, Contestant, Fit, Task


def _prepare(task: Task) -> Fit:
    import scipy.sparse as sp
    from skglm.datafits import Logistic
    from skglm.penalties import L2
    from skglm.solvers import LBFGS
    from skglm.utils.jit_compilation import compiled_clone

    datafit, penalty = compiled_clone(Logistic()), compiled_clone(L2(1.0 / (task.C * task.n)))
    X = sp.csc_matrix(task.X) if task.sparse else task.X

    def fit(tol: float) -> Answer:
        w, _, _ = LBFGS(max_iter=100_000, tol=tol).solve(X, task.y, datafit, penalty)
        return w, 0.0

    LBFGS(max_iter=1, tol=1e9).solve(X[:50], task.y[:50], datafit, penalty)
    return fit


def _hinge(task: Task) -> Fit:
    from skglm import LinearSVC

    def fit(tol: float) -> Answer:
        model = LinearSVC(C=task.C, tol=tol, max_iter=1000, fit_intercept=False)
        return np.ravel(model.fit(task.X, task.y).coef_), 0.0

    LinearSVC(C=task.C, tol=1e9, fit_intercept=False).fit(*_both_classes(task))
    return fit


def _both_classes(task: Task) -> tuple[Any, np.ndarray]:
    """Some rows of either class, for the compiler to see."""
    rows = np.r_[np.flatnonzero(task.y < 0)[:20], np.flatnonzero(task.y > 0)[:20]]
    return task.X[rows], task.y[rows]


def _has_penalty(task: Task) -> bool:
    return task.C < float("inf")


CONTESTANTS = (
    Contestant("lbfgs", ("logistic",), "absent", "tol", TOLERANCES, _prepare, "all", _has_penalty),
    Contestant("LinearSVC", ("hinge",), "absent", "tol", TOLERANCES, _hinge, "all", _has_penalty),
)
