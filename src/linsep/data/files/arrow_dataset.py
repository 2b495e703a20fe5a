"""Reader of ``pyarrow.dataset.Dataset`` objects, which combine many files, partitions and a filter.

``dataset.filter(expression)`` skips files and row groups in which no row can match.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

from linsep.data.files.columnar import (
    ColumnSettings,
    Records,
    explained_arrow,
    kinds_of,
    rows_of_batch,
)
from linsep.data.files.datafile import DataFile

DATASET = "dataset"  #: the format


def is_dataset(source: object) -> bool:
    """Return whether a source is a ``pyarrow.dataset.Dataset``."""
    return hasattr(source, "get_fragments") and hasattr(source, "to_batches")


@dataclass(frozen=True)
class DatasetFile(DataFile):
    """A pyarrow dataset that is read like one file."""

    dataset: Any = field(default=None, repr=False, compare=False)

    format: ClassVar[str | None] = DATASET

    @classmethod
    def of(cls, dataset: Any) -> DatasetFile:
        """Wrap a dataset, named after its files."""
        files = list(getattr(dataset, "files", ()))
        more = f" and {len(files) - 1:,} more files" if len(files) > 1 else ""
        name = f"{files[0]}{more}" if files else f"<{type(dataset).__name__}>"
        return cls("", name, dataset=dataset)

    @property
    def size(self) -> int | None:
        """None: the size is unknown."""
        return None

    def state(self) -> list[Any] | None:
        """Return files with size and time, schema and filter, which identify the content; None if in memory."""
        options = getattr(self.dataset, "_scan_options", None)
        paths, system = (getattr(self.dataset, fact, None) for fact in ("files", "filesystem"))
        if not paths or system is None or options is None:
            return None
        found = system.get_file_info(list(paths))
        if any(one.mtime_ns is None or one.size is None for one in found):
            return None
        facts = [[one.path, one.size, one.mtime_ns] for one in found]
        cut = type(getattr(self.dataset, "partitioning", None)).__name__
        return [system.type_name, facts, cut, str(self.dataset.schema), str(options)]


@contextmanager
def dataset_records(file: DataFile, settings: ColumnSettings, entries: int) -> Iterator[Records]:
    """Open a dataset as records, with about ``entries`` numbers per batch."""
    dataset, name = file.dataset, str(file)  # type: ignore[attr-defined]
    with explained_arrow(name):
        settings.check(dataset.schema.names, name)
        kinds = kinds_of(dataset.schema, settings, name)
        wanted = [c for c in dataset.schema.names if c in kinds or c == settings.target]
        batches = dataset.to_batches(
            columns=wanted,
            batch_size=rows_of_batch(entries, len(wanted)),
            batch_readahead=1,
            fragment_readahead=1,
        )
        yield Records(batches, kinds, name, settings.types)
