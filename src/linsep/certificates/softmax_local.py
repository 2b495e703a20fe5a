"""The local certificate (see ``local``) of the multinomial loss.

Unknowns are the k columns of W, stacked. The Hessian of a row in its scores is diag(p) - p p'. The third
derivative of logsumexp is bounded by its second: moving the scores by t changes that matrix by a factor
of at least exp(-2 max_c |t_c|), so on the ball |delta|_M <= rho

    kappa >= exp(-2 rho max_ic sqrt(q_ic)),      q_ic = x~_i' (M^-1)_cc x~_i .

Without a penalty, adding one vector to all columns changes nothing: the answer is never unique.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.certificates.metric import Metric, bound
from linsep.certificates.optimality import Optimality, enclose
from linsep.certificates.recheck import given
from linsep.certificates.rows import dense_chunks, longest_dense_sum
from linsep.losses import Multinomial
from linsep.problem.closing_rows import ROUNDOFF

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

#: Most unknowns for which the Hessian is formed.
LARGEST = 2000


@dataclass(eq=False)
class _Answer:
    """What one visit of the rows finds at the answer; class by class where that matters."""

    wobble: FloatArray  #: (n, k) rounding error of the slopes
    g: FloatArray  #: (k, size)
    slack: FloatArray  #: rounding error of g from adding up
    spill: FloatArray  #: rounding error of g in all
    H: FloatArray  #: (k, size, k, size)
    primal: float = 0.0
    null: float = 0.0
    rounding: float = 0.0


def softmax_local_certificate(  # noqa: PLR0913
    loss: Multinomial,
    X: Any,
    labels: IntArray,
    weight: FloatArray | None,
    W: FloatArray,
    *,
    lam: float,
    fit_intercept: bool,
    scale: float,
    tol: float,
) -> Optimality:
    """Certify W (d+1, k); lam may be 0."""
    size = X.shape[1] + int(fit_intercept)
    theta = np.asarray(W, dtype=np.float64)[:size]
    s = given(weight, slice(0, X.shape[0]), 1.0)
    at = _visit(loss, X, np.asarray(labels), s, theta, lam)
    drop = _drop(at, X, fit_intercept)
    unique = lam > 0.0 and math.isfinite(drop)
    return enclose(
        at.primal,
        at.primal - drop,
        at.rounding,
        scale=scale,
        tol=tol,
        distance=math.sqrt(2.0 / lam) if unique else math.inf,
        kind="local",
        drop=drop,
        null=at.null,
    )


def _visit(
    loss: Multinomial, X: Any, labels: IntArray, s: FloatArray, theta: FloatArray, lam: float
) -> _Answer:
    (n, d), (size, k) = X.shape, theta.shape
    formed = size if size * k <= LARGEST else 0
    chain = (longest_dense_sum(X) + k + 8) * ROUNDOFF
    vectors = np.zeros((k, size)), np.zeros((k, size)), np.zeros((k, size))
    at = _Answer(np.empty((n, k)), *vectors, np.zeros((k, formed, k, formed)))
    for rows, A in dense_chunks(X, size > d):
        Z, y, weight = A @ theta, labels[rows], s[rows][:, None]
        e = (size + 6) * ROUNDOFF * (np.abs(A) @ np.abs(theta)).max(axis=1, keepdims=True)
        slope, value = weight * loss.slope(Z, y), float(s[rows] @ loss.value(Z, y))
        # p_c and 1 - p_y change by a factor of at most exp(2 e) within the error e of the scores.
        at.wobble[rows] = np.abs(slope) * (np.expm1(2 * e) + (k + 8) * ROUNDOFF)
        at.g += slope.T @ A
        at.slack += chain * (np.abs(slope).T @ np.abs(A))
        at.spill += at.wobble[rows].T @ np.abs(A)
        at.primal += value
        at.null += float(s[rows].sum()) * math.log(k)
        at.rounding += chain * value + float((np.abs(slope) * np.exp(2 * e) * e).sum())
        if formed:
            _add_hessian(at.H, A, s[rows], loss.proba(Z))
    penalty = 0.5 * lam * float((theta[:d] ** 2).sum())
    at.primal += penalty
    at.rounding += (d * k + 8) * ROUNDOFF * penalty
    at.g[:, :d] += lam * theta[:d].T
    at.slack[:, :d] += 8 * ROUNDOFF * lam * np.abs(theta[:d].T)
    at.spill += at.slack
    if formed:
        for c in range(k):
            at.H[c, range(d), c, range(d)] += lam
    return at


def _add_hessian(H: FloatArray, A: FloatArray, s: FloatArray, P: FloatArray) -> None:
    """H[c, :, c', :] += sum_i s p_c (1[c = c'] - p_c') x~ x~', both triangles."""
    for c in range(P.shape[1]):
        for other in range(c + 1):
            h = s * P[:, c] * ((1.0 - P[:, c]) if c == other else -P[:, other])
            block = A.T @ (h[:, None] * A)
            H[c, :, other, :] += block
            if c != other:
                H[other, :, c, :] += block.T


def _drop(at: _Answer, X: Any, fit_intercept: bool) -> float:
    """Bound on P - P*, infinite if the argument does not close."""
    k, size = at.g.shape
    if not (at.H.size and np.isfinite(at.g).all() and math.isfinite(at.primal)):
        return math.inf
    accuracy = (longest_dense_sum(X) + 8) * ROUNDOFF
    metric = Metric.from_gram(at.H.reshape(k * size, k * size), accuracy)
    if not metric.reaches(at.g.ravel(), at.spill.ravel()):
        return math.inf
    T = metric.T.reshape(k, size, -1)
    mu, furthest = metric.dual_norm(at.g.ravel(), at.slack.ravel()), 0.0
    for rows, A in dense_chunks(X, fit_intercept):
        for c in range(k):
            reach = np.sqrt(((A @ T[c]) ** 2).sum(axis=1))
            furthest = max(furthest, float(reach.max(initial=0.0)))
            mu += float(at.wobble[rows, c] @ reach)
    certain = max(1.0 - metric.error, 0.0) ** 2
    found = bound(mu, lambda rho: certain * math.exp(-2.0 * rho * furthest))
    return math.inf if found is None else found[0]
