"""How hard a problem is for coordinate ascent, and what the alternatives cost.

One number tells most: k = C mean s |x|^2, times the curvature of the loss as a multiple of the logistic one.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from linsep import _kernels

if TYPE_CHECKING:
    from linsep.data import Block
    from linsep.losses import Loss
    from linsep.problem import Problem
    from linsep.solution import FloatArray

ROUGH = 1e-4  # tol from which few digits are wanted
MANY = 2_000_000  # entries from which Newton's passes are shared by threads; epochs never are


def row_norms(problem: Problem) -> FloatArray:
    """|x|^2 of every row (one pass)."""
    problem.passes += 1
    norms = np.zeros(problem.data.n)

    def fill(block: Block, out: FloatArray) -> None:
        _kernels.row_norms(
            block.rows, block.lo, block.hi, norms[block.first : block.first + block.rows.n]
        )

    problem.data.sum(fill, 1)
    return norms


def sampled_mean(problem: Problem) -> float:
    """Mean of s |x|^2 over some rows from everywhere."""
    block = problem.data.whole
    assert block is not None
    return _kernels.sampled_mean(block.rows, block.targets)


def hardness(problem: Problem, mean: float) -> float:
    """k for this mean of s |x|^2. A loss with a kink counts like the huberised hinge of width 1."""
    return hardness_of(problem.loss, problem.lam, mean)


def hardness_of(loss: Loss, lam: float, mean: float) -> float:
    """k for a loss, the weight lam of |w|^2/2, and the mean of s |x|^2."""
    return 4.0 * (loss.curvature_bound if loss.smooth else 1.0) * mean / lam


def full_price(entries: float) -> float:
    """Nanoseconds of an epoch for each dense row of so many numbers."""
    return 60.0 + 0.6 * entries


def epoch_price(problem: Problem) -> float:
    """Predicted time of an epoch [ns per row]. Dense rows of mostly zeros are compressed (dual/compressed.hpp)."""
    data = problem.data
    entries = data.n_entries / max(1, data.n)
    if data.sparse:
        return 30.0 + 1.3 * entries
    kept = 1.0 if data.whole is None else _kernels.kept_share(data.whole.rows)
    return full_price(entries) if kept == 1.0 else 30.0 + 1.3 * kept * entries


def interior_epochs(problem: Problem, tol: float = 1e-6) -> float:
    """Epochs of ascent that take as long as the interior point method would, by the nanoseconds per row of each.

    Twenty iterations, fifteen if few digits are wanted, each four visits to the rows, a Gram matrix, a factorisation.
    The Gram of sparse rows is scattered, and slower once it leaves the nearest cache. Measured: 46 epochs on
    4,600 x 57, 92 on a9a (32,561 x 123 sparse), 380 on 10,000 x 784 dense, 330 on w8a (49,749 x 300 sparse), where
    65 iterations are made; the formula says 45, 70, 630 and 136.
    """
    n, d = max(1, problem.data.n), problem.data.d
    entries = problem.data.n_entries / n
    sparse = problem.data.sparse
    epoch = epoch_price(problem)
    if n < d:
        # in the span of the rows: a product of all with all, some tens of factorisations of their order
        return n * (0.06 * entries + 0.5 * n) / epoch
    gram = 0.5 * entries**2 * (1.0 + (d / 200.0) ** 2 if sparse else 0.05)
    iteration = 40.0 + 1.6 * entries + gram + 0.05 * float(d) ** 3 / n
    return (15.0 if tol >= ROUGH else 20.0) * iteration / epoch


def globbing_epochs(problem: Problem) -> float:
    """Epochs of ascent on dense rows that take as long as bands about the kink would, by eye.

    Measured: 9 and 12 with 30 and 20 features, 22 with 50, 33 with 100, 70 to 90 with 150 and 200.
    """
    d = problem.data.d
    return 0.4 * d * full_price(d) / epoch_price(problem)


def kinked_epochs(hard: float, tol: float) -> float:
    """Passes that ascent needs for a loss with a kink, as fitted by eye: 6 to 1e-3 and 9.5 to 1e-6 at hardness 0.

    Measured at hardness 0.5, 1, 4, 47, 56, 84, 120, 400: to 1e-6 12-14, 13, 25-49, 111, 149, 64, 33, 52-86 (447 on
    dense images); to 1e-3 7-9, 9, 9-10, 48, 95, 45, 9, 23-64 (239).
    """
    return float((6.0 if tol >= ROUGH else 9.5) * (1.0 + hard) ** 0.6)


def smooth_epochs(hard: float, tol: float) -> float:
    """Passes that ascent needs for a smooth loss on dense rows.

    Measured at hardness 0.1, 1, 10 on tables of independent columns, of columns with common factors and of pictures:
    to 1e-6 5-10, 8-11, 17-40, to 1e-3 4-7, 5-6, 9-18.
    """
    return (4.0 + 2.0 * math.sqrt(hard)) if tol >= ROUGH else (5.0 + 4.0 * math.sqrt(hard))


def scattered_price(problem: Problem, tol: float) -> float:
    """Nanoseconds of Newton's method on sparse rows of few features, for each of them, by two threads.

    The Gram matrix of a row of r entries is r^2/2 scattered sums. One thread takes, to 1e-6, 700 to 1,600 with r = 30,
    700 to 1,200 with 22, 320 to 400 with 14, 330 to 660 with 12.
    """
    row = problem.data.n_entries / max(1, problem.data.n)
    shared = 1.8 if problem.data.n_entries >= MANY else 1.3
    return (0.8 if tol >= ROUGH else 1.0) * row * (15.0 + row) / shared


def scattered_epochs(problem: Problem, hard: float, tol: float) -> float:
    """What ascent takes there: 7 to 9 passes up to hardness 1, 9 to 15 at 10, 6 to 1e-3."""
    row = problem.data.n_entries / max(1, problem.data.n)
    parabola = problem.loss.conjugate_quadratic is not None
    epoch = 40.0 + row if parabola else 50.0 + 1.5 * row
    passes = 6.0 + 0.5 * math.sqrt(hard) if tol >= ROUGH else 7.0 + 2.0 * math.sqrt(hard)
    return 0.93 * passes * epoch


def newton_price(problem: Problem, hard: float, tol: float) -> float:
    """Nanoseconds of Newton's method on dense rows, for each of them, by the kind that would be chosen.

    From 100 rows per feature on the Hessian of a sample is nearly that of all: eight passes of 0.45 d. With fewer rows
    up to 450 features have three or four Hessians of all rows at 0.025 d^2, and ten passes of 0.3 d; more features
    take passes with the Hessian of a sample, at hardness 0.1, 1, 10 between 8 and 30, 11 and 60, 22 and 86.
    """
    n, d = problem.data.n, problem.data.d
    shared = 1.8 if problem.data.n_entries >= MANY else 1.0  # by two threads
    few = 0.65 if tol >= ROUGH else 1.0
    if n >= 100 * d:
        return 3.6 * d / shared
    if d <= 450:
        return (few * 0.0875 * d * d + 3.0 * d) / shared
    return float(few * 13.5 * d * hard**0.3 / shared)


def newton_passes(problem: Problem, hard: float, tol: float) -> float:
    """Passes of truncated Newton, as fitted by eye to the table at ``prefers``; inf where it does not apply."""
    if not problem.loss.smooth:
        return math.inf
    passes = 22.0 * hard**0.25 if problem.loss.recedes else 16.0 * hard**0.5
    shared = 1.8 if problem.data.n_entries >= MANY else 1.0  # by two threads; more is not assumed
    return float(max(8.0, passes) * (0.4 - 0.1 * math.log10(max(tol, 1e-15))) / shared)
