"""glum: generalised linear models, here binomial with the logistic link; free intercept.

Its objective is the mean negative log-likelihood + alpha/2 |w|^2, so alpha = 1/(C n).
"""

from __future__ import annotations

import numpy as np

from rivals.contest import TOLERANCES, Answer, Contestant, Fit, Task, linear


def _prepare(solver: str) -> object:
    def prepare(task: Task) -> Fit:
        from glum import GeneralizedLinearRegressor

        y = (task.y > 0).astype(np.float64)
        alpha = 1.0 / (task.C * task.n)

        def fit(tol: float) -> Answer:
            model = GeneralizedLinearRegressor(
                family="binomial",
                alpha=alpha,
                l1_ratio=0.0,
                solver=solver,
                gradient_tol=tol,
                max_iter=100_000,
            )
            return linear(model.fit(task.X, y))

        return fit

    return prepare


def _few_features(task: Task) -> bool:
    return task.d <= 2_000


CONTESTANTS = (
    Contestant(
        "irls", ("logistic",), "free", "tol", TOLERANCES, _prepare("irls-ls"), "all", _few_features
    ),
    Contestant("lbfgs", ("logistic",), "free", "tol", TOLERANCES, _prepare("lbfgs"), "all"),
)
