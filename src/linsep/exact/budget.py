"""Limit the work of exact and decimal arithmetic, which may be a thousand times slower than float64.

Work is counted in multiply-adds of 70 decimal digits, each a few tenths of a microsecond, and not in seconds, so that a
fit gives the same result on every machine. Without a limit, as in ``verify``, nothing is counted.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager

#: Work budget of each fallback of a fit: the decimal solver with its proof, and rational linear programming.
OF_A_FIT = 1e7


class OverBudget(Exception):
    """The work budget is exhausted (control flow; never shown to users)."""


class _Left(threading.local):
    """Remaining work of this thread."""

    work = math.inf


_LEFT = _Left()


def spend(work: float) -> None:
    """Deduct work that is about to be done from the budget, or raise OverBudget."""
    _LEFT.work -= work
    if _LEFT.work < 0.0:
        raise OverBudget


@contextmanager
def at_most(work: float) -> Iterator[None]:
    """Limit the work in this context; a tighter outer limit still applies."""
    before = _LEFT.work
    _LEFT.work = granted = min(before, work)
    try:
        yield
    finally:
        _LEFT.work = before if math.isinf(before) else before - (granted - _LEFT.work)
