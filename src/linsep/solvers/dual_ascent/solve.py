"""Dual coordinate ascent as a solver: where it is the method to take, and what becomes of a slow one.

The method itself is native (kernels/dual/ascent.hpp).
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from linsep import _kernels
from linsep.separability.perceptron import passes as perceptron_passes
from linsep.solution import Explicit, Solution, Status, Stop
from linsep.solvers.cost.model import (
    MANY,
    epoch_price,
    full_price,
    globbing_epochs,
    hardness,
    interior_epochs,
    kinked_epochs,
    newton_passes,
    newton_price,
    sampled_mean,
    scattered_epochs,
    scattered_price,
    smooth_epochs,
)
from linsep.solvers.dual_ascent.native import Ascent, Next
from linsep.solvers.newton import gram_reduction
from linsep.solvers.run import LimitReached, Run

if TYPE_CHECKING:
    from linsep.losses import Loss
    from linsep.problem import Problem
    from linsep.solution import FloatArray

WORTHWHILE = 100_000  # entries below which a fit in one native call is hard to beat
ROUGHLY = 3e-4  # tol from which on few digits are wanted
SPARSE_MODERATE = 10.0  # hardness up to which few sparse features may be better not factorised
DENSE, MODERATE = 64, 2.0  # dense features, and hardness, from and up to which it is worth asking
WORTHWHILE_KINKED = 10_000  # the same of an interior point method
FEW = 500  # features up to which a matrix of that order costs little
PERCEPTRON_HARDNESS = 100.0  # from which the perceptron is asked whether the classes are far apart
_PERCEPTRON_PASSES, _FALLING, _FEW_ERRORS = 15, 0.7, 4  # inseparable sets tried: 0.8 to 1
EPOCH = 1.4  # price of an epoch, in passes of Newton's method


def covers(loss: Loss) -> bool:
    """Whether the kernel has a step for the loss."""
    return loss.native is not None and loss.native_ascent


def applies(problem: Problem) -> bool:
    """Whether there is a penalty, a kernel for the loss, and rows in memory as the kernel reads them."""
    penalised = problem.lam > 0.0 and problem.penalty.l1 == 0.0
    return penalised and covers(problem.loss) and problem.data.whole is not None


def primal_is_smaller(ascent: Ascent) -> bool:
    """Whether the loss is smooth and more than twice as many rows are free as there are features.

    Newton's method in the primal is then the smaller problem. A smooth loss has nearly all rows free at first.
    """
    problem = ascent.problem
    return problem.loss.smooth and ascent.native.free() > 2 * problem.data.d


def quick(problem: Problem, tol: float) -> bool:
    """Whether ascent is so quick that even few features are better not factorised.

    Smooth losses on dense rows: see ``beats_newton``. On sparse rows the Gram matrix grows with the square of their
    entries: 30 entries are better served by ascent, 14 by Newton's method. Losses with a kink, against an interior
    point method: 1e-3 is reached about 3 to 18 times faster up to k = 3, and 1e-6 up to k = 1. On less than a hundred
    thousand entries the others are one native call, and hard to beat; but an interior point method on ten thousand
    takes half as long again up to k = 2 (569 x 30, 1,000 x 24).
    """
    data, smooth = problem.data, problem.loss.smooth
    if not applies(problem) or data.n_entries < (WORTHWHILE if smooth else WORTHWHILE_KINKED):
        return False
    if smooth and not data.sparse:
        tall = DENSE <= data.d <= data.n / 2  # of fewer rows it is the first method in any case
        return tall and beats_newton(problem, tol)
    hard = hardness(problem, sampled_mean(problem))
    if not smooth:
        return easy(hard, data.n_entries, tol)
    ascent, newton = scattered_epochs(problem, hard, tol), scattered_price(problem, tol)
    return hard <= SPARSE_MODERATE and ascent <= newton


def beats_newton(problem: Problem, tol: float) -> bool:
    """Whether ascent is predicted to take less time than Newton's method, for a smooth loss on many dense features.

    With fewer than 100 rows per feature and at least 128 features it takes a third to a half of it up to k = 1, and up
    to twice as long from k = 10 on. Rows of mostly zeros are visited without them, so there more epochs are worth it.
    """
    hard, price = hardness(problem, sampled_mean(problem)), epoch_price(problem)
    if hard > (5.0 * MODERATE if price < full_price(problem.data.d) else MODERATE):
        return False
    return smooth_epochs(hard, tol) * price <= newton_price(problem, hard, tol)


def easy(hard: float, entries: int, tol: float) -> bool:
    """Whether ascent on a loss with a kink is quick, by hardness and number of entries."""
    return hard <= (3.0 if tol >= ROUGHLY else 1.0 if entries >= WORTHWHILE else 2.0)


def beats_interior(problem: Problem, tol: float) -> bool:
    """Whether ascent is predicted to take less time than an interior point method on all rows, for a loss with a kink.

    The Gram matrices of many dense features are dear: 10,000 x 784 take 2 s, as much as 400 epochs.
    """
    if not applies(problem) or problem.data.n_entries < WORTHWHILE:
        return False
    hard = hardness(problem, sampled_mean(problem))
    if kinked_epochs(hard, tol) <= interior_epochs(problem, tol):
        return True
    return hard >= PERCEPTRON_HARDNESS and problem.data.sparse and perceptron_separates(problem)


def perceptron_separates(problem: Problem) -> bool:
    """Whether the perceptron parts the classes, its errors falling quickly from pass to pass.

    Then few rows matter, and ascent finds them in less than a hundred passes however weak the penalty is, where an
    interior point method takes hundreds (sparse, 6,513 x 126, hinge, C = 100: 18 against 165 ms).
    """
    if not problem.loss.soft_margin:
        return False
    problem.passes += 1  # for the lengths of the rows
    passes = perceptron_passes(problem.data, problem.fit_intercept, seed=0)
    before = math.inf
    for updates, _ in itertools.islice(passes, _PERCEPTRON_PASSES):
        problem.passes += 1
        if updates == 0 or updates > _FALLING * before + _FEW_ERRORS:
            return updates == 0
        before = updates
    return False


def beats_globbing(problem: Problem, tol: float) -> bool:
    """Whether ascent is predicted to take less time than sifting, with a margin of 1.5 for the prediction."""
    if not applies(problem) or problem.data.n_entries < WORTHWHILE:
        return False
    hard = hardness(problem, sampled_mean(problem))
    return 1.5 * kinked_epochs(hard, tol) <= globbing_epochs(problem)


def prefers(problem: Problem, tol: float) -> bool:
    """Whether to begin with coordinate ascent, among the methods for many features.

    A loss with a kink: always, if there are many features.

    Passes to certified gaps of 1e-3 and 1e-6, ascent (with Newton to finish) / truncated Newton alone, by
    k = C mean |x|^2; one pass of ascent takes as long as 1.1 to 1.7 of Newton's::

        logistic        k = 0.01          k = 1              k = 100
        sms             4   5 / 10  11    7   8 / 19  27     11   31 /  54   68
        imdb            3   7 /  7   8    5   8 / 14  18      8   14 /  51   68
        news20          4   5 /  7  12    7   8 / 19  22      8   12 /  51   65
        noisy, large    3   5 /  7   8    5   8 / 11  20     37   59 /  45   65
        squared hinge
        sms             5   7 /  8   9    8  16 / 40  56     29   64 / 576  745
        imdb            4   7 /  8   9    7  12 / 29  37     16   41 / 347  475
        news20          7   7 /  8   9    8  14 / 31  44     18   60 / 393  585
        noisy, large    4   6 /  8   9   11  21 / 21  33     47      /  43
        hinge
        sms             5  11             18  31             40   56
        imdb            4   9             12  26             36   63
        news20          5  15             16  49             60   83

    Below k = 0.001 Newton needs four passes and wins. Where ascent is slow (large k, many rows, noisy labels) it
    notices after a few epochs. The choice may not depend on the number of threads, or the bits of the answer
    would; so large data, whose passes threads do share, begin with Newton up to k = 1/2.
    """
    if not applies(problem):
        return False
    if not problem.loss.smooth:
        return problem.data.d > FEW or quick(problem, tol)
    least = 0.001 if problem.data.n_entries < MANY else 0.5
    return hardness(problem, sampled_mean(problem)) >= least * (1.0 - 1e-6)


def _relative_price(problem: Problem) -> float:
    """Price of an epoch, in passes of Newton's method: less of dense rows without their zeros."""
    if problem.data.sparse:
        return EPOCH
    return EPOCH * epoch_price(problem) / full_price(problem.data.d)


def _gap(problem: Problem, theta: FloatArray, sums: FloatArray) -> tuple[float, float]:
    """Primal and dual value from the sums of a closing pass, as in run.py."""
    return _kernels.closed_values(sums, theta, problem.lam, problem.fit_intercept)


def solve(
    problem: Problem,
    theta: FloatArray,
    stop: Stop,
    epochs: int | None = None,
    seed: int = 0,
    patience: float = math.inf,
) -> Solution:
    """Ascend until the gap closes.

    Other ends: a limit of the user (its status); as many epochs as given, or progress so slow that Newton's
    method would be faster, or that ``patience`` epochs will not do (status WORKING_PRECISION). In the last case W
    is a good start for Newton's method if the gap, which the last record of the trace shows, is below 0.3 of the
    objective.
    """
    run = Run(problem, stop, _gap)
    ascent = Ascent(problem, theta, seed, stop.tol)
    native, closed_at = ascent.native, 0
    others = min(newton_passes(problem, native.hardness, stop.tol), gram_reduction.price(problem))
    native.patience = min(patience, others / _relative_price(problem))
    native.most = -1 if epochs is None else epochs
    status = Status.WORKING_PRECISION
    try:
        with run.in_time():
            run.check_limits()
            while (asked := ascent.advance(run)) is not Next.END:
                if asked is Next.BROKEN:
                    return run.solution(status, theta, Explicit(np.zeros(problem.data.n)))
                if asked is Next.CLOSE:
                    closed_at = native.epochs
                    if run.close(*ascent.point()):
                        status = Status.CERTIFIED
                        break
                    last = run.trace[-1]
                    ascent.missed((last.primal - last.dual) / problem.penalty.scale)
                elif asked is Next.SLOW and epochs is None and primal_is_smaller(ascent):
                    break
                run.check_limits()
    except LimitReached as limit:
        status = limit.status
        native.halt()
        if native.epochs > closed_at > 0:  # what came after the last closing pass counts too
            run.close(*ascent.point())
    if run.best is None:
        return run.solution(status, *ascent.point())
    return run.solution(status, *run.best[1:3])
