"""One subproblem of a model, as an independent check reads it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from linsep.certificates.recheck import Dual
from linsep.losses import CoupledLoss, Loss
from linsep.penalties import ElasticNet

FloatArray = npt.NDArray[np.float64]


class Part(NamedTuple):
    """One subproblem with the coefficients and the dual point that claim to solve it."""

    loss: Loss | CoupledLoss
    penalty: ElasticNet
    fit_intercept: bool
    X: Any
    sigma: Any
    offset: FloatArray | None
    weight: FloatArray | None
    labels: Any
    W: FloatArray
    dual: Dual
    tol: float
