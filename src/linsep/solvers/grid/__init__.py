"""Engines that fit all models of a grid of C and folds together, in the order in which they are tried."""

from __future__ import annotations

from linsep.solvers.grid import gram, hinge, smooth
from linsep.solvers.grid.problem import GridEngine

ENGINES: tuple[GridEngine, ...] = (smooth, gram, hinge)
