"""Targets of the rows: the vectors of signs, offsets, weights and labels that turn scores into weighted losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from linsep.arrays import FloatArray, IntArray


class Targets(NamedTuple):
    """Targets of n rows: row i has the loss weight_i l(sign_i z_i + offset_i), or weight_i times that of its label."""

    sign: FloatArray  #: -1 or +1 (classification), 1 (regression)
    offset: FloatArray | None = None  #: None: zeros
    weight: FloatArray | None = None  #: None: ones
    labels: IntArray | None = None  #: class numbers, for losses that couple the classes

    @classmethod
    def of(cls, n: int, sign: Any = None, *others: Any) -> Targets:
        """Return the targets of n rows; signs default to ones."""
        return cls(np.ones(n) if sign is None else np.ascontiguousarray(sign, float), *others)

    def take(self, rows: slice | IntArray, factor: FloatArray | None = None) -> Targets:
        """Return the targets of some rows, with their weights multiplied by ``factor``."""
        sign, offset, weight, labels = (None if v is None else v[rows] for v in self)
        if factor is not None:
            weight = factor if weight is None else weight * factor
        return Targets(sign, offset, weight, labels)  # type: ignore[arg-type]

    def vectors(self) -> tuple[Any, Any, Any, Any]:
        """Return signs, offsets, weights and labels."""
        return self.sign, self.offset, self.weight, self.labels

    @property
    def has_offset(self) -> bool:
        """Whether the margins have offsets."""
        return self.offset is not None

    def total_weight(self) -> float:
        """Return the sum of the sample weights."""
        return float(len(self.sign)) if self.weight is None else float(self.weight.sum())

    def class_counts(self, k: int) -> IntArray:
        """Return the number of rows of each of k classes; without labels, of sign -1 and of sign +1."""
        if self.labels is not None:
            return np.bincount(self.labels, minlength=k)
        positive = int(np.count_nonzero(self.sign > 0))
        return np.array([len(self.sign) - positive, positive])

    def rows_of_rank(self, ranks: Sequence[IntArray]) -> list[IntArray]:
        """Return for each class c the numbers of its ``ranks[c]``-th rows, counting from 0 within the class."""
        labels, sign = self.labels, self.sign
        return [
            np.flatnonzero((sign > 0) == (c == 1) if labels is None else labels == c)[wanted]
            for c, wanted in enumerate(ranks)
        ]
