"""Which back end holds the rows: memory or disk."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.data.block import FloatArray
from linsep.data.memory import Memory
from linsep.data.stored import StoredRows
from linsep.data.stream import Stream


def dataset(
    X: Any,
    sign: FloatArray | None = None,
    offset: FloatArray | None = None,
    weight: FloatArray | None = None,
    labels: npt.NDArray[np.int64] | None = None,
    n_threads: int | None = None,
) -> Memory | Stream:
    """The rows with their targets, where they are."""
    back_end = Stream if isinstance(X, StoredRows) else Memory
    return back_end(X, sign, offset, weight, labels, n_threads)
