"""Parser of LIBSVM (SVMlight) text into CSR matrices, in chunks and in parallel, with the position of every error."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from linsep import _kernels
from linsep.arguments import count, is_whole, one_of, threads
from linsep.arrays import FloatArray, IntArray
from linsep.data.files.datafile import DataFile
from linsep.data.files.listing import list_files
from linsep.data.files.source import UTF8_MARK, Source, name_of, opened, refuse
from linsep.data.threads import default_threads
from linsep.errors import BadInput
from linsep.interrupts import Workers

_CHUNK = 1 << 22  # bytes read together
_INT32 = np.iinfo(np.int32).max
_SHOWN = 40  # characters of a faulty token in a message


class LibsvmData(NamedTuple):
    """Contents of a LIBSVM file."""

    X: Any  #: CSR array (n, d)
    y: FloatArray  #: labels (n,)
    qid: IntArray | None  #: query numbers (n,), if every row has one
    zero_based: bool  #: whether index 0 is the first column; otherwise index 1 is


def read_libsvm(
    source: Source,
    *,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    dtype: npt.DTypeLike = np.float64,
    max_features: int = 2**31,
    n_threads: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> LibsvmData:
    r"""Read a LIBSVM file: lines ``label [qid:n] index:value index:value``, comments after ``#``.

    Blank lines, comments, Unix and Windows line ends, a UTF-8 byte order mark and indices in any order are
    accepted. Numbers are rounded correctly.

    Parameters
    ----------
    source : path, URL, "-" for standard input, or binary stream
        File to read; may be compressed with gzip, bzip2 or xz.
    n_features : int, optional
        Number of columns; by default the largest index. A larger index is an error.
    zero_based : bool or "auto"
        Whether index 0 is the first column. "auto": if index 0 occurs.
    dtype : float64 or float32
        Type of the values.
    max_features : int
        Larger indices raise an error, because they are usually mistakes.
    n_threads : int, optional
        Number of threads that parse; all processors by default.
    storage_options : dict, optional
        Options of the file system of a URL, as :func:`~linsep.scan` takes them.

    Returns
    -------
    LibsvmData
        ``X`` (CSR array with int32 indices where they suffice), ``y``, ``qid``, ``zero_based``.

    Raises
    ------
    BadFile
        If a line is malformed: above all an index that occurs twice in a row, NaN, infinity, or a number too large
        for ``dtype``. The message names file, line and column.
    BadInput
        If ``source`` names several files, or an argument is not usable.

    See Also
    --------
    read_table : Tables with text and missing values; also reads LIBSVM files.
    scan : LIBSVM files larger than memory.

    Examples
    --------
    >>> import io
    >>> from linsep import read_libsvm
    >>> X, y, qid, zero_based = read_libsvm(io.BytesIO(b"+1 1:0.5 3:2\n-1 2:1\n"))
    >>> X.toarray()
    array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]])
    """
    files = list_files(source, storage_options)
    if len(files) > 1:
        raise BadInput(
            f"{source!r} names {len(files)} files; read one, or give them to linsep.scan."
        )
    source = files[0]
    return read_rows(
        source, name_of(source), n_features, zero_based, dtype, max_features, n_threads
    )


def _is_float(given: Any) -> bool:
    try:
        return np.dtype(given) in (np.float64, np.float32)
    except Exception:  # NumPy's parser of type names may raise many kinds of errors
        return False


def read_rows(
    source: Source,
    path: str,
    n_features: int | None,
    zero_based: bool | str,
    dtype: npt.DTypeLike = np.float64,
    max_features: int = 2**31,
    n_threads: int | None = None,
) -> LibsvmData:
    """Read a LIBSVM file, called ``path`` in messages."""
    one_of("zero_based", zero_based, (True, False, "auto"))
    if not _is_float(dtype):
        raise BadInput(f"dtype must be float64 or float32, got {dtype!r:.80}.")
    if not (n_features is None or is_whole(n_features, 1, 2**63 - 1)):
        raise BadInput(
            f"n_features must be a whole number from 1 to 2**63 - 1, or None, got {n_features!r:.80}."
        )
    count("max_features", max_features, "columns")
    n_threads = threads(n_threads)
    parse = _Parser(path, np.dtype(dtype), max_features, zero_based)
    parts = list(_parse(source, parse, n_threads or default_threads()))
    n = sum(len(part.y) for part in parts)
    _refuse_some_queries(path, sum(part.n_qid for part in parts), n)
    lowest = min(part.lowest for part in parts)
    highest = max(part.highest for part in parts)
    first = 0 if (lowest == 0 if zero_based == "auto" else zero_based) else 1
    columns = max(highest + 1 - first, 0)
    if n_features is not None and columns > n_features:
        refuse(
            path,
            f"the largest index is {highest}, so there are {columns} columns, but {n_features} "
            "were expected.",
        )
    return _join(parts, n, n_features or columns, first)


def libsvm_batches(file: DataFile) -> Iterator[tuple[Any, FloatArray]]:
    """Yield rows (CSR, columns numbered as in the file) and labels, some megabytes at a time."""
    path = str(file)
    parse = _Parser(path, np.dtype(np.float64), _INT32, "auto")
    n = with_qid = 0
    for part in _parse(file, parse, default_threads()):
        n, with_qid = n + len(part.y), with_qid + part.n_qid
        if len(part.y):
            shape = len(part.y), part.highest + 1
            yield sp.csr_matrix((part.values, part.indices, part.starts), shape=shape), part.y
    _refuse_some_queries(path, with_qid, n)


def _refuse_some_queries(path: str, with_qid: int, n: int) -> None:
    if n == 0:
        refuse(path, "the file holds no rows; each line needs a label and index:value pairs.")
    if 0 < with_qid < n:
        refuse(path, f"{with_qid} of {n} rows have a qid; give one to every row, or to none.")


@dataclass(frozen=True)
class _Part:
    """Parsed rows of a chunk, with indices as in the file."""

    y: FloatArray
    qid: IntArray
    starts: IntArray
    indices: npt.NDArray[Any]
    values: npt.NDArray[Any]
    n_qid: int
    lowest: int
    highest: int
    lines: int


class _FaultInChunk(Exception):
    """Error in a chunk; its arguments are path, problem, line in the chunk and column."""


@dataclass(frozen=True)
class _Parser:
    """Parser of chunks of whole lines; ``path`` is the name of the file in messages."""

    path: str
    dtype: np.dtype[Any]
    max_features: int
    zero_based: bool | str

    def __call__(self, chunk: bytes, kind: Any = np.int32) -> _Part:
        text = np.frombuffer(chunk, np.uint8)
        lines, colons = _kernels.libsvm_count(text)
        y = np.empty(lines + 1)
        qid, starts = np.empty(lines + 1, np.int64), np.empty(lines + 2, np.int64)
        indices, values = np.empty(colons, kind), np.empty(colons, self.dtype)
        limit = self.max_features - (self.zero_based is True)
        done = _kernels.libsvm_read(text, limit, y, qid, starts, indices, values)
        fault, at, detail, rows, entries, n_qid, lowest, highest = done
        if fault == _INDEX_WIDTH:
            return self(chunk, np.int64)
        if fault:
            self._refuse(chunk, fault, at, detail)
        if self.zero_based is False and lowest == 0:
            at = _find_index(chunk, 0, 1)
            self._complain(
                chunk,
                at,
                "index 0 in a file whose indices begin with 1; give zero_based=True, or correct "
                "it.",
            )
        if entries < colons:  # there were colons in comments or query numbers
            indices, values = indices[:entries].copy(), values[:entries].copy()
        return _Part(
            y[:rows], qid[:rows], starts[: rows + 1], indices, values, n_qid, lowest, highest, lines
        )

    def _refuse(self, chunk: bytes, fault: int, at: int, detail: int) -> NoReturn:
        if fault == _DUPLICATE:
            end = chunk.find(b"\n", at)
            row = chunk[at : end if end >= 0 else len(chunk)]
            at += _find_index(row, detail, 2)
        problem = _PROBLEMS[fault].format(
            token=_token(chunk, at), limit=self.max_features, dtype=self.dtype, index=detail
        )
        self._complain(chunk, at, problem)

    def _complain(self, chunk: bytes, at: int, problem: str) -> NoReturn:
        column = at - (chunk.rfind(b"\n", 0, at) + 1) + 1
        raise _FaultInChunk(self.path, problem, 1 + chunk.count(b"\n", 0, at), column)


# Kinds of fault, in the order of kernels/io/libsvm.hpp.
_PROBLEMS = (
    "",
    "the label {token} is not a number; a row is 'label index:value ...', and text labels must "
    "be replaced by numbers.",
    "the row begins with {token} and has no label; put one in front, for instance 0 if it is "
    "unknown.",
    "{token} are several labels; linsep learns one label per row: keep one, or make one file per "
    "label.",
    "the label {token} is NaN, infinite or too large; every row needs a finite label: leave the "
    "row out.",
    "{token} does not begin with a column index; write index:value with a whole number >= 0.",
    "the index of {token} is above the limit of {limit} columns; give a larger max_features if "
    "it is right.",
    "",
    "{token} has no value; write index:value, or leave it out for 0. The line may be cut short.",
    "the value {token} is not a number; write index:value without blanks around the colon. The "
    "line may be cut short.",
    "the value {token} is NaN, infinite or too large for {dtype}; leave the entry out or correct "
    "it.",
    "the index {index} occurs twice in this row; keep one of the two.",
    "{token} is not a query number; write qid:number directly behind the label.",
    "unexpected {token}; a row is 'label index:value ...', and a comment begins with #.",
    "a carriage return that ends no line; convert the line ends to \\n or \\r\\n.",
)
_INDEX_WIDTH, _DUPLICATE = 7, 11


def _token(chunk: bytes, at: int) -> str:
    rest = chunk[at : at + _SHOWN + 1].split(None, 1)
    token = rest[0] if rest and not chunk[at : at + 1].isspace() else b""
    shown = token[:_SHOWN].decode("utf-8", "backslashreplace")
    return repr(shown + ("..." if len(token) > _SHOWN else "")) if shown else "(nothing)"


def _find_index(text: bytes, index: int, occurrence: int) -> int:
    """Return the byte position of the first or second occurrence of an index, outside comments."""
    at = seen = 0
    for line in text.splitlines(keepends=True):
        place = 0
        for token in line.split(b"#", 1)[0].split():
            place = line.index(token, place)
            head = token.split(b":", 1)[0]
            if b":" in token and head.isdigit() and int(head) == index:
                seen += 1
                if seen == occurrence:
                    return at + place
            place += len(token)
        at += len(line)
    return 0


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    """Yield pieces of about _CHUNK bytes that end at line ends."""
    mark = UTF8_MARK
    while piece := stream.read(_CHUNK):
        piece += b"" if piece.endswith(b"\n") else stream.readline()
        yield piece.removeprefix(mark)
        mark = b""


def _parse(source: Source, parse: _Parser, n_threads: int) -> Iterator[_Part]:
    """Yield the parts in the order of the file, so that the first error in the file is the one reported."""
    line = 0
    with opened(source) as stream:
        for parsed in _each_parsed(_chunks(stream), parse, n_threads):
            part = _in_file(parsed, line)
            line += part.lines
            yield part


def _each_parsed(
    chunks: Iterator[bytes], parse: _Parser, n_threads: int
) -> Iterator[Callable[[], _Part]]:
    """Yield functions that return the parts, parsed by the caller if n_threads is 1 and otherwise ahead by a pool."""
    if n_threads == 1:
        yield from (partial(parse, chunk) for chunk in chunks)
        return
    with Workers(n_threads) as pool:
        waiting: deque[Future[_Part]] = deque()
        for chunk in chunks:
            waiting.append(pool.submit(parse, chunk))
            if len(waiting) > n_threads:
                yield waiting.popleft().result
        while waiting:
            yield waiting.popleft().result


def _in_file(parsed: Callable[[], _Part], lines_before: int) -> _Part:
    """Return the part, or raise its error with the line counted from the beginning of the file."""
    try:
        return parsed()
    except _FaultInChunk as fault:
        path, problem, line, column = fault.args
        place = lines_before + line
    refuse(path, problem, place, column)


def _join(parts: list[_Part], n: int, d: int, first: int) -> LibsvmData:
    """Concatenate the parts to one matrix; each part is freed after it is copied, to limit memory."""
    nnz = sum(len(part.values) for part in parts)
    wide = max(d, nnz) > _INT32
    indices = np.empty(nnz, np.int64 if wide else np.int32)
    values = np.empty(nnz, parts[0].values.dtype)
    starts = np.zeros(n + 1, indices.dtype)
    y = np.concatenate([part.y for part in parts])
    with_qid = any(part.n_qid for part in parts)
    qid = np.concatenate([part.qid for part in parts]) if with_qid else None
    row = at = 0
    parts.reverse()
    while parts:
        part = parts.pop()
        rows, entries = len(part.y), len(part.values)
        np.subtract(part.indices, first, out=indices[at : at + entries], casting="unsafe")
        values[at : at + entries] = part.values
        starts[row + 1 : row + rows + 1] = part.starts[1:] + at
        row, at = row + rows, at + entries
    X = sp.csr_array((values, indices, starts), shape=(n, d))
    X.has_sorted_indices = X.has_canonical_format = True
    return LibsvmData(X, y, qid, first == 0)
