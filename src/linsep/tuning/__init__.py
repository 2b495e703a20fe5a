"""Choosing C: paths, validation curves and cross-validation, every model of the grid certified.

Several engines give the same numbers. Those of ``solvers.grid`` fit the whole grid of C and folds together:
``smooth`` with one pass over the data for all models (dense rows, two classes, a smooth loss), ``gram`` with one matrix
of inner products (more features than rows), ``hinge`` with one band about the kink (many rows). ``one_by_one`` fits the
models one after another, each from the one before; it serves every estimator with a parameter ``C``.
"""

from __future__ import annotations

from linsep.tuning.grid_search import tune
from linsep.tuning.path_search import path
from linsep.tuning.results import Path, Tuning, ValidationCurve

__all__ = ["Path", "Tuning", "ValidationCurve", "path", "tune"]
