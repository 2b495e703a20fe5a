"""Solve (D + X'hX) dw = rhs, with an unpenalised intercept, by conjugate gradients with a low-rank preconditioner.

D is diagonal. Scaled by D the matrix is I + K, K = D^-1/2 X'hX D^-1/2. Columns with a small diagonal entry of K, and
rows with a small h x'D^-1 x, contribute little. The preconditioner is a Cholesky factor over the remaining columns or
rows, whichever are fewer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from linsep import _kernels
from linsep.arrays import FloatArray, IntArray
from linsep.data.memory import kernel_rows, readable
from linsep.problem.gram import symmetric
from linsep.solvers.linalg import cg
from linsep.solvers.linalg.factor import Factor

# Columns with a larger diagonal entry of K, and rows with a larger h x'D^-1 x, belong to the factor.
BY_COLUMNS, BY_ROWS = 0.3, 10.0
GRADIENTS = 1500  # conjugate gradient steps of one solve
# Largest cost of a factor, in multiplications per entry of X that a conjugate gradient step reads: up to the first it
# is cheaper than the steps it saves, up to the second it is used where they stall. Fixed cost of a step [entries].
AFFORDABLE, EXPENSIVE, OVERHEAD = 4e4, 2e6, 50_000
MAX_ORDER = 8000  # largest order of a factor
FURTHER, FINEST = 12, 1e-13  # extra steps after the requested residual, and the final residual
_TINY = 1e-8  # smallest curvature of the intercept outside the factor, relative to the total


def _transpose(X: Any) -> Any:
    """Return X' in row order."""
    return sp.csr_matrix(X.T) if sp.issparse(X) else X.T


class Part:
    """Some columns of X (CSC or dense), stored by rows and by columns."""

    def __init__(self, X: Any) -> None:
        self.n, self.k = X.shape
        self.entries = int(X.nnz) if sp.issparse(X) else int(X.size)
        self.X: Any = sp.csr_matrix(X) if sp.issparse(X) else np.ascontiguousarray(X)
        self._rows, self._columns = (
            kernel_rows(readable(rows)) for rows in (self.X, _transpose(X))
        )

    def along(self, w: FloatArray) -> FloatArray:
        """Return X w."""
        out = np.zeros(self.n + 1)
        _kernels.combine(self._columns, 0, self.k, w, out)
        return out[:-1]

    def combine(self, a: FloatArray) -> FloatArray:
        """Return (X'a, 1'a)."""
        out = np.zeros(self.k + 1)
        _kernels.combine(self._rows, 0, self.n, a, out)
        return out

    def squares(self, h: FloatArray) -> FloatArray:
        """Return the weighted sum of squares sum h x^2 of every column."""
        out = np.zeros(2 * self.k + 1)
        _kernels.moments(self._rows, 0, self.n, h, out)
        return out[: self.k]

    def row_squares(self, a: FloatArray) -> FloatArray:
        """Return the weighted sum of squares sum a x^2 of every row."""
        out = np.zeros(2 * self.n + 1)
        _kernels.moments(self._columns, 0, self.k, a, out)
        return out[: self.n]

    def gram(self, h: FloatArray) -> FloatArray:
        """Return the weighted Gram matrix (X, 1)' h (X, 1)."""
        order = self.k + 1
        out = np.zeros(order * order)
        _kernels.gram(self._rows, 0, self.n, h, np.zeros(self.k), out)
        return symmetric(out.reshape(order, order), sp.issparse(self.X))


class System:
    """Linear system with the matrix D + X'hX; ``diagonal`` is D, ``price`` limits the cost of the factor."""

    def __init__(
        self,
        part: Part,
        diagonal: FloatArray,
        h: FloatArray,
        free_intercept: bool,
        price: float = EXPENSIVE,
    ) -> None:
        self.part, self.diagonal, self.h, self.free = part, diagonal, h, free_intercept
        self.squares, self.gradients, self.stuck = part.squares(h), 0, False
        columns = np.flatnonzero(self.squares > BY_COLUMNS * diagonal)
        rows = np.flatnonzero(part.row_squares(1.0 / diagonal) * h > BY_ROWS)
        by_rows = len(rows) < len(columns)
        order = min(len(rows), len(columns))
        self.factored = order <= MAX_ORDER and order**3 <= price * (part.entries + OVERHEAD)
        if not self.factored:
            columns, by_rows = np.zeros(0, dtype=np.int64), False
        self._inverse: _ByRows | _ByColumns
        self._inverse = _ByRows(self, rows) if by_rows else _ByColumns(self, columns)

    def times(self, x: FloatArray) -> FloatArray:
        """Return the product of the matrix and (w, b)."""
        out = self.part.combine(self.h * (self.part.along(x[:-1]) + x[-1]))
        out[:-1] += self.diagonal * x[:-1]
        return out if self.free else np.append(out[:-1], 0.0)

    def solve(self, rhs: FloatArray, fine: float) -> FloatArray:
        """Solve to the relative residual ``fine``; with a factor, take up to FURTHER more steps.

        In the gap, residuals are multiplied by the intercept and the weights: with targets of 1e6 a residual of 1e-6
        is visible.
        """
        further = FURTHER if self.factored else 0

        def ends(at: cg.Iterate) -> bool:
            nonlocal further
            if at.rho > fine * fine * at.rho_first:
                return False
            further -= 1
            return further < 0 or not at.rho > FINEST * FINEST * at.rho_first

        at = cg.solve(self.times, self._inverse.apply, rhs, ends, GRADIENTS)
        self.gradients += at.products
        self.stuck = self.stuck or at.rho > fine * fine * at.rho_first
        return at.x


class _ByColumns:
    """Preconditioner: the matrix restricted to some columns and the intercept, and the diagonal of the others."""

    def __init__(self, system: System, chosen: IntArray) -> None:
        part, D = system.part, system.diagonal
        self._chosen = np.append(chosen, part.k) if system.free else chosen
        S = Part(part.X[:, chosen]).gram(system.h)
        at = np.arange(len(chosen))
        S[at, at] += D[chosen]
        self._factor = Factor(S if system.free else S[:-1, :-1], definite=True)
        self._diagonal = np.append(D + system.squares, np.inf)

    def apply(self, r: FloatArray) -> FloatArray:
        out: FloatArray = r / self._diagonal
        out[self._chosen] = self._factor.apply(r[self._chosen])
        return out


class _ByRows:
    """Preconditioner: D, some rows exactly and the diagonal of the others, by the Woodbury formula."""

    def __init__(self, system: System, chosen: IntArray) -> None:
        part, h = system.part, system.h
        others = h.copy()
        others[chosen] = 0.0
        total = float(others.sum()) + _TINY * float(h.sum())
        # the intercept is an additional column of ones
        self._inverse = np.append(
            1.0 / (system.diagonal + part.squares(others)), 1.0 / total if system.free else 0.0
        )
        self._part = Part(part.X[chosen])
        S = np.ascontiguousarray(Part(_transpose(self._part.X)).gram(self._inverse[:-1])[:-1, :-1])
        S += self._inverse[-1]
        at = np.arange(len(chosen))
        S[at, at] += 1.0 / h[chosen]
        self._factor = Factor(S, definite=True)

    def apply(self, r: FloatArray) -> FloatArray:
        first = self._inverse * r
        on_rows = self._factor.apply(self._part.along(first[:-1]) + first[-1])
        return first - self._inverse * self._part.combine(on_rows)
