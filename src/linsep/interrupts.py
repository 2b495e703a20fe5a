"""How long computations notice Ctrl-C, the end of the user's time, and the end of what they are part of.

Python serves Ctrl-C between two instructions of the main thread. What lasts longer than that asks :func:`check` now and
then: native loops do every 50 ms (kernels/core/interrupt.hpp), threads of :class:`Workers` do between blocks of rows,
and calls of LAPACK, which cannot ask, are waited for (:func:`wait_for`). ``check`` raises whatever ends the
computation; nothing else has to be told.
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
GRACE: Final = 0.25  #: seconds after the user's time for the proof of what was found
LONG: Final = 2e8  #: multiply-adds that may take longer than that; a thread for them costs a hundredth of their time


class Cancelled(BaseException):
    """The computation that this thread was part of is over (control flow: users never see it)."""


class _Checks(threading.local):
    """Checks that may end the computation of this thread, outermost first."""

    all: tuple[Check, ...] = ()


_CHECKS = _Checks()


def check() -> None:
    """Raise what ends the computation of this thread, if anything does. In the main thread Ctrl-C does by itself."""
    for each in _CHECKS.all:
        each()


@contextmanager
def checking(*more: Check) -> Iterator[None]:
    """Call these, too, in every ``check`` of this thread inside."""
    before = _CHECKS.all
    _CHECKS.all = (*before, *more)
    try:
        yield
    finally:
        _CHECKS.all = before


class OutOfTime(Exception):
    """The user's time is used up, and a little more (control flow: users never see it)."""


class _Deadline(threading.local):
    """When the user's time ends [time.perf_counter()]."""

    at = math.inf


_DEADLINE = _Deadline()


def time_limit(seconds: float | None) -> AbstractContextManager[None]:
    """``until`` so many seconds from now; no limit if None."""
    return until(math.inf if seconds is None else time.perf_counter() + seconds)


@contextmanager
def until(deadline: float) -> Iterator[None]:
    """End the calls of ``if_in_time`` inside at ``deadline`` [time.perf_counter()], or earlier if they do already."""
    before = _DEADLINE.at
    _DEADLINE.at = min(before, deadline)
    try:
        yield
    finally:
        _DEADLINE.at = before


def seconds_left() -> float | None:
    """Seconds until the user's time ends, a token at least; None if there is no limit."""
    end = _DEADLINE.at
    return None if end == math.inf else max(1e-9, end - time.perf_counter())


def out_of_time() -> bool:
    """Whether the user's time has ended."""
    return time.perf_counter() > _DEADLINE.at


def if_in_time(call: Callable[[], T], otherwise: Callable[[], T]) -> T:
    """Value of a call, or that of ``otherwise`` if the call is not over GRACE seconds after the user's time.

    For what improves an answer or its proof, but may be left out.
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
    """Consecutive rows of n, some milliseconds of copying or adding where a row has ``width`` numbers, with checks."""
    rows = max(1, 1_000_000 // max(1, width))
    for low in range(0, n, rows):
        check()
        yield slice(low, min(low + rows, n))


def lapack(function: Callable[..., T], A: Any, *more: Any, **options: Any) -> T:
    """``function(A, ...)``, a factorisation or the like of the matrix A, waited for so that Ctrl-C is served."""
    return wait_for(lambda: function(A, *more, **options), float(A.size) * min(A.shape))


def dense_product(A: Any, B: Any) -> Any:
    """A @ B of two dense matrices, waited for so that Ctrl-C is served."""
    return wait_for(lambda: A @ B, float(A.size) * (B.shape[1] if B.ndim > 1 else 1))


def linear_programme(function: Callable[..., T], cost: Any, A: Any, **options: Any) -> T:
    """``function(cost, ...)``, a linear programme with the constraints A, waited for so that Ctrl-C is served."""
    rows, columns = A.shape
    return wait_for(lambda: function(cost, **options), float(rows) * columns * (rows + columns))


def wait_for(call: Callable[[], T], work: float) -> T:
    """The value of a call that cannot be interrupted, of about so many multiply-adds; a long one is made by a thread.

    After Ctrl-C the thread finishes the call by itself, and its value is dropped: the call must change nothing that
    is still in use then. An interpreter that ends does not wait for it.
    """
    if work < LONG:
        check()
        return call()
    found: Future[T] = Future()
    context = copy_context()  # what numpy is to say about overflow

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
    """Threads whose tasks end at their next ``check`` when an exception leaves the ``with`` block of the caller."""

    def __init__(self, count: int, name: str = "linsep") -> None:
        super().__init__(count, name)
        self._over = False

    def submit(self, task: Callable[..., T], /, *args: Any, **named: Any) -> Future[T]:
        """Begin a task, which checks what its caller does, and has as much time."""
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
