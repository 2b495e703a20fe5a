"""Formulas of the input columns: what a preprocessing step makes of a row, one expression for each feature.

A missing value is None or NaN in Python, NULL in SQL, NaN or a null pointer in C, NaN or an empty string in ONNX. An
expression without a value, such as that of a level that an encoder has not seen and does not ignore, is missing, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Key = str | float


@dataclass(frozen=True)
class Expression:
    """A number, or a text, that is computed from the columns of a row."""


@dataclass(frozen=True)
class Column(Expression):
    """An input column."""

    at: int
    name: str


@dataclass(frozen=True)
class Constant(Expression):
    """A number."""

    value: float


@dataclass(frozen=True)
class Affine(Expression):
    """(x - centre) / divisor + shift."""

    x: Expression
    centre: float
    divisor: float
    shift: float = 0.0


@dataclass(frozen=True)
class Clipped(Expression):
    """min(max(x, low), high)."""

    x: Expression
    low: float
    high: float


@dataclass(frozen=True)
class Filled(Expression):
    """x, or ``value`` where x is ``marker`` (None: missing)."""

    x: Expression
    marker: Key | None
    value: Any


@dataclass(frozen=True)
class Missing(Expression):
    """1 where x is ``marker`` (None: missing), else 0."""

    x: Expression
    marker: Key | None


@dataclass(frozen=True)
class Truth(Expression):
    """1 for true, 0 for false."""

    x: Expression


@dataclass(frozen=True)
class Lookup(Expression):
    """The value of a key; ``default`` of a key that is not listed, ``missing`` of a missing one (NaN: undefined)."""

    x: Expression
    keys: tuple[Key, ...]
    values: tuple[float, ...]
    default: float
    missing: float

    def of(self, key: Key | None) -> float:
        """The value of one key; None is a missing one."""
        if key is None:
            return self.missing
        return self.values[self.keys.index(key)] if key in self.keys else self.default


@dataclass(frozen=True)
class Product(Expression):
    """The product of its factors."""

    factors: tuple[Expression, ...]


@dataclass(frozen=True)
class Normalised(Expression):
    """x divided by the norm ("l1", "l2" or "max") of ``row``, which x belongs to; by 1 where the norm is 0."""

    x: Expression
    row: tuple[Expression, ...]
    norm: str


def children(x: Expression) -> Iterator[Expression]:
    """The expressions that another one is made of."""
    for part in vars(x).values():
        if isinstance(part, Expression):
            yield part
        elif isinstance(part, tuple):
            yield from (item for item in part if isinstance(item, Expression))


def text_columns(expressions: Sequence[Expression]) -> set[int]:
    """Positions of the input columns that hold texts: those that are looked up by a text."""
    found: set[int] = set()
    for x in expressions:
        if isinstance(x, Lookup) and any(isinstance(key, str) for key in x.keys):
            found |= {c.at for c in columns_of(x)}
        else:
            found |= text_columns(list(children(x)))
    return found


def columns_of(x: Expression) -> Iterator[Column]:
    """The input columns of an expression."""
    if isinstance(x, Column):
        yield x
    for part in children(x):
        yield from columns_of(part)
