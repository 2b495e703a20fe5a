"""The judge. Everybody's coefficients are put into the same numpy text of the objective

    P(w, b) = 1/2 |w|^2 + C sum_i l(y_i (x_i.w + b))          intercept "free"
    P(w, b) = 1/2 (|w|^2 + b^2) + C sum_i l(...)              intercept "penalised"
    P(w)    = 1/2 |w|^2 + C sum_i l(y_i x_i.w)                intercept "absent"

(C = inf: the sum of the losses alone), and compared with the certified minimum of THAT objective. Solvers
differ in which of the three they minimise; each is judged on its own. Nothing here uses a kernel of linsep or
a line of a rival; only the lower bound comes from linsep, from a certificate that ``linsep.verify`` can repeat.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

INTERCEPTS = ("free", "penalised", "absent")
LOSSES = ("logistic", "squared_hinge", "hinge")
REFERENCE_TOL = 1e-9


def loss_sum(loss: str, margins: np.ndarray) -> float:
    if loss == "logistic":
        return float(np.logaddexp(0.0, -margins).sum())
    if loss == "squared_hinge":
        return float(np.square(np.maximum(0.0, 1.0 - margins)).sum())
    if loss == "hinge":
        return float(np.maximum(0.0, 1.0 - margins).sum())
    raise ValueError(f"the judge knows {LOSSES}, not {loss!r}")


@dataclass(frozen=True)
class Objective:
    X: Any  # float64, dense or CSR
    y: np.ndarray  # -1.0 or +1.0
    loss: str
    C: float
    intercept: str = "free"

    def value(self, w: np.ndarray, b: float) -> float:
        w = np.asarray(w, dtype=np.float64).ravel()
        b = float(b)
        if self.intercept == "absent" and b != 0.0:
            raise ValueError("this objective has no intercept")
        total = loss_sum(self.loss, self.y * (self.X @ w + b))
        if np.isinf(self.C):
            return total
        square = float(w @ w) + (b * b if self.intercept == "penalised" else 0.0)
        return 0.5 * square + self.C * total


@dataclass(frozen=True)
class Reference:
    """The minimum of an objective lies between ``lower`` and ``upper``."""

    upper: float
    lower: float

    @property
    def relative_gap(self) -> float:
        return (self.upper - self.lower) / max(abs(self.upper), 1e-300)

    def suboptimality(self, value: float) -> float:
        """(P - P*)/P; P* is taken at the upper end, so what doubt there is favours the judged."""
        if not (np.isfinite(value) and np.isfinite(self.upper)):
            return float("inf")
        return max(0.0, (value - self.upper) / max(abs(value), 1e-300))


def reference(objective: Objective, n_threads: int | None = None) -> Reference:
    """The certified minimum. A penalised intercept is the weight of one more column of ones."""
    from linsep import LinearClassifier

    free = objective.intercept == "free"
    X = objective.X
    if objective.intercept == "penalised":
        ones = np.ones((X.shape[0], 1))
        X = sp.hstack([X, ones], format="csr") if sp.issparse(X) else np.hstack([X, ones])
    model = LinearClassifier(
        objective.loss,
        C=objective.C,
        fit_intercept=free,
        tol=REFERENCE_TOL,
        n_threads=n_threads,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the gap reached is recorded, whatever it is
        model.fit(X, objective.y)
    w, b = model.coef_[0], float(model.intercept_[0])
    if objective.intercept == "penalised":
        w, b = w[:-1], float(w[-1])
    return Reference(upper=objective.value(w, b), lower=model.certificate_.dual)
