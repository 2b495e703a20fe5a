"""Numbers and names as the page shows them."""

from __future__ import annotations

import math
import unicodedata
from typing import Any

#: Names are cut to this many characters.
LONGEST = 48

_PERCENT = "\N{NO-BREAK SPACE}%"  # a number and its unit stay on one line

# Marks that reorder the text around them.
_REORDERING = {*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C}


def name(value: Any, longest: int = LONGEST) -> str:
    """Text of a name or label: on one line, without control characters, at most ``longest`` long.

    What is too long loses its middle, because long names often differ at their end.
    """
    text = str(value)
    if len(text) > 8 * longest:
        text = text[: 4 * longest] + text[-4 * longest :]
    shown = "".join(_visible(character) for character in text).strip()
    if len(shown) > longest:
        tail = longest // 3
        shown = shown[: longest - 1 - tail].rstrip() + "…" + shown[-tail:].lstrip()
    return shown or "(empty)"


def _visible(character: str) -> str:
    if character in "\t\n\r":
        return " "
    hidden = unicodedata.category(character) in ("Cc", "Cs", "Cn", "Zl", "Zp")
    return "\ufffd" if hidden or ord(character) in _REORDERING else character


def number(value: float | None, digits: int = 4) -> str:
    """Four significant digits, with a word for what is no number."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value == int(value) and abs(value) < 1e7:
        return f"{int(value):,}"
    return f"{value:.{digits}g}"


def tiny(value: float) -> str:
    """A gap or an error, rounded up: two digits."""
    if value == 0.0 or not math.isfinite(value):
        return number(value)
    exponent = math.floor(math.log10(value))
    digits = math.ceil(value / 10.0 ** (exponent - 1) * (1 - 1e-12))
    return f"{digits * 10.0 ** (exponent - 1):.2g}"


def count(value: float) -> str:
    """A number of rows; weights may make it broken."""
    return f"{round(value):,}" if value == round(value) else f"{value:,.1f}"


def percent(share: float) -> str:
    """2.8 %, with at least two digits that mean something."""
    if math.isnan(share):
        return "–"
    value = 100 * share
    if value in (0, 100):
        return f"{value:.0f}{_PERCENT}"
    if 0.1 <= value <= 99.9:
        return f"{value:.1f}{_PERCENT}"
    return (f"{value:.2g}" if value < 50 else f"{value:.2f}") + _PERCENT


def percent_above(share: float) -> str:
    """A bound in per cent, rounded up."""
    return percent(min(1.0, math.ceil(share * 1000 - 1e-9) / 1000))


def percent_below(share: float) -> str:
    """A bound in per cent, rounded down."""
    return percent(max(0.0, math.floor(share * 1000 + 1e-9) / 1000))


def plural(n: float, noun: str) -> str:
    """3 rows, 1 row, 2 classes."""
    ending = "es" if noun.endswith("ss") else "s"
    return f"{count(n)} {noun}{'' if n == 1 else ending}"
