"""Detection of file formats and the settings for reading them, shared by tables in memory and scans of any size."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, field, replace
from pathlib import PurePath
from typing import Any

from linsep.arguments import words
from linsep.data.files.arrow_dataset import DATASET, dataset_records
from linsep.data.files.columnar import ColumnSettings, Records, columnar_records
from linsep.data.files.datafile import DataFile
from linsep.data.files.delimited import Dialect, delimited_records
from linsep.data.files.inference import MISSING
from linsep.data.files.source import opened, refuse
from linsep.errors import BadInput

_FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".svm": "libsvm",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
    ".npz": "npz",
}
FORMATS = tuple(dict.fromkeys(_FORMATS.values()))
MATRICES = ("libsvm", "npz", "npy")  #: formats whose columns have no names
#: Column types that a caller may set.
TYPES = ("number", "boolean", "category", "hashed", "text", "time", "drop")
COMPRESSED = (".gz", ".bz2", ".xz")
_LIBSVM_LINE = re.compile(rb"\s*[-+.\deE]+(\s+qid:\d+)?(\s+\d+:[-+.\deE]+)+\s*(#.*)?")


@dataclass(frozen=True)
class Reading:
    """Settings for reading files: format, types of columns, columns to ignore, and the dialect of text."""

    format: str | None = None
    types: dict[str, str] = field(default_factory=dict)
    ignore: tuple[str | int, ...] = ()
    dialect: Dialect = field(default_factory=Dialect)
    unlabelled: str = "error"  #: "drop" leaves out rows of a table without a target
    needs_target: bool = False  #: a table with column names is refused if no target is named

    @classmethod
    def of(
        cls,
        format: str | None = None,
        types: Mapping[str, str] | None = None,
        ignore: Iterable[str | int] = (),
        missing: Iterable[str] = MISSING,
        unlabelled: str = "error",
        **dialect: object,
    ) -> Reading:
        """Construct the settings from arguments of the caller, which are checked."""
        if not isinstance(unlabelled, str) or unlabelled not in ("error", "drop"):
            raise BadInput(f"unlabelled must be 'error' or 'drop', got {unlabelled!r:.80}.")
        if format is not None and (not isinstance(format, str) or format not in FORMATS):
            raise BadInput(f"format must be one of {', '.join(FORMATS)}, got {format!r:.80}.")
        absent = frozenset(map(str, words("missing", missing, "words"))) | {""}
        how = Dialect(missing=absent, **dialect)  # type: ignore[arg-type]
        how.check()
        left_out = tuple(words("ignore", ignore, "columns"))
        return cls(format, check_types({} if types is None else types), left_out, how, unlabelled)

    def meaning(self, target: str | None) -> dict[str, Any]:
        """Return the target and the settings that decide what a cell of text means, as JSON values.

        They are arguments of ``read_table``. Delimiter, header, quote and encoding are not among them: they may differ
        between files of one kind, and a wrong one seldom goes unnoticed.
        """
        return {
            "target": target,
            "decimal": self.dialect.decimal,
            "thousands": self.dialect.thousands,
            "missing": sorted(self.dialect.missing),
        }

    def settings(self) -> list[object]:
        """Return all settings as JSON values in a fixed order, for the name of a cache."""
        dialect = astuple(replace(self.dialect, missing=frozenset()))
        words = sorted(self.dialect.missing)
        return [self.format, sorted(self.types.items()), list(self.ignore), words, *dialect[:-1]]


def check_types(types: Mapping[str, str]) -> dict[str, str]:
    """Return the types as a dict; raise unless every one is in ``TYPES``."""
    if not isinstance(types, Mapping):
        raise BadInput(f"types must be a dict {{column: type}}, got {types!r:.80}.")
    for column, kind in types.items():
        if not isinstance(kind, str) or kind not in TYPES:
            raise BadInput(f"types[{column!r}] must be one of {', '.join(TYPES)}, got {kind!r}.")
    return dict(types)


def format_of(file: DataFile, asked: str | None = None) -> str:
    """Return the format of a file: as given, or inferred from its first bytes, its name, or its first line."""
    asked = file.format or asked
    if asked is not None:
        return asked
    head = file.head(8)
    marks = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\x93NUMPY": "npy"}
    known = next((kind for mark, kind in marks.items() if head.startswith(mark)), None)
    suffixes = [suffix for suffix in PurePath(str(file)).suffixes[-2:] if suffix not in COMPRESSED]
    known = known or _FORMATS.get(suffixes[-1].lower() if suffixes else "")
    if known is not None:
        return known
    if head[:4] == b"PK\x03\x04":
        return "npz"
    with opened(file) as text:
        first = next((line for line in text if line.strip() and not line.startswith(b"#")), b"")
    return "libsvm" if _LIBSVM_LINE.fullmatch(first.rstrip()) else "csv"


@contextlib.contextmanager
def open_records(
    file: DataFile, kind: str, target: str | None, how: Reading, entries: int = 1 << 24
) -> Iterator[Records]:
    """Open a file with named columns as records, with about ``entries`` numbers per batch."""
    settings = ColumnSettings(target, frozenset(map(str, how.ignore)), how.types, how.needs_target)
    if kind in MATRICES:
        refuse(str(file), f"a {kind} file has no column names.")
    if kind in ("parquet", "arrow", DATASET):
        opener = dataset_records if kind == DATASET else columnar_records
        with opener(file, settings, entries) as records:
            yield records
    else:
        yield delimited_records(file, how.dialect.of_format(kind), settings, entries)
