"""Row state on the workers: results of earlier rounds, or of rounds that are repeated when the state is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from linsep.arrays import FloatArray
from linsep.data.cluster.engine import Column, Engine
from linsep.data.cluster.row_store import bytes_of


@dataclass
class _Results:
    """Results of a round that the workers store, computed on first use."""

    compute: Callable[[], Column]

    @cached_property
    def column(self) -> Column:
        """Column of the results."""
        return self.compute()


class RowStates:
    """Named vectors with one or more numbers per row, each an entry of the stored results of a round."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._places: dict[str, tuple[_Results, int | None]] = {}
        self._fetched: dict[str, FloatArray] = {}  # state that was copied to the client

    def write(self, names: Sequence[str], compute: Callable[[], Column]) -> None:
        """Set the state of these names to the entries 1, 2, ... of the results that ``compute`` returns when needed."""
        results = _Results(compute)
        for at, name in enumerate(names):
            self._set(name, results, 1 + at)

    def send(self, name: str, parts: Sequence[FloatArray]) -> None:
        """Send every partition its part of the state."""
        column = self._engine.send(name, parts)
        self._set(name, _Results(lambda: column), None)

    def _set(self, name: str, results: _Results, at: int | None) -> None:
        self._places[name] = results, at
        self._fetched.pop(name, None)

    def read(self, names: Sequence[str]) -> tuple[list[Column], list[int | None]]:
        """Return for each name the column of stored results and the entry that holds the state."""
        places = [self._places[name] for name in names]
        return [results.column for results, _ in places], [at for _, at in places]

    def receive(self, name: str, parts: Sequence[FloatArray]) -> None:
        """Store a copy at the client, given the partitions' parts."""
        self._fetched[name] = np.concatenate(parts, axis=-1)

    def fetched(self, name: str) -> FloatArray | None:
        """Return the client's copy, or None."""
        return self._fetched.get(name)

    def fetch(self, name: str) -> FloatArray:
        """Copy row state to the client, but do not store the copy."""
        results, at = self._places[name]
        column = results.column if at is None else self._engine.pick(results.column, at)
        parts: list[Any] = self._engine.collect(column)
        self._engine.traffic.received += bytes_of(parts)
        return np.concatenate(parts, axis=-1)

    def clear(self) -> None:
        """Release all state."""
        self._places.clear()
        self._fetched.clear()
