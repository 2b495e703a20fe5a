"""Least absolute deviations: time to suboptimality 1e-3 and 1e-6, linsep against linear programming and statsmodels.

    P(w, b) = sum_i |t_i - x_i.w - b|

linsep is run with tol = target and must certify its answer. scikit-learn's QuantileRegressor (alpha = 0) and scipy's
linprog hand the linear programme to HiGHS, which is exact or nothing, so one time serves both targets; QuantReg
of statsmodels is iteratively reweighted least squares, swept over its tolerance. Everybody is judged by numpy
against a certified minimum. Processor time of one thread, least of several runs: the machine may be shared.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
import tables
from threadpoolctl import threadpool_limits
from worker import Capped, cap

COLUMNS = ("data", "target", "who", "cpu", "suboptimality", "passes", "ratio")
TARGETS = (1e-3, 1e-6)
SWEEP = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8)
CAP = 60.0  # seconds on the wall, as HiGHS counts them

Answer = tuple[np.ndarray, float]
Fit = Callable[[float], Answer]


def noisy(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Normal rows, errors with heavy tails (Student's t, 2 degrees of freedom)."""
    rng = np.random.default_rng(n + d)
    X = rng.standard_normal((n, d))
    return X, X @ rng.standard_normal(d) + rng.standard_t(2, size=n)


def sets(full: bool) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    from sklearn.datasets import load_diabetes

    yield "diabetes 442 x 10", *load_diabetes(return_X_y=True)
    sizes = [(2_000, 20), (20_000, 20), (100_000, 30)]
    for n, d in sizes + ([(400_000, 30), (1_000_000, 10)] if full else []):
        yield f"{n:,} x {d}, made", *noisy(n, d)


def quantile(X: np.ndarray, t: np.ndarray) -> Fit:
    from sklearn.linear_model import QuantileRegressor

    def fit(_: float) -> Answer:
        limit = {"time_limit": CAP}
        model = QuantileRegressor(quantile=0.5, alpha=0.0, solver_options=limit).fit(X, t)
        return model.coef_, float(model.intercept_)

    return fit


def programme(method: str) -> Callable[[np.ndarray, np.ndarray], Fit]:
    """min sum (p + q) with A theta + p - q = t, p, q >= 0."""

    def prepare(X: np.ndarray, t: np.ndarray) -> Fit:
        from scipy.optimize import linprog

        def fit(_: float) -> Answer:
            n, d = X.shape
            A = sp.csc_matrix(np.column_stack([X, np.ones(n)]))
            equations = sp.hstack([A, sp.identity(n), -sp.identity(n)], format="csc")
            costs = np.r_[np.zeros(d + 1), np.ones(2 * n)]
            bounds = [(None, None)] * (d + 1) + [(0.0, None)] * (2 * n)
            limit = {"time_limit": CAP}
            found = linprog(costs, None, None, equations, t, bounds, method, options=limit)
            return found.x[:d], float(found.x[d])

        return fit

    return prepare


def reweighted(X: np.ndarray, t: np.ndarray) -> Fit:
    from statsmodels.regression.quantile_regression import QuantReg

    A = np.column_stack([X, np.ones(len(t))])

    def fit(tol: float) -> Answer:
        params = QuantReg(t, A).fit(q=0.5, p_tol=tol, max_iter=10_000).params
        return params[:-1], float(params[-1])

    return fit


RIVALS: dict[str, tuple[Callable[[np.ndarray, np.ndarray], Fit], tuple[float, ...]]] = {
    "scikit-learn QuantileRegressor": (quantile, (0.0,)),
    "scipy HiGHS simplex": (programme("highs-ds"), (0.0,)),
    "scipy HiGHS interior point": (programme("highs-ipm"), (0.0,)),
    "statsmodels QuantReg": (reweighted, SWEEP),
}


def least_cpu(run: Callable[[], Any]) -> tuple[Any, float]:
    """The answer, and the least processor time of up to three runs in about a second."""
    least, deadline, answer = float("inf"), time.perf_counter() + 1.0, None
    for k in range(3):
        if k and time.perf_counter() > deadline:
            break
        began = time.process_time()
        answer = run()
        least = min(least, time.process_time() - began)
    return answer, least


def rival_times(
    fit: Fit, sweep: tuple[float, ...], judge: Callable[[np.ndarray, float], float]
) -> dict[float, tuple[float, float]]:
    """Least processor seconds to each target over the sweep, with the suboptimality reached."""
    found: dict[float, tuple[float, float]] = {}
    for tol in sweep:
        try:
            with cap(CAP):
                (w, b), seconds = least_cpu(lambda tol=tol: fit(tol))
        except Capped:
            break
        except Exception as error:  # a rival may fail in any way it likes; the race goes on
            print(f"{type(error).__name__}: {error}"[:120])
            break
        reached = judge(w, b)
        for target in TARGETS:
            if reached <= target and seconds < found.get(target, (float("inf"), 0.0))[0]:
                found[target] = (seconds, reached)
        if reached <= TARGETS[-1]:
            break
    return found


def race(table: tables.Table, name: str, X: np.ndarray, t: np.ndarray, beaten: set[str]) -> None:
    """One data set; who does not arrive joins ``beaten`` and is not asked about larger ones."""
    from linsep import LinearRegressor

    def value(w: np.ndarray, b: float) -> float:
        return float(np.abs(t - X @ w - b).sum())

    exact = LinearRegressor("absolute", tol=1e-9, n_threads=1).fit(X, t)
    least = value(exact.coef_, float(exact.intercept_))

    def judge(w: np.ndarray, b: float) -> float:
        found = value(w, b)
        return max(0.0, (found - least) / found)

    mine: dict[float, float] = {}
    for tol in TARGETS:
        model = LinearRegressor("absolute", tol=tol, n_threads=1)
        _, seconds = least_cpu(lambda model=model: model.fit(X, t))
        reached = judge(model.coef_, float(model.intercept_))
        mine[tol] = seconds if model.certificate_.certified else float("inf")
        table.add(name, tol, "linsep", mine[tol], reached, model.n_passes_, 1.0)
    for who, (prepare, sweep) in RIVALS.items():
        times = {} if who in beaten else rival_times(prepare(X, t), sweep, judge)
        if not times:
            beaten.add(who)
        for target in TARGETS:
            seconds, reached = times.get(target, (float("nan"), float("nan")))
            table.add(name, target, who, seconds, reached, float("nan"), seconds / mine[target])


def main() -> None:
    asked = tables.options(__doc__, full="up to a million rows")
    warnings.simplefilter("ignore")
    threadpool_limits(1)
    asked.threads = 1
    table = tables.Table("deviations", COLUMNS, asked)
    table.facts["cap"] = (
        f"{CAP:g} seconds on the wall for a fit; nan: not reached, here or on a smaller set"
    )
    beaten: set[str] = set()
    for name, X, t in sets(asked.full):
        race(table, name, X, t, beaten)
    table.write()


if __name__ == "__main__":
    main()
