"""Fitting of the models of a grid one by one, in increasing order of C, with warm starts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import get_config
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from linsep.arrays import FloatArray, IntArray
from linsep.data import Location
from linsep.data.cluster import PersistedRows, partition_results
from linsep.data.threads import usable_threads
from linsep.errors import ConvergenceWarning
from linsep.interrupts import Workers
from linsep.monitoring import advance
from linsep.pipelines import final_step
from linsep.solvers.multiclass.softmax_path import SoftmaxPath
from linsep.tuning.labelled_rows import LabelledRows
from linsep.tuning.scoring import Score

# Range of the number of entries of X in which folds are fitted in parallel. Smaller fits spend most of their time in
# Python, which runs one thread at a time; larger ones use all threads by themselves, and need less memory one by one.
_WORTH_A_THREAD, _SIDE_BY_SIDE = 20_000, 20_000_000
_SCORED = 4096  # rows scored together


def fit(model: Any, data: LabelledRows) -> None:
    """Fit the model to all rows."""
    weight = {} if data.weight is None else {_weight_keyword(model): data.weight}
    model.fit(data.X, data.y, **weight)


def _weight_keyword(model: Any) -> str:
    """Return the argument of ``fit`` that passes weights to the model, but not to the steps of a pipeline."""
    if not isinstance(model, Pipeline) or get_config()["enable_metadata_routing"]:
        return "sample_weight"
    return f"{final_step(model)}__sample_weight"


def score_held_out(score: Score, model: Any, data: LabelledRows, rows: IntArray) -> float:
    """Return the score of a model on the given rows.

    On disk and on a cluster, all rows are predicted, the others with weight 0. On a cluster, a score that is a mean
    over rows is computed by the workers, which send only sums.
    """
    if score.is_mean and isinstance(data.X, PersistedRows):
        sent = data.send(rows, "held out")
        sums = partition_results(partial(_weigh, score.of), model, sent.X, sent.y, sent.weight)
        total, mass = np.sum(sums, axis=0)
        return float(total / mass)
    some = data.take(rows)
    return score.of(model, some.X, some.y, some.weight)


def scores(X: npt.NDArray[Any], rows: IntArray, Ws: Sequence[FloatArray]) -> FloatArray:
    """Return the scores x.w + b of the given rows for each model, (models, rows)."""
    W = np.hstack(Ws)
    z = np.empty((W.shape[1], len(rows)))
    for low in range(0, len(rows), _SCORED):
        here = slice(low, low + _SCORED)
        z[:, here] = (X[rows[here]] @ W[:-1] + W[-1]).T
    return z


def _weigh(
    of: Callable[..., float], model: Any, x: Any, y: npt.NDArray[Any], s: FloatArray
) -> FloatArray:
    """Return a mean score times the total weight of its rows, and this weight, on a worker."""
    mass = float(s.sum())
    return np.array([mass * of(model, x, y, s) if mass else 0.0, mass])


def models(
    estimator: Any,
    data: LabelledRows,
    Cs: FloatArray,
    pairs: Sequence[tuple[IntArray, IntArray]],
) -> Iterator[tuple[int, int, Any]]:
    """Yield (number of C, fold, fitted model), fold by fold.

    Fits do not warn; the caller reports all uncertified models together. Folds of moderate size, whose fits would
    leave threads idle, are fitted in parallel with one thread each; results are bit-identical.
    """
    plain = clone(estimator)
    workers = min(_threads(plain.get_params(deep=False)), len(pairs))
    together = workers > 1 and data.location is Location.MEMORY
    if together:
        entries = data.X.nnz if hasattr(data.X, "nnz") else np.size(data.X)
        together = _WORTH_A_THREAD <= entries <= _SIDE_BY_SIDE
    if not together:
        for f, (train, _) in enumerate(pairs):
            fitted = fit_rising(plain, data.send(train, "training"), Cs)
            for c in range(len(Cs)):
                with quiet():
                    model = next(fitted)
                yield c, f, model
        return
    plain.set_params(n_threads=1)

    def along(f: int) -> list[Any]:
        return list(fit_rising(plain, data.take(pairs[f][0]), Cs))

    with quiet(), Workers(workers, "linsep-fold") as pool:
        folds = []
        for found in pool.map(along, range(len(pairs))):
            folds.append(found)
            advance(len(folds) * len(Cs))
    for f, found in enumerate(folds):
        for c, model in enumerate(found):
            yield c, f, model


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress the warnings of fits that end above tol."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def _threads(given: dict[str, Any]) -> int:
    """Return the number of threads that the estimator may use, 1 if it has no such parameter."""
    if "n_threads" not in given:
        return 1
    return usable_threads() if given["n_threads"] is None else int(given["n_threads"])


def fit_rising(estimator: Any, data: LabelledRows, Cs: FloatArray) -> Iterator[Any]:
    """Yield a model for each C, in increasing order, fitted with a warm start from those before."""
    model, path = clone(estimator), SoftmaxPath()
    if "warm_start" in model.get_params(deep=False):
        model.set_params(warm_start=True)
    for C in Cs.tolist():
        model.set_params(C=C)
        with path.use():
            fit(model, data)
        yield copy(model)  # shallow: a fit replaces the fitted attributes and never mutates them
