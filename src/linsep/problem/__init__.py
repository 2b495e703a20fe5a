"""Loss + penalty + data = one objective, evaluated by passes over the blocks."""

from linsep.problem.coupled import CoupledProblem
from linsep.problem.pointwise import Problem

__all__ = ["CoupledProblem", "Problem"]
