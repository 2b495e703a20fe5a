"""A data set whose passes are written to a journal, or answered from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep import _kernels
from linsep.data.block import Block, FloatArray
from linsep.data.dataset import Dataset
from linsep.data.journal import Journal, current, fingerprint
from linsep.data.memory import Memory
from linsep.errors import BadInput

Sum = Callable[[Block, FloatArray], None]


def recorded(data: Dataset, *facts: Any) -> Dataset:
    """``data``, recorded if a checkpoint is in use and they are not in memory; ``facts`` tell the fit."""
    journal = current()
    if journal is None or isinstance(data, Memory):
        return data
    known = (
        _version(),
        _kernels.instruction_set(),
        (data.n, data.d, data.sparse, data.n_entries),
        data.X.fingerprint(),
        [fact for fact in facts if not isinstance(fact, np.ndarray)],
    )
    vectors = [fact for fact in facts if isinstance(fact, np.ndarray)]
    own = [data.sign, data.offset, data.weight, data.labels]
    journal.begin(fingerprint(known, [*vectors, *own]))
    return Recorded(data, journal)


def _version() -> str:
    from importlib.metadata import version  # noqa: PLC0415

    return version("linsep")


class Recorded(Dataset):
    """Another data set, and the journal of its passes.

    A pass that fills kept vectors and is answered from the journal leaves them unfilled. They are *owed*: the pass is
    made after all, once, before the first pass that is not in the journal, and must find what it found before.
    """

    def __init__(self, data: Dataset, journal: Journal) -> None:
        self._data, self._journal = data, journal
        self.n, self.d, self.X = data.n, data.d, data.X
        self.offset, self.labels = data.offset, data.labels
        self._owed: dict[str, tuple[Sum, int, FloatArray]] = {}

    def sum(
        self,
        fn: Sum,
        size: int,
        *,
        fills: Sequence[str] = (),
        uses: Sequence[str] | None = None,
        writes: Sequence[FloatArray] = (),
        features: bool = True,
    ) -> FloatArray:
        if (uses is None and not fills and not writes) or not features:  # unknown, or for nothing
            self.settle()
            return self._data.sum(fn, size, features=features)
        found = self._journal.recorded()
        if found is None:
            for name in fills:
                self._owed.pop(name, None)  # it is overwritten now
            self.settle()
            total = self._data.sum(fn, size)
            self._journal.record([total, *writes])
            return total
        if [len(part) for part in found] != [size, *(part.size for part in writes)]:
            raise BadInput(
                f"The checkpoint {self._journal.path} was made by other passes than these; remove it."
            )
        for name in fills:
            self._owed[name] = fn, size, found[0].copy()
        for part, known in zip(writes, found[1:], strict=True):
            part[...] = known.reshape(part.shape)
        return found[0]

    def settle(self) -> None:
        while self._owed:
            _, (fn, size, known) = self._owed.popitem()
            if self._data.sum(fn, size).tobytes() != known.tobytes():
                raise BadInput(
                    f"The rows are not those that the checkpoint {self._journal.path} was made with: a pass "
                    "over them finds other sums. Remove it, and fit again."
                )

    def columns(self, chosen: npt.NDArray[np.int64]) -> Dataset:
        return Recorded(self._data.columns(chosen), self._journal)

    def sample(self, rows: npt.NDArray[np.int64], share: FloatArray | None = None) -> Dataset:
        return self._data.sample(rows, share)

    @property
    def whole(self) -> Block | None:
        return self._data.whole

    def first_rows(self) -> _kernels.Rows:
        return self._data.first_rows()

    def planes(self, k: int) -> FloatArray:
        return self._data.planes(k)

    @property
    def sign(self) -> FloatArray:
        return self._data.sign

    @property
    def weight(self) -> FloatArray | None:
        return self._data.weight

    @property
    def sparse(self) -> bool:
        return self._data.sparse

    @property
    def n_entries(self) -> int:
        return self._data.n_entries

    def longest_sum(self, size: int) -> int:
        return self._data.longest_sum(size)

    def close(self) -> None:
        self._data.close()
