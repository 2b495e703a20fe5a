"""Convert an optimum to the support vectors and dual coefficients of an ``SVC``, in LIBSVM's order.

With classes numbered 0 .. k - 1, ``dual_coef_`` has k - 1 rows. For the pair (a, b), a < b, the coefficient of a
support vector of class a is in row b - 1, and that of one of class b in row a. Support vectors are sorted by class.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from linsep.arrays import FloatArray, IntArray
from linsep.errors import BadInput
from linsep.sklearn_objectives import Part


class SupportVectors(NamedTuple):
    """Row indices, features, classes and dual coefficients of support vectors, and the intercepts of all pairs."""

    rows: IntArray
    X: Any
    labels: IntArray
    dual_coef: FloatArray
    intercept: FloatArray


def gather(
    X: Any,
    labels: IntArray,
    parts: tuple[Part, ...],
    alphas: list[FloatArray],
    intercept: FloatArray,
) -> SupportVectors:
    """Collect the support vectors of all pairs of classes from the multipliers alpha >= 0 of each part."""
    k = int(labels.max()) + 1
    coef = np.zeros((k - 1, len(labels)))
    for part, alpha, (a, b) in zip(parts, alphas, combinations(range(k), 2), strict=True):
        assert part.sign is not None
        signed = np.zeros(len(labels))
        signed[slice(None) if part.rows is None else part.rows] = part.sign * alpha
        for label, row in ((a, b - 1), (b, a)):
            coef[row, labels == label] = signed[labels == label]
    used = np.flatnonzero(coef.any(axis=0))
    rows = used[np.argsort(labels[used], kind="stable")]
    return SupportVectors(
        rows, X[rows], labels[rows], np.ascontiguousarray(coef[:, rows]), intercept
    )


def put(model: Any, found: SupportVectors) -> None:
    """Store support vectors in an ``SVC``, which computes ``coef_`` from them."""
    if len(model._probA):
        raise BadInput(
            "The probabilities of this SVC are calibrated for its own coefficients. Fit it with probability=False and "
            "wrap it in CalibratedClassifierCV."
        )
    k = len(model.classes_)
    model.support_ = found.rows.astype(np.int32)
    model._n_support = np.bincount(found.labels, minlength=k).astype(np.int32)
    model.support_vectors_ = found.X
    coef: Any = found.dual_coef
    if sp.issparse(model._dual_coef_):  # LIBSVM reads all entries, including zeros
        size = coef.shape[1]
        kind = type(model._dual_coef_)
        starts = np.arange(0, coef.size + 1, size)
        coef = kind((coef.ravel(), np.tile(np.arange(size), k - 1), starts), shape=coef.shape)
        model.support_vectors_ = kind(found.X)
        model.support_vectors_.sort_indices()
    # With two classes, LIBSVM takes the first as positive, scikit-learn the second.
    turn = -1.0 if k == 2 else 1.0
    model.dual_coef_, model._dual_coef_ = coef, turn * coef
    model.intercept_, model._intercept_ = found.intercept.copy(), turn * found.intercept
