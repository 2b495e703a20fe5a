"""Export to ONNX: a graph of a few standard operators in double precision."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import numpy as np

from linsep.errors import Refused
from linsep.export.formula import Formula, plain
from linsep.export.onnx_terms import OnnxTerms
from linsep.export.onnx_texts import DOMAIN

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
    f = plain(model, "an ONNX graph")
    library = _library()
    graph = _Graph(library, f)
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


class _Graph:
    def __init__(self, library: Any, f: Formula) -> None:
        self.f = f
        self.make, self.types = library.helper, library.TensorProto
        self.numpy, self.check = library.numpy_helper, library.checker.check_model
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.outputs: list[Any] = []
        self.terms = OnnxTerms(f, self)

    def constant(self, name: str, value: Any) -> str:
        """Add a named constant."""
        self.constants.append(self.numpy.from_array(np.asarray(value), name))
        return name

    def node(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        """Add an operation."""
        self.nodes.append(self.make.make_node(kind, inputs, [output], **attributes))
        return output

    def output(self, name: str, kind: Any, width: int | None) -> None:
        """Declare an output with n rows."""
        shape = ["n"] if width is None else ["n", width]
        self.outputs.append(self.make.make_tensor_value_info(name, kind, shape))

    def scores(self) -> None:
        """Add the scores t W' + b, with the contributions of the tables."""
        b = self.constant("b", self.f.b)
        parts = []
        if self.f.W.shape[1]:
            W = self.constant("W", self.f.W.T.copy())
            rows = "X" if self.f.plain else self.terms.matrix()
            parts.append(self.node("MatMul", [rows, W], "products"))
        parts += [] if self.f.plain else self.terms.tables()
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
        known = self.constant("classes", np.array(classes, dtype))
        if len(self.f.b) == 1:
            zero = self.constant("zero", np.float64(0.0))
            axis = self.constant("axis", np.array([1]))
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
            axis = self.constant("axis_of_sum", np.array([1]))
            total = self.node("ReduceSum", [each, axis], "total", keepdims=1)
            self.node("Div", [each, total], "probability")
        self.output("probability", self.types.DOUBLE, len(self.f.classes or []))

    def finish(self) -> bytes:
        """Check the model and return it as bytes."""
        kinds = {True: self.types.STRING, False: self.types.DOUBLE}
        inputs = [
            self.make.make_tensor_value_info(name, kinds[text], ["n", width])
            for name, text, width in self.terms.inputs()
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
