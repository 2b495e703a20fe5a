"""The engines that run tasks on partitions: one module each, imported when data of its library are given.

A library takes part with a module that defines a subclass of ``Engine`` and three functions:

``source(X, y, weight)``
    What ``fit`` was given, as columns of an engine.
``predict(model, method, X)``
    The answers of a model for the rows of X, lazily, in a container of the library.
``files(client, paths, read)``
    Raw rows, targets and weights that the workers read from files themselves.
"""

from __future__ import annotations

import importlib
from typing import Any

from linsep.data.location import engine_name


def module_of(X: Any) -> Any:
    """Module of the engine that X, a collection or a client, belongs to."""
    return importlib.import_module(f"linsep.data.cluster.engines.{engine_name(X)}_engine")
