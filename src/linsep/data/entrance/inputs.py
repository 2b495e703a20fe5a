"""Validation of X, numeric targets, offsets and weights, and their conversion to arrays.

Plain float arrays are passed through without a copy. Everything else is converted once, here, and every
error message says what was given, where, and what to do.
"""

from __future__ import annotations

import math
import sys
from numbers import Real
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from linsep.arrays import FloatArray
from linsep.data.entrance.coded_labels import CodedLabels
from linsep.data.entrance.dataframes import Names, open_frame
from linsep.data.entrance.finite import refuse_nonfinite_vector
from linsep.data.entrance.sparse_rows import to_csr
from linsep.data.location import Location, location_of
from linsep.data.mapped_files import watch
from linsep.data.memory_rows import NamedRows
from linsep.errors import BadInput, NotNumbers

#: Largest sample weight; squares of sums of such weights do not overflow.
LARGEST_WEIGHT = 1e100


def is_plain(X: object) -> TypeGuard[npt.NDArray[Any]]:
    """Return whether X is an aligned 2-D float32/float64 ndarray, which needs no conversion."""
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype.char in "fd"
        and X.dtype.isnative
        and X.flags.aligned
    )


def is_plain_csr(X: Any) -> bool:
    """Return whether X is a float32/float64 CSR matrix that needs no conversion."""
    return (
        type(X) in (sp.csr_matrix, sp.csr_array)
        and X.ndim == 2
        and X.dtype.char in "fd"
        and X.dtype.isnative
        and X.indices.dtype.isnative
        and X.indices.dtype == X.indptr.dtype
        and X.indices.dtype.char in "ilq"
        and len(X.indptr) == X.shape[0] + 1
        and X.data.flags.aligned
        and X.indices.flags.aligned
        and X.indptr.flags.aligned
    )


def is_bfloat16(X: object) -> TypeGuard[npt.NDArray[Any]]:
    """Return whether X is a 2-D array of bfloat16 (package ml_dtypes), which NumPy does not treat as numeric."""
    return type(X) is np.ndarray and X.ndim == 2 and X.dtype.name == "bfloat16"


def rows(X: Any, owner: str) -> tuple[Any, Names | None]:
    """Return X as a numeric array or CSR matrix, and its column names or None.

    Float32 stays float32, integers stay integers. NaN and infinity are not checked here.
    """
    X = watch(X)
    if (is_plain(X) or is_bfloat16(X)) and X.size:
        return X, None
    if location_of(X) is not Location.MEMORY:
        raise BadInput(not_in_memory(X, owner))
    return (X.values, X.names) if isinstance(X, NamedRows) else _converted(X, owner)


def _converted(X: Any, owner: str) -> tuple[Any, Names | None]:
    """Convert a sparse matrix, a frame, a masked array or nested lists to a numeric array or CSR matrix."""
    names = None
    if sp.issparse(X):
        X = to_csr(X)
        if is_plain_csr(X) and X.shape[0] and X.shape[1]:
            return X, None
    elif isinstance(X, np.ma.MaskedArray):
        X = _unmask(X, "X")
    elif not isinstance(X, np.ndarray):
        X, names = open_frame(X)
    X = _refuse_text(X, names)
    if X.ndim > 2:
        raise BadInput(
            f"Found array with dim {X.ndim}, while dim <= 2 is required: X has shape {X.shape}; "
            "give one row per example, for instance X.reshape(len(X), -1)."
        )
    try:
        X = check_array(
            X, accept_sparse="csr", ensure_all_finite=False, estimator=owner, input_name="X"
        )
    except (TypeError, ValueError) as error:
        if "np.matrix" in str(error):
            raise  # scikit-learn's estimator checks require its own TypeError
        kind = NotNumbers if isinstance(error, TypeError) else BadInput
        if isinstance(X, np.ndarray) and X.dtype.kind == "c":
            raise kind(
                f"Complex data not supported: X has dtype {X.dtype}; give real numbers."
            ) from error
        raise kind(str(error) if "X" in str(error) else f"X: {error}") from error
    if X.dtype.itemsize > 8:  # longdouble: values too large for float64 become infinite
        with np.errstate(over="ignore"):
            X = X.astype(np.float64)
    return X if sp.issparse(X) or X.flags.aligned else X.copy(), names


def not_in_memory(X: Any, owner: str, too_many: bool = False) -> str:
    """Return the message for a scan or for rows on a cluster where only rows in memory will do.

    ``too_many``: fewer rows would have been read into memory.
    """
    where, some, limit = "a scan of files", "scan.rows[:100_000]", "scan(memory_limit=...)"
    if location_of(X) is Location.CLUSTER:
        where, limit = "on a cluster", "its setting linsep.memory-limit"
        some = "X[:100_000].compute() on Dask or X.limit(100_000).toPandas() on Spark"
    more = f"They are too many; if there is room, raise {limit}. " if too_many else ""
    return (
        f"X is {where}, and {owner} needs the rows in memory, because it reads single rows and not only sums over all "
        f"of them. {more}Load some of the rows, for instance {some}, or fit LogisticRegression, LinearSVC or "
        "LinearClassifier, which leave the rows where they are."
    )


def rows_or_scan(X: Any, owner: str) -> tuple[Any, Names | None]:
    """Return ``rows(X, owner)``, or for a scan its rows, in memory if they are few enough, and column names."""
    on_disk = location_of(X) is Location.DISK
    return (X.rows_to_fit(), X.feature_names) if on_disk else rows(X, owner)


def refuse_other_columns(model: Any, found: int, names: Any) -> None:
    """Raise unless number and names of the columns are those of ``fit``."""
    d = model.n_features_in_
    if found != d:
        raise BadInput(
            f"X has {found} features, but {type(model).__name__} is expecting {d} features as input; "
            "leave out the others with scan(ignore=...)."
        )
    known = getattr(model, "feature_names_in_", None)
    if known is not None and names is not None and list(known) != list(names):
        at = next(j for j in range(d) if known[j] != names[j])
        raise BadInput(
            f"The feature names should match those that were passed during fit: column {at} is "
            f"{names[at]!r} and was {known[at]!r}."
        )


def validate_new_rows(model: Any, X: Any) -> Any:
    """Return the rows of X for a fitted model; raise unless it has the same columns in the same order."""
    check_is_fitted(model, "coef_")
    if location_of(X) is Location.DISK:
        refuse_other_columns(model, X.shape[1], X.feature_names)
        return X.rows
    if isinstance(X, NamedRows):
        refuse_other_columns(model, X.shape[1], X.names)
        return X.values
    values, _ = rows(X, type(model).__name__)
    validate_data(model, X, reset=False, skip_check_array=True)
    return values.astype(np.float32) if is_bfloat16(values) else values


def column(y: Any, n: int, owner: str) -> Any:
    """Return the target y as a 1-D array, or as coded labels, with one entry for each of the n rows of X."""
    plain = type(y) in (np.ndarray, CodedLabels) and y.ndim == 1
    values = y if plain else _as_column(y, owner)
    if len(values) != n:
        raise BadInput(
            "Found input variables with inconsistent numbers of samples: "
            f"X has {n} rows, y has {len(values)}; give one y for each row of X."
        )
    if values.dtype.kind == "c":
        raise BadInput(
            f"Complex data not supported: y has dtype {values.dtype}; give real numbers."
        )
    return values


def targets(y: Any, n: int, owner: str) -> FloatArray:
    """Return numeric targets as float64, one for each of the n rows of X; raise unless all are finite."""
    y = column(y, n, owner)
    if y.dtype.kind not in "fiub":
        y = _numbers(y, owner)
    with np.errstate(over="ignore"):  # a longdouble too large for float64 becomes infinite
        t: FloatArray = np.ascontiguousarray(y, dtype=np.float64)
    refuse_nonfinite_vector(t, "y")
    return t


def offsets(offset: Any, n: int) -> FloatArray:
    """Return the offsets of the scores as float64, one finite number for each of the n rows."""
    found = _row_numbers(offset, n, "offset")
    refuse_nonfinite_vector(found, "offset")
    return found


def weights(sample_weight: Any, n: int) -> FloatArray | None:
    """Return the sample weights of the n rows; raise unless finite, >= 0 and not all zero. None means ones."""
    if sample_weight is None:
        return None
    s = nonnegative_weights(sample_weight, n)
    if s.max() == 0:
        raise BadInput(
            "sample_weight is zero in every row, so nothing is left to learn from; give at least "
            "one row of each class a positive weight."
        )
    return s


def nonnegative_weights(sample_weight: Any, n: int) -> FloatArray:
    """Return the sample weights of n rows, which may all be zero; raise unless finite and >= 0."""
    s = _row_numbers(sample_weight, n, "sample_weight")
    refuse_nonfinite_vector(s, "sample_weight")
    if s.min() < 0:
        row = int(np.argmax(s < 0))
        raise BadInput(
            f"sample_weight must not be negative, got {s[row]} at row {row} (counting from 0); "
            "a weight says how often a row counts: use 0 to leave it out."
        )
    if s.max() > LARGEST_WEIGHT:
        raise BadInput(
            f"sample_weight is as large as {s.max()}, and sums of squares of such numbers overflow; "
            "divide all weights by a constant and multiply C by it: the optimum is the same."
        )
    return s


def _row_numbers(values: Any, n: int, name: str) -> FloatArray:
    """Return one number for each of the n rows; a scalar is repeated."""
    if isinstance(values, np.ma.MaskedArray):
        values = _unmask(values, name)
    try:
        given = np.asarray(values)
        if given.dtype.kind not in "fiubO":
            raise ValueError(f"got dtype {given.dtype}")
        s: FloatArray = np.asarray(given, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise BadInput(
            f"{name} could not be read as numbers ({error}); give one number per row."
        ) from error
    if s.ndim == 0:
        return np.full(n, s)
    if s.shape != (n,):
        raise BadInput(
            f"{name} has shape {s.shape}, {(n,)} is needed: give one number for each row of X."
        )
    return s


def _as_column(y: Any, owner: str) -> npt.NDArray[Any]:
    if y is None:
        raise BadInput(f"This {owner} estimator requires y to be passed, but the target y is None.")
    if isinstance(y, np.ma.MaskedArray):
        y = _unmask(y, "y")
    if isinstance(y, list | tuple) and len(kinds := set(map(type, y))) > 1 and str in kinds:
        y = np.array(y, dtype=object)  # NumPy would convert the numbers in a mixed list to text
    try:
        values: npt.NDArray[Any] = column_or_1d(y, warn=True)
    except ValueError as error:
        raise BadInput(
            f"{error}\n{owner} learns one target: y needs one entry for each row of X. For several targets fit one "
            "model each; one-hot labels become one column by y.argmax(axis=1)."
        ) from error
    return values


def _unmask(a: Any, name: str) -> npt.NDArray[Any]:
    """Return the values of a masked array; raise if an entry is masked."""
    mask = np.ma.getmaskarray(a)
    if mask.any():
        at = tuple(int(i) for i in np.argwhere(mask)[0])
        raise BadInput(
            f"{name} is a masked array and its entry {at} is masked; linsep does not fit "
            "missing values: fill them in (.filled) or leave those rows out."
        )
    values: npt.NDArray[Any] = np.ma.getdata(a)
    return values


def _refuse_text(X: Any, names: Names | None) -> Any:
    """Return X, converted to an array unless it is a frame or a sparse matrix; raise for text, which is not parsed."""
    if not isinstance(X, np.ndarray) and not sp.issparse(X) and not hasattr(X, "iloc"):
        try:
            X = np.asarray(X)
        except ValueError as error:
            raise BadInput(
                f"X could not be read as a table: {str(error).rstrip('.')}; give every row the same number of "
                "columns."
            ) from error
    if not isinstance(X, np.ndarray):
        return X
    if X.ndim == 0:
        raise BadInput(
            f"Expected 2D array, got scalar array instead: X is {X.item()!r:.80}; give a table of numbers, one row per "
            "example (array, list of lists, sparse matrix or data frame)."
        )
    if X.dtype.kind in "USVMmT":
        way = (
            "make_pipeline(TfidfVectorizer(), model) takes a list of texts"
            if X.ndim == 1
            else "convert it with X.astype(float), or encode it: make_pipeline(linsep.Encoder(), model) takes a data "
            "frame with text"
        )
        raise BadInput(f"X must hold numbers, got dtype {X.dtype}; {way}.")
    if X.ndim == 1:
        raise BadInput(
            f"X: Expected 2D array, got 1D array instead: its shape is {X.shape}. Reshape your data either using "
            "array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) if it contains a single "
            "sample."
        )
    return _from_objects(X, names) if X.dtype.kind == "O" and X.ndim == 2 else X


def is_missing(value: Any) -> bool:
    """Return whether an object is a missing value: None, NaN, or pandas' NA or NaT."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and math.isnan(value)


def _from_objects(X: npt.NDArray[Any], names: Names | None) -> npt.NDArray[Any]:
    """Convert an array of Python objects to float64, with NaN for missing values."""
    found = np.empty(X.shape)
    for (row, col), value in np.ndenumerate(X):
        if is_missing(value):
            found[row, col] = np.nan
            continue
        name = "" if names is None else f" ({str(names[col])!r})"
        place = f"at row {row}, column {col}{name} (counting from 0)"
        if isinstance(value, str | bytes):
            raise BadInput(
                f"X must hold numbers, got the text {value!r:.80} {place}; convert or encode that column."
            )
        try:
            found[row, col] = value
        except OverflowError as error:
            raise BadInput(
                f"X holds a whole number beyond float64 {place}; scale or drop that column."
            ) from error
        except (TypeError, ValueError) as error:
            raise NotNumbers(
                f"X must hold numbers, got {value!r:.80} {place}: {error}; give each row one number per column."
            ) from error
    return found


def _numbers(y: npt.NDArray[Any], owner: str) -> npt.NDArray[Any]:
    """Convert a vector of Python numbers to float64."""
    for row, value in enumerate(y.tolist()):
        if not isinstance(value, Real):
            raise BadInput(
                f"y must hold numbers, got {value!r} at row {row} (counting from 0); {owner} "
                "predicts numbers: correct it, or use a classifier for class labels."
            )
    try:
        return y.astype(np.float64)
    except OverflowError as error:
        row = next(at for at, value in enumerate(y.tolist()) if abs(value) > sys.float_info.max)
        raise BadInput(
            f"y holds a whole number beyond float64 at row {row} (counting from 0); scale the target."
        ) from error
