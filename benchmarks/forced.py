"""Processor time of every applicable solver, forced by name, and of ``auto``: one row per fit.

A process of its own fits each table, with one thread. A time is the best of several runs; a fit that does not end is
stopped at a multiple of the best one so far and recorded with ``certified`` 0.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import tables_for_choice

COLUMNS = (
    *("table", "n", "d", "entries", "sparse", "kept", "hardness", "correlation"),
    *("loss", "C", "l1_ratio", "tol", "method", "solver", "certified", "passes", "seconds"),
)
LOSSES = ("logistic", "squared_hinge", "hinge")
STRENGTHS = (0.01, 1.0, 100.0)
# A fit is stopped after so many seconds, or so many times the wall time of the quickest one of its cell.
FIRST_LIMIT, LEAST_LIMIT, SLOWER = 40.0, 2.0, 3.0
FIRST = ("dual-cd", "small")  # seldom very slow: their times limit the others
# A Hessian of more features is never cheap.
FACTORISING, LARGEST = ("newton", "newton-rounds"), 2_000
TABLE_TIMEOUT = 900.0  # seconds for all fits of one table


def _time(make: Any, budget: float) -> tuple[float, float, Any]:
    """Least processor time of some runs, more of quick ones; wall time of one run; what it returned."""
    best, spent, found, wall = float("inf"), 0.0, None, 0.0
    for k in range(7):
        began, clock = time.process_time(), time.perf_counter()
        found = make()
        took, wall = time.process_time() - began, time.perf_counter() - clock
        best, spent = min(best, took), spent + took
        if spent > budget and k >= (1 if took < budget else 0):
            break
    return best, wall, found


def _cells(X: Any, losses: Iterable[str], strengths: Iterable[float], l1: bool) -> Iterator[Any]:
    for loss in losses:
        for C in strengths:
            yield loss, C, 0.0, 1e-6
        yield loss, 10.0, 0.0, 1e-3
    if l1:
        for loss in ("logistic", "squared_hinge"):
            for C in strengths:
                yield loss, C, 1.0, 1e-6


def shape_columns(data: Any) -> dict[str, Any]:
    """Sizes of the rows, and hardness of the logistic loss at C = 1."""
    from linsep.losses import get
    from linsep.penalties import ElasticNet
    from linsep.problem import Problem
    from linsep.solvers.cost.shape import shape_of

    shape = shape_of(Problem(get("logistic"), ElasticNet(1.0), data, True))
    return {
        **{"n": shape.n, "d": shape.d, "entries": shape.entries, "sparse": int(shape.sparse)},
        **{"kept": f"{shape.kept:.4g}", "hardness": f"{shape.hardness:.4g}"},
        "correlation": f"{shape.correlation:.4g}",
    }


def fit_all(
    name: str,
    losses: Iterable[str],
    strengths: Iterable[float],
    methods: list[str],
    l1: bool,
    load: Callable[[str], Any] = tables_for_choice.load,
) -> Iterator[dict[str, Any]]:
    """All cells of one table, in this process."""
    from linsep.data import Memory
    from linsep.losses import get
    from linsep.penalties import ElasticNet
    from linsep.problem import Problem
    from linsep.solvers import SOLVERS
    from linsep.solvers.interior import kinked, sifting
    from linsep.train import Recipe, train

    X, y = load(name)
    data = Memory(X, y, n_threads=1)
    facts = {"table": name} | shape_columns(data)
    for loss, C, l1_ratio, tol in _cells(X, losses, strengths, l1):
        penalty = ElasticNet(C, l1_ratio)
        problem = Problem(get(loss), penalty, data, True)
        able = sorted(
            (n for n, s in SOLVERS.items() if not s.missing(problem)),
            key=FIRST.__contains__,
            reverse=True,
        )
        if kinked.applies(problem):  # the others do the same there, or more
            same = {"absolute-rows"} | (set() if sifting.worthwhile(problem) else {"sifting"})
            able = [m for m in able if m not in same]
        able = [m for m in able if m != "newton-rounds"]  # for rows on a cluster
        if data.d > LARGEST:
            able = [m for m in able if m not in FACTORISING]
        wanted = [m for m in methods if m in (*able, "auto")] if methods else [*able, "auto"]
        quickest, limit = float("inf"), FIRST_LIMIT
        for method in wanted:
            # A short limit rules out native fits, which do not look at the clock: not for auto.
            most = None if method == "auto" else limit
            recipe = Recipe(
                get(loss), penalty, tol=tol, solver=method, time_limit=most, n_threads=1, seed=0
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    seconds, wall, fit = _time(lambda r=recipe: train(r, data), 0.05)
                except Exception as error:  # a refusal is a result too
                    print(f"{name} {loss} {C} {method}: {error}", file=sys.stderr)
                    continue
            if fit.certificate.certified and seconds < quickest:
                quickest, limit = seconds, max(LEAST_LIMIT, SLOWER * wall)
            yield facts | {
                **{"loss": loss, "C": C, "l1_ratio": l1_ratio},
                **{"tol": tol, "method": method, "solver": fit.solver},
                **{"certified": int(fit.certificate.certified), "passes": round(fit.n_passes, 2)},
                "seconds": f"{seconds:.6f}",
            }


def measure(names: Iterable[str], target: Path, options: argparse.Namespace) -> None:
    """Fit the tables one after the other, each in its own process, and append to a CSV file."""
    env = dict(os.environ, OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", PYTHONHASHSEED="0")
    fresh = not target.exists()
    with target.open("a", newline="") as out:
        writer = csv.DictWriter(out, COLUMNS)
        if fresh:
            writer.writeheader()
        for name in names:
            command = [sys.executable, __file__, "--inside", name, *_passed_on(options)]
            try:
                done = subprocess.run(
                    command,
                    env=env,
                    stdout=subprocess.PIPE,
                    text=True,
                    timeout=TABLE_TIMEOUT,
                    check=False,
                )
                text = done.stdout
            except subprocess.TimeoutExpired as late:
                text = (late.stdout or b"").decode() if isinstance(late.stdout, bytes) else ""
            rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
            writer.writerows(rows)
            out.flush()
            print(f"{name}: {len(rows)} fits", flush=True)


def _passed_on(options: argparse.Namespace) -> list[str]:
    out = ["--losses", *options.losses, "--C", *map(str, options.C)]
    out += ["--methods", *options.methods] if options.methods else []
    return out + (["--l1"] if options.l1 else [])


def arguments(description: str) -> argparse.ArgumentParser:
    """Options that the scripts which measure have in common."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--tables", nargs="*", help="names; all by default")
    parser.add_argument("--losses", nargs="*", default=list(LOSSES))
    parser.add_argument("--C", nargs="*", type=float, default=list(STRENGTHS))
    parser.add_argument("--methods", nargs="*", default=[], help="solvers; all and auto by default")
    parser.add_argument("--l1", action="store_true", help="absolute penalties too")
    return parser


if __name__ == "__main__":
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--inside", required=True, help=argparse.SUPPRESS)
    given = parser.parse_args()
    for row in fit_all(given.inside, given.losses, given.C, given.methods, given.l1):
        print(json.dumps(row), flush=True)
