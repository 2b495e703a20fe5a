"""Rows in memory cut into partitions, added up by a text of its own: what a cluster must agree with, bit for bit."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from linsep.data import Dataset, Location, Memory

FAN = 16


class Partitioned(Dataset):
    location = Location.CLUSTER  # so that the same methods are chosen
    n_threads = 1

    def __init__(self, X, cuts, sign=None, offset=None, weight=None, labels=None, n_threads=1):
        self.X, (self.n, self.d) = X, X.shape
        self._vectors = sign, offset, weight, labels
        self._whole = Memory(X, sign, offset, weight, labels, n_threads=1)
        self.targets, self.sparse = self._whole.targets, self._whole.sparse
        self.n_entries = self._whole.n_entries
        self.starts = np.cumsum([0, *cuts])

        def part(v, a, b):
            return None if v is None else v[a:b]

        self.parts = [
            Memory(
                X[a:b],
                *(part(v, a, b) for v in (sign, offset, weight, labels)),
                n_threads=n_threads,
                origin=int(a),
            )
            for a, b in pairwise(self.starts)
        ]

    def sum(self, fn, size, **notes):
        sums = [part.sum(fn, size) for part in self.parts]
        while len(sums) > 1:
            merged = []
            for at in range(0, len(sums), FAN):
                total = sums[at].copy()
                for other in sums[at + 1 : at + FAN]:
                    total = total + other
                merged.append(total)
            sums = merged
        return sums[0]

    def sums(self, wanted, **notes):
        return [self.sum(fn, size) for fn, size in wanted]

    def set_row_state(self, name, values):
        for part, a, b in zip(self.parts, self.starts[:-1], self.starts[1:], strict=True):
            part.set_row_state(name, np.ascontiguousarray(values[..., a:b]))

    def row_state(self, name):
        return np.concatenate([part.row_state(name) for part in self.parts], axis=-1)

    def sample(self, rows, share=None):
        return self._whole.sample(rows, share)

    def columns(self, chosen):
        X = self.X[:, chosen] if self.sparse else np.ascontiguousarray(self.X[:, chosen])
        return Partitioned(X, np.diff(self.starts), *self._vectors)

    def stays_remote(self):
        return not self.fits_memory()

    def close(self):
        for part in (self._whole, *self.parts):
            part.close()

    def longest_sum(self, size):
        return self.n
