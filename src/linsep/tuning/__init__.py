"""Choice of C by paths, validation curves and cross-validation; every model of the grid is certified.

Several engines compute the same models. Those of ``solvers.grid`` fit the whole grid of C and folds together:
``smooth`` shares each pass over the data between all models (dense rows, two classes, a smooth loss), ``gram`` uses one
matrix of inner products (more features than rows), ``hinge`` one band of rows around the kink (many rows).
``one_by_one`` fits the models one after another with warm starts; it supports every estimator with a parameter ``C``.
"""

from __future__ import annotations

from linsep.tuning.grid_search import tune
from linsep.tuning.path_search import path
from linsep.tuning.results import Path, Tuning, ValidationCurve

__all__ = ["Path", "Tuning", "ValidationCurve", "path", "tune"]
