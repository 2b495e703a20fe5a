"""F6: scale and conditioning. Whatever the numbers, the certificate holds, or a message says what cannot be done."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from scoreboard.f04_arrays import RNG, D, N, X, Y, with_value
from scoreboard.harness import Case

S = np.where(Y, 1.0, -1.0)
LINE = np.linspace(-1.0, 1.0, N)[:, None]
HILBERT = 1.0 / (np.arange(N)[:, None] + np.arange(1, 9)[None, :])
COLUMNS: dict[str, Any] = {
    "constant": np.column_stack([X, np.ones(N)]),
    "zero": np.column_stack([X, np.zeros(N)]),
    "all zero": np.zeros((N, D)),
    "duplicated": np.column_stack([X, X]),
    "collinear": np.column_stack([X, X.sum(axis=1)]),
    "nearly collinear": np.column_stack([X, X[:, 0] * (1 + 1e-14)]),
    "negated": np.column_stack([X, -X]),
    "d >> n": RNG.normal(size=(N, 200)),
    "identical rows": np.ones((N, D)),
    "opposite labels at each row": np.repeat(X[: N // 2], 2, axis=0),
    "Hilbert": HILBERT,
    "polynomial": np.vander(np.linspace(0, 1, N), 12),
    "timestamps": 1.7e9 + np.arange(N)[:, None] * 86400.0,
    "years": 1990.0 + np.arange(N)[:, None],
    "booleans": (X > 0).astype(float),
    "one column": X[:, :1],
    "one nonzero": np.eye(N)[:, :D],
    "identity": np.eye(N),
    "Cauchy": RNG.standard_cauchy(size=(N, D)),
    "separable": X + 10 * S[:, None],
    "margin 1e-12": S[:, None] * 1e-12 + np.zeros((N, D)),
    "touching hulls": np.where(Y, np.abs(X[:, 0]), -np.abs(X[:, 0]))[:, None]
    * (np.arange(N) > 1)[:, None],
    "sorted": np.sort(X, axis=0),
    "tiny differences": 1.0 + 1e-12 * X,
}
SIZES = (
    1e-300,
    1e-200,
    1e-100,
    1e-30,
    1e-12,
    1e-6,
    1e6,
    1e12,
    1e30,
    1e100,
    1e150,
    1e154,
    1e200,
    1e300,
)
SHIFTS = (1e3, 1e6, 1e8, 1e12, 1e16)


def fits(given: Any, library: Any, **params: Any) -> None:
    """The fit ends, with a certificate that an independent computation confirms."""
    library.confirm(library.fit(given, Y, **params), given, Y)


def case(name: str, given: Any, *words: str, **more: Any) -> Case:
    """Valid input; with words it may be refused instead, in these."""
    return Case(name, partial(fits, given), words or None, either=bool(words), **more)


def columns() -> Iterator[Case]:
    for name, given in COLUMNS.items():
        yield case(name, given)
    for size in SIZES:
        huge = ("too large to square", "Divide those columns") if size > 1e153 else ()
        yield case(f"all columns times {size:g}", X * size, *huge)
        yield case(f"one column times {size:g}", X * [1.0, size, 1.0], *huge)
        yield case(f"one entry {size:g}", with_value(size, 3, 1), *huge, slow=size >= 1e100)
    for shift in SHIFTS:
        yield case(f"columns shifted by {shift:g}", X + shift)
        yield case(f"a constant column of {shift:g}", np.column_stack([X, np.full(N, shift)]))
    yield case("denormals", X * 1e-310)
    yield case("one column of denormals", X * [1.0, 1e-310, 1.0])
    yield case("sizes 1e-150 to 1e150", X * [1e-150, 1.0, 1e150])


def strengths() -> Iterator[Case]:
    for C in (1e-300, 1e-12, 1e-6, 1e6, 1e12, 10**19, 1e30):
        yield Case(f"C = {C:g}", partial(fits, X, C=C))
    for C in (1e100, 1e300):
        yield Case(f"C = {C:g}", partial(fits, X, C=C), ("C",), either=True)
    for name in ("duplicated", "Hilbert", "one column", "timestamps", "identity"):
        for C in (1e-9, 1e9):
            yield Case(f"{name}, C = {C:g}", partial(fits, COLUMNS[name], C=C))


def bad_parameters() -> Iterator[Case]:
    for name, params, words in (
        ("C 0", {"C": 0}, ("C", "(0, inf]", "0")),
        ("C negative", {"C": -1.0}, ("C", "(0, inf]", "-1.0")),
        ("C NaN", {"C": np.nan}, ("C", "(0, inf]", "nan")),
        ("C text", {"C": "1"}, ("C must be a number", "'1'", "str")),
        ("C None", {"C": None}, ("C must be a number", "None")),
        ("C True", {"C": True}, ("C must be a number", "True")),
        ("C array", {"C": np.ones(2)}, ("C must be a number",)),
        ("C complex", {"C": 1j}, ("C must be a number",)),
        ("C 10^400", {"C": 10**400}, ("C is too large",)),
        ("tol 0", {"tol": 0.0}, ("tol", "between 0 and 1", "0.0", "relative gap")),
        ("tol negative", {"tol": -1e-3}, ("tol", "between 0 and 1", "-0.001")),
        ("tol NaN", {"tol": np.nan}, ("tol", "between 0 and 1", "nan")),
        ("tol inf", {"tol": np.inf}, ("tol", "between 0 and 1", "inf")),
        ("tol text", {"tol": "1e-6"}, ("tol must be a number", "'1e-6'")),
    ):
        yield Case(name, partial(_with_parameters, params), words)


def _with_parameters(params: dict[str, Any], library: Any) -> None:
    library.fit(X, Y, **params)


def cases() -> Iterator[Case]:
    for family in (columns, strengths, bad_parameters):
        yield from family()
