"""Expressions of the input columns, which describe preprocessing steps for export: one expression per feature.

A missing value is None or NaN in Python, NULL in SQL, NaN or a null pointer in C, NaN or an empty string in ONNX. An
undefined expression, such as that of a level unknown to an encoder that does not ignore such levels, is missing too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Key = str | float


@dataclass(frozen=True)
class Expression:
    """Base of the expressions: a number or a text computed from the columns of a row."""


@dataclass(frozen=True)
class Column(Expression):
    """Expression for an input column."""

    at: int
    name: str


@dataclass(frozen=True)
class Constant(Expression):
    """Expression for a constant number."""

    value: float


@dataclass(frozen=True)
class Affine(Expression):
    """Expression (x - centre) / divisor + shift."""

    x: Expression
    centre: float
    divisor: float
    shift: float = 0.0


@dataclass(frozen=True)
class Clipped(Expression):
    """Expression min(max(x, low), high)."""

    x: Expression
    low: float
    high: float


@dataclass(frozen=True)
class Filled(Expression):
    """Imputation: x, or ``value`` where x is ``marker`` (None: missing)."""

    x: Expression
    marker: Key | None
    value: Any


@dataclass(frozen=True)
class Missing(Expression):
    """Indicator: 1 where x is ``marker`` (None: missing), else 0."""

    x: Expression
    marker: Key | None


@dataclass(frozen=True)
class Truth(Expression):
    """Boolean as a number: 1 for true, 0 for false."""

    x: Expression


@dataclass(frozen=True)
class Level(Expression):
    """Level of a column of texts: the text without blanks around it."""

    x: Column


@dataclass(frozen=True)
class Lookup(Expression):
    """Table lookup: the value of a key, ``default`` for other keys, ``missing`` for a missing key (NaN: undefined)."""

    x: Expression
    keys: tuple[Key, ...]
    values: tuple[float, ...]
    default: float
    missing: float

    @property
    def of_texts(self) -> bool:
        """Whether the keys are texts."""
        return looks_up_texts(self.x, self.keys)

    def of(self, key: Key | None) -> float:
        """Return the value of a key; None is a missing key."""
        if key is None:
            return self.missing
        return self.values[self.keys.index(key)] if key in self.keys else self.default


@dataclass(frozen=True)
class Product(Expression):
    """Product of expressions."""

    factors: tuple[Expression, ...]


@dataclass(frozen=True)
class Normalised(Expression):
    """Expression x divided by the norm ("l1", "l2" or "max") of ``row``, which contains x; by 1 if the norm is 0."""

    x: Expression
    row: tuple[Expression, ...]
    norm: str


def looks_up_texts(x: Expression, keys: Sequence[Key]) -> bool:
    """Return whether a table in which x is looked up has texts as keys."""
    return isinstance(x, Level) or any(isinstance(key, str) for key in keys)


def children(x: Expression) -> Iterator[Expression]:
    """Yield the direct subexpressions of an expression."""
    for part in vars(x).values():
        if isinstance(part, Expression):
            yield part
        elif isinstance(part, tuple):
            yield from (item for item in part if isinstance(item, Expression))


def text_columns(expressions: Sequence[Expression]) -> set[int]:
    """Return the positions of the input columns that contain text: levels, and those looked up among text keys."""
    found: set[int] = set()
    for x in expressions:
        if isinstance(x, Level) or (isinstance(x, Lookup) and x.of_texts):
            found |= {c.at for c in columns_of(x)}
        else:
            found |= text_columns(list(children(x)))
    return found


def columns_of(x: Expression) -> Iterator[Column]:
    """Yield the input columns of an expression."""
    if isinstance(x, Column):
        yield x
    for part in children(x):
        yield from columns_of(part)
