"""Absolute penalties: time to suboptimality 1e-3 and 1e-6 against skglm, celer, LIBLINEAR, glum and scikit-learn.

    P(w, b) = |w|_1 + C sum_i l(y_i (x_i.w + b))

with b free (linsep, skglm, glum, saga), in the norm (LIBLINEAR: |w|_1 + |b|) or absent (celer). As in the race:
by numpy, each on its own objective against the certified minimum, each rival at its best tolerance. C is 0.01, 1 or
100, or a multiple of the least C at which a feature enters (lambda_max / lambda in the column "strength").

Everything runs in one thread and processor time is counted, so that other work on the machine disturbs little. A rival
runs in a process of its own, which is ended when it has had its cap. X is float64 in C order or CSR for everybody, and
conversion is part of the time; compilation is not. Two of the tables are made, so that anybody can repeat it without
files. The results are written after every cell.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import datasets
import generators
import numpy as np
import scipy.sparse as sp
import tables
from objective import loss_sum
from rivals.contest import TOLERANCES
from rivals.contest import linear as coefficients
from threadpoolctl import threadpool_limits

COLUMNS = (
    *("data", "loss", "strength", "C", "target"),
    *("who", "intercept", "seconds", "reached", "ratio"),
)
TARGETS = (1e-3, 1e-6)
MADE: dict[str, Callable[[], datasets.Arrays]] = {
    "made text": lambda: generators.text(5_000, 20_000),
    "made wide": lambda: generators.wide(400, 4_000),
}
QUICK = ("cancer", "digits", "a9a", "w8a", "sms", "news20_5k", *MADE)
FULL = (
    *(*QUICK, "imdb_5k", "gen_tall_small", "iris", "spambase", "flights", "phishing"),
    *("gen_text_small", "gen_wide"),
)
TIMES = (2.0, 10.0, 100.0)  # of the least C
FIXED = (0.01, 1.0, 100.0)
FACTOR = 12.0  # a rival this many times slower than linsep is not followed further
LEAST, CAP = 0.6, 4.0  # seconds that every rival is given in a cell, and that none exceeds
REPEATS = 0.1  # seconds for which a fit is repeated


@dataclass(frozen=True)
class Task:
    X: Any
    y: np.ndarray
    loss: str
    C: float

    def value(self, w: np.ndarray, b: float, intercept: str) -> float:
        size = float(np.abs(w).sum()) + (abs(b) if intercept == "penalised" else 0.0)
        return size + self.C * loss_sum(self.loss, self.y * (self.X @ w + b))

    def ours(self, tol: float, X: Any = None, free: bool = True) -> Any:
        from linsep import LinearClassifier

        model = LinearClassifier(
            self.loss, C=self.C, l1_ratio=1.0, fit_intercept=free, tol=tol, n_threads=1
        )
        return model.fit(self.X if X is None else X, self.y)

    def minimum(self, intercept: str) -> float:
        """Of the objective with that intercept; LIBLINEAR's is the weight of a column of ones."""
        if intercept == "free":
            return self.value(*coefficients(self.ours(1e-9)), intercept)
        if intercept == "absent":
            return self.value(*coefficients(self.ours(1e-9, free=False)), intercept)
        ones = np.ones((self.X.shape[0], 1))
        X = sp.hstack([self.X, ones], "csr") if sp.issparse(self.X) else np.hstack([self.X, ones])
        w, _ = coefficients(self.ours(1e-9, X, free=False))
        return self.value(w[:-1], float(w[-1]), intercept)


Fit = Callable[[float], tuple[np.ndarray, float]]


def _skglm(task: Task) -> Fit:
    from skglm import SparseLogisticRegression

    def fit(tol: float) -> tuple[np.ndarray, float]:
        model = SparseLogisticRegression(
            alpha=1.0 / (task.C * len(task.y)), tol=tol, max_iter=1000, max_epochs=100_000
        )
        return coefficients(model.fit(task.X, task.y))

    return fit


def _celer(task: Task) -> Fit:
    from celer import LogisticRegression

    def fit(tol: float) -> tuple[np.ndarray, float]:
        model = LogisticRegression(C=task.C, tol=tol, max_iter=1000, fit_intercept=False)
        return coefficients(model.fit(task.X, task.y))

    return fit


def _liblinear(task: Task) -> Fit:
    from liblinear.liblinear import parameter, problem
    from liblinear.liblinearutil import train

    how = "-s 6" if task.loss == "logistic" else "-s 5"

    def fit(tol: float) -> tuple[np.ndarray, float]:
        records = problem(task.y, sp.csr_matrix(task.X), bias=1)
        model = train(records, parameter(f"{how} -B 1 -c {task.C!r} -e {tol!r} -q"))
        w = np.ctypeslib.as_array(model.w, (task.X.shape[1] + 1,)).copy()
        w = -w if model.label[0] < 0 else w
        return w[:-1], float(w[-1])

    return fit


def _glum(task: Task) -> Fit:
    from glum import GeneralizedLinearRegressor

    y = (task.y > 0).astype(np.float64)

    def fit(tol: float) -> tuple[np.ndarray, float]:
        model = GeneralizedLinearRegressor(
            family="binomial",
            alpha=1.0 / (task.C * len(y)),
            l1_ratio=1.0,
            solver="irls-cd",
            gradient_tol=tol,
            max_iter=1000,
        )
        return coefficients(model.fit(task.X, y))

    return fit


def _scikit_learn(solver: str) -> Callable[[Task], Fit]:
    def prepare(task: Task) -> Fit:
        from sklearn.linear_model import LogisticRegression

        def fit(tol: float) -> tuple[np.ndarray, float]:
            model = LogisticRegression(
                C=task.C, l1_ratio=1.0, solver=solver, tol=tol, max_iter=100_000
            )
            return coefficients(model.fit(task.X, task.y))

        return fit

    return prepare


@dataclass(frozen=True)
class Rival:
    who: str
    intercept: str
    prepare: Callable[[Task], Fit]
    losses: tuple[str, ...] = ("logistic",)
    most: int = 10**9  # features


RIVALS = (
    Rival("skglm", "free", _skglm),
    Rival("celer", "absent", _celer),
    Rival("LIBLINEAR", "penalised", _liblinear, ("logistic", "squared_hinge")),
    Rival("glum", "free", _glum, most=2000),
    Rival("scikit-learn liblinear", "penalised", _scikit_learn("liblinear")),
    Rival("scikit-learn saga", "free", _scikit_learn("saga")),
)


def least_seconds(run: Callable[[], Any], at_most: float = REPEATS) -> tuple[float, Any]:
    """Least processor time of a few runs, and the last answer."""
    least, deadline = float("inf"), time.perf_counter() + at_most
    for _ in range(20):
        began = time.process_time()
        answer = run()
        least = min(least, time.process_time() - began)
        if time.perf_counter() > deadline:
            break
    return least, answer


def _sweep(rival: Rival, task: Task, minimum: float, line: Any) -> None:
    fit = rival.prepare(task)
    for tol in TOLERANCES:
        seconds, (w, b) = least_seconds(lambda tol=tol: fit(tol))
        value = task.value(np.asarray(w, float), b, rival.intercept)
        reached = max(0.0, (value - minimum) / value)
        line.send((seconds, reached))
        if reached <= TARGETS[-1]:
            break
    line.send(None)


def rival_times(rival: Rival, task: Task, minimum: float, limit: float) -> dict[float, Any]:
    """Least seconds to each target over the sweep, with the suboptimality reached."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    worker = context.Process(target=_sweep, args=(rival, task, minimum, theirs), daemon=True)
    worker.start()
    theirs.close()
    found: dict[float, Any] = {}
    deadline = time.perf_counter() + limit
    try:
        while ours.poll(max(0.0, deadline - time.perf_counter())):
            if (message := ours.recv()) is None:
                break
            for target in TARGETS:
                if message[1] <= target and message[0] < found.get(target, (np.inf,))[0]:
                    found[target] = message
    except EOFError:  # it ended on an error of its own
        pass
    worker.kill()
    worker.join()
    return found


def strengths(X: Any, y: np.ndarray, loss: str) -> Iterator[tuple[str, float]]:
    """The least C at which w is not 0, times 2, 10, 100, 1000; and plain values."""
    share = (y > 0).mean()
    slope = (share - (y > 0)) if loss == "logistic" else -2.0 * y * (1.0 - y * (2.0 * share - 1.0))
    least = 1.0 / float(np.abs(X.T @ slope).max())
    for times in TIMES:
        yield f"{times:g} x least C", float(f"{times * least:.4g}")
    for C in FIXED:
        yield "fixed", C


def compile_rivals() -> None:
    """numba compiles at first use, for dense and for sparse columns."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    y = np.where(X[:, 0] + rng.standard_normal(40) > 0, 1.0, -1.0)
    for rows in (X, sp.csr_matrix(X)):
        for rival in RIVALS[:4]:
            try:
                rival.prepare(Task(rows, y, "logistic", 1.0))(1e-3)
            except ImportError:
                print(f"{rival.who} is absent")


def cell(table: tables.Table, name: str, strength: str, task: Task, others: bool) -> None:
    mine = {}
    for tol in TARGETS:
        seconds, model = least_seconds(lambda tol=tol: task.ours(tol))
        mine[tol] = seconds
        certified = model.certificate_.certified
        reached = model.certificate_.relative_gap
        who = "linsep" if certified else "linsep, not certified"
        about = (name, task.loss, strength, task.C)
        table.add(*about, tol, who, "free", seconds, reached, 1.0)
    minima: dict[str, float] = {}
    for rival in RIVALS if others else ():
        if task.loss not in rival.losses or task.X.shape[1] > rival.most:
            continue
        if rival.intercept not in minima:
            minima[rival.intercept] = task.minimum(rival.intercept)
        limit = min(CAP, max(LEAST, FACTOR * mine[TARGETS[-1]]))
        times = rival_times(rival, task, minima[rival.intercept], limit)
        for target, (seconds, reached) in times.items():
            ratio = seconds / mine[target]
            table.add(*about, target, rival.who, rival.intercept, seconds, reached, ratio)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=tables.Path, help="CSV file")
    parser.add_argument("--data", help="names, separated by commas")
    parser.add_argument("--loss", default="logistic,squared_hinge")
    parser.add_argument("--full", action="store_true", help="all data")
    parser.add_argument("--alone", action="store_true", help="no rivals")
    return parser.parse_args()


def main() -> None:
    asked = options()
    asked.threads = 1
    warnings.simplefilter("ignore")
    table = tables.Table("sparsity", COLUMNS, asked)
    X, y = datasets.load("iris")
    Task(X, y, "logistic", 1.0).ours(1e-3)  # what is imported at first use is no part of a fit
    if not asked.alone:
        compile_rivals()
    threadpool_limits(1)
    known = datasets.catalogue()
    wanted = asked.data.split(",") if asked.data else FULL if asked.full else QUICK
    for name in (name for name in wanted if name in known or name in MADE):
        X, y = MADE[name]() if name in MADE else datasets.load(name)
        for loss in asked.loss.split(","):
            for strength, C in strengths(X, y, loss):
                cell(table, name, strength, Task(X, y, loss, C), not asked.alone)
                table.save()
    table.write()


if __name__ == "__main__":
    main()
