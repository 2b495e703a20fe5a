"""F4: arrays, sparse matrices and data frames of every make."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from scoreboard.harness import Case, check, close

N, D = 30, 3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D))
Y = (X @ [1.0, -2.0, 0.5] + RNG.normal(size=N) > 0).astype(int)
T = X @ [1.0, -2.0, 0.5] + RNG.normal(size=N)
WHOLE = np.round(3 * X)  # fits every type of number
GOOD = sp.csr_matrix(X)
Given = Any


def fits(given: Given, plain: Any, library: Any, rtol: float = 1e-6) -> None:
    """A fit to these rows has the scores of one to a plain array of the same numbers."""
    given = given() if callable(given) else given
    truth = library.fit(plain, Y)
    model = library.fit(given, Y)
    close(np.ravel(model.coef_), np.ravel(truth.coef_), rtol, 1e-9)
    close(model.decision_function(given), truth.decision_function(plain), 10 * rtol, 1e-7)


def refuses(given: Given, library: Any) -> None:
    given = given() if callable(given) else given
    model = library.fit(given, Y)
    check(np.isfinite(model.coef_).all(), "coefficients that are not finite")


def right(name: str, given: Given, plain: Any = X, rtol: float = 1e-6, **more: Any) -> Case:
    return Case(name, partial(fits, given, plain, rtol=rtol), **more)


def wrong(name: str, given: Given, *words: str, **more: Any) -> Case:
    return Case(name, partial(refuses, given), words, **more)


def with_value(value: Any, row: int, col: int, dtype: Any = np.float64) -> Any:
    bad = X.astype(dtype)
    bad[row, col] = value
    return bad


def replaced(array: Any, at: int, value: Any) -> Any:
    array = np.array(array)
    array[at] = value
    return array


def csr(data: Any = None, indices: Any = None, indptr: Any = None) -> Any:
    """The rows X as a CSR matrix with a part of its own, which may be damaged."""
    good = sp.csr_matrix(X)
    for name, part in (("data", data), ("indices", indices), ("indptr", indptr)):
        if part is not None:
            setattr(good, name, part)
    return good


def not_finite() -> Iterator[Case]:
    for where, (row, col) in {"first": (0, 0), "middle": (17, 1), "last": (29, 2)}.items():
        place = f"row {row}, column {col}"
        for value, word in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")):
            yield wrong(
                f"{value} {where}", with_value(value, row, col), f"Input X contains {word}", place
            )
        for kind in (sp.csr_matrix, sp.csc_matrix, sp.coo_matrix):
            yield wrong(
                f"NaN {where} in {kind.__name__}", kind(with_value(np.nan, row, col)), "NaN", place
            )
    for dtype in ("f2", "f4", ">f8", "g"):
        yield wrong(f"NaN in {dtype}", with_value(np.nan, 3, 1, dtype), "NaN", "row 3, column 1")
    yield wrong(
        "NaN in Fortran order", np.asfortranarray(with_value(np.nan, 3, 1)), "row 3, column 1"
    )
    yield wrong("NaN among objects", with_value(np.nan, 3, 1, object), "NaN", "row 3, column 1")
    yield wrong(
        "longdouble beyond float64",
        with_value(np.longdouble("1e4000"), 3, 1, "g"),
        "too large",
        "row 3",
    )
    yield wrong(
        "10^400 among objects", with_value(10**400, 3, 1, object), "beyond float64", "row 3"
    )


def types() -> Iterator[Case]:
    for dtype in (
        "bool",
        "i1",
        "u1",
        "i2",
        "u2",
        "i4",
        "u4",
        "i8",
        "u8",
        "f2",
        "f4",
        ">i2",
        ">i4",
        ">i8",
        ">f4",
        ">f8",
        "g",
    ):
        plain = np.abs(WHOLE) if dtype[0] in "bu" else WHOLE
        given = plain.astype(dtype)
        yield right(f"dtype {dtype}", given, given.astype(float))
        yield right(
            f"CSR of {dtype}",
            partial(_sparse, given),
            given.astype(float),
            either=dtype in (*">i2 >i4 >i8 >f4 >f8 f2 g".split(),),
        )
    yield right("objects", X.astype(object))
    yield right("Python integers", WHOLE.astype(int).astype(object), WHOLE)
    yield right("fractions.Fraction", partial(_fractions), WHOLE / 2, either=True)
    yield right("decimal.Decimal", partial(_decimals), WHOLE / 2, either=True)
    yield wrong("text", np.full((N, D), "1.5"), "numbers", "<U3", "astype(float)")
    yield wrong(
        "text among objects", with_value("red", 6, 2, object), "'red'", "row 6, column 2", "encode"
    )
    yield wrong("bytes", np.full((N, D), b"1"), "numbers", "astype(float)")
    yield wrong("None among objects", with_value(None, 3, 1, object), "NaN", "row 3, column 1")
    yield wrong("times", np.full((N, D), np.datetime64("2020-01-01")), "numbers", "datetime64")
    yield wrong("durations", np.full((N, D), np.timedelta64(1, "D")), "numbers", "timedelta64")
    yield wrong("complex", X + 1j, "Complex data not supported")
    yield wrong("complex CSR", sp.csr_matrix(X + 1j), "Complex data not supported")
    yield wrong("records", np.zeros((N, D), [("a", float)]), "numbers")
    yield wrong("lists among objects", partial(_lists), "X")
    yield wrong("a dict", {"a": 1.0}, "X")
    yield wrong("a string", "abc", "X")
    yield wrong("None", None, "X")
    yield wrong("a number", 3.0, "X")
    yield wrong("a generator", lambda: (row for row in X), "X")
    yield wrong("a set", {1.0, 2.0}, "X")


def _sparse(given: Any) -> Any:
    parts = sp.csr_matrix(np.ones_like(given, dtype=float))
    return sp.csr_matrix((given.ravel(), parts.indices, parts.indptr), shape=given.shape)


def _fractions() -> Any:
    from fractions import Fraction

    return np.array([[Fraction(int(v), 2) for v in row] for row in WHOLE], dtype=object)


def _decimals() -> Any:
    from decimal import Decimal

    return np.array([[Decimal(int(v)) / 2 for v in row] for row in WHOLE], dtype=object)


def _lists() -> Any:
    given = np.empty((N, D), object)
    for at in np.ndindex(N, D):
        given[at] = [1.0]
    return given


class _Subclass(np.ndarray):
    """As the arrays of units and labels that other packages make."""


class _Convertible:
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return X.astype(dtype or float)


def layouts() -> Iterator[Case]:
    yield right("list", X.tolist())
    yield right("tuple of tuples", tuple(map(tuple, X)))
    yield right("list of arrays", list(X))
    yield right("Fortran order", np.asfortranarray(X))
    yield right("negative strides", X[::-1, ::-1][::-1, ::-1])
    yield right("rows from the end", lambda: X[::-1].copy()[::-1])
    yield right("columns from the end", lambda: X[:, ::-1].copy()[:, ::-1])
    yield right("every other row", np.repeat(X, 2, axis=0)[::2])
    yield right("every other column", np.repeat(X, 2, axis=1)[:, ::2])
    yield right("transposed", X.T.copy().T)
    yield right("read-only", np.frombuffer(X.tobytes()).reshape(N, D))
    yield right("not aligned", np.frombuffer(b"\0" + X.tobytes(), offset=1).reshape(N, D))
    yield right("one row repeated", np.broadcast_to(X[:1], (N, D)), np.tile(X[:1], (N, 1)))
    yield wrong("matrix", X.view(np.matrix), "np.matrix is not supported", "np.asarray")
    yield right("subclass", X.view(_Subclass))
    yield right("array-like", _Convertible())
    yield right("memory view", memoryview(X))
    yield right("nothing masked", np.ma.array(X))
    yield wrong("masked", np.ma.array(X, mask=X > 2), "masked", "fill")
    yield wrong("all masked", np.ma.masked_all((N, D)), "masked", "fill")
    yield right("memory map", _mapped)
    yield right("memory map, some rows", lambda: _mapped()[:], X)
    yield wrong("memory map of a file cut short", _mapped_and_cut, "shorter", "file", apart=True)
    yield wrong(
        "view of a memory map of a file cut short",
        lambda: np.asarray(_mapped_and_cut()),
        "shorter",
        "file",
        apart=True,
    )


def _mapped() -> Any:
    np.save("X.npy", X)
    return np.load("X.npy", mmap_mode="r")


def _mapped_and_cut() -> Any:
    rows = np.tile(X, (1000, 1))
    np.save("X.npy", rows)
    given = np.load("X.npy", mmap_mode="r")[:N]
    with open("X.npy", "r+b") as file:
        file.truncate(128)
    return given


def shapes() -> Iterator[Case]:
    yield wrong("no rows", X[:0], "0 sample(s)", "minimum of 1")
    yield wrong("no columns", X[:, :0], "0 feature(s)", "minimum of 1")
    yield wrong("nothing", np.empty((0, 0)), "0 sample(s)")
    yield wrong("empty list", [], "Expected 2D array")
    yield wrong("list of empty lists", [[]] * N, "0 feature(s)")
    yield wrong("one dimension", X[:, 0], "Expected 2D array", "Reshape your data")
    yield wrong("three dimensions", X[:, :, None], "dim 3", "dim <= 2")
    yield wrong("no dimension", np.array(1.0), "Expected 2D array")
    yield wrong("ragged", [[1.0], [2.0, 3.0]] * (N // 2), "inhomogeneous", "same number of columns")
    yield wrong("too few rows", X[:5], "X has 5 rows, y has 30", "each row")
    yield wrong("too many rows", np.tile(X, (2, 1)), "X has 60 rows, y has 30", "each row")
    yield wrong("empty CSR", sp.csr_matrix((0, 3)), "0 sample(s)")
    yield wrong("CSR without columns", sp.csr_matrix((N, 0)), "0 feature(s)")
    yield right("CSR of zeros", sp.csr_matrix((N, D)), np.zeros((N, D)))
    yield right("one column", X[:, :1], X[:, :1].copy())
    yield right("more columns than rows", np.hstack([X] * 20), np.hstack([X] * 20).copy())


def sparse() -> Iterator[Case]:
    for make in ("csr", "csc", "coo", "bsr", "dia", "lil", "dok"):
        for kind in ("matrix", "array"):
            yield right(
                f"{make}_{kind}",
                partial(getattr(sp, f"{make}_{kind}"), X),
                either=make in ("dia", "dok", "lil"),
            )
    yield right(
        "unsorted",
        csr(GOOD.data.reshape(N, D)[:, ::-1].ravel(), np.tile([2, 1, 0], N).astype("i4")),
    )
    yield right(
        "int64 indices", csr(indices=GOOD.indices.astype("i8"), indptr=GOOD.indptr.astype("i8"))
    )
    yield right(
        "big-endian indices",
        csr(indices=GOOD.indices.astype(">i4"), indptr=GOOD.indptr.astype(">i4")),
        either=True,
    )
    yield right("indices of two types", csr(indptr=GOOD.indptr.astype("i8")))
    yield right(
        "longer than needed",
        csr(np.append(GOOD.data, np.nan), np.append(GOOD.indices, 99).astype("i4")),
    )
    twice = np.repeat(GOOD.data / 2, 2), np.repeat(GOOD.indices, 2), 2 * GOOD.indptr
    yield right("stored twice", lambda: sp.csr_matrix(twice, (N, D)))
    yield right(
        "stored twice in COO",
        lambda: sp.coo_matrix((twice[0], (np.repeat(np.arange(N), 2 * D), twice[1])), (N, D)),
    )
    yield right("explicit zeros", csr(np.where(GOOD.data > 1, 0, GOOD.data)), np.where(X > 1, 0, X))
    yield right("read-only parts", _read_only_csr)
    yield right("slice of CSR", lambda: sp.csr_matrix(np.vstack([X, X]))[:N])
    yield wrong(
        "index too large",
        csr(indices=replaced(GOOD.indices, 7, 3)),
        "CSR",
        "indices[7] is 3",
        "0..2",
        apart=True,
    )
    yield wrong(
        "index 2^31 - 1",
        csr(indices=replaced(GOOD.indices, 7, 2**31 - 1)),
        "indices[7]",
        apart=True,
    )
    yield wrong(
        "index negative",
        csr(indices=replaced(GOOD.indices, 7, -1)),
        "CSR",
        "indices[7] is -1",
        apart=True,
    )
    yield wrong(
        "index -2^31",
        csr(indices=replaced(GOOD.indices, 7, -(2**31))),
        "CSR",
        "indices[7]",
        apart=True,
    )
    yield wrong(
        "indptr falls",
        csr(indptr=replaced(GOOD.indptr, 4, 2)),
        "CSR",
        "falls",
        "from 9 to 2",
        apart=True,
    )
    yield wrong(
        "indptr too short", csr(indptr=GOOD.indptr[:-1]), "CSR", "30 entries, 31", apart=True
    )
    yield wrong(
        "indptr past the end",
        csr(indptr=replaced(GOOD.indptr, -1, 999)),
        "999",
        "90 entries",
        apart=True,
    )
    yield wrong(
        "indptr begins late",
        csr(indptr=replaced(GOOD.indptr, 0, 1)),
        "begin with 0",
        "1",
        apart=True,
    )
    yield wrong(
        "indptr negative", csr(indptr=replaced(GOOD.indptr, 3, -5)), "CSR", "falls", apart=True
    )
    yield wrong("data too short", csr(data=GOOD.data[:-5]), "CSR", "85 entries", apart=True)
    yield wrong(
        "indices too short", csr(indices=GOOD.indices[:-5]), "CSR", "85 entries", apart=True
    )
    yield wrong(
        "COO column too large", partial(_damaged, "coo", "col", 5), "COO", "col[7] is 5", apart=True
    )
    yield wrong(
        "COO row negative", partial(_damaged, "coo", "row", -1), "COO", "row[7] is -1", apart=True
    )
    yield wrong(
        "CSC row too large",
        partial(_damaged, "csc", "indices", N),
        "CSC",
        "indices[7] is 30",
        apart=True,
    )
    yield wrong("BSR index too large", _damaged_bsr, "BSR", apart=True)
    yield wrong(
        "sparse of one dimension", lambda: sp.coo_array(X[0]), "Expected 2D", "Reshape your data"
    )


def _read_only_csr() -> Any:
    given = sp.csr_matrix(X)
    for part in (given.data, given.indices, given.indptr):
        part.flags.writeable = False
    return given


def _damaged(make: str, part: str, value: int) -> Any:
    given = getattr(sp, f"{make}_matrix")(X)
    setattr(given, part, replaced(getattr(given, part), 7, value))
    return given


def _damaged_bsr() -> Any:
    given = sp.bsr_matrix(X, blocksize=(2, 3))
    given.indices = replaced(given.indices, 7, 4)
    return given


def frames() -> Iterator[Case]:
    names = ["a", "b", "c"]
    yield right("pandas", lambda: _pandas(X, names))
    yield right("pandas with integer names", lambda: _pandas(X))
    for dtype in ("Float64", "Float32", "float64[pyarrow]", "float32"):
        given = X.astype("f4").astype(float) if "32" in dtype else X
        yield right(f"pandas {dtype}", partial(_pandas, X, names, dtype), given)
    for dtype in ("Int64", "Int8", "int64[pyarrow]", "int16"):
        yield right(f"pandas {dtype}", partial(_pandas, WHOLE.astype(int), names, dtype), WHOLE)
    for dtype in ("boolean", "bool", "bool[pyarrow]"):
        yield right(
            f"pandas {dtype}", partial(_pandas, WHOLE > 0, names, dtype), (WHOLE > 0).astype(float)
        )
    yield right(
        "pandas of several types",
        lambda: _pandas(WHOLE, names).astype({"a": "int8", "b": "Float64", "c": "float32"}),
        WHOLE,
    )
    yield right("pandas objects", partial(_pandas, X, names, object))
    yield right("pandas sparse", partial(_pandas, X, names, "Sparse[float]"))
    yield right(
        "pandas with an index of its own",
        lambda: _pandas(X, names).set_index(np.arange(N)[::-1] * 7),
    )
    yield right("pandas slice", lambda: _pandas(np.repeat(X, 2, axis=0), names).iloc[::2])
    for dtype in ("Float64", "float64", "float64[pyarrow]", object):
        yield wrong(f"pandas NA in {dtype}", partial(_pandas_na, dtype), "NaN", "row 3, column 1")
    yield wrong("pandas category", partial(_pandas, WHOLE, names, "category"), "'a'", "Encoder")
    yield wrong("pandas text", partial(_pandas, X.astype(str), names), "'a'", "Encoder")
    yield wrong(
        "pandas times",
        partial(_pandas, np.full((N, D), np.datetime64("2020", "ns")), names),
        "'a'",
        "Encoder",
    )
    yield wrong("pandas mixed names", lambda: _pandas(X, ["a", 1, "c"]), "string")
    yield wrong("pandas names twice", lambda: _pandas(X, ["a", "a", "c"]), "a", "same name")
    yield wrong("pandas series", lambda: _pandas(X, names)["a"], "2-dimensional")
    yield right("polars", lambda: _polars(X))
    yield right("polars Float32", lambda: _polars(X.astype("f4")), X.astype("f4").astype(float))
    yield right("polars Int8", lambda: _polars(WHOLE.astype("i1")), WHOLE)
    yield right("polars Boolean", lambda: _polars(WHOLE > 0), (WHOLE > 0).astype(float))
    yield right("polars UInt64", lambda: _polars(np.abs(WHOLE).astype("u8")), np.abs(WHOLE))
    yield right("polars Decimal", _polars_decimal, WHOLE, either=True)
    yield wrong("polars null", _polars_null, "NaN", "row 3")
    yield wrong("polars text", lambda: _polars(X.astype(str)), "Encoder")
    yield wrong("polars lazy", lambda: _polars(X).lazy(), "collect")
    yield right("pyarrow table", lambda: _arrow(X))
    yield wrong("pyarrow null", _arrow_null, "NaN", "row 3")
    yield right("pyarrow chunks", _arrow_chunks)


def _pandas(values: Any, names: Any = None, dtype: Any = None) -> Any:
    import pandas as pd

    frame = pd.DataFrame(values, columns=names)
    return frame if dtype is None else frame.astype(dtype)


def _pandas_na(dtype: Any) -> Any:
    import pandas as pd

    frame = _pandas(X, ["a", "b", "c"], dtype)
    frame.loc[3, "b"] = pd.NA if dtype != "float64" else np.nan
    return frame


def _polars(values: Any) -> Any:
    import polars as pl

    return pl.DataFrame({name: values[:, j] for j, name in enumerate("abc")})


def _polars_decimal() -> Any:
    import polars as pl

    return _polars(WHOLE).with_columns(pl.all().cast(pl.Decimal(10, 2)))


def _polars_null() -> Any:
    import polars as pl

    return _polars(X).with_columns(b=pl.when(pl.arange(N) == 3).then(None).otherwise(pl.col("b")))


def _arrow(values: Any) -> Any:
    import pyarrow as pa

    return pa.table({name: values[:, j] for j, name in enumerate("abc")})


def _arrow_null() -> Any:
    import pyarrow as pa

    given = _arrow(X)
    return given.set_column(
        1, "b", pa.array([None if i == 3 else v for i, v in enumerate(X[:, 1])])
    )


def _arrow_chunks() -> Any:
    import pyarrow as pa

    return pa.concat_tables([_arrow(X[:11]), _arrow(X[11:])])


_ANY_NUMBER = ("too few rows", "too many rows")  # of rows can be predicted


def cases() -> Iterator[Case]:
    for family in (not_finite, types, layouts, shapes, sparse, frames):
        for case in family():
            yield case
            if case.words is not None and case.name not in _ANY_NUMBER:
                given = case.act.args[0]  # type: ignore[attr-defined]
                yield replace(case, name=f"predict {case.name}", act=partial(_predicts, given))


def _predicts(given: Any, library: Any) -> None:
    given = given() if callable(given) else given
    model = library.fit(X, Y)
    warnings.filterwarnings("ignore", "X has feature names")
    scores = model.decision_function(given)
    check(np.isfinite(scores).all(), "scores that are not finite")
