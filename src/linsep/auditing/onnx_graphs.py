"""The linear operator of an ONNX graph, and the steps before it, evaluated in double precision."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from linsep.arrays import FloatArray, dense
from linsep.auditing import plain
from linsep.auditing.subject import Stated, Subject
from linsep.errors import BadInput, Refused
from linsep.sklearn_objectives import Given

_LINEAR = ("LinearClassifier", "LinearRegressor", "Gemm", "MatMul")
_INTEGERS = (6, 7)  # types of ONNX: int32, int64
_NUMBERS = (1, 10, 11, *_INTEGERS)  # also float, float16, double


@dataclass(frozen=True)
class _Node:
    """A node of the graph with the values of its attributes."""

    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    facts: dict[str, Any]

    def words(self, name: str) -> list[Any]:
        """Return the value of a list of numbers or texts, empty if it is not set."""
        found = self.facts.get(name, [])
        return [each.decode() if isinstance(each, bytes) else each for each in found]

    def numbers(self, name: str, default: float) -> FloatArray:
        """Return the value of a list of numbers."""
        return np.asarray(self.facts.get(name, [default]), dtype=np.float64)


def _cast(node: _Node, x: Any) -> Any:
    to = node.facts.get("to", 1)
    if to not in _NUMBERS or (not hasattr(x, "toarray") and x.dtype.kind in "OU"):
        raise Refused("Cast of or to texts")
    return np.trunc(x) if to in _INTEGERS else x


def _same(node: _Node, x: Any, *rest: Any) -> Any:
    return x


def _scaler(node: _Node, x: Any) -> Any:
    return (dense(x) - node.numbers("offset", 0.0)) * node.numbers("scale", 1.0)


def _join(node: _Node, *parts: Any) -> Any:
    if node.facts.get("axis", 1) not in (1, -1):
        raise Refused("Concat of rows")
    return np.hstack([dense(part) for part in parts])


def _reshape(node: _Node, x: Any, shape: Any) -> Any:
    if len(shape) != 2 or shape[1] not in (-1, x.shape[1]) or shape[0] not in (-1, 0, len(x)):
        raise Refused("Reshape of rows")
    return x


def _one_hot(node: _Node, x: Any) -> Any:
    known = node.words("cats_strings") or node.words("cats_int64s")
    found = np.hstack([np.asarray(x[:, [j]] == np.array(known, object)) for j in range(x.shape[1])])
    if not node.facts.get("zeros", 1):
        unknown = found.reshape(len(x), x.shape[1], -1).any(axis=2) == 0
        if unknown.any():
            value = x[tuple(np.argwhere(unknown)[0])]
            raise BadInput(f"X holds {value!r}, a category that the ONNX model does not know.")
    return found.astype(np.float64)


def _impute(node: _Node, x: Any) -> Any:
    gap = float(node.facts.get("replaced_value_float", np.nan))
    fill = node.numbers("imputed_value_floats", np.nan)
    return np.where(np.isnan(x) if np.isnan(gap) else x == gap, fill, x)


def _select(node: _Node, x: Any, columns: Any) -> Any:
    if node.kind == "Gather" and node.facts.get("axis", 0) not in (1, -1):
        raise Refused("Gather of rows")
    return x[:, np.ravel(columns)]


#: What the steps before the linear operator do, on rows in double precision; texts are arrays of objects.
_STEPS: dict[str, Callable[..., Any]] = {
    "Cast": _cast,
    "CastLike": _same,
    "Identity": _same,
    "Scaler": _scaler,
    "Sub": lambda _, x, y: dense(x) - y,
    "Add": lambda _, x, y: dense(x) + y,
    "Mul": lambda _, x, y: dense(x) * y,
    "Div": lambda _, x, y: dense(x) / y,
    "MatMul": lambda _, x, y: x @ y,
    "Concat": _join,
    "FeatureVectorizer": _join,
    "Reshape": _reshape,
    "OneHotEncoder": _one_hot,
    "Imputer": _impute,
    "ArrayFeatureExtractor": _select,
    "Gather": _select,
}


@dataclass(frozen=True, eq=False)
class OnnxModel:
    """The linear operator of an ONNX graph, and the steps that lead from the inputs to it."""

    file: Path
    inputs: dict[str, int]  #: number of columns of each input; 0 if it is not stated
    nodes: tuple[_Node, ...]  #: the steps, in order
    last: str  #: the value that the linear operator receives
    constants: dict[str, npt.NDArray[Any]]
    coef: FloatArray  #: (k, d)
    intercept: FloatArray
    classes: npt.NDArray[Any] | None
    softmax: bool = False
    columns: tuple[str, ...] = ()

    def transform(self, X: Any) -> Any:
        """Return the rows that the linear operator receives, computed in double precision."""
        values: dict[str, Any] = {**self.constants, **self._split(X)}
        for node in self.nodes:
            try:
                given = [values[name] for name in node.inputs if name]
                values[node.outputs[0]] = _STEPS[node.kind](node, *given)
            except Refused as error:
                raise _refusal(self.file, f"{error} is not supported") from None
            except (ValueError, TypeError, IndexError) as error:
                raise BadInput(
                    f"{self.file}: {node.kind} cannot use these rows ({error}). Pass the columns that the model was "
                    "fitted to, in that order."
                ) from error
        found = values[self.last]
        if found.shape[1] != self.coef.shape[1]:
            raise BadInput(
                f"The ONNX model has {self.coef.shape[1]} features and X has {found.shape[1]} columns."
            )
        return found

    def _split(self, X: Any) -> dict[str, Any]:
        """Return the columns of X for each input: by name if X has the names of the model, otherwise in order."""
        X = self._matrix(X)
        unstated = X.shape[1] if len(self.inputs) == 1 else 1
        widths = [width or unstated for width in self.inputs.values()]
        if X.shape[1] != sum(widths):
            raise BadInput(
                f"{self.file} takes {sum(widths)} columns, and X has {X.shape[1]}: pass the columns that the model was "
                "fitted to, in that order."
            )
        if len(widths) == 1:
            return dict.fromkeys(self.inputs, X)
        cuts = np.cumsum([0, *widths])
        parts = [_as_numbers(X[:, a:b]) for a, b in pairwise(cuts)]
        return dict(zip(self.inputs, parts, strict=True))

    def _matrix(self, X: Any) -> Any:
        """Return the columns of a data frame that the model names, or all of them; arrays as they are."""
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        if not isinstance(frame, nw.DataFrame):
            return X if hasattr(X, "toarray") else _as_numbers(np.asarray(X))
        known = {re.sub(r"\W", "_", name): name for name in frame.columns}  # as skl2onnx does
        known |= {name: name for name in frame.columns}
        wanted = self.columns or (tuple(self.inputs) if len(self.inputs) > 1 else ())
        names = [known[name] for name in wanted if name in known]
        if names and len(names) < len(wanted):
            absent = [name for name in wanted if name not in known]
            raise BadInput(
                f"{self.file} needs the columns {_shown(wanted)}; X lacks {_shown(absent)}."
            )
        parts = [np.asarray(frame[name].to_numpy()) for name in names or frame.columns]
        if all(part.dtype.kind in "fiub" for part in parts):
            return np.column_stack([part.astype(np.float64) for part in parts])
        return np.column_stack([part.astype(object) for part in parts])

    def read(self, X: Any, given: Given, stated: Stated) -> Subject:
        """Return the stated objective at these coefficients, on the rows as the linear operator receives them."""
        if stated.loss is None and self.softmax and len(self.coef) > 1:
            stated = replace(stated, loss="multinomial")
        coef, intercept, classes = self.coef, self.intercept, self.classes
        if classes is not None:  # sort the classes
            order = np.argsort(classes)
            if len(coef) == len(classes):
                coef, intercept = coef[order], intercept[order]
            elif order[0] != 0:  # a single score, of the second class
                coef, intercept = -coef, -intercept
            classes = classes[order]
        return plain.read("ONNX model", coef, intercept, X, given, stated, classes)


def _shown(names: Any) -> str:
    some = list(names)
    return ", ".join(map(repr, some[:5])) + (", ..." if len(some) > 5 else "")


def _as_numbers(X: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return numbers as float64; columns with texts as objects."""
    try:
        return X.astype(np.float64) if X.dtype.kind in "fiubO" else X.astype(object)
    except (TypeError, ValueError):
        return X


def _refusal(file: Path, what: str) -> Refused:
    """Return the error for a graph that is not a linear function of features that audit can compute."""
    return Refused(
        f"{file}: {what}. linsep.audit reads graphs of {', '.join(_STEPS)}, then "
        "LinearClassifier, LinearRegressor, Gemm, or MatMul and Add."
    )


def read_graph(library: Any, model: Any, file: Path) -> OnnxModel:
    """Return the model whose linear operator is the last one of a graph."""
    return _Graph(library, model, file).model()


class _Graph:
    def __init__(self, library: Any, model: Any, file: Path) -> None:
        self.file = file
        value, array = library.helper.get_attribute_value, library.numpy_helper.to_array
        self.nodes = [
            _Node(
                node.op_type,
                tuple(node.input),
                tuple(node.output),
                {each.name: value(each) for each in node.attribute},
            )
            for node in model.graph.node
        ]
        self.constants = {each.name: array(each) for each in model.graph.initializer}
        for node in self.nodes:
            if node.kind == "Constant" and "value" in node.facts:
                self.constants[node.outputs[0]] = array(node.facts["value"])
        self.inputs = {
            each.name: _width(each) for each in model.graph.input if each.name not in self.constants
        }
        properties = {each.key: each.value for each in model.metadata_props}
        self.columns = tuple(properties["columns"].split("\n")) if "columns" in properties else ()

    def model(self) -> OnnxModel:
        """Find the last linear operator, its coefficients, and the steps before it."""
        linear = [node for node in self.nodes if node.kind in _LINEAR]
        if not linear:
            raise _refusal(self.file, "the graph has no linear operator")
        node = linear[-1]
        rows, b, classes = getattr(self, f"_{node.kind}")(node)
        if classes is not None and classes.dtype == object:
            classes = np.array([e.decode() if isinstance(e, bytes) else str(e) for e in classes])
        b = np.broadcast_to(b.ravel(), (len(rows),))
        after = {each.kind for each in self.nodes} | {_text(node, "post_transform")}
        if classes is not None and len(classes) == len(rows) == 2:
            if (rows[0] != -rows[1]).any() or b[0] != -b[1]:
                raise _refusal(self.file, "the two rows of coefficients are not opposite")
            rows, b = rows[1:], b[1:]
        steps = self._steps_to(node.inputs[0])
        softmax = bool(after & {"SOFTMAX", "Softmax"})
        return OnnxModel(
            *(self.file, self.inputs, steps, node.inputs[0], self.constants),
            *(rows, b, classes, softmax, self.columns),
        )

    def _steps_to(self, name: str) -> tuple[_Node, ...]:
        """Return the nodes that compute a value from the inputs, in order."""
        needed, steps = {name}, []
        for node in reversed(self.nodes):
            if needed.isdisjoint(node.outputs) or node.kind == "Constant":
                continue
            if node.kind not in _STEPS:
                raise _refusal(self.file, f"the operator {node.kind} is none of them")
            needed.update(node.inputs)
            steps.append(node)
        return tuple(reversed(steps))

    def _constant(self, node: _Node) -> FloatArray:
        for each in node.inputs:
            if each in self.constants:
                return np.asarray(self.constants[each], dtype=np.float64)
        raise _refusal(self.file, f"{node.kind} has no constant")

    def _LinearClassifier(self, node: _Node) -> Any:  # noqa: N802
        classes = node.words("classlabels_ints") or node.words("classlabels_strings")
        b = node.numbers("intercepts", 0.0)
        return node.numbers("coefficients", 0.0).reshape(len(b), -1), b, np.array(classes)

    def _LinearRegressor(self, node: _Node) -> Any:  # noqa: N802
        k = int(node.facts.get("targets", 1))
        return (
            node.numbers("coefficients", 0.0).reshape(k, -1),
            node.numbers("intercepts", 0.0),
            None,
        )

    def _Gemm(self, node: _Node) -> Any:  # noqa: N802
        facts = node.facts
        if facts.get("alpha", 1.0) != 1.0 or facts.get("beta", 1.0) != 1.0 or facts.get("transA"):
            raise _refusal(self.file, "Gemm has factors")
        rows = self._constant(replace(node, inputs=node.inputs[1:2]))
        b = (
            self._constant(replace(node, inputs=node.inputs[2:]))
            if node.inputs[2:]
            else np.zeros(1)
        )
        return rows if facts.get("transB") else rows.T, b, self._labels()

    def _MatMul(self, node: _Node) -> Any:  # noqa: N802
        rows = np.atleast_2d(self._constant(node).T)
        added = [x for x in self.nodes if x.kind == "Add" and node.outputs[0] in x.inputs]
        return rows, self._constant(added[0]) if added else np.zeros(1), self._labels()

    def _labels(self) -> npt.NDArray[Any] | None:
        """Class labels from which the graph selects by index; None if there are none."""
        for node in self.nodes:
            if (
                node.kind in ("Gather", "ArrayFeatureExtractor")
                and node.inputs[0] in self.constants
            ):
                return np.ravel(self.constants[node.inputs[0]])
        return None


def _width(value: Any) -> int:
    """Return the number of columns of an input; 0 if it is not stated."""
    shape = value.type.tensor_type.shape.dim
    return int(shape[1].dim_value) if len(shape) > 1 else 0


def _text(node: _Node, name: str) -> str:
    value = node.facts.get(name, b"")
    return value.decode() if isinstance(value, bytes) else str(value)
