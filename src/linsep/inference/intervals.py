"""Standard errors, confidence intervals and p-values where they are valid, otherwise the reason why not.

Without a penalty, maximum likelihood estimates are asymptotically normal around the true coefficients, and their
covariance is the inverse Fisher information:

* logistic: ``(X~'diag(s p (1 - p)) X~)^-1``, Wald intervals from the normal distribution;
* least squares: ``sigma^2 (X~'diag(s) X~)^-1`` with ``sigma^2 = RSS / (N - rank)``, t intervals, exact for normal
  errors.

``X~ = (X, 1)``; sample weights are frequencies (weight 2 means the row occurs twice), so N is the sum of the weights. A
penalty biases the coefficients towards zero by an unknown amount, so there are no intervals for penalised models, and
the summary says why. Their held-out error can still be given, with an exact binomial bound.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from linsep.arrays import FloatArray
from linsep.certificates import Part
from linsep.certificates.curvature.certificate import visit
from linsep.certificates.curvature.kernel_rows import KernelRows
from linsep.certificates.curvature.rows import Rows
from linsep.certificates.optimality import SMALLEST
from linsep.certificates.parts import vector_or_default
from linsep.data import Block, Memory
from linsep.inference.results import Coefficient
from linsep.interrupts import lapack
from linsep.losses import Logistic, Loss, Multinomial, Squared, zero_margin
from linsep.problem.recipe import Recipe

INTERCEPT = "(intercept)"
# columns are dependent if an eigenvalue of the scaled information is relatively smaller
_DEPENDENT = 1e-12

#: Largest fraction of the residual sum of squares that may be rounding error.
_NOISE = 1e-2


def refusal(part: Part | Recipe) -> str | None:
    """Return why loss and penalty allow no intervals, or None; does not read the rows."""
    if not isinstance(part.loss, Logistic | Squared | Multinomial):
        return (
            f"the {part.loss.name} loss is not a likelihood. Use the logistic or the squared loss."
        )
    if isinstance(part.loss, Squared) and part.loss.centre != 0.0:
        return "the squared loss of class labels is not a likelihood. Use the logistic loss."
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
    return None


def rows(part: Part) -> Rows:
    """Return the rows with signs, offsets and weights, read by kernels if they are in memory."""
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
    """Return the margins sign * score + offset of all rows."""
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
    """Return the covariance of (w, b), the degrees of freedom (inf: normal distribution), and a note on the intervals.

    Return None, 0 and the reason if columns are linearly dependent or there are too few rows.
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


def log_likelihood(part: Part) -> float:
    """Logarithm of the likelihood at the fit; for least squares with the variance that maximises it."""
    assert isinstance(part.loss, Loss)
    of = rows(part)
    if not isinstance(part.loss, Squared):
        return -float(of.weight @ part.loss.value(margins(part, of)))
    n, variance = float(of.weight.sum()), _sum_of_squares(part, of) / float(of.weight.sum())
    return -0.5 * n * (np.log(2.0 * np.pi * variance) + 1.0) if variance > 0.0 else np.inf


def likelihood_facts(part: Part) -> dict[str, float]:
    """Facts about a fit by maximum likelihood: log-likelihood, AIC, BIC, and for least squares the residual error."""
    of = rows(part)
    n, k, value = float(of.weight.sum()), of.size, log_likelihood(part)
    facts = {}
    if isinstance(part.loss, Squared):
        facts["residual standard error"] = float(np.sqrt(_sum_of_squares(part, of) / (n - k)))
    if np.isfinite(value):
        facts |= {
            "log-likelihood": value,
            "AIC": 2.0 * k - 2.0 * value,
            "BIC": float(k * np.log(n)) - 2.0 * value,
        }
    return facts


def _sum_of_squares(part: Part, of: Rows) -> float:
    """Weighted sum of the squared residuals."""
    assert isinstance(part.loss, Loss)
    return float(of.weight @ (zero_margin(part.loss) - margins(part, of)) ** 2)


def with_intervals(
    part: Part, names: list[str], spread: FloatArray, freedom: float, level: float
) -> tuple[Coefficient, ...]:
    """Return one line per coefficient, by the normal distribution if ``freedom`` is infinite, else by Student's t."""
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
