"""``Encoder``: encode the columns of a table as a numeric matrix, with a schema that shows every decision."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from linsep.arguments import count, flag, is_whole, one_of, pair
from linsep.data import Location, Scan, location_of
from linsep.data.cluster import MappedRows, statistics_of
from linsep.data.files.columns import missing_name, printable
from linsep.data.files.formats import check_types
from linsep.data.scanning import stored_rows
from linsep.errors import BadInput, BadModelFile
from linsep.spelling import accept_american
from linsep.tables.encodings import Category, ColumnNames, Dropped, Encoding
from linsep.tables.frames import from_frame
from linsep.tables.matrix import BoundEncoding, blocks, collect, matrix
from linsep.tables.planning import OTHER_DATES, Settings, look_like_dates, plan, stored_kind
from linsep.tables.restoring import LARGEST_HASH, check_reading, encoding_from_dict
from linsep.tables.statistics import ColumnStatistics, merged
from linsep.tables.table import Table

_DENSE_WIDTH = 32  # matrices with at most this many columns are always dense
_DENSE_SHARE = 0.3  # fraction of nonzeros from which wider matrices are dense too
_SHOWN = 60  # number of columns that ``print`` lists


@dataclass(frozen=True)
class Schema:
    """Type and encoding of each column; ``print`` shows it as a table."""

    encodings: tuple[Encoding, ...]

    def __str__(self) -> str:
        shown = self.encodings if len(self.encodings) <= _SHOWN + 1 else self.encodings[:_SHOWN]
        names = [printable(e.name, 40) for e in shown]
        width = max([len(name) for name in names] + [6])
        lines = [f"{'column':<{width}}  {'type':<8}  features  note"]
        for e, name in zip(shown, names, strict=True):
            note = printable(_note(e), 100)
            lines.append(f"{name:<{width}}  {e.type:<8}  {e.width:>8}  {note}".rstrip())
        rest = self.encodings[len(shown) :]
        if rest:
            counts = Counter(e.type for e in rest)
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in counts.most_common())
            lines.append(f"and {len(rest):,} more: {kinds}")
        return "\n".join(lines)

    __repr__ = __str__


@accept_american
class Encoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""Encode the columns of a table as numbers.

    Numbers are kept or standardised, booleans become 0 and 1, and dates and times become days, month, weekday and
    hour. Strings become one column per level, hashed columns if there are very many levels, or hashed n-grams if
    they are sentences. A missing number becomes the median, with an indicator column; missing strings are a level.
    Columns without information (constants, empty columns, row numbers, identifiers) are dropped.

    Parameters
    ----------
    types : dict {column: type}, optional
        "number", "boolean", "category", "hashed", "text", "time" or "drop" instead of the inferred type.
    standardise : bool, default False
        Whether numbers are centred and scaled to standard deviation 1. The spelling ``standardize`` is accepted.
    max_levels : int, default 100
        Strings with more frequent levels than this are hashed.
    min_count : int, default 2
        Levels that occur in fewer rows share the column ``(other)``, as do levels unknown at fit time.
    hash_size : int, default 2**18
        Number of columns for a hashed column or a text column.
    analyzer : {"word", "char", "char_wb"}
        Units of texts, as in scikit-learn's ``CountVectorizer``.
    ngrams : tuple, default (1, 2)
        Shortest and longest n-grams of these units.
    sparse : bool or "auto"
        Whether the result is a CSR matrix; "auto": if few entries are nonzero.
    extra : {"error", "ignore"}
        What to do with columns that were not present at fit time.

    Attributes
    ----------
    encodings_ : tuple
        The fitted encoding of each column.
    schema_ : Schema
        Type, number of columns and note for each column; print it.
    gaps_ : dict {column: int}
        Number of missing values in each column at fit time; not stored in a model file.
    reading_ : dict
        ``target``, ``decimal``, ``thousands`` and ``missing`` of the file that the table was read from, as arguments of
        ``read_table``; empty for a data frame. The command line reads new files in the same way.
    feature_names_in_ : ndarray of str
        Names of the columns of the table.
    n_features_in_ : int
        Number of columns of the table.
    n_samples_seen_ : int
        Number of rows at fit time.

    Raises
    ------
    BadInput
        If a parameter is not usable, a column of new rows is missing, additional or of another type, or a value
        cannot be encoded; the message names the column.

    See Also
    --------
    read_table : Read a file into a table.
    save : Write a pipeline of encoder and model to a file.
    scan : Rows on disk; ``to_disk`` returns one.

    Notes
    -----
    ``fit`` needs bounded memory and gives the same bits for every division of the rows into parts
    (``fit_partial``, ``merge``): sums are exact, and quantiles and levels depend only on the set of values. The
    median is exact for up to 16,384 different values, and accurate to about 0.1 % beyond.

    Examples
    --------
    >>> import io
    >>> from linsep import Encoder, read_table
    >>> table = read_table(io.BytesIO(b"age,city\n31,Oslo\n58,Bergen\n,Oslo\n40,Bergen\n"))
    >>> encoder = Encoder().fit(table)
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'age=(missing)', 'city=Bergen', 'city=Oslo']
    >>> encoder.transform(table)
    array([[31.,  0.,  0.,  1.],
           [58.,  0.,  1.,  0.],
           [40.,  1.,  0.,  1.],
           [40.,  0.,  1.,  0.]])
    """

    def __init__(  # noqa: PLR0913
        self,
        *,
        types: Mapping[str, str] | None = None,
        standardise: bool = False,
        max_levels: int = 100,
        min_count: int = 2,
        hash_size: int = 2**18,
        analyzer: str = "word",
        ngrams: tuple[int, int] = (1, 2),
        sparse: bool | str = "auto",
        extra: str = "error",
    ) -> None:
        self.types = types
        self.standardise = standardise
        self.max_levels = max_levels
        self.min_count = min_count
        self.hash_size = hash_size
        self.analyzer = analyzer
        self.ngrams = ngrams
        self.sparse = sparse
        self.extra = extra

    @classmethod
    def infer(cls, X: Any, **settings: Any) -> Schema:
        """Infer the type and encoding of each column of a table or data frame."""
        schema: Schema = cls(**settings).fit(X).schema_
        return schema

    def fit(self, X: Any, y: Any = None) -> Encoder:
        """Learn levels, medians and scales from a table or a data frame; on a cluster, the workers do so.

        For a Spark data frame, y may name the target column, which is then not encoded.
        """
        if location_of(X) is Location.CLUSTER:
            return self.merge(statistics_of(clone(self).fit_partial, X, y))
        return self.merge([self.fit_partial(X)])

    def fit_partial(self, X: Any) -> ColumnStatistics:
        """Collect the statistics of some rows, in bounded memory, without changing the encoder.

        ``merge`` combines the statistics of all parts, in the order of the rows, into the encoder that ``fit`` gives
        for all rows, bit-identical for every division into parts. Statistics can be pickled.
        """
        self._settings()
        table = _columns(X)
        types = self._types(table.types)
        kinds = {name: stored_kind(types.get(name), kind) for name, kind in table.kinds.items()}
        asked = [name for name, kind in types.items() if kind == "category"]
        found = ColumnStatistics(kinds, asked)
        found.types, found.reading = types, table.reading
        for rows in table.batches:
            collect(found, table, rows)
            rows.release()
        found.numbers.flush()
        return found

    def merge(self, parts: Iterable[ColumnStatistics]) -> Encoder:
        """Fit from the statistics of all parts of a table, in the order of their rows; see ``fit_partial``."""
        how = self._settings()
        whole = merged(parts)
        types, known = whole.types, whole.kinds
        for name, asked in types.items():
            if name not in known and asked != "drop":
                raise missing_name(name, known, "the table")
        encodings = plan(whole, types, how)
        # Columns of type "drop" that were left out when the file was read.
        encodings += [Dropped(name, "as asked") for name in types if name not in known]
        self._set(tuple(encodings))
        self.reading_ = dict(whole.reading)
        self.gaps_, self.n_samples_seen_ = whole.missing_counts(), whole.n
        return self

    def transform(self, X: Any, *, consume: bool = False) -> Any:
        """Encode a table or data frame as a matrix. It needs the same columns as at fit time, in any order.

        ``consume=True`` frees the rows of a table as they are encoded, so that table and matrix are not both in memory;
        the table is empty afterwards. Rows on a cluster are encoded by the workers when a model is fitted or predicts.
        """
        check_is_fitted(self, "encodings_")
        if location_of(X) is Location.CLUSTER:
            return MappedRows(X, self)
        return matrix(self.encodings_, self._opened(X), self.sparse_, consume)

    def transform_batches(self, X: Any) -> Iterator[Any]:
        """Encode a table or data frame batch by batch, in row order; yield dense arrays or CSR matrices."""
        return blocks(self.encodings_, self._opened(X), self.sparse_)

    def to_disk(
        self,
        X: Any,
        *,
        cache: str | os.PathLike[str] | None = None,
        memory_limit: float | None = None,
    ) -> Scan:
        """Encode a table or data frame and store the rows on disk, for tables larger than memory.

        Parameters
        ----------
        X : Table or dataframe
            ``read_table`` holds 64 MB of a table in memory and the rest in a temporary file.
        cache : path, optional
            Directory to write to; if it already contains these rows, they are used. By default a temporary
            one, removed when the scan is closed or no longer used.
        memory_limit : float, optional
            Largest size of the encoded rows in bytes that a fit reads into memory, as in :func:`~linsep.scan`.

        Returns
        -------
        Scan
            Pass it to ``fit``, ``predict``, ``tune``, ``verify`` and ``write_report`` instead of a matrix.
        """
        parts = self.transform_batches(X)
        width = sum(encoding.width for encoding in self.encodings_)
        return stored_rows(parts, width, None if cache is None else Path(cache), memory_limit)

    def unseen(self, X: Any) -> dict[str, dict[str, int]]:
        """Count the rows of each level that has no column of its own, for every categorical column."""
        table = self._opened(X)
        found = {}
        for encoding in self.encodings_:
            if isinstance(encoding, Category):
                column, counts = BoundEncoding(encoding, table), Counter[str]()
                for batch in table.batches:
                    counts.update(column.counts(batch))
                new = {level: n for level, n in counts.items() if level not in encoding.levels}
                if new:
                    found[encoding.name] = new
        return found

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Return the names of the columns of the matrix, such as ``city=Oslo``."""
        check_is_fitted(self, "encodings_")
        names = [name for encoding in self.encodings_ for name in encoding.names]
        return np.array(names, dtype=object)

    @property
    def column_names_(self) -> ColumnNames:
        """Names of the columns of the matrix, as a sequence that formats each name when it is read."""
        check_is_fitted(self, "encodings_")
        return ColumnNames(self.encodings_)

    @property
    def schema_(self) -> Schema:
        """Type and encoding of each column."""
        check_is_fitted(self, "encodings_")
        return Schema(self.encodings_)

    @property
    def types_(self) -> dict[str, str]:
        """Column types to pass to ``read_table``, so that new files are read with the same types."""
        check_is_fitted(self, "encodings_")
        return {encoding.name: encoding.type for encoding in self.encodings_}

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted encoder as plain values for JSON."""
        check_is_fitted(self, "encodings_")
        columns = [encoding.to_dict() for encoding in self.encodings_]
        found = {"sparse": self.sparse, "extra": self.extra, "columns": columns}
        return {**found, "reading": self.reading_} if self.reading_ else found

    @classmethod
    def from_dict(cls, data: Any) -> Encoder:
        """Restore an encoder from the values that ``to_dict`` returned; raise on anything else."""
        if not isinstance(data, dict) or set(data) - {"reading"} != {"sparse", "extra", "columns"}:
            raise BadModelFile(
                "an encoder must have the keys sparse, extra, columns and perhaps reading."
            )
        if data["sparse"] not in (True, False, "auto") or data["extra"] not in ("error", "ignore"):
            raise BadModelFile(
                "an encoder needs sparse true, false or 'auto', and extra as a word."
            )
        if not isinstance(data["columns"], list):
            raise BadModelFile("the columns of an encoder are a list.")
        encodings = tuple(map(encoding_from_dict, data["columns"]))
        if len({encoding.name for encoding in encodings}) < len(encodings):
            raise BadModelFile("two columns of the encoder have the same name.")
        encoder = cls(sparse=data["sparse"], extra=data["extra"])
        encoder.types = {e.name: e.type for e in encodings}
        encoder._set(encodings)
        encoder.reading_ = check_reading(data["reading"]) if "reading" in data else {}
        return encoder

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        return tags

    def _set(self, encodings: tuple[Encoding, ...]) -> None:
        self.encodings_ = encodings
        self.feature_names_in_ = np.array([e.name for e in encodings], dtype=object)
        self.n_features_in_ = len(encodings)

    def _types(self, told: dict[str, str]) -> dict[str, str]:
        """Return the column types set when the table was read, overridden by those of the encoder."""
        return {**told, **check_types({} if self.types is None else self.types)}

    def _settings(self) -> Settings:
        one_of("sparse", self.sparse, (True, False, "auto"))
        one_of("extra", self.extra, ("error", "ignore"))
        shortest, longest = pair("ngrams", self.ngrams, "(shortest, longest)")
        if not is_whole(shortest, 1, 10) or not is_whole(longest, shortest, 10):
            raise BadInput(f"ngrams must be (shortest, longest) from 1 to 10, got {self.ngrams!r}.")
        return Settings(
            flag("standardise", self.standardise),
            count("max_levels", self.max_levels, "levels"),
            count("min_count", self.min_count, "rows"),
            count("hash_size", self.hash_size, "columns", LARGEST_HASH),
            one_of("analyzer", self.analyzer, ("word", "char", "char_wb")),
            (shortest, longest),
        )

    @property
    def sparse_(self) -> bool:
        """Whether ``transform`` returns a CSR matrix."""
        check_is_fitted(self, "encodings_")
        if isinstance(self.sparse, bool):
            return self.sparse
        d = sum(e.width for e in self.encodings_)
        return (
            d > _DENSE_WIDTH and sum(e.entries_per_row for e in self.encodings_) < _DENSE_SHARE * d
        )

    def _opened(self, X: Any) -> Table:
        """Return X as a table with the columns that the encoder was fitted to, or raise."""
        check_is_fitted(self, "encodings_")
        table = _columns(X)
        needed = [e.name for e in self.encodings_ if e.width]
        absent = [name for name in needed if name not in table.kinds]
        if absent:
            shown = ", ".join(map(repr, absent[:5])) + (" ..." if len(absent) > 5 else "")
            raise BadInput(
                f"these columns are missing: {shown}; new rows need the columns that the encoder was "
                "fitted to."
            )
        known = {e.name for e in self.encodings_}
        new = [name for name in table.kinds if name not in known]
        if new and self.extra == "error":
            shown = ", ".join(map(repr, new[:5])) + (" ..." if len(new) > 5 else "")
            raise BadInput(
                f"these columns were not there when the encoder was fitted: {shown}; leave them out, or "
                "give extra='ignore'."
            )
        return table


def _columns(X: Any) -> Table:
    table = from_frame(X)
    if table.matrix is not None:
        raise BadInput(
            f"{table.source} holds a matrix without column names; there is nothing to encode: pass "
            "table.matrix to the model."
        )
    return table


def _quoted(level: str) -> str:
    """Return a level for a list of levels, in quotes if it could be taken for several or for none."""
    return repr(level) if "," in level or level != level.strip() or not level else level


def _note(encoding: Encoding) -> str:
    if isinstance(encoding, Dropped):
        return encoding.why
    if isinstance(encoding, Category):
        if look_like_dates(encoding.levels):
            return f"{encoding.levels[0]}, ...: {OTHER_DATES}"
        shown = [*map(_quoted, encoding.levels[:5]), *["..."][: len(encoding.levels) > 5]]
        shown += ["(other)"][: encoding.other] + ["(missing)"][: encoding.indicator]
        return ", ".join(shown)
    return "missing values" if getattr(encoding, "indicator", False) else ""
