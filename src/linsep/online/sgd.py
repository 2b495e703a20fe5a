"""Stochastic sub-gradient descent on the objective of the linsep estimators.

::

    P(w, b) = 1/2 |w|^2 + C sum_i s_i l(m_i)  =  C S (lam/2 |w|^2 + mean_i l(m_i)),   S = sum s,  lam = 1/(C S)

The mean is over rows drawn with probability s_i/S, and a step at one row (or at the mean of a batch) is

    w <- (1 - eta lam) w - eta y l'(m) x,      b <- b - eta y l'(m)

whose expectation is minus eta times a sub-gradient of P/(C S). With all rows as the batch it is sub-gradient descent.
By default the best iterate in terms of P is returned: iterates are stored at intervals and evaluated together, eight in
one pass.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from linsep.arrays import FloatArray, IntArray
from linsep.data import Memory
from linsep.errors import BadInput
from linsep.losses import Loss
from linsep.monitoring import Job
from linsep.online.draws import Draws
from linsep.online.first_step import find_first_step, trial_size
from linsep.online.objective_evaluator import ObjectiveEvaluator
from linsep.online.scaling import Scaling, make_steps
from linsep.online.schedules import Schedule, StepSizes

KEEPS = ("best", "last", "average")
_POINTS = 8  # iterates evaluated in one pass


@dataclass(frozen=True, eq=False)
class Plan:
    """Settings of a descent. ``None`` means all rows as the batch, or a step size found by trial."""

    loss: Loss
    C: float
    schedule: str | Schedule
    eta0: float | None
    decay: float | None
    batch: int | None
    replacement: bool
    keep: str
    epochs: int
    fit_intercept: bool
    seed: int
    standardise: bool = False

    def lam(self, total: float) -> float:
        """Weight of the penalty relative to the mean loss, 1/(C total)."""
        if self.C * total == 0.0:
            raise BadInput(
                f"C times the sum of the weights is below the smallest number: C={self.C!r}, weights that add up to "
                f"{total!r}. Multiply the weights by a power of ten and divide C by it."
            )
        return 0.0 if math.isinf(self.C) else 1.0 / (self.C * total)


@dataclass(eq=False)
class Curves:
    """Values of P at the evaluated iterates, (points, columns) each, and the best iterate of each column."""

    W: FloatArray
    P: FloatArray
    first: FloatArray  #: P at the start
    steps: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    last: list[FloatArray] = field(default_factory=list)
    best: list[FloatArray] = field(default_factory=list)
    averaged: list[FloatArray] = field(default_factory=list)
    began: float = field(default_factory=time.perf_counter)

    def add(self, step: int, W: FloatArray, P: FloatArray) -> None:
        """Add an evaluated iterate."""
        better = P < self.P
        self.W[better], self.P[better] = W[better], P[better]
        self.steps.append(step)
        self.seconds.append(time.perf_counter() - self.began)
        self.last.append(P)
        self.best.append(self.P.copy())


@dataclass(frozen=True, eq=False)
class Descent:
    """Result of a descent: W (d+1, columns), the step sizes used, the curves, and the cost."""

    W: FloatArray
    step_sizes: StepSizes
    curves: Curves
    n_steps: int
    epochs: int
    passes: float
    continuation: FloatArray  #: (columns, d+1), iterate from which further steps continue
    sums: FloatArray | None
    scaling: Scaling | None


class _Run:
    """State of one descent."""

    def __init__(self, plan: Plan, data: Memory, k: int) -> None:
        assert data.whole is not None and data.labels is not None
        rows, labels = data.whole.rows, data.labels
        self.plan, self.n = plan, data.n
        self.draws = Draws(data, k, plan.seed, plan.replacement)
        self.whole = plan.batch is None
        self.batch = data.n if plan.batch is None else plan.batch
        self.per_epoch = 1 if self.whole else -(-self.draws.in_a_pass // self.batch)
        lam = plan.lam(self.draws.total)
        self.scaling = Scaling.of(data, plan.fit_intercept, lam) if plan.standardise else None
        self.steps = make_steps(
            self.scaling,
            *(plan.loss, data.X, rows, labels, k),
            weight=data.weight if self.whole else None,
            lam=lam,
            batch=self.batch,
            total=self.draws.total if self.whole else float(self.batch),
            fit_intercept=plan.fit_intercept,
        )
        self.W = np.zeros((1 if k == 2 else k, data.d + 1))
        self.sums = np.zeros_like(self.W) if plan.keep == "average" else None
        tried = self.draws.sample(trial_size(data))
        self.step_sizes = choose_steps(
            *(plan, data.X[tried], labels[tried], k),
            lam=lam,
            per_epoch=self.per_epoch,
            start=self.W,
            scaling=self.scaling,
        )
        self.evaluate = ObjectiveEvaluator(plan.loss, plan.C, data, k)
        start = self.evaluate.at_zero(self.draws.total)
        self.curves = Curves(self.W.copy(), start.copy(), start)
        self.done = 0
        self._pending: list[tuple[int, FloatArray, FloatArray | None]] = []

    def advance(self, mark: int) -> None:
        """Take steps up to step number ``mark``."""
        while self.done < mark:
            now = min(mark - self.done, self.steps.in_a_call)
            rows = np.arange(self.n) if self.whole else self.draws.take(now * self.batch)
            if self.whole:
                now = 1
            self.steps.run(self.step_sizes, self.done, rows, self.W, self.sums)
            self.done += now

    def mean(self) -> FloatArray | None:
        """Mean of the iterates, weighted by their step numbers."""
        return None if self.sums is None else self.sums / (0.5 * self.done * (self.done + 1.0))

    def store_iterate(self) -> None:
        """Store the current iterate for evaluation; evaluate when there are enough."""
        self._pending.append((self.done, self.W.copy(), self.mean()))
        if len(self._pending) * (1 if self.sums is None else 2) >= _POINTS:
            self.evaluate_stored()

    def evaluate_stored(self) -> None:
        """Evaluate P at all stored iterates."""
        waiting, self._pending = self._pending, []
        if not waiting:
            return
        means = [mean for *_, mean in waiting if mean is not None]
        values = self.evaluate([W for _, W, _ in waiting] + means)
        for (step, W, _), P in zip(waiting, values, strict=False):
            self.curves.add(step, W, P)
        self.curves.averaged += list(values[len(waiting) :])

    @property
    def all_evaluated(self) -> bool:
        """Whether all stored iterates have been evaluated."""
        return not self._pending


class Monitor(Protocol):
    """Callback after every epoch, which keeps the iterate that it rates best."""

    best: FloatArray  #: (columns, d+1)

    def __call__(self, W: FloatArray) -> bool:
        """Return whether to stop."""


def descend(
    plan: Plan,
    data: Memory,
    k: int,
    enough: Callable[[Curves], bool] | None = None,
    monitor: Monitor | None = None,
) -> Descent:
    """Take the steps of all epochs; ``enough(curves)`` may end the descent after any evaluated epoch.

    A ``monitor`` may end it after every epoch; it then determines the best iterate.
    """
    with Job("descent", total=plan.epochs) as job:
        run = _Run(plan, data, k)
        for epoch in range(plan.epochs):
            for mark in _marks(run.per_epoch, epoch):
                run.advance(epoch * run.per_epoch + mark)
                run.store_iterate()
            job.done += 1
            if not np.isfinite(run.W).all():
                break
            mean = run.mean()
            if monitor is not None and monitor(run.W if mean is None else mean):
                break
            if enough is not None and run.all_evaluated and enough(run.curves):
                break
        run.evaluate_stored()
    mean, best = run.mean(), run.curves.W if monitor is None else monitor.best
    W = best if plan.keep == "best" else run.W if mean is None else mean
    return Descent(
        W=np.ascontiguousarray(W.T),
        step_sizes=run.step_sizes,
        curves=run.curves,
        n_steps=run.done,
        epochs=int(job.done),
        passes=run.done * run.batch / data.n + run.evaluate.passes,
        continuation=best if plan.keep == "best" else run.W,
        sums=run.sums,
        scaling=run.scaling,
    )


def _marks(per_epoch: int, epoch: int) -> list[int]:
    """Steps of an epoch after which the iterate is stored: its end, and in the first epoch also earlier ones."""
    parts = [0.125, 0.25, 0.5, 1.0] if epoch == 0 else [1.0]
    return sorted({math.ceil(per_epoch * part) for part in parts})


def choose_steps(
    plan: Plan,
    X: Any,
    labels: IntArray,
    k: int,
    *,
    lam: float,
    per_epoch: int,
    start: FloatArray,
    scaling: Scaling | None = None,
) -> StepSizes:
    """Step sizes according to the plan; open settings are decided by a trial on these rows.

    A step size that was best for t steps is appropriate for about that many, so by default it starts to decrease after
    t steps; 1/k, which decreases faster, does so no earlier than after the first epoch.
    """
    ones = np.ones(len(start))
    if not isinstance(plan.schedule, str):
        return StepSizes(plan.schedule, ones, ones)
    batch = min(plan.batch or len(labels), len(labels))
    if plan.eta0 is not None:
        eta0 = plan.eta0 * ones
    else:
        eta0 = find_first_step(
            plan.loss,
            X,
            labels,
            k,
            lam=lam,
            batch=batch,
            fit_intercept=plan.fit_intercept,
            start=start,
            scaling=scaling,
        )
    steps = len(labels) // batch
    if plan.schedule == "inverse":
        steps = max(steps, per_epoch)
    return StepSizes(plan.schedule, eta0, ones / steps if plan.decay is None else plan.decay * ones)
