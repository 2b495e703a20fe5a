"""Sparse rows with many features: coordinate descent in the dual, truncated Newton to finish."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linsep.problem import Problem
    from linsep.solution import FloatArray, Solution, Stop


def has_coordinate_step(problem: Problem) -> bool:
    """Whether the dual has a one-dimensional step in the kernels."""
    return False


def prefers_dual(problem: Problem, stop: Stop) -> bool:
    return False


def solve_dual(problem: Problem, theta: FloatArray, stop: Stop, seed: int = 0) -> Solution:
    raise AssertionError
