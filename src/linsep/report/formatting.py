"""Formatting of numbers and names for the report."""

from __future__ import annotations

import math
import unicodedata
from typing import Any

#: Names are truncated to this many characters.
LONGEST = 48

_PERCENT = "\N{NO-BREAK SPACE}%"  # a number and its unit stay on one line

# Bidirectional control characters, which reorder the text around them.
_REORDERING = {*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C}


def name(value: Any, longest: int = LONGEST) -> str:
    """Return a name or label on one line, without control characters, with at most ``longest`` characters.

    Longer names are truncated in the middle, because long names often differ at their end.
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
    """Format a number for a sentence, with four significant digits; None, NaN and infinity become words."""
    return _on_one_line(copyable(value, digits))


def copyable(value: float | None, digits: int = 4) -> str:
    """Format a number that a reader may copy into a program."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value == int(value) and abs(value) < 1e7:
        return f"{int(value):,}"
    return f"{value:.{digits}g}"


def _on_one_line(number: str) -> str:
    """Return a number whose exponent browsers do not move to the next line: they break lines after a hyphen."""
    return number.replace("e-", "e\N{NON-BREAKING HYPHEN}")


def tiny(value: float) -> str:
    """Format a gap or an error with two digits, rounded up."""
    if value == 0.0 or not math.isfinite(value):
        return number(value)
    exponent = math.floor(math.log10(value))
    digits = math.ceil(value / 10.0 ** (exponent - 1) * (1 - 1e-12))
    return _on_one_line(f"{digits * 10.0 ** (exponent - 1):.2g}")


def count(value: float) -> str:
    """Format a number of rows, which may be fractional because of weights."""
    return f"{round(value):,}" if value == round(value) else f"{value:,.1f}"


def percent(share: float) -> str:
    """Format a fraction as 2.8 %, with at least two significant digits."""
    if math.isnan(share):
        return "–"
    value = 100 * share
    if value in (0, 100):
        return f"{value:.0f}{_PERCENT}"
    if 0.1 <= value <= 99.9:
        return f"{value:.1f}{_PERCENT}"
    return (f"{value:.2g}" if value < 50 else f"{value:.2f}") + _PERCENT


def percent_above(share: float) -> str:
    """Format a bound in per cent, rounded up."""
    return percent(min(1.0, math.ceil(share * 1000 - 1e-9) / 1000))


def percent_below(share: float) -> str:
    """Format a bound in per cent, rounded down."""
    return percent(max(0.0, math.floor(share * 1000 + 1e-9) / 1000))


def plural(n: float, noun: str) -> str:
    """Format a number with its noun: 3 rows, 1 row, 2 classes."""
    ending = "es" if noun.endswith("ss") else "s"
    return f"{count(n)} {noun}{'' if n == 1 else ending}"
