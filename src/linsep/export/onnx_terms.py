"""Expressions of preprocessing steps as nodes of an ONNX graph."""

from __future__ import annotations

import functools
from typing import Any, Protocol

import numpy as np

from linsep.export.formula import Formula
from linsep.export.onnx_texts import text_scores
from linsep.pipelines import expressions as ex


class Graph(Protocol):
    """A graph to which constants and nodes can be added."""

    types: Any

    def constant(self, name: str, value: Any) -> str:
        """Add a constant, and return its name."""

    def node(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        """Add an operation, and return the name of its output."""


class OnnxTerms:
    """The terms (n, 1) and tables (n, k) of a formula; equal expressions share a node."""

    def __init__(self, f: Formula, graph: Graph) -> None:
        self.f, self.graph = f, graph
        self.texts = set(f.texts)
        self._known: dict[Any, str] = {}
        self._count = 0
        self._columns: dict[int, str] = {}

    def inputs(self) -> list[tuple[str, bool, int]]:
        """Return name, whether it holds texts, and width of each input; to be called last."""
        if not self.texts:
            return [("X", False, len(self.f.columns))]
        return [(name, at in self.texts, 1) for at, name in sorted(self._columns.items())]

    def matrix(self) -> str:
        """Concatenate all terms to one matrix."""
        return self.node("Concat", [self.term(x) for x in self.f.terms], axis=1)

    def tables(self) -> list[str]:
        """Add the contributions of each table and each text to the scores."""
        made = []
        for table in self.f.tables:
            rows = np.vstack([table.values, table.default, table.missing])
            made.append(self._row(table.x, table.keys, rows))
        return made + [text_scores(self, document) for document in self.f.documents]

    def node(self, kind: str, inputs: list[str], **attributes: Any) -> str:
        """Add an operation with a generated output name."""
        self._count += 1
        return self.graph.node(kind, inputs, f"t{self._count}", **attributes)

    def number(self, value: Any) -> str:
        """Add a constant, or reuse an equal one."""
        array = np.asarray(value)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._known:
            self._known[key] = self.graph.constant(f"c{len(self._known)}", array)
        return self._known[key]

    def term(self, x: ex.Expression) -> str:
        """Write an expression; return the name of its tensor (n, 1)."""
        if x not in self._known:
            self._known[x] = self._make(x)
        return self._known[x]

    def _make(self, x: ex.Expression) -> str:
        if isinstance(x, ex.Column):
            return self._column(x)
        if isinstance(x, ex.Truth):
            return self.term(x.x)
        if isinstance(x, ex.Affine):
            moved = self.node("Sub", [self.term(x.x), self.number(x.centre)])
            return self.node(
                "Add", [self.node("Div", [moved, self.number(x.divisor)]), self.number(x.shift)]
            )
        if isinstance(x, ex.Clipped):
            bounds = [self.number(x.low), self.number(x.high)]
            return self.node("Clip", [self.term(x.x), *bounds])
        if isinstance(x, ex.Product):
            factors = [self.term(factor) for factor in x.factors]
            return functools.reduce(lambda a, b: self.node("Mul", [a, b]), factors)
        if isinstance(x, ex.Lookup):
            rows = np.array([*x.values, x.default, x.missing])[:, np.newaxis]
            return self._row(x.x, x.keys, rows)
        if isinstance(x, ex.Normalised):
            return self.node("Div", [self.term(x.x), self._norm(x.row, x.norm)])
        return self._gap(x)

    def _column(self, x: ex.Column) -> str:
        if self.texts:
            return self._columns.setdefault(x.at, x.name)
        return self.node("Gather", ["X", self.number(np.array([x.at]))], axis=1)

    def _gap(self, x: ex.Expression) -> str:
        if isinstance(x, ex.Missing):
            if isinstance(x.x, ex.Column) and x.x.at in self.texts:
                return self._row(
                    x.x,
                    ("" if x.marker is None else str(x.marker),),
                    np.array([[1.0], [0.0], [0.0]]),
                )
            return self.node("Cast", [self._is_marker(x.x, x.marker)], to=self.graph.types.DOUBLE)
        assert isinstance(x, ex.Filled)
        asked = self._is_marker(x.x, x.marker)
        return self.node("Where", [asked, self.number(float(x.value)), self.term(x.x)])

    def _is_marker(self, x: ex.Expression, marker: Any) -> str:
        if marker is None:
            return self.node("IsNaN", [self.term(x)])
        return self.node("Equal", [self.term(x), self.number(float(marker))])

    def _norm(self, row: tuple[ex.Expression, ...], kind: str) -> str:
        if (row, kind) not in self._known:
            together = self.node("Concat", [self.term(part) for part in row], axis=1)
            self._known[row, kind] = self.norm_of(together, kind)
        return self._known[row, kind]

    def norm_of(self, rows: str, kind: str) -> str:
        """Add the norms (n, 1) of the rows of a tensor, with 1 in place of 0."""
        axis = self.number(np.array([1]))
        if kind == "l2":
            squares = self.node("Mul", [rows, rows])
            norm = self.node("Sqrt", [self.node("ReduceSum", [squares, axis], keepdims=1)])
        elif kind == "l1":
            norm = self.node("ReduceSum", [self.node("Abs", [rows]), axis], keepdims=1)
        else:
            norm = self.node("ReduceMax", [self.node("Abs", [rows])], axes=[1], keepdims=1)
        zero = self.node("Equal", [norm, self.number(0.0)])
        return self.node("Where", [zero, self.number(1.0), norm])

    def _row(self, x: ex.Expression, keys: tuple[Any, ...], rows: Any) -> str:
        """Select the row of a key; ``rows`` ends with those of other keys and of a missing value."""
        if any(isinstance(key, str) for key in keys):
            place = self._text_place(x, keys)
        else:
            place = self._number_place(x, keys)
        return self.node("Gather", [self.number(rows), place], axis=0)

    def _text_place(self, x: ex.Expression, keys: tuple[Any, ...]) -> str:
        m, given = len(keys), [str(key) for key in keys]
        places = list(range(m))
        if "" not in given:
            given, places = [*given, ""], [*places, m + 1]
        place = self.node(
            "LabelEncoder",
            [self.term(x)],
            domain="ai.onnx.ml",
            keys_strings=given,
            values_int64s=places,
            default_int64=m,
        )
        return self.node("Squeeze", [place, self.number(np.array([1]))])

    def _number_place(self, x: ex.Expression, keys: tuple[Any, ...]) -> str:
        """Position of the equal key among the m keys; m for other numbers, m + 1 for NaN."""
        value, axis, m = self.term(x), self.number(np.array([1])), len(keys)
        gap = self.node("Squeeze", [self.node("IsNaN", [value]), axis])
        other = self.number(np.int64(m))
        if keys:
            same = self.node("Equal", [value, self.number(np.array([keys], dtype=float))])
            hits = self.node("Cast", [same], to=self.graph.types.INT64)
            hit = self.node(
                "Cast", [self.node("ReduceSum", [hits, axis], keepdims=0)], to=self.graph.types.BOOL
            )
            first = self.node("ArgMax", [hits], axis=1, keepdims=0)
            other = self.node("Where", [hit, first, other])
        return self.node("Where", [gap, self.number(np.int64(m + 1)), other])
