"""Streaming of rows from standard input, so that predictions are written before the last row has arrived.

The stream is split at line ends, never inside quotes, and every piece is read like a separate file with the same header
line. Line numbers in messages refer to the whole stream.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, BinaryIO

from linsep.errors import BadFile
from linsep.tables import Table
from linsep.tables.table_files import stream_table

_LARGE = 1 << 22  # bytes after which a piece ends even if more input is available


class _Piece(io.BytesIO):
    name = "<stdin>"


def tables(stream: BinaryIO, **how: Any) -> Iterator[Table]:
    """Iterate over tables of rows from a stream of delimited text; ``how`` holds arguments of ``read_table``."""
    mark = how.get("quote", '"')
    quote = None if mark is None else mark.encode()
    # The header line; number of lines before this piece, including the header.
    names, before = b"", 0
    for lines in _whole_lines(stream, quote):
        piece = lines
        if not names:
            names = piece[: _end_of_line(piece, quote)]
        else:
            piece = names + lines
        try:
            yield from stream_table(_Piece(piece), **how)
        except BadFile as error:
            shift = before - names.count(b"\n") if before else 0
            raise _shift_line(error, shift) from None
        before += lines.count(b"\n")


def _whole_lines(stream: Any, quote: bytes | None) -> Iterator[bytes]:
    """Iterate over the input up to the last line end outside quotes; the first piece has the header and a row."""
    waiting, first, inside = bytearray(), True, False
    good = 0  # end of the last such line
    while chunk := stream.read1(_LARGE):
        start, at = len(waiting), 0
        waiting += chunk
        if quote is None or (quote not in chunk and not inside):
            good = max(good, start + chunk.rfind(b"\n") + 1 if b"\n" in chunk else 0)
        else:
            while (end := chunk.find(b"\n", at) + 1) > 0:
                inside ^= chunk.count(quote, at, end) % 2 == 1
                good, at = good if inside else start + end, end
            inside ^= chunk.count(quote, at) % 2 == 1
        rows = bytes(waiting[:good])
        if not good or (first and not rows[_end_of_line(rows, quote) :].strip()):
            continue
        yield rows
        del waiting[:good]
        first, good = False, 0
    if waiting.strip() or first:
        yield bytes(waiting)


def _end_of_line(text: bytes, quote: bytes | None) -> int:
    end = text.find(b"\n") + 1
    while end and quote and text.count(quote, 0, end) % 2:
        end = text.find(b"\n", end) + 1
    return end or len(text)


def _shift_line(error: BadFile, lines: int) -> BadFile:
    """Increase the line number of an error message by the lines already read."""
    if error.line is None or not lines:
        return error
    place, line = f"{error.path}:{error.line}", error.line + lines
    text = str(error).replace(place, f"{error.path}:{line}", 1)
    return BadFile(text, error.path, line, error.column)
