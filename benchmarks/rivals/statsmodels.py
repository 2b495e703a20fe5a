"""statsmodels: Logit by Newton's method where there is no penalty (C = inf), GLM with a ridge where there is one.

The ridge objective is the mean negative log-likelihood + sum_j alpha_j/2 w_j^2 with alpha_j = 1/(C n) and 0 for the
intercept; scipy's BFGS minimises it and offers no tolerance.
"""

from __future__ import annotations

import numpy as np

from rivals.contest import TOLERANCES, Answer, Contestant, Fit, Task


def _prepare(task: Task) -> Fit:
    import statsmodels.api as sm

    X = np.column_stack([np.ones(task.n), task.X])
    y = (task.y > 0).astype(np.float64)

    def newton(tol: float) -> Answer:
        params = sm.Logit(y, X).fit(method="newton", tol=tol, maxiter=1000, disp=0).params
        return params[1:], float(params[0])

    def ridge(_: float) -> Answer:
        alpha = np.r_[0.0, np.full(task.d, 1.0 / (task.C * task.n))]
        model = sm.GLM(y, X, family=sm.families.Binomial())
        params = model.fit_regularized(alpha=alpha, L1_wt=0.0).params
        return params[1:], float(params[0])

    return ridge if task.C < float("inf") else newton


def _ridge_size(task: Task) -> bool:
    return not task.sparse and task.d <= 1_000 and task.C < float("inf")


def _newton_size(task: Task) -> bool:
    return not task.sparse and task.d <= 1_000 and task.C == float("inf")


CONTESTANTS = (
    Contestant("ridge", ("logistic",), "free", "none", (0.0,), _prepare, "all", _ridge_size),
    Contestant("newton", ("logistic",), "free", "tol", TOLERANCES, _prepare, "all", _newton_size),
)
