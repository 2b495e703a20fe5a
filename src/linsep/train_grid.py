"""Fit a model for every C of a grid and every fold: engines (``solvers.grid``) solve, certificates decide.

A model whose relative gap is above tol is fitted separately, with a warm start from the engine's solution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from time import perf_counter

import numpy as np

from linsep.arrays import FloatArray
from linsep.certificates import depends_on_rounding, loss_factor, prove
from linsep.certificates.closing import ridge_certificate
from linsep.certificates.gram import Spanned, from_gram
from linsep.data import Dataset, recorded
from linsep.data.row_access import row_blocks
from linsep.interrupts import if_in_time, out_of_time
from linsep.losses import Loss
from linsep.problem import Problem
from linsep.problem.recipe import Recipe, reproducible_fields
from linsep.solution import Explicit, Linearised, Solution, Status
from linsep.solvers.grid import ENGINES
from linsep.solvers.grid.problem import GridEngine, GridProblem, HeldOut, Proposal, SpanProposal
from linsep.train import Fit, conclude, to_scaled_loss, train

Fits = dict[tuple[int, int], Fit]


def fit_grid(problem: GridProblem, held: HeldOut | None = None) -> Fits | None:
    """Fit a model for every C with each fold held out; None if no engine supports the grid.

    Fits are keyed by (index of C, fold); the fold is -1 without cross-validation. A fit may be uncertified.
    """
    wanted = HeldOut() if held is None else held
    return fit_unscaled(problem, lambda plain: _fit_plain(plain, wanted))


def _fit_plain(problem: GridProblem, held: HeldOut) -> Fits | None:
    """Fit a grid of an unscaled loss with the first engine that applies."""
    for engine in ENGINES:
        if engine.applies(problem):
            return fit_by_engine(problem, engine, held)
    return None


def fit_unscaled(problem: GridProblem, fit: Callable[[GridProblem], Fits | None]) -> Fits | None:
    """Replace a scaled loss by the unscaled one, multiply C by the factor, fit, and convert the fits back."""
    recipes = [problem.recipe_of(c) for c in range(len(problem.Cs))]
    factors = [loss_factor(recipe.loss, recipe.penalty) for recipe in recipes]
    if all(factor.plain for factor in factors):
        return fit(problem)
    own = replace(problem.recipe, loss=factors[0].loss, tol=factors[0].tol(problem.recipe.tol))
    fits = fit(replace(problem, recipe=own).with_grid([f.penalty.C for f in factors], problem.part))
    if fits is None:
        return None
    return {(c, f): to_scaled_loss(factors[c], fits[c, f], recipes[c]) for c, f in fits}


def fit_by_engine(problem: GridProblem, engine: GridEngine, held: HeldOut) -> Fits:
    """Certify the proposals of an engine, and fit the models separately that are missing or not certified."""
    began = perf_counter()
    fits: Fits = {}
    starts: dict[tuple[int, int], FloatArray] = {}
    spanned: list[SpanProposal] = []

    def conclude_proposals() -> None:
        for proposal in engine.solve(problem, held):
            if isinstance(proposal, SpanProposal):
                spanned.append(proposal)
                continue
            fit = _conclude(problem, proposal, engine.NAME, perf_counter() - began)
            key = proposal.c, proposal.f
            if fit.certificate.certified and not depends_on_rounding(fit.certificate):
                fits[key] = fit
            else:
                starts[key] = fit.W
        if spanned:
            fits.update(_conclude_in_span(problem, spanned, engine.NAME, held))

    if_in_time(conclude_proposals, lambda: None)
    for f in problem.folds:
        left = [c for c in range(len(problem.Cs)) if (c, f) not in fits]
        if left:
            with closing(problem.training_data(f)) as data:
                _fit_others(problem, data, f, left, starts, fits, held, engine.NAME)
    return fits


def _fit_others(
    problem: GridProblem,
    data: Dataset,
    f: int,
    left: Sequence[int],
    starts: dict[tuple[int, int], FloatArray],
    fits: Fits,
    held: HeldOut,
    solver: str,
) -> None:
    """Fit the models of fold f that the engine did not certify.

    After the time limit, the closest known coefficients are certified instead, in one pass for each of them.
    """
    sums: dict[int, FloatArray] = {}
    scores: dict[int, FloatArray] = {}
    nothing = np.zeros((data.d + 1, 1))
    inside = np.flatnonzero(problem.part == f) if f >= 0 and held.wanted else None
    for c in left:
        start = starts.get((c, f))
        if out_of_time():
            W = _nearest(fits, c, f, nothing) if start is None else start
            fits[c, f] = _conclude_unfinished(problem.recipe_of(c), data, W, sums, solver)
        else:
            fits[c, f] = _fit_alone(problem.recipe_of(c), data, start)
        if inside is not None:
            W = fits[c, f].W
            if id(W) not in scores:
                scores[id(W)] = _held_out_scores(problem, f, W)
            held.record(problem, c, f, inside, scores[id(W)])


def _conclude(problem: GridProblem, proposal: Proposal, solver: str, seconds: float) -> Fit:
    """Construct the fit of a proposal, certified with the sums of its closing pass."""
    recipe, solution = problem.recipe_of(proposal.c), proposal.solution
    assert solution.sums is not None
    certificate = ridge_certificate(
        solution.sums,
        np.ascontiguousarray(solution.W[:, 0]),
        recipe.penalty,
        recipe.fit_intercept,
        recipe.tol,
        proposal.rows_per_sum,
    )
    return conclude(recipe, solution, certificate, solver, solution.passes, seconds)


def _conclude_in_span(
    problem: GridProblem, proposals: Sequence[SpanProposal], solver: str, held: HeldOut
) -> Fits:
    """Construct the fits of proposals in the span of the rows, certified by inner products; omit uncertified ones."""
    made = [_certify_in_span(problem, proposal) for proposal in proposals]
    A = np.zeros((len(problem.part), len(made)))
    for k, (proposal, model) in enumerate(zip(proposals, made, strict=True)):
        A[problem.training_rows(proposal.f), k] = model.a
    b = np.array([model.b for model in made])
    span = proposals[0].span
    W, Z = span.lift(A, b), span.scores(A, b)
    fits: Fits = {}
    for k, (proposal, model) in enumerate(zip(proposals, made, strict=True)):
        if not model.certificate.certified:
            continue
        c, f = proposal.c, proposal.f
        own = Solution(
            *(W[:, k : k + 1], Explicit(proposal.u), Status.CERTIFIED),
            passes=proposal.passes,
            seconds=proposal.seconds,
        )
        fits[c, f] = conclude(
            problem.recipe_of(c), own, model.certificate, solver, own.passes, own.seconds
        )
        inside = problem.part == f
        if f >= 0:
            held.record(problem, c, f, inside, Z[inside, k])
    return fits


def _certify_in_span(problem: GridProblem, proposal: SpanProposal) -> Spanned:
    """Certify a proposal at each of its stretch factors; return the first certified model, else the last."""
    recipe = problem.recipe_of(proposal.c)
    for stretch in proposal.stretches:
        model = from_gram(
            problem.loss,
            proposal.rows,
            proposal.u,
            proposal.b,
            penalty=recipe.penalty,
            fit_intercept=recipe.fit_intercept,
            tol=recipe.tol,
            longer=stretch,
        )
        if model.certificate.certified:
            break
    return model


def _fit_alone(recipe: Recipe, data: Dataset, start: FloatArray | None) -> Fit:
    """Fit one model of the grid by itself."""
    rows = recorded(data, reproducible_fields(recipe), start)
    return train(recipe, rows, start, warn=False)


def _nearest(fits: Fits, c: int, f: int, otherwise: FloatArray) -> FloatArray:
    """Return the coefficients of the fit of fold f whose C is closest to number c, else ``otherwise``."""
    known = [other for other, part in fits if part == f]
    return fits[min(known, key=lambda other: abs(other - c)), f].W if known else otherwise


def _conclude_unfinished(
    recipe: Recipe, data: Dataset, W: FloatArray, known: dict[int, FloatArray], solver: str
) -> Fit:
    """Certify W with the loss slopes at W as dual point. ``known`` caches the closing sums, equal for every C."""
    began = perf_counter()
    assert isinstance(recipe.loss, Loss)  # no engine applies to coupled losses
    own = Problem(recipe.loss, recipe.penalty, data, recipe.fit_intercept)
    dual = Linearised(W, np.zeros_like(W))
    if id(W) not in known:
        known[id(W)] = own.closing(np.ascontiguousarray(W[:, 0]), dual)
    found = Solution(W, dual, Status.TIME_LIMIT, own.passes, 0.0, sums=known[id(W)])
    found, certificate = prove(own, found, recipe.tol)
    return conclude(recipe, found, certificate, solver, own.passes, perf_counter() - began)


def _held_out_scores(problem: GridProblem, f: int, W: FloatArray) -> FloatArray:
    """Scores x.w + b of the rows of fold f. One pass."""
    scores = [
        np.asarray(block[problem.part[rows] == f], dtype=np.float64) @ W[:-1, 0] + W[-1, 0]
        for rows, block in row_blocks(problem.rows)
    ]
    return np.concatenate(scores)
