"""Fit and certify a small dense table without the objects of ``train``.

With about a hundred rows, constructing those objects takes longer than the fit. Here the native fits of the solvers
``small`` and ``interior`` read the user's arrays, and kernels/sums/enclosure.hpp computes the certificate from the sums
of their closing pass. The result is bit-identical to that of ``train``, which handles all other cases: other data,
losses and penalties, a starting point, limits, and a gap that is above ``tol`` after the native fit.
"""

from __future__ import annotations

from functools import lru_cache
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray
from linsep.certificates.certify import depends_on_rounding
from linsep.certificates.closing import ridge_certificate
from linsep.data.layout import dense_edges, longest_sum
from linsep.data.threads import usable_threads
from linsep.losses import CoupledLoss, Loss, zero_margin
from linsep.monitoring import is_watched
from linsep.solution import Explicit, Linearised, Solution, Status, TraceRecord
from linsep.solvers.cost.shape import Shape, correlation, hardness_of, probed_rows
from linsep.solvers.cost.work import kind_of
from linsep.solvers.dual_ascent import solve as dual_ascent
from linsep.solvers.interior import kinked
from linsep.solvers.interior.central_path import LIMIT
from linsep.solvers.newton import native as native_newton
from linsep.solvers.prediction import Prediction, skip_comparison
from linsep.solvers.run import SAFETY
from linsep.train import Fit, Recipe, conclude


class _Found(NamedTuple):
    """Result of a native fit: coefficients, dual point, sums of the closing pass and number of passes."""

    theta: FloatArray
    dual: Linearised | Explicit
    sums: FloatArray
    passes: float


def fit_small(
    recipe: Recipe,
    X: Any,
    sigma: FloatArray | None,
    offset: FloatArray | None,
    weight: FloatArray | None,
) -> Fit | None:
    """Fit in one native call, bit-identical to ``train``; None if ``train`` has to be used.

    Class labels must have both signs, each with positive total weight. Without ``sigma`` all signs are +1.
    """
    if not recipe.penalty.uniform:
        return None
    lam, loss = recipe.penalty.l2, recipe.loss
    if not lam > 0.0 or isinstance(loss, CoupledLoss) or not _plain(recipe, X):
        return None
    if is_watched():
        return None  # a progress bar needs a report after each pass
    began = perf_counter()
    if sigma is None:
        sigma = np.ones(len(X))
    if (
        loss.native is None
        or not loss.convex
        or not (loss.smooth or _has_kink(loss, X, sigma, offset, weight))
    ):
        return None
    rows, targets = _kernels.Rows(X), _kernels.Targets(sigma, offset, weight)
    solver = "small" if loss.smooth else "interior"
    found = None
    if _is_chosen(solver, recipe, loss, X, rows, targets):
        found = (_smooth if loss.smooth else _kinked)(recipe, loss, X, rows, targets)
    if found is None:
        return None
    n, d = X.shape
    longest = longest_sum(dense_edges(n, d, X.itemsize), n * d, len(found.sums))
    certificate = ridge_certificate(
        found.sums, found.theta, recipe.penalty, recipe.fit_intercept, recipe.tol, longest
    )
    gap = certificate.gap - certificate.rounding
    closed = gap <= SAFETY * recipe.tol * certificate.primal
    if not closed or not certificate.certified or depends_on_rounding(certificate):
        return None
    seconds = perf_counter() - began
    lower = certificate.dual + certificate.rounding
    line = TraceRecord(found.passes, seconds, certificate.primal, min(lower, certificate.primal))
    W, passes = found.theta.reshape(-1, 1), found.passes
    solution = Solution(W, found.dual, Status.CERTIFIED, passes, seconds, (line,))
    return conclude(recipe, solution, certificate, solver, passes, seconds)


def _is_chosen(
    solver: str,
    recipe: Recipe,
    loss: Loss,
    X: Any,
    rows: _kernels.Rows,
    targets: _kernels.Targets,
) -> bool:
    """Return whether ``train`` would choose this native solver."""
    (n, d), kind = X.shape, kind_of(loss)
    ascent = ("dual-cd",) if dual_ascent.covers(loss) else ()
    names = (solver, *(("newton-cg",) if loss.smooth else ()), *ascent)
    if skip_comparison(solver, kind, len(names), n, d, n * d):
        return True
    hard = hardness_of(loss, recipe.penalty.l2, _kernels.sampled_mean(rows, targets))
    probed = probed_rows(n, d)
    related = correlation(X[probed]) if len(probed) else 1.0
    kept = _kernels.kept_share(rows)
    shape = Shape(n, d, n * d, kept=kept, hardness=hard, correlation=related)
    return Prediction(shape, kind, recipe.tol).cheapest(names) == solver


def _smooth(
    recipe: Recipe, loss: Loss, X: Any, rows: _kernels.Rows, targets: _kernels.Targets
) -> _Found | None:
    """Fit by Newton's method (kernels/newton/fit.hpp); None if the gap stays above tol."""
    d = X.shape[1]
    theta, base, step = np.zeros(d + 1), np.empty(d + 1), np.empty(d + 1)
    sums = np.empty(8 + 2 * d)
    assert loss.native is not None
    status, _, sweeps, grams, _, _ = _kernels.newton(
        rows,
        targets,
        _compile(loss.native, loss.params),
        recipe.penalty.l2,
        SAFETY * recipe.tol,
        native_newton.MAX_STEPS,
        recipe.fit_intercept,
        native_newton.polishes(recipe.tol, X.size, d),
        (recipe.n_threads or usable_threads()) > 1,
        theta,
        base,
        step,
        sums,
    )
    if status != native_newton.GAP_CLOSED:
        return None
    dual = Linearised(base.reshape(-1, 1), step.reshape(-1, 1))
    return _Found(theta, dual, sums, float(sweeps + grams))


def _has_kink(
    loss: Loss, X: Any, sigma: FloatArray, offset: FloatArray | None, weight: FloatArray | None
) -> bool:
    """Return whether ``interior`` fits the loss in one call: the hinge with class labels, absolute loss with targets.

    There must be at least as many rows as features, and targets that no intercept fits alone (``flat_answer``).
    """
    if X.shape[1] > X.shape[0]:
        return False
    if offset is None:
        return loss.soft_margin
    if not (loss.regression and kinked.covers(loss)):
        return False
    needed = sigma * (zero_margin(loss) - offset)
    if weight is not None:
        needed = needed[weight > 0.0]
    return bool(needed.size and needed.min() < needed.max())


def _kinked(
    recipe: Recipe, loss: Loss, X: Any, rows: _kernels.Rows, targets: _kernels.Targets
) -> _Found | None:
    """Fit by the interior point method with crossover (kernels/interior/fit.hpp); None if it finds no point."""
    n, d = X.shape
    assert loss.native is not None
    theta, u, sums = np.zeros(d + 1), np.zeros(n), np.empty(8 + 2 * d)
    status, _, sweeps, grams, _ = _kernels.interior(
        rows,
        targets,
        _compile(loss.native, loss.params),
        recipe.penalty.l2,
        SAFETY * recipe.tol,
        LIMIT,
        recipe.fit_intercept,
        False,
        theta,
        u,
        sums,
    )
    if status == kinked.NO_POINT:
        return None
    return _Found(theta, Explicit(u), sums, float(sweeps + grams))


def _plain(recipe: Recipe, X: Any) -> bool:
    """Return whether X is a small C-ordered float array and the recipe has no L1 penalty, limits or named solver."""
    return (
        type(X) is np.ndarray
        and X.size <= native_newton.PILOT_ENTRIES
        and X.shape[1] <= native_newton.FEATURES
        and X.dtype.char in "fd"
        and X.dtype.isnative
        and X.flags.c_contiguous
        and recipe.solver == "auto"
        and recipe.penalty.l1_ratio == 0.0
        and recipe.time_limit is None
        and recipe.max_passes is None
    )


@lru_cache(maxsize=32)
def _compile(name: str, params: tuple[float, ...]) -> _kernels.Loss:
    return _kernels.Loss(name, *params)
