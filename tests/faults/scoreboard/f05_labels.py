"""F5: labels, targets, weights."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from scoreboard.f04_arrays import RNG, N, T, X, Y, replaced
from scoreboard.harness import Case, check, close, same

ONES = np.ones(N)


def labels(given: Any, codes: Any, library: Any) -> None:
    """A fit to these labels has the coefficients of one to 0, 1, ..., and predicts the labels themselves."""
    given = given() if callable(given) else given
    model, truth = library.fit(X, given), library.fit(X, codes)
    close(model.coef_, truth.coef_, 1e-5, 1e-7)
    if hasattr(model, "predict"):
        found = model.predict(X)
        expected = np.asarray(model.classes_)[truth.predict(X)]
        same(list(found), list(expected))
        given_set = set(np.ravel(np.asarray(given, dtype=object)).tolist())
        check(set(np.asarray(model.classes_).tolist()) == given_set, f"classes {model.classes_!r}")


def right(name: str, given: Any, codes: Any = Y, **more: Any) -> Case:
    return Case(name, partial(labels, given, codes), **more)


def wrong(name: str, given: Any, *words: str, **more: Any) -> Case:
    return Case(
        name, lambda library: library.fit(X, given() if callable(given) else given), words, **more
    )


THREE = np.arange(N) % 3


def names() -> Iterator[Case]:
    for low, high in ((0, 1), (-1, 1), (1, 2), (3, 7), (-5, -2), (0, 255), (-(2**62), 2**62)):
        yield right(f"labels {low}, {high}", np.where(Y, high, low), either=abs(low) > 2**53)
    for dtype in ("i1", "u1", "i2", "u4", "u8", "f4", "f2", "bool", ">i4", ">f8", "g", object):
        yield right(f"labels of {dtype}", Y.astype(dtype))
    yield right("labels of floats", Y.astype(float))
    yield right("strings", np.where(Y, "yes", "no"))
    yield right("string objects", np.where(Y, "yes", "no").astype(object))
    yield right("string list", np.where(Y, "yes", "no").tolist())
    yield right("numeric strings 01 and 1", np.where(Y, "1", "01"))
    yield right("empty string", np.where(Y, "x", ""))
    yield right("blanks", np.where(Y, "a ", "a"))
    yield right("Greek and emoji", np.where(Y, "\U0001f600", "\u03c9"))
    yield right("long names", np.where(Y, "b" * 10_000, "a" * 10_000))
    yield right(
        "StringDType", lambda: np.where(Y, "yes", "no").astype(np.dtypes.StringDType()), either=True
    )
    yield right("three classes", THREE, THREE)
    yield right("three strings", np.array(["a", "b", "c"])[THREE], THREE)
    yield right("classes far apart", np.array([0, 7, 10**9])[THREE], THREE)
    yield right("read-only", np.frombuffer(Y.tobytes(), Y.dtype))
    yield right("every other", np.repeat(Y, 2)[::2])
    yield right("pandas series", lambda: _series(np.where(Y, "yes", "no")))
    yield right("pandas category", lambda: _series(np.where(Y, "yes", "no"), "category"))
    yield right("pandas Int64", lambda: _series(Y, "Int64"))
    yield right("pandas boolean", lambda: _series(Y, "boolean"))
    yield right("pandas string", lambda: _series(np.where(Y, "yes", "no"), "string"))
    yield right("pandas index of its own", lambda: _series(Y).set_axis(np.arange(N)[::-1] * 3))
    yield right("polars series", lambda: _polars(np.where(Y, "yes", "no")))
    yield right("pyarrow array", lambda: _arrow(np.where(Y, "yes", "no")), either=True)
    yield right("tuple", tuple(Y.tolist()))


def _series(values: Any, dtype: Any = None) -> Any:
    import pandas as pd

    return pd.Series(values, dtype=dtype)


def _polars(values: Any) -> Any:
    import polars as pl

    return pl.Series(values)


def _arrow(values: Any) -> Any:
    import pyarrow as pa

    return pa.array(values)


def bad_labels() -> Iterator[Case]:
    yield wrong("one class", ONES, "one class only", "1.0", "another class")
    yield wrong("one string", np.full(N, "a"), "one class only", "'a'")
    yield wrong("fractions", T, "Unknown label type: continuous", "row 0", "regressor")
    yield wrong("one fraction", replaced(Y.astype(float), 5, 0.5), "continuous", "0.5 at row 5")
    yield wrong("NaN", replaced(Y.astype(float), 5, np.nan), "Input y contains NaN", "row 5")
    yield wrong("inf", replaced(Y.astype(float), 5, np.inf), "Input y contains infinity", "row 5")
    yield wrong("None", replaced(Y.astype(object), 5, None), "missing", "row 5")
    yield wrong(
        "NaN among strings",
        replaced(np.where(Y, "a", "b").astype(object), 5, np.nan),
        "missing",
        "row 5",
    )
    yield wrong("pandas NA", lambda: _series([None, *Y[1:]], "Int64"), "row 0")
    yield wrong(
        "pandas NA category",
        lambda: _series([None, *np.where(Y, "a", "b")[1:]], "category"),
        "row 0",
    )
    yield wrong("polars null", lambda: _polars([None, *Y[1:].tolist()]), "row 0")
    yield wrong("text and numbers", replaced(Y.astype(object), 5, "a"), "int, str", "astype(str)")
    yield wrong("text and numbers in a list", ["a", *Y[1:].tolist()], "int, str", "astype(str)")
    yield wrong("tuples", lambda: _filled((1, 2)), "y")
    yield wrong("lists", lambda: _filled([1]), "y")
    yield wrong("bytes", Y.astype("S1"), "bytes", "decode")
    yield wrong(
        "times", np.array(["2020", "2021"], "datetime64[Y]")[Y], "datetime64", "astype(str)"
    )
    yield wrong("complex", Y + 1j, "Complex data not supported")
    yield wrong("10^400", np.array([10**400, 1] * (N // 2)), "beyond 64 bits", "astype(str)")
    yield wrong("masked", np.ma.array(Y, mask=Y), "masked")
    yield wrong("not given", None, "requires y to be passed")
    yield wrong("too short", Y[:-1], "X has 30 rows, y has 29")
    yield wrong("too long", np.append(Y, 1), "X has 30 rows, y has 31")
    yield wrong("empty", Y[:0], "X has 30 rows, y has 0")
    yield wrong("two columns", np.column_stack([Y, Y]), "1d array", "(30, 2)")
    yield wrong("one row of many", Y[None, :], "y")
    yield wrong("a number", 1, "y")
    yield wrong("a string", "yes", "y")
    yield wrong("a dict", {0: 1}, "y")


def _filled(value: Any) -> Any:
    given = np.empty(N, object)
    for at in range(N):
        given[at] = value
    return given


def classes() -> Iterator[Case]:
    yield Case("as many classes as rows", _as_many_classes)
    yield Case("1,000 classes", partial(_many_classes, 1000), slow=True, apart=True, limit=120)
    yield Case(
        "10,000 classes of 200 columns: too large for memory, in words",
        _too_many_classes,
        ("memory", "classes"),
        apart=True,
        slow=True,
        limit=120,
        memory=2 << 30,
    )
    yield Case("two rows", lambda library: library.fit(X[:2], [0, 1]))
    yield Case("one row", lambda library: library.fit(X[:1], [0]), ("one class only",))
    yield Case(
        "class weight of an absent class",
        partial(_class_weight, {5: 2.0}),
        ("class_weight", "5", "0, 1"),
    )
    for value, words in (
        (-1.0, "-1.0"),
        (np.nan, "nan"),
        (np.inf, "inf"),
        ("2", "'2'"),
        (None, "None"),
    ):
        yield Case(
            f"class weight {value!r}",
            partial(_class_weight, {0: value}),
            ("class_weight[0]", words),
        )
    yield Case("class weight 0", partial(_class_weight, {0: 0.0}), ("class 0", "zero"))
    yield Case(
        "class weight unknown word", partial(_class_weight, "even"), ("class_weight", "'even'")
    )
    yield Case("class weight a list", partial(_class_weight, [1, 2]), ("class_weight", "[1, 2]"))
    yield Case(
        "class weight of other type", partial(_class_weight, {"0": 2.0}), ("class_weight", "'0'")
    )


def _class_weight(given: Any, library: Any) -> None:
    library.fit(X, Y, class_weight=given)


def _as_many_classes(library: Any) -> None:
    model = library.fit(X[:6], np.arange(6))
    same(len(model.classes_), 6)


def _many_classes(count: int, library: Any) -> None:
    rows = np.random.default_rng(1).normal(size=(2 * count, 5))
    model = library.fit(rows, np.arange(2 * count) % count)
    same(len(model.classes_), count)


def _too_many_classes(library: Any) -> None:
    rows = np.random.default_rng(1).normal(size=(20_000, 200))
    library.fit(rows, np.arange(20_000) % 10_000, time_limit=5.0)


def weights() -> Iterator[Case]:
    for name, value, words in (
        ("negative", replaced(ONES, 9, -1.0), ("must not be negative", "-1.0", "row 9")),
        ("minus denormal", replaced(ONES, 9, -5e-324), ("must not be negative", "row 9")),
        ("NaN", replaced(ONES, 9, np.nan), ("sample_weight contains NaN", "row 9")),
        ("inf", replaced(ONES, 9, np.inf), ("sample_weight contains infinity", "row 9")),
        ("all zero", 0 * ONES, ("zero in every row", "positive weight")),
        ("a class of zeros", Y.astype(float), ("class 0", "zero", "leave those rows out")),
        ("1e308", 1e308 * ONES, ("overflow", "1e+308", "multiply C")),
        ("too short", ONES[:-1], ("(29,)", "(30,)")),
        ("two columns", np.ones((N, 2)), ("(30, 2)", "(30,)")),
        ("text", np.full(N, "1"), ("numbers", "<U1")),
        ("objects", np.full(N, {}), ("numbers",)),
        ("None among numbers", replaced(ONES.astype(object), 3, None), ("sample_weight", "row 3")),
        ("complex", ONES + 1j, ("numbers", "complex128")),
        ("masked", np.ma.array(ONES, mask=Y), ("masked", "sample_weight")),
        ("a string", "balanced", ("numbers",)),
        ("empty", [], ("(0,)", "(30,)")),
        ("times", np.full(N, np.datetime64("2020")), ("numbers",)),
    ):
        yield Case(f"weights {name}", partial(_weighted, value), words)
    counts = RNG.integers(0, 4, N)
    counts[:2] = 1
    for dtype in (float, int, "f4", "u1", "i8", object, ">f8", "bool"):
        yield Case(
            f"weights of {dtype} count rows", partial(_repetition, counts.astype(dtype), np.asarray)
        )
    yield Case("weights in a list", partial(_repetition, counts, list))
    yield Case("one weight for all", partial(_one_weight, 2.0))
    for size in (1e-308, 1e-300, 1e-150, 1e-12, 1e12, 1e50, 1e99):
        yield Case(f"weights of {size:g}", partial(_size, size))
    for reach in (10, 50, 99):
        yield Case(f"weights from 1 to 1e{reach}", partial(_wide, reach))
    yield Case("weights of denormals", partial(_confirmed, np.full(N, 5e-324)))


def _weighted(weight: Any, library: Any) -> None:
    library.fit(X, Y, weight)


def _repetition(counts: Any, make: Any, library: Any) -> None:
    weight = make(counts)
    times = np.asarray(counts).astype(int)
    model = library.fit(X, Y, weight, tol=1e-10)
    truth = library.fit(np.repeat(X, times, axis=0), np.repeat(Y, times), tol=1e-10)
    close(model.coef_, truth.coef_, 1e-3, 1e-6)


def _one_weight(value: float, library: Any) -> None:
    close(library.fit(X, Y, value).coef_, library.fit(X, Y, np.full(N, value)).coef_, 1e-5, 1e-8)


def _size(size: float, library: Any) -> None:
    """Weights and C matter as a product only."""
    weight = np.full(N, size)
    model = library.fit(X, Y, weight, C=1.0 / size)
    close(model.coef_, library.fit(X, Y).coef_, 1e-3, 1e-6)
    library.confirm(model, X, Y, weight)


def _wide(reach: int, library: Any) -> None:
    _confirmed(np.logspace(0, reach, N), library)


def _confirmed(weight: Any, library: Any) -> None:
    library.confirm(library.fit(X, Y, weight), X, Y, weight)


def targets() -> Iterator[Case]:
    for name, value, words in (
        ("NaN", replaced(T, 5, np.nan), ("Input y contains NaN", "row 5")),
        ("inf", replaced(T, 5, np.inf), ("Input y contains infinity", "row 5")),
        ("text", np.full(N, "a"), ("numbers", "'a'", "classifier")),
        ("text among objects", replaced(T.astype(object), 3, "a"), ("numbers", "'a'", "row 3")),
        ("None", replaced(T.astype(object), 3, None), ("numbers", "row 3")),
        ("two columns", np.column_stack([T, T]), ("1d array", "(30, 2)", "one model each")),
        ("complex", T + 1j, ("Complex data not supported",)),
        ("not given", None, ("requires y to be passed",)),
        ("too long", np.append(T, 1.0), ("X has 30 rows, y has 31",)),
        ("10^400", replaced(T.astype(object), 3, 10**400), ("y", "row 3")),
        (
            "longdouble too large",
            replaced(T.astype("g"), 3, np.longdouble("1e4000")),
            ("infinity", "row 3"),
        ),
        ("times", np.full(N, np.datetime64("2020")), ("numbers",)),
        ("masked", np.ma.array(T, mask=Y), ("masked",)),
    ):
        yield Case(f"targets {name}", partial(_regressed, value), words)
    for dtype in ("f4", "f2", "i8", "u1", "bool", ">f8", object, "g"):
        given = np.abs(np.round(T)).astype(dtype)
        yield Case(f"targets of {dtype}", partial(_same_targets, given))
    for size in (1e-300, 1e-100, 1e100, 1e150):
        yield Case(f"targets of {size:g}", partial(_regressed, T * size), ("y",), either=True)
    yield Case("constant targets", partial(_constant_targets, 3.0))


def _regressed(t: Any, library: Any) -> None:
    model = library.regress(X, t)
    check(np.isfinite(model.coef_).all(), "coefficients that are not finite")


def _same_targets(t: Any, library: Any) -> None:
    close(library.regress(X, t).coef_, library.regress(X, t.astype(float)).coef_, 1e-3, 1e-6)


def _constant_targets(value: float, library: Any) -> None:
    model = library.regress(X, np.full(N, value))
    close(np.ravel(model.coef_), np.zeros(3), 0, 1e-6)


def cases() -> Iterator[Case]:
    for family in (names, bad_labels, classes, weights, targets):
        yield from family()
