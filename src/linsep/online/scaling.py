"""Steps for columns of very different size: a change of variables, not of the problem.

::

    w_j = v_j / size_j,   b = c - mean.w          so that   x.w + b = ((x - mean)/size).v + c

Steps are made in (v, c), where all columns are alike; the objective, its penalty 1/2 |w|^2 included, stays what it
was, only that in v it reads 1/2 sum (v_j/size_j)^2. A few rows at a time are scaled when their turn comes; X is
neither copied nor changed. Sparse rows are scaled, not centred: that would fill them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from linsep import _kernels
from linsep.arrays import FloatArray, IntArray
from linsep.data import Block, Memory
from linsep.online.schedules import StepSizes
from linsep.online.steps import Steps

_ROWS = 64  # scaled at a time; the penalty is applied after as many
_COPIED = 1 << 20  # entries of a batch that is scaled; a larger one is read where it lies
_FLAT = 1e-8  # a spread below this share of the column's size is taken for rounding


@dataclass(frozen=True, eq=False)
class Scaling:
    """Centres and scales of the columns."""

    mean: FloatArray
    size: FloatArray

    @classmethod
    def of(cls, data: Memory, fit_intercept: bool, lam: float) -> Scaling:
        """Mean and standard deviation of the columns; 0 and root mean square if they cannot be centred.

        The penalty lam/2 w_j^2 curves the objective as a column of variance lam does, and counts as one: in v
        both together have curvature of order 1.
        """
        d = data.d

        def add(block: Block, out: FloatArray) -> None:
            _kernels.moments(block.rows, block.lo, block.hi, block.weight, out)

        out = data.sum(add, 2 * d + 1)
        squares, sums, total = out[:d] / out[2 * d], out[d : 2 * d] / out[2 * d], out[2 * d]
        centred = fit_intercept and not data.sparse and total > 0.0
        mean = sums if centred else np.zeros(d)
        spread = np.sqrt(np.maximum(squares - mean * sums, 0.0))
        spread[spread <= _FLAT * np.sqrt(squares)] = 0.0
        size = np.sqrt(spread**2 + lam)
        return cls(mean, np.where(size > 0.0, size, 1.0))

    def enter(self, W: FloatArray) -> FloatArray:
        """(w, b) in the new variables, (columns, d+1) each."""
        return np.column_stack([W[:, :-1] * self.size, W[:, -1] + W[:, :-1] @ self.mean])

    def leave(self, V: FloatArray) -> FloatArray:
        """The way back."""
        w = V[:, :-1] / self.size
        return np.column_stack([w, V[:, -1] - w @ self.mean])

    def rows(self, x: Any) -> Any:
        """Some rows as the new variables see them."""
        if sp.issparse(x):
            return x.multiply(1.0 / self.size).tocsr()
        return np.ascontiguousarray((x - self.mean) / self.size)


@dataclass(frozen=True, eq=False)
class ScaledSteps:
    """Steps in the variables of a ``Scaling``: of the loss by ``plain``, and of the penalty lam between them."""

    scaling: Scaling
    plain: Steps
    lam: float

    @property
    def in_a_call(self) -> int:
        """Steps that one call makes."""
        return self.plain.in_a_call

    def run(
        self,
        step_sizes: StepSizes,
        first: int,
        draws: IntArray,
        W: FloatArray,
        sums: FloatArray | None,
    ) -> None:
        """Steps first, first + 1, ... at the rows drawn; moves W and sums."""
        X = self.plain.X
        entries = getattr(X, "nnz", X.size) / max(1, X.shape[0])
        small = self.plain.batch * entries <= _COPIED
        steps = self._some_rows if small else self._large_batches
        with np.errstate(all="ignore"):  # a step too large ends in inf, which descend notices
            V = self.scaling.enter(W)
            collected = None if sums is None else self.scaling.enter(sums)
            steps(step_sizes, first, draws, V, collected)
            W[:] = self.scaling.leave(V)
            if sums is not None and collected is not None:
                sums[:] = self.scaling.leave(collected)

    def _shrink(self, V: FloatArray, eta: FloatArray) -> None:
        """The flow of the penalty during steps of total length eta."""
        V[:, :-1] *= np.exp(-self.lam * eta[:, None] / self.scaling.size**2)

    def _some_rows(
        self,
        step_sizes: StepSizes,
        first: int,
        draws: IntArray,
        V: FloatArray,
        sums: FloatArray | None,
    ) -> None:
        plain, batch = self.plain, self.plain.batch
        together = max(1, _ROWS // batch)  # steps
        for at in range(0, len(draws) // batch, together):
            some = draws[at * batch : (at + together) * batch]
            part = Memory(self.scaling.rows(plain.X[some]), n_threads=1)
            assert part.whole is not None
            weight = None if plain.weight is None else plain.weight[some]
            own = {"X": part.X, "rows": part.whole.rows, "labels": plain.labels[some]}
            steps = replace(plain, **own, weight=weight)
            steps.run(step_sizes, first + at, np.arange(len(some)), V, None)
            numbers = np.arange(first + at, first + at + len(some) // batch)
            self._shrink(V, step_sizes.table(first + at, len(numbers)).sum(axis=0))
            if sums is not None:  # the last of these points stands for all
                sums += float((numbers + 1).sum()) * V

    def _large_batches(
        self,
        step_sizes: StepSizes,
        first: int,
        draws: IntArray,
        V: FloatArray,
        sums: FloatArray | None,
    ) -> None:
        """A step in (w, b) shows the gradient there, and so the one by (v, c)."""
        scaling = self.scaling
        for k, rows in enumerate(draws.reshape(-1, self.plain.batch), first):
            before = scaling.leave(V)
            after = before.copy()
            self.plain.run(step_sizes, k, np.ascontiguousarray(rows), after, None)
            move = after - before
            V[:, :-1] += (move[:, :-1] - move[:, -1:] * scaling.mean) / scaling.size
            V[:, -1] += move[:, -1]
            self._shrink(V, step_sizes.table(k, 1)[0])
            if sums is not None:
                sums += (k + 1) * V


def make_steps(scaling: Scaling | None, *rows: Any, lam: float, **job: Any) -> Steps | ScaledSteps:
    """Steps in the scaled variables, or in the original ones."""
    if scaling is None:
        return Steps(*rows, lam=lam, **job)
    return ScaledSteps(scaling, Steps(*rows, lam=0.0, **job), lam)
