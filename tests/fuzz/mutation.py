"""Inputs for fuzzing: members of a corpus, changed at random by a seed.

Case ``number`` depends on the seed, the number and the corpus alone, so that any case can be made again without those
before it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import deepcopy
from random import Random
from typing import Any

LONGEST = 1 << 14  # bytes
_NUMBERS = (
    b"0",
    b"-1",
    b"1",
    b"255",
    b"256",
    b"65536",
    b"2147483647",
    b"2147483648",
    b"4294967296",
    b"1e308",
    b"1e999",
)
_MORE = (
    b"9223372036854775807",
    b"9223372036854775808",
    b"-0.0",
    b"1e-320",
    b"NaN",
    b"-Infinity",
    b"0x10",
    b"1_0",
    b"",
)
NUMBERS = (*_NUMBERS, *_MORE)
_DIGITS = re.compile(rb"\d+")
_BYTES = b'\x00\t\n\r "#+,-.0:;[]e{}\x7f\x80\xff'


def numbered(seed: int, number: int) -> Random:
    """The random numbers of a case."""
    return Random((seed << 40) + number)


class Mutator:
    """Changes one member of a corpus, up to four times, by operations that know nothing of its format but ``words``."""

    def __init__(self, corpus: Sequence[bytes], words: Sequence[bytes] = ()) -> None:
        self.corpus, self.words = list(corpus), (*words, *NUMBERS)
        self._operations = (
            self._flip,
            self._replace,
            self._delete,
            self._repeat,
            self._insert,
            self._overwrite,
            self._splice,
            self._cut,
            self._renumber,
            self._exchange,
        )

    def __call__(self, rng: Random) -> bytes:
        """A changed member of the corpus, or, once in a hundred cases, one as it is."""
        data = bytearray(rng.choice(self.corpus))
        if rng.random() < 0.01:
            return bytes(data)
        for _ in range(rng.choice((1, 1, 2, 4))):
            rng.choice(self._operations)(data, rng)
        return bytes(data[:LONGEST])

    @staticmethod
    def _span(data: bytearray, rng: Random) -> slice:
        """A stretch, mostly a short one."""
        start = rng.randrange(len(data) + 1)
        return slice(start, start + min(int(rng.paretovariate(0.7)), len(data) - start))

    @staticmethod
    def _flip(data: bytearray, rng: Random) -> None:
        if data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)

    @staticmethod
    def _replace(data: bytearray, rng: Random) -> None:
        if data:
            data[rng.randrange(len(data))] = rng.choice(_BYTES)

    def _delete(self, data: bytearray, rng: Random) -> None:
        del data[self._span(data, rng)]

    def _repeat(self, data: bytearray, rng: Random) -> None:
        span = self._span(data, rng)
        data[span.stop : span.stop] = data[span] * rng.choice((1, 1, 2, 9))

    def _insert(self, data: bytearray, rng: Random) -> None:
        at = rng.randrange(len(data) + 1)
        data[at:at] = rng.choice(self.words)

    def _overwrite(self, data: bytearray, rng: Random) -> None:
        data[self._span(data, rng)] = rng.choice(self.words)

    def _splice(self, data: bytearray, rng: Random) -> None:
        other = rng.choice(self.corpus)
        data[rng.randrange(len(data) + 1) :] = other[rng.randrange(len(other) + 1) :]

    @staticmethod
    def _cut(data: bytearray, rng: Random) -> None:
        del data[rng.randrange(len(data) + 1) :]

    @staticmethod
    def _renumber(data: bytearray, rng: Random) -> None:
        found = [match.span() for match in _DIGITS.finditer(data)]
        if found:
            start, stop = rng.choice(found)
            data[start:stop] = rng.choice(NUMBERS)

    def _exchange(self, data: bytearray, rng: Random) -> None:
        one, other = self._span(data, rng), self._span(data, rng)
        if one.stop <= other.start:
            data[one.start : other.stop] = data[other] + data[one.stop : other.start] + data[one]


_VALUES = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**63,
    2**64,
    0.5,
    -0.0,
    1e308,
    "",
    "x",
    [],
    {},
    [[]],
    {"float": "nan"},
)


def _value(rng: Random) -> Any:
    return deepcopy(rng.choice(_VALUES))  # or later changes would change this list


def change_json(tree: Any, rng: Random) -> Any:
    """A JSON value with one of its nodes replaced, removed or repeated, wherever a walk from the root ends."""
    place, key, node = None, None, tree
    while isinstance(node, dict | list) and node and (place is None or rng.random() < 0.85):
        place = node
        key = rng.choice(list(node)) if isinstance(node, dict) else rng.randrange(len(node))
        node = node[key]
    if place is None:
        return _value(rng)
    change = rng.randrange(6)
    if change == 0:
        del place[key]
    elif change == 1:
        place[key] = _value(rng)
    elif change == 2:
        other = rng.choice(list(place.values()) if isinstance(place, dict) else place)
        place[key] = deepcopy(other)  # or later changes could make it contain itself
    elif change == 3 and isinstance(place, dict):
        place[rng.choice(("x_", "_x", "coef_", "record", "array", key + "_"))] = deepcopy(node)
    elif change == 4 and isinstance(node, int | float) and not isinstance(node, bool):
        place[key] = rng.choice(
            (-node, node + 1, node - 1, node * 2, node / 3, node * (1 + 2**-52))
        )
    else:
        place[key] = [node, deepcopy(node)] if isinstance(place, list) else _changed_text(node, rng)
    return tree


def _changed_text(node: Any, rng: Random) -> Any:
    if not isinstance(node, str) or not node:
        return _value(rng)
    at = rng.randrange(len(node))
    return node[:at] + rng.choice(("", "\0", "é", "Z", node)) + node[at + 1 :]
