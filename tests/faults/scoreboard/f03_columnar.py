"""F3: Parquet, Arrow and npz files, through ``read_table`` and ``scan``."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp

from linsep import LogisticRegression, read_table, scan
from linsep.errors import LinsepError
from scoreboard.harness import Case, check, close, same

N = 12
A = np.array([float(i * i % 7) for i in range(N)])
Y = ["n", "n", "n", "y", "y", "y"] * 2
NAN = float("nan")


def written(columns: dict[str, Any], kind: str, **how: Any) -> str:
    rows = pa.table(columns)
    if kind == "parquet":
        pq.write_table(rows, "rows.parquet", **how)
    else:
        make = pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file
        with pa.OSFile("rows.arrow", "wb") as sink, make(sink, rows.schema) as writer:
            writer.write_table(rows)
    return "rows.parquet" if kind == "parquet" else "rows.arrow"


def reads(values: Any, kind: str, expected: Any, file: str, library: Any) -> None:
    """Column b is of that kind and has these values."""
    found = read_table(written({"a": A, "b": values, "y": Y}, file), "y")
    same(found.y.tolist(), Y)
    same(found.kinds["b"], kind)
    got = found.values("b")
    if kind in ("number", "boolean"):
        check(np.allclose(got, np.asarray(expected, float), 0, 0, equal_nan=True), got)
    elif kind == "string":
        levels = [None, *found.levels["b"]]
        same([levels[code + 1] for code in got], list(expected))
    else:
        same(got.astype(str).tolist(), [str(np.datetime64(v, "us")) for v in expected])


def scans(values: Any, expected: Any, library: Any) -> None:
    """A scan has the same numbers."""
    with scan(written({"b": values, "y": Y}, "parquet"), target="y") as found:
        close(np.asarray(found.rows[:N])[:, 0], expected, 0, 0)


def columns() -> Iterator[Case]:
    whole = [i % 5 for i in range(N)]
    numbers = {
        kind: pa.array(whole, getattr(pa, kind)())
        for kind in (
            "int8",
            "uint8",
            "int16",
            "uint16",
            "int32",
            "uint32",
            "int64",
            "uint64",
            "float32",
            "float64",
        )
    }
    numbers["float16"] = pa.array(np.array(whole, np.float16))
    numbers["decimal128"] = pa.array([decimal.Decimal(v) for v in whole], pa.decimal128(12, 2))
    numbers["decimal256"] = pa.array([decimal.Decimal(v) for v in whole], pa.decimal256(50, 2))
    numbers["dictionary of numbers"] = pa.array(whole).dictionary_encode()
    numbers["chunks"] = pa.chunked_array([whole[:5], whole[5:]])
    numbers["slices"] = pa.array([9, *whole])[1:]
    for name, values in numbers.items():
        files = ("parquet",) if name == "float16" else ("parquet", "arrow")
        for file in files:
            yield Case(f"{name} in {file}", partial(reads, values, "number", whole, file))
        yield Case(f"scan of {name}", partial(scans, values, whole))
    text = ["u", "v"] * 6
    for name, kind in (
        ("string", pa.string()),
        ("large_string", pa.large_string()),
        ("string_view", pa.string_view()),
    ):
        yield Case(
            f"{name} in arrow", partial(reads, pa.array(text, kind), "string", text, "arrow")
        )
    yield Case(
        "dictionary", partial(reads, pa.array(text).dictionary_encode(), "string", text, "parquet")
    )
    yield Case("stream", partial(reads, pa.array(text), "string", text, "stream"))
    gaps = [None, 1.5] * 6
    yield Case("nulls", partial(reads, pa.array(gaps), "number", [NAN, 1.5] * 6, "parquet"))
    yield Case("NaN", partial(reads, pa.array([NAN, 1.5] * 6), "number", [NAN, 1.5] * 6, "parquet"))
    yield Case(
        "null strings",
        partial(reads, pa.array([None, "u"] * 6), "string", [None, "u"] * 6, "parquet"),
    )
    yield Case(
        "null in a dictionary",
        partial(
            reads, pa.array([None, "u"] * 6).dictionary_encode(), "string", [None, "u"] * 6, "arrow"
        ),
    )
    yield Case("all null", partial(reads, pa.nulls(N), "string", [None] * N, "parquet"))
    yield Case(
        "booleans",
        partial(reads, pa.array([True, None, False] * 4), "boolean", [1, NAN, 0] * 4, "parquet"),
    )
    days = [datetime.date(2024, 1, 1 + i) for i in range(N)]
    yield Case("date32", partial(reads, pa.array(days), "time", days, "parquet"))
    yield Case("date64", partial(reads, pa.array(days, pa.date64()), "time", days, "arrow"))
    for unit in ("s", "ms", "us", "ns"):
        for zone in (None, "UTC", "Europe/Oslo"):
            values = (
                pa.array([datetime.datetime(d.year, d.month, d.day, 5) for d in days])
                .cast(pa.timestamp(unit))
                .cast(pa.timestamp(unit, zone))
            )
            yield Case(
                f"timestamp {unit} {zone}",
                partial(reads, values, "time", [f"{d}T05" for d in days], "arrow"),
            )
    for limit in (2**53, -(2**53)):
        yield Case(
            f"{limit} is exact",
            partial(reads, pa.array([limit] * N), "number", [limit] * N, "parquet"),
        )


def bad_columns() -> Iterator[Case]:
    for name, values, words in (
        ("lists", pa.array([[1]] * N), ("'b'", "list", "ignore=['b']")),
        ("structs", pa.array([{"x": 1}] * N), ("'b'", "struct", "ignore=['b']")),
        ("maps", pa.array([[("k", 1)]] * N, pa.map_(pa.string(), pa.int8())), ("'b'", "map")),
        ("bytes", pa.array([b"\xff"] * N), ("'b'", "binary", "ignore=['b']")),
        ("durations", pa.array(range(N), pa.duration("s")), ("'b'", "duration")),
        ("times of day", pa.array(range(N), pa.time32("s")), ("'b'", "time32")),
        ("2^53 + 1", pa.array([2**53 + 1] * N), ("'b'", "beyond 2^53", "ignore=['b']")),
        ("uint64 2^64 - 1", pa.array([2**64 - 1] * N, pa.uint64()), ("'b'", "beyond 2^53")),
        ("inf", pa.array([1.0, float("inf")] * 6), ("'b'", "infinite", "data row 2")),
        ("-inf", pa.array([float("-inf"), 1.0] * 6), ("'b'", "infinite", "data row 1")),
    ):
        yield Case(f"column of {name}", partial(reads, values, "number", A, "parquet"), words)
        if "infinite" in words or "beyond 2^53" in words:
            yield Case(f"scan of {name}", partial(scans, values, A), words[:2])
    yield Case(
        "scan of a null",
        partial(scans, pa.array([None, 1.5] * 6), A),
        ("'b'", "data row 1", "fill"),
    )
    yield Case(
        "scan of text", partial(scans, pa.array(["u", "v"] * 6), A), ("'b'", "string", "Encoder")
    )
    for kind, values in (
        ("list", [[1]] * N),
        ("binary", [b"\xff"] * N),
        ("struct", [{"x": 1}] * N),
    ):
        yield Case(
            f"target of {kind}",
            partial(_table, {"a": A, "y": values}),
            ("the target 'y' holds", kind),
        )
    yield Case(
        "target null",
        partial(_table, {"a": A, "y": [None, *Y[1:]]}),
        ("the target 'y' is missing in data row 1",),
    )
    yield Case(
        "target NaN",
        partial(_table, {"a": A, "y": pa.array([NAN, *A[1:]])}),
        ("the target 'y' is missing in data row 1",),
    )
    yield Case(
        "target inf",
        partial(_table, {"a": A, "y": pa.array([*A[1:], float("inf")])}),
        ("the target 'y' is infinite", f"data row {N}"),
    )
    yield Case("no rows", partial(_table, {"a": A[:0], "y": Y[:0]}), ("no rows",))
    yield Case("names twice", _names_twice, ("called 'a'", "rename"))
    yield Case("no row groups", _no_row_groups, ("no rows",))


def _table(columns: dict[str, Any], library: Any) -> None:
    read_table(written(columns, "parquet"), "y")


def _names_twice(library: Any) -> None:
    rows = pa.Table.from_arrays([pa.array(A), pa.array(A), pa.array(Y)], ["a", "a", "y"])
    with pa.OSFile("rows.arrow", "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows)
    read_table("rows.arrow", "y")


def _no_row_groups(library: Any) -> None:
    pq.ParquetWriter("rows.parquet", pa.schema([("a", pa.float64()), ("y", pa.string())])).close()
    read_table("rows.parquet", "y")


ROWS = {"a": A, "s": ["x", "yy", "zzz"] * 4, "y": Y}


def damage() -> Iterator[Case]:
    for kind in ("parquet", "arrow"):
        for part in (0.05, 0.3, 0.6, 0.9, 0.99):
            yield Case(
                f"{kind} cut at {part:.0%}", partial(_cut, kind, part), ("damaged, cut short",)
            )
        for seed in range(5):
            yield Case(
                f"{kind}, 100 altered bytes, seed {seed}", partial(_altered, kind, seed), apart=True
            )
    yield Case(
        "parquet of zeros", partial(_raw, "rows.parquet", bytes(100)), ("damaged, cut short",)
    )
    yield Case(
        "parquet of text", partial(_raw, "rows.parquet", b"a,y\n1,n\n"), ("of another format",)
    )
    yield Case(
        "encrypted",
        partial(_raw, "rows.parquet", b"PARE" + bytes(50) + b"PARE"),
        ("of another format",),
    )
    yield Case("empty parquet", partial(_raw, "rows.parquet", b""), ("damaged, cut short",))
    yield Case("empty arrow", partial(_raw, "rows.arrow", b""), ("damaged, cut short",))
    yield Case("footer of 2 GB", _long_footer, ("damaged, cut short",))
    yield Case("a page altered", _altered_page, ("damaged",))


def _raw(name: str, content: bytes, library: Any) -> Any:
    with open(name, "wb") as file:
        file.write(content)
    return read_table(name, "y")


def _content(kind: str) -> tuple[str, bytes]:
    name = written(ROWS, kind, **({"write_page_checksum": True} if kind == "parquet" else {}))
    with open(name, "rb") as file:
        return name, file.read()


def _cut(kind: str, part: float, library: Any) -> None:
    name, whole = _content(kind)
    _raw(name, whole[: int(part * len(whole))], library)


def _altered(kind: str, seed: int, library: Any) -> None:
    """Any byte may change: the file is refused, or read; values of Parquet with checksums are then the old ones."""
    rng = np.random.default_rng(seed)
    name, whole = _content(kind)
    truth = read_table(name, "y").values("a")
    for _ in range(100):
        altered = bytearray(whole)
        altered[rng.integers(len(whole))] = rng.integers(256)
        try:
            found = _raw(name, bytes(altered), library)
        except LinsepError as error:
            check("rows." in str(error) or "y" in str(error), error)
            continue
        if kind == "parquet" and "a" in found.kinds:
            same(found.values("a"), truth)


def _long_footer(library: Any) -> None:
    name, whole = _content("parquet")
    _raw(name, whole[:-8] + b"\xff\xff\xff\x7fPAR1", library)


def _altered_page(library: Any) -> None:
    pq.write_table(
        pa.table(ROWS),
        "rows.parquet",
        compression="none",
        use_dictionary=False,
        write_page_checksum=True,
    )
    with open("rows.parquet", "rb") as file:
        raw = bytearray(file.read())
    raw[raw.index(A[1:3].tobytes()) + 3] ^= 255
    _raw("rows.parquet", bytes(raw), library)


def matrices() -> Iterator[Case]:
    X = A[:, None]
    y = np.array(Y)
    csr = sp.csr_array(X)
    parts = {
        "data": csr.data,
        "indices": csr.indices,
        "indptr": csr.indptr,
        "shape": np.array(csr.shape),
    }
    yield Case("npz", partial(_npz, {"X": X, "y": y}))
    yield Case("npz, CSR", partial(_npz, {**parts, "y": y}))
    yield Case("npz without X", partial(_npz, {"Z": X, "y": y}), ("Z", "an array X"))
    yield Case("npz, empty", partial(_npz, {}), ("nothing", "an array X"))
    yield Case(
        "npz, X of text", partial(_npz, {"X": y[:, None], "y": y}), ("X has shape", "numbers")
    )
    yield Case(
        "npz, X of one dimension", partial(_npz, {"X": A, "y": y}), ("X has shape (12,)", "matrix")
    )
    yield Case(
        "npz, y too short", partial(_npz, {"X": X, "y": y[:5]}), ("y has shape (5,)", "12 rows")
    )
    yield Case(
        "npz of objects", partial(_npz, {"X": X.astype(object), "y": y}), ("Python objects",)
    )
    yield Case(
        "npz, index too large",
        partial(_npz, {**parts, "indices": parts["indices"] + 5, "y": y}),
        ("damaged",),
    )
    yield Case(
        "npz, indptr falls",
        partial(_npz, {**parts, "indptr": parts["indptr"][::-1].copy(), "y": y}),
        ("damaged",),
    )
    yield Case("npz cut", _npz_cut, ("damaged, cut short",))
    for dtype in ("f2", "f4", "f8", ">f8", "i1", "u8", "bool"):
        yield Case(f"npy of {dtype}", partial(_npy, X.astype(dtype)))
    yield Case("npy in Fortran order", partial(_npy, np.asfortranarray(np.hstack([X, X + 1]))))
    yield Case("npy of text", partial(_npy, y[:, None]), ("numbers",))
    yield Case("npy of objects", partial(_npy, X.astype(object)), ("rows.npy",))
    yield Case("npy of one dimension", partial(_npy, A), ("shape (12,)",))
    yield Case("npy without rows", partial(_npy, X[:0]), ("rows",))
    yield Case("npy with NaN", partial(_npy, np.where(X > 3, NAN, X)), ("NaN",))
    yield Case("npy cut", _npy_cut, ("cut short",))
    yield Case("npy of 2^60 rows, in its header", _npy_forged, ("rows.npy",))
    yield Case("npy cut during a fit", partial(_npy_during, 200), ("rows.npy",), apart=True)
    yield Case("npy rewritten during a fit", partial(_npy_during, None), ("rows.npy",), apart=True)


def _npz(arrays: dict[str, Any], library: Any) -> None:
    np.savez("rows.npz", **arrays)
    found = read_table("rows.npz")
    matrix = found.matrix.toarray() if sp.issparse(found.matrix) else found.matrix
    close(matrix, A[:, None])
    same(found.y.tolist(), Y)


def _npz_cut(library: Any) -> None:
    np.savez("rows.npz", X=A[:, None])
    with open("rows.npz", "r+b") as file:
        file.truncate(150)
    read_table("rows.npz")


def _npy(X: Any, library: Any) -> None:
    np.save("rows.npy", X)
    with scan("rows.npy", target=np.array(Y[: len(X)])) as rows:
        model = LogisticRegression().fit(rows)
    close(model.coef_, LogisticRegression().fit(np.asarray(X, float), Y).coef_, 1e-3)


def _npy_cut(library: Any) -> None:
    np.save("rows.npy", A[:, None])
    with open("rows.npy", "r+b") as file:
        file.truncate(150)
    scan("rows.npy", target=np.array(Y))


def _npy_forged(library: Any) -> None:
    np.save("rows.npy", A[:, None])
    with open("rows.npy", "rb") as file:
        raw = file.read()
    with open("rows.npy", "wb") as file:
        file.write(raw.replace(b"(12, 1), }" + b" " * 17, b"(1152921504606846976, 1), }"))
    scan("rows.npy", target=np.array(Y))


def _npy_during(size: int | None, library: Any) -> None:
    """Another program changes the file between two passes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 5))
    np.save("rows.npy", X)
    y = (X[:, 0] + rng.normal(size=20_000) > 0).astype(int)
    with scan("rows.npy", target=y) as rows:
        read, count = rows.rows.blocks, [0]

        def changing() -> Any:
            count[0] += 1
            if count[0] == 2:
                if size is None:
                    np.save("rows.npy", -X)
                else:
                    with open("rows.npy", "r+b") as file:
                        file.truncate(size)
            return read()

        rows.rows.blocks = changing
        LogisticRegression().fit(rows)
        changing()
        changing()
        LogisticRegression().fit(rows)


def cases() -> Iterator[Case]:
    for family in (columns, bad_columns, damage, matrices):
        yield from family()
