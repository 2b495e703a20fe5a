"""The local certificate of the multinomial loss (see ``certificate`` for the argument).

The unknowns are the k columns of W, stacked. The Hessian of a row in its scores is diag(p) - p p', the variance under
p: its quadratic form is min_a sum_c p_c (v_c - a)^2. Changing the scores by t multiplies each p_c by at least exp(-2
max_c |t_c|), so on the ball |delta|_M <= rho

    kappa >= exp(-2 rho max_ic sqrt(q_ic)),      q_ic = x~_i' (M^-1)_cc x~_i .

Adding one vector to all columns does not change differences of scores. So without a penalty the last column, and with
one the last intercept, may be held fixed, and M must be proven positive definite in the other unknowns. Without a
penalty, columns of x~ that are exact combinations of others are left out as well. The solution is then never unique.

The Hessian of more than ``LARGEST`` unknowns is not formed. Without a penalty, M then has one block for each edge of a
tree that connects the classes. The variance under p is a sum over pairs, and the edges of a tree are some of them:

    v'(diag p - p p')v = sum_{a < b} p_a p_b (v_a - v_b)^2 >= sum_{edges (a, b)} p_a p_b (v_a - v_b)^2 .

The unknowns are the differences delta_e along the edges. The column of one class, the root, is held fixed, and v_c is
the sum of delta_e over the path from the root to c. In these unknowns H >= blockdiag(G_e) with
G_e = sum_i s_i p_ia p_ib x~_i x~_i', and the gradient of delta_e is the sum of the gradients of the classes below e. On
the ball |delta|_M <= rho, by the Cauchy-Schwarz inequality,

    |x~_i'v_c| <= rho r_ic,     r_ic^2 = sum over the path to c of x~_i' M_e^-1 x~_i .

As above, H changes by a factor of at least exp(-2 rho max r_ic) on the ball. The tree is the spanning tree with the
largest sums of s p_a p_b; any tree is valid.

With an intercept the unknowns are (w, b + c.w) for a fixed row c near the others, so that x~ = (x - c, 1): a large
common offset of a column then costs no digits. Each difference x - c is rounded once, with relative error u.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

from linsep.arrays import FloatArray, IntArray
from linsep.certificates.curvature.dependence import independent_columns
from linsep.certificates.curvature.metric import (
    ROUNDING_FACTOR,
    TINY,
    Metric,
    bound,
    proven_root,
    solve_scaled,
)
from linsep.certificates.curvature.rows import (
    UNDERFLOW,
    Rows,
    dense_chunks,
    longest_dense_sum,
    product_error,
    row_curvatures,
)
from linsep.certificates.optimality import Optimality, enclose
from linsep.certificates.parts import Part, vector_or_default
from linsep.interrupts import if_in_time
from linsep.losses import Multinomial
from linsep.problem.closing_rows import ROUNDOFF

#: Largest number of unknowns for which the Hessian is formed, and of one class for which its blocks are.
LARGEST = 2000
#: exp(x) underflows for x below minus this number.
_EXPONENT = 750
#: Smaller probabilities may underflow; one computed as less is at most this.
_FAINT = 2.0**-1000


@dataclass(eq=False)
class _Evaluation:
    """Objective, gradient, Hessian and their rounding errors at W."""

    slope_error: FloatArray  #: (n, k) rounding error of the slopes
    g: FloatArray  #: (k, size)
    sum_error: FloatArray  #: rounding error of g from summation
    H: FloatArray  #: (k, size, k, size)
    shift: FloatArray  #: c, and 0 for the intercept
    e: float = 0.0  #: largest rounding error of a score
    primal: float = 0.0
    rounding: float = 0.0


def softmax_local_certificate(part: Part) -> Optimality:
    """Certify the coefficients of a multinomial problem; the penalty may be 0."""
    assert isinstance(part.loss, Multinomial)
    X, lam = part.X, part.penalty.l2
    size = X.shape[1] + int(part.fit_intercept)
    theta = np.asarray(part.W, dtype=np.float64)[:size]
    s = vector_or_default(part.weight, slice(0, X.shape[0]), 1.0)
    at = _visit(part.loss, X, np.asarray(part.labels), s, theta, lam)
    formed = theta.size <= LARGEST or lam > 0.0
    drop = if_in_time(
        lambda: (
            _excess_bound(at, X, s, lam, part.fit_intercept)
            if formed
            else _excess_bound_by_tree(part, at, s, theta)
        ),
        lambda: math.inf,
    )
    unique = lam > 0.0 and math.isfinite(drop)
    return enclose(
        at.primal,
        at.primal - drop,
        at.rounding,
        scale=part.penalty.scale,
        tol=part.tol,
        distance=math.sqrt(2.0 / lam) if unique else math.inf,
        kind="local",
        drop=drop,
    )


def newton_step(part: Part) -> FloatArray:
    """The coefficients of a multinomial problem after a Newton step, the shortest where the Hessian is singular."""
    assert isinstance(part.loss, Multinomial)
    d, W = part.X.shape[1], np.array(part.W, dtype=np.float64)
    size = d + int(part.fit_intercept)
    s = vector_or_default(part.weight, slice(0, part.X.shape[0]), 1.0)
    at = _visit(part.loss, part.X, np.asarray(part.labels), s, W[:size], part.penalty.l2)
    step = solve_scaled(at.H.reshape(at.g.size, -1), -at.g.ravel()).reshape(at.g.shape).T
    W[:size] += step
    W[-1] -= at.shift[:d] @ step[:d]  # the unknown is b + c.w
    return W


def _visit(
    loss: Multinomial, X: Any, labels: IntArray, s: FloatArray, theta: FloatArray, lam: float
) -> _Evaluation:
    (n, d), (size, k) = X.shape, theta.shape
    formed = size if size * k <= LARGEST else 0
    chain = (longest_dense_sum(X) + k + 10) * ROUNDOFF
    vectors = np.zeros((k, size)), np.zeros((k, size))
    at = _Evaluation(np.empty((n, k)), *vectors, np.zeros((k, formed, k, formed)), np.zeros(size))
    for rows, A in dense_chunks(X, size > d):
        if rows.start == 0 and size > d:
            at.shift[:d] = A[:, :d].mean(axis=0)
        Z, y, weight = A @ theta, labels[rows], s[rows][:, None]
        # In addition to the rounding of the scores, exp(z - max z) errs by |z - max z| u < 750 u before it underflows.
        e = (size + 6) * ROUNDOFF * (np.abs(A) @ np.abs(theta)).max(axis=1, keepdims=True)
        e += (_EXPONENT + k) * ROUNDOFF
        slope, value = weight * loss.slope(Z, y), float(s[rows] @ loss.value(Z, y))
        # p_c and 1 - p_y change by a factor of at most exp(2 e) within the error e of the scores.
        at.slope_error[rows] = (
            np.abs(slope) * (np.expm1(2 * e) + (k + 8) * ROUNDOFF) + _FAINT * weight
        )
        at.e = max(at.e, float(e.max(initial=0.0)))
        moved = A - at.shift
        at.g += slope.T @ moved
        at.sum_error += chain * (np.abs(slope).T @ np.abs(moved)) + len(A) * UNDERFLOW
        at.primal += value
        steep = (np.abs(slope) * np.exp(2 * e) + _FAINT * weight) * e
        at.rounding += chain * value + float(steep.sum()) + len(A) * UNDERFLOW
        if formed:
            _add_hessian(at.H, moved, s[rows], loss.proba(Z))
    penalty = 0.5 * lam * float((theta[:d] ** 2).sum())
    at.primal += penalty
    at.rounding += (d * k + 8) * ROUNDOFF * penalty
    at.g[:, :d] += lam * theta[:d].T
    at.sum_error[:, :d] += 8 * ROUNDOFF * lam * np.abs(theta[:d].T)
    if formed:
        for c in range(k):
            at.H[c, range(d), c, range(d)] += lam
    return at


def _add_hessian(H: FloatArray, A: FloatArray, s: FloatArray, P: FloatArray) -> None:
    """H[c, :, c', :] += sum_i s p_c (1[c = c'] - p_c') x~ x~', both triangles; 1 - p_c is the sum of the others."""
    for c in range(P.shape[1]):
        for other in range(c + 1):
            rest = np.delete(P, c, axis=1).sum(axis=1) if c == other else -P[:, other]
            h = s * P[:, c] * rest
            block = A.T @ (h[:, None] * A)
            H[c, :, other, :] += block
            if c != other:
                H[other, :, c, :] += block.T


def _excess_bound(at: _Evaluation, X: Any, s: FloatArray, lam: float, fit_intercept: bool) -> float:
    """Bound on P - P*; infinite if the proof fails."""
    k, size = at.g.shape
    if not (at.H.size and np.isfinite(at.g).all() and math.isfinite(at.primal)):
        return math.inf
    found = _proven_root(at, X, s, lam, fit_intercept)
    if found is None:
        return math.inf
    whole, floor = found
    metric = Metric(whole, np.arange(len(whole)), floor, True)
    T, sizes = whole.reshape(k, size, -1), metric.row_norms.reshape(k, size)
    mu, furthest = metric.dual_norm(at.g.ravel(), at.sum_error.ravel()), 0.0
    for rows, block in dense_chunks(X, fit_intercept):
        A = block - at.shift
        for c in range(k):
            Z = A @ T[c]
            reach = np.sqrt(np.einsum("ij,ij->i", Z, Z))
            reach = (reach + product_error(size + 1, np.abs(A) @ sizes[c])) * ROUNDING_FACTOR
            furthest = max(furthest, float(reach.max(initial=0.0)))
            mu += float(at.slope_error[rows, c] @ reach) * (ROUNDING_FACTOR + len(A) * ROUNDOFF)
    bounded = bound(
        mu, lambda rho: floor * math.exp(-2.0 * (rho * furthest + at.e)) / ROUNDING_FACTOR
    )
    return math.inf if bounded is None else bounded[0]


def _proven_root(
    at: _Evaluation, X: Any, s: FloatArray, lam: float, fit_intercept: bool
) -> tuple[FloatArray, float] | None:
    """T (k size, .) in the free unknowns, and a proven lower bound on the eigenvalues of T'HT.

    An entry of the Hessian of a row, p_c (1 - p_c) or p_c p_c', has relative error 2 (k + 8) u, and
    p_c p_c' <= sqrt(p_c (1 - p_c) p_c' (1 - p_c')): all errors are relative to the diagonal, as ``gram_loss`` requires.
    """
    k, size = at.g.shape
    everything = np.arange(k * size).reshape(k, size)
    chain = (longest_dense_sum(X) + 2 * k + 24) * ROUNDOFF
    H = at.H.reshape(k * size, k * size)

    def proven(left: IntArray) -> tuple[FloatArray, float] | None:
        root = proven_root(H[np.ix_(left, left)], chain)
        if root is None:
            return None
        whole = np.zeros((k * size, root[0].shape[1]))
        whole[left] = root[0]
        return whole, root[1]

    if lam > 0.0:
        return proven(everything.ravel()[: k * size - int(fit_intercept)])
    found = proven(everything[:-1].ravel())
    if found is not None:
        return found
    ones = np.ones(X.shape[0])
    columns = independent_columns(Rows(X, ones, 0.0 * ones, s, fit_intercept, 0.0), s > 0.0)
    return proven(everything[:-1, columns].ravel()) if len(columns) < size else None


@dataclass(eq=False)
class _Tree:
    """A tree of the classes: ``order`` begins with the root, and the parent of a class comes before it."""

    order: IntArray
    parent: IntArray

    @classmethod
    def of(cls, shared: FloatArray) -> _Tree:
        """Return the spanning tree with the largest weights (k, k) >= 0; absent edges are taken as tiny ones."""
        cost = -np.log(np.maximum(shared, _FAINT))
        cost = cost - cost.min() + 1.0
        tree = minimum_spanning_tree(cost)
        order, parent = breadth_first_order(tree, 0, directed=False)
        return cls(order, parent)

    def below(self, values: FloatArray) -> FloatArray:
        """Sums of the rows of ``values`` over each class and all classes below it."""
        sums = values.copy()
        for c in self.order[:0:-1]:
            sums[self.parent[c]] += sums[c]
        return sums


def _excess_bound_by_tree(part: Part, at: _Evaluation, s: FloatArray, theta: FloatArray) -> float:
    """Bound on P - P* without a penalty, by one block for each edge of a tree; infinite if the proof fails."""
    assert isinstance(part.loss, Multinomial)
    size = len(theta)
    if size > LARGEST or not (np.isfinite(at.g).all() and math.isfinite(at.primal)):
        return math.inf
    P = np.empty(at.slope_error.shape)
    for rows, A in dense_chunks(part.X, part.fit_intercept):
        P[rows] = part.loss.proba(A @ theta)
    tree = _Tree.of((P * s[:, None]).T @ P)
    found = _bound_along(tree, P, part, at, s, np.arange(size))
    if found is not None:
        return found
    ones = np.ones(part.X.shape[0])
    rows_of = Rows(part.X, ones, 0.0 * ones, s, part.fit_intercept, 0.0)
    columns = independent_columns(rows_of, s > 0.0)
    if len(columns) < size:
        found = _bound_along(tree, P, part, at, s, columns)
    return math.inf if found is None else found


def _bound_along(
    tree: _Tree, P: FloatArray, part: Part, at: _Evaluation, s: FloatArray, columns: IntArray
) -> float | None:
    """Bound on P - P* in the unknowns ``columns`` of each class; None if the proof fails.

    G_e is a sum of nonnegative multiples of x~ x~'. A product p_a p_b has relative error 2 (k + 8) u, so that all
    errors are relative to the diagonal, as ``gram_loss`` requires. Summing the gradients of at most k classes adds
    k u |g|.
    """
    X, fit_intercept, k = part.X, part.fit_intercept, P.shape[1]
    chain = (longest_dense_sum(X) + 2 * k + 24) * ROUNDOFF
    g = tree.below(at.g)[:, columns]
    error = tree.below(at.sum_error + (k + 2) * ROUNDOFF * np.abs(at.g))[:, columns]
    error = error * (1.0 + 2 * k * ROUNDOFF)
    reach = np.zeros(P.shape)  # r_ic
    mu_squared, floor = 0.0, math.inf
    for c in tree.order[1:]:
        a = tree.parent[c]
        shared = P[:, a] * P[:, c]
        h = row_curvatures(
            s, np.where(shared >= TINY, shared, 0.0)
        )  # M may lack what may underflow
        G = np.zeros((len(columns), len(columns)))
        for rows, block in dense_chunks(X, fit_intercept):
            A = (block - at.shift)[:, columns]
            G += A.T @ (h[rows][:, None] * A)
        root = proven_root(G, chain)
        if root is None:
            return None
        T, least = root
        metric, floor = Metric(T, columns, least, True), min(floor, least)
        mu_squared += metric.dual_norm(g[c], error[c]) ** 2 * ROUNDING_FACTOR
        for rows, block in dense_chunks(X, fit_intercept):
            A = (block - at.shift)[:, columns]
            Z = A @ T
            own = np.sqrt(np.einsum("ij,ij->i", Z, Z))
            own = (
                own + product_error(len(columns) + 1, np.abs(A) @ metric.row_norms)
            ) * ROUNDING_FACTOR
            reach[rows, c] = np.hypot(reach[rows, a], own) * ROUNDING_FACTOR
    # The error of a slope acts along its own row.
    mu = math.sqrt(mu_squared) * ROUNDING_FACTOR
    mu += float((at.slope_error * reach).sum()) * (ROUNDING_FACTOR + P.size * ROUNDOFF)
    furthest = float(reach.max(initial=0.0))
    bounded = bound(
        mu, lambda rho: floor * math.exp(-2.0 * (rho * furthest + at.e)) / ROUNDING_FACTOR
    )
    return None if bounded is None else bounded[0]
