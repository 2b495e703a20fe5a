"""Limit the work of exact and decimal arithmetic, which may take a thousand times as long as float64.

Work is counted in multiply-adds of 70 decimal digits, each some tenths of a microsecond, and not in seconds: a fit ends
with the same result on every machine. Without a limit, as in ``verify``, nothing is counted.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager

#: Work of each last resort of a fit: the decimal solver with its proof, and rational linear programming.
OF_A_FIT = 1e7


class OverBudget(Exception):
    """The work exceeds its limit (control flow: users never see it)."""


class _Left(threading.local):
    """Work that is left."""

    work = math.inf


_LEFT = _Left()


def spend(work: float) -> None:
    """Count work that is about to be done, or raise OverBudget."""
    _LEFT.work -= work
    if _LEFT.work < 0.0:
        raise OverBudget


@contextmanager
def at_most(work: float) -> Iterator[None]:
    """Limit the work inside, or leave an outer limit that is tighter."""
    before = _LEFT.work
    _LEFT.work = granted = min(before, work)
    try:
        yield
    finally:
        _LEFT.work = before if math.isinf(before) else before - (granted - _LEFT.work)
