"""``linsep.progress``: a bar for whatever lasts longer than a second."""

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
_LOOK = 0.1  # seconds between two looks
_LONGEST = 60.0  # seconds between two plain lines


@contextmanager
def progress(file: TextIO | None = None) -> Iterator[None]:
    """Show the progress of every fit, ``tune``, ``path`` and ``separate`` inside: passes, current gap, time.

    On a terminal, if the package rich is installed, it is a bar; otherwise a plain line after 1, 2, 4, ... seconds and
    at least once a minute. Fits that take less than a second show nothing, and fits in other threads are not shown.
    Results are bit-identical with and without it.

    Parameters
    ----------
    file : text stream, optional
        Where to show it; standard error by default.

    Returns
    -------
    context manager
        Everything that runs inside is shown.

    See Also
    --------
    checkpoint : Resume a fit after a crash.

    Examples
    --------
    >>> import linsep
    >>> with linsep.progress():
    ...     model = linsep.LogisticRegression().fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    """
    if BOARD.get() is not None:  # somebody shows it already
        yield
        return
    board = Board()
    shown = _Shown(board, _surface(sys.stderr if file is None else file))
    board.ending = shown.end
    token = BOARD.set(board)
    shown.start()
    try:
        yield
    finally:
        BOARD.reset(token)
        shown.stop()


class Surface(Protocol):
    """Output that shows the state of the jobs."""

    def draw(self, jobs: list[Job], seconds: float) -> None:
        """The state now."""

    def finish(self, jobs: list[Job], seconds: float) -> None:
        """The last state."""


class _Shown(threading.Thread):
    """Looks at the board ten times a second and draws what has lasted long enough."""

    def __init__(self, board: Board, surface: Surface) -> None:
        super().__init__(name="linsep-progress", daemon=True)
        self._board, self._surface = board, surface
        self._over, self._lock = threading.Event(), threading.Lock()
        self._drawn = False

    def run(self) -> None:
        while not self._over.wait(_LOOK):
            with self._lock:
                jobs, seconds = self._state()
                if jobs and seconds >= FIRST:
                    self._drawn = True
                    self._surface.draw(jobs, seconds)

    def end(self) -> None:
        """The outermost job is over: leave its last state behind if it was shown at all."""
        with self._lock:
            jobs, seconds = self._state()
            if self._drawn:
                self._surface.finish(jobs, seconds)
            self._drawn = False

    def stop(self) -> None:
        self._over.set()
        self.join()

    def _state(self) -> tuple[list[Job], float]:
        jobs = list(self._board.jobs)
        return jobs, perf_counter() - jobs[0].began if jobs else 0.0


def share(jobs: list[Job]) -> float | None:
    """How much of the outermost job is done; the ones inside count for the part it is at."""
    inner = None
    for job in reversed(jobs):
        own = job.share
        if own is None:
            continue
        if job.total and inner is not None:
            own = min(1.0, own + inner / job.total)
        inner = own
    return inner if jobs[0].share is not None or len(jobs) == 1 else None


def words(jobs: list[Job]) -> str:
    """``tune 12/50, fit: 8 passes, gap 1.2e-04``."""
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
    """Plain text: a line after 1, 2, 4, ... seconds, and one at the end."""

    def __init__(self, file: TextIO) -> None:
        self._file, self._next = file, 0.0

    def draw(self, jobs: list[Job], seconds: float) -> None:
        """Print a line, if the last one is old enough."""
        if seconds >= self._next:
            self._next = min(max(2.0 * seconds, 2.0 * FIRST), seconds + _LONGEST)
            self._write(f"linsep: {words(jobs)}, {seconds:.0f} s")

    def finish(self, jobs: list[Job], seconds: float) -> None:
        """The last line."""
        self._next = 0.0
        self._write(f"linsep: {words(jobs[:1])}, {seconds:.1f} s, done")

    def _write(self, text: str) -> None:
        try:
            print(text, file=self._file, flush=True)
        except (OSError, ValueError):  # closed, or its reader has gone: nobody is watching
            self._next = math.inf


class Bar:
    """A bar of rich on a terminal."""

    def __init__(self, console: Any) -> None:
        self._console = console
        self._bar: Any = None
        self._task: Any = None

    def draw(self, jobs: list[Job], seconds: float) -> None:
        """Put the bar up, or move it."""
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
            self._task = self._bar.add_task(words(jobs), total=None, seconds=seconds)
            self._bar.start()
        self._move(jobs, seconds, share(jobs))

    def finish(self, jobs: list[Job], seconds: float) -> None:
        """The bar as it was at the end stays on the screen."""
        self._move(jobs[:1], seconds, 1.0)
        self._bar.stop()
        self._bar = None

    def _move(self, jobs: list[Job], seconds: float, part: float | None) -> None:
        self._bar.update(
            self._task,
            description=words(jobs),
            total=None if part is None else 1.0,
            completed=part or 0.0,
            seconds=seconds,
        )


def _surface(file: TextIO) -> Surface:
    """A bar where one can be drawn, else lines."""
    if getattr(file, "isatty", lambda: False)():
        try:
            from rich.console import Console  # noqa: PLC0415
        except ImportError:
            return Lines(file)
        console = Console(file=file)
        if console.is_terminal and not console.is_dumb_terminal:
            return Bar(console)
    return Lines(file)
