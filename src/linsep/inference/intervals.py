"""Standard errors, confidence intervals and p-values, where they are valid, and a reason where they are not.

Maximum likelihood without a penalty: the coefficients are asymptotically normal around the truth with covariance
the inverse Fisher information,

* logistic: ``(X~'diag(s p (1 - p)) X~)^-1``, Wald intervals from the normal distribution;
* least squares: ``sigma^2 (X~'diag(s) X~)^-1`` with ``sigma^2 = RSS / (N - rank)``, t intervals, exact for normal
  errors.

``X~ = (X, 1)``; a sample weight counts rows (weight 2 = row twice), so N is the sum of the weights. A penalty biases
the coefficients towards zero by an unknown amount: then no interval is given, and the summary says why. What is
known of a penalised model is its held-out error, with an exact binomial bound.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from linsep.arrays import FloatArray
from linsep.certificates import Part
from linsep.certificates.kernel_rows import KernelRows
from linsep.certificates.local import visit
from linsep.certificates.optimality import SMALLEST
from linsep.certificates.recheck import vector_or_default
from linsep.certificates.rows import Rows
from linsep.data import Block, Memory
from linsep.inference.results import Coefficient
from linsep.interrupts import lapack
from linsep.losses import Logistic, Loss, Multinomial, Squared

INTERCEPT = "(intercept)"
_DEPENDENT = (
    1e-12  # of the largest eigenvalue of the scaled information: below, columns are dependent
)

#: Share of the residuals' squares that rounding may make up.
_NOISE = 1e-2


def refusal(part: Part) -> str | None:
    """Why there can be no intervals, before looking at the rows."""
    if not part.penalty.absent:
        return (
            "the coefficients are penalised, which biases them towards zero by an unknown amount. Fit with C=inf for "
            "inference, or judge the model by its held-out error."
        )
    if isinstance(part.loss, Multinomial):
        return (
            "only differences between the classes of a multinomial model are identified. Use multiclass='ovr' for one "
            "table for each class."
        )
    if not isinstance(part.loss, Logistic | Squared):
        return (
            f"the {part.loss.name} loss is not a likelihood. Use the logistic or the squared loss."
        )
    if isinstance(part.loss, Squared) and part.loss.centre != 0.0:
        return "the squared loss of class labels is not a likelihood. Use the logistic loss."
    return None


def rows(part: Part) -> Rows:
    """The rows with signs, offsets and weights, read by kernels where they lie in memory."""
    if isinstance(part.X, np.ndarray) or sp.issparse(part.X):
        data = Memory(part.X, part.sigma, part.offset, part.weight)
        return KernelRows.of(data, part.fit_intercept)
    everyone = slice(0, part.X.shape[0])
    offset, weight = (
        vector_or_default(part.offset, everyone, 0.0),
        vector_or_default(part.weight, everyone, 1.0),
    )
    return Rows(part.X, part.sigma, offset, weight, part.fit_intercept, 0.0)


def margins(part: Part, of: Rows) -> FloatArray:
    """sign * score + offset of every row."""
    out = np.empty(of.X.shape[0])
    theta = np.ascontiguousarray(part.W[:, 0], dtype=np.float64)

    def put(block: Block, total: FloatArray) -> None:
        here = slice(block.first + block.lo, block.first + block.hi)
        out[here] = block.margins(block.scores(theta))

    if isinstance(of, KernelRows):
        of.data.sum(put, 1, reads=())
        return out
    for here, A in of.chunks():
        out[here] = of.sigma[here] * (A @ theta[: of.size]) + of.offset[here]
    return out


def covariance(part: Part) -> tuple[FloatArray | None, float, str]:
    """Covariance of (w, b), degrees of freedom (inf for the normal), and which intervals follow.

    None, 0 and the reason if columns are linearly dependent or too few rows are left.
    """
    assert isinstance(part.loss, Loss)
    of = rows(part)
    theta = np.ascontiguousarray(part.W[: of.size, 0], dtype=np.float64)
    at = of.visit(part.loss, theta) if isinstance(of, KernelRows) else visit(part.loss, of, theta)
    weight, order, total = of.weight, of.size, float(of.weight.sum())
    squared = isinstance(part.loss, Squared)
    information = of.gram(weight if squared else weight * part.loss.curvature(at.m))
    diagonal = np.diag(information)
    if not (np.isfinite(diagonal).all() and np.isfinite(at.primal)) or (
        0.0 < min(diagonal.min(), at.primal) < SMALLEST
    ):
        return None, 0.0, "the information or the objective is out of range. Scale X, y or weights."
    if squared and total > order and at.rounding > _NOISE * at.primal:
        return None, 0.0, "the model fits the targets exactly: the residuals are rounding errors."
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    values, vectors = lapack(np.linalg.eigh, information * scale * scale[:, None])
    if values[0] <= _DEPENDENT * values[-1]:
        return (
            None,
            0.0,
            (
                "columns of X are linearly dependent (a constant column beside the intercept, a full set of "
                "indicators, ...), so single coefficients are not identified. Leave some columns out."
            ),
        )
    inverse = scale[:, None] * ((vectors / values) @ vectors.T) * scale
    if not squared:
        return (
            inverse,
            np.inf,
            (
                "Wald intervals from the inverse Fisher information: valid for many rows if the model is correct and "
                "the rows are independent."
            ),
        )
    freedom = total - order
    if freedom <= 0:
        return None, 0.0, "there are not more rows than coefficients."
    text = "t intervals of least squares: exact if errors are normal, independent and of equal variance."
    return inverse * (at.primal / freedom), freedom, text


def with_intervals(
    part: Part, names: list[str], spread: FloatArray, freedom: float, level: float
) -> tuple[Coefficient, ...]:
    """One line per coefficient: normal law where ``freedom`` is infinite, Student's t elsewhere."""
    normal, upper = np.isinf(freedom), 0.5 + 0.5 * level
    reach = float(ndtri(upper) if normal else stdtrit(freedom, upper))
    logistic = isinstance(part.loss, Logistic)
    lines = []
    titles = [*names, INTERCEPT] if part.fit_intercept else names
    for j, name in enumerate(titles):
        value, error = float(part.W[j, 0]), float(np.sqrt(spread[j, j]))
        low, high = value - reach * error, value + reach * error
        ratios = np.exp([value, low, high]).tolist() if logistic and name != INTERCEPT else None
        statistic = value / error if error > 0.0 else float(np.copysign(np.inf, value))
        lines.append(
            Coefficient(
                name,
                value,
                error,
                statistic,
                2.0 * float(ndtr(-abs(statistic)) if normal else stdtr(freedom, -abs(statistic))),
                low,
                high,
                *(ratios or ()),
            )
        )
    return tuple(lines)
