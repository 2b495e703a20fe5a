r"""Binary layout of a model file: a header, a JSON manifest, raw arrays. docs/model-format.md is the specification.

::

    offset 0    8 bytes   LINSEP\r\n
           8    8 bytes   length M of the manifest, unsigned, little-endian
          16   32 bytes   SHA-256 of the manifest
          48    M bytes   the manifest, JSON in UTF-8
                zeros up to the next multiple of 64
                the arrays, each followed by zeros up to the next multiple of 64

Every value is validated before it is used, and no memory is allocated for data that the file does not contain.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
import struct
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from linsep.errors import BadModelFile
from linsep.paths import existing

MAGIC = b"LINSEP\r\n"
FORMAT = 2  #: latest format; files without pipeline steps are written in format 1
ALIGN = 64
_HEADER = struct.Struct("<8sQ32s")
_DTYPES = ("<f8", "<f4", "<i8", "<i4", "|b1")
_ENTRY = {"dtype", "shape", "offset", "sha256"}
MOST_DIMENSIONS = 5

Arrays = list[npt.NDArray[Any]]


def pack(manifest: dict[str, Any], arrays: Arrays) -> bytes:
    """Return the content of a model file as bytes."""
    return b"".join(pieces(manifest, arrays))


def pieces(manifest: dict[str, Any], arrays: Arrays) -> list[bytes | memoryview]:
    """Return the content of a model file in pieces, without copying the arrays; adds them to the manifest."""
    entries: list[dict[str, Any]] = []
    raws: list[bytes | memoryview] = []
    offset = 0
    for array in arrays:
        raw = array.reshape(-1).view(np.uint8).data
        entries.append(
            {
                "dtype": array.dtype.str,
                "shape": list(array.shape),
                "offset": offset,
                "sha256": hashlib.sha256(raw).hexdigest(),
            }
        )
        raws += raw, bytes(-len(raw) % ALIGN)
        offset += len(raw) + len(raws[-1])
    text = json.dumps(
        {"format": FORMAT if "steps" in manifest else 1, **manifest, "arrays": entries},
        allow_nan=False,
        ensure_ascii=False,
        separators=(",", ":"),
        sort_keys=True,
    ).encode()
    head = _HEADER.pack(MAGIC, len(text), hashlib.sha256(text).digest()) + text
    return [head, bytes(-len(head) % ALIGN), *raws]


def unpack(data: bytes, name: str) -> tuple[dict[str, Any], Arrays]:
    """Return the manifest and the arrays; raise unless every byte of the file is valid."""
    if len(data) < _HEADER.size or not data.startswith(MAGIC):
        _refuse(name, "it does not start like a linsep model file" + _guess(data))
    _, length, digest = _HEADER.unpack_from(data)
    if length > len(data) - _HEADER.size:
        _refuse(name, f"the manifest should have {length} bytes, but the file is too short")
    text = data[_HEADER.size : _HEADER.size + length]
    if hashlib.sha256(text).digest() != digest:
        _refuse(name, "the checksum of the manifest is wrong")
    manifest = _parse(text, name)
    _check_format(manifest, name)
    begin = _HEADER.size + length
    start = begin + -begin % ALIGN
    if any(data[begin:start]) or len(data) < start:
        _refuse(name, "the padding after the manifest is not zero")
    return manifest, _arrays(manifest.pop("arrays"), data, start, name)


def read(path: str | os.PathLike[str]) -> bytes:
    """Read all bytes of a file; raise if it is not a regular file."""
    with open(existing(path), "rb", opener=_open_without_waiting) as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            _refuse(os.fspath(path), "it is not a regular file")
        return stream.read()


def is_model_file(path: str | os.PathLike[str]) -> bool:
    """Whether a regular file starts like a model file."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as stream:
        return stream.read(len(MAGIC)) == MAGIC


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # opening a pipe would block


def _refuse(name: str, problem: str) -> NoReturn:
    raise BadModelFile(
        f"{name} is not a valid model file: {problem}. Get the file again, or save the model again."
    )


def _guess(data: bytes) -> str:
    if not data:
        return " (it is empty)"
    if data[:1] == b"\x80":
        return " (it looks like a pickle, which linsep never opens: a pickle can run any code)"
    if data.startswith(b"PK"):
        return " (it looks like a zip archive)"
    if data.startswith(MAGIC[:6]):
        return " (its line ends were changed: copy it as binary)"
    return ""


def _parse(text: bytes, name: str) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a key occurs twice")
        return found

    def no_constant(word: str) -> NoReturn:
        raise ValueError(f"{word} is not JSON")

    try:
        manifest = json.loads(text.decode(), object_pairs_hook=once, parse_constant=no_constant)
    except (ValueError, RecursionError) as error:
        _refuse(name, f"the manifest cannot be read ({error!s:.80})")
    if not isinstance(manifest, dict):
        _refuse(name, "the manifest is not an object")
    return manifest


def _check_format(manifest: dict[str, Any], name: str) -> None:
    number = manifest.pop("format", None)
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        _refuse(name, f"its format number is {number!r:.40}")
    if number > FORMAT:
        raise BadModelFile(
            f"{name} has format {number}, but this linsep reads formats up to {FORMAT}; it was "
            f"written by linsep {manifest.get('linsep')!r:.40}: install a newer linsep."
        )
    if not isinstance(manifest.get("arrays"), list):
        _refuse(name, "it has no list of arrays")


def _arrays(entries: list[Any], data: bytes, start: int, name: str) -> Arrays:
    arrays: Arrays = []
    at = start
    for number, entry in enumerate(entries):
        dtype, shape = _describe(entry, number, name)
        if entry["offset"] != at - start:
            _refuse(name, f"array {number} is not where the one before it ends")
        size = math.prod(shape) * dtype.itemsize
        if size > len(data) - at:
            _refuse(name, f"array {number} should have {size} bytes, but the file is too short")
        raw = data[at : at + size]
        if hashlib.sha256(raw).hexdigest() != entry["sha256"]:
            _refuse(name, f"the checksum of array {number} is wrong")
        after = at + size + -size % ALIGN
        if len(data) < after or any(data[at + size : after]):
            _refuse(name, f"the padding after array {number} is not zero")
        native = np.frombuffer(raw, dtype).reshape(shape)
        arrays.append(native.astype(dtype.newbyteorder("="), copy=True))
        at = after
    if at != len(data):
        _refuse(name, f"{len(data) - at} bytes are left over at its end")
    return arrays


def _describe(entry: Any, number: int, name: str) -> tuple[np.dtype[Any], list[int]]:
    if not isinstance(entry, dict) or set(entry) != _ENTRY:
        _refuse(
            name, f"array {number} must have the keys {', '.join(sorted(_ENTRY))}, and no others"
        )
    if entry["dtype"] not in _DTYPES:
        _refuse(name, f"array {number} has dtype {entry['dtype']!r:.40}, not one of {_DTYPES}")
    shape = entry["shape"]
    if (
        not isinstance(shape, list)
        or len(shape) > MOST_DIMENSIONS
        or not all(type(length) is int and 0 <= length < 2**48 for length in shape)
    ):
        _refuse(name, f"array {number} has shape {shape!r:.60}")
    if type(entry["offset"]) is not int or not isinstance(entry["sha256"], str):
        _refuse(name, f"array {number} has no valid offset or checksum")
    return np.dtype(entry["dtype"]), shape
