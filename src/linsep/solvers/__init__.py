"""Registry of the solvers: the requirements of each, and the automatic choice of ``solver="auto"``.

===============  ====================================================================================
small            whole fit in one native call: one block in memory, few features
newton           Newton-Cholesky on all rows, from a pilot when there are many rows per feature
newton-pilot     quasi-Newton steps (L-BFGS), then conjugate gradients, preconditioned by the Hessian of a pilot
newton-rounds    newton with a larger pilot and more work in each pass: for rows on a cluster
newton-cg        quasi-Newton steps, then truncated Newton with a diagonal preconditioner: many features
dual-cd          dual coordinate ascent with an exact intercept, conjugate gradients on the free rows;
                 hands over to Newton's method, in the span of the rows if these are dense and few,
                 or to interior if the loss has a kink
small-l1         L1 penalties: whole fit in one native call, one block in memory, few features
working-set      L1 penalties: prox-Newton on a working set of features; the others are checked once a round
interior         losses with a kink: interior point method on all rows, then the exact solution
sifting          losses with a kink, many rows: interior point method on a pilot and on a band about the kink
absolute-rows    piecewise linear losses that no other solver supports (quantile, epsilon-insensitive, or with an L1
                 penalty): written as absolute values on additional rows, then an interior point method
hinge-rows       these losses without an L1 penalty, for many features: written as hinges on additional rows, then dual
                 coordinate ascent
hard-margin      the hinge with C = inf: least distance on working sets
===============  ====================================================================================

A solver is a function ``(problem, theta, stop, seed) -> Solution`` with declared requirements, from which
refusals and the automatic choice are derived.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from linsep.arrays import FloatArray
from linsep.data import Location
from linsep.errors import BadInput, Refused
from linsep.losses import names_with
from linsep.problem import CoupledProblem, MaxMarginProblem, Problem
from linsep.solution import Solution, Stop
from linsep.solvers import plan, sampling
from linsep.solvers.dual_ascent import solve as ascent
from linsep.solvers.hard_margin import nnls
from linsep.solvers.interior import absolute_rows, hinge_rows, kinked, sifting
from linsep.solvers.l1 import native as native_l1
from linsep.solvers.l1 import working_set
from linsep.solvers.multiclass import crammer_singer, softmax, softmax_l1
from linsep.solvers.newton import cluster as newton_cluster
from linsep.solvers.newton import gram_reduction, subsampled
from linsep.solvers.newton import native as native_newton
from linsep.solvers.prediction import predict

__all__ = ["SOLVERS", "Solver", "choose", "choose_coupled", "needs_local_rows", "solve_again"]

CoupledSolve = Callable[[CoupledProblem, FloatArray, Stop, int], Solution]


@dataclass(frozen=True, eq=False)
class Need:
    """Requirement of a solver on the problem; ``text`` describes it in error messages."""

    text: str
    holds: Callable[[Problem], bool]


@dataclass(frozen=True)
class Solver:
    """Name, function and requirements of a solver."""

    name: str
    run: Callable[[Problem, FloatArray, Stop, int], Solution]
    needs: tuple[Need, ...]

    def missing(self, problem: Problem) -> list[str]:
        """Return the requirements that this problem does not meet."""
        return [need.text for need in self.needs if not need.holds(problem)]


_SMOOTH = Need("a smooth loss", lambda p: p.loss.smooth)
_CONVEX = Need("a convex loss", lambda p: p.loss.convex)
_NO_L1 = Need("l1_ratio=0", lambda p: p.penalty.l1_ratio == 0.0)
_L1 = Need("l1_ratio > 0 and a finite C", lambda p: p.penalty.l1 > 0.0)
_SMALL = Need(
    f"one block in memory of at most {native_newton.ENTRIES:,} entries (twice as many with "
    f"{sampling.ROWS_PER_FEATURE} rows per feature) and {native_newton.FEATURES} features, and a compiled loss",
    native_newton.fits,
)
_SMALL_L1 = Need(
    f"one block in memory of at most {native_l1.ENTRIES:,} entries, at most {working_set.ALL} features (sparse: "
    f"{working_set.ALL_SPARSE}, with short rows) and a compiled loss that is curved wherever it slopes",
    working_set.is_small,
)
_PENALTY = Need("a finite C", lambda p: p.lam > 0)
_COORDINATES = Need(
    f"rows in memory, a finite C and one of the losses {', '.join(names_with('native_ascent'))}",
    ascent.applies,
)
_IN_MEMORY = Need("rows in memory", lambda p: p.data.location is Location.MEMORY)
_TALL = Need(
    "rows in memory, or at least as many as features",
    lambda p: p.data.location is Location.MEMORY or p.data.n >= p.data.d,
)
_DENSE = Need("dense rows", lambda p: not p.data.sparse)
_HARD = Need("the hinge loss with C=inf", nnls.applies)
_BASIC = (_CONVEX, _SMOOTH, _NO_L1)
_KINK = Need(f"one of the losses {', '.join(kinked.names())}", kinked.applies)
_FACTORISABLE = Need(
    f"at most {gram_reduction.MAX_ORDER:,} rows or {gram_reduction.MAX_ORDER:,} features",
    kinked.factorisable,
)
_BOUNDED = Need(
    "a finite C, or the absolute loss", lambda p: p.lam > 0 or not p.loss.flat_beyond_margin
)
_ONE_KINK = (_KINK, _NO_L1, _BOUNDED, _FACTORISABLE)
_STRAIGHT = Need(
    f"a loss made of straight lines, rows in memory and at most {gram_reduction.MAX_ORDER:,} features",
    absolute_rows.applies,
)
_STRAIGHT_PENALISED = Need(
    "a loss made of straight lines, rows in memory, a finite C and l1_ratio=0", hinge_rows.applies
)
_LIMITED = Need(
    "a penalty, or a loss that grows on both sides",
    lambda p: p.lam > 0 or p.penalty.l1 > 0 or not p.loss.flat_beyond_margin,
)


SOLVERS: dict[str, Solver] = {
    solver.name: solver
    for solver in (
        Solver("small", plan.small, (*_BASIC, _SMALL)),
        Solver("newton", plan.newton_cholesky, _BASIC),
        Solver("newton-pilot", plan.newton_preconditioned, (*_BASIC, _DENSE, _PENALTY)),
        Solver("newton-rounds", plan.newton_in_few_rounds, (*_BASIC, _DENSE, _PENALTY)),
        Solver("newton-cg", plan.newton_truncated, _BASIC),
        Solver("dual-cd", plan.ascent_then_primal, (_CONVEX, _NO_L1, _COORDINATES)),
        Solver("small-l1", working_set.solve_small, (_CONVEX, _SMOOTH, _L1, _SMALL_L1)),
        Solver("working-set", working_set.solve, (_CONVEX, _SMOOTH, _L1)),
        Solver("interior", plan.interior, (*_ONE_KINK, _IN_MEMORY)),
        Solver("sifting", plan.sift, (*_ONE_KINK, _TALL)),
        Solver(absolute_rows.NAME, plan.by_absolute_rows, (_CONVEX, _STRAIGHT, _LIMITED)),
        Solver(hinge_rows.NAME, plan.by_hinge_rows, (_CONVEX, _STRAIGHT_PENALISED)),
        Solver("hard-margin", nnls.solve, (_HARD, _NO_L1)),
    )
}
NAMES = ("auto", *SOLVERS)
_NEEDS = {need for solver in SOLVERS.values() for need in solver.needs}
_FORMER = {"globbing": "sifting"}  # deprecated names

#: Without a penalty, the Hessian is factorised up to this number of features, whatever the predicted cost.
_FACTORISED = 4000


def _candidates(problem: Problem, stop: Stop) -> list[str]:
    """Return the solvers that support the problem, without those that another one dominates.

    Native fits do not check the time limit, so they are excluded if they might exceed it, and otherwise replace the
    same method in Python. The Hessian of a pilot pays only if the Hessian of all rows is expensive. Sifting needs many
    rows per feature. ``absolute-rows`` and ``hinge-rows`` are used only if no other solver supports the problem.
    Without a penalty the number of conjugate gradient steps is unbounded, so they are used only if the Hessian is too
    large to factorise.
    """
    met = {need: need.holds(problem) for need in _NEEDS}
    able = {name for name, solver in SOLVERS.items() if all(met[need] for need in solver.needs)}
    if not native_newton.ends_before(stop):
        able -= {"small", "small-l1"}
    if not (kinked.applies(problem) and sifting.worthwhile(problem)) and "interior" in able:
        able.discard("sifting")
    if problem.lam == 0.0 and problem.data.d <= _FACTORISED and "newton" in able:
        able.discard("newton-cg")
    if "small" in able:
        able -= {"newton", "newton-pilot"}
    if "newton-pilot" in able and not subsampled.pilot_pays(problem):
        able.discard("newton-pilot")
    if problem.data.location is Location.MEMORY:
        able.discard("newton-rounds")
    elif problem.data.location is Location.CLUSTER and "newton-rounds" in able:
        if newton_cluster.worthwhile(problem.data.d, problem.data.largest_part):
            able = {"newton-rounds"}
    straight = {absolute_rows.NAME, hinge_rows.NAME} & able
    if able - straight:
        able -= straight
    elif len(straight) > 1:
        able = {hinge_rows.NAME if hinge_rows.preferable(problem) else absolute_rows.NAME}
    return [name for name in SOLVERS if name in able]


def _prefer(problem: Problem, stop: Stop) -> str | None:
    """Return the solver with the smallest predicted cost; None if none supports the problem."""
    able = _candidates(problem, stop)
    if problem.lam == 0.0 and "sifting" in able:
        return "sifting"
    if len(able) < 2 or problem.lam == 0.0 or problem.penalty.l1:
        return able[0] if able else None
    return predict(problem, stop.tol).cheapest(able)


def needs_local_rows(problem: Problem | CoupledProblem, name: str) -> bool:
    """Return whether rows on a cluster must be copied to the client because the solver needs more than sums.

    Rows on disk are copied to memory for losses that no solver fits from disk, if there is room and none is named.
    """
    data, solver = problem.data, SOLVERS.get(name)
    straight = isinstance(problem, Problem) and not (problem.loss.smooth or kinked.applies(problem))
    if data.location is Location.DISK:
        return straight and name == "auto" and data.fits_memory(data.n)
    if data.location is not Location.CLUSTER:
        return False
    if straight:
        return True
    if _can_use_sums(problem, name) and data.stays_remote():
        return False
    if problem.penalty.l1 > 0.0 or problem.lam == 0.0 or not (data.n > data.d):
        return True
    if isinstance(problem, CoupledProblem):
        return not problem.loss.smooth
    if kinked.applies(problem):
        return name not in ("auto", "sifting") or not sifting.worthwhile(problem)
    return solver is not None and not {_IN_MEMORY, _SMALL, _COORDINATES}.isdisjoint(solver.needs)


def _can_use_sums(problem: Problem | CoupledProblem, name: str) -> bool:
    """Return whether sums over rows suffice with an L1 penalty, without a penalty, or with more features than rows."""
    if not problem.loss.smooth:
        return False
    if problem.lam == problem.penalty.l1 == 0.0:
        return name in ("auto", "newton") and _can_use_hessian_sums(problem)
    if problem.penalty.l1 > 0.0:
        return name in ("auto", "working-set")
    return name in ("auto", "newton-rounds" if isinstance(problem, CoupledProblem) else "newton-cg")


def _can_use_hessian_sums(problem: Problem | CoupledProblem) -> bool:
    """Return whether an unpenalised fit and its proof need only Hessians that are small enough to be sent."""
    if isinstance(problem, CoupledProblem) or problem.data.sparse:
        return False
    loss, data = problem.loss, problem.data
    curved = not (loss.straight_tails or loss.flat_beyond_margin)
    return curved and data.n > data.d and newton_cluster.worthwhile(data.d, data.largest_part)


_SCIKIT_LEARN = ("lbfgs", "liblinear", "newton-cholesky", "sag", "saga")


def _unknown_solver(name: str, known: tuple[str, ...]) -> BadInput:
    if name in _SCIKIT_LEARN:
        return BadInput(
            f"solver={name!r} is a solver of scikit-learn; leave it out: linsep chooses the solver (solver='auto')."
        )
    return BadInput(f"Unknown solver {name!r}. Use one of {', '.join(known)}.")


def choose_coupled(problem: CoupledProblem, name: str) -> tuple[str, CoupledSolve]:
    """Return name and function of the solver for a loss that couples the classes."""
    known = (*NAMES, "proximal-newton")
    if name not in known:
        raise _unknown_solver(name, known)
    hinge, absolute = isinstance(problem, MaxMarginProblem), problem.penalty.l1 > 0.0
    if hinge and problem.penalty.l1_ratio:
        raise Refused(
            f"The {problem.loss.name} loss needs l1_ratio=0. For an L1 penalty use loss='squared_hinge' or "
            "LogisticRegression."
        )
    own = "proximal-newton" if hinge else "working-set" if absolute else "newton"
    few = "newton-rounds"
    if own == "newton" and (
        name == few or (name == "auto" and problem.data.location is Location.CLUSTER)
    ):
        own = few
    if name not in ("auto", own):
        raise Refused(
            f"solver={name!r} does not take the {problem.loss.name} loss, which couples the classes. "
            f"Use solver={own!r} or 'auto', or multiclass='ovr'."
        )
    if hinge and problem.lam == 0.0:
        raise Refused(
            f"The {problem.loss.name} loss needs a finite C. Give a large one, for instance C=1e6, or use "
            "multiclass='ovr'."
        )
    if own == few:
        return own, softmax.solve_in_few_rounds
    return own, (crammer_singer.solve if hinge else softmax_l1.solve if absolute else softmax.solve)


def choose(problem: Problem, name: str, stop: Stop) -> Solver:
    """Return the solver of that name, or for "auto" the one with the smallest predicted cost."""
    name = _FORMER.get(name, name)
    if name not in NAMES:
        raise _unknown_solver(name, NAMES)
    if problem.lam == problem.penalty.l1 == 0.0 and problem.loss.zero_at_origin:
        raise Refused(
            f"The {problem.loss.name} loss without a penalty (C=inf) has its minimum, 0, at w = 0 and b = 0, "
            "which predicts nothing; every separating hyperplane is as good. For a separating hyperplane use "
            "linsep.Perceptron, linsep.separate or LinearSVC(C=inf), which takes the widest margin."
        )
    if name == "auto":
        wanted = _prefer(problem, stop)
        if wanted is None:
            if problem.penalty.l1 and not problem.loss.smooth:
                raise Refused(
                    f"The {problem.loss.name} loss has a kink; with an L1 penalty it needs rows in memory and at most "
                    f"{gram_reduction.MAX_ORDER:,} features. Use a smooth loss ('squared_hinge', 'huberised_hinge', "
                    "'logistic'; 'huber' for numbers) or l1_ratio=0."
                )
            lacking = sorted({text for s in SOLVERS.values() for text in s.missing(problem)})
            raise Refused(
                f"No solver accepts the {problem.loss.name} loss with this penalty and data yet: "
                f"each of {', '.join(SOLVERS)} needs at least one of: {'; '.join(lacking)}."
            )
        return SOLVERS[wanted]
    solver = SOLVERS[name]
    missing = solver.missing(problem)
    if missing:
        able_names = [n for n, s in SOLVERS.items() if not s.missing(problem)]
        raise Refused(
            f"solver={name!r} needs {' and '.join(missing)}. "
            + (
                f"Solvers that accept this problem: {', '.join(able_names)}; or leave solver='auto'."
                if able_names
                else "No other solver accepts this problem yet."
            )
        )
    return solver


def solve_again(problem: Problem, stop: Stop) -> Solution:
    """Solve the problem from theta = 0 with the automatically chosen solver."""
    return choose(problem, "auto", stop).run(problem, np.zeros(problem.order), stop, 0)
