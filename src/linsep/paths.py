"""Check paths given by callers, and write files atomically."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from typing import IO

from linsep.arguments import is_path
from linsep.errors import BadInput


def check_path(path: str | os.PathLike[str], name: str = "a path") -> str:
    """Return the path as a string if it is a valid path; error messages call it ``name``."""
    if not is_path(path):
        raise BadInput(
            f"{name} must be a string or a pathlib.Path, got {path!r:.80} ({type(path).__name__})."
        )
    text = os.fsdecode(path)
    if "\0" in text:
        raise BadInput(f"the path {text!r} holds a NUL character, which no file name can hold.")
    return text


def existing(path: str | os.PathLike[str]) -> str:
    """Return the path as a string if it exists; the error names the folder a relative path refers to."""
    text = check_path(path)
    if not os.path.exists(text):
        raise FileNotFoundError(errno.ENOENT, no_such_file(text), text)
    return text


def no_such_file(path: str) -> str:
    """Return the message for a missing file, with the current folder if the path is relative."""
    return "no such file" + ("" if os.path.isabs(path) else f" (relative to {os.getcwd()})")


def check_folder(path: str | os.PathLike[str]) -> str:
    """The path with its links followed, if a file can be created there; the error names the folder."""
    target = os.path.realpath(check_path(path))
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "no such folder; create it first", folder)
    if not _is_stream(target) and not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, "no permission to write into this folder", folder)
    if os.path.isdir(target):
        raise IsADirectoryError(errno.EISDIR, "is a folder; give the name of a file", target)
    return target


@contextlib.contextmanager
def replace_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a stream whose bytes replace the file at ``path`` once all of them are on disk.

    On any failure, including a full disk, the old file stays unchanged and no temporary file remains.
    A device or a pipe is written directly.
    """
    target = check_folder(path)
    if _is_stream(target):
        with open(target, "wb") as stream:
            yield stream
        return
    folder, name = os.path.split(target)
    part = os.path.join(folder, f".{name}.{secrets.token_hex(6)}")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(part, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise
    _sync_folder(folder)


def write_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Replace the file at ``path`` by these bytes atomically."""
    with replace_file(path) as stream:
        stream.write(data)


def _is_stream(target: str) -> bool:
    try:
        mode = os.stat(target).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _sync_folder(folder: str) -> None:
    with contextlib.suppress(OSError):  # some file systems do not allow opening a folder
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
