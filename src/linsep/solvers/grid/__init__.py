"""Grids of C and folds: the engines that fit all their models together, in the order in which they are asked."""

from __future__ import annotations

from linsep.solvers.grid import gram, hinge, smooth
from linsep.solvers.grid.problem import GridEngine

ENGINES: tuple[GridEngine, ...] = (smooth, gram, hinge)
