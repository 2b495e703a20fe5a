"""Sums over blocks by several threads, the same bits for any number of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, wait
from itertools import count

import numpy as np

from linsep.data.block import Block, FloatArray
from linsep.data.dataset import Sum
from linsep.data.layout import one_after_another, spans
from linsep.interrupts import check


def add_up(
    wanted: Sequence[tuple[Sum, int]],
    blocks: int,
    n_entries: int,
    openers: Sequence[Callable[[int], Block]],
    helpers: Callable[[], Executor],
) -> list[FloatArray]:
    """Sums over the blocks, in block order; each thread takes the next span that nobody has taken.

    A thread that the machine keeps waiting holds up one span at most, and one that has not begun, nothing. Each block
    is added to every sum while it is in the cache. ``openers`` opens block k, one function for each thread.
    """
    groups = [spans(blocks, n_entries, size) for _, size in wanted]
    parts = [np.zeros((len(g), size)) for g, (_, size) in zip(groups, wanted, strict=True)]
    firsts = [[span.start for span in g] for g in groups]
    turns = min(groups, key=len)  # the spans of the others are parts of these
    take, running = count().__next__, True

    def walk(opened: Callable[[int], Block]) -> None:
        while (turn := take()) < len(turns):
            for k in turns[turn]:
                if not running:
                    return
                check()
                block = opened(k)
                for (fn, _), part, first in zip(wanted, parts, firsts, strict=True):
                    fn(block, part[bisect_right(first, k) - 1])

    others = openers[1 : len(turns)]
    tasks: list[Future[None]] = []
    try:
        tasks += [helpers().submit(walk, opened) for opened in others]
        walk(openers[0])
        for task in tasks:
            if not task.cancel():
                task.result()
    finally:
        running = False  # after an error or Ctrl-C the others stop at their next block
        wait([task for task in tasks if not task.cancel()])
    return [one_after_another(list(part)) for part in parts]
