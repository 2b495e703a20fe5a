"""Objective functions: a loss, a penalty and a data set, evaluated by passes over blocks of rows."""

from linsep.problem.coupled import CoupledProblem
from linsep.problem.duality import dot
from linsep.problem.grouped import GroupProblem
from linsep.problem.max_margin import MaxMarginProblem
from linsep.problem.pointwise import Problem, TrialPoint, hard_margin

__all__ = [
    "CoupledProblem",
    "GroupProblem",
    "MaxMarginProblem",
    "Problem",
    "TrialPoint",
    "dot",
    "hard_margin",
]
