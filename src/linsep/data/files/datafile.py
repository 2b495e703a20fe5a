"""A data file at any location: sequential and random access to its bytes, and detection of changes."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, ClassVar

from linsep.errors import BadFile, Refused
from linsep.paths import existing

_PIECE = 1 << 22  # bytes copied together
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  #: errors that mean the disk is full

#: Columns that the directories of a file define (Hive partitions): name, value (None: missing) and arrow type.
Partition = tuple[tuple[str, str | None, str], ...]


@dataclass(frozen=True)
class DataFile:
    """A local file. ``str(file)`` is its name in messages."""

    path: str
    name: str = ""
    partition: Partition = ()

    format: ClassVar[str | None] = None  #: format, if it is known without reading the file

    def __str__(self) -> str:
        return self.name or self.path

    @property
    def size(self) -> int | None:
        """Size in bytes, or None if it is unknown."""
        return os.path.getsize(self.path)

    def stream(self) -> BinaryIO:
        """Open the file for sequential reading; a missing file raises OSError."""
        return open(existing(self.path), "rb")

    def head(self, count: int) -> bytes:
        """Return the first ``count`` bytes."""
        with self.stream() as stream:
            return stream.read(count)

    @contextmanager
    def random_access(self) -> Iterator[Any]:
        """Provide the path, or a seekable stream of bytes."""
        yield self.path

    @contextmanager
    def on_disk(self) -> Iterator[DataFile]:
        """Provide the file itself, or a temporary local copy of it."""
        yield self

    def absolute(self) -> DataFile:
        """Return the file with an absolute path."""
        return replace(self, path=os.path.abspath(self.path))

    def state(self) -> list[Any] | None:
        """Return facts that change with the content, as JSON values; None if the file system reports none."""
        found = os.stat(existing(self.path))
        real = os.path.realpath(self.path)
        return [real, found.st_size, found.st_mtime_ns, found.st_ctime_ns]


@contextmanager
def unchanged(files: Sequence[DataFile]) -> Iterator[None]:
    """Raise BadFile if one of the files changes while it is read."""
    before = [file.state() for file in files]
    yield
    for file, state in zip(files, before, strict=True):
        if state is not None and file.state() != state:
            name = str(file)
            raise BadFile(f"{name}: the file has changed while it was read; read it again.", name)


@contextmanager
def copied(stream: BinaryIO, name: str, partition: Partition = ()) -> Iterator[DataFile]:
    """Provide a temporary copy of a stream, called ``name`` in messages."""
    with tempfile.NamedTemporaryFile(prefix="linsep-") as copy:
        while piece := stream.read(_PIECE):
            _write(copy, piece, name)
        yield DataFile(copy.name, name, partition)


def _write(copy: Any, piece: bytes, name: str) -> None:
    try:
        copy.write(piece)
        copy.flush()
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise Refused(
            f"{name}: there is no room for a copy of it in {tempfile.gettempdir()} ({error.strerror}): set TMPDIR to a "
            "directory with more room."
        ) from error
