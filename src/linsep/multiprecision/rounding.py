"""Round a solution to float64 with the smallest increase of the objective.

Near its minimum the objective is about |L'(theta - theta*)|^2/2 above it, with the Hessian L L'. The float64 numbers
near theta* form a lattice, whose nearest point in that norm is not the one nearest in each coefficient: for columns
with a large common offset the errors must cancel. Babai's method rounds one coefficient after another and adapts the
remaining ones (On Lovasz' lattice reduction and the nearest lattice point problem, Combinatorica 6, 1986), best on a
reduced basis (Lenstra, Lenstra and Lovasz, Factoring polynomials with rational coefficients, Math. Annalen 261, 1982).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Decimal
from time import perf_counter

import numpy as np

from linsep.arrays import FloatArray
from linsep.exact.decimals import ZERO, Decimals, count_work, decimals, floats, zeros
from linsep.interrupts import check

#: Most coefficients for which the lattice is reduced.
_LARGEST = 60
#: Limit on the swaps of the reduction, never reached in practice.
_SWAPS = 4000
#: Number of sweeps over all steps of the reduced lattice.
_SWEEPS = 4
#: Factor in the Lovasz condition.
_LOVASZ = Decimal("0.75")


def best_rounding(
    theta: Decimals,
    units: Decimals,
    L: Decimals,
    excess: Callable[[Decimals], Decimal],
    enough: Decimal,
    end: float = math.inf,
) -> tuple[FloatArray, Decimal]:
    """Float64 coefficients near units * theta, and the excess of their objective over the minimum.

    The search stops at the first point with an excess of at most ``enough``; otherwise the best point is returned.

    It also stops when the clock (``time.perf_counter``) reaches ``end``.
    """
    search = _Search(theta * units, units, excess, enough, end)
    grain = _grains(search.exact)
    basis = (L.T / units) * grain  # columns: lattice steps in the norm of the Hessian
    target = L.T @ theta
    order = len(theta)
    last_first = np.eye(order, dtype=int).astype(object)[:, ::-1]  # the intercept is rounded last
    over = search.offer(floats(search.exact)) or search.offer(
        floats(grain * _nearest(basis[:, ::-1], target, last_first))
    )
    if not over and order <= _LARGEST:
        steps = _reduce(basis)
        if not search.offer(floats(grain * _nearest(basis @ steps, target, steps))):
            search.descend((grain[:, None] * steps).T)
    return search.best, search.least


class _Search:
    """Best rounded point so far, and the criteria that end the search."""

    def __init__(
        self,
        exact: Decimals,
        units: Decimals,
        excess: Callable[[Decimals], Decimal],
        enough: Decimal,
        end: float,
    ) -> None:
        self.exact, self.units, self.excess = exact, units, excess
        self.enough, self.end = enough, end
        self.best, self.least = floats(exact), Decimal("inf")

    def offer(self, point: FloatArray) -> bool:
        """Keep a point if it is better; return whether the search is over."""
        if np.isfinite(point).all():
            cost = self.excess((decimals(point) - self.exact) / self.units)
            if cost < self.least:
                self.best, self.least = point, cost
        return self.least <= self.enough or perf_counter() > self.end

    def descend(self, steps: Decimals) -> None:
        """Try steps of a reduced lattice while the objective decreases; losses with kinks are not quadratic."""
        for _ in range(_SWEEPS):
            before = self.least
            for step in (sign * step for step in steps for sign in (1, -1)):
                if self.offer(floats(decimals(self.best) + step)):
                    return
            if not self.least < before:
                return


def _grains(exact: Decimals) -> Decimals:
    """Spacing of the float64 numbers next to each coefficient."""
    spacing = np.spacing(np.abs(floats(exact)))
    return decimals(np.where(spacing > 0.0, spacing, 5e-324))


def _orthogonal(basis: Decimals) -> tuple[Decimals, Decimals]:
    """Gram-Schmidt orthogonalisation of the columns, not normalised, and the squared lengths."""
    Q = basis.copy()
    count_work(len(basis) * basis.shape[1] ** 2)
    norms = zeros(basis.shape[1])
    for k in range(basis.shape[1]):
        for j in range(k):
            if norms[j] > 0:
                Q[:, k] = Q[:, k] - (basis[:, k] @ Q[:, j]) / norms[j] * Q[:, j]
        norms[k] = Q[:, k] @ Q[:, k]
    return Q, norms


def _round_to_integer(x: Decimal) -> Decimal:
    return x.to_integral_value(rounding=ROUND_HALF_EVEN)


def _nearest(basis: Decimals, target: Decimals, transform: Decimals) -> Decimals:
    """Babai's nearest plane method: lattice coordinates of the nearest point, mapped back by ``transform``."""
    Q, norms = _orthogonal(basis)
    rest, found = target.copy(), zeros(basis.shape[1])
    for k in range(basis.shape[1] - 1, -1, -1):
        if norms[k] > 0:
            found[k] = _round_to_integer((rest @ Q[:, k]) / norms[k])
            rest = rest - found[k] * basis[:, k]
    return transform @ found


def _reduce(basis: Decimals) -> Decimals:
    """Integer matrix (order, order) that transforms the columns of the basis to short, nearly orthogonal ones (LLL).

    Column k is Q_k + sum_j<k mu_kj Q_j with the Gram-Schmidt directions Q; only mu and |Q|^2 are stored (Cohen, A
    Course in Computational Algebraic Number Theory, 1993, algorithm 2.6.3).
    """
    order = basis.shape[1]
    T, mu = (np.full((order, order), ZERO, dtype=object) for _ in range(2))
    T[np.arange(order), np.arange(order)] = Decimal(1)
    Q, norms = _orthogonal(basis)
    for j in range(order):
        mu[j + 1 :, j] = (basis[:, j + 1 :].T @ Q[:, j]) / norms[j]

    def subtract(k: int, j: int) -> None:
        times = _round_to_integer(mu[k, j])
        if times:
            count_work(2 * order)
            T[:, k] = T[:, k] - times * T[:, j]
            mu[k, :j] = mu[k, :j] - times * mu[j, :j]
            mu[k, j] -= times

    k, swaps = 1, 0
    while k < order and swaps < _SWAPS:
        check()
        subtract(k, k - 1)
        if norms[k] >= (_LOVASZ - mu[k, k - 1] * mu[k, k - 1]) * norms[k - 1]:
            for j in range(k - 2, -1, -1):
                subtract(k, j)
            k += 1
            continue
        T[:, [k - 1, k]] = T[:, [k, k - 1]]
        _exchange(mu, norms, k)
        swaps += 1
        k = max(k - 1, 1)
    return T


def _exchange(mu: Decimals, norms: Decimals, k: int) -> None:
    """Update coefficients and squared lengths after swapping columns k - 1 and k."""
    m = mu[k, k - 1]
    length = norms[k] + m * m * norms[k - 1]
    mu[k, k - 1] = m * norms[k - 1] / length
    norms[k], norms[k - 1] = norms[k - 1] * norms[k] / length, length
    mu[[k - 1, k], : k - 1] = mu[[k, k - 1], : k - 1]
    old = mu[k + 1 :, k].copy()
    mu[k + 1 :, k] = mu[k + 1 :, k - 1] - m * old
    mu[k + 1 :, k - 1] = old + mu[k, k - 1] * mu[k + 1 :, k]
