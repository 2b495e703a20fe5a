"""Pilots: the same problem on a subsample of the rows, solved first.

From the pilot's optimum, one or two Newton steps on the full data are left, and the pilot's Hessian is a
good preconditioner. The sample is stratified: one random row from each of many equal intervals of row numbers; a rare
class is sampled more densely, with correspondingly smaller weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from linsep.arrays import FloatArray, IntArray
from linsep.data import Dataset, Location, strided_sample
from linsep.data.memory_limit import available_memory
from linsep.problem import Problem

MOST_ENTRIES = 1 << 27  # entries of a pilot, which is always in memory: 1 GiB
KEPT = 40.0  # bytes per row that a fit keeps in memory, wherever the rows are
RARE = 0.1  # a class with a smaller share of the rows is sampled separately
ROWS_PER_FEATURE = 200  # rows per feature from which a pilot saves more than it costs
# Size of a pilot: see ``pilot_size``.
PILOT_SHARE, PILOT_ROWS_PER_FEATURE, PILOT_LEAST = 0.05, 20, 1000


def _spread(n: int, m: int, rng: np.random.Generator) -> IntArray:
    """Draw at most m of n row numbers, one from each of m equal intervals."""
    if m == 0:
        return np.zeros(0, dtype=np.int64)
    edges = np.linspace(0, n, m + 1)
    rows = (edges[:-1] + rng.random(m) * np.diff(edges)).astype(np.int64)
    np.minimum(rows, n - 1, out=rows)
    fresh = np.append(True, np.diff(rows) > 0)  # drop duplicates at the border of two intervals
    out: IntArray = rows[fresh]
    return out


def sample_rows(n: int, m: int, rng: np.random.Generator) -> IntArray:
    """Draw about m of n row numbers, evenly spread; from the strided sample if that is large enough."""
    groups = n // strided_sample.STRIDE
    return (
        strided_sample.sampled_row(_spread(groups, m, rng)) if m <= groups else _spread(n, m, rng)
    )


def draw(data: Dataset, m: int, seed: int) -> tuple[IntArray, FloatArray]:
    """Draw m rows; return their numbers in ascending order, and how many rows each represents."""
    n = data.n
    if m >= n:
        return np.arange(n), np.ones(n)
    rng = np.random.default_rng(seed)
    counts = data.counts()
    rare = int(counts.min())
    if not 0 < rare < RARE * n:
        rows = sample_rows(n, m, rng)
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
    """Draw ``sizes`` rows of the classes, evenly spread within each; the result is that of ``draw``.

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
    """Return whether there are enough rows per feature for a pilot to save more than it costs."""
    return data.n >= ROWS_PER_FEATURE * data.d


def pilot_size(
    data: Size, share: float = PILOT_SHARE, rows_per_feature: int = PILOT_ROWS_PER_FEATURE
) -> int:
    """Rows of a pilot: the largest of a share of all rows, ``rows_per_feature`` times d, and PILOT_LEAST."""
    return int(max(share * data.n, rows_per_feature * data.d, PILOT_LEAST))


class Size(Protocol):
    """Size and location of a data set."""

    n: int
    d: int
    location: Location

    @property
    def n_entries(self) -> int:
        """Number of stored entries."""
        ...


def limit_to_memory(m: int, data: Size, copies: int = 4) -> int:
    """Limit the m rows of a pilot to MOST_ENTRIES, but to no fewer than 1000 rows.

    If the data are not in memory, ``copies`` of the pilot must also fit into the available memory.
    """
    most = float(MOST_ENTRIES)
    if data.location is not Location.MEMORY:
        most = min(most, (available_memory() - KEPT * data.n) / (8.0 * copies))
    return min(m, max(1000, int(most * data.n / max(1, data.n_entries))))


def sub_problem(problem: Problem, m: int, seed: int) -> Problem:
    """Return the problem on about m rows, each weighted by the number of rows it represents."""
    rows, share = draw(problem.data, limit_to_memory(m, problem.data), seed)
    data = problem.data.sample(rows, share)
    pilot = Problem(problem.loss, problem.penalty, data, problem.fit_intercept)
    problem.passes += len(rows) / problem.data.n
    return pilot
