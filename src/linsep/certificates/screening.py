"""Gap-safe screening of a fitted model: which coefficients are proven zero, or nonzero, at the optimum.

With an L1 penalty l1, a weight w*_j of the optimum is 0 if ``|v*_j| < l1``, v* = sum s sigma u* x. The conjugate of a
loss whose curvature is at most L is strongly convex with constant 1/L, hence so is -D, and the dual point u of a
certificate satisfies ``sum s (u - u*)^2 <= 2 L gap``. By the Cauchy-Schwarz inequality

    |v_j - v*_j|  <=  sqrt(sum_i s_i x_ij^2) sqrt(2 L gap):

so a coefficient with |v_j| at least that far below l1 is zero in every optimum (Ndiaye, Fercoq, Gramfort and Salmon,
Gap safe screening rules, 2017). The softmax has L = 1/2, and the same holds for each V_jc. A coefficient larger than
``coef_error`` is not 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from linsep.arrays import BoolArray, FloatArray, squares
from linsep.certificates.parts import (
    Part,
    chunks,
    closing_sums_numpy,
    longest_sum,
    vector_or_default,
)
from linsep.certificates.reductions.target_units import target_units
from linsep.certificates.softmax import softmax_sums_numpy
from linsep.certificates.verification import recheck_part, verify
from linsep.errors import Refused
from linsep.losses import CoupledLoss, Loss, Multinomial
from linsep.problem.closing_rows import ROUNDOFF
from linsep.problem.duality import balance, mixture

_SOFTMAX_CURVATURE = 0.5


@dataclass(frozen=True, eq=False)
class Screening:
    """Which coefficients are proven zero or nonzero in every optimum; arrays have the shape of ``coef_``.

    Attributes
    ----------
    zero : ndarray of bool
        Proven to be 0 in every optimum.
    nonzero : ndarray of bool
        Proven not to be 0 (elastic net with a ridge part; a pure L1 penalty gives no such bound).
    """

    zero: BoolArray
    nonzero: BoolArray

    @property
    def undecided(self) -> BoolArray:
        """Coefficients for which neither is proven; a smaller ``tol`` may decide them."""
        return np.asarray(~(self.zero | self.nonzero))

    def __str__(self) -> str:
        return (
            f"{int(self.zero.sum())} of {self.zero.size} coefficients proven zero, {int(self.nonzero.sum())} proven "
            f"nonzero, {int(self.undecided.sum())} undecided"
        )

    __repr__ = __str__


def screen(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Screening:
    """Prove which coefficients are zero, and which are nonzero, in every optimum.

    The model's certificate is verified first, on the data it was fitted to.

    Parameters
    ----------
    model : fitted estimator with l1_ratio > 0
    X, y : array-likes
        The rows that the model was fitted to.
    sample_weight : array (n,), optional
        The weights that it was fitted with.

    Returns
    -------
    Screening
        Boolean arrays: coefficients that are zero in every optimum, nonzero in every optimum, undecided.

    Raises
    ------
    CertificateError
        If the certificate of the model cannot be confirmed on these rows.
    Refused
        If the model has no L1 penalty, or its loss has no bounded curvature.

    See Also
    --------
    path : Models for increasing C.
    verify : Recompute the certificate.

    Notes
    -----
    For a loss of curvature at most L, the gap bounds the distance of the dual point from its optimum. Coefficient j is
    proven zero if ``|v_j| + sqrt(2 L gap sum_i s_i x_ij^2) < l1``, where ``v_j`` is the correlation of feature j with
    the dual point, ``s_i`` the sample weights and l1 the L1 penalty. It is proven nonzero if it exceeds ``coef_error``.

    References
    ----------
    Ndiaye, Fercoq, Gramfort and Salmon, Gap safe screening rules for sparsity enforcing penalties, Journal of Machine
    Learning Research 18, 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from linsep import LogisticRegression, screen
    >>> X = np.random.default_rng(0).normal(size=(200, 8))
    >>> model = LogisticRegression(C=0.05, l1_ratio=1.0, tol=1e-9).fit(X, X[:, 0] > 0)
    >>> print(screen(model, X, X[:, 0] > 0))
    7 of 8 coefficients proven zero, 0 proven nonzero, 1 undecided
    """
    verify(model, X, y, sample_weight)
    parts = [_in_units(Part(*part)) for part in model._verification_parts(X, y, sample_weight)]
    found = [_screen_part(part) for part in parts]
    shape = np.shape(model.coef_)
    zero, nonzero = (np.hstack([part[k] for part in found]).T.reshape(shape) for k in (0, 1))
    return Screening(zero, nonzero)


def _screen_part(part: Part) -> tuple[BoolArray, BoolArray]:
    """Masks (d, k) of proven zeros and proven nonzeros of one subproblem."""
    l1, lam = part.penalty.l1, part.penalty.l2
    if not l1 > 0.0:
        raise Refused(
            "screen needs l1_ratio > 0 and a finite C: without an L1 penalty no coefficient is exactly zero."
        )
    certificate = recheck_part(part)
    gap = certificate.gap / part.penalty.scale
    v, v_error, curvature = _dual_vector(part)
    if lam == 0.0:
        v = v * (l1 / max(l1, float(np.abs(v).max(initial=0.0)) + v_error))
    total = np.zeros(part.X.shape[1])
    for rows, block in chunks(part.X):
        total += np.asarray(squares(block).T @ vector_or_default(part.weight, rows, 1.0)).ravel()
    reach = 1.000001 * np.sqrt(total * (2.0 * curvature * gap))
    zero = np.abs(v) + v_error + reach[:, None] < l1
    nonzero = np.abs(part.W[:-1]) > certificate.coef_error
    return zero, nonzero


def _in_units(part: Part) -> Part:
    """Rescale the targets so that nothing overflows; which weights are 0 does not depend on units."""
    return target_units(part.loss, part.penalty, part.offset).part(part)


def _dual_vector(part: Part) -> tuple[FloatArray, float, float]:
    """V (d, k) of the balanced dual point, a bound on its rounding error, and the curvature bound of the loss.

    The error covers summation and the exact restoration of the balance (see "Balance" in ``closing``).
    """
    chain = (longest_sum(part.X) + 16) * ROUNDOFF
    rows = part.X, part.weight
    if isinstance(part.loss, CoupledLoss):
        if not isinstance(part.loss, Multinomial):
            raise Refused(f"screen does not take the {part.loss.name} loss.")
        coupled = softmax_sums_numpy(part.loss, part.X, part.labels, rows[1], part.W, part.dual)
        v = mixture(coupled, part.loss)[2] if part.fit_intercept else coupled.v
        return v, chain * (4.0 * coupled.spread + 8.0 * coupled.bulk), _SOFTMAX_CURVATURE
    assert isinstance(part.loss, Loss)
    if not math.isfinite(part.loss.curvature_bound):
        raise Refused(f"screen needs a loss of bounded curvature, which {part.loss.name} is not.")
    sums = closing_sums_numpy(
        part.loss, part.X, part.sigma, part.offset, part.weight, part.W, part.dual
    )
    plus, minus = balance(sums.mass_plus, sums.mass_minus) if part.fit_intercept else (1.0, 1.0)
    v = (plus * sums.v_plus + minus * sums.v_minus).reshape(-1, 1)
    return v, 4.0 * chain * sums.spread, part.loss.curvature_bound
