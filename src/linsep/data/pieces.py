"""Files that are read by byte ranges, with an error if bytes are missing and a checksum for every piece of the cache.

Bytes are copied from the page cache instead of memory-mapped: a file that is truncated during a fit then raises an
error, where a map would kill the process. The copy of a block is still in the CPU cache when a kernel reads it.
"""

from __future__ import annotations

import os
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.errors import BadInput

Bytes = npt.NDArray[np.uint8]


class Scratch:
    """Reusable buffers, so that reading blocks does not allocate memory each time."""

    def __init__(self) -> None:
        self._buffers: dict[int, Bytes] = {}

    def of(self, size: int, slot: int = 0) -> Bytes:
        """Return a buffer of ``size`` bytes, which overwrites the previous one of this slot."""
        buffer = self._buffers.get(slot)
        if buffer is None or len(buffer) < size:
            buffer = self._buffers[slot] = np.empty(size, np.uint8)
        return buffer[:size]


class PieceFile:
    """``size`` bytes of a file, starting at byte ``skip``.

    ``sums`` are the checksums (CRC-32) of its pieces of ``piece`` bytes. A piece is verified when it is first read, and
    again if the file has been written to since. A file without checksums belongs to the user: a change of its size or
    time of writing raises an error.
    """

    def __init__(
        self, path: str, size: int, skip: int = 0, piece: int = 0, sums: list[int] | None = None
    ) -> None:
        self.path, self.size, self._skip, self._piece, self._sums = path, size, skip, piece, sums
        self._file = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        if hasattr(os, "posix_fadvise"):  # doubles the read-ahead of the operating system
            os.posix_fadvise(self._file, 0, 0, os.POSIX_FADV_SEQUENTIAL)
        self._state = self._look()
        self._good = bytearray(0 if sums is None else len(sums))  # 1: the piece has been verified

    def _look(self) -> tuple[int, int, int]:
        found = os.stat(self.path)
        return found.st_size, found.st_mtime_ns, found.st_ctime_ns

    def fingerprint(self) -> list[Any]:
        """Return facts that identify the content: checksums, or path, size and times of the file."""
        if self._sums is not None:
            return [self.size, *self._sums]
        return [os.path.abspath(self.path), *self._state]

    def refuse_change(self) -> None:
        """Raise if the file has changed since it was opened; with checksums, verify its pieces again instead."""
        try:
            now = self._look()
        except OSError as error:
            raise BadInput(
                f"{self.path} cannot be read any more ({error.strerror}); put it back, or scan again."
            ) from error
        if now == self._state:
            return
        if self._sums is None:
            raise BadInput(
                f"{self.path} has changed since it was scanned; scan it again: a fit needs the same "
                "rows in every pass."
            )
        self._state, self._good = now, bytearray(len(self._sums))

    def read(self, start: int, stop: int, scratch: Scratch | None = None, slot: int = 0) -> Bytes:
        """Return bytes start .. stop, in a buffer of ``scratch`` if it is given."""
        low, high = start, stop
        unchecked = (
            self._sums is not None
            and 0 in self._good[start // self._piece : -(-stop // self._piece)]
        )
        if unchecked:
            low = start // self._piece * self._piece
            high = min(self.size, -(-stop // self._piece) * self._piece)
        size = high - low
        buffer = np.empty(size, np.uint8) if scratch is None else scratch.of(size, slot)
        self._fill(buffer, low)
        if unchecked:
            self._check(buffer, low)
        return buffer[start - low : stop - low]

    def _fill(self, buffer: Bytes, at: int) -> None:
        view = buffer.data
        while view:
            got = os.preadv(self._file, [view], self._skip + at)
            if got == 0:
                raise BadInput(
                    f"{self.path} ends at byte {self._skip + at}, before all rows were read: it was cut "
                    "short. Write it again, or remove the cache, and scan again."
                )
            view, at = view[got:], at + got

    def _check(self, buffer: Bytes, low: int) -> None:
        assert self._sums is not None
        for first in range(0, len(buffer), self._piece):
            number = (low + first) // self._piece
            if self._good[number]:
                continue
            if zlib.crc32(buffer[first : first + self._piece].data) != self._sums[number]:
                raise BadInput(
                    f"{self.path} is damaged: piece {number} of the cache does not have the checksum it was "
                    "written with. Remove the cache (its .remove(), or delete the directory) and scan again."
                )
            self._good[number] = 1

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class PieceWriter:
    """Writer of a file that computes the checksums of its pieces."""

    def __init__(self, path: str, piece: int) -> None:
        self.path, self.piece = path, piece
        self.size = 0
        self.sums: list[int] = []
        self._open_sum, self._filled = 0, 0
        self._file = open(path, "xb")

    def write(self, values: npt.NDArray[Any]) -> None:
        """Append the bytes of an array."""
        view = np.ascontiguousarray(values).reshape(-1).view(np.uint8).data
        self._file.write(view)
        self.size += len(view)
        while view:
            part = view[: self.piece - self._filled]
            self._open_sum = zlib.crc32(part, self._open_sum)
            self._filled += len(part)
            if self._filled == self.piece:
                self._end_piece()
            view = view[len(part) :]

    def _end_piece(self) -> None:
        self.sums.append(self._open_sum)
        self._open_sum = self._filled = 0

    def finish(self) -> dict[str, Any]:
        """Flush the file to disk, close it, and return the facts that ``PieceFile`` needs to read it."""
        if self._filled:
            self._end_piece()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return {"size": self.size, "piece": self.piece, "sums": self.sums}

    def close(self) -> None:
        """Close the file without finishing it."""
        self._file.close()
