"""Early rejection of values of C by proven bounds on their held-out errors, before their models are finished.

A certificate bounds |w - w*| <= r, which encloses the score of every row at the optimum: x.w* lies within |x| r of
x.w. For a convex loss, the optimal intercept decreases as the scores of the training rows increase, so it lies between
the optimal intercepts for all scores raised and for all scores lowered by |x| r. Held-out rows whose whole interval is
on the wrong side are errors of the optimum, and those whose interval contains 0 may be, which bounds its error. A C
whose lower bound on the mean error exceeds the upper bound of another C cannot be chosen, so its models need not be
finished.

Shibagaki, Suzuki, Karasuyama and Takeuchi, Regularization path of cross-validation error lower bounds, 2015.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import clone

from linsep.arrays import BoolArray, FloatArray, IntArray
from linsep.errors import BadInput, Refused
from linsep.losses import CoupledLoss, Loss
from linsep.tuning import one_by_one as separate
from linsep.tuning.labelled_rows import LabelledRows

Bounds = tuple[float, float]

TOL = 5e-5  # tol of the first, rough fits; below 1e-4 the hinge usually ends at its exact optimum
_HALVINGS = 60
_ROUNDING = 1e-12  # relative rounding error of a sum


def refuse(estimator: Any, y: npt.NDArray[Any], classifier: bool, scoring: str, rule: str) -> None:
    """Raise if ``reject=True`` is not supported for these arguments, with the reason."""
    classes = len(np.unique(y)) if classifier else 0
    option = "reject=True"
    if scoring != "error":
        raise BadInput(
            f"{option} bounds the error of held-out rows: it needs scoring='error', got {scoring!r}."
        )
    if rule != "best":
        raise BadInput(
            f"{option} needs rule='best': {rule!r} may choose a C whose models were left unfinished."
        )
    if classes != 2:
        raise Refused(
            f"{option} needs two classes, got {classes}: scores of several are not enclosed. Use reject=False."
        )
    if "warm_start" not in estimator.get_params(deep=False):
        raise Refused(f"{option} needs an estimator with a certificate and warm_start.")


def models(
    estimator: Any,
    data: LabelledRows,
    Cs: FloatArray,
    pairs: Sequence[tuple[IntArray, IntArray]],
    rejected: dict[float, Bounds],
) -> Iterator[tuple[int, int, Any]]:
    """Yield (number of C, fold, model); a C that is proven not to be the best keeps its unfinished models.

    Such C are added to ``rejected``, with the bounds on their mean error.
    """
    tol = estimator.get_params(deep=False)["tol"]
    rough = clone(estimator).set_params(tol=max(tol, TOL))
    bounds = np.empty((len(Cs), len(pairs), 2))
    found: dict[tuple[int, int], Any] = {}
    for c, f, model in separate.models(rough, data, Cs, pairs):
        if c == 0:
            parts = [signed_rows(model, data.take(rows)) for rows in pairs[f]]
        bounds[c, f] = error_bounds(model, *parts)
        found[c, f] = model
    lost = rejectable(bounds)
    rejected.update(
        {float(Cs[c]): tuple(bounds[c].mean(axis=0).tolist()) for c in np.flatnonzero(lost)}
    )
    for (c, f), model in found.items():
        if not lost[c]:
            model.set_params(tol=tol, warm_start=True)
            with separate.quiet():
                separate.fit(model, data.take(pairs[f][0]))
        yield c, f, model


SignedRows = tuple[Any, FloatArray, FloatArray]  # rows, signs -1 and +1, weights


def signed_rows(model: Any, data: LabelledRows) -> SignedRows:
    """Return rows, signs (-1 and +1 for the two classes of the model) and weights."""
    X = data.X if sp.issparse(data.X) else np.asarray(data.X, dtype=np.float64)
    sign = np.where(data.y == model.classes_[1], 1.0, -1.0)
    return X, sign, np.ones(len(sign)) if data.weight is None else data.weight


def error_bounds(model: Any, train: SignedRows, held: SignedRows) -> Bounds:
    """Return bounds on the held-out error of the exact optimum that the model approximates."""
    r = float(model.certificate_.coef_error)
    if not np.isfinite(r):
        return 0.0, 1.0
    fit = model._fits[0]
    loss = fit.recipe.loss
    assert not isinstance(loss, CoupledLoss)
    w, b = model.coef_.ravel(), float(np.ravel(model.intercept_)[0])
    low = high = b
    if fit.recipe.fit_intercept:
        X, sign, weight = train
        low, high = intercepts(loss, sign, X @ w, r * lengths(X), weight, b)
    X, sign, weight = held
    z, reach = X @ w, r * lengths(X)
    least, most = z - reach + low, z + reach + high
    wrong = np.where(sign > 0, most < 0.0, least >= 0.0)
    perhaps = np.where(sign > 0, least < 0.0, most >= 0.0)
    return float(np.average(wrong, weights=weight)), float(np.average(perhaps, weights=weight))


def intercepts(
    loss: Loss, sign: FloatArray, z: FloatArray, reach: FloatArray, weight: FloatArray, b: float
) -> Bounds:
    """Return an interval that contains the optimal intercept for any scores within ``reach`` of z.

    The derivative of the loss with respect to b, F(b) = sum s sign l'(sign (z + b)), increases with b and every score.
    """

    def slope(b: float, scores: FloatArray) -> Bounds:
        terms = weight * sign * loss.slope(sign * (scores + b))
        return float(terms.sum()), float(_ROUNDING * np.abs(terms).sum())

    def below(b: float) -> bool:  # provably smaller than every optimal intercept
        total, error = slope(b, z + reach)
        return total < -error

    def above(b: float) -> bool:
        total, error = slope(b, z - reach)
        return total > error

    return _nearest_proven(below, b, -1.0), _nearest_proven(above, b, 1.0)


def _nearest_proven(sure: Callable[[float], bool], b: float, way: float) -> float:
    """Return about the nearest point to b in direction ``way`` for which ``sure`` holds, by bisection, or infinity."""
    step = 1e-6 * max(1.0, abs(b))
    for _ in range(_HALVINGS):
        if sure(b + way * step):
            break
        step *= 2.0
    else:
        return way * np.inf
    near, far = 0.5 * step, step
    for _ in range(20):
        middle = 0.5 * (near + far)
        near, far = (near, middle) if sure(b + way * middle) else (middle, far)
    return b + way * far


def lengths(X: Any) -> FloatArray:
    """Return the norms |x| of all rows."""
    if sp.issparse(X):
        return np.asarray(np.sqrt(X.multiply(X).sum(axis=1))).ravel()
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64)))


def rejectable(bounds: FloatArray) -> BoolArray:
    """Return which C cannot have the smallest mean error; ``bounds`` is (c, folds, 2)."""
    mean = bounds.mean(axis=1)
    return np.asarray(mean[:, 0] > mean[:, 1].min())
