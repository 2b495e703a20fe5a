"""scikit-learn-intelex: the oneDAL versions of scikit-learn's lbfgs and newton-cg, free intercept, dense rows."""

from __future__ import annotations

from rivals.contest import TOLERANCES, Answer, Contestant, Fit, Task, linear


def _logistic(solver: str) -> object:
    def prepare(task: Task) -> Fit:
        from sklearnex.linear_model import LogisticRegression

        def fit(tol: float) -> Answer:
            model = LogisticRegression(
                C=task.C, solver=solver, tol=tol, max_iter=100_000, n_jobs=task.threads
            )
            return linear(model.fit(task.X, task.y))

        return fit

    return prepare


def _dense(task: Task) -> bool:
    return not task.sparse and task.C < float("inf")


CONTESTANTS = tuple(
    Contestant(solver, ("logistic",), "free", "tol", TOLERANCES, _logistic(solver), "all", _dense)
    for solver in ("lbfgs", "newton-cg")
)
