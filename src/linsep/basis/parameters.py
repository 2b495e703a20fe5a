"""Parameters of the transformers, checked with a message that says what is wanted."""

from __future__ import annotations

import math
from numbers import Integral, Real

from linsep.errors import BadInput


def positive_int(name: str, value: object, limit: int | None = None) -> int:
    """``value`` as an int if it is a whole number above 0, and no larger than ``limit``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 1:
        raise BadInput(f"{name} must be a whole number of at least 1, got {value!r}.")
    if limit is not None and int(value) > limit:
        raise BadInput(f"{name} must be at most {limit}, got {value}.")
    return int(value)


def positive(name: str, value: object) -> float:
    """``value`` as a float if it is a finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < math.inf:
        raise BadInput(f"{name} must be a positive finite number, got {value!r}.")
    return float(value)
