"""The linear probe: softmax regression on embeddings, processor time to suboptimality 1e-4 and 1e-6.

    P(W, b) = 1/2 |W|^2 + C sum_i (logsumexp(z_i) - z_i,y_i),   z_i = W x_i + b,   b free

Embeddings are unit rows in single precision: class means in groups, plus noise with a decaying spectrum. linsep is
certified; everybody is judged by the objective in float64, against linsep's certified lower bound. Rivals make one fit
at each of a few iteration limits, so that a time belongs to each accuracy. Then a sweep over ten C, and the peak of
the memory that a fit adds to the rows.

    python benchmarks/probe.py --sizes 20000x384x20 60000x384x100 --threads 2
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import generators
import numpy as np
import tables
from threadpoolctl import threadpool_limits

COLUMNS = ("data", "C", "target", "who", "seconds", "processor", "suboptimality", "passes", "ratio")
TARGETS = (1e-4, 1e-6)
ITERATIONS = (10, 20, 50, 100, 200, 500, 1000)
CS = (1.0, 100.0)
SWEEP = tuple(np.logspace(-3, 2, 10).tolist())
CAP = 10.0  # rivals stop after so many times linsep's processor time to 1e-6


def objective(W: np.ndarray, b: np.ndarray, X: np.ndarray, y: np.ndarray, C: float) -> float:
    """P in float64, by blocks of rows."""
    loss = 0.0
    for low in range(0, len(y), 4096):
        Z = X[low : low + 4096].astype(np.float64) @ W.T + b
        own = Z[np.arange(len(Z)), y[low : low + 4096]]
        top = Z.max(axis=1)
        loss += float((top + np.log(np.exp(Z - top[:, None]).sum(axis=1)) - own).sum())
    return 0.5 * float(np.square(W).sum()) + C * loss


def rivals() -> Iterator[tuple[str, Callable[[float, int], Any]]]:
    """Name and constructor (C, iterations) of every rival that is installed."""
    from sklearn.linear_model import LogisticRegression

    yield "scikit-learn lbfgs", lambda C, m: LogisticRegression(C=C, max_iter=m, tol=1e-12)
    try:
        from sklearnex.linear_model import LogisticRegression as Intelex

        yield "scikit-learn-intelex lbfgs", lambda C, m: Intelex(C=C, max_iter=m, tol=1e-12)
    except ImportError:
        print("scikit-learn-intelex is not installed: absent")
    try:
        import torch  # noqa: F401

        yield "PyTorch LBFGS", TorchLbfgs
    except ImportError:
        print("PyTorch is not installed: absent")


class TorchLbfgs:
    """Full-batch L-BFGS with strong Wolfe line search in PyTorch, on the processor, in single precision."""

    def __init__(self, C: float, iterations: int) -> None:
        self.C, self.iterations = C, iterations

    def fit(self, X: np.ndarray, y: np.ndarray) -> TorchLbfgs:
        import torch

        rows, labels = torch.from_numpy(X), torch.from_numpy(y)
        layer = torch.nn.Linear(X.shape[1], int(y.max()) + 1)
        torch.nn.init.zeros_(layer.weight)
        torch.nn.init.zeros_(layer.bias)
        steps = torch.optim.LBFGS(
            layer.parameters(), max_iter=self.iterations, line_search_fn="strong_wolfe"
        )

        def closure() -> Any:
            steps.zero_grad()
            loss = torch.nn.functional.cross_entropy(layer(rows), labels)
            loss = loss + 0.5 * layer.weight.square().sum() / (self.C * len(y))
            loss.backward()
            return loss

        steps.step(closure)
        self.coef_ = layer.weight.detach().numpy().astype(np.float64)
        self.intercept_ = layer.bias.detach().numpy().astype(np.float64)
        return self


def clock(fit: Callable[[], Any]) -> tuple[Any, float, float]:
    """What ``fit`` returns, wall and processor seconds."""
    busy, began = time.process_time(), time.perf_counter()
    found = fit()
    return found, time.perf_counter() - began, time.process_time() - busy


class Race:
    """One set of embeddings."""

    def __init__(self, table: tables.Table, name: str, X: np.ndarray, y: np.ndarray, threads: int):
        self.table, self.name, self.X, self.y, self.threads = table, name, X, y, threads

    def run(self, C: float) -> None:
        """Linsep at both targets, then every rival with more and more iterations."""
        from linsep import LogisticRegression

        X, y = self.X, self.y
        mine, lower = {}, -np.inf
        models = {}
        for tol in TARGETS:
            model = LogisticRegression(C=C, tol=tol, n_threads=self.threads)
            models[tol], seconds, mine[tol] = clock(lambda model=model: model.fit(X, y))
            lower = max(lower, model.certificate_.dual)
            models[tol] = (model, seconds)

        def judge(model: Any) -> float:
            value = objective(model.coef_, model.intercept_, X, y, C)
            return (value - lower) / value

        for tol, (model, seconds) in models.items():
            held = judge(model) if model.certificate_.certified else float("nan")
            cell = (self.name, C, tol, "linsep", seconds, mine[tol], held, model.n_passes_, 1.0)
            self.table.add(*cell)
        for who, make in rivals():
            self._rival(who, make, C, judge, mine)
        self.table.save()

    def _rival(
        self, who: str, make: Callable[[float, int], Any], C: float, judge: Any, mine: Any
    ) -> None:
        open_targets, cpu, reached = list(TARGETS), 0.0, float("inf")
        with threadpool_limits(self.threads):
            for iterations in ITERATIONS:
                if not open_targets or cpu > CAP * mine[TARGETS[-1]]:
                    break
                fit = make(C, iterations).fit
                model, seconds, cpu = clock(lambda fit=fit: fit(self.X, self.y))
                reached = judge(model)
                for target in [t for t in open_targets if reached <= t]:
                    ratio = cpu / mine[target]
                    cell = (self.name, C, target, who, seconds, cpu, reached, float("nan"), ratio)
                    self.table.add(*cell)
                    open_targets.remove(target)
        for target in open_targets:
            cell = (self.name, C, target, f"{who}: not reached", seconds, cpu, reached)
            self.table.add(*cell, float("nan"), cpu / mine[target])

    def sweep(self) -> None:
        """All C of a sweep, against one fit at the largest."""
        from linsep import LogisticRegression, path

        one = LogisticRegression(C=SWEEP[-1], n_threads=self.threads)
        _, _, busy = clock(lambda: one.fit(self.X, self.y))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found, seconds, cpu = clock(lambda: path(one, self.X, self.y, SWEEP))
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        gap = max(proof.relative_gap for proof in found.certificates)
        who = f"linsep, sweep of {len(SWEEP)} C"
        cell = (self.name, SWEEP[-1], 1e-6, who, seconds, cpu, gap, found.n_passes, cpu / busy)
        self.table.add(*cell)
        print(f"{who}: {cpu / busy:.2f} times one fit, {after - before} KiB above the peak before")
        self.table.save()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", default=["20000x384x20", "60000x384x100"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--output", type=Path, help="CSV file")
    parser.add_argument("--no-sweep", action="store_true")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    table = tables.Table("probe", COLUMNS, asked)
    for size in asked.sizes:
        n, d, k = map(int, size.split("x"))
        X, y = generators.class_embeddings(n, d, k)
        race = Race(table, f"{n:,} x {d}, {k} classes", X, y, asked.threads)
        for C in CS:
            race.run(C)
        if not asked.no_sweep:
            race.sweep()
    table.write()


if __name__ == "__main__":
    main()
