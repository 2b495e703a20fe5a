"""Working sets solved by the columns of X (kernels/column_newton.hpp).

Problem: min l2/2 |w|^2 + l1 |w|_1 + sum s l(m) over the chosen features and the intercept. Coordinate descent reads the
entries of one column at a time, so columns are stored as rows of their own: sparse data are transposed once for all
working sets, of dense data the chosen columns are copied. A set of k features then costs neither a Hessian (k^2) nor
its factor (k^3), as it does in ``prox_newton.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from linsep import _kernels

if TYPE_CHECKING:
    from linsep.data import Block
    from linsep.problem import Problem
    from linsep.solution import FloatArray

IntArray = npt.NDArray[np.int64]

STEPS = 6  # Newton steps between two looks at the clock
_UNFINISHED = 0


class Columns:
    """The columns of the data, and the scores of the last answer."""

    def __init__(self, problem: Problem) -> None:
        data = problem.data
        self.problem = problem
        self.targets = _kernels.Targets(data.sign, data.offset, data.weight)
        self._sparse: _kernels.Rows | None = None
        if data.sparse:
            by_column = sp.csc_matrix(data.X)
            self._counts = np.diff(by_column.indptr)
            self._sparse = _rows(by_column)
        self._scores = np.zeros(data.n)
        self._of: FloatArray | None = None  # whose scores these are

    def _read(self, chosen: IntArray) -> tuple[_kernels.Rows, IntArray, float]:
        """The chosen columns, their numbers there, and their share of the entries of X."""
        data = self.problem.data
        if self._sparse is not None:
            return self._sparse, chosen, float(self._counts[chosen].sum()) / max(1, data.n_entries)
        kind = data.X.dtype if data.X.dtype in (np.float32, np.float64) else np.float64
        part = np.ascontiguousarray(data.X[:, chosen].T, dtype=kind)
        share = len(chosen) / max(1, data.d)
        return _kernels.Rows(part), np.arange(len(chosen)), share

    def scores(self, theta: FloatArray) -> FloatArray:
        """x.w + b for all rows (a pass, unless they were left by the last answer)."""
        if self._of is None or not np.array_equal(theta, self._of):
            data, z = self.problem.data, self._scores

            def add(block: Block, out: FloatArray) -> None:
                z[block.first + block.lo : block.first + block.hi] = block.scores(theta)

            data.sum(add, 1)
            self.problem.passes += 1
        return self._scores

    def solve(
        self,
        chosen: IntArray,
        theta: FloatArray,
        tol: float,
        check: Callable[[], None],
        calls: int,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Theta, base and step of the problem on the chosen features, from theta (d + 1), zero outside them."""
        problem = self.problem
        z = self.scores(theta)
        columns, numbers, share = self._read(chosen)
        at = np.append(theta[chosen], theta[-1])
        base, step = at.copy(), np.zeros_like(at)
        status = _UNFINISHED
        for _ in range(calls):
            check()
            status, steps, sweeps, gradients, _, _ = _kernels.column_newton(
                columns,
                self.targets,
                problem.native_loss,
                numbers,
                problem.penalty.l1,
                problem.lam,
                tol,
                STEPS,
                problem.fit_intercept,
                at,
                z,
                base,
                step,
            )
            problem.passes += share * (2 * steps + sweeps + gradients)
            if status != _UNFINISHED:
                break
        self._of = np.zeros(len(theta))
        self._of[chosen], self._of[-1] = at[:-1], at[-1]
        return at, base, step


def _rows(X: sp.csc_matrix) -> _kernels.Rows:
    """The columns of X as rows."""
    indices, indptr = X.indices, X.indptr
    if indices.dtype != indptr.dtype:
        indices, indptr = indices.astype(np.int64), indptr.astype(np.int64)
    return _kernels.Rows(X.data, indices, indptr, X.shape[0])
