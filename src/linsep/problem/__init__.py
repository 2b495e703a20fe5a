"""Loss + penalty + data = one objective, evaluated by passes over the blocks."""

from linsep.problem.coupled import CoupledProblem
from linsep.problem.max_margin import MaxMarginProblem
from linsep.problem.pointwise import Problem, dot, hard_margin

__all__ = ["CoupledProblem", "MaxMarginProblem", "Problem", "dot", "hard_margin"]
