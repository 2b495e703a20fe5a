"""Scores Z = X W + b of a fitted model at new rows, and class probabilities from scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import log_softmax

from linsep import _kernels
from linsep.arrays import FloatArray, dense, n_entries
from linsep.data import Location, location_of
from linsep.data.cluster import predict_lazily
from linsep.data.entrance import inputs
from linsep.data.entrance.finite import refuse_nonfinite
from linsep.data.mapped_files import require_untruncated, watch
from linsep.data.row_access import row_blocks
from linsep.data.threads import in_parallel
from linsep.errors import BadInput, NonFinite
from linsep.losses import Logistic, Loss, Multinomial

_BLOCK = 1 << 19  # elements converted to float64 together
_PIECE = 1 << 17  # entries per task of a thread


def scores(
    model: Any, X: Any, correct: Callable[[Any, FloatArray], FloatArray] | None = None
) -> FloatArray:
    """Return the scores of the rows of X, (n, k): one column for two classes or a regression.

    A plain array or CSR matrix with the right number of columns, given to a model without column names, is
    multiplied without further checks. Anything else is validated and converted as in scikit-learn.
    ``correct(rows, scores)``, if given, returns the corrected scores.
    """

    def work(model: Any, rows: Any, first: int) -> FloatArray:
        Z = _scores(model, rows, first)
        return Z if correct is None else correct(rows, Z)

    return _by_blocks(work, model, _prepare_rows(model, X))


def dense_coef(model: Any) -> FloatArray:
    """Return ``coef_`` as a dense array, also after ``sparsify``."""
    coef = model.coef_
    return dense(coef)  # type: ignore[no-any-return]


def _scores(model: Any, X: Any, first: int) -> FloatArray:
    coef = dense_coef(model)
    if coef.ndim == 1 or len(coef) == 1:
        rows = native_rows(X)
        if rows is not None:
            z = _fill(_kernels.scores, model, X, rows, _theta(model), np.empty(rows.n))
            if z is not None:
                return z[:, np.newaxis]
    with np.errstate(all="ignore"):  # overflow raises below
        Z = product(X, coef.T if coef.ndim == 2 else coef[:, np.newaxis])
        Z += model.intercept_
    if not np.isfinite(Z).all():
        refuse_nonfinite(X, vars(model).get("feature_names_in_"))
        _refuse_overflow(Z, first)
    return Z


def predicted_probabilities(model: Any, X: Any) -> FloatArray:
    """Return P(class | row), (n, k), in a single pass over the rows if the loss is logistic or softmax."""
    if location_of(X) is Location.CLUSTER:
        return predict_lazily(model, "predict_proba", X)  # type: ignore[no-any-return]
    return _by_blocks(_probabilities, model, _prepare_rows(model, X))


def predicted_log_probabilities(model: Any, X: Any) -> FloatArray:
    """Return log P(class | row), (n, k), finite where the probability underflows to 0."""
    if location_of(X) is Location.CLUSTER:
        return predict_lazily(model, "predict_log_proba", X)  # type: ignore[no-any-return]
    Z = scores(model, X)  # refuses a model that is not fitted
    return log_probabilities(model._fits[0].recipe.loss, Z)


def _probabilities(model: Any, X: Any, first: int) -> FloatArray:
    loss = model._fits[0].recipe.loss.plain
    rows = native_rows(X)
    coef = dense_coef(model)
    k = len(coef)
    P: FloatArray | None = None
    if rows is not None and k == 1 and isinstance(loss, Logistic):
        P = _fill(_kernels.sigmoids, model, X, rows, _theta(model), np.empty((rows.n, 2)))
    elif rows is not None and isinstance(loss, Multinomial):
        W = np.zeros((rows.d + 1, -(-k // 8) * 8))
        W[:-1, :k], W[-1, :k] = coef.T, model.intercept_
        P = _fill(_kernels.softmaxes, model, X, rows, W, np.empty((rows.n, k)))
    return probabilities(loss, _scores(model, X, first)) if P is None else P


def _fill(
    kernel: Callable[..., bool],
    model: Any,
    X: Any,
    rows: _kernels.Rows,
    W: FloatArray,
    out: FloatArray,
) -> FloatArray | None:
    """Fill ``out`` by a kernel, in parallel, and return it; None if the kernel found a number that is not finite."""
    n_threads = getattr(model, "n_threads", None)
    finite = by_pieces(n_threads, X, rows.n, lambda lo, hi: kernel(rows, lo, hi, W, out[lo:hi]))
    return out if finite else None


def _by_blocks(work: Callable[[Any, Any, int], FloatArray], model: Any, X: Any) -> FloatArray:
    """Return ``work(model, rows, number of the first row)`` for all rows: in one call in memory, by blocks on disk."""
    if location_of(X) is not Location.DISK:
        found = work(model, X, 0)
        require_untruncated(X)
        return found
    try:
        return np.concatenate([work(model, block, at.start) for at, block in row_blocks(X)])
    except NonFinite:  # raise with the row number in all of X, not in the block
        refuse_nonfinite(X, vars(model).get("feature_names_in_"))
        raise


def _prepare_rows(model: Any, X: Any) -> Any:
    """Return X itself if it needs no conversion, otherwise its validated and converted rows."""
    state = vars(model)
    if (
        not (inputs.is_plain(X) or inputs.is_plain_csr(X))
        or "coef_" not in state
        or "feature_names_in_" in state
        or X.shape[1] != state["n_features_in_"]
        or not X.shape[0]
    ):
        return inputs.validate_new_rows(model, X)
    return watch(X)


def native_rows(X: Any) -> _kernels.Rows | None:
    """Return X wrapped for the kernels, or None if they cannot read its layout."""
    if inputs.is_plain(X):
        return _kernels.Rows(X) if X.flags.c_contiguous else None
    if inputs.is_plain_csr(X):
        try:
            return _kernels.Rows(X.data, X.indices, X.indptr, X.shape[1])
        except ValueError:  # invalid CSR structure: the input check raises with a better message
            inputs.rows(X, "X")
    return None


def _theta(model: Any) -> FloatArray:
    """Return the vector (w, b) of a model with one column of scores."""
    coef = dense_coef(model)
    theta = np.empty(coef.size + 1)
    theta[:-1] = coef if coef.ndim == 1 else coef[0]
    theta[-1] = model.intercept_ if coef.ndim == 1 else model.intercept_[0]
    return theta


def by_pieces(n_threads: int | None, X: Any, n: int, work: Callable[[int, int], bool]) -> bool:
    """Call ``work(lo, hi)`` for ranges that cover the n rows of X, in parallel; return whether all were true."""
    entries = n_entries(X)
    if entries <= 2 * _PIECE:
        return work(0, n)
    pieces = min(n, -(-entries // _PIECE))
    return in_parallel(lambda k: work(n * k // pieces, n * (k + 1) // pieces), pieces, n_threads)


def probabilities(loss: Loss | Multinomial, Z: FloatArray) -> FloatArray:
    """Return P(class | score), (n, k); each row sums to 1.

    One column of scores means two classes. Several columns of a pointwise loss give one-vs-rest
    probabilities, divided by their sum.
    """
    if isinstance(loss, Multinomial):
        return loss.proba(Z)
    if Z.shape[1] == 1:
        # Computing P(first class) from its margin -z keeps full relative precision; 1 - P(second class) would not.
        return loss.proba(np.hstack([-Z, Z]))
    P = loss.proba(Z)
    total = P.sum(axis=1, keepdims=True)
    lost = total[:, 0] == 0  # all underflow: the class with the largest score gets probability 1
    if lost.any():
        P[lost, Z[lost].argmax(axis=1)] = total[lost] = 1.0
    P /= total
    return P


def log_probabilities(loss: Loss | Multinomial, Z: FloatArray) -> FloatArray:
    """Return the logarithm of ``probabilities``, without underflow for the logistic and softmax losses."""
    if isinstance(loss, Multinomial):
        return np.asarray(log_softmax(Z, axis=1))
    if isinstance(loss.plain, Logistic):  # log P(+1 | z) = -log(1 + e^-z) = -l(z)
        if Z.shape[1] == 1:
            return -loss.plain.value(np.hstack([-Z, Z]))
        return np.asarray(log_softmax(-loss.plain.value(Z), axis=1))
    with np.errstate(divide="ignore"):
        return np.log(probabilities(loss, Z))


def product(X: Any, W: FloatArray) -> FloatArray:
    """Return X W in float64; float32 rows are converted, and rows on disk read, one block at a time."""
    if location_of(X) is Location.CLUSTER:
        return np.concatenate(X.apply(_Product(W)))
    if location_of(X) is Location.DISK:
        return np.concatenate([product(block, W) for _, block in row_blocks(X)])
    if sp.issparse(X) or X.dtype == np.float64:
        Z: FloatArray = np.asarray(X @ W)
        return Z
    Z = np.empty((len(X), W.shape[1]))
    step = max(1, _BLOCK // X.shape[1])
    for start in range(0, len(X), step):
        block = slice(start, start + step)
        np.matmul(X[block].astype(np.float64), W, out=Z[block])
    return Z


@dataclass(frozen=True, eq=False)
class _Product:
    """Picklable function that computes X W of a partition on its worker."""

    W: FloatArray

    def __call__(self, X: Any, *vectors: Any) -> FloatArray:
        return product(X, self.W)


def _refuse_overflow(Z: FloatArray, first: int) -> None:
    row = int(np.argmin(np.isfinite(Z).all(axis=1)))
    raise BadInput(
        f"The score of row {first + row} (counting from 0) is {Z[row].tolist()}: its numbers are too "
        "large to be multiplied by the coefficients in float64; rescale the columns."
    )
