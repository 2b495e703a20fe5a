"""Scaled steps for columns of very different sizes: a change of variables that leaves the problem unchanged.

::

    w_j = v_j / size_j,   b = c - mean.w          so that   x.w + b = ((x - mean)/size).v + c

Steps are taken in (v, c), where all columns have similar scale; the objective, including its penalty 1/2 |w|^2, is
unchanged, and in v the penalty is 1/2 sum (v_j/size_j)^2. Rows are scaled a few at a time when they are used; X is
neither copied nor changed. Sparse rows are scaled but not centred, which would make them dense.
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

_ROWS = 64  # rows scaled at a time; the penalty is applied after each such group
_COPIED = 1 << 20  # batches with more entries are read in place instead of being copied and scaled
_FLAT = 1e-8  # a spread below this fraction of the column's size is attributed to rounding


@dataclass(frozen=True, eq=False)
class Scaling:
    """Centres and scales of the columns."""

    mean: FloatArray
    size: FloatArray

    @classmethod
    def of(cls, data: Memory, fit_intercept: bool, lam: float) -> Scaling:
        """Mean and standard deviation of the columns; 0 and root mean square if they cannot be centred.

        The penalty lam/2 w_j^2 adds curvature like a column of variance lam, and is counted as such: in v
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

    def to_scaled(self, W: FloatArray) -> FloatArray:
        """Convert (w, b), (columns, d+1), to the scaled variables (v, c)."""
        return np.column_stack([W[:, :-1] * self.size, W[:, -1] + W[:, :-1] @ self.mean])

    def from_scaled(self, V: FloatArray) -> FloatArray:
        """Convert (v, c), (columns, d+1), back to (w, b)."""
        w = V[:, :-1] / self.size
        return np.column_stack([w, V[:, -1] - w @ self.mean])

    def rows(self, x: Any) -> Any:
        """Scale and centre some rows."""
        if sp.issparse(x):
            return x.multiply(1.0 / self.size).tocsr()
        return np.ascontiguousarray((x - self.mean) / self.size)


@dataclass(frozen=True, eq=False)
class ScaledSteps:
    """Steps in the variables of a ``Scaling``: ``plain`` steps on the loss, with the penalty lam applied in between."""

    scaling: Scaling
    plain: Steps
    lam: float

    @property
    def in_a_call(self) -> int:
        """Number of steps per call."""
        return self.plain.in_a_call

    def run(
        self,
        step_sizes: StepSizes,
        first: int,
        draws: IntArray,
        W: FloatArray,
        sums: FloatArray | None,
    ) -> None:
        """Take steps first, first + 1, ... at the drawn rows; updates W and sums in place."""
        X = self.plain.X
        entries = getattr(X, "nnz", X.size) / max(1, X.shape[0])
        small = self.plain.batch * entries <= _COPIED
        steps = self._some_rows if small else self._large_batches
        with np.errstate(all="ignore"):  # descend detects steps that overflow
            V = self.scaling.to_scaled(W)
            collected = None if sums is None else self.scaling.to_scaled(sums)
            steps(step_sizes, first, draws, V, collected)
            W[:] = self.scaling.from_scaled(V)
            if sums is not None and collected is not None:
                sums[:] = self.scaling.from_scaled(collected)

    def _shrink(self, V: FloatArray, eta: FloatArray) -> None:
        """Apply the gradient flow of the penalty for steps of total length eta."""
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
            if sums is not None:  # the last of these points represents all of them
                sums += float((numbers + 1).sum()) * V

    def _large_batches(
        self,
        step_sizes: StepSizes,
        first: int,
        draws: IntArray,
        V: FloatArray,
        sums: FloatArray | None,
    ) -> None:
        """Take one step per batch, recovering the gradient in (v, c) from a step in (w, b)."""
        scaling = self.scaling
        for k, rows in enumerate(draws.reshape(-1, self.plain.batch), first):
            before = scaling.from_scaled(V)
            after = before.copy()
            self.plain.run(step_sizes, k, np.ascontiguousarray(rows), after, None)
            move = after - before
            V[:, :-1] += (move[:, :-1] - move[:, -1:] * scaling.mean) / scaling.size
            V[:, -1] += move[:, -1]
            self._shrink(V, step_sizes.table(k, 1)[0])
            if sums is not None:
                sums += (k + 1) * V


def make_steps(scaling: Scaling | None, *rows: Any, lam: float, **job: Any) -> Steps | ScaledSteps:
    """Return steps in the scaled variables, or in the original ones without a scaling."""
    if scaling is None:
        return Steps(*rows, lam=lam, **job)
    return ScaledSteps(scaling, Steps(*rows, lam=0.0, **job), lam)
