"""Choosing C: paths, validation curves and cross-validation, every model of the grid certified.

Two engines give the same numbers. ``shared`` fits the whole grid of C and folds together, with one pass over the
data for all models (dense rows, two classes, a smooth loss). ``separate`` fits the models one after another, each
from the one before; it serves every estimator with a parameter ``C``.
"""

from __future__ import annotations

from linsep.tuning.choosing import tune
from linsep.tuning.following import path
from linsep.tuning.results import Path, Tuning, ValidationCurve

__all__ = ["Path", "Tuning", "ValidationCurve", "path", "tune"]
