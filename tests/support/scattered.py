"""A cluster without a network: any number of workers, which finish in any order, on copies of all that they get."""

from __future__ import annotations

import pickle

import cloudpickle
import numpy as np

from linsep.data.cluster.engine import Engine
from linsep.data.layout import FAN, one_after_another


class Scattered(Engine):
    """Tasks of so many workers, one worker after another and its partitions in random order.

    Some tasks are run twice, as if their first results had been lost.
    """

    collected_bytes = 0

    def __init__(self, count: int, workers: int) -> None:
        super().__init__()
        self.count, self.workers = count, workers
        self._rng = np.random.default_rng(workers)

    def map(self, what, fn, /, *columns, among=None, persist=False, **common):
        if among is not None:
            columns = [[column[i] for i in among] for column in columns]
        found = [None] * len(columns[0])
        for i in self._order(len(found)):
            sent = pickle.dumps([column[i] for column in columns])
            for _ in range(self._rng.integers(1, 3)):
                found[i] = fn(*pickle.loads(sent), **common)
        return found

    def _order(self, count):
        shuffled = self._rng.permutation(count)
        workers = self._rng.integers(self.workers, size=count)
        return shuffled[np.argsort(workers[shuffled], kind="stable")]

    def collect(self, column):
        return list(column)

    @property
    def numbers(self):
        return range(self.count)

    def _tree(self, column):
        while len(column) > 1:
            groups = [column[at : at + FAN] for at in range(0, len(column), FAN)]
            column = self.map("tree", one_after_another, groups)
        return np.array(column[0])

    def send(self, what, values):
        return list(values)

    def share(self, what, value):
        return [value] * self.count

    def keep(self, column, numbers):
        self.count = len(numbers)
        return [column[i] for i in numbers]

    def restart(self):
        return Scattered(self.count, self.workers)

    def dumps(self, fn):
        return cloudpickle.dumps(fn)

    def setting(self, name):
        return None

    def how_to_set(self, name, value):
        return f"set {name} to {value}"
