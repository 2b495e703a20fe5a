"""From a fitted model and new rows to scores Z = X W + b, and from scores to probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import log_softmax

from linsep.errors import BadInput
from linsep.estimators import inputs
from linsep.estimators.finite import refuse_nonfinite
from linsep.estimators.inputs import FloatArray
from linsep.losses import Logistic, Loss, Multinomial

_BLOCK = 1 << 19  # elements converted to float64 together


def scores(model: Any, X: Any) -> FloatArray:
    """Scores of the rows of X, (n, k): one column for two classes or a regression.

    A plain array of the right width, given to a model without column names, is multiplied at
    once. Anything else is checked and converted as scikit-learn does.
    """
    state = vars(model)
    if (
        not inputs.is_plain(X)
        or "coef_" not in state
        or "feature_names_in_" in state
        or X.shape[1] != state["n_features_in_"]
        or not len(X)
    ):
        X = inputs.rows_again(model, X)
    coef = model.coef_
    with np.errstate(all="ignore"):  # what overflows is refused below
        Z = product(X, coef.T if coef.ndim == 2 else coef[:, np.newaxis])
        Z += model.intercept_
    if not np.isfinite(Z).all():
        refuse_nonfinite(X, state.get("feature_names_in_"))
        _refuse_overflow(Z)
    return Z


def probabilities(loss: Loss | Multinomial, Z: FloatArray) -> FloatArray:
    """P(class | score), (n, k), each row adding up to 1.

    One column of scores is two classes; several, of a pointwise loss, are one-vs-rest
    probabilities divided by their sum.
    """
    if isinstance(loss, Multinomial):
        return loss.proba(Z)
    if Z.shape[1] == 1:
        # The margin of the first class is -z: its probability keeps its last digits this way.
        return loss.proba(np.hstack([-Z, Z]))
    P = loss.proba(Z)
    total = P.sum(axis=1, keepdims=True)
    lost = total[:, 0] == 0  # all underflow: the largest score takes everything
    if lost.any():
        P[lost, Z[lost].argmax(axis=1)] = total[lost] = 1.0
    P /= total
    return P


def log_probabilities(loss: Loss | Multinomial, Z: FloatArray) -> FloatArray:
    """Logarithm of ``probabilities``, without their underflow if the loss is minus a log."""
    if isinstance(loss, Multinomial):
        return np.asarray(log_softmax(Z, axis=1))
    if isinstance(loss, Logistic):  # log P(+1 | z) = -log(1 + e^-z) = -l(z)
        if Z.shape[1] == 1:
            return -loss.value(np.hstack([-Z, Z]))
        return np.asarray(log_softmax(-loss.value(Z), axis=1))
    with np.errstate(divide="ignore"):
        return np.log(probabilities(loss, Z))


def product(X: Any, W: FloatArray) -> FloatArray:
    """X W in float64; float32 rows are converted block by block."""
    if sp.issparse(X) or X.dtype == np.float64:
        Z: FloatArray = np.asarray(X @ W)
        return Z
    Z = np.empty((len(X), W.shape[1]))
    step = max(1, _BLOCK // X.shape[1])
    for start in range(0, len(X), step):
        block = slice(start, start + step)
        np.matmul(X[block].astype(np.float64), W, out=Z[block])
    return Z


def _refuse_overflow(Z: FloatArray) -> None:
    row = int(np.argmin(np.isfinite(Z).all(axis=1)))
    raise BadInput(
        f"The score of row {row} (counting from 0) is {Z[row].tolist()}: its numbers are too "
        "large to be multiplied by the coefficients in float64; rescale the columns."
    )
