"""``scan``: files larger than memory as input of ``fit`` and ``predict``."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.arguments import number
from linsep.arrays import IntArray
from linsep.data import cache as block_cache
from linsep.data.cluster.files import scan_on_cluster
from linsep.data.files.arrays import open_npy
from linsep.data.files.datafile import DataFile, unchanged
from linsep.data.files.formats import Reading
from linsep.data.files.inference import MISSING
from linsep.data.files.listing import list_files
from linsep.data.files.numeric import Column, NumericFiles, Wanted
from linsep.data.location import Location
from linsep.data.memory_rows import few_in_files
from linsep.data.pieces import PieceFile
from linsep.data.stored import DenseRows, StoredRows
from linsep.errors import BadInput
from linsep.paths import check_path


class Scan:
    """Rows on disk with target and weight, as returned by :func:`scan`; pass it to ``fit`` or ``predict``.

    Attributes
    ----------
    shape : tuple (n, d)
    y, weight : ndarray (n,) or None
        Target and weight, in memory.
    feature_names : ndarray of str or None
    reads : float
        Number of times that all rows have been read: bytes read divided by the bytes of all rows.
    cache : Path or None
        Directory of the decoded rows; None if the files are read in place.
    memory_limit : float or None
        Size in bytes up to which a fit reads the rows into memory; None means the default of :func:`scan`.
    """

    location = Location.DISK

    def __init__(
        self,
        rows: StoredRows,
        y: Any = None,
        weight: Any = None,
        names: Sequence[str] | npt.NDArray[Any] | None = None,
        cache: Path | None = None,
        memory_limit: float | None = None,
    ) -> None:
        self.rows, self.y, self.weight, self.cache = rows, y, weight, cache
        self.memory_limit = memory_limit
        self.feature_names = None if names is None else np.array(names, dtype=object)
        self._finalizer: Any = None

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and features, (n, d)."""
        return self.rows.shape

    @property
    def reads(self) -> float:
        """Bytes read so far divided by the bytes of all rows."""
        return self.rows.read_bytes / max(1, self.rows.nbytes)

    def given(self, y: Any, weight: Any, owner: str) -> tuple[Any, Any]:
        """Return target and weight: the scan's own, or the given ones; raise if there are both."""
        if y is not None and self.y is not None:
            raise BadInput(
                "The scan has a target already: pass it to scan(target=...) or to fit, not to both."
            )
        if weight is not None and self.weight is not None:
            raise BadInput(
                "The scan has weights already: pass them to scan(weight=...) or to fit, not to both."
            )
        if y is None and self.y is None:
            raise BadInput(
                f"{owner} needs a target and the scan has none: give scan(paths, target=...) the column, or y "
                "to fit."
            )
        return self.y if y is None else y, self.weight if weight is None else weight

    def few(self) -> bool:
        """Return whether the rows are few enough for a fit to read them into memory."""
        return few_in_files(self.rows.nbytes, self.memory_limit)

    def rows_to_fit(self) -> Any:
        """Return the rows as a fit uses them: read into memory if they are few enough, otherwise on disk."""
        if not self.few():
            return self.rows
        self.rows.refuse_change()
        return self.rows.load()

    def take(self, rows: IntArray) -> Scan:
        """Copy the given rows (ascending) to a temporary directory and return their scan, without target and weight."""
        cuts = np.searchsorted(rows, self.rows.edges)
        mine = (rows[a:b] for a, b in pairwise(cuts))
        parts = (
            block[some - here.start]
            for some, (here, block) in zip(mine, self.rows.blocks(), strict=True)
        )
        return stored_rows(parts, self.shape[1], memory_limit=self.memory_limit)

    def without_targets(self) -> Scan:
        """Return a scan of the same rows with their column names, without target and weight."""
        return Scan(self.rows, names=self.feature_names, memory_limit=self.memory_limit)

    def close(self) -> None:
        """Close the files. A temporary cache is removed; one in a directory of yours is kept."""
        self.rows.close()
        if self._finalizer is not None:
            self._finalizer()

    def remove(self) -> None:
        """Close the files and delete the cache directory, including one of yours."""
        self.close()
        if self.cache is not None:
            shutil.rmtree(self.cache, ignore_errors=True)

    def __enter__(self) -> Scan:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        n, d = self.shape
        kind = "sparse" if self.rows.sparse else "dense"
        return f"Scan({n:,} rows, {d:,} {kind} features, {self.rows.nbytes:,} bytes on disk)"


def scan(  # noqa: PLR0913
    paths: Any,
    *,
    target: Any = None,
    weight: Any = None,
    ignore: Iterable[str | int] = (),
    cache: str | os.PathLike[str] | None = None,
    cache_limit: float | None = None,
    memory_limit: float | None = None,
    client: Any = None,
    format: str | None = None,
    delimiter: str | None = None,
    header: bool = True,
    decimal: str = ".",
    thousands: str | None = None,
    quote: str | None = '"',
    encoding: str = "utf-8",
    missing: Iterable[str] = MISSING,
    storage_options: Mapping[str, Any] | None = None,
) -> Any:
    """Open files that may be larger than memory, for ``fit``, ``predict`` and ``verify``.

    Parameters
    ----------
    paths : str, path, list of them, or pyarrow.dataset.Dataset
        Files of one kind, patterns such as ``"part-*.parquet"``, or a directory, read in the order of
        their names: .npy and whatever :func:`~linsep.read_table` reads, compressed text too; or their URLs, such as
        ``"s3://bucket/table/"`` or ``"https://host/rows.csv.gz"`` (needs fsspec). Directories called ``column=value``
        (Hive partitions) stand for columns. A scan has no encoder: text and missing values among the features are
        refused.
    target, weight
        Column of that name (Parquet, Arrow, CSV), array of that name (.npz), number of a column (.npy); or
        an array with one entry per row. LIBSVM files contain their target.
    ignore : list
        Columns to leave out.
    cache : path, optional
        Directory for the decoded rows, reused next time if the files are unchanged, judged by size and time of writing,
        or by what a remote file system reports (ETag, checksum, time); if it reports none, they are read again. By
        default a temporary directory, removed when the scan is closed or no longer used. Float .npy files in C order
        are read in place, without a cache.
    cache_limit : float, optional
        Largest size of the cache in bytes.
    memory_limit : float, optional
        Largest size of the rows in bytes that ``fit``, ``tune`` and ``separate`` read into memory and treat as an
        array; more rows stay on disk and are read in every pass. By default 1 GiB, and at most a quarter of the free
        memory; 12 MB within ``checkpoint``, which records these passes. At any limit but 0, 12 MB of rows are read.
    client : dask.distributed.Client, optional
        The workers of this cluster read the files; each file is a partition that stays in a worker's memory.
        There is no cache then, and all workers must be able to open the paths.
    format, delimiter, header, decimal, thousands, quote, encoding, missing
        How the files are written, as in :func:`~linsep.read_table`, which reads them by the same rules.
    storage_options : dict, optional
        Options of the file system of a URL, as fsspec takes them: ``{"anon": True}`` for a public bucket, for instance.

    Returns
    -------
    Scan, or a ClusterScan if there is a client

    Raises
    ------
    BadFile
        If a file cannot be read, or holds text or missing values among the features; the message names file, row and
        column.

    See Also
    --------
    read_table : Read a file into memory, with text and missing values.
    checkpoint : Resume a fit after a crash.

    Examples
    --------
    >>> import numpy as np, tempfile, os
    >>> from linsep import LogisticRegression, scan
    >>> path = os.path.join(tempfile.mkdtemp(), "X.npy")
    >>> np.save(path, np.array([[0.0], [1.0], [2.0], [3.0]]))
    >>> with scan(path, target=np.array(["no", "no", "yes", "yes"])) as rows:
    ...     model = LogisticRegression().fit(rows)
    >>> model.predict([[0.5], [2.5]])
    array(['no', 'yes'], dtype='<U3')
    """
    files = _files(paths, storage_options)
    y, y_column = _array_or_column(target, "target")
    s, s_column = _array_or_column(weight, "weight")
    how = Reading.of(
        format=format,
        ignore=ignore,
        missing=missing,
        delimiter=delimiter,
        header=header,
        decimal=decimal,
        thousands=thousands,
        quote=quote,
        encoding=encoding,
    )
    cache = None if cache is None else check_path(cache, "cache")
    if cache_limit is not None and not number("cache_limit", cache_limit) > 0:
        raise BadInput(f"cache_limit must be a positive number of bytes, got {cache_limit!r}.")
    if memory_limit is not None and not number("memory_limit", memory_limit) >= 0:
        raise BadInput(f"memory_limit must be a number of bytes >= 0, got {memory_limit!r}.")
    wanted = Wanted(y_column, s_column, how)
    reader = NumericFiles(files, wanted)
    if client is not None:
        if (cache, cache_limit, memory_limit) != (None, None, None):
            raise BadInput(
                "cache, cache_limit and memory_limit are for rows on disk: a cluster keeps them in its memory, and "
                "its setting linsep.memory-limit says how many the client may fetch."
            )
        return scan_on_cluster(client, reader, y, s)
    in_place = _in_place(reader) if wanted.plain and cache is None else None
    found = Scan(in_place) if in_place is not None else _cache(reader, cache, cache_limit)
    found.memory_limit = memory_limit
    for name, vector in (("y", y), ("weight", s)):
        if vector is None:
            continue
        if len(vector) != found.shape[0]:
            what = "target" if name == "y" else name
            found.close()
            raise BadInput(
                f"The files hold {found.shape[0]} rows, the {what} has {len(vector)} entries; give one "
                "for each row."
            )
        setattr(found, name, vector)
    return found


def stored_rows(
    parts: Iterable[Any], width: int, cache: Path | None = None, memory_limit: float | None = None
) -> Scan:
    """Write rows that are given in parts, dense or CSR with ``width`` columns, to disk and return their scan.

    They are written to a temporary directory, removed when the scan is closed or no longer used, or to the directory
    ``cache``; if that is complete already, it is opened and the parts are not read. ``memory_limit`` is that of
    ``scan``.
    """
    home, name = (None, "rows") if cache is None else (cache.parent, cache.name)
    where = "set TMPDIR to a directory with more room" if cache is None else "clear some room there"
    found = _open_or_build(home, name, lambda writer: writer.add_all(parts), where, width=width)
    found.memory_limit = memory_limit
    return found


def _files(paths: Any, options: Mapping[str, Any] | None) -> list[DataFile]:
    """Return all files in order; raise if one does not exist or is not a path, URL or dataset."""
    try:
        files = list_files(paths, options)
    except IsADirectoryError:
        files = []
    for file in files:
        if not isinstance(file, DataFile):
            raise BadInput(
                f"scan takes paths, URLs and datasets of pyarrow, got {type(file).__name__}; read_table reads streams."
            )
        if type(file) is DataFile and not os.path.exists(file.path):
            raise BadInput(f"No file is called {file.path!r}, and none matches it as a pattern.")
    if not files:
        raise BadInput(f"There are no files in {paths!r}.")
    return files


def _array_or_column(given: Any, name: str) -> tuple[npt.NDArray[Any] | None, Column]:
    if given is None or isinstance(given, str):
        return None, given
    if isinstance(given, int | np.integer):
        return None, int(given)
    values = np.asarray(given)
    if values.ndim != 1:
        raise BadInput(
            f"{name} must be the name or number of a column or an array with one entry per row, got an "
            f"array of shape {values.shape}."
        )
    return values, None


def _in_place(reader: NumericFiles) -> StoredRows | None:
    """Return the rows of .npy files that the kernels can read without conversion, or None if some need it."""
    if reader.kind != "npy" or any(type(file) is not DataFile for file in reader.files):
        return None
    files, parts, heights, kinds = reader.files, [], [], set()
    for file in files:
        table = open_npy(file.path, str(file))
        plain = table.flags.c_contiguous and table.dtype in (np.float32, np.float64)
        if not plain or not table.dtype.isnative or not isinstance(table, np.memmap):
            return None
        kinds.add((table.shape[1], table.dtype))
        heights.append(table.shape[0])
        parts.append((file.path, table.nbytes, int(table.offset)))
    if len(kinds) > 1:
        shown = " and ".join(sorted(f"{d} columns of {dtype}" for d, dtype in kinds))
        raise BadInput(f"The files do not fit together: {shown}.")
    d, dtype = kinds.pop()
    if d == 0 or sum(heights) == 0:
        raise BadInput(f"{files[0]} holds no numbers: {sum(heights)} rows, {d} columns.")
    return DenseRows([PieceFile(*part) for part in parts], heights, d, dtype)


def _cache(reader: NumericFiles, cache: Any, limit: float | None) -> Scan:
    """Return the rows from the cache, which is built if it is missing or damaged.

    Files whose changes cannot be detected are read again each time, into a temporary directory.
    """
    wanted = reader.wanted
    name = block_cache.key(reader.files, [wanted.target, wanted.weight, *wanted.how.settings()])

    def fill(writer: block_cache.Writer) -> None:
        with unchanged(reader.files):
            for source, batch in reader:
                writer.add(batch, source)
        writer.finish(reader.target())

    home = None if cache is None or name is None else Path(cache)
    remedy = "give cache= a directory with more room; nothing was kept"
    return _open_or_build(home, name or "rows", fill, remedy, limit)


def _open_or_build(
    home: Path | None,
    name: str,
    fill: Callable[[block_cache.Writer], None],
    remedy: str,
    limit: float | None = None,
    width: int | None = None,
) -> Scan:
    """Return the rows in the directory ``name`` of ``home``; ``fill`` writes them if they are missing or damaged.

    Without ``home`` they are in a temporary directory, which is removed when the scan is closed or no longer used.
    """
    parent = Path(tempfile.mkdtemp(prefix="linsep-")) if home is None else home
    place = parent / name
    try:
        try:
            opened = block_cache.open_cache(place)
        except block_cache.Damaged:
            block_cache.build(place, fill, remedy, limit, width)
            opened = block_cache.reopen(place)
        if limit is not None and opened[0].nbytes > limit:
            raise BadInput(
                f"The cache {place} takes {opened[0].nbytes:,} bytes, and cache_limit is {limit:,.0f}."
            )
    except BaseException:
        if home is None:
            shutil.rmtree(parent, ignore_errors=True)
        raise
    found = Scan(*opened, cache=place)
    if home is None:
        found._finalizer = weakref.finalize(found, shutil.rmtree, parent, ignore_errors=True)
    return found
