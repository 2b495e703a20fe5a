"""Read models from files that contain no code: ONNX, skops and LIBLINEAR, never pickles."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from linsep.auditing import liblinear_models, onnx_graphs
from linsep.auditing.onnx_graphs import OnnxModel
from linsep.errors import BadInput, Refused

_PICKLES = (".pkl", ".pickle", ".joblib", ".dill", ".cloudpickle")
_PICKLE_OPCODE = b"\x80"
_OURS = b"LINSEP\r\n"  # a model file of linsep
_ZIP = b"PK\x03\x04"
#: Types that some steps of scikit-learn store, that run no code, and that skops asks about.
_HARMLESS = ["numpy.dtype"]


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
    if content.startswith(_OURS):
        raise Refused(
            f"{file} is a model of linsep, which carries its own certificate: check it with `linsep verify {file} "
            "DATA`, or with linsep.verify in Python. audit is for models of other libraries."
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
        unknown = set(library.get_untrusted_types(file=file)) - set(_HARMLESS)
        if not unknown:
            return library.load(file, trusted=_HARMLESS)
    except Exception as error:  # the file may be any zip file
        raise BadInput(f"{file} is not a model that skops can read: {error}") from error
    raise Refused(
        f"{file} holds types that skops does not trust: {', '.join(sorted(unknown)[:5])}. Audit such a model in "
        "Python, where you can decide to trust them."
    )


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
    return onnx_graphs.read_graph(library, model, file)
