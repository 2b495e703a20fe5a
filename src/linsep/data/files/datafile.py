"""A data file, wherever it is stored: its bytes in order or by position, and what tells it from a changed one."""

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
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  #: errors of a disk without room

#: Columns that the directories above a file stand for: name, value (None: missing) and arrow type.
Partition = tuple[tuple[str, str | None, str], ...]


@dataclass(frozen=True)
class DataFile:
    """A file of this machine. ``str(file)`` is what messages call it."""

    path: str
    name: str = ""
    partition: Partition = ()

    format: ClassVar[str | None] = None  #: known without a look at its content

    def __str__(self) -> str:
        return self.name or self.path

    @property
    def size(self) -> int | None:
        """Bytes; None if that is unknown."""
        return os.path.getsize(self.path)

    def stream(self) -> BinaryIO:
        """The bytes from the first to the last; a missing file raises OSError."""
        return open(existing(self.path), "rb")

    def head(self, count: int) -> bytes:
        """The first bytes."""
        with self.stream() as stream:
            return stream.read(count)

    @contextmanager
    def random_access(self) -> Iterator[Any]:
        """The path, or a stream of bytes that can be read from any position."""
        yield self.path

    @contextmanager
    def on_disk(self) -> Iterator[DataFile]:
        """The file itself, or a temporary copy of it on this machine."""
        yield self

    def absolute(self) -> DataFile:
        """The file by a name that does not depend on the current directory."""
        return replace(self, path=os.path.abspath(self.path))

    def state(self) -> list[Any] | None:
        """What tells this content from another one, as JSON values; None if the file system does not say."""
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
    """A temporary copy of a stream that messages call ``name``."""
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
