"""Positions of cells in delimited text, for error messages; the file is parsed a second time, slowly, to find them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from linsep.data.files.datafile import DataFile
from linsep.data.files.source import opened


@dataclass(frozen=True)
class DelimitedText:
    """A delimited text file with its encoding, delimiter and quote."""

    file: DataFile
    encoding: str
    delimiter: str
    quote: str | None

    def rows(self, text: Any) -> Iterator[list[str]]:
        """Iterate over the records of a text, as lists of cells; a blank line is an empty list."""
        csv.field_size_limit(1 << 30)
        return csv.reader(
            text,
            delimiter=self.delimiter,
            quotechar=self.quote or '"',
            quoting=csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE,
        )

    def locate(self, record: int, number: int) -> tuple[int | None, int | None]:
        """Return line and column, counting from 1, of cell ``number`` of a record; blank lines are not records."""
        with opened(self.file) as stream:
            lines = _Lines(io.TextIOWrapper(stream, self.encoding, "replace", newline=""))
            rows: Any = self.rows(lines)
            line, count = 0, -1
            for cells in rows:
                count += bool(cells)
                if count == record:
                    text = "".join(lines.taken).removeprefix("\ufeff")
                    return line + 1, _offset(text, self.delimiter, self.quote, number) + 1
                line = rows.line_num
                lines.taken.clear()
        return None, None

    def open_quote(self) -> tuple[int | None, int | None]:
        """Return line and column of the last quote in the last line with an odd number of quotes."""
        mark = (self.quote or '"').encode()
        place: tuple[int | None, int | None] = None, None
        with opened(self.file) as stream:
            for number, line in enumerate(stream):
                if line.count(mark) % 2:
                    place = number + 1, line.rindex(mark) + 1
        return place


class _Lines:
    """Iterator over the lines of a text that keeps those of the current record."""

    def __init__(self, text: Any) -> None:
        self._text = text
        self.taken: list[str] = []

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        self.taken.append(next(self._text))
        return self.taken[-1]


def _offset(record: str, delimiter: str, quote: str | None, number: int) -> int:
    """Return the position in its line at which cell ``number`` of a record begins, counting from 0."""
    inside = False
    seen = 0
    for at, char in enumerate(record):
        if seen == number:
            return at - (record.rfind("\n", 0, at) + 1)
        if char == quote:
            inside = not inside
        elif char == delimiter and not inside:
            seen += 1
    return len(record.rstrip("\r\n"))
