"""Jobs: records in which running computations store their progress, independent of how it is shown.

::

    with Job("tune", total=50) as job:
        ...
        job.done += 1

Jobs nest: the fits of ``tune`` are jobs inside its own. Without a board, which ``linsep.progress`` installs, nothing is
stored, and a job costs less than a microsecond.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextvars import ContextVar
from time import perf_counter
from types import TracebackType


class Job:
    """Progress of a computation: ``done`` of ``total`` parts, passes over the data, and the best bounds so far."""

    __slots__ = (
        "_board",
        "began",
        "done",
        "dual",
        "owner",
        "passes",
        "primal",
        "text",
        "tol",
        "total",
    )

    def __init__(self, text: str, total: float | None = None, tol: float | None = None) -> None:
        self.text, self.total, self.tol = text, total, tol
        self.done = self.passes = 0.0
        self.primal, self.dual = math.inf, -math.inf
        self.owner: object = None  #: problem of the bounds; those of other problems are ignored
        self.began = 0.0
        self._board = BOARD.get()

    @property
    def gap(self) -> float:
        """Relative gap between the best bounds; NaN while one of them is unknown."""
        size = max(abs(self.primal), abs(self.dual))
        if not math.isfinite(size):
            return math.nan
        return max(0.0, self.primal - self.dual) / size if size else 0.0

    @property
    def share(self) -> float | None:
        """Completed fraction, from 0 to 1, or None: of the parts, or log(gap)/log(tol)."""
        if self.total:
            return min(1.0, self.done / self.total)
        gap = self.gap
        if self.tol is None or not 0.0 < self.tol < 1.0 or math.isnan(gap):
            return None
        return min(1.0, max(0.0, math.log(max(gap, self.tol)) / math.log(self.tol)))

    def __enter__(self) -> Job:
        if self._board is not None:
            self.began = perf_counter()
            self._board.jobs.append(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._board is not None:
            if len(self._board.jobs) == 1:
                self._board.ending()
            self._board.jobs.remove(self)


class Board:
    """Running jobs, the outermost first; ``ending`` is called before the outermost is removed."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.ending: Callable[[], None] = lambda: None


BOARD: ContextVar[Board | None] = ContextVar("linsep_board", default=None)


def current() -> Job | None:
    """Return the innermost job, or None if progress is not shown."""
    board = BOARD.get()
    return board.jobs[-1] if board is not None and board.jobs else None


def is_watched() -> bool:
    """Return whether the progress of jobs is shown or recorded."""
    return BOARD.get() is not None


def note(
    passes: float, primal: float = math.nan, dual: float = math.nan, owner: object = None
) -> None:
    """Record the passes and bounds (NaN: no new bound) of the innermost job.

    A solver may also solve auxiliary problems (a sample of the rows, another C); ``owner`` distinguishes them.
    """
    job = current()
    if job is None or (owner is not None and job.owner is not None and owner is not job.owner):
        return
    job.passes = passes
    job.primal = min(job.primal, primal)  # with arguments in this order NaN is ignored
    job.dual = max(job.dual, dual)


def advance(done: float) -> None:
    """Set the number of completed parts of the innermost job."""
    job = current()
    if job is not None:
        job.done = done
