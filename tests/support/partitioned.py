"""Rows in memory cut into partitions, added up by a text of its own: what a cluster must agree with, bit for bit."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from linsep.data import Dataset, Memory

FAN = 16


class Partitioned(Dataset):
    remote = far = True  # so that the same methods are chosen

    def __init__(self, X, cuts, sign=None, offset=None, weight=None, labels=None, n_threads=1):
        self.X, (self.n, self.d) = X, X.shape
        self._whole = Memory(X, sign, offset, weight, labels, n_threads=1)
        self.offset, self.labels = offset, labels
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

    def place(self, name, values):
        for part, a, b in zip(self.parts, self.starts[:-1], self.starts[1:], strict=True):
            part.place(name, np.ascontiguousarray(values[..., a:b]))

    def fetch(self, name):
        return np.concatenate([part.fetch(name) for part in self.parts], axis=-1)

    def sample(self, rows, share=None):
        return self._whole.sample(rows, share)

    def columns(self, chosen):
        return self._whole.columns(chosen)

    def close(self):
        for part in (self._whole, *self.parts):
            part.close()

    @property
    def whole(self):
        return None

    def first_rows(self):
        return self._whole.first_rows()

    def planes(self, k):
        return np.empty((k, self.n))

    @property
    def sign(self):
        return self._whole.sign

    @property
    def weight(self):
        return self._whole.weight

    @property
    def sparse(self):
        return bool(sp.issparse(self.X))

    @property
    def n_entries(self):
        return self._whole.n_entries

    def longest_sum(self, size):
        return self.n
