"""Snap ML: coordinate descent, dual and primal.

Its objective is regularizer/2 |w|^2 + the sum of the losses, so regularizer = 1/C. An intercept is the penalised
weight of a column of ones; by default there is none, and both are entered, except that the primal solver
does not converge with one. Swept over its number of epochs, with a tolerance that never stops it.
"""

from __future__ import annotations

from rivals.contest import EPOCHS, Answer, Contestant, Fit, Task, linear


def _prepare(intercept: bool, **choice: object) -> object:
    def prepare(task: Task) -> Fit:
        from snapml import LogisticRegression, SupportVectorMachine

        make, extra = LogisticRegression, choice
        if task.loss in ("hinge", "squared_hinge"):
            make, extra = SupportVectorMachine, {"loss": task.loss}

        def fit(epochs: float) -> Answer:
            model = make(
                regularizer=1.0 / task.C,
                max_iter=int(epochs),
                tol=1e-30,
                fit_intercept=intercept,
                n_jobs=task.threads,
                random_state=0,
                **extra,
            )
            w, b = linear(model.fit(task.X, task.y))
            return w, b if intercept else 0.0

        return fit

    return prepare


def _has_penalty(task: Task) -> bool:
    return task.C < float("inf")


def _contestant(name: str, loss: str, intercept: bool, **choice: object) -> Contestant:
    kind = "penalised" if intercept else "absent"
    prepare = _prepare(intercept, **choice)
    return Contestant(name, (loss,), kind, "epochs", EPOCHS, prepare, "all", _has_penalty)


CONTESTANTS = (
    _contestant("dual", "logistic", True, dual=True),
    _contestant("dual no b", "logistic", False, dual=True),
    _contestant("primal no b", "logistic", False, dual=False),
    _contestant("svm", "squared_hinge", True),
    _contestant("svm no b", "squared_hinge", False),
    _contestant("svm hinge", "hinge", True),
    _contestant("svm hinge no b", "hinge", False),
)
