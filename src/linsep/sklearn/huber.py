"""scikit-learn's ``HuberRegressor``: coefficients and scale are minimised and certified together.

``huber_newton`` states the problem P(w, b, sigma) and minimises it. As H(z) is the maximum of u z - u^2/4 over
|u| <= 2 epsilon, the dual problem is

    maximise sum s u t - |sum s u x|^2/(4 alpha)   with |u| <= 2 epsilon, sum s u^2 <= 4 S, and sum s u = 0 for b.

The second condition comes from the scale: without it S sigma - sigma sum s u^2/4 is not bounded from below. The dual
value is that of the absolute loss 2 epsilon |r| with the same penalty, whose closing pass encloses it. To make u
feasible, that pass only shrinks some u, so that sum s u^2 <= 4 S remains true. At the solution
u = 2 clip(r/sigma, -epsilon, epsilon) satisfies it with equality. Without a penalty, the distance to a nearby u that
satisfies sum s u x = 0 exactly is bounded, as in ``certificates.curvature.repaired_dual``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import linear_model
from sklearn.utils.validation import _check_sample_weight, validate_data

from linsep.arrays import FloatArray
from linsep.certificates import Optimality
from linsep.certificates.closing import ridge_certificate
from linsep.certificates.curvature.certificate import LARGEST
from linsep.certificates.curvature.kernel_rows import KernelRows
from linsep.certificates.curvature.repaired_dual import feasible_point, worst_case_bound
from linsep.certificates.optimality import relative
from linsep.data import Memory
from linsep.errors import LinsepError
from linsep.losses import Absolute, Huber
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.sklearn import fitting, huber_newton, ordinary
from linsep.sklearn.fitting import PROVEN, Delegated
from linsep.sklearn.regression import Minimised, at_minimum, earlier
from linsep.solution import Explicit

#: Fraction by which a dual point without a penalty is shrunk, so that the nearby feasible point is inside the domain.
_SHRINK = 1e-9
#: Covers the relative rounding of the scale term and of the parameters of the fits.
_UNITS = 2.0**-47


class HuberRegressor(Minimised, linear_model.HuberRegressor):  # type: ignore[misc]
    """scikit-learn's ``HuberRegressor`` with a proof of optimality in ``certificate_``.

    Parameters and attributes are those of ``sklearn.linear_model.HuberRegressor``. The certificate is for
    coefficients and scale together. ``tol`` and ``warm_start`` have no effect, nor has ``max_iter`` from 10 on. linsep
    leaves the fit to scikit-learn if ``max_iter`` is smaller, or if the scale tends to 0: targets that can be fitted
    exactly, or ``epsilon`` near 1 with few rows.

    See Also
    --------
    sklearn.linear_model.HuberRegressor : Parameters and attributes.
    linsep.LinearRegressor : With linsep's own parameters.

    Notes
    -----
    The objective, minimised over ``w``, ``b`` and the scale ``sigma``, is

        S sigma + sum_i s_i sigma H((t_i - x_i.w - b)/sigma) + alpha |w|^2

    where ``s_i`` is the sample weight, ``S`` the sum of all, and ``H(z)`` is z^2 for |z| <= epsilon and
    2 epsilon |z| - epsilon^2 beyond.

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
        self._solve(X, np.asarray(y, dtype=np.float64), weight)

    def _fit_ordinary(self, X: Any, y: Any) -> bool:
        if not ordinary.targets(self, HuberRegressor, X, y, "epsilon") or not np.isfinite(X).all():
            return False
        if type(self.epsilon) is not float or not self.epsilon >= 1.0:
            return False
        try:
            self._solve(X, y, np.ones(len(y)))
        except (Delegated, LinsepError):
            return False
        self.n_features_in_ = X.shape[1]
        fitting.forget(self, "feature_names_in_")
        return True

    def _solve(self, X: Any, y: FloatArray, weight: FloatArray) -> None:
        """Minimise, certify and store, or raise Delegated."""
        before = earlier(self)
        problem = _Problem(X, y, weight, self)
        at, steps = huber_newton.minimise(problem.regression)
        self.certificate_ = problem.proof(at)
        self.scale_ = np.float64(at.scale)
        self.coef_ = at.theta[:-1].copy()
        self.intercept_ = at.theta[-1] if self.fit_intercept else 0.0
        passes = fitting.iterations(steps, self.max_iter)
        self.n_iter_ = 0 if at_minimum(before, self) else passes
        self.outliers_ = np.abs(at.r) > self.scale_ * self.epsilon


class _Problem:
    """One regression problem and the proof of its minimum."""

    def __init__(self, X: Any, y: FloatArray, weight: FloatArray, model: Any) -> None:
        X = X.tocsr() if sp.issparse(X) else X
        self.free = bool(model.fit_intercept)
        plain = X.astype(np.float64, copy=False)
        self.regression = huber_newton.Regression(
            plain, y, weight, model.epsilon, model.alpha, self.free
        )
        self.weight = None if (weight == 1.0).all() else weight
        self.data = Memory(X, np.ones(len(y)), -y, self.weight)

    def proof(self, at: huber_newton.Point) -> Optimality:
        """Certificate of coefficients and scale together; raises Delegated if none is found."""
        known = self.regression
        primal, rounding = self._objective(at)
        high = (primal + rounding) * (1.0 + _UNITS)
        u = self._within_scale(np.clip(at.r / (known.epsilon * at.scale), -1.0, 1.0))
        bound = (
            self._penalised_dual_value(at.theta, u)
            if known.alpha
            else self._unpenalised_dual_value(u)
        )
        lower = max(bound * (1.0 - _UNITS), 0.0)
        gap = max(high - lower, 0.0)
        share = relative(gap, primal, lower)
        if not share <= PROVEN:
            raise Delegated(f"only a relative gap of {share:.1e} is proven")
        return Optimality(
            primal, lower, gap, share, math.inf, PROVEN, True, max(high - primal, 0.0)
        )

    def _objective(self, at: huber_newton.Point) -> tuple[float, float]:
        """P, and a bound on its rounding error."""
        known = self.regression
        loss = Huber(known.epsilon * at.scale).for_targets()
        part = KernelRows.of(self.data, self.free, known.alpha * at.scale)
        seen = part.visit(loss, np.ascontiguousarray(at.theta[: part.size]))
        unit = 2.0 / at.scale
        return known.mass * at.scale + unit * seen.primal, unit * seen.rounding

    def _within_scale(self, u: FloatArray) -> FloatArray:
        """Shrink u, in units of 2 epsilon, until sum s u^2 <= S/epsilon^2 holds despite rounding."""
        total, limit, slack = self._square_sums(u)
        return u * min(1.0, math.sqrt(limit / total) * (1.0 - slack)) if total > 0.0 else u

    def _square_sums(self, u: FloatArray) -> tuple[float, float, float]:
        """Sum s u^2, its upper limit, and the relative rounding error of both."""
        known = self.regression
        slack = (len(u) + 64) * 2.0**-52
        return float(known.s @ (u * u)), known.mass / known.epsilon**2, slack

    def _penalised_dual_value(self, theta: FloatArray, u: FloatArray) -> float:
        """Lower bound from the closing pass of the absolute loss."""
        known = self.regression
        penalty = ElasticNet(known.epsilon / known.alpha)
        problem = Problem(Absolute().for_targets(), penalty, self.data, self.free)
        sums = problem.closing(theta, Explicit(u))
        longest = self.data.longest_sum(len(sums))
        found = ridge_certificate(sums, theta, penalty, self.free, PROVEN, longest)
        return 2.0 * known.alpha * found.dual

    def _unpenalised_dual_value(self, u: FloatArray) -> float:
        """Lower bound at the point near u with sum s u x~ = 0."""
        part = KernelRows.of(self.data, self.free)
        loss = Absolute().for_targets()
        found = (
            feasible_point(loss, part, u * (1.0 - _SHRINK), _SHRINK)
            if part.size <= LARGEST
            else None
        )
        if found is None:
            return 0.0
        total, limit, slack = self._square_sums(np.abs(found[0]) + found[1])
        if not total * (1.0 + slack) <= limit * (1.0 - slack):
            return 0.0
        value, rounding = worst_case_bound(loss, part, *found)
        return 2.0 * self.regression.epsilon * (value - rounding)
