"""The PAC-Bayes margin bound: a guarantee from the training rows alone.

Draw a random separator v from N(mu u, I), u = (w, b)/|(w, b)|. It errs on the row z = (x, 1) with
label y with probability Phi(-mu gamma), gamma = y u.z/|z|. Its divergence from the prior N(0, I), which
does not depend on the data, is mu^2/2, and with probability 1 - delta, simultaneously for all u and mu,

    kl(mean_i Phi(-mu gamma_i), error) <= (mu^2/2 + log(2 sqrt(n)/delta))/n .

Because it holds for all mu simultaneously, mu can be optimised without weakening the bound. The separator u
itself errs only where at least half of the draws do, so its error is at most twice theirs.

Langford and Shawe-Taylor 2002; Langford 2005; the constant 2 sqrt(n) by Maurer 2004 (n >= 8).
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from linsep.arrays import FloatArray
from linsep.bounds.bound import Bound, confidence, guess, points, share, signs
from linsep.bounds.rounding import raised
from linsep.errors import BadInput

#: Norms tried for the mean of a prior learnt from other rows; a union bound accounts for the choice.
PRIOR_LENGTHS = 2.0 ** np.arange(-2, 12)
_ROUNDOFF = 2.0**-53
#: Smaller values of q are rounded up to this, because 1/q overflows.
_SMALLEST = 1e-300
#: Bound on the relative error of a normal tail in float64: that of its argument x is amplified by x^2 < 1500.
_TAIL_ERROR = 1e-12


def kl_inverse(q: float, budget: float) -> float:
    """Compute the largest p with kl(q, p) = q log(q/p) + (1-q) log((1-q)/(1-p)) <= budget.

    Parameters
    ----------
    q : float
        Empirical error, in [0, 1].
    budget : float
        Bound on the divergence.

    Returns
    -------
    float

    Raises
    ------
    BadInput
        If ``q`` is outside [0, 1] or ``budget`` is negative.

    See Also
    --------
    pac_bayes_margin : Uses it.

    References
    ----------
    Langford, Tutorial on practical prediction theory for classification, Journal of Machine Learning Research 6, 2005.

    Examples
    --------
    >>> from linsep.bounds import kl_inverse
    >>> round(kl_inverse(0.0, 0.1), 6)  # 1 - exp(-0.1)
    0.095163
    """
    q = share("q", q)
    if not budget >= 0:
        raise BadInput(f"budget must be at least 0, got {budget!r}.")
    q = max(q, _SMALLEST) if q > 0.0 else q
    low, high = q, 1.0
    while high - low > 1e-15 * high and low < (middle := (low + high) / 2) < high:
        if _kl_from_below(q, middle) <= budget:
            low = middle
        else:
            high = middle
    return high


def _kl_from_below(q: float, p: float) -> float:
    """Lower bound on kl(q, p) for q <= p, rounding included, so that the inverse is never rounded down.

    Both logarithms are computed as log1p(x) with x proportional to p - q, which avoids cancellation for p close to q.
    """
    left = q * math.log1p((p - q) / q) if q > 0 else 0.0
    right = (1 - q) * math.log1p((p - q) / (1 - p)) if q < 1 else 0.0
    return right - left - 8 * _ROUNDOFF * (left + right)


def pac_bayes_margin(
    w: Any,
    b: float | None,
    X: Any,
    y: Any,
    delta: float = 0.05,
    classifier: Literal["gibbs", "deterministic"] = "deterministic",
    prior: tuple[Any, float | None] | None = None,
    minority: float | None = None,
) -> Bound:
    """Bound the error of a linear classifier by its margins on n rows.

    Parameters
    ----------
    w : array (d,)
    b : float or None
        None for a classifier without intercept.
    X, y : array (n, d) and labels of two classes, the second in sorted order being positive
        The training rows, or with ``prior`` the rows that were not used for the prior.
    delta : float
    classifier : {"deterministic", "gibbs"}
        The classifier itself, or the randomised one around it, whose bound is half as large.
    prior : tuple (w, b), optional
        A classifier built from *other* rows, for instance from one half of the data while X is the
        other half. The prior is centred on its direction at one of 14 norms, which adds log 14 to the divergence.
    minority : float, optional

    Returns
    -------
    Bound

    Raises
    ------
    BadInput
        If X, y, w or a parameter is not usable; the message says why.

    See Also
    --------
    clopper_pearson : From held-out rows; tighter.
    kl_inverse : Solves for the bound.

    Notes
    -----
    The bound depends on the scaling of the columns, not on the norm of (w, b): scale by constants known
    beforehand, or computed from other rows.

    References
    ----------
    Langford and Shawe-Taylor, PAC-Bayes and margins, 2002.

    Examples
    --------
    >>> from linsep import LinearSVC, bounds, datasets
    >>> X, y = datasets.blobs_margin(2000, margin=1.0)
    >>> model = LinearSVC().fit(X, y)
    >>> bounds.pac_bayes_margin(model.coef_[0], model.intercept_[0], X, y).value < 0.3
    True
    """
    X = points(X)
    n, delta = len(X), share("delta", delta, low_open=True)
    if classifier not in ("gibbs", "deterministic"):
        raise BadInput(f'classifier must be "gibbs" or "deterministic", got {classifier!r}.')
    u = _direction(w, b, X.shape[1])
    Z = X if b is None else np.column_stack([X, np.ones(n)])
    size = np.abs(Z).max(axis=1, keepdims=True)  # the squares of Z may overflow or underflow
    Z = Z / np.where(size > 0, size, 1.0)
    length = np.linalg.norm(Z, axis=1)
    # a zero row lies on every boundary and counts as an error
    gamma = np.where(length > 0, signs(y, n) * (Z @ u) / np.where(length > 0, length, 1.0), -np.inf)
    cosine_error = (4 * len(u) + 32) * _ROUNDOFF
    gamma = gamma - cosine_error
    log = math.log(2 * math.sqrt(n) if n >= 8 else n + 1) - math.log(delta)
    if prior is None:
        value = _best_length(gamma, lambda mu: (mu**2 / 2 * (1 + cosine_error) + log) / n)
        note = "rows drawn independently; columns not rescaled with the help of these rows"
    else:
        if (prior[1] is None) != (b is None):
            raise BadInput("the classifier and its prior must both have an intercept, or none.")
        cosine = float(u @ _direction(prior[0], prior[1], X.shape[1])) - cosine_error
        log += math.log(len(PRIOR_LENGTHS))
        value = min(
            _best_length(
                gamma,
                lambda mu, nu=nu: (
                    (
                        (mu**2 - 2 * mu * nu * cosine + nu**2) / 2
                        + cosine_error * (mu**2 + nu**2)
                        + log
                    )
                    / n
                ),
            )
            for nu in PRIOR_LENGTHS
        )
        note = (
            "rows drawn independently; neither the prior nor the scaling of columns has seen them"
        )
    if classifier == "deterministic":
        value = min(2 * value, 1.0)
    return Bound(
        f"PAC-Bayes margin ({classifier})",
        value,
        "error",
        confidence(delta),
        note,
        "Langford and Shawe-Taylor 2002; Maurer 2004",
        guess(minority),
    )


def _best_length(gamma: FloatArray, budget: Any) -> float:
    """Smallest bound over the norm mu of the posterior mean."""

    def at(log_mu: float) -> float:
        mu = math.exp(log_mu)
        share = float(norm.sf(mu * gamma).mean()) * (1 + _TAIL_ERROR) + _SMALLEST
        return kl_inverse(min(share, 1.0), raised(max(budget(mu), 0.0)))

    grid = np.linspace(math.log(1e-2), math.log(1e4), 41)
    values = [at(t) for t in grid]
    best = int(np.argmin(values))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    refined = minimize_scalar(at, bounds=(low, high), method="bounded", options={"xatol": 1e-3})
    return min(float(refined.fun), values[best])


def _direction(w: Any, b: float | None, d: int) -> FloatArray:
    v = np.append(
        np.ravel(np.asarray(w, dtype=np.float64)), [] if b is None else [float(np.squeeze(b))]
    )
    if len(v) != d + (b is not None):
        raise BadInput(f"w must have {d} numbers, one for each column of X, got {np.shape(w)}.")
    size = np.abs(v).max(initial=0.0)
    if not 0 < size < math.inf:
        raise BadInput("w and b must be finite and not all zero.")
    v = v / size
    return np.asarray(v / np.linalg.norm(v))
