"""Reader of CSV and other delimited text: column types are inferred from the head of the file, then enforced.

A value that contradicts the inferred type raises an error with file, line and column; it is never converted
silently.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from linsep.arguments import flag
from linsep.data.files.columnar import (
    ColumnSettings,
    Records,
    directory_columns,
    with_directory_columns,
)
from linsep.data.files.columns import arrow
from linsep.data.files.datafile import DataFile
from linsep.data.files.inference import BOOLEAN, MISSING, NUMBER, STRING, TIME, has_zone, kind_of
from linsep.data.files.source import UTF8_MARK, opened, refuse
from linsep.data.files.text_cells import DelimitedText
from linsep.errors import BadInput

_HEAD = 1 << 20  # bytes from which delimiter, header and types are inferred
_BLOCK = 1 << 20  # bytes parsed together; pyarrow reads dozens of blocks ahead
_LINES, _LARGEST_BLOCK = 64, 1 << 25  # blocks of wide tables: each column of a batch has a cost
_WIDE = 300  # columns beyond which missing values are recognised only with the padding of the head
_DELIMITERS = ",;\t|"
_EXAMPLE = {
    "delimiter": "';' or '\\t' (a tab)",
    "decimal": "','",
    "thousands": "','",
    "quote": "'\"'",
}
#: Types of the parser, and what a column of them holds.
_HELD = {
    "double": "numbers",
    "bool": "booleans",
    "timestamp": "dates and times",
    "": "other values",
}
_AS_KIND = {"category": STRING, "hashed": STRING, "text": STRING}
_PLACE = re.compile(r"(?:In CSV column #(\d+): )?.*?Row #(\d+): (.*)", re.DOTALL)
_VALUE = re.compile(
    r"conversion error to (.+?): (?:invalid value|expected .*? in) '(.*)'", re.DOTALL
)


@dataclass(frozen=True)
class Dialect:
    """Text format of the file; a ``delimiter`` of None is inferred from the first line."""

    delimiter: str | None = None
    header: bool = True
    decimal: str = "."
    thousands: str | None = None
    quote: str | None = '"'
    encoding: str = "utf-8"
    missing: frozenset[str] = frozenset(MISSING)

    def check(self) -> None:
        """Raise if a setting is invalid, for instance a delimiter or quote that is not one character."""
        flag("header", self.header)
        if not isinstance(self.encoding, str):
            raise BadInput(f"encoding must be a name such as 'utf-8', got {self.encoding!r:.80}.")
        for name in ("delimiter", "decimal", "thousands", "quote"):
            given = getattr(self, name)
            if given is None and name != "decimal":
                continue
            if not isinstance(given, str) or len(given) != 1 or given in "\r\n":
                raise BadInput(
                    f"{name} must be one character, for instance {_EXAMPLE[name]}, got {given!r}."
                )

        if self.thousands is not None and (
            self.thousands.isdigit() or self.thousands in "+-" + self.decimal
        ):
            raise BadInput(
                f"thousands={self.thousands!r} separates groups of digits: it can be neither a digit, a sign, nor the "
                f"decimal separator {self.decimal!r}."
            )

    @property
    def grouped(self) -> str | None:
        """Pattern of a number whose digits are separated in groups of three."""
        if self.thousands is None:
            return None
        between, point = re.escape(self.thousands), re.escape(self.decimal)
        return rf"^[+-]?[0-9]{{1,3}}({between}[0-9]{{3}})+({point}[0-9]*)?$"

    def plain(self, cell: str) -> str:
        """A number without separators of thousands and with a decimal point; other text as it is."""
        if self.grouped is not None and re.match(self.grouped, cell):
            cell = cell.replace(str(self.thousands), "")
        return cell.replace(",", ".") if self.decimal == "," else cell

    def of_format(self, kind: str) -> Dialect:
        """Return the dialect for a file format: the delimiter of TSV files defaults to a tab."""
        return replace(self, delimiter="\t") if kind == "tsv" and self.delimiter is None else self


def delimited_records(
    file: DataFile, dialect: Dialect, settings: ColumnSettings, entries: int
) -> Records:
    """Return the record batches of a file, with about ``entries`` numbers per batch."""
    text = _DelimitedFile(file, dialect, entries)
    extra = directory_columns(file, text.names)
    settings.check([*text.names, *(column for column, *_ in extra)], text.name)
    return with_directory_columns(text.records(settings), extra, settings)


class _DelimitedFile:
    def __init__(self, file: DataFile, dialect: Dialect, entries: int) -> None:
        self.file, self.name, self.dialect = file, str(file), dialect
        self.block = min(_BLOCK, max(1, entries // 2))
        with opened(file) as stream:
            head = stream.read(_HEAD)
            if len(head) == _HEAD:
                head += stream.readline()
        self.head = self._text(head.removeprefix(UTF8_MARK))
        if not self.head.strip():
            refuse(self.name, "the file is empty; a header and rows are needed.")
        before = self.head[: len(self.head) - len(self.head.lstrip("\r\n"))]
        self.blank = len(before.splitlines())
        self.delimiter = dialect.delimiter or self._find_delimiter()
        self.text = DelimitedText(file, dialect.encoding, self.delimiter, dialect.quote)
        self.names = self._header()
        self.padded: set[str] = set()  # missing values in the head, with the blanks around them

    def records(self, settings: ColumnSettings) -> Records:
        kept = [column for column in self.names if settings.is_feature(column)]
        kinds, zoned = self._infer(kept, settings.types)
        pa = arrow()
        arrow_types = {
            NUMBER: pa.float64(),
            BOOLEAN: pa.bool_(),
            STRING: pa.string(),
            TIME: pa.timestamp("us"),
        }
        columns = {column: arrow_types[kinds[column]] for column in kept}
        columns.update(dict.fromkeys(zoned, pa.timestamp("us", "UTC")))
        if settings.target in self.names:
            columns[settings.target] = pa.string()
        texts = self._texts(columns, settings.target)
        return Records(
            self._in_plain_digits(self._batches(columns), texts),
            {column: kinds[column] for column in kept},
            self.name,
            settings.types,
            self.dialect.missing,
            lambda row, column: self._locate(row, self.names.index(column)),
        )

    # inference from the head of the file

    def _text(self, head: bytes) -> str:
        if b"\0" in head:
            line = head.count(b"\n", 0, head.index(b"\0")) + 1
            refuse(
                self.name, "a NUL byte: the file is not text, or UTF-16; save it as UTF-8.", line
            )
        try:
            return head.decode(self.dialect.encoding)
        except UnicodeDecodeError as error:
            before = head[: error.start]
            line = before.count(b"\n") + 1
            column = error.start - (before.rfind(b"\n") + 1) + 1
            refuse(
                self.name,
                f"the byte {head[error.start]:#04x} is not {self.dialect.encoding}; give the "
                "encoding of the file, for instance encoding='latin-1'.",
                line,
                column,
            )
        except LookupError:
            raise BadInput(f"unknown encoding {self.dialect.encoding!r}; try 'utf-8'.") from None

    def _find_delimiter(self) -> str:
        first = next(line for line in self.head.splitlines() if line.strip())
        bare = re.sub(r'"[^"]*"', "", first)
        return max(_DELIMITERS, key=bare.count)

    def _header(self) -> list[str]:
        first = next(row for row in self.text.rows(io.StringIO(self.head, newline="")) if row)
        if not self.dialect.header:
            return [f"column_{at + 1}" for at in range(len(first))]
        names = [cell.strip() or f"column_{at + 1}" for at, cell in enumerate(first)]
        if kind_of([cell.strip() for cell in first])[0] == NUMBER:
            refuse(
                self.name,
                f"the first line holds numbers ({first[0]!r}, ...), not names; give header=False.",
                1,
                1,
            )
        seen: set[str] = set()
        for at, column in enumerate(names):
            if column in seen:
                refuse(
                    self.name,
                    f"two columns are called {column!r}; rename one.",
                    *self._locate(-1, at),
                )
            seen.add(column)
        return names

    def _infer(self, kept: list[str], types: dict[str, str]) -> tuple[dict[str, str], list[str]]:
        """Infer the types of the columns from their values in the head; also return the times that have a zone."""
        rows = self.text.rows(io.StringIO(self.head, newline=""))
        if self.dialect.header:
            next(row for row in rows if row)
        levels: list[dict[str, int]] = [{} for _ in self.names]  # value -> row of first occurrence
        for at, row in enumerate(filter(None, rows)):
            for seen, cell in zip(levels, row, strict=False):
                seen.setdefault(cell, at)
        place = {column: at for at, column in enumerate(self.names)}
        kinds, zoned = {}, []
        for column in kept:
            raw = levels[place[column]]
            met = {cell.strip(): at for cell, at in raw.items()}
            if len(met.keys() & self.dialect.missing):
                self.padded.update(c for c in raw if c.strip() in self.dialect.missing)
            if self.dialect.decimal == "," or self.dialect.thousands is not None:
                met = {self.dialect.plain(cell): at for cell, at in met.items()}
            values = sorted(met.keys() - self.dialect.missing)
            kind, complaint = kind_of(values)
            asked = types.get(column)
            if complaint and asked is None:
                value, problem = complaint
                refuse(
                    self.name,
                    f"{value!r} in column {column!r}, which holds {problem}, or set the type of the "
                    f"column: types={{{column!r}: 'category'}}.",
                    *self._locate(met[value], place[column]),
                )
            kinds[column] = _AS_KIND.get(asked or "", asked) or kind or STRING
            if kinds[column] == TIME and has_zone(values):
                zoned.append(column)
        return kinds, zoned

    # parsing

    def _batches(self, columns: dict[str, Any]) -> Iterator[Any]:
        if self.dialect.header and not re.search("[\r\n]", self.head.lstrip("\r\n")):
            return  # the parser wants an end of the line that it skips
        import pyarrow.csv as pc

        pa = arrow()
        bad: list[Any] = []

        def remember(row: Any) -> str:
            bad.append(row)
            return "error"

        with opened(self.file) as stream:
            watched = _Watched(stream, self.dialect.quote)
            try:
                yield from pc.open_csv(
                    pa.PythonFile(watched, mode="r"),
                    pc.ReadOptions(
                        use_threads=False,
                        block_size=self._block_size(),
                        column_names=self.names,
                        skip_rows=self.blank,
                        skip_rows_after_names=int(self.dialect.header),
                        encoding=self.dialect.encoding,
                    ),
                    pc.ParseOptions(
                        delimiter=self.delimiter,
                        quote_char=self.dialect.quote or False,
                        newlines_in_values=self.dialect.quote is not None,
                        invalid_row_handler=remember,
                    ),
                    pc.ConvertOptions(
                        column_types=columns,
                        include_columns=list(columns),
                        null_values=self._missing(),
                        strings_can_be_null=True,
                        true_values=["true", "True", "TRUE"],
                        false_values=["false", "False", "FALSE"],
                        decimal_point=self.dialect.decimal,
                    ),
                )
            except pa.ArrowInvalid as error:
                if bad:
                    self._refuse_ragged(bad[0])
                self._refuse_value(str(error))
        self._refuse_unread(watched)

    def _texts(self, columns: dict[str, Any], target: str | None) -> dict[str, Any]:
        """Columns that are read as text to be put into plain digits, with the types that they then get."""
        pa = arrow()
        plain = self.dialect.thousands is None
        numeric = {} if plain else {name: t for name, t in columns.items() if t == pa.float64()}
        columns.update(dict.fromkeys(numeric, pa.string()))
        if target in self.names and not (plain and self.dialect.decimal == "."):
            numeric[target] = pa.string()
        return numeric

    def _in_plain_digits(self, batches: Iterator[Any], texts: dict[str, Any]) -> Iterator[Any]:
        """The batches, with the numbers in these columns of text written plainly."""
        pa, row = arrow(), 0
        for batch in batches:
            found = batch
            for name, kind in texts.items():
                place = batch.schema.get_field_index(name)
                cells = self._plain_cells(batch.column(place), numeric=kind == pa.float64())
                try:
                    found = found.set_column(place, name, cells.cast(kind))
                except pa.ArrowInvalid:
                    self._refuse_first(cells, batch.column(place), row, name)
            row += batch.num_rows
            yield found

    def _plain_cells(self, cells: Any, numeric: bool) -> Any:
        """Numbers without separators of thousands and with a decimal point; other text as it is.

        In a ``numeric`` column with another decimal separator, a point that is left makes a cell no number.
        """
        from pyarrow import compute

        cells, point = compute.utf8_trim_whitespace(cells), self.dialect.decimal
        if self.dialect.thousands is not None:
            whole = compute.match_substring_regex(cells, self.dialect.grouped)
            bare = compute.replace_substring(cells, self.dialect.thousands, "")
            cells = compute.if_else(whole, bare, cells)
        if point == ".":
            return cells
        if numeric:
            cells = compute.replace_substring(cells, ".", " ")
        number = rf"^[+-]?[0-9]*{re.escape(point)}[0-9]*([eE][+-]?[0-9]+)?$"
        whole = compute.match_substring_regex(cells, number)
        return compute.if_else(whole, compute.replace_substring(cells, point, "."), cells)

    def _refuse_first(self, cells: Any, texts: Any, row: int, name: str) -> NoReturn:
        """Name the first cell that is no number."""
        pa = arrow()
        for at, (cell, text) in enumerate(zip(cells, texts, strict=True)):
            try:
                cell.cast(pa.float64())
            except pa.ArrowInvalid:
                self._refuse_cell(text.as_py(), "double", row + at, self.names.index(name))
        raise AssertionError("every cell is a number")

    def _block_size(self) -> int:
        """Return the bytes parsed together: a block, or more if lines are long: 64 lines up to 32 MB, at least 8."""
        line = max(map(len, self.head.split("\n", 2)[:2]))
        return max(self.block, min(_LINES * line, _LARGEST_BLOCK), 8 * line)

    def _missing(self) -> list[str]:
        """Return the words read as missing. pyarrow stores the list per column, so it must be short for wide tables."""
        tokens = self.dialect.missing
        return _with_blanks(tokens) if len(self.names) <= _WIDE else sorted(tokens | self.padded)

    def _row(self, number: int) -> int:
        """Convert the row number of pyarrow to a data row, counting from 0."""
        return number - 1 - self.blank - int(self.dialect.header)

    def _locate(self, row: int, number: int) -> tuple[int | None, int | None]:
        """Return line and column of a cell; row -1 is the header."""
        return self.text.locate(row + int(self.dialect.header), number)

    def _refuse_ragged(self, row: Any) -> NoReturn:
        line, _ = self._locate(self._row(row.number), 0)
        refuse(
            self.name,
            f"{row.actual_columns} cells where {row.expected_columns} are expected; check the "
            f"delimiter ({self.delimiter!r}) and the quotes of this line. The file may be cut "
            "short.",
            line,
            1,
        )

    def _refuse_value(self, message: str) -> NoReturn:
        place = _PLACE.match(message)
        if place is None:
            refuse(
                self.name,
                f"the text cannot be cut into rows ({message}); a quote may be left open: check "
                "the quotes, or give quote=None.",
            )
        number = int(place[1] or 0)
        row = self._row(int(place[2]))
        column = self.names[number]
        value = _VALUE.search(place[3])
        if value is None:
            problem = (
                f"column {column!r}: {place[3]}; save the file as UTF-8, or give its encoding."
            )
        else:
            self._refuse_cell(value[2], value[1], row, number)
        refuse(self.name, problem, *self._locate(row, number))

    def _refuse_cell(self, text: str, kind: str, row: int, number: int) -> NoReturn:
        """Say that a cell is not of the kind that the parser calls ``kind``."""
        column = self.names[number]
        complaint = kind_of([text])[1]  # such as a decimal comma
        others = next(word for start, word in _HELD.items() if kind.startswith(start))
        why = (
            complaint[1]
            if complaint
            else f"{others} otherwise; correct it, declare it missing with missing=[...]"
        )
        refuse(
            self.name,
            f"{text!r} in column {column!r}, which holds {why}, or set the type of the column: "
            f"types={{{column!r}: 'category'}}.",
            *self._locate(row, number),
        )

    def _refuse_unread(self, watched: _Watched) -> None:
        if watched.nul is not None:
            refuse(self.name, "a NUL byte: the file is damaged or not text.", watched.nul)
        if watched.quotes % 2:
            refuse(
                self.name,
                "a quote is opened and not closed: the number of quotes is odd; double a quote "
                "inside a cell, or give quote=None if quotes mean nothing.",
                *self.text.open_quote(),
            )


class _Watched(io.RawIOBase):
    """Stream that passes bytes to the parser, counts quotes and finds the first NUL byte."""

    def __init__(self, stream: Any, quote: str | None) -> None:
        self._stream = stream
        self._quote = quote.encode() if quote else None
        self._lines = 1
        self.quotes = 0
        self.nul: int | None = None

    def readable(self) -> bool:
        """Return True."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        piece: bytes = self._stream.read(size)
        if self._quote:
            self.quotes += piece.count(self._quote)
        if self.nul is None:
            at = piece.find(b"\0")
            self.nul = None if at < 0 else self._lines + piece.count(b"\n", 0, at)
            self._lines += piece.count(b"\n")
        return piece


def _with_blanks(missing: frozenset[str]) -> list[str]:
    """Return the words with up to two blanks on either side, as in files with aligned columns, and blank cells."""
    around = {" " * k + token + " " * j for token in missing for k in range(3) for j in range(3)}
    return sorted(around | {" " * k for k in range(64)})
