"""Where a cell of a delimited text stands: found again, slowly, once something is wrong with it."""

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
    """A file and how it is written."""

    file: DataFile
    encoding: str
    delimiter: str
    quote: str | None

    def rows(self, text: Any) -> Iterator[list[str]]:
        """Records of a text, as lists of cells; a blank line is an empty list."""
        csv.field_size_limit(1 << 30)
        return csv.reader(
            text,
            delimiter=self.delimiter,
            quotechar=self.quote or '"',
            quoting=csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE,
        )

    def locate(self, record: int, number: int) -> tuple[int | None, int | None]:
        """Line and column of cell ``number`` of a record, blank lines left aside."""
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
        """The last quote of the last line with an odd number of them."""
        mark = (self.quote or '"').encode()
        place: tuple[int | None, int | None] = None, None
        with opened(self.file) as stream:
            for number, line in enumerate(stream):
                if line.count(mark) % 2:
                    place = number + 1, line.rindex(mark) + 1
        return place


class _Lines:
    """Lines of text; those of the current record are kept."""

    def __init__(self, text: Any) -> None:
        self._text = text
        self.taken: list[str] = []

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        self.taken.append(next(self._text))
        return self.taken[-1]


def _offset(record: str, delimiter: str, quote: str | None, number: int) -> int:
    """Where in its line a cell of a record begins."""
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
