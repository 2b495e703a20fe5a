"""Byte streams from paths, streams or standard input; compression is detected from the content, not the name."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NoReturn, cast

from linsep.data.files.datafile import DataFile
from linsep.errors import BadFile
from linsep.monitoring import Job, current

Source = str | os.PathLike[str] | BinaryIO | DataFile

_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstandard",
    b"PK\x03\x04": "zip",
}
_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)
_BZ2_DAMAGE = "Invalid data stream"  # the text of the OSError that bz2 raises
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
UTF8_MARK = b"\xef\xbb\xbf"


def is_plain(head: bytes) -> bool:
    """Return whether a file that begins with ``head`` is neither compressed nor in a binary format."""
    marks = (*_MAGIC, *_UTF16, b"PAR1", b"ARROW1", b"\x93NUMPY")
    return not head.startswith(marks) and b"\0" not in head


def name_of(source: Source) -> str:
    """Return the name of the source for messages."""
    if isinstance(source, DataFile):
        return str(source)
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        return "<stdin>" if path == "-" else path
    return str(getattr(source, "name", "<stream>"))


def refuse(path: str, problem: str, line: int | None = None, column: int | None = None) -> NoReturn:
    """Raise BadFile with a message that starts with the position: ``file:line:column: problem``."""
    place = ":".join(str(part) for part in (path, line, column) if part is not None)
    raise BadFile(f"{place}: {problem}", path, line, column)


@contextmanager
def opened(source: Source) -> Iterator[BinaryIO]:
    """Open the decompressed bytes of a file, a path, ``"-"`` (standard input) or a binary stream.

    A missing file, a directory or a file without permission raises OSError, as ``open`` does.
    Damaged compressed data raise BadFile.
    """
    path = name_of(source)
    with _raw(source) as raw:
        head = raw.peek(8)[:8]
        if head[:2] in _UTF16:
            refuse(path, "the text is UTF-16; save it as UTF-8 (iconv -f UTF-16 -t UTF-8).", 1, 1)
        kind = next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)
        try:
            yield _decompress(raw, kind, path)
        except (*_DAMAGE, OSError) as error:
            if not isinstance(error, _DAMAGE) and _BZ2_DAMAGE not in str(error):
                raise
            refuse(
                path,
                f"the {kind or 'compressed'} data are damaged or cut short ({error}); copy the "
                "file again.",
            )


@contextmanager
def _raw(source: Source) -> Iterator[io.BufferedReader]:
    if isinstance(source, str | os.PathLike) and os.fspath(source) == "-":
        yield cast(io.BufferedReader, sys.stdin.buffer)
    elif isinstance(source, str | os.PathLike | DataFile):
        file = source if isinstance(source, DataFile) else DataFile(os.fspath(source))
        with file.stream() as stream:
            yield _count(cast(io.BufferedReader, stream), current())
    else:
        if not hasattr(source, "read") or hasattr(source, "encoding"):
            refuse(
                name_of(source),
                "a path or a stream of bytes is needed; open the file with mode 'rb'.",
            )
        if isinstance(source, io.BufferedReader):
            yield source
        else:
            buffered = io.BufferedReader(cast(Any, source))
            try:
                yield buffered
            finally:
                buffered.detach()  # the stream belongs to the caller


class _Counted(io.RawIOBase):
    """Stream that reports the number of bytes read to a progress job, whichever thread reads them."""

    def __init__(self, stream: io.BufferedReader, job: Job) -> None:
        self._stream, self._job = stream, job

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        count = self._stream.readinto(room)
        self._job.done = self._stream.tell()
        return count


def _count(stream: io.BufferedReader, job: Job | None) -> io.BufferedReader:
    if job is None or not stream.seekable():
        return stream
    return io.BufferedReader(_Counted(stream, job), 1 << 20)


def _decompress(raw: io.BufferedReader, kind: str | None, path: str) -> BinaryIO:
    if kind == "gzip":
        return cast(BinaryIO, gzip.GzipFile(fileobj=raw))
    if kind == "bzip2":
        return cast(BinaryIO, bz2.BZ2File(raw))
    if kind == "xz":
        return cast(BinaryIO, lzma.LZMAFile(raw))
    if kind == "zstandard":
        refuse(path, "Zstandard compression is not read; decompress the file first (unzstd).")
    if kind == "zip":
        refuse(path, "the file is a zip archive; unpack it first.")
    return cast(BinaryIO, raw)
