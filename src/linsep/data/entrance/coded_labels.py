"""Class labels of many rows, stored as small integers: 1 to 4 bytes per row instead of 8 for a Python string."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.arrays import IntArray

_TOGETHER = 1 << 16  # codes counted together


class CodedLabels:
    """Labels of n rows: sorted ``classes``, and ``codes``, the position of each label among them.

    A selection keeps all classes, also those that none of its rows has. ``np.asarray`` returns the labels themselves.
    """

    ndim = 1

    def __init__(self, classes: npt.NDArray[Any], codes: npt.NDArray[Any]) -> None:
        self.classes = classes
        self.codes = codes.astype(np.min_scalar_type(max(0, len(classes) - 1)), copy=False)

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, int | np.integer):
            return self.classes[self.codes[at]]
        return CodedLabels(self.classes, self.codes[at])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.asarray(self.classes.take(self.codes), dtype)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the labels."""
        return self.classes.dtype

    @property
    def shape(self) -> tuple[int]:
        """Number of rows, as the shape of an array."""
        return (len(self),)

    def counts(self) -> IntArray:
        """Return the number of rows of each class."""
        found = np.zeros(len(self.classes), np.int64)
        for low in range(0, len(self), _TOGETHER):
            found += np.bincount(self.codes[low : low + _TOGETHER], minlength=len(found))
        return found
