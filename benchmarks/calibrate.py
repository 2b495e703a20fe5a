"""Measure what methods cost and write src/linsep/solvers/cost/prices.json.

    python benchmarks/calibrate.py              measure all tables of calibration, then fit: an hour
    python benchmarks/calibrate.py --fit        fit the recorded measurements again

1. Prices: processor time of a kernel over its count, one thread, the best of several runs.
2. Fits: every applicable solver, forced, on every table of calibration (``forced.py``), to results/calibration.csv.
3. Laws: for each method and kind of loss, log(seconds / seconds of one iteration) is a linear function of the terms of
   ``linsep.solvers.cost.work``, by least squares with a small ridge. A fit that was stopped counts as three times the
   quickest one of its cell.
4. Residuals and the regret that is left go to results/calibration.json and from there into docs/cost-model.md.
"""

from __future__ import annotations

import csv
import json
import math
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import forced
import machine
import numpy as np
import scipy.sparse as sp
import tables_for_choice

from linsep import losses
from linsep.data import Memory
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.solvers.cost import shape as shapes
from linsep.solvers.cost import work
from linsep.solvers.cost.work import FEATURES, Law, Prices, features, terms
from linsep.solvers.dual_ascent.native import Ascent
from linsep.solvers.linalg.factor import Factor
from linsep.solvers.prediction import BUDGETED, WORK

HERE = Path(__file__).resolve().parent
RECORD = HERE / "results" / "calibration.csv"
SUMMARY = HERE / "results" / "calibration.json"
PRICES = HERE.parent / "src" / "linsep" / "solvers" / "cost" / "prices.json"
RIDGE = 10.0
STOPPED = 3.0  # times the quickest fit of its cell, that a fit which was stopped counts

Cell = tuple[str, str, float, float]  # table, loss, C, tol


def _least(run: Callable[[], object], repeats: int = 9) -> float:
    """Least processor time of a call [ns]."""
    best = math.inf
    for _ in range(repeats):
        began = time.process_time_ns()
        run()
        best = min(best, time.process_time_ns() - began)
    return best


def _problem(X: Any) -> Problem:
    rng = np.random.default_rng(0)
    sign = np.where(rng.random(X.shape[0]) < 0.5, 1.0, -1.0)
    return Problem(losses.get("logistic"), ElasticNet(1.0), Memory(X, sign, n_threads=1))


def _sweep(problem: Problem) -> float:
    """Processor time of a sweep: the mean of that of the gradient and of a product with the Hessian [ns]."""
    theta = np.zeros(problem.order)
    gradient = _least(lambda: problem.value_gradient(theta))
    return 0.5 * (gradient + _least(lambda: problem.hess_vec(theta)))


def _epoch(problem: Problem) -> float:
    """Processor time of an epoch [ns]."""
    ascent = Ascent(problem, np.zeros(problem.order), 0)
    return _least(ascent.native.epoch)


def measure_prices() -> dict[str, float]:
    """Price of each count [ns]."""
    rng = np.random.default_rng(0)
    tiny, dense = (
        _problem(rng.standard_normal((20, 2))),
        _problem(rng.standard_normal((6_000, 200))),
    )
    sparse = _problem(sp.random(10_000, 400, 0.05, format="csr", random_state=0))
    brief, wide = (  # ten and sixty entries per row
        _problem(sp.random(10_000, 20_000, density, format="csr", random_state=0))
        for density in (0.0005, 0.003)
    )
    longer = wide.data.n_entries - brief.data.n_entries
    out = {"native calls": 5_000.0}
    zero = np.zeros(3)
    out["calls"] = _least(lambda: tiny.value_gradient(zero), 200)
    slim = _problem(rng.standard_normal((6_000, 2)))
    out["rows"] = _sweep(slim) / 6_000
    out["reads"] = (_sweep(dense) - _sweep(slim)) / (6_000 * 198)
    swept = _sweep(brief)
    out["sparse reads"] = (_sweep(wide) - swept) / longer
    out["sparse rows"] = max(swept / 10_000 - 10.0 * out["sparse reads"], 1.0)
    pairs, v = rng.standard_normal((10, 10_000)), rng.standard_normal(10_000)
    out["vectors"] = _least(lambda: pairs @ v) / pairs.size
    centre = np.zeros(200)
    multiplied = 0.5 * 6_000 * 200**2
    dense.value_gradient(np.zeros(dense.order))
    out["gram"] = _least(lambda: dense.hessian(centre)) / multiplied
    out["single gram"] = _least(lambda: dense.hessian(centre, single=True)) / multiplied
    sparse.value_gradient(np.zeros(sparse.order))
    out["sparse gram"] = _least(lambda: sparse.hessian(np.zeros(400))) / (0.5 * 20.0**2 * 10_000)
    A = rng.standard_normal((600, 600))
    A = A @ A.T + 600.0 * np.eye(600)
    out["factors"] = _least(partial(Factor, A, definite=True)) / (600**3 / 3.0)
    B = rng.standard_normal((500, 2_000))
    out["products"] = _least(lambda: B @ B.T) / (500**2 * 2_000)
    S = sp.random(1_000, 5_000, 0.01, format="csr", random_state=0)
    out["sparse products"] = _least(lambda: np.asarray((S @ S.T).toarray())) / (1_000 * S.nnz)
    short, long = (
        _problem(rng.standard_normal((4_000, 10))),
        _problem(rng.standard_normal((4_000, 210))),
    )
    few, many = _epoch(short) / 4_000, _epoch(long) / 4_000
    out["visited"] = (many - few) / 200.0
    out["visits"] = max(few - 10.0 * out["visited"], 1.0)
    walked = _epoch(brief)
    out["sparse visited"] = (_epoch(wide) - walked) / longer
    out["sparse visits"] = max(walked / 10_000 - 10.0 * out["sparse visited"], 1.0)
    return {name: float(f"{price:.3g}") for name, price in out.items()}


def read(path: Path) -> dict[Cell, dict[str, tuple[float, bool, str]]]:
    """Seconds, whether certified, and solver of each method, by cell; absolute penalties are left out."""
    cells: dict[Cell, dict[str, tuple[float, bool, str]]] = defaultdict(dict)
    with path.open(newline="") as lines:
        for row in csv.DictReader(lines):
            if float(row["l1_ratio"]):
                continue
            cell = (row["table"], row["loss"], float(row["C"]), float(row["tol"]))
            found = (float(row["seconds"]), row["certified"] == "1", row["solver"])
            cells[cell][row["method"]] = found
    return dict(cells)


def times(methods: dict[str, tuple[float, bool, str]]) -> dict[str, float]:
    """Seconds of each method; of one that was stopped a multiple of the quickest. Empty if all were stopped."""
    best = min((s for s, closed, _ in methods.values() if closed), default=math.inf)
    if best == math.inf:
        return {}
    return {
        name: s if closed else max(STOPPED * best, 2.0 * s)
        for name, (s, closed, _) in methods.items()
        if name != "auto"
    }


def shapes_of(path: Path) -> dict[str, shapes.Shape]:
    """Shape of each table at C = 1 for the logistic loss, from the recorded columns."""
    out = {}
    with path.open(newline="") as lines:
        for row in csv.DictReader(lines):
            sizes = (int(row["n"]), int(row["d"]), int(row["entries"]), row["sparse"] == "1")
            out[row["table"]] = shapes.Shape(
                *sizes,
                kept=float(row["kept"]),
                hardness=float(row["hardness"]),
                correlation=float(row["correlation"]),
            )
    return out


def shape_at(shape: shapes.Shape, loss: str, C: float) -> shapes.Shape:
    """Shape of the table for another loss and C."""
    curvature = losses.get(loss).curvature_bound if losses.get(loss).smooth else 1.0
    return replace(shape, hardness=shape.hardness * 4.0 * curvature * C)


def fit_laws(
    cells: dict[Cell, dict[str, tuple[float, bool, str]]],
    known: dict[str, shapes.Shape],
    price: dict[str, float],
) -> tuple[Prices, dict[str, dict[str, dict[str, Any]]]]:
    """Laws by least squares; and each with its residual, as it is written to prices.json."""
    bare = Prices(price, {}, ())
    samples: dict[tuple[str, str], list[tuple[tuple[float, ...], float]]] = defaultdict(list)
    for (table, loss, C, tol), methods in cells.items():
        shape, kind = shape_at(known[table], loss, C), work.kind_of(losses.get(loss))
        for method, seconds in times(methods).items():
            if method in WORK:
                iterations = seconds / bare.iteration(WORK[method], shape)
                samples[method, kind].append((features(shape, tol), math.log(iterations)))
    everything = np.array([x for some in samples.values() for x, _ in some])
    ranges = tuple(
        zip(everything.min(axis=0).tolist(), everything.max(axis=0).tolist(), strict=True)
    )
    laws, written = {}, defaultdict(dict)
    for (method, kind), some in sorted(samples.items()):
        X, y = np.array([terms(x) for x, _ in some]), np.array([y for _, y in some])
        law = _least_squares(X, y)
        residual = y - np.clip(X @ law.coefficients, law.least, law.most)
        deviation = round(float(np.sqrt(np.mean(residual**2))), 3)
        law = laws[method, kind] = replace(law, spread=0.0 if method in BUDGETED else deviation)
        written[method][kind] = {
            "coefficients": [float(f"{c:.4g}") for c in law.coefficients],
            "least": round(law.least, 3),
            "most": round(law.most, 3),
            "residual": deviation,
            "spread": law.spread,
            "fits": len(some),
        }
    return Prices(price, laws, ranges), dict(written)


def _least_squares(X: np.ndarray, y: np.ndarray) -> Law:
    """Ridge regression on standardised terms, the constant not penalised."""
    centre, scale = X.mean(axis=0), X.std(axis=0)
    centre[0], scale[0] = 0.0, 1.0
    scale[scale == 0.0] = 1.0
    Z = (X - centre) / scale
    penalty = RIDGE * np.eye(X.shape[1])
    penalty[0, 0] = 0.0
    found = np.linalg.solve(Z.T @ Z + penalty, Z.T @ y) / scale
    found[0] -= float(found[1:] @ centre[1:])
    return Law(tuple(found.tolist()), float(y.min()), float(y.max()))


def regrets(
    cells: dict[Cell, dict[str, tuple[float, bool, str]]],
    known: dict[str, shapes.Shape],
    prices: Prices,
) -> dict[Cell, float]:
    """Time of the method with the least predicted cost over the least time, by cell."""
    out = {}
    for cell, methods in cells.items():
        table, loss, C, tol = cell
        took = {m: s for m, s in times(methods).items() if m in WORK}
        if len(took) < 2:
            continue
        shape, kind = shape_at(known[table], loss, C), work.kind_of(losses.get(loss))
        at = prices.terms(shape, tol)
        predicted = {
            m: prices.laws[m, kind].iterations(at) * prices.iteration(WORK[m], shape) for m in took
        }
        choice = min(predicted, key=predicted.__getitem__)
        out[cell] = took[choice] / min(took.values())
    return out


def cross_validated(
    cells: dict[Cell, dict[str, tuple[float, bool, str]]],
    known: dict[str, shapes.Shape],
    price: dict[str, float],
    folds: int = 6,
) -> dict[Cell, float]:
    """Regret on tables that were left out of the fit of the laws."""
    names, out = sorted(known), {}
    for fold in range(folds):
        left_out = set(names[fold::folds])
        prices, _ = fit_laws({c: m for c, m in cells.items() if c[0] not in left_out}, known, price)
        out |= regrets({c: m for c, m in cells.items() if c[0] in left_out}, known, prices)
    return out


def summary(found: Iterable[float]) -> dict[str, float]:
    """Mean, 95th percentile and maximum."""
    values = np.array(list(found))
    return {
        "cells": len(values),
        "mean": round(float(values.mean()), 3),
        "95th percentile": round(float(np.quantile(values, 0.95)), 2),
        "maximum": round(float(values.max()), 2),
    }


def main() -> int:
    parser = forced.arguments(__doc__.splitlines()[0])
    parser.add_argument(
        "--fit", action="store_true", help="use the recorded measurements and prices"
    )
    parser.add_argument("--record", type=Path, default=RECORD, help="file of measurements")
    options = parser.parse_args()
    tables = options.tables or list(tables_for_choice.calibration())
    if not options.fit:
        options.record.unlink(missing_ok=True)
        forced.measure(tables, options.record, options)
    cells = read(options.record)
    price = json.loads(PRICES.read_text())["prices"] if options.fit else measure_prices()
    known = shapes_of(options.record)
    prices, written = fit_laws(cells, known, price)
    given = {
        "about": "Written by make calibrate. Prices in nanoseconds; laws: log(iterations) = coefficients . terms.",
        "machine": machine.facts(1),
        "prices": price,
        "ranges": {n: [round(lo, 4), round(hi, 4)] for n, (lo, hi) in zip(FEATURES, prices.ranges, strict=True)},
        "laws": written,
    }  # fmt: skip
    PRICES.write_text(json.dumps(given, indent=1) + "\n")
    report = {
        "in sample": summary(regrets(cells, known, prices).values()),
        "cross-validated by table": summary(cross_validated(cells, known, price).values()),
    }
    SUMMARY.write_text(json.dumps({"machine": machine.facts(1), **report}, indent=1) + "\n")
    print(json.dumps(report, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
