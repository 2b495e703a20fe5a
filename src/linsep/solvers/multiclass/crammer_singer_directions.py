"""Solve the Newton systems of the smoothed multiclass hinge: factorised in W or in p, or by conjugate gradients.

H = lam + sigma sum_i s_i A_i (x) (x_i, 1)(x_i, 1)', A_i = diag a - a a'/|a|, over the rows with |a| >= 2 active
classes. H has (d + 1) k rows; the p of the active classes have m = sum (|a_i| - 1) degrees of freedom. Near the optimum
m is often the smaller number, and with A_i = F_i F_i' the system is, for zeta = sigma s F'dz,

    (1/(sigma s) + G/lam) zeta - F'db = -F'X g_w/lam,    sum F zeta = -g_b,     G = F'X X'F   (m, m).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from linsep.arrays import FloatArray
from linsep.problem import CoupledProblem
from linsep.problem.max_margin import MaxMarginProblem
from linsep.solvers.linalg import cg
from linsep.solvers.linalg.factor import Factor
from linsep.solvers.linalg.row_products import centred_rows, row_products
from linsep.solvers.multiclass.softmax_directions import Diagonal, Whole, zero_sum

_ORDER = 4000  # largest order of a matrix that is factorised
_PRODUCTS = 1000
_PER_UNKNOWN = 3  # largest number of products per unknown; without rounding one would suffice
_USUAL = 300  # expected number of conjugate gradient products
_RELATIVE = 1e-3  # relative residual of conjugate gradients
_STIFF = 1e9  # curvature sigma |x|^2, in units of lam, above which the system for p loses half of the digits
_FLAT = 1e-9  # ridge of the intercepts relative to sigma sum s, an upper bound of their curvature


def newton_step(
    problem: MaxMarginProblem,
    P: FloatArray,
    sigma: float,
    g: FloatArray,
    check: Callable[[], None],
    spread: float,
    failed: int = 0,
) -> FloatArray:
    """Return D (d+1, k) with H D = -g, by the cheapest method, or by the next one after ``failed`` failures.

    ``spread`` is the mean square of the centred rows. If sigma times it is far above lam, W is a difference of huge
    numbers in the system for p, and W itself is solved for.
    """
    data, k, weight = problem.data, problem.k, problem.data.weight
    active = P[:, :k] > 0.0
    has_curvature = active.sum(axis=1) > 1
    if weight is not None:
        has_curvature &= weight > 0.0
    rows = np.flatnonzero(has_curvature)
    total = data.n if weight is None else float(weight.sum())
    intercept_ridge = _FLAT * min(1.0, sigma) * total if problem.fit_intercept else 1.0
    if not len(rows):
        return zero_sum(-g / np.append(np.full(data.d, problem.lam), intercept_ridge)[:, None])
    active = active[rows]
    freedom = int(active.sum()) - len(rows)
    curved = problem.curved_subproblem(rows, active, sigma)
    entries, order = curved.data.n_entries, float(problem.order * k)
    in_w = 0.5 * entries * entries / len(rows) * k * k + order**3 / 3 if order <= _ORDER else np.inf
    in_p = 0.5 * entries * len(rows) + freedom**3 / 3.0 + k * float(freedom) ** 2
    in_p = in_p if freedom <= _ORDER else np.inf
    if in_w < np.inf and sigma * spread > _STIFF * problem.lam:
        in_p = max(in_p, 2.0 * in_w)  # a last resort
    iterated = (4.0 * entries * max(8, k) + 30.0 * order) * _USUAL
    problem.passes += len(rows) / data.n
    ways: list[tuple[float, Callable[[], FloatArray]]] = [
        (in_p, lambda: _in_p(problem, curved, active, g, intercept_ridge)),
        (in_w, lambda: Whole(curved, curved.centre(), intercept_ridge)(-g)),
        (iterated, lambda: _by_conjugate_gradients(problem, curved, g, intercept_ridge, check)),
    ]
    ways = sorted((way for way in ways if way[0] < np.inf), key=lambda way: way[0])
    return ways[min(failed, len(ways) - 1)][1]()


def _centre(g: FloatArray, mu: FloatArray) -> FloatArray:
    """Return -g, projected to zero sums over the classes, in the coordinates (w, c), c = b + mu.w."""
    R = zero_sum(-g)
    R[:-1] -= np.outer(mu, R[-1])
    return R


def _basis(active: np.ndarray) -> tuple[FloatArray, np.ndarray]:
    """Return F' as an array (m, k), and the row of X to which each of its rows belongs.

    The columns of F_i are orthonormal and span the vectors on the active classes that sum to zero: Helmert contrasts,
    whose t-th compares the t-th active class with the mean of those before it.
    """
    rows, classes = np.nonzero(active)
    first = np.searchsorted(rows, np.arange(len(active)))
    place = np.arange(len(rows)) - first[rows]
    later = np.flatnonzero(place > 0)
    F = np.zeros((len(later), active.shape[1]))
    at = np.arange(len(later))
    size = place[later].astype(np.float64)
    for back in range(1, int(place.max()) + 1):
        has = size >= back
        F[at[has], classes[later[has] - back]] = -1.0 / np.sqrt(size[has] * (size[has] + 1.0))
    F[at, classes[later]] = np.sqrt(size / (size + 1.0))
    return F, rows[later]


def _in_p(
    problem: MaxMarginProblem,
    curved: CoupledProblem,
    active: np.ndarray,
    g: FloatArray,
    intercept_ridge: float,
) -> FloatArray:
    """Newton step by a factorisation of the system for the active p."""
    lam, mu = problem.lam, curved.centre()
    X = centred_rows(curved.data.X, mu)
    K = row_products(X)
    F, row = _basis(active)
    count = active.sum(axis=1)
    weight = curved.data.weight
    assert weight is not None
    stiff = (weight / count)[row]  # sigma s: the weights of ``curved`` are sigma s |a|
    S = K[np.ix_(row, row)]
    S *= F @ F.T
    S /= lam
    S[np.diag_indices(len(S))] += 1.0 / stiff
    R = _centre(g, mu)
    right = np.einsum("mk,mk->m", F, np.asarray(X @ R[:-1])[row]) / lam
    shift = np.zeros(problem.k)
    rights = np.column_stack([right, F]) if problem.fit_intercept else right[:, None]
    T = Factor(S, definite=True).solve_columns(rights)
    zeta, T = T[:, 0], T[:, 1:]
    if problem.fit_intercept:
        B = F.T @ T
        B[np.diag_indices(len(B))] += intercept_ridge
        B += np.trace(B) / len(B) ** 2
        shift = Factor(B, definite=True).solve(R[-1] - F.T @ zeta)
        zeta = zeta + T @ shift
    pulled = np.zeros((len(active), problem.k))
    np.add.at(pulled, row, zeta[:, None] * F)
    D = np.vstack([(R[:-1] - np.asarray(X.T @ pulled)) / lam, shift])
    D[-1] -= mu @ D[:-1]
    return zero_sum(D)


def _by_conjugate_gradients(
    problem: MaxMarginProblem,
    curved: CoupledProblem,
    g: FloatArray,
    intercept_ridge: float,
    check: Callable[[], None],
) -> FloatArray:
    """Newton step by conjugate gradients with a diagonal preconditioner."""
    moments = curved.own_moments(curved.curvatures())
    moments[:, -1] += intercept_ridge
    apply = Diagonal(moments, problem.lam, problem.fit_intercept)

    def times(Q: FloatArray) -> FloatArray:
        check()
        HQ = curved.hess_vec(Q)
        HQ[-1] += intercept_ridge * Q[-1]
        problem.passes += curved.data.n / problem.data.n
        return HQ

    def ends(at: cg.Iterate) -> bool:
        return at.products > 0 and not at.rho > _RELATIVE**2 * at.rho_first

    most = min(_PRODUCTS, _PER_UNKNOWN * g.size)
    D = cg.solve(times, apply, -g, ends, most, project=zero_sum).x
    if not problem.fit_intercept:
        D[-1] = 0.0
    return zero_sum(D)
