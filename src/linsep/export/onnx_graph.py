"""Export to ONNX: a graph of a few standard operators in double precision."""

from __future__ import annotations

import functools
from importlib.metadata import version
from typing import Any

import numpy as np

from linsep.errors import Refused
from linsep.export.formula import Formula, Writer, formula
from linsep.export.onnx_texts import DOMAIN, text_scores
from linsep.pipelines import expressions as ex

_OPSET = 17
_IR_VERSION = 8


def onnx(model: Any) -> bytes:
    """Write the model as ONNX: input ``X`` (n, d) of doubles, outputs ``score``, ``label`` and ``probability``.

    A regression has the output ``score`` alone; classifiers without probabilities have no ``probability``. The
    operators are standard (MatMul, Softmax, Sigmoid, ArgMax, Gather) and compute in double precision, so predictions
    agree with linsep up to rounding. Needs the package onnx.

    For a pipeline whose columns are numbers, ``X`` is the input of its first step, with NaN for a missing value. If
    some columns hold texts, each column in use is a separate input (n, 1) with its name, of doubles or of strings; an
    empty string is a missing value. A row without a score has NaN for scores. Texts are split into words by an operator
    of onnxruntime (com.microsoft.Tokenizer), and the vectorizer must have lowercase=False.

    Parameters
    ----------
    model : fitted estimator, or Pipeline that ends in one

    Returns
    -------
    bytes
        The serialised model, to be written to a file.

    Raises
    ------
    Refused
        If a step of the pipeline cannot be expressed.
    ImportError
        If the package onnx is not installed.

    See Also
    --------
    sql : One SQL statement.

    Examples
    --------
    >>> import linsep
    >>> from linsep import export
    >>> model = linsep.LogisticRegression().fit([[0.0], [1.0]], ["no", "yes"])
    >>> isinstance(export.onnx(model), bytes)
    True
    """
    f = formula(model)
    library = _library()
    graph = Graph(library, f)
    graph.scores()
    if f.classes is not None:
        graph.labels()
    if f.link is not None:
        graph.probabilities()
    return graph.finish()


def _library() -> Any:
    try:
        import onnx as library  # noqa: PLC0415
    except ImportError as error:
        raise Refused("Writing ONNX needs the package onnx: pip install onnx.") from error
    return library


class Graph(Writer):
    """A graph of the terms (n, 1), tables (n, k) and answers of a formula; equal expressions share a node."""

    def __init__(self, library: Any, f: Formula) -> None:
        self.f = f
        self.texts = set(f.texts)
        self.make, self.types = library.helper, library.TensorProto
        self.numpy, self.check = library.numpy_helper, library.checker.check_model
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.outputs: list[Any] = []
        self._known: dict[Any, str] = {}
        self._count = 0
        self._columns: dict[int, str] = {}

    def named(self, name: str, value: Any) -> str:
        """Add a named constant."""
        self.constants.append(self.numpy.from_array(np.asarray(value), name))
        return name

    def node(self, kind: str, inputs: list[str], output: str = "", **attributes: Any) -> str:
        """Add an operation, and return the name of its output, by default a generated one."""
        if not output:
            self._count += 1
            output = f"t{self._count}"
        self.nodes.append(self.make.make_node(kind, inputs, [output], **attributes))
        return output

    def output(self, name: str, kind: Any, width: int | None) -> None:
        """Declare an output with n rows."""
        shape = ["n"] if width is None else ["n", width]
        self.outputs.append(self.make.make_tensor_value_info(name, kind, shape))

    def scores(self) -> None:
        """Add the scores t W' + b, with the contributions of the tables."""
        b = self.named("b", self.f.b)
        parts = []
        if self.f.W.shape[1]:
            W = self.named("W", self.f.W.T.copy())
            rows = "X" if self.f.plain else self.matrix()
            parts.append(self.node("MatMul", [rows, W], "products"))
        parts += [] if self.f.plain else self.table_scores()
        self.node(
            "Add", [parts[0] if len(parts) == 1 else self.node("Sum", parts, "sum"), b], "score"
        )
        self.output("score", self.types.DOUBLE, len(self.f.b))

    def labels(self) -> None:
        """Add the class of the largest score; for two classes, the second if the score is not negative."""
        classes = self.f.classes or []
        kind = self.types.STRING if isinstance(classes[0], str) else self.types.INT64
        if isinstance(classes[0], float):
            kind = self.types.DOUBLE
        dtype = {self.types.STRING: object, self.types.INT64: np.int64, self.types.DOUBLE: float}[
            kind
        ]
        known = self.named("classes", np.array(classes, dtype))
        if len(self.f.b) == 1:
            zero = self.named("zero", np.float64(0.0))
            axis = self.named("axis", np.array([1]))
            second = self.node("GreaterOrEqual", ["score", zero], "second")
            flat = self.node("Squeeze", [second, axis], "second_flat")
            place = self.node("Cast", [flat], "place", to=self.types.INT64)
        else:
            place = self.node("ArgMax", ["score"], "place", axis=1, keepdims=0)
        self.node("Gather", [known, place], "label")
        self.output("label", kind, None)

    def probabilities(self) -> None:
        """Add the class probabilities, equal to those of ``predict_proba``."""
        if self.f.link == "softmax":
            self.node("Softmax", ["score"], "probability", axis=1)
        elif self.f.link == "logistic":
            minus = self.node("Neg", ["score"], "minus")
            both = self.node("Concat", [minus, "score"], "both", axis=1)
            self.node("Sigmoid", [both], "probability")
        else:
            each = self.node("Sigmoid", ["score"], "each")
            axis = self.named("axis_of_sum", np.array([1]))
            total = self.node("ReduceSum", [each, axis], "total", keepdims=1)
            self.node("Div", [each, total], "probability")
        self.output("probability", self.types.DOUBLE, len(self.f.classes or []))

    def finish(self) -> bytes:
        """Check the model and return it as bytes."""
        kinds = {True: self.types.STRING, False: self.types.DOUBLE}
        inputs = [
            self.make.make_tensor_value_info(name, kinds[text], ["n", width])
            for name, text, width in self.inputs()
        ]
        graph = self.make.make_graph(self.nodes, "linsep", inputs, self.outputs, self.constants)
        model = self.make.make_model(
            graph,
            producer_name="linsep",
            producer_version=version("linsep"),
            opset_imports=[
                self.make.make_opsetid("", _OPSET),
                *([self.make.make_opsetid("ai.onnx.ml", 2)] if self.f.texts else []),
                *([self.make.make_opsetid(DOMAIN, 1)] if self.f.documents else []),
            ],
            ir_version=_IR_VERSION,
        )
        self.make.set_model_props(model, {"columns": "\n".join(self.f.columns)})
        self.check(model)
        data: bytes = model.SerializeToString()
        return data

    def inputs(self) -> list[tuple[str, bool, int]]:
        """Return name, whether it holds texts, and width of each input; to be called last."""
        if not self.texts:
            return [("X", False, len(self.f.columns))]
        return [(name, at in self.texts, 1) for at, name in sorted(self._columns.items())]

    def matrix(self) -> str:
        """Concatenate all terms to one matrix."""
        return self.node("Concat", [self.write(x) for x in self.f.terms], axis=1)

    def table_scores(self) -> list[str]:
        """Add the contributions of each table and each text to the scores."""
        made = []
        for table in self.f.tables:
            rows = np.vstack([table.values, table.default, table.missing])
            made.append(self._row(table.x, table.keys, rows))
        return made + [text_scores(self, document) for document in self.f.documents]

    def number(self, value: Any) -> str:
        """Add a constant, or reuse an equal one."""
        array = np.asarray(value)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._known:
            self._known[key] = self.named(f"c{len(self._known)}", array)
        return self._known[key]

    def write(self, x: ex.Expression, key: bool = False) -> str:
        """Write an expression; return the name of its tensor (n, 1)."""
        if x not in self._known:
            self._known[x] = super().write(x, key)
        return self._known[x]

    def _column(self, x: ex.Column, key: bool) -> str:
        if self.texts:
            return self._columns.setdefault(x.at, x.name)
        return self.node("Gather", ["X", self.number(np.array([x.at]))], axis=1)

    def _constant(self, x: ex.Constant, key: bool) -> str:
        some = self.f.used[0]
        shape = self.node("Shape", [self.write(ex.Column(some, self.f.columns[some]))])
        return self.node("Expand", [self.number(x.value), shape])

    def _level(self, x: ex.Level, key: bool) -> str:
        raise Refused(
            f"An ONNX graph cannot strip the blanks around the levels of the column {x.x.name!r}; export model[-1], "
            "and encode the rows with model[0], or use export.sql, export.c or export.python."
        )

    def _truth(self, x: ex.Truth, key: bool) -> str:
        return self.write(x.x)

    def _affine(self, x: ex.Affine, key: bool) -> str:
        moved = self.node("Sub", [self.write(x.x), self.number(x.centre)])
        scaled = self.node("Div", [moved, self.number(x.divisor)])
        return self.node("Add", [scaled, self.number(x.shift)])

    def _clipped(self, x: ex.Clipped, key: bool) -> str:
        bounds = [self.number(x.low), self.number(x.high)]
        return self.node("Clip", [self.write(x.x), *bounds])

    def _product(self, x: ex.Product, key: bool) -> str:
        factors = [self.write(factor) for factor in x.factors]
        return functools.reduce(lambda a, b: self.node("Mul", [a, b]), factors)

    def _lookup(self, x: ex.Lookup, key: bool) -> str:
        rows = np.array([*x.values, x.default, x.missing])[:, np.newaxis]
        return self._row(x.x, x.keys, rows)

    def _normalised(self, x: ex.Normalised, key: bool) -> str:
        return self.node("Div", [self.write(x.x), self._norm(x.row, x.norm)])

    def _missing(self, x: ex.Missing, key: bool) -> str:
        if isinstance(x.x, ex.Column) and x.x.at in self.texts:
            marker = "" if x.marker is None else str(x.marker)
            return self._row(x.x, (marker,), np.array([[1.0], [0.0], [0.0]]))
        return self.node("Cast", [self._is_marker(x.x, x.marker)], to=self.types.DOUBLE)

    def _filled(self, x: ex.Filled, key: bool) -> str:
        asked = self._is_marker(x.x, x.marker)
        return self.node("Where", [asked, self.number(float(x.value)), self.write(x.x)])

    def _is_marker(self, x: ex.Expression, marker: Any) -> str:
        if marker is None:
            return self.node("IsNaN", [self.write(x)])
        return self.node("Equal", [self.write(x), self.number(float(marker))])

    def _norm(self, row: tuple[ex.Expression, ...], kind: str) -> str:
        if (row, kind) not in self._known:
            together = self.node("Concat", [self.write(part) for part in row], axis=1)
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
        if ex.looks_up_texts(x, keys):
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
            [self.write(x)],
            domain="ai.onnx.ml",
            keys_strings=given,
            values_int64s=places,
            default_int64=m,
        )
        return self.node("Squeeze", [place, self.number(np.array([1]))])

    def _number_place(self, x: ex.Expression, keys: tuple[Any, ...]) -> str:
        """Position of the equal key among the m keys; m for other numbers, m + 1 for NaN."""
        value, axis, m = self.write(x), self.number(np.array([1])), len(keys)
        gap = self.node("Squeeze", [self.node("IsNaN", [value]), axis])
        other = self.number(np.int64(m))
        if keys:
            same = self.node("Equal", [value, self.number(np.array([keys], dtype=float))])
            hits = self.node("Cast", [same], to=self.types.INT64)
            hit = self.node(
                "Cast", [self.node("ReduceSum", [hits, axis], keepdims=0)], to=self.types.BOOL
            )
            first = self.node("ArgMax", [hits], axis=1, keepdims=0)
            other = self.node("Where", [hit, first, other])
        return self.node("Where", [gap, self.number(np.int64(m + 1)), other])
