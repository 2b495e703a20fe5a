"""Cluster engines, one module for each library, imported when data of that library are given.

To support a library, add a module that defines a subclass of ``Engine`` and four functions:

``source(X, y, weight)``
    Return the arguments of ``fit`` as columns of an engine.
``predict(model, method, X, encode)``
    Return the predictions for the rows of X, lazily, in a container of the library.
``files(client, paths, read)``
    Return an engine, and columns of raw rows, targets and weights that the workers read from files.
``predict_files(model, method, parts, encode)``
    Return the predictions for the rows of files that the workers read, lazily.
"""

from __future__ import annotations

import importlib
from typing import Any

from linsep.data.location import engine_name


def module_of(X: Any) -> Any:
    """Return the module of the engine for X, a collection or a client."""
    return importlib.import_module(f"linsep.data.cluster.engines.{engine_name(X)}_engine")
