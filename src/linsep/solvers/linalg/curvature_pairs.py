"""BFGS update of a preconditioner by products with the matrix that earlier systems have made.

Systems H x = b of a sequence, such as those of Newton's method, have similar matrices. Every product q = H p of
conjugate gradients tells how H acts on one direction. The BFGS update of M^-1 by the pairs (p, q) maps q to p again,
so that the next system starts where the information of the last ones ends. The update is positive definite if M is and
all p.q are positive; pairs of an outdated H cost products at most, never accuracy.

References: Nocedal, Updating quasi-Newton matrices with limited storage, 1980 (two-loop recursion). Morales and
Nocedal, Automatic preconditioning by limited memory quasi-Newton updating, 2000.
"""

from __future__ import annotations

from typing import NamedTuple

from linsep.arrays import FloatArray
from linsep.solvers.linalg.cg import Operator, inner


class _Pair(NamedTuple):
    p: FloatArray
    q: FloatArray  #: product H p
    inverse: float  #: 1 / p.q


class CurvaturePairs:
    """The last pairs (p, H p), at most ``most``."""

    def __init__(self, most: int) -> None:
        self._most, self._lam = most, 0.0
        self._pairs: list[_Pair] = []
        self._new: list[_Pair] = []

    def add(self, p: FloatArray, q: FloatArray) -> None:
        """Store a copy of p with q = H p, for the systems after the next ``commit``."""
        curvature = inner(p, q)
        if self._most and curvature > 0.0:
            self._new = [*self._new[1 - self._most :], _Pair(p.copy(), q, 1.0 / curvature)]

    def commit(self) -> None:
        """Use the pairs added since the last time, in place of the oldest ones."""
        self._pairs = [*self._pairs, *self._new][-self._most :] if self._most else []
        self._new = []

    def set_ridge(self, lam: float) -> None:
        """Declare that H contains lam on its diagonal, except in the last row (the intercepts); correct older pairs."""
        change, self._lam = lam - self._lam, lam
        for k, (p, q, _) in enumerate(self._pairs if change else []):
            q[:-1] += change * p[:-1]
            curvature = inner(p, q)
            self._pairs[k] = _Pair(p, q, 1.0 / curvature if curvature > 0.0 else 0.0)

    def update(self, precondition: Operator) -> Operator:
        """Return the BFGS update of M^-1 by the pairs."""
        pairs = [pair for pair in self._pairs if pair.inverse > 0.0]

        def apply(r: FloatArray) -> FloatArray:
            r, shares = r.copy(), []
            for p, q, inverse in reversed(pairs):
                shares.append(inverse * inner(p, r))
                r -= shares[-1] * q
            z = precondition(r)
            for p, q, inverse in pairs:
                z += (shares.pop() - inverse * inner(q, z)) * p
            return z

        return apply if pairs else precondition
