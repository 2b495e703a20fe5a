"""The process in which everybody runs: linsep and its rivals in alternation, on the same arrays, with the same threads.

It reads one job per line (JSON) and answers with one line. ``race.py`` starts it, and ends it when a native
solver overruns its cap, which nothing inside the process could do.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import ThreadpoolController, threadpool_limits

Job = dict[str, Any]


class Capped(Exception):
    """The cap on one fit has passed."""


def _alarm(signum: int, frame: Any) -> None:
    raise Capped


@contextlib.contextmanager
def cap(seconds: float) -> Any:
    """Raise Capped after that many seconds, as soon as the interpreter has the word."""
    signal.signal(signal.SIGALRM, _alarm)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def best_of(fit: Callable[[], Any], repeats: int, at_most: float) -> tuple[Any, float, float]:
    """The answer, and the least wall and processor time of up to ``repeats`` runs in ``at_most`` seconds."""
    gc.disable()
    wall, processor, answer = float("inf"), float("inf"), None
    deadline = time.perf_counter() + at_most
    try:
        for k in range(repeats):
            if k and time.perf_counter() > deadline:
                break
            busy, began = time.process_time(), time.perf_counter()
            answer = fit()
            seconds, cpu = time.perf_counter() - began, time.process_time() - busy
            wall, processor = min(wall, seconds), min(processor, cpu)
    finally:
        gc.enable()
    return answer, wall, processor


class Worker:
    """One data set at a time."""

    def __init__(self, threads: int, clock: str) -> None:
        from rivals import contestants

        self.threads = threads
        self.clock = clock  # "wall", or "cpu" for a machine that others use: then seconds are processor seconds
        self.contestants = contestants(threads)
        self.pools = ThreadpoolController()
        self.X: Any = None
        self.y = np.zeros(0)
        self.name = ""
        self.prepared: dict[tuple[str, str, float], Any] = {}

    def load(self, job: Job) -> Job:
        import datasets
        from machine import read_seconds

        if job["data"] != self.name:
            self.prepared.clear()
            self.X = None
            gc.unfreeze()
            gc.collect()
            self.X, self.y = datasets.load(job["data"])
            self.name = job["data"]
        n, d = self.X.shape
        entries = self.X.nnz if sp.issparse(self.X) else n * d
        return {
            "n": int(n),
            "d": int(d),
            "entries": int(entries),
            "read": read_seconds(self.X, self.threads),
        }

    def _objective(self, job: Job, intercept: str) -> Any:
        from objective import Objective

        return Objective(self.X, self.y, job["loss"], job["C"], intercept)

    def reference(self, job: Job) -> Job:
        from objective import reference

        found = reference(self._objective(job, job["intercept"]), self.threads)
        return {"upper": found.upper, "lower": found.lower}

    def entrants(self, job: Job) -> Job:
        from rivals.contest import Task

        task = Task(self.X, self.y, job["loss"], job["C"], self.threads)
        names = [
            name
            for name, rival in self.contestants.items()
            if job["loss"] in rival.losses and rival.takes(task)
        ]
        return {"names": names}

    def ours(self, job: Job) -> Job:
        from objective import Reference

        from linsep import LinearClassifier, LogisticRegression

        common = {"C": job["C"], "tol": job["tol"], "n_threads": self.threads}
        if job["loss"] == "logistic":
            model: Any = LogisticRegression(**common)
        else:
            model = LinearClassifier(job["loss"], **common)
        _, wall, processor = best_of(
            lambda: model.fit(self.X, self.y), job["repeats"], job["at_most"]
        )
        wall = processor if self.clock == "cpu" else wall
        value = self._objective(job, "free").value(model.coef_[0], model.intercept_[0])
        proof = model.certificate_
        judged = Reference(job["upper"], job["lower"]).suboptimality(value)
        return {
            "seconds": wall,
            "cpu": processor,
            "passes": float(model.n_passes_),
            "gap": proof.relative_gap,
            "reached": bool(proof.certified) and judged <= job["tol"],
            "suboptimality": judged,
        }

    def prepare(self, job: Job) -> Job:
        from rivals.contest import Task

        entered = self.contestants[job["name"]]
        threads = 1 if entered.single else self.threads
        task = Task(self.X, self.y, job["loss"], job["C"], threads, job["cap"])
        key = (job["name"], job["loss"], job["C"])
        self.prepared[key] = entered.prepare(task), entered.conversion(task)
        threadpool_limits(self.threads)  # of libraries that have just been loaded
        self.pools = ThreadpoolController()
        gc.collect()
        gc.freeze()
        return {}

    def rival(self, job: Job) -> Job:
        from objective import Reference

        entered = self.contestants[job["name"]]
        fit, conversion = self.prepared[(job["name"], job["loss"], job["C"])]
        threads = 1 if entered.single else self.threads
        with self.pools.limit(limits=threads), cap(1.5 * job["cap"] + job["at_most"]):
            (w, b), wall, processor = best_of(
                lambda: fit(job["setting"]), job["repeats"], job["at_most"]
            )
        wall = processor if self.clock == "cpu" else wall
        value = self._objective(job, entered.intercept).value(w, b)
        judged = Reference(job["upper"], job["lower"]).suboptimality(value)
        return {
            "seconds": wall + conversion,
            "bare": wall,
            "cpu": processor + conversion,
            "suboptimality": judged,
        }

    def answer(self, job: Job) -> Job:
        try:
            return getattr(self, job["op"])(job)
        except Capped:
            return {"capped": True}
        except Exception as error:  # a rival may fail in any way it likes; the race goes on
            return {"error": f"{type(error).__name__}: {error}"[:300]}


def main() -> None:
    threads = int(sys.argv[1])
    out = os.fdopen(os.dup(1), "w")
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)  # solvers print
    os.dup2(silence, 2)
    warnings.simplefilter("ignore")
    threadpool_limits(threads)
    worker = Worker(threads, sys.argv[2])
    for line in sys.stdin:
        out.write(json.dumps(worker.answer(json.loads(line))) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
