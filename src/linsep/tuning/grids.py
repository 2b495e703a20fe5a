"""Grids of values of C."""

from __future__ import annotations

from typing import Any

import numpy as np

from linsep.arrays import FloatArray
from linsep.errors import BadInput

DEFAULT = 10
LOWEST, HIGHEST = 1e-4, 1e4
MOST = 1_000_000  # largest number of values of a grid


def grid_of(Cs: Any) -> FloatArray:
    """Return positive values of C in increasing order: those given, or that many from 1e-4 to 1e4, log-spaced."""
    if Cs is None:
        Cs = DEFAULT
    if isinstance(Cs, int | np.integer) and type(Cs) is not bool:
        if not 2 <= Cs <= MOST:
            raise BadInput(
                f"Cs={Cs!r:.40}: a grid has at least 2 values and at most {MOST:,}; or give the values."
            )
        return np.geomspace(LOWEST, HIGHEST, int(Cs))
    if np.asarray(Cs).dtype.kind in "USO":
        raise BadInput(f"Cs must be a list of numbers or a count, got {Cs!r}.")
    try:
        values = np.asarray(Cs, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BadInput(f"Cs must be numbers, got {Cs!r} ({error}).") from error
    if values.ndim != 1 or not values.size:
        raise BadInput(f"Cs must be a list of numbers or a count, got {Cs!r}.")
    if not (values > 0).all():
        raise BadInput(f"every C must be positive (inf means no penalty), got {values.tolist()}.")
    return np.unique(values)
