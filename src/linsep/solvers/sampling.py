"""A pilot: the same problem on a share of the rows, solved first.

A start from the pilot's optimum leaves the full data one or two Newton steps, and the pilot's Hessian is a
preconditioner that rows of the same kind cannot fool by much. Rows are drawn evenly through the data (one
at random from each stretch); a class with a small share is drawn more densely, with weights to match.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from linsep.arrays import FloatArray, IntArray
from linsep.data import Dataset, Location
from linsep.data import strided_sample as shelf
from linsep.data.memory_limit import available_memory
from linsep.problem import Problem

MOST_ENTRIES = 1 << 27  # of a pilot, which lies in memory wherever the rows are: 1 GiB
KEPT = 40.0  # bytes for each row that a fit keeps in memory, wherever the rows are
RARE = 0.1  # a class with a smaller share of the rows is drawn separately
ROWS_PER_FEATURE = 200  # from which on a pilot saves more than it costs
# Size of a pilot: see ``pilot_size``.
PILOT_SHARE, PILOT_ROWS_PER_FEATURE, PILOT_LEAST = 0.05, 20, 1000


def _spread(n: int, m: int, rng: np.random.Generator) -> IntArray:
    """m of n row numbers, one from each of m equal stretches."""
    if m == 0:
        return np.zeros(0, dtype=np.int64)
    edges = np.linspace(0, n, m + 1)
    rows = (edges[:-1] + rng.random(m) * np.diff(edges)).astype(np.int64)
    np.minimum(rows, n - 1, out=rows)
    fresh = np.append(True, np.diff(rows) > 0)  # neighbours may meet at the border of two stretches
    out: IntArray = rows[fresh]
    return out


def evenly(n: int, m: int, rng: np.random.Generator) -> IntArray:
    """About m of n row numbers, through all of them and from the shelf, if that has so many."""
    stretches = n // shelf.STRETCH
    return shelf.on_shelf(_spread(stretches, m, rng)) if m <= stretches else _spread(n, m, rng)


def draw(data: Dataset, m: int, seed: int) -> tuple[IntArray, FloatArray]:
    """Row numbers (ascending) and the number of rows that each stands for."""
    n = data.n
    if m >= n:
        return np.arange(n), np.ones(n)
    rng = np.random.default_rng(seed)
    counts = data.counts()
    rare = int(counts.min())
    if not 0 < rare < RARE * n:
        rows = evenly(n, m, rng)
        return rows, np.full(len(rows), n / len(rows))
    sizes = [max(1, min(int(k), m // 2)) for k in counts]
    return draw_by_class(data, counts[::-1], sizes[::-1], rng, last_first=True)


def draw_by_class(
    data: Dataset,
    counts: npt.NDArray[Any],
    sizes: Sequence[int],
    rng: np.random.Generator,
    last_first: bool = False,
) -> tuple[IntArray, FloatArray]:
    """Draw rows of each class, evenly through the class, in the form of ``draw``.

    ``last_first``: counts and sizes begin with the last class.
    """
    ranks = [_spread(int(k), m, rng) for k, m in zip(counts, sizes, strict=True)]
    stands = [np.full(len(r), k / max(1, len(r))) for r, k in zip(ranks, counts, strict=True)]
    if last_first:
        ranks, stands = ranks[::-1], stands[::-1]
    rows = np.concatenate(data.find(ranks))
    order = np.argsort(rows, kind="stable")
    return rows[order], np.concatenate(stands)[order]


def many_rows(data: Size) -> bool:
    """Whether there are so many rows per feature that a pilot saves more than it costs."""
    return data.n >= ROWS_PER_FEATURE * data.d


def pilot_size(
    data: Size, share: float = PILOT_SHARE, rows_per_feature: int = PILOT_ROWS_PER_FEATURE
) -> int:
    """Rows of a pilot: a share of all, so many per feature at least, and never fewer than PILOT_LEAST."""
    return int(max(share * data.n, rows_per_feature * data.d, PILOT_LEAST))


class Size(Protocol):
    """Size and location of some rows."""

    n: int
    d: int
    location: Location

    @property
    def n_entries(self) -> int:
        """Stored numbers."""
        ...


def bounded(m: int, data: Size, copies: int = 4) -> int:
    """m rows, or as many as a pilot may hold.

    Of rows that are not in memory no more than it has room for, with as many ``copies`` of them as the method makes.
    """
    most = float(MOST_ENTRIES)
    if data.location is not Location.MEMORY:
        most = min(most, (available_memory() - KEPT * data.n) / (8.0 * copies))
    return min(m, max(1000, int(most * data.n / max(1, data.n_entries))))


def sub_problem(problem: Problem, m: int, seed: int) -> Problem:
    """The problem on about m rows, each counted for those it stands for."""
    rows, share = draw(problem.data, bounded(m, problem.data), seed)
    data = problem.data.sample(rows, share)
    pilot = Problem(problem.loss, problem.penalty, data, problem.fit_intercept)
    problem.passes += len(rows) / problem.data.n
    return pilot
