"""skglm: compiled by numba at first use, which is done outside the clock.

Its objective is the mean loss + alpha/2 |w|^2, so alpha = 1/(C n). The quadratic penalty is served by L-BFGS, which
has no intercept; it is judged on the objective without one.
"""

from __future__ import annotations

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


def _has_penalty(task: Task) -> bool:
    return task.C < float("inf")


CONTESTANTS = (
    Contestant("lbfgs", ("logistic",), "absent", "tol", TOLERANCES, _prepare, "all", _has_penalty),
)
