"""The checkpoint file: a journal of pass results, from which an interrupted fit resumes.

A solver obtains from rows on disk only sums over them and a few of the rows, and everything else it does is
deterministic. The results of the passes, in order, are therefore the whole state of a fit: replaying them
from the file instead of reading the data leads the solver to the same iterate, bit for bit.

The file is append-only. Every record carries its length and a checksum of itself and all records
before it. Records that are incomplete, damaged, moved or repeated fail the check; they and all records after them
are dropped when the file is opened again.
"""

from __future__ import annotations

import errno
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.arrays import FloatArray, IntArray
from linsep.errors import BadInput, Refused

_MAGIC = b"linsep checkpoint 3\n"
# Kind, length of the payload in bytes, CRC-32 of all records up to and including this one.
_HEAD = struct.Struct("<cQI")
_FIT, _PASS = b"F", b"P"
_VECTOR = struct.Struct("<3sQ")  # dtype and length

Vector = FloatArray | IntArray


class Journal:
    """Reader and writer of a checkpoint file, whose records are fits, each followed by its passes."""

    def __init__(self, path: Path, resume: bool) -> None:
        self.path = path
        try:
            self._file = path.open("r+b" if resume and path.exists() else "w+b")
        except OSError as error:
            raise BadInput(f"The checkpoint {path} cannot be opened ({error.strerror}).") from error
        self._known: list[tuple[bytes, int, int]] = []  # kind, position and length of each record
        self._next = self._checksum = 0
        self._read_all()

    @property
    def passes(self) -> int:
        """Number of recorded passes."""
        return sum(kind == _PASS for kind, _, _ in self._known)

    def _read_all(self) -> None:
        """Index all intact records and truncate the file after them."""
        start = self._file.read(len(_MAGIC))
        if start != _MAGIC[: len(start)]:
            self._file.close()
            raise BadInput(
                f"{self.path} is not a checkpoint of linsep; give another path, or remove it."
            )
        end, size = len(_MAGIC), os.fstat(self._file.fileno()).st_size
        while len(head := self._file.read(_HEAD.size)) == _HEAD.size:
            kind, length, checksum = _HEAD.unpack(head)
            if length > size - end - _HEAD.size:  # incomplete; checked before memory is allocated
                break
            if _checksum(kind, self._file.read(length), self._checksum) != checksum:
                break
            self._checksum = checksum
            self._known.append((kind, end + _HEAD.size, length))
            end += _HEAD.size + length
        self._file.seek(0)
        self._file.write(_MAGIC)
        self._file.truncate(max(end, len(_MAGIC)))
        self._file.flush()

    def begin(self, fingerprint: bytes) -> None:
        """Start the next fit, identified by a fingerprint of data and recipe; raise if another fit is recorded."""
        found = self._record(_FIT)
        if found is None:
            self._append(_FIT, fingerprint)
        elif found != fingerprint:
            raise BadInput(
                f"The checkpoint {self.path} was made by another fit: other data, other parameters, or another "
                "version of linsep. Give each fit a path of its own, or remove the file."
            )

    def recorded(self) -> list[Vector] | None:
        """Return the result of the next pass, or None if it is not in the file."""
        payload = self._record(_PASS)
        if payload is None:
            return None
        (count,) = struct.unpack_from("<Q", payload)
        heads = [_VECTOR.unpack_from(payload, 8 + _VECTOR.size * i) for i in range(count)]
        found: list[Vector] = []
        at = 8 + _VECTOR.size * count
        for kind, size in heads:
            found.append(np.frombuffer(payload, kind.decode(), size, at).copy())
            at += found[-1].nbytes
        return found

    def record(self, vectors: Sequence[Vector]) -> None:
        """Append the result of a pass."""
        heads = [_VECTOR.pack(v.dtype.str.encode(), v.size) for v in vectors]
        count = struct.pack("<Q", len(vectors))
        self._append(_PASS, b"".join([count, *heads, *(v.tobytes() for v in vectors)]))

    def _record(self, kind: bytes) -> bytes | None:
        if self._next == len(self._known):
            return None
        known, place, length = self._known[self._next]
        if known != kind:
            raise BadInput(
                f"The checkpoint {self.path} was written by another computation; remove it, or give another path."
            )
        self._next += 1
        self._file.seek(place)
        return self._file.read(length)

    def _append(self, kind: bytes, payload: bytes) -> None:
        end = self._file.seek(0, os.SEEK_END)
        checksum = _checksum(kind, payload, self._checksum)
        try:
            self._file.write(_HEAD.pack(kind, len(payload), checksum) + payload)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            self._give_up(end)
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise Refused(
                    f"There is no room for the checkpoint {self.path} ({error.strerror}). The first {self.passes} "
                    "passes are kept in it: make room and fit again to continue from there."
                ) from error
            raise
        self._checksum = checksum
        self._known.append((kind, end + _HEAD.size, len(payload)))
        self._next = len(self._known)

    def _give_up(self, end: int) -> None:
        """Truncate a record that could not be written completely; a reader would drop it anyway."""
        descriptor = os.dup(self._file.fileno())
        try:
            self._file.close()  # fails if its buffer cannot be flushed either
        except OSError:
            pass
        os.ftruncate(descriptor, end)
        os.close(descriptor)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _checksum(kind: bytes, payload: bytes, before: int) -> int:
    return zlib.crc32(payload, zlib.crc32(kind, before))


_CURRENT: ContextVar[Journal | None] = ContextVar("linsep_checkpoint", default=None)


def current() -> Journal | None:
    """Return the journal of the enclosing ``with checkpoint(...)`` block, or None."""
    return _CURRENT.get()


@contextmanager
def checkpoint(path: str | os.PathLike[str], *, resume: bool = True) -> Iterator[None]:
    """Store the state of fits from disk or on a cluster in a file, and resume from it after a crash.

    ::

        with linsep.checkpoint("run.checkpoint"):
            model = LogisticRegression().fit(linsep.scan("data/*.parquet", target="y", cache="cache"))
            linsep.save(model, "model.linsep")

    The result of each pass over the rows is appended to the file before the next one begins. If the process is killed,
    run the same program again: it skips the passes in the file, and the model is bit-identical to an uninterrupted fit.
    When the block ends without an error, the file is removed. A file of another fit (other data, parameters or
    version) raises an error. Rows on a cluster are identified by the checksums of their partitions. Fits of rows in
    memory are not recorded and start again; rows in files or on a cluster stay there if they take more than 12 MB.

    Parameters
    ----------
    path : path
        Checkpoint file.
    resume : bool
        False: start again and overwrite the file.

    Returns
    -------
    context manager
        Fits inside the block are recorded, and resumed if the file contains them.

    Raises
    ------
    BadInput
        If the file belongs to another fit, or cannot be opened.

    See Also
    --------
    scan : Files larger than memory.

    Examples
    --------
    >>> import numpy as np, tempfile, os
    >>> from linsep import LogisticRegression, checkpoint, scan
    >>> folder = tempfile.mkdtemp()
    >>> np.save(os.path.join(folder, "X.npy"), np.array([[0.0], [1.0], [2.0], [3.0]]))
    >>> with checkpoint(os.path.join(folder, "state")):
    ...     model = LogisticRegression().fit(scan(os.path.join(folder, "X.npy"), target=[0, 1, 0, 1]))
    >>> os.listdir(folder)
    ['X.npy']
    """
    if _CURRENT.get() is not None:
        raise BadInput("A checkpoint is in use already: blocks of checkpoint cannot be nested.")
    journal = Journal(Path(path), resume)
    token = _CURRENT.set(journal)
    try:
        yield
    except BaseException:
        journal.close()
        raise
    else:
        journal.close()
        Path(path).unlink(missing_ok=True)
    finally:
        _CURRENT.reset(token)


def fingerprint(facts: Any, arrays: Sequence[npt.NDArray[Any] | None]) -> bytes:
    """Return a SHA-256 digest of the facts and vectors that determine a fit."""
    import hashlib  # noqa: PLC0415

    digest = hashlib.sha256(repr(facts).encode())
    for array in arrays:
        digest.update(b"-" if array is None else np.ascontiguousarray(array).data)
    return digest.digest()
