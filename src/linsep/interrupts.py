"""Interrupt long computations: on Ctrl-C, at a deadline, and when the computation they belong to has failed.

Python handles Ctrl-C between two instructions of the main thread. Longer computations call :func:`check` regularly:
native loops every 50 ms (kernels/core/interrupt.hpp), threads of :class:`Workers` between blocks of rows. Calls of
LAPACK, which cannot be interrupted, run in a thread (:func:`wait_for`). ``check`` raises the exception that ends the
computation; there is no other signal.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from contextvars import copy_context
from typing import Any, Final, TypeVar

T = TypeVar("T")
Check = Callable[[], None]

EVERY: Final = 0.05  #: seconds between two checks
GRACE: Final = 0.25  #: seconds after the deadline for certifying the point reached
LONG: Final = 2e8  #: multiply-adds from which a call runs in a thread, at about 1 % extra cost


class Cancelled(BaseException):
    """The computation that this thread belongs to has ended (control flow: never visible to users)."""


class _Checks(threading.local):
    """Functions that ``check`` calls in this thread, outermost first."""

    all: tuple[Check, ...] = ()


_CHECKS = _Checks()


def check() -> None:
    """Raise if the computation of this thread has to end. In the main thread Python itself raises on Ctrl-C."""
    for each in _CHECKS.all:
        each()


@contextmanager
def checking(*more: Check) -> Iterator[None]:
    """Context in which every ``check`` of this thread also calls these functions."""
    before = _CHECKS.all
    _CHECKS.all = (*before, *more)
    try:
        yield
    finally:
        _CHECKS.all = before


class OutOfTime(Exception):
    """The deadline passed more than GRACE seconds ago (control flow: never visible to users)."""


class _Deadline(threading.local):
    """Deadline of this thread [time.perf_counter()]."""

    at = math.inf


_DEADLINE = _Deadline()


def time_limit(seconds: float | None) -> AbstractContextManager[None]:
    """Context with a deadline ``seconds`` from now; no deadline if None."""
    return until(math.inf if seconds is None else time.perf_counter() + seconds)


@contextmanager
def until(deadline: float) -> Iterator[None]:
    """Context with a ``deadline`` [time.perf_counter()] for calls of ``if_in_time``; an earlier one stays in force."""
    before = _DEADLINE.at
    _DEADLINE.at = min(before, deadline)
    try:
        yield
    finally:
        _DEADLINE.at = before


def seconds_left() -> float | None:
    """Return the seconds until the deadline, at least 1e-9; None if there is none."""
    end = _DEADLINE.at
    return None if end == math.inf else max(1e-9, end - time.perf_counter())


def out_of_time() -> bool:
    """Return whether the deadline has passed."""
    return time.perf_counter() > _DEADLINE.at


def if_in_time(call: Callable[[], T], otherwise: Callable[[], T]) -> T:
    """Return the value of ``call``, or of ``otherwise`` if the call runs longer than GRACE seconds past the deadline.

    For optional work that improves a solution or its certificate.
    """
    end = _DEADLINE.at + GRACE
    if end == math.inf:
        return call()

    def in_time() -> None:
        if time.perf_counter() > end:
            raise OutOfTime

    try:
        with checking(in_time):
            return call()
    except OutOfTime:
        return otherwise()


def slices(n: int, width: int) -> Iterator[slice]:
    """Yield slices of n rows with about a million numbers each (``width`` per row), calling ``check`` before each."""
    rows = max(1, 1_000_000 // max(1, width))
    for low in range(0, n, rows):
        check()
        yield slice(low, min(low + rows, n))


def lapack(function: Callable[..., T], A: Any, *more: Any, **options: Any) -> T:
    """Return ``function(A, ...)``, such as a factorisation of the matrix A, in a call that Ctrl-C can interrupt."""
    return wait_for(lambda: function(A, *more, **options), float(A.size) * min(A.shape))


def dense_product(A: Any, B: Any) -> Any:
    """Return A @ B of two dense matrices, in a call that Ctrl-C can interrupt."""
    return wait_for(lambda: A @ B, float(A.size) * (B.shape[1] if B.ndim > 1 else 1))


def linear_programme(function: Callable[..., T], cost: Any, A: Any, **options: Any) -> T:
    """Return ``function(cost, ...)``, a linear programme with constraints A, in a call that Ctrl-C can interrupt."""
    rows, columns = A.shape
    return wait_for(lambda: function(cost, **options), float(rows) * columns * (rows + columns))


def wait_for(call: Callable[[], T], work: float) -> T:
    """Return the value of a call that cannot be interrupted; one of at least LONG multiply-adds runs in a thread.

    ``work`` is the number of multiply-adds. After Ctrl-C the thread completes the call and its value is discarded, so
    the call must not modify shared data. The thread is a daemon: it does not delay the exit of the interpreter.
    """
    if work < LONG:
        check()
        return call()
    found: Future[T] = Future()
    context = copy_context()  # carries the settings of np.errstate

    def run() -> None:
        try:
            found.set_result(context.run(call))
        except BaseException as error:
            found.set_exception(error)

    threading.Thread(target=run, name="linsep-lapack", daemon=True).start()
    while not found.done():
        check()
        wait([found], EVERY)
    return found.result()


class Workers(ThreadPoolExecutor):
    """Thread pool whose tasks end at their next ``check`` after an exception in the caller's ``with`` block."""

    def __init__(self, count: int, name: str = "linsep") -> None:
        super().__init__(count, name)
        self._over = False

    def submit(self, task: Callable[..., T], /, *args: Any, **named: Any) -> Future[T]:
        """Start a task that inherits the checks and the deadline of its caller."""
        inherited, deadline = _CHECKS.all, _DEADLINE.at

        def run() -> T:
            with checking(*inherited, self._check), until(deadline):
                return task(*args, **named)

        return super().submit(run)

    def _check(self) -> None:
        if self._over:
            raise Cancelled

    def __exit__(self, kind: Any, *rest: Any) -> None:
        self._over = kind is not None
        self.shutdown(wait=True, cancel_futures=self._over)
