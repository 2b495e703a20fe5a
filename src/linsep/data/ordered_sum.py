"""Parallel sums over blocks that are bit-identical for any number of threads.

Consecutive blocks form spans with an accumulator each, and accumulators are added in the order of the spans.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, wait
from functools import lru_cache
from itertools import count
from threading import Condition
from typing import NamedTuple

import numpy as np

from linsep.arrays import FloatArray
from linsep.data.block import Block
from linsep.data.dataset import Sum
from linsep.data.layout import spans
from linsep.interrupts import Cancelled, check, checking, slices

_SHORT = 100_000  # length up to which vectors are added without a check for interrupts
_POLL_SECONDS = 0.05  # seconds between two checks for interrupts while a thread waits


class _Span(NamedTuple):
    """A span of blocks that one thread processes."""

    parts: tuple[int, ...]  #: number of accumulators of each sum
    blocks: tuple[tuple[int, tuple[int, ...]], ...]  #: every block, and its accumulator in each sum


@lru_cache(maxsize=16)
def _spans(blocks: int, n_entries: int, sizes: tuple[int, ...]) -> tuple[_Span, ...]:
    """Return the spans of the sum that has the fewest; the spans of the other sums subdivide them."""
    groups = [spans(blocks, n_entries, size) for size in sizes]
    starts = [[span.start for span in group] for group in groups]
    found = []
    for span in min(groups, key=len):
        firsts = [s[bisect_left(s, span.start) : bisect_left(s, span.stop)] for s in starts]
        own = tuple((k, tuple(bisect_right(first, k) - 1 for first in firsts)) for k in span)
        found.append(_Span(tuple(map(len, firsts)), own))
    return tuple(found)


def _add(total: FloatArray, part: FloatArray) -> None:
    """Add a part to a total in place, with checks for interrupts if they are long."""
    if len(total) <= _SHORT:
        total += part
        return
    for some in slices(len(total), 2):
        total[some] += part[some]


def _add_span(sums: list[FloatArray], parts: list[list[FloatArray]]) -> list[FloatArray]:
    """Add the accumulators of one span to the sums, in place; the first span of all becomes the sums."""
    sums = sums or [own.pop(0) for own in parts]
    for total, own in zip(sums, parts, strict=True):
        for part in own:
            _add(total, part)
    return sums


def _span_sums(
    span: _Span,
    functions: Sequence[Sum],
    sizes: Sequence[int],
    opened: Callable[[int], Block],
) -> list[list[FloatArray]]:
    """Return the accumulators of one span, for each sum in order."""
    parts = [
        [np.zeros(size) for _ in range(number)]
        for number, size in zip(span.parts, sizes, strict=True)
    ]
    for k, places in span.blocks:
        check()
        block = opened(k)
        for fn, part, place in zip(functions, parts, places, strict=True):
            fn(block, part[place])
    return parts


class _Total:
    """Running totals, to which the sums of a span are added as soon as all earlier spans have been added."""

    def __init__(self, number: int, ahead: int) -> None:
        self.sums: list[FloatArray] = []
        self._pending: list[list[list[FloatArray]] | None] = [None] * number
        self._next, self._ahead, self._lock = 0, ahead, Condition()

    def wait(self, index: int) -> None:
        """Block until ``index`` is at most ``ahead`` spans beyond the first one not yet added, which bounds memory."""
        while index > self._next + self._ahead:
            check()
            with self._lock:
                self._lock.wait(_POLL_SECONDS)

    def release_waiters(self) -> None:
        """Release all waiting threads, because a span failed and will never be added."""
        self._ahead = len(self._pending)

    def add(self, index: int, parts: list[list[FloatArray]]) -> None:
        """Store the accumulators of one span, for each sum in order, and add all spans that are ready."""
        with self._lock:
            self._lock.notify_all()
            self._pending[index] = parts
            while self._next < len(self._pending):
                ready = self._pending[self._next]
                if ready is None:
                    return
                self._pending[self._next] = None
                self._next += 1
                self.sums = _add_span(self.sums, ready)


def add_up(
    wanted: Sequence[tuple[Sum, int]],
    blocks: int,
    n_entries: int,
    openers: Sequence[Callable[[int], Block]],
    helpers: Callable[[], Executor],
    memory_limit: float = math.inf,
) -> list[FloatArray]:
    """Return the sums over the blocks, added in block order; each thread takes the next unprocessed span.

    A thread that the operating system suspends delays at most one span. Each block is added to every sum while it is in
    the cache. ``openers`` has one function per thread, which opens block k. Memory holds about two accumulators per
    thread; with ``memory_limit``, the total and at most that many bytes of accumulators.
    """
    functions, sizes = zip(*wanted, strict=True)
    all_spans = _spans(blocks, n_entries, sizes)
    if len(openers) == 1:
        sums: list[FloatArray] = []
        for span in all_spans:
            sums = _add_span(sums, _span_sums(span, functions, sizes, openers[0]))
        return sums
    parts_at_once = max(1, int(min(len(all_spans), memory_limit / (8 * sum(sizes)))))
    total = _Total(len(all_spans), parts_at_once - 1)
    take, running = count().__next__, True

    def walk(opened: Callable[[int], Block]) -> None:
        while (index := take()) < len(all_spans):
            total.wait(index)
            total.add(index, _span_sums(all_spans[index], functions, sizes, opened))

    def still_wanted() -> None:
        if not running:
            raise Cancelled

    def help_with(opened: Callable[[int], Block]) -> None:
        try:
            with checking(still_wanted):
                walk(opened)
        except BaseException:
            total.release_waiters()
            raise

    others = openers[1 : len(all_spans)]
    tasks: list[Future[None]] = []
    try:
        tasks += [helpers().submit(help_with, opened) for opened in others]
        walk(openers[0])
        for task in tasks:
            if not task.cancel():
                task.result()
    finally:
        running = False  # after an error or Ctrl-C the other threads stop at their next check
        wait([task for task in tasks if not task.cancel()])
    return total.sums
