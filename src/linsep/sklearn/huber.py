"""scikit-learn's ``HuberRegressor``: coefficients and scale together, with a proof.

Minimise over w, b and the scale sigma > 0, with S = sum s_i and H(z) = z^2 for |z| <= epsilon,
2 epsilon |z| - epsilon^2 beyond,

    P(w, b, sigma) = S sigma + sum_i s_i sigma H((t_i - x_i.w - b)/sigma) + alpha |w|^2.

sigma H(r/sigma) is the perspective of H, so P is convex in (w, b, sigma) together, and so is
g(sigma) = min over (w, b) of P. At a fixed sigma this is a regression with the Huber loss of width epsilon sigma, for
which linsep finds and encloses g(sigma).

**Scale.** The minimiser has sum s min((r/sigma)^2, epsilon^2) = S. For fixed residuals that equation has a closed
solution T; its fixed point sigma = T(sigma) is found by secants in log sigma.

**Proof.** Let L and U enclose g at sigma_1 < sigma < sigma_2, with sigma in the middle. If L_1 >= U and L_2 >= U, a
convex g is at least L_1 left of sigma_1 and at least L_2 right of sigma_2. Between them it lies above the lines through
two of the three points, so that everywhere

    g >= L - max(U_1 - L, U_2 - L).

The width of the bracket costs about g'' (sigma_2 - sigma)^2/2, and is chosen a little above the gaps of the enclosures.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn import linear_model
from sklearn.utils.validation import _check_sample_weight, validate_data

from linsep.certificates import Optimality
from linsep.certificates.optimality import relative
from linsep.sklearn import fitting
from linsep.sklearn.fitting import PROVEN, Delegated, Minimum
from linsep.sklearn.regression import Minimised, at_minimum, earlier
from linsep.sklearn_objectives import FloatArray, Given, huber

#: Relative gap of the fits at fixed scales.
_TOL = 1e-8
#: Relative accuracy of the scale, and secants to reach it.
_SCALE, _SECANTS = 1e-7, 40
#: Relative half widths of the bracket that are tried.
_BRACKETS = (2e-4, 2e-3, 2e-2)
#: Scales below this share of the targets are an exact fit: there is no outlier to be told from the others.
_NO_SCALE = 1e-9
#: Numbers of X up to which a fit needs no start.
_SMALL = 20_000
#: Covers the relative rounding of the scale term and of the parameters of the fits.
_UNITS = 2.0**-47


class HuberRegressor(Minimised, linear_model.HuberRegressor):  # type: ignore[misc]
    """scikit-learn's ``HuberRegressor`` with a proof of optimality in ``certificate_``.

    Parameters and attributes are those of ``sklearn.linear_model.HuberRegressor``. The certificate is about
    coefficients and scale together. ``max_iter``, ``tol`` and ``warm_start`` make no difference. Targets that the
    coefficients fit exactly, so that the scale tends to 0, are left to scikit-learn.

    Examples
    --------
    >>> from linsep.sklearn import HuberRegressor
    >>> X = [[0.0], [1.0], [2.0], [3.0], [4.0]]
    >>> model = HuberRegressor().fit(X, [0.1, 0.9, 2.2, 2.9, 40.0])
    >>> model.certificate_.certified
    True
    """

    def _minimise(self, X: Any, y: Any, sample_weight: Any) -> None:
        X, y = validate_data(
            self,
            X,
            y,
            copy=False,
            accept_sparse=["csr"],
            y_numeric=True,
            dtype=[np.float64, np.float32],
        )
        fitting.need_arrays(X)
        weight = np.asarray(_check_sample_weight(sample_weight, X), dtype=np.float64)
        fitting.need_weights(weight)
        fitting.need_iterations(self.max_iter)
        before = earlier(self)
        problem = _Problem(X, np.asarray(y, dtype=np.float64), weight, self)
        at = problem.best_scale()
        self.certificate_ = problem.proof(at)
        self.scale_ = np.float64(at.scale)
        self.coef_ = np.ascontiguousarray(at.found.W[:-1, 0])
        self.intercept_ = at.found.W[-1, 0] if self.fit_intercept else 0.0
        passes = fitting.iterations(problem.passes, self.max_iter)
        self.n_iter_ = 0 if at_minimum(before, self) else passes
        self.outliers_ = np.abs(problem.residuals(at.found.W)) > self.scale_ * self.epsilon


class _At(NamedTuple):
    """The fit at one scale: what it found, and [low, high] around g."""

    scale: float
    found: Minimum
    low: float
    high: float


class _Problem:
    """One regression, at any scale."""

    def __init__(self, X: Any, y: FloatArray, weight: FloatArray, model: Any) -> None:
        self.X = X.tocsr() if sp.issparse(X) else X
        self.y, self.weight, self.model = y, weight, model
        self.mass = math.fsum(weight.tolist())
        self.given = Given(len(y), y, None if (weight == 1.0).all() else weight)
        self.passes = 0
        self._start: FloatArray | None = None

    def at(self, scale: float) -> _At:
        """Enclose g at a scale."""
        problem = huber(
            self.given,
            self.model.epsilon,
            self.model.alpha,
            scale,
            fit_intercept=bool(self.model.fit_intercept),
        )
        found = fitting.minimise_proven(problem, self.X, _TOL, self._start)
        self.passes += found.passes
        if (
            self.X.shape[0] * self.X.shape[1] > _SMALL
        ):  # small data are fitted at once, from anywhere
            self._start = found.W
        proof, term = found.certificate, self.mass * scale
        low = (proof.dual + term) * (1.0 - _UNITS)
        high = (proof.primal + proof.rounding + term) * (1.0 + _UNITS)
        return _At(scale, found, low, high)

    def residuals(self, W: FloatArray) -> FloatArray:
        """t - x.w - b."""
        return np.asarray(self.y - (self.X @ W[:-1, 0] + W[-1, 0]))

    def scale_of(self, W: FloatArray) -> float:
        """T: the scale that suits the residuals of W, sum s min((r/sigma)^2, epsilon^2) = S."""
        r, epsilon = np.abs(self.residuals(W)), float(self.model.epsilon)
        order = np.argsort(r)
        r, s = r[order], self.weight[order]
        inner, outer = np.cumsum(s * r * r), self.mass - np.cumsum(s)
        rest = self.mass - epsilon * epsilon * outer
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = np.sqrt(np.where(rest > 0.0, inner / rest, np.nan))
            fits = (r <= epsilon * scale) & (epsilon * scale <= np.append(r[1:], np.inf))
        found = scale[fits]
        if not len(found) or not found[0] > _NO_SCALE * float(np.abs(self.y).max()):
            raise Delegated("the targets are fitted exactly, and the scale tends to 0")
        return float(found[0])

    def best_scale(self) -> _At:
        """The fit at the fixed point of T, by secants on log T(sigma) - log sigma."""
        spread = float(np.sqrt(np.average((self.y - np.median(self.y)) ** 2, weights=self.weight)))
        if not spread > 0.0:
            raise Delegated("the targets are fitted exactly, and the scale tends to 0")
        before: tuple[float, float] | None = None
        x, found = math.log(spread), None
        for _ in range(_SECANTS):
            found = self.at(math.exp(x))
            change = math.log(self.scale_of(found.found.W)) - x
            if abs(change) <= _SCALE:
                break
            step = change
            if before is not None and change != before[1]:
                secant = -change * (x - before[0]) / (change - before[1])
                if 0.0 < secant / change < 30.0:
                    step = secant
            before, x = (x, change), x + step
        assert found is not None
        return found

    def proof(self, at: _At) -> Optimality:
        """The certificate of coefficients and scale together; Delegated if none is found."""
        for width in _BRACKETS:
            left, right = self.at(at.scale * (1.0 - width)), self.at(at.scale * (1.0 + width))
            # the half widths of the bracket differ by rounding alone
            rise = max(left.high, right.high) - at.low
            lower = at.low - rise * (1.0 + 2.0**-30)
            if min(left.low, right.low) >= at.high and at.high - lower <= PROVEN * at.high:
                return self._certificate(at, lower)
        raise Delegated("the scale is not determined well enough to prove it")

    def _certificate(self, at: _At, lower: float) -> Optimality:
        inner = at.found.certificate
        primal = inner.primal + self.mass * at.scale
        gap = max(at.high - lower, 0.0)
        share = relative(gap, primal, lower)
        return replace(
            inner,
            primal=primal,
            dual=lower,
            gap=gap,
            relative_gap=share,
            coef_error=math.inf,
            tol=PROVEN,
            certified=share <= PROVEN,
            rounding=max(at.high - primal, 0.0),
            parts=(),
        )
