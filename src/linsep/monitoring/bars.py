"""``linsep.progress``: a progress bar for computations that take longer than a second."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any, Protocol, TextIO

from linsep.monitoring.jobs import BOARD, Board, Job

FIRST = 1.0  #: seconds before anything is shown
_LOOK = 0.1  # seconds between two updates
_LONGEST = 60.0  # largest number of seconds between two lines of text


@contextmanager
def progress(file: TextIO | None = None) -> Iterator[None]:
    """Show the progress of every fit, ``tune``, ``path`` and ``separate`` inside: passes, current gap, time.

    On a terminal, if the package rich is installed, it is a bar; otherwise a plain line after 1, 2, 4, ... seconds and
    at least once a minute. Fits that take less than a second show nothing, and fits in other threads are not shown.
    Results are bit-identical with and without it.

    Parameters
    ----------
    file : text stream, optional
        Stream to write to; standard error by default.

    Returns
    -------
    context manager
        Computations inside the block are shown.

    See Also
    --------
    checkpoint : Resume a fit after a crash.

    Examples
    --------
    >>> import linsep
    >>> with linsep.progress():
    ...     model = linsep.LogisticRegression().fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    """
    if BOARD.get() is not None:  # an enclosing block shows it already
        yield
        return
    board = Board()
    thread = _ProgressThread(board, _display(sys.stderr if file is None else file))
    board.ending = thread.end
    token = BOARD.set(board)
    thread.start()
    try:
        yield
    finally:
        BOARD.reset(token)
        thread.stop()


class Display(Protocol):
    """Protocol of an output that shows the state of the jobs."""

    def draw(self, jobs: list[Job], seconds: float) -> None:
        """Show the current state."""

    def finish(self, jobs: list[Job], seconds: float) -> None:
        """Show the final state."""


class _ProgressThread(threading.Thread):
    """Thread that reads the board ten times a second and draws jobs that have run for at least a second."""

    def __init__(self, board: Board, display: Display) -> None:
        super().__init__(name="linsep-progress", daemon=True)
        self._board, self._display = board, display
        self._over, self._lock = threading.Event(), threading.Lock()
        self._drawn = False

    def run(self) -> None:
        while not self._over.wait(_LOOK):
            with self._lock:
                jobs, seconds = self._state()
                if jobs and seconds >= FIRST:
                    self._drawn = True
                    self._display.draw(jobs, seconds)

    def end(self) -> None:
        """Show the final state of the outermost job if it was drawn before."""
        with self._lock:
            jobs, seconds = self._state()
            if self._drawn:
                self._display.finish(jobs, seconds)
            self._drawn = False

    def stop(self) -> None:
        self._over.set()
        self.join()

    def _state(self) -> tuple[list[Job], float]:
        jobs = list(self._board.jobs)
        return jobs, perf_counter() - jobs[0].began if jobs else 0.0


def completed_fraction(jobs: list[Job]) -> float | None:
    """Return the completed fraction of the outermost job; inner jobs count as a fraction of its current part."""
    inner = None
    for job in reversed(jobs):
        own = job.share
        if own is None:
            continue
        if job.total and inner is not None:
            own = min(1.0, own + inner / job.total)
        inner = own
    return inner if jobs[0].share is not None or len(jobs) == 1 else None


def describe(jobs: list[Job]) -> str:
    """Return the state of the jobs as text, such as ``tune 12/50, fit: 8 passes, gap 1.2e-04``."""
    parts = []
    for job in (jobs[0], jobs[-1]) if len(jobs) > 1 else jobs:
        text = job.text
        if job.total and job.total > 1e6:
            text += f" {job.done / 1e6:,.0f}/{job.total / 1e6:,.0f} MB"
        elif job.total:
            text += f" {job.done:,.0f}/{job.total:,.0f}"
        passes = round(job.passes)
        facts = [f"{passes:,} pass{'' if passes == 1 else 'es'}"] if passes else []
        if not math.isnan(job.gap):
            facts.append(f"gap {job.gap:.1e}")
        parts.append(f"{text}: {', '.join(facts)}" if facts else text)
    return ", ".join(parts)


class Lines:
    """Output as plain text: a line after 1, 2, 4, ... seconds, and one at the end."""

    def __init__(self, file: TextIO) -> None:
        self._file, self._next = file, 0.0

    def draw(self, jobs: list[Job], seconds: float) -> None:
        """Print a line if it is due."""
        if seconds >= self._next:
            self._next = min(max(2.0 * seconds, 2.0 * FIRST), seconds + _LONGEST)
            self._write(f"linsep: {describe(jobs)}, {seconds:.0f} s")

    def finish(self, jobs: list[Job], seconds: float) -> None:
        """Print the last line."""
        self._next = 0.0
        self._write(f"linsep: {describe(jobs[:1])}, {seconds:.1f} s, done")

    def _write(self, text: str) -> None:
        try:
            print(text, file=self._file, flush=True)
        except (OSError, ValueError):  # the stream or its reader is closed: print no more
            self._next = math.inf


class Bar:
    """Output as a progress bar of rich on a terminal."""

    def __init__(self, console: Any) -> None:
        self._console = console
        self._bar: Any = None
        self._task: Any = None

    def draw(self, jobs: list[Job], seconds: float) -> None:
        """Show or update the bar."""
        if self._bar is None:
            from rich import progress as rich  # noqa: PLC0415

            self._bar = rich.Progress(
                rich.TextColumn("{task.description}", markup=False),
                rich.BarColumn(24),
                rich.TextColumn("{task.fields[seconds]:.0f} s"),
                console=self._console,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._task = self._bar.add_task(describe(jobs), total=None, seconds=seconds)
            self._bar.start()
        self._move(jobs, seconds, completed_fraction(jobs))

    def finish(self, jobs: list[Job], seconds: float) -> None:
        """Complete the bar, which stays on the screen."""
        self._move(jobs[:1], seconds, 1.0)
        self._bar.stop()
        self._bar = None

    def _move(self, jobs: list[Job], seconds: float, part: float | None) -> None:
        self._bar.update(
            self._task,
            description=describe(jobs),
            total=None if part is None else 1.0,
            completed=part or 0.0,
            seconds=seconds,
        )


def _display(file: TextIO) -> Display:
    """Return a bar if the stream is a terminal and rich is installed, otherwise lines of text."""
    if getattr(file, "isatty", lambda: False)():
        try:
            from rich.console import Console  # noqa: PLC0415
        except ImportError:
            return Lines(file)
        console = Console(file=file)
        if console.is_terminal and not console.is_dumb_terminal:
            return Bar(console)
    return Lines(file)
