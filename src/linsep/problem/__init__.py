"""Loss + penalty + data = one objective, evaluated by passes over the blocks."""

from linsep.problem.coupled import CoupledProblem
from linsep.problem.pointwise import Problem, dot

__all__ = ["CoupledProblem", "Problem", "dot"]
