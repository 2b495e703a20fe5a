"""More features than rows: the whole grid in the span of the rows, from one matrix of their inner products.

Every model of a ridge penalty is w = X'a. With K = (X - mu)(X - mu)' of all rows, computed once, the rows of K that
belong to a training set are the whole problem, exactly, whatever the number of features. Losses made of lines and
parabolas are solved by them alone (``solvers/newton/gram_space.py``); the logistic loss on the table L with K_f = L
L', which has the same inner products and as many columns as rows. Held-out rows are scored by K, and the certificates
come from K too, with its rounding errors paid for (``certificates/gram.py``). A model that falls short of tol,
because rounding has taken what K does not tell of the rows, gets a fit of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cholesky

from linsep.certificates.gram import GramRows, Spanned, from_gram
from linsep.certificates.recheck import dual_point
from linsep.data import Memory
from linsep.data.threads import usable_threads
from linsep.losses import CoupledLoss
from linsep.monitoring import advance
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.solution import Explicit, Status, Stop
from linsep.solvers import choose
from linsep.solvers.dual_ascent import solve as dual_cd
from linsep.solvers.newton import gram_space as span_newton
from linsep.train import Fit
from linsep.tuning.newton_grid import Shared, alone, both_classes

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

LARGEST = 3000  # rows up to which the matrix of inner products is made
_WORTH = 200  # rows for each model of the grid, at most: below that the matrix pays
# Rows up to which Newton's method beats ascent in any case; of more, the rows for each epoch that is worth trying.
_FEW, _EPOCHS, _EPOCHS_SMOOTH = 600, 10, 25
_COLUMNS = 4096  # of X that are centred at a time
_SHARE = 0.3  # of tol that a model on L may leave
# Shares of that by which a model of the hinge is stretched: more, where a row on the kink is not clear of rounding.
_LONGER = (span_newton.STRETCH, 10.0 * span_newton.STRETCH)
_LIFT = 1e-15  # of the largest |x|^2, added to K_f if it is singular; ten times as much until it has a factor


def applies(given: Shared, Cs: Sequence[float], part: IntArray) -> bool:
    """Whether there are more features than rows, not too many rows, and a loss whose dual is solved row by row."""
    recipe, loss = given.recipe, given.recipe.loss
    if isinstance(loss, CoupledLoss) or not dual_cd.covers(loss):
        return False
    if recipe.penalty.l1_ratio or recipe.solver != "auto" or not np.isfinite(Cs).all():
        return False
    if recipe.time_limit is not None or recipe.max_passes is not None:
        return False
    if not isinstance(given.rows, np.ndarray):
        return False
    n, d = given.rows.shape
    models = len(Cs) * max(1, int(part.max()) + 1)
    if not n < d or n > min(LARGEST, _WORTH * models):
        return False
    return not loss.classification or both_classes(given, part)


def fit_grid(
    given: Shared,
    Cs: Sequence[float],
    part: IntArray,
    held: FloatArray | None,
    errors: IntArray | None = None,
) -> dict[tuple[int, int], Fit]:
    """As ``shared.fit_grid``: a fit for every C and part (part -1 if there are none), all certified or honestly not."""
    whole = _Whole(given)
    recipe = given.recipe
    folds = sorted({int(f) for f in np.unique(part) if f >= 0}) or [-1]
    threads = usable_threads() if recipe.n_threads is None else recipe.n_threads

    trained = {f: np.flatnonzero((part != f) | (f < 0)) for f in folds}

    def along(f: int) -> list[_Solved]:
        return _rising(whole, Cs, trained[f])

    with ThreadPoolExecutor(max(1, min(threads, len(folds))), "linsep-fold") as pool:
        found = []
        for fold in pool.map(along, folds):
            found.append(fold)
            advance(len(found) * len(Cs))
    A = np.zeros((len(part), len(Cs) * len(folds)))
    for k, (f, fold) in enumerate(zip(folds, found, strict=True)):
        A[trained[f], k * len(Cs) : (k + 1) * len(Cs)] = np.stack(
            [one.model.a for one in fold], axis=1
        )
    W = whole.lifted(A, np.array([one.model.b for fold in found for one in fold]))
    Z = whole.K @ A + np.array([one.model.b for fold in found for one in fold])
    fits: dict[tuple[int, int], Fit] = {}
    for k, (c, f) in enumerate((c, f) for f in folds for c in range(len(Cs))):
        fits[c, f] = fit = found[k // len(Cs)][c].fit(W[:, k : k + 1], whole.reading / A.shape[1])
        if not fit.certificate.certified:
            fits[c, f] = alone(given, fit.recipe, part, f, None, held, errors, c)
            continue
        inside = part == f
        if held is not None and f >= 0:
            held[inside, c] = Z[inside, k]
        if errors is not None and given.sigma is not None:
            errors[c, f] = int(((Z[inside, k] >= 0.0) != (given.sigma[inside] > 0.0)).sum())
    return fits


class _Whole:
    """All rows: their centre and inner products."""

    def __init__(self, given: Shared) -> None:
        self.given, X = given, given.rows
        n, d = X.shape
        self.mu = np.zeros(d)
        if given.recipe.fit_intercept:
            self.mu = np.asarray(X.mean(axis=0, dtype=np.float64))
        self.K = np.zeros((n, n))
        for low in range(0, d, _COLUMNS):
            some = self.centred(slice(low, low + _COLUMNS))
            self.K += some @ some.T
        self.sigma = np.ones(n) if given.sigma is None else given.sigma
        self.reading = 2.0  # passes: for K and for the coefficients

    def centred(self, columns: slice) -> FloatArray:
        return np.asarray(self.given.rows[:, columns], np.float64) - self.mu[columns]

    def some(self, rows: IntArray) -> GramRows:
        """What a model trained on these rows sees."""
        given = self.given
        return GramRows(
            np.ascontiguousarray(self.K[np.ix_(rows, rows)]),
            self.given.rows.shape[1],
            float(np.linalg.norm(self.mu)),
            self.sigma[rows],
            None if given.offset is None else given.offset[rows],
            None if given.weight is None else given.weight[rows],
        )

    def lifted(self, A: FloatArray, b: FloatArray) -> FloatArray:
        """The coefficients (d + 1, models) of w = (X - mu)'a for every column a of A, with the intercepts b."""
        d = self.given.rows.shape[1]
        W = np.zeros((d + 1, A.shape[1]))
        for low in range(0, d, _COLUMNS):
            here = slice(low, min(low + _COLUMNS, d))
            W[here] = self.centred(here).T @ A
        if self.given.recipe.fit_intercept:
            W[-1] = b - self.mu @ W[:-1]
        return W


class _Solved:
    """A model on the reduced table, judged by the inner products."""

    def __init__(self, recipe: Any, u: FloatArray, model: Spanned, passes: float, seconds: float):
        self.recipe, self.u, self.model = recipe, u, model
        self._passes, self._seconds = passes, seconds

    def fit(self, W: FloatArray, reading: float) -> Fit:
        """All that came out, with the coefficients of the features."""
        proof = self.model.certificate
        return Fit(
            recipe=self.recipe,
            W=W,
            dual=Explicit(self.u),
            certificate=proof,
            status=Status.CERTIFIED if proof.certified else Status.WORKING_PRECISION,
            n_passes=reading + self._passes,
            seconds=self._seconds,
            trace=(),
            solver="span",
        )


def _factor(K: FloatArray) -> FloatArray:
    """L with L L' = K, as nearly as rounding lets it."""
    lift = 0.0
    top = max(float(np.diag(K).max(initial=0.0)), 1e-300)
    while True:
        try:
            lifted = K if lift == 0.0 else K + lift * np.eye(len(K))
            return np.ascontiguousarray(cholesky(lifted, lower=True, check_finite=False))
        except LinAlgError:
            lift = 10.0 * lift if lift else _LIFT * top


def _rising(whole: _Whole, Cs: Sequence[float], train: IntArray) -> list[_Solved]:
    """The model of each C on these rows."""
    recipe, rows = whole.given.recipe, whole.some(train)
    loss, tol = recipe.loss, _SHARE * recipe.tol
    assert not isinstance(loss, CoupledLoss)
    n, d = whole.given.rows.shape
    solve = _by_newton if span_newton.applies(loss) else _by_rows
    found = []
    began = perf_counter()
    for C, (u, b, entries) in zip(Cs, solve(whole, rows, Cs, tol), strict=True):
        mine = replace(recipe, penalty=ElasticNet(C))
        for longer in _LONGER if not loss.smooth else _LONGER[:1]:
            model = from_gram(
                loss,
                rows,
                u,
                b,
                penalty=mine.penalty,
                fit_intercept=recipe.fit_intercept,
                tol=recipe.tol,
                longer=longer * tol,
            )
            if model.certificate.certified:
                break
        seconds, began = perf_counter() - began, perf_counter()
        found.append(_Solved(mine, u, model, entries / (n * d), seconds))
    return found


Answer = tuple[FloatArray, float, float]  # u, b, entries of tables that were read


def _by_newton(whole: _Whole, rows: GramRows, Cs: Sequence[float], tol: float) -> Iterator[Answer]:
    """Losses made of lines and parabolas: by inner products alone, but of many rows ascent is tried first."""
    recipe, n = whole.given.recipe, len(rows.K)
    loss = recipe.loss
    assert not isinstance(loss, CoupledLoss)
    offset = np.zeros(n) if rows.offset is None else rows.offset
    weight = np.ones(n) if rows.weight is None else rows.weight
    span = span_newton.Span(loss, rows.K, rows.sigma, offset, weight, recipe.fit_intercept)
    table = _table(rows) if n > _FEW else None
    patience = n / (_EPOCHS_SMOOTH if loss.smooth else _EPOCHS)
    start = None
    for C in Cs:
        lam = ElasticNet(C).l2
        known = None if start is None else span_newton.known(span, lam, tol, *start)
        if known is None and start is not None and not loss.smooth:
            known = span_newton.made_exact(span, lam, tol, *start)
        if known is None and table is not None:
            problem = Problem(loss, ElasticNet(C), table, recipe.fit_intercept)
            begin = np.zeros(problem.order)
            first = dual_cd.solve(problem, begin, Stop(tol), None, recipe.seed or 0, patience)
            if first.status is Status.CERTIFIED and isinstance(first.dual, Explicit):
                u, b = first.dual.u, float(first.W[-1, 0])
                if loss.smooth or u.max() >= loss.domain[1]:
                    start = u / lam, b
                    yield u, b, problem.passes * n * n
                    continue
                known = span_newton.polished(span, lam, tol, u, b)  # for all larger C
        found = span_newton.solve(span, lam, tol, start) if known is None else known
        start = found.u / lam, found.b
        yield found.u, found.b, float(2 * found.steps * n * n)


def _table(rows: GramRows) -> Memory:
    return Memory(_factor(rows.K), rows.sigma, rows.offset, rows.weight, n_threads=1)


def _by_rows(whole: _Whole, rows: GramRows, Cs: Sequence[float], tol: float) -> Iterator[Answer]:
    """Others: by the solvers of any table, on L, from the C before."""
    recipe, data = whole.given.recipe, _table(rows)
    loss, L = recipe.loss, data.X
    assert not isinstance(loss, CoupledLoss)
    theta = np.zeros(L.shape[1] + 1)
    offset = np.zeros(len(L)) if rows.offset is None else rows.offset
    for C in Cs:
        problem = Problem(loss, ElasticNet(C), data, recipe.fit_intercept)
        solution = choose(problem, "auto", Stop(tol)).run(
            problem, theta, Stop(tol), recipe.seed or 0
        )
        theta = np.ascontiguousarray(solution.W[:, 0])
        m = rows.sigma * (L @ theta[:-1] + theta[-1]) + offset
        u = dual_point(loss, solution.dual, slice(0, len(L)), L, rows.sigma, offset, m)
        yield u, float(theta[-1]), problem.passes * L.size
