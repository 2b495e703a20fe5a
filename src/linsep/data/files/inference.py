"""Inference of the type of a text column from its distinct values."""

from __future__ import annotations

import re
from collections.abc import Collection

NUMBER, BOOLEAN, STRING, TIME = ("number", "boolean", "string", "time")

#: Words read as missing in text files by default.
MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "?", "-", "#N/A")


def _pattern(text: str) -> re.Pattern[str]:
    r"""Compile a pattern whose ``\d`` matches only the digits 0 to 9, not those of other scripts."""
    return re.compile(text, re.ASCII)


_NUMBER = _pattern(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(?i:inf|infinity)")
_CODE = _pattern(r"[+-]?0\d+")  # 007 is a code, not the number 7
_LONG = _pattern(r"[+-]?\d{16,}")  # float64 represents all integers only up to 2^53
_COMMA = _pattern(r"[+-]?\d*,\d+")
_GROUPED = _pattern("[+-]?\\d{1,3}([,. '\u2019_\u00a0\u202f\u2009]\\d{3})+([.,]\\d+)?")
_TIME = _pattern(r"\d{4}-\d\d-\d\d([T ]\d\d(:\d\d(:\d\d(\.\d{1,6})?)?)?(Z|[+-]\d\d(:?\d\d)?)?)?")
_ZONED = _pattern(r".{10}[T ]\d\d.*(Z|[+-]\d\d(:?\d\d)?)")
_WITH_UNIT = _pattern(r"([$€£¥]\s*)?[-+\u2212]?\d+([.,]\d+)*(\s*[%$€£¥])?")  # $5, 7 %, \u22123
_IN_BRACKETS = _pattern(r"\([$€£¥]?\d+([.,]\d+)*\)")  # a negative number in accounting
_VERSION = _pattern(r"\d+([.,]\d+)+")  # 1.2.3 is a version, not a number
_ENOUGH = 10  # with this many distinct numbers, a few other values are probably mistakes


Complaint = tuple[str, str]


def is_number(text: str) -> bool:
    """Return whether the text is a number, and not a code such as 007."""
    return bool(_NUMBER.fullmatch(text)) and not _CODE.fullmatch(text)


def is_exact(text: str) -> bool:
    """Return whether float64 represents the number without rounding, if it is written as an integer."""
    return not _LONG.fullmatch(text) or int(float(text)) == int(text)


def kind_of(levels: Collection[str]) -> tuple[str | None, Complaint | None]:
    """Return the type of a column with these distinct values (None if there are none), and a complaint or None.

    The complaint is a value that looks like a mistake and the reason: a decimal comma, grouped digits,
    a unit, or a few exceptions among numbers.
    """
    if not levels:
        return None, None
    numeric = [level for level in levels if _NUMBER.fullmatch(level)]
    if len(numeric) == len(levels):
        names = any(_CODE.fullmatch(level) or _LONG.fullmatch(level) for level in levels)
        return (STRING if names else NUMBER), None
    if {level.lower() for level in levels} <= {"true", "false"}:
        return BOOLEAN, None
    if all(_TIME.fullmatch(level) for level in levels):
        return TIME, None
    return STRING, _complaint(levels, numeric)


def has_zone(levels: Collection[str]) -> bool:
    """Return whether any of the times has a time zone."""
    return any(_ZONED.fullmatch(level) for level in levels)


def _complaint(levels: Collection[str], numeric: list[str]) -> Complaint | None:
    others = [level for level in levels if not _NUMBER.fullmatch(level)]
    commas = all(_COMMA.fullmatch(level) for level in others)
    grouped = all(_GROUPED.fullmatch(level) for level in others)
    if commas and grouped:
        return others[0], (
            "numbers with a comma that is decimal or groups digits; give decimal=',' or thousands=','"
        )
    if commas:
        return others[0], "numbers with a decimal comma; give decimal=','"
    if grouped:
        return _grouping(others)
    if all(_NUMBER.fullmatch(level.replace("\u2212", "-")) for level in others):
        return others[0], "numbers with the minus sign U+2212; write them with a hyphen"
    if all(_WITH_UNIT.fullmatch(level) for level in others) and not _VERSION.fullmatch(others[0]):
        return (
            others[0],
            "numbers with a currency or percent sign; write them without it",
        )
    if numeric and all(_IN_BRACKETS.fullmatch(level) for level in others):
        return others[0], "numbers in brackets, as in accounts; write them with a minus sign"
    if len(numeric) >= _ENOUGH and len(numeric) >= 9 * len(others):
        return others[0], "numbers otherwise; correct it, declare it missing with missing=[...]"
    return None


def _grouping(grouped: list[str]) -> Complaint:
    between = grouped[0].lstrip("+-0123456789")[0]
    with_comma = [level for level in grouped if "." in level and "," in level]  # 1.234,50
    if between == "." and with_comma:
        return with_comma[0], "numbers with grouped digits; give decimal=',' and thousands='.'"
    return grouped[0], f"numbers with grouped digits; give thousands={between!r}"
