"""Sums over blocks by several threads, the same bits for any number of them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, wait
from itertools import count
from threading import Lock

import numpy as np

from linsep.data.block import Block, FloatArray
from linsep.data.dataset import Sum
from linsep.data.layout import spans
from linsep.interrupts import Cancelled, check, checking, slices


class _Total:
    """Sums of spans, added in the order of the spans as soon as all earlier ones are there."""

    def __init__(self, number: int) -> None:
        self.sums: list[FloatArray] = []
        self._waiting: list[list[list[FloatArray]] | None] = [None] * number
        self._next, self._lock = 0, Lock()

    def add(self, turn: int, parts: list[list[FloatArray]]) -> None:
        """For each sum the parts of one span, in their order."""
        with self._lock:
            self._waiting[turn] = parts
            while self._next < len(self._waiting):
                ready = self._waiting[self._next]
                if ready is None:
                    return
                self._waiting[self._next] = None
                self._next += 1
                self.sums = self.sums or [own.pop(0) for own in ready]
                for total, own in zip(self.sums, ready, strict=True):
                    for part in own:
                        for some in slices(len(total), 2):
                            total[some] += part[some]


def add_up(
    wanted: Sequence[tuple[Sum, int]],
    blocks: int,
    n_entries: int,
    openers: Sequence[Callable[[int], Block]],
    helpers: Callable[[], Executor],
) -> list[FloatArray]:
    """Sums over the blocks, in block order; each thread takes the next span that nobody has taken.

    A thread that the machine keeps waiting holds up one span at most, and one that has not begun, nothing. Each block
    is added to every sum while it is in the cache. ``openers`` opens block k, one function for each thread. Memory
    holds about two accumulators for each thread.
    """
    groups = [spans(blocks, n_entries, size) for _, size in wanted]
    turns = min(groups, key=len)  # the spans of the others are parts of these
    starts = [[span.start for span in group] for group in groups]
    total = _Total(len(turns))
    take, running = count().__next__, True

    def walk(opened: Callable[[int], Block]) -> None:
        while (turn := take()) < len(turns):
            span = turns[turn]
            firsts = [s[bisect_left(s, span.start) : bisect_left(s, span.stop)] for s in starts]
            parts = [
                [np.zeros(size) for _ in own] for own, (_, size) in zip(firsts, wanted, strict=True)
            ]
            for k in span:
                check()
                block = opened(k)
                for (fn, _), part, first in zip(wanted, parts, firsts, strict=True):
                    fn(block, part[bisect_right(first, k) - 1])
            total.add(turn, parts)

    def still_wanted() -> None:
        if not running:
            raise Cancelled

    def help_with(opened: Callable[[int], Block]) -> None:
        with checking(still_wanted):
            walk(opened)

    others = openers[1 : len(turns)]
    tasks: list[Future[None]] = []
    try:
        tasks += [helpers().submit(help_with, opened) for opened in others]
        walk(openers[0])
        for task in tasks:
            if not task.cancel():
                task.result()
    finally:
        running = False  # after an error or Ctrl-C the others stop at their next check
        wait([task for task in tasks if not task.cancel()])
    return total.sums
