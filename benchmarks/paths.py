"""Paths of absolute penalties: ten C, from 1.5 to 1,000 times the least at which a feature enters.

    P(w, b) = |w|_1 + C sum_i log(1 + exp(-y_i (x_i.w + b)))

linsep's ``path`` certifies every model. Rivals: celer's path (no intercept), skglm with warm starts, glum's path.
Every model of a rival is put into the objective that the rival minimises; a path counts as reached when the worst of
the ten is within the target. A rival is swept over its tolerance, credited with its least processor time, and ended
when it has had its cap.

    python benchmarks/paths.py --data cancer,sms,w8a --target 1e-6
"""

from __future__ import annotations

import argparse
import multiprocessing
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import tables
from sparsity import Task, compile_rivals, least_seconds, strengths
from threadpoolctl import threadpool_limits

COLUMNS = ("data", "target", "who", "intercept", "seconds", "worst", "ratio")
DATA = ("cancer", "digits", "a9a", "w8a", "sms", "news20_5k")
KNOB = (1e-3, 1e-4, 1e-6, 1e-8, 1e-10)
POINTS = 10

Models = list[tuple[np.ndarray, float]]


def celer(X: Any, y: np.ndarray, Cs: np.ndarray, tol: float) -> Models:
    from celer import celer_path

    _, coefs, *_ = celer_path(X, y, "logreg", alphas=1.0 / Cs, tol=tol, max_iter=1000)
    return [(w, 0.0) for w in coefs.T]


def skglm(X: Any, y: np.ndarray, Cs: np.ndarray, tol: float) -> Models:
    from skglm import SparseLogisticRegression

    model = SparseLogisticRegression(tol=tol, max_iter=1000, max_epochs=100_000, warm_start=True)
    found = []
    for C in Cs:
        model.set_params(alpha=1.0 / (C * len(y))).fit(X, y)
        found.append((model.coef_.ravel().copy(), float(np.ravel(model.intercept_)[0])))
    return found


def glum(X: Any, y: np.ndarray, Cs: np.ndarray, tol: float) -> Models:
    from glum import GeneralizedLinearRegressor

    model = GeneralizedLinearRegressor(
        family="binomial",
        alpha_search=True,
        alpha=list(1.0 / (Cs * len(y))),
        l1_ratio=1.0,
        gradient_tol=tol,
        max_iter=1000,
    ).fit(X, (y > 0).astype(np.float64))
    return list(zip(model.coef_path_, map(float, model.intercept_path_), strict=True))


RIVALS: dict[str, tuple[str, Callable[..., Models], int]] = {  # intercept, path, most features
    "celer": ("absent", celer, 10**9),
    "skglm": ("free", skglm, 10**9),
    "glum": ("free", glum, 2000),
}


def worst(
    X: Any, y: np.ndarray, Cs: np.ndarray, models: Models, least: list[float], how: str
) -> float:
    """Of all models: (P - P*)/P."""
    found = 0.0
    for C, (w, b), minimum in zip(Cs, models, least, strict=True):
        value = Task(X, y, "logistic", float(C)).value(np.asarray(w, float), b, how)
        found = max(found, (value - minimum) / value)
    return found


def sweep(
    fit: Any,
    X: Any,
    y: np.ndarray,
    Cs: np.ndarray,
    least: list[float],
    how: str,
    target: float,
    line: Any,
) -> None:
    for tol in KNOB:
        seconds, models = least_seconds(lambda tol=tol: fit(X, y, Cs, tol))
        reached = worst(X, y, Cs, models, least, how)
        line.send((seconds, reached))
        if reached <= target:
            break
    line.send(None)


def race(table: tables.Table, name: str, target: float, cap: float) -> None:
    from linsep import LogisticRegression, path

    X, y = datasets.load(name)
    first = next(C for _, C in strengths(X, y, "logistic")) / 2.0
    Cs = first * np.geomspace(1.5, 1000.0, POINTS)
    model = LogisticRegression(l1_ratio=1.0, tol=target, n_threads=1)
    mine, found = least_seconds(lambda: path(model, X, y, Cs))
    gap = max(proof.relative_gap for proof in found.certificates)
    table.add(name, target, "linsep path", "free", mine, gap, 1.0)
    minima: dict[str, list[float]] = {}
    context = multiprocessing.get_context("fork")
    for who, (how, fit, most) in RIVALS.items():
        if X.shape[1] > most:
            continue
        if how not in minima:
            minima[how] = [Task(X, y, "logistic", float(C)).minimum(how) for C in Cs]
        ours, theirs = context.Pipe(duplex=False)
        work = (fit, X, y, Cs, minima[how], how, target, theirs)
        worker = context.Process(target=sweep, args=work, daemon=True)
        worker.start()
        theirs.close()
        last = None
        try:
            while ours.poll(cap) and (message := ours.recv()) is not None:
                last = message
        except EOFError:  # it ended on an error of its own
            pass
        worker.kill()
        worker.join()
        if last is not None:
            reached = who if last[1] <= target else f"{who} (not reached)"
            table.add(name, target, reached, how, *last, last[0] / mine)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=",".join(DATA))
    parser.add_argument("--target", type=float, default=1e-6)
    parser.add_argument("--cap", type=float, default=20.0, help="seconds of one setting of a rival")
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    asked.threads = 1
    warnings.simplefilter("ignore")
    table = tables.Table("paths", COLUMNS, asked)
    compile_rivals()
    threadpool_limits(1)
    known = datasets.catalogue()
    for name in (name for name in asked.data.split(",") if name in known):
        race(table, name, asked.target, asked.cap)
        table.write()


if __name__ == "__main__":
    main()
