"""Counts of values in bounded memory: quantiles of numbers, and a sample of distinct values.

Both depend only on the set of values, so they are bit-identical for any division of the rows into batches, any order
of the batches, and any machine.

``ValueCounts`` counts ordered 64-bit keys after dropping their lowest bits. It drops the fewest bits that leave at most
``limit`` distinct keys. While there are at most ``limit`` distinct values, it drops none and quantiles are exact;
beyond, their relative error is about (octaves that the values span) / limit. Compare DDSketch (Masson, Rim and Lee,
2019), whose resolution is fixed in advance.

``DistinctSample`` keeps the ``limit`` values with the smallest hashes, with their exact counts (bottom-k sampling;
Cohen and Kaplan, 2007). The largest hash kept gives an estimate of the number of distinct values.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.arrays import FloatArray, IntArray, mix_bits

Hashes = npt.NDArray[np.uint64]

_SAMPLED = 1 << 12  # number of values in a sample
_DENSE = 4  # keys are counted in an array if it has fewer counters per key than this
_SHORT = 2048  # fewer keys than this are always sorted
_SIGN = np.int64(0x7FFF_FFFF_FFFF_FFFF)


def ordered_keys(x: FloatArray) -> IntArray:
    """Map float64 numbers to int64 keys with the same order; x must not contain NaN, and -0 counts as 0."""
    bits = (x + 0.0).view(np.int64)
    return np.asarray(bits ^ ((bits >> 63) & _SIGN))


def number_of_key(key: int) -> float:
    """Return the number with the given ordered key; the inverse of ``ordered_keys``."""
    bits = np.int64(key)
    return float((bits ^ _SIGN if bits < 0 else bits).view(np.float64))


class ValueCounts:
    """Counts of ordered 64-bit keys whose lowest ``shift`` bits are dropped."""

    def __init__(self, limit: int) -> None:
        self.limit, self.shift = limit, 0
        self.keys: IntArray = np.empty(0, np.int64)
        self.counts: IntArray = np.empty(0, np.int64)

    @property
    def exact(self) -> bool:
        """Whether no bits were dropped, so that every distinct value has its own count."""
        return self.shift == 0

    def add(self, keys: IntArray) -> None:
        """Count some keys."""
        few = 2 * self.limit
        if not self.shift and len(keys) > 2 * few:  # the first ones tell how many bits to drop
            self._insert(*_count(keys[:few]))
            keys = keys[few:]
        self._insert(*_count(keys >> self.shift))

    def merge(self, other: ValueCounts) -> None:
        """Add the counts of other rows."""
        shift = max(self.shift, other.shift)
        self._coarsen(shift)
        self._insert(*_sum(other.keys >> (shift - other.shift), other.counts))

    def _insert(self, keys: IntArray, counts: IntArray) -> None:
        if len(self.keys):
            keys = np.concatenate([self.keys, keys])
            keys, counts = _combine(keys, np.concatenate([self.counts, counts]))
        self.keys, self.counts = keys, counts
        if len(keys) > self.limit:
            self._coarsen(self.shift + self._bits_to_drop())

    def _bits_to_drop(self) -> int:
        """Return the smallest number of bits to drop that leaves at most ``limit`` distinct keys."""
        low, high = 0, 64  # bisection: ``low`` bits are too few, ``high`` are enough
        while high - low > 1:
            middle = (low + high) // 2
            cut = self.keys >> middle
            many = 1 + np.count_nonzero(cut[1:] != cut[:-1]) > self.limit
            low, high = (middle, high) if many else (low, middle)
        return high

    def _coarsen(self, shift: int) -> None:
        if shift > self.shift and len(self.keys):
            self.keys, self.counts = _sum(self.keys >> (shift - self.shift), self.counts)
        self.shift = shift

    def middle(self) -> tuple[int, int]:
        """Return the two middle keys, which are equal if the number of keys is odd."""
        ends = np.cumsum(self.counts)
        total = int(ends[-1])
        at = np.searchsorted(ends, [(total - 1) // 2, total // 2], side="right")
        half = (1 << self.shift) >> 1
        low, high = (self.keys[at] << self.shift) + half
        return int(low), int(high)


def _count(keys: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct keys in increasing order, and their counts."""
    if len(keys) < _SHORT:
        return _sum(np.sort(keys), np.ones(len(keys), np.int64))
    if int(keys.min()) < 0 <= int(keys.max()):  # there may be a wide gap between the two signs
        below, above = _count(keys[keys < 0]), _count(keys[keys >= 0])
        return np.concatenate([below[0], above[0]]), np.concatenate([below[1], above[1]])
    low, high = int(keys.min()), int(keys.max())
    if high - low < _DENSE * len(keys):
        counts = np.bincount(keys - low)
        found = np.flatnonzero(counts)
        return found + low, counts[found]
    found, counts = np.unique(keys, return_counts=True)
    return found, counts


def _combine(keys: npt.NDArray[Any], counts: IntArray) -> tuple[Any, IntArray]:
    """Return the distinct keys in increasing order, and the sums of their counts."""
    order = np.argsort(keys, kind="stable")
    return _sum(keys[order], counts[order])


def _sum(keys: npt.NDArray[Any], counts: IntArray) -> tuple[Any, IntArray]:
    """Return the distinct keys, given sorted, and the sums of their counts."""
    if not len(keys):
        return keys, counts
    starts = _run_starts(keys)
    return keys[starts], np.add.reduceat(counts, starts)


def _run_starts(keys: npt.NDArray[Any]) -> IntArray:
    """Return the first position of each distinct key; the keys are sorted."""
    return np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])


def hash_numbers(keys: IntArray) -> Hashes:
    """Return 64-bit hashes of integers (SplitMix64)."""
    return mix_bits(keys.view(np.uint64) + np.uint64(0x9E3779B97F4A7C15))


def hash_texts(texts: list[str]) -> Hashes:
    """Return 64-bit hashes (BLAKE2b) of texts."""
    digests = (blake2b(t.encode("utf-8", "surrogatepass"), digest_size=8).digest() for t in texts)
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)


class DistinctSample:
    """Sample of the values with the smallest hashes, with the count and the number of words of each."""

    def __init__(self, limit: int = _SAMPLED) -> None:
        self.limit = limit
        self.hashes: Hashes = np.empty(0, np.uint64)
        self.counts: IntArray = np.empty(0, np.int64)
        self.words: IntArray = np.empty(0, np.int64)

    def add(self, hashes: Hashes, counts: IntArray, words: IntArray) -> None:
        """Add values with their counts; a value may be added again, with the same number of words."""
        hashes = np.concatenate([self.hashes, hashes])
        order = np.argsort(hashes, kind="stable")
        hashes = hashes[order]
        counts = np.concatenate([self.counts, counts])[order]
        words = np.concatenate([self.words, words])[order]
        distinct, totals = _sum(hashes, counts)
        self.hashes, self.counts = distinct[: self.limit], totals[: self.limit]
        self.words = words[_run_starts(hashes)[: self.limit]]

    def merge(self, other: DistinctSample) -> None:
        """Add the sample of other rows."""
        self.add(other.hashes, other.counts, other.words)

    @property
    def distinct(self) -> float:
        """Number of distinct values: exact while all are kept, then an estimate."""
        if len(self.hashes) < self.limit:
            return float(len(self.hashes))
        return (self.limit - 1) / ((float(self.hashes[-1]) + 1.0) / 2.0**64)

    @property
    def repeats(self) -> bool:
        """Whether any of the sampled values occurs more than once."""
        return bool((self.counts > 1).any())
