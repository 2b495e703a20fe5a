"""Certificates, early stopping and divergence checks of stochastic descent, for ``SGDClassifier``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

from linsep.arrays import FloatArray, IntArray
from linsep.certificates import certify, loss_factor
from linsep.data import Memory
from linsep.data.entrance.dataframes import Names
from linsep.data.entrance.finite import refuse_nonfinite
from linsep.errors import BadInput, NonFinite
from linsep.estimators.scoring import product
from linsep.losses import CoupledLoss
from linsep.online import Curves, Descent
from linsep.problem import Problem
from linsep.solution import Linearised, Solution, Status, TraceRecord
from linsep.train import Fit, Recipe, conclude


class SgdCertifier:
    """Certifies iterates of stochastic descent on one problem, or on one-vs-rest problems that share their rows."""

    def __init__(self, recipe: Recipe, data: Memory, k: int) -> None:
        assert data.labels is not None
        self._recipe, self._data = recipe, data
        self.factor = loss_factor(recipe.loss, recipe.penalty)
        self._positive = [1] if k == 2 else list(range(k))
        self.passes = 0.0
        self.total = float(data.n if data.weight is None else data.weight.sum())
        self._before = np.inf

    def is_certified(self, curves: Curves) -> bool:
        """Return whether the best iterate is certified to tol.

        The certificate is computed only when the objective decreased by less than tol since the last call.
        """
        now = float(curves.P.sum())
        slow = self._before - now <= self._recipe.tol * abs(now)
        self._before = now
        if not slow or not np.isfinite(now):
            return False
        return all(
            self._fit(c, np.ascontiguousarray(curves.W[c]), (), 0.0).certificate.certified
            for c in range(len(self._positive))
        )

    def fits(self, done: Descent, seconds: float) -> list[Fit]:
        """Return one Fit for each column of W, all with the trace of the total objective."""
        share = done.passes / max(1, done.n_steps)
        trace = tuple(
            TraceRecord(share * step, at, self.factor.objective * float(P.sum()), 0.0)
            for step, at, P in zip(
                done.curves.steps, done.curves.seconds, done.curves.best, strict=True
            )
        )
        return [
            self._fit(c, np.ascontiguousarray(done.W[:, c]), trace, seconds)
            for c in range(len(self._positive))
        ]

    def _fit(
        self, c: int, theta: FloatArray, trace: tuple[TraceRecord, ...], seconds: float
    ) -> Fit:
        recipe, data, factor = self._recipe, self._data, self.factor
        assert not isinstance(factor.loss, CoupledLoss)
        assert data.labels is not None
        sign = np.where(data.labels == self._positive[c], 1.0, -1.0)
        W = theta[:, None]
        dual = Linearised(W, np.zeros_like(W))  # u_i = -l'(m_i) at W itself
        with closing(Memory(data.X, sign, weight=data.weight, n_threads=data.n_threads)) as rows:
            problem = Problem(factor.loss, factor.penalty, rows, recipe.fit_intercept)
            solution = Solution(W, dual, Status.PASS_LIMIT, 0.0, seconds, trace)
            found = certify(problem, solution, factor.tol(recipe.tol))
            certificate = factor.certificate(found, recipe.tol)
        self.passes += problem.passes
        return conclude(recipe, solution, certificate, "sgd", problem.passes, seconds)


class ValidationMonitor:
    """Early stopping by the accuracy on held-out rows, which is computed after every epoch.

    The descent ends after ``patience`` consecutive epochs that do not raise the best accuracy by more than ``tol``.
    """

    def __init__(
        self,
        X: Any,
        codes: IntArray,
        weight: FloatArray | None,
        tol: float,
        patience: int,
    ) -> None:
        self._X, self._codes, self._weight = X, codes, weight
        self._tol, self._patience, self._idle = tol, patience, 0
        self.scores: list[float] = []
        self.best: FloatArray = np.empty(0)
        self._bar = -np.inf

    def __call__(self, W: FloatArray) -> bool:
        """Score the iterate W (columns, d+1) and return whether to stop."""
        Z = product(self._X, np.ascontiguousarray(W[:, :-1].T)) + W[:, -1]
        predicted = Z[:, 0] >= 0.0 if Z.shape[1] == 1 else Z.argmax(axis=1)
        score = float(np.average(predicted == self._codes, weights=self._weight))
        if score > max(self.scores, default=-np.inf):
            self.best = W.copy()
        self._idle = 0 if score > self._bar + self._tol else self._idle + 1
        self._bar = max(self._bar, score)
        self.scores.append(score)
        return self._idle >= self._patience


def held_out_rows(
    codes: IntArray, weight: FloatArray | None, fraction: float, seed: int
) -> IntArray:
    """Draw ``fraction`` of the rows of each class at random, among those of positive weight; return their numbers."""
    present = np.arange(len(codes)) if weight is None else np.flatnonzero(weight)
    split = StratifiedShuffleSplit(1, test_size=fraction, random_state=seed)
    try:
        _, held = next(split.split(present, codes[present]))
    except ValueError as error:
        raise BadInput(
            f"early_stopping cannot hold out validation_fraction={fraction:g} of {len(present)} rows: {error}"
        ) from error
    found: IntArray = np.sort(present[held])
    return found


@contextmanager
def locate_nonfinite(X: Any, names: Names | None) -> Iterator[None]:
    """Replace a ``NonFinite`` error by one that names the position of the entry in X, which is searched only then."""
    try:
        yield
    except NonFinite:
        refuse_nonfinite(X, names)
        raise


def refuse_divergence(done: Descent, keep: str) -> None:
    """Raise if the descent diverged: the result or the last objective is not finite.

    With ``keep="best"`` the last objective may be infinite if an earlier iterate improved on the start.
    """
    improved = bool((done.curves.best[-1] < done.curves.first).all())
    exploded = not np.isfinite(done.curves.last[-1]).all()
    if np.isfinite(done.W).all() and (not exploded or (keep == "best" and improved)):
        return
    raise BadInput(
        f"the steps were too large: after {done.n_steps} of them the objective is "
        f"{float(np.max(done.curves.last[-1]))}; give a smaller eta0 (the first step was "
        f"{float(done.step_sizes.eta0.max()):g}), let eta0='auto' find one, or set standardise=True."
    )


def curve(values: Sequence[FloatArray], scale: float) -> FloatArray:
    """Return ``scale`` times the values: (points,) for one problem, (points, k) for several."""
    found = scale * np.array(values)
    return found[:, 0] if found.shape[1] == 1 else found
