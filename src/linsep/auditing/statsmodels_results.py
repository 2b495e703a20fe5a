"""Read the problems that statsmodels solves from fitted results and their design matrices.

The constant is a column of the design matrix. If it is not penalised, it becomes the intercept; ``fit_regularized``
with one alpha for all columns penalises it like any other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_array

from linsep import losses
from linsep.arrays import FloatArray
from linsep.auditing.objectives import targets
from linsep.auditing.subject import Stated, Subject
from linsep.errors import BadInput, Refused
from linsep.losses import CoupledLoss, Loss, Multinomial
from linsep.sklearn_objectives import Given, Objective, Part


class _Fitted(NamedTuple):
    """Loss of a model, the weight of its losses, and its subproblem without a penalty."""

    text: str
    loss: Loss | CoupledLoss
    part: Part
    W: FloatArray
    weight: float = 1.0  #: factor on the sum of losses


Reader = Callable[[Any, FloatArray, Given], _Fitted]


def is_results(model: Any) -> bool:
    """Return whether a model is a results object of statsmodels."""
    ours = any(kind.__module__.startswith("statsmodels.") for kind in type(model).__mro__)
    return ours and hasattr(model, "params") and hasattr(model, "model")


def read(results: Any, X: Any, y: Any, sample_weight: Any, stated: Stated) -> Subject:
    """Return the problem of fitted results, on their own rows unless others are given."""
    if sample_weight is not None:
        raise BadInput("statsmodels results contain their weights: leave out sample_weight.")
    name, reader = _reader(results)
    params = np.asarray(results.params, dtype=np.float64)
    rows, given = _rows(results, X, y, params)
    fitted = reader(results, rows, given)
    alpha, ratio = _penalty(results, stated, name, params, given)
    fitted, rows, alpha, free = _split_constant(fitted, rows, alpha)
    problem = _objective(fitted, alpha, ratio, free)
    return Subject(f"statsmodels {name}", problem, [fitted.W], rows, given)


def _is_regularised(results: Any) -> bool:
    """Return whether results come from fit_regularized of least squares or GLM."""
    return type(getattr(results, "_results", results)).__name__ == "RegularizedResults"


def _reader(results: Any) -> tuple[str, Reader]:
    for kind in type(results.model).__mro__:
        if kind.__name__ in _READERS and kind.__module__.startswith("statsmodels."):
            return kind.__name__, _READERS[kind.__name__]
    raise Refused(
        f"linsep.audit does not know the objective of statsmodels {type(results.model).__name__}. It audits "
        f"{', '.join(_READERS)}."
    )


def _rows(results: Any, X: Any, y: Any, params: FloatArray) -> tuple[FloatArray, Given]:
    """Design matrix and targets."""
    own = results.model
    if (X is None) != (y is None):
        raise BadInput(
            "Give both X and y, or neither: results of statsmodels keep the rows they were fitted to."
        )
    found = getattr(own, "exog", None) if X is None else X
    if found is None:
        raise BadInput(
            "The results no longer hold their rows (remove_data): give X, the design matrix, and y."
        )
    rows: FloatArray = check_array(found, dtype=np.float64)
    if rows.shape[1] != len(params):
        raise BadInput(
            f"The results have {len(params)} parameters and X has {rows.shape[1]} columns. X must be the design "
            "matrix, constant included; without X and y the audit takes the one that the results keep."
        )
    n = rows.shape[0]
    return rows, Given(n, targets(own.endog if y is None else y, n), None)


def _penalty(
    results: Any, stated: Stated, name: str, params: FloatArray, given: Given
) -> tuple[FloatArray, float]:
    """Weight of each parameter in the penalty on the sum of losses, and the L1 ratio."""
    if getattr(results, "regularized", False):
        raise Refused(
            "fit_regularized(refit=True) refits the chosen columns without a penalty: the result minimises neither."
        )
    settings = getattr(results, "mle_settings", None) or {}
    if "alpha_rescaled" in settings:  # L1 methods of discrete models
        stated.refuse_all_but((), f"statsmodels {name}")
        return np.broadcast_to(np.asarray(settings["alpha"], float), params.shape), 1.0
    if not _is_regularised(results):
        stated.refuse_all_but((), f"statsmodels {name}")
        return np.zeros(len(params)), 0.0
    if stated.alpha is None or stated.l1_ratio is None:
        raise BadInput(
            "statsmodels does not keep the penalty of fit_regularized: give alpha=, and l1_ratio= for its L1_wt."
        )
    stated.refuse_all_but(("alpha", "l1_ratio"), f"statsmodels {name}")
    mean = float(np.sum(getattr(results.model, "weights", given.n))) / given.n  # scaling of WLS
    alpha = np.broadcast_to(np.asarray(stated.alpha, float) * mean, (len(params),))
    if not (np.isfinite(alpha).all() and (alpha >= 0.0).all()):
        raise BadInput(f"alpha must be finite and not negative, got {stated.alpha!r}.")
    return alpha, float(stated.l1_ratio)


def _split_constant(
    fitted: _Fitted, X: FloatArray, alpha: FloatArray
) -> tuple[_Fitted, FloatArray, FloatArray, bool]:
    """Turn an unpenalised constant column into the intercept."""
    constant = (X == X[0]).all(axis=0) & (X[0] != 0.0) & (alpha == 0.0)
    if not constant.any():
        return fitted, X, alpha, False
    j = int(np.flatnonzero(constant)[0])
    W = np.vstack([np.delete(fitted.W[:-1], j, axis=0), fitted.W[j] * X[0, j]])
    return fitted._replace(W=W), np.delete(X, j, axis=1), np.delete(alpha, j), True


def _objective(fitted: _Fitted, alpha: FloatArray, ratio: float, free: bool) -> Objective:
    """Objective weight * sum of losses + sum_j alpha_j (ratio |w_j| + (1 - ratio)/2 w_j^2)."""
    intercept = "free constant" if free else "no free constant"
    if not alpha.any():
        return Objective(
            f"{fitted.text}, {intercept}",
            *(fitted.loss, math.inf, (fitted.part,)),
            fit_intercept=free,
            unit=fitted.weight,
        )
    penalty = {0.0: "alpha/2 |w|^2", 1.0: "alpha |w|_1"}.get(ratio, "alpha elastic net")
    text = f"{fitted.text} + {penalty}, {intercept}"
    even = bool((alpha == alpha[0]).all())
    unit = float(alpha[0]) if even else 1.0
    return Objective(
        text,
        *(fitted.loss, fitted.weight / unit, (fitted.part,), ratio),
        fit_intercept=free,
        unit=unit,
        factor=None if even else alpha.copy(),
    )


def _column(params: Any) -> FloatArray:
    """Parameters as (d + 1, k), with an intercept of 0."""
    found = np.asarray(params, dtype=np.float64)
    found = found.reshape(len(found), -1)
    return np.vstack([found, np.zeros((1, found.shape[1]))])


def _least_squares(results: Any, X: FloatArray, given: Given) -> _Fitted:
    own = results.model
    if getattr(own, "offset", None) is not None:
        raise Refused("linsep.audit does not take least squares with an offset.")
    weights = getattr(own, "weights", None)
    even = weights is None or bool((np.asarray(weights) == 1.0).all())
    part = Part(
        target=given.y.astype(float),
        weight=None if even else np.asarray(weights, float),
    )
    penalised, weighted = _is_regularised(results), "" if even else "weight "
    text = f"{'mean' if penalised else 'sum'} {weighted}(t - x.w)^2" + (" / 2" if penalised else "")
    weight = 0.5 / given.n if penalised else 1.0
    return _Fitted(text, losses.Squared().for_targets(), part, _column(results.params), weight)


def _two_classes(results: Any, X: FloatArray, given: Given, offset: Any, weight: Any) -> _Fitted:
    if not np.isin(given.y, (0.0, 1.0)).all() or np.any(getattr(results.model, "n_trials", 1) != 1):
        raise Refused("linsep.audit takes targets 0 and 1 in models of two classes.")
    sign = np.where(given.y == 1.0, 1.0, -1.0)
    shift = np.broadcast_to(np.asarray(0.0 if offset is None else offset, float), sign.shape)
    part = Part(
        sign=sign,
        offset=sign * shift if shift.any() else None,
        weight=weight,
    )
    W = _column(results.params)
    if _is_regularised(results):
        nobs = float(results.model.nobs)
        return _Fitted("mean log(1 + exp(-m))", losses.Logistic(), part, W, 1.0 / nobs)
    return _Fitted("sum log(1 + exp(-m))", losses.Logistic(), part, W)


def _logit(results: Any, X: FloatArray, given: Given) -> _Fitted:
    return _two_classes(results, X, given, getattr(results.model, "offset", None), None)


def _glm(results: Any, X: FloatArray, given: Given) -> _Fitted:
    own = results.model
    family, link = type(own.family).__name__, type(own.family.link).__name__
    weight = np.asarray(own.freq_weights, float) * np.asarray(own.var_weights, float)
    uneven = None if (weight == 1.0).all() else weight
    offset = getattr(own, "_offset_exposure", 0.0)
    if (family, link) == ("Binomial", "Logit"):
        return _two_classes(results, X, given, offset, uneven)
    plain = not np.any(offset) and not _is_regularised(results)
    if (family, link) == ("Gaussian", "Identity") and plain:
        part = Part(target=given.y.astype(float), weight=uneven)
        return _Fitted(
            "sum (t - x.w)^2", losses.Squared().for_targets(), part, _column(results.params)
        )
    raise Refused(
        f"linsep.audit takes GLM with the families Binomial (link Logit) and Gaussian (link Identity, no offset, no "
        f"fit_regularized), got {family} with link {link}."
    )


def _multinomial(results: Any, X: FloatArray, given: Given) -> _Fitted:
    if (getattr(results, "mle_settings", None) or {}).get("alpha_rescaled") is not None:
        raise Refused("linsep.audit does not take MNLogit with an L1 penalty on K - 1 classes.")
    codes = given.y.astype(np.int64)
    W = _column(results.params)
    W = np.hstack([np.zeros((len(W), 1)), W])  # the first class is the reference
    return _Fitted("sum multinomial loss", Multinomial(W.shape[1]), Part(labels=codes), W)


def _robust(results: Any, X: FloatArray, given: Given) -> _Fitted:
    norm = results.model.M
    if type(norm).__name__ != "HuberT":
        raise Refused(f"linsep.audit takes RLM with the norm HuberT, got {type(norm).__name__}.")
    scale = float(results.scale)
    part = Part(target=given.y.astype(float))
    text = f"sum HuberT((t - x.w)/scale) at its own scale {scale:.6g}"
    loss, W = losses.Huber(float(norm.t) * scale).for_targets(), _column(results.params)
    return _Fitted(text, loss, part, W, 1.0 / scale**2)


def _quantile(results: Any, X: FloatArray, given: Given) -> _Fitted:
    loss = losses.Pinball(float(results.q)).for_targets()
    part = Part(target=given.y.astype(float))
    return _Fitted("sum pinball(t - x.w)", loss, part, _column(results.params))


_READERS: dict[str, Reader] = {
    "QuantReg": _quantile,
    "OLS": _least_squares,
    "WLS": _least_squares,
    "Logit": _logit,
    "MNLogit": _multinomial,
    "GLM": _glm,
    "RLM": _robust,
}
