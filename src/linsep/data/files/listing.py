"""Expansion of paths, patterns, directories and URLs to files, sorted by name.

Subdirectories called ``column=value`` (Hive partitions) define columns of the files in them.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

from linsep.data.files.arrow_dataset import DatasetFile, is_dataset
from linsep.data.files.datafile import DataFile
from linsep.data.files.inference import is_number
from linsep.data.files.remote import RemoteFile, explained, file_system, is_url, local_path, shown
from linsep.errors import BadInput
from linsep.paths import check_path

_MISSING = "__HIVE_DEFAULT_PARTITION__"
_DELTA = "_delta_log"
_PATTERN = "*?["


def list_files(source: Any, storage_options: Mapping[str, Any] | None = None) -> list[Any]:
    """Return the files of a source; streams and "-" are kept. A local path is listed even if it does not exist."""
    if storage_options is not None and not isinstance(storage_options, Mapping):
        raise BadInput(
            f"storage_options must be a dict of options of the file system, got {storage_options!r:.80}."
        )
    files = list(_files(source, dict(storage_options or {})))
    return _typed(files)


def _files(source: Any, options: dict[str, Any]) -> Iterator[Any]:
    if isinstance(source, list | tuple):
        for one in source:
            yield from _files(one, options)
    elif is_dataset(source):
        yield DatasetFile.of(source)
    elif isinstance(source, DataFile) or not isinstance(source, str | os.PathLike):
        yield source
    elif source == "-":
        yield source
    elif is_url(source) and local_path(str(source)) is None:
        yield from _remote(str(source), options)
    else:
        yield from _local(local_path(str(source)) or check_path(source))


def _local(path: str) -> Iterator[DataFile]:
    if os.path.isdir(path):
        found = list(_walk(_LocalDirectory(), path, ()))
        if not found:
            raise IsADirectoryError(f"{path} is a directory without files.")
        yield from found
        return
    matches = [] if os.path.exists(path) else sorted(glob.glob(path))
    for match in matches or [path]:
        yield DataFile(match, partition=_parts_below(path, match))


def _remote(url: str, options: dict[str, Any]) -> Iterator[DataFile]:
    fs, path = file_system(url, options)
    here = _RemoteDirectory(fs, url, options)
    with explained(shown(url)):
        fs.invalidate_cache()
        if not any(mark in path for mark in "*["):
            if url.endswith("/") or fs.info(path)["type"] == "directory":
                found = list(_walk(here, path, ()))
                if not found:
                    raise BadInput(f"{shown(url)} is a directory without files.")
                yield from found
            else:
                yield RemoteFile(url, shown(url), options=options)
            return
        matches = sorted(fs.glob(path))
        if not matches:
            raise BadInput(f"No file matches the pattern {shown(url)}.")
    for match in matches:
        yield replace(here.file(match), partition=_parts_below(path, match))


@dataclass(frozen=True)
class _LocalDirectory:
    def entries(self, path: str) -> Iterator[tuple[str, bool]]:
        """Yield the paths in a directory, and whether each is a directory."""
        with os.scandir(path) as found:
            for entry in found:
                if entry.is_dir() or entry.is_file():
                    yield entry.path, entry.is_dir()

    def file(self, path: str) -> DataFile:
        return DataFile(path)


@dataclass(frozen=True)
class _RemoteDirectory:
    fs: Any
    url: str
    options: dict[str, Any]

    def entries(self, path: str) -> Iterator[tuple[str, bool]]:
        """Yield the paths in a directory, and whether each is a directory."""
        for entry in self.fs.ls(path, detail=True):
            if entry["name"].rstrip("/") != path.rstrip("/"):
                yield entry["name"], entry["type"] == "directory"

    def file(self, path: str) -> DataFile:
        _, chained, rest = self.url.partition("::")
        url = self.fs.unstrip_protocol(path) + chained + rest
        return RemoteFile(url, shown(url), options=self.options)


def _walk(
    directory: _LocalDirectory | _RemoteDirectory, path: str, above: tuple[str, ...]
) -> Iterator[DataFile]:
    """Yield the files of a directory and, recursively, of its subdirectories called ``column=value``, by name."""
    found = {
        name.rstrip("/").rpartition("/")[2]: (name, sub) for name, sub in _named(directory, path)
    }
    if _DELTA in found:
        raise BadInput(
            f"{path} is a Delta Lake table, some of whose files may hold deleted rows. Give its current rows: "
            "scan(deltalake.DeltaTable(path).to_pyarrow_dataset(), ...)."
        )
    for base in sorted(found):
        name, is_directory = found[base]
        if base[:1] in (".", "_"):
            continue
        if not is_directory:
            yield replace(directory.file(name), partition=_partition(above))
        elif "=" in base:
            yield from _walk(directory, name, (*above, base))


def _named(directory: _LocalDirectory | _RemoteDirectory, path: str) -> Iterator[tuple[str, bool]]:
    for name, is_directory in directory.entries(path):
        yield name.replace(os.sep, "/"), is_directory


def _parts_below(pattern: str, match: str) -> Any:
    """Return the partition columns of a file that matches a pattern: its directories from the first wildcard on."""
    parts, steps = match.split("/")[:-1], pattern.split("/")
    first = next(
        (i for i, step in enumerate(steps) if any(m in step for m in _PATTERN)), len(steps)
    )
    return _partition(tuple(parts[first:]))


def _partition(directories: tuple[str, ...]) -> Any:
    """Return the columns that directories called ``column=value`` define, as text."""
    pairs = (one.partition("=") for one in directories if "=" in one)
    return tuple(
        (unquote(name), None if value == _MISSING else unquote(value), "string")
        for name, _, value in pairs
    )


def _typed(files: list[Any]) -> list[Any]:
    """Return the files with typed partition columns, numeric if all values are; raise if the columns differ."""
    known = [file for file in files if isinstance(file, DataFile)]
    columns = [tuple(name for name, *_ in file.partition) for file in known]
    if not any(columns):
        return files
    if len(set(columns)) > 1:
        one, other = (known[columns.index(names)] for names in list(dict.fromkeys(columns))[:2])
        raise BadInput(
            f"{one} and {other} are in directories with different columns: {_listed(one)} and {_listed(other)}. Give "
            "the directories of one table only."
        )
    kinds = [
        _arrow_type(values) for values in zip(*(file.partition for file in known), strict=True)
    ]
    return [
        replace(
            file,
            partition=tuple(
                (name, value, kind)
                for (name, value, _), kind in zip(file.partition, kinds, strict=True)
            ),
        )
        for file in known
    ]


def _listed(file: DataFile) -> str:
    return ", ".join(name for name, *_ in file.partition) or "none"


def _arrow_type(column: Iterable[tuple[str, str | None, str]]) -> str:
    """Return the arrow type of a partition column: "int64", "double" or "string"."""
    values = [value for _, value, _ in column if value is not None]
    if not values or not all(map(is_number, values)):
        return "string"
    whole = all(value.lstrip("+-").isdigit() and len(value) < 16 for value in values)
    return "int64" if whole else "double"
