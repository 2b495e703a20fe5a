"""The short road: a small dense table becomes a certified fit without the objects of ``train``.

On a table of a hundred rows a data set, a problem, a run and what they tell each other take longer than the fit. Here
the solver ``small`` (kernels/newton.hpp) reads the user's arrays, and kernels/enclosing.hpp puts the certificate
together from the sums of its closing pass. The answer has the bits of the long road, which takes all that is
not plain: other data, losses and penalties, a start, limits, a gap that does not close at the first attempt.
"""

from __future__ import annotations

import math
from functools import lru_cache
from time import perf_counter
from typing import Any

import numpy as np

from linsep import _kernels
from linsep.certificates.optimality import enclose
from linsep.data.layout import dense_edges, longest_sum
from linsep.data.threads import usable_threads
from linsep.losses import CoupledLoss, Loss
from linsep.solution import FloatArray, Linearised, Status, TraceRecord
from linsep.solvers import small
from linsep.solvers.run import SAFETY
from linsep.train import Fit, Recipe


def fit_at_once(
    recipe: Recipe,
    X: Any,
    sigma: FloatArray | None,
    offset: FloatArray | None,
    weight: FloatArray | None,
) -> Fit | None:
    """The fit of ``train``; None if it is not for the short road."""
    lam = recipe.penalty.l2
    loss = _native(recipe.loss) if _plain(recipe, X) and lam > 0.0 else None
    if loss is None or sigma is None:
        return None
    began = perf_counter()
    n, d = X.shape
    theta, base, step = np.zeros(d + 1), np.empty(d + 1), np.empty(d + 1)
    sums = np.empty(8 + 2 * d)
    threads = recipe.n_threads or usable_threads()
    status, _, sweeps, grams, primal, lower = _kernels.newton(
        _kernels.Rows(X),
        _kernels.Targets(sigma, offset, weight),
        loss,
        lam,
        SAFETY * recipe.tol,
        small.STEPS,
        recipe.fit_intercept,
        small.polishes(recipe.tol, n * d, d),
        threads > 1,
        theta,
        base,
        step,
        sums,
    )
    if status != small.GAP_CLOSED:
        return None
    rows = longest_sum(dense_edges(n, d, X.itemsize), n * d, len(sums))
    scale = recipe.penalty.scale
    certificate = enclose(
        *_kernels.enclosed(sums, theta, lam, recipe.fit_intercept, rows),
        scale=scale,
        tol=recipe.tol,
        distance=math.sqrt(2.0 / lam),
        kind="dual",
    )
    if not certificate.certified:
        return None
    passes, seconds = float(sweeps + grams), perf_counter() - began
    trace = TraceRecord(passes, seconds, scale * primal, scale * min(lower, primal))
    return Fit(
        recipe,
        theta.reshape(-1, 1),
        Linearised(base.reshape(-1, 1), step.reshape(-1, 1)),
        certificate,
        Status.CERTIFIED,
        passes,
        seconds,
        (trace,),
        "small",
    )


def _plain(recipe: Recipe, X: Any) -> bool:
    """Whether this is the solver ``small`` without a pilot or a limit, on rows that the kernels read as they lie."""
    return (
        type(X) is np.ndarray
        and X.size <= small.PILOT_ENTRIES
        and X.shape[1] <= small.FEATURES
        and X.dtype.char in "fd"
        and X.dtype.isnative
        and X.flags.c_contiguous
        and recipe.solver in ("auto", "small")
        and recipe.penalty.l1_ratio == 0.0
        and recipe.time_limit is None
        and recipe.max_passes is None
    )


def _native(loss: Loss | CoupledLoss) -> _kernels.Loss | None:
    """The compiled text of a smooth loss, if there is one."""
    if isinstance(loss, CoupledLoss) or loss.native is None or not (loss.smooth and loss.convex):
        return None
    return _compiled(loss.native, loss.params)


@lru_cache(maxsize=32)
def _compiled(name: str, params: tuple[float, ...]) -> _kernels.Loss:
    return _kernels.Loss(name, *params)
