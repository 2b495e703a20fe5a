"""Expressions of preprocessing steps in plain Python."""

from __future__ import annotations

import math
from typing import Any

from linsep.pipelines import expressions as ex

#: Source of the functions that the expressions call.
HELPERS = [
    "def missing(v):",
    "    return v is None or v != v",
    "",
    "",
    "def number(v):",
    "    return math.nan if v is None else float(v)",
    "",
    "",
    "def is_marker(v, marker):",
    "    return missing(v) if marker is None else v == marker",
    "",
    "",
    "def look_up(v, known, other, none):",
    "    return none if missing(v) else known.get(v, other)",
    "",
    "",
    "def norm(row, kind):",
    "    sizes = [abs(v) for v in row]",
    '    total = {"l1": math.fsum, "l2": lambda a: math.sqrt(math.fsum(v * v for v in a)), "max": max}[kind](sizes)',
    "    return total if total != 0 else 1.0",
]


def literal(value: Any) -> str:
    """Write a value as a Python literal; NaN becomes ``math.nan``."""
    if isinstance(value, float) and math.isnan(value):
        return "math.nan"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(literal, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{literal(k)}: {literal(v)}" for k, v in value.items()) + "}"
    return repr(value)


def term(x: ex.Expression, texts: set[int], key: bool = False) -> str:
    """Write an expression in terms of ``row``; a ``key`` is a level, which is not converted to a number."""
    if isinstance(x, ex.Column):
        return f"row[{x.at}]" if key and x.at in texts else f"number(row[{x.at}])"
    if isinstance(x, ex.Truth):
        return term(x.x, texts)
    if isinstance(x, ex.Affine):
        return f"(({term(x.x, texts)} - {x.centre!r}) / {x.divisor!r} + {x.shift!r})"
    if isinstance(x, ex.Clipped):
        return f"min(max({term(x.x, texts)}, {x.low!r}), {x.high!r})"
    if isinstance(x, ex.Product):
        return "(" + " * ".join(term(factor, texts) for factor in x.factors) + ")"
    if isinstance(x, ex.Lookup):
        known = literal(dict(zip(x.keys, x.values, strict=True)))
        rest = f"{literal(x.default)}, {literal(x.missing)}"
        return f"look_up({term(x.x, texts, key=True)}, {known}, {rest})"
    if isinstance(x, ex.Normalised):
        row = ", ".join(term(part, texts) for part in x.row)
        return f"({term(x.x, texts)} / norm([{row}], {x.norm!r}))"
    return _gap(x, texts, key)


def _gap(x: ex.Expression, texts: set[int], key: bool) -> str:
    if isinstance(x, ex.Missing):
        return f"float(is_marker({term(x.x, texts, key=True)}, {x.marker!r}))"
    assert isinstance(x, ex.Filled)
    inner = term(x.x, texts, key)
    return f"({x.value!r} if is_marker({inner}, {x.marker!r}) else {inner})"
