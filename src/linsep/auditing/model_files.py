"""Read models from files that contain no code: ONNX, skops and LIBLINEAR, never pickles."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.arrays import FloatArray
from linsep.auditing import liblinear_models, plain
from linsep.auditing.objectives import Given
from linsep.auditing.subject import Stated, Subject
from linsep.errors import BadInput, Refused

_PICKLES = (".pkl", ".pickle", ".joblib", ".dill", ".cloudpickle")
_PICKLE_OPCODE = b"\x80"
_ZIP = b"PK\x03\x04"


def load(path: str | os.PathLike[str]) -> Any:
    """Load the model in a file: a scikit-learn estimator (skops), an ``OnnxModel`` or a ``LiblinearModel``."""
    file = Path(path)
    try:
        content = file.read_bytes()
    except OSError as error:
        raise BadInput(f"{file}: {error.strerror or error}.") from error
    if file.suffix in _PICKLES or content[:1] == _PICKLE_OPCODE:
        raise Refused(
            f"{file} is a pickle, which runs code when it is loaded. Save the model with skops.io.dump, export it to "
            "ONNX, or audit it in Python, where you can decide to load it."
        )
    if content.startswith(b"solver_type"):
        return liblinear_models.parse(content.decode("ascii", errors="replace"), str(file))
    if content.startswith(_ZIP) or file.suffix == ".skops":
        return _skops(file)
    return _onnx(content, file)


def _skops(file: Path) -> Any:
    try:
        import skops.io as library  # noqa: PLC0415
    except ImportError as error:
        raise Refused(f"Reading {file} needs the package skops: pip install skops.") from error
    try:
        unknown = library.get_untrusted_types(file=file)
        if not unknown:
            return library.load(file, trusted=[])
    except Exception as error:  # the file may be any zip file
        raise BadInput(f"{file} is no model that skops can read: {error}") from error
    raise Refused(
        f"{file} holds types that skops does not trust: {', '.join(unknown[:5])}. Audit such a model in Python, "
        "where you can decide to trust them."
    )


@dataclass(frozen=True, eq=False)
class OnnxModel:
    """The linear function of an ONNX graph: scores of (X - shift) * scale."""

    shift: FloatArray
    scale: FloatArray
    coef: FloatArray  #: (k, d)
    intercept: FloatArray
    classes: npt.NDArray[Any] | None
    softmax: bool = False
    columns: tuple[str, ...] = ()

    def read(self, X: Any, given: Given, stated: Stated) -> Subject:
        """Return the stated objective at these coefficients, on the rows as the linear operator receives them."""
        d = self.coef.shape[1]
        if X.shape[1] != d:
            raise BadInput(f"The ONNX model has {d} features and X has {X.shape[1]} columns.")
        if self.shift.any() or (self.scale != 1.0).any():
            X = ((X.toarray() if hasattr(X, "toarray") else X) - self.shift) * self.scale
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


def _onnx(content: bytes, file: Path) -> OnnxModel:
    try:
        import onnx as library  # noqa: PLC0415
    except ImportError as error:
        raise Refused(f"Reading {file} needs the package onnx: pip install onnx.") from error
    try:
        model = library.load_model_from_string(content)
        found = len(model.graph.node) > 0
    except Exception:  # the class of protobuf's error depends on its version
        found = False
    if not found:
        raise BadInput(f"{file} is neither ONNX nor skops nor a model file of LIBLINEAR.")
    return _Walk(library, model, file).linear()


class _Walk:
    """Follow the nodes of a graph from its input to the linear operator."""

    def __init__(self, library: Any, model: Any, file: Path) -> None:
        self.file, self.graph, self.numpy = file, model.graph, library.numpy_helper
        self.value = library.helper.get_attribute_value
        self.constants = {each.name: self.numpy.to_array(each) for each in self.graph.initializer}
        for node in self.graph.node:
            if node.op_type == "Constant":
                held = {each.name: self.value(each) for each in node.attribute}
                self.constants[node.output[0]] = self.numpy.to_array(held["value"])
        properties = {each.key: each.value for each in model.metadata_props}
        self.columns = tuple(properties.get("columns", "").split("\n")) if properties else ()
        self.shift, self.scale = np.zeros(1), np.ones(1)

    def refuse(self, what: str) -> Refused:
        """Return the error for a graph that is not a linear function of scaled features."""
        return Refused(
            f"{self.file}: {what}. linsep.audit reads graphs of Cast, Identity, Scaler, Sub, Mul and Div, then "
            "LinearClassifier, LinearRegressor, Gemm, or MatMul and Add."
        )

    def linear(self) -> OnnxModel:
        """Follow the input to the linear operator and return the model."""
        inputs = [each for each in self.graph.input if each.name not in self.constants]
        if len(inputs) != 1:
            raise self.refuse(f"the graph has {len(inputs)} inputs, one matrix is needed")
        name = inputs[0].name
        for _ in range(len(self.graph.node)):
            users = [node for node in self.graph.node if name in node.input]
            if not users:
                break
            node = users[0]
            read = getattr(self, f"_{node.op_type}", None)
            if read is None:
                raise self.refuse(f"the operator {node.op_type} is none of them")
            found: OnnxModel | None = read(node, {a.name: self.value(a) for a in node.attribute})
            if found is not None:
                return found
            name = node.output[0]
        raise self.refuse("the graph has no linear operator")

    def _constant(self, node: Any) -> FloatArray:
        for each in node.input:
            if each in self.constants:
                return np.asarray(self.constants[each], dtype=np.float64)
        raise self.refuse(f"{node.op_type} has no constant")

    def _Cast(self, node: Any, facts: dict[str, Any]) -> None:  # noqa: N802
        pass

    _Identity = _Cast

    def _Scaler(self, node: Any, facts: dict[str, Any]) -> None:  # noqa: N802
        self._Sub(node, facts, np.asarray(facts.get("offset", [0.0]), dtype=np.float64))
        self._Mul(node, facts, np.asarray(facts.get("scale", [1.0]), dtype=np.float64))

    def _Sub(self, node: Any, facts: dict[str, Any], by: FloatArray | None = None) -> None:  # noqa: N802
        self.shift = self.shift + (self._constant(node) if by is None else by).ravel() / self.scale

    def _Mul(self, node: Any, facts: dict[str, Any], by: FloatArray | None = None) -> None:  # noqa: N802
        self.scale = self.scale * (self._constant(node) if by is None else by).ravel()

    def _Div(self, node: Any, facts: dict[str, Any]) -> None:  # noqa: N802
        self.scale = self.scale / self._constant(node).ravel()

    def _LinearClassifier(self, node: Any, facts: dict[str, Any]) -> OnnxModel:  # noqa: N802
        labels = facts.get("classlabels_ints") or [
            each.decode() for each in facts.get("classlabels_strings", [])
        ]
        classes = np.array(labels)
        after = {each.op_type for each in self.graph.node} | {_text(facts, "post_transform")}
        coef = np.asarray(facts["coefficients"], dtype=np.float64)
        b = np.asarray(facts.get("intercepts", [0.0]), dtype=np.float64)
        rows = coef.reshape(len(b), -1)
        if len(classes) == 2 and len(b) == 2:
            if (rows[0] != -rows[1]).any() or b[0] != -b[1]:
                raise self.refuse("the two rows of coefficients are not opposite")
            rows, b = rows[1:], b[1:]
        return self._build_model(rows, b, classes, bool(after & {"SOFTMAX", "Softmax"}))

    def _LinearRegressor(self, node: Any, facts: dict[str, Any]) -> OnnxModel:  # noqa: N802
        coef = np.asarray(facts["coefficients"], dtype=np.float64)
        k = int(facts.get("targets", 1))
        b = np.asarray(facts.get("intercepts", [0.0] * k), dtype=np.float64)
        return self._build_model(coef.reshape(k, -1), b, None, False)

    def _Gemm(self, node: Any, facts: dict[str, Any]) -> OnnxModel:  # noqa: N802
        if facts.get("alpha", 1.0) != 1.0 or facts.get("beta", 1.0) != 1.0 or facts.get("transA"):
            raise self.refuse("Gemm has factors")
        B = np.asarray(self.constants[node.input[1]], dtype=np.float64)
        rows = B if facts.get("transB") else B.T
        zero = np.zeros(len(rows))
        b = self.constants.get(node.input[2], zero) if len(node.input) > 2 else zero
        return self._build_model(
            rows, np.asarray(b, dtype=np.float64), self._labels(), self._softmax()
        )

    def _MatMul(self, node: Any, facts: dict[str, Any]) -> OnnxModel:  # noqa: N802
        rows = self._constant(node)
        rows = np.atleast_2d(rows.T)
        b = np.zeros(len(rows))
        for each in self.graph.node:
            if each.op_type == "Add" and node.output[0] in each.input:
                b = self._constant(each)
        return self._build_model(rows, b, self._labels(), self._softmax())

    def _labels(self) -> npt.NDArray[Any] | None:
        """Class labels from which the graph selects by index; None if there are none."""
        for node in self.graph.node:
            if (
                node.op_type in ("Gather", "ArrayFeatureExtractor")
                and node.input[0] in self.constants
            ):
                return np.ravel(self.constants[node.input[0]])
        return None

    def _softmax(self) -> bool:
        return any(node.op_type == "Softmax" for node in self.graph.node)

    def _build_model(
        self, rows: FloatArray, b: FloatArray, classes: npt.NDArray[Any] | None, softmax: bool
    ) -> OnnxModel:
        d = rows.shape[1]
        if classes is not None and classes.dtype == object:
            classes = np.array([e.decode() if isinstance(e, bytes) else str(e) for e in classes])
        return OnnxModel(
            np.broadcast_to(self.shift, (d,)),
            np.broadcast_to(self.scale, (d,)),
            *(rows, np.broadcast_to(b.ravel(), (len(rows),)), classes, softmax),
            self.columns if len(self.columns) == d else (),
        )


def _text(facts: dict[str, Any], name: str) -> str:
    value = facts.get(name, b"")
    return value.decode() if isinstance(value, bytes) else str(value)
