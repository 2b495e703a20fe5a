"""Products with the free rows: where they lie, or in a copy.

A list of rows scattered over memory is read at nearly the price of all rows, and by one thread. So large data have
their free rows copied, once for all products of a round, and read by all threads. Which of the two it is depends on
the data alone: the bits of an answer must not depend on the number of threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linsep import _kernels
from linsep.problem import dot

if TYPE_CHECKING:
    import numpy.typing as npt

    from linsep.data import Block
    from linsep.problem import Problem
    from linsep.solution import FloatArray
    from linsep.solvers.run import Run

COPIED = 1_000_000  # entries of free rows from which a copy pays
_ENTRIES_PER_CALL = 4_000_000  # about 20 ms: Ctrl-C and limits are answered between calls


class System:
    """A p = -gradient with A = K/lam + stiffness 1 1' + diag(ridge), preconditioned by its diagonal.

    K is that of the centred rows if there is a centre c: ``along`` is x.c of each row, ``centre`` is |c|^2.
    """

    along: FloatArray | None = None
    centre = 0.0

    def __init__(self, lam: float, stiffness: float, ridge: FloatArray, norms: FloatArray) -> None:
        self.lam, self.stiffness, self.ridge = lam, stiffness, ridge
        self.inverse = 1.0 / (norms / lam + stiffness + ridge + 1e-300)

    def shared(self, a: FloatArray) -> float:
        """Sum of a x.c."""
        return 0.0 if self.along is None else dot(self.along, a)


class Listed:
    """The rows where they lie, by their numbers."""

    def __init__(self, problem: Problem, rows: npt.NDArray[np.int64]) -> None:
        assert problem.data.whole is not None
        self.problem, self.rows, self.block = problem, rows, problem.data.whole
        self.share = len(rows) / max(1, problem.data.n)

    def dots(self, v: FloatArray) -> FloatArray:
        """x.v of each row."""
        self.problem.passes += 0.5 * self.share
        out = np.empty(len(self.rows))
        _kernels.list_dots(self.block.rows, self.rows, v, out)
        return out

    def add(self, a: FloatArray) -> FloatArray:
        """Sum of a x over the rows."""
        self.problem.passes += 0.5 * self.share
        v = np.zeros(self.problem.data.d)
        _kernels.list_add(self.block.rows, self.rows, a, v)
        return v

    def solve(
        self, system: System, r: FloatArray, steps: int, fine: float, run: Run[Problem] | None
    ) -> FloatArray:
        """Conjugate gradients in one native call, or in few if that would take long."""
        x, y, state = np.zeros_like(r), np.zeros_like(r), np.zeros(1)
        enough = fine * fine * dot(r * r, system.inverse)
        entries = max(1.0, 2.0 * self.share * self.problem.data.n_entries)
        at_once = max(1, min(int(_ENTRIES_PER_CALL / entries), int(1.0 / self.share)))
        done = 0
        while done < steps:
            if run is not None and done > 0:
                run.check_limits()
            wanted = min(at_once, steps - done)
            made = _kernels.free_cg(
                self.block.rows,
                self.rows,
                system.lam,
                system.stiffness,
                system.ridge,
                system.inverse,
                wanted,
                enough,
                x,
                r,
                y,
                state,
                system.along,
                system.centre,
            )
            done += made
            self.problem.passes += self.share * made
            if made < wanted:
                break
        return x


class Copied:
    """The rows in a data set of their own."""

    def __init__(self, problem: Problem, rows: npt.NDArray[np.int64]) -> None:
        self.problem, self.rows = problem, rows
        self.data = problem.data.sample(rows)
        self.share = len(rows) / max(1, problem.data.n)

    def dots(self, v: FloatArray) -> FloatArray:
        """x.v of each row."""
        self.problem.passes += 0.5 * self.share
        out, theta = np.empty(len(self.rows)), np.append(v[: self.problem.data.d], 0.0)

        def fill(block: Block, _: FloatArray) -> None:
            _kernels.scores(block.rows, block.lo, block.hi, theta, out[block.lo : block.hi])

        self.data.sum(fill, 1)
        return out

    def add(self, a: FloatArray) -> FloatArray:
        """Sum of a x over the rows."""
        self.problem.passes += 0.5 * self.share

        def add(block: Block, out: FloatArray) -> None:
            _kernels.combine(block.rows, block.lo, block.hi, a, out)

        return self.data.sum(add, self.problem.order)[:-1]

    def solve(
        self, system: System, r: FloatArray, steps: int, fine: float, run: Run[Problem] | None
    ) -> FloatArray:
        """The same iteration as in kernels/free_set.hpp."""
        x, y = np.zeros_like(r), r * system.inverse
        size = dot(r, y)
        enough = fine * fine * size
        for _ in range(steps):
            if size <= enough:
                break
            if run is not None:
                run.check_limits()
            product = self.dots(self.add(y)) / system.lam + system.ridge * y
            total = float(y.sum())
            product += system.stiffness * total
            if system.along is not None:
                shared = system.centre * total - system.shared(y)
                product += (shared - total * system.along) / system.lam
            curved = dot(y, product)
            if not curved > 0.0:
                break
            x += (size / curved) * y
            r -= (size / curved) * product
            old, size = size, dot(r * r, system.inverse)
            y = r * system.inverse + (size / old) * y
        return x


def free_rows(problem: Problem, rows: npt.NDArray[np.int64]) -> Listed | Copied:
    """The rows of these numbers, as they are read fastest."""
    entries = len(rows) / max(1, problem.data.n) * problem.data.n_entries
    return (Copied if entries >= COPIED else Listed)(problem, rows)
