"""Choosing C: a grid of ten C and five folds, linsep's tune against the cross-validation of its rivals.

Every model of a rival's grid, one for each C and fold, is put into the objective that the rival minimises and compared
with its certified minimum; the grid counts as reached when the worst model is within the target. A rival is swept
over its tolerance and credited with its least time. All use one thread, and processor seconds are compared.

    python benchmarks/tuning.py --data gen_grid,a9a --loss logistic,hinge --target 1e-6 --cap 60
    python benchmarks/tuning.py --data sparse --cap 15

"sparse" stands for the texts: one made from a seed, and those of LINSEP_BENCH_DATA that are there.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import datasets
import generators
import numpy as np
import scipy.sparse as sp
import tables
from threadpoolctl import threadpool_limits
from worker import Capped

COLUMNS = ("data", "loss", "target", "who", "cpu seconds", "worst suboptimality", "ratio")
CS = np.geomspace(1e-4, 1e4, 10)
FOLDS = 5
KNOB = (1e-2, 1e-4, 1e-6, 1e-8)
AS_IT_COMES = 1e-4, 1000  # tolerance and epochs of LinearSVC
DATA = ("gen_grid", "gen_grid_small", "spambase", "a9a", "sms", "imdb_5k")
SPARSE = ("sms", "news20_5k", "gen_text_small")
COLD = (0.01, 1.0, 100.0)
FAR = 20.0  # times linsep's seconds: a rival is not followed further
LOSSES = ("logistic", "squared_hinge", "hinge")

Pairs = list[tuple[np.ndarray, np.ndarray]]
Grid = dict[tuple[int, int], np.ndarray]  # (number of C, fold) -> w and b
Rival = Callable[[float], Grid]  # of the setting of its knob


@contextlib.contextmanager
def cap(seconds: float) -> Any:
    """Raise Capped after that many processor seconds, as soon as the interpreter has the word."""

    def ring(signum: int, frame: Any) -> None:
        raise Capped

    signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


MADE = {"gen_grid": (300_000, 50), "gen_grid_small": (30_000, 20)}


def load(name: str) -> tuple[Any, np.ndarray]:
    return generators.tall(*MADE[name]) if name in MADE else datasets.load(name)


def losses_of(loss: str, m: np.ndarray) -> float:
    if loss == "logistic":
        return float(np.logaddexp(0.0, -m).sum())
    hinge = np.maximum(0.0, 1.0 - m)
    return float((hinge if loss == "hinge" else hinge**2).sum())


class SgdCertifier:
    """The minimum of every model of the grid, with a free or a penalised intercept."""

    def __init__(self, X: Any, y: np.ndarray, loss: str, pairs: Pairs) -> None:
        self.X, self.y, self.loss, self.pairs = X, y, loss, pairs
        self._least: dict[bool, np.ndarray] = {}

    def least(self, penalised: bool) -> np.ndarray:
        """The best value known of each model, (c, folds): proven to 1e-7 where a proof was had."""
        from linsep import LinearClassifier, tune

        if penalised not in self._least:
            X = self.X
            if penalised:
                ones = np.ones((X.shape[0], 1))
                X = sp.hstack([X, ones], format="csr") if sp.issparse(X) else np.hstack([X, ones])
            model = LinearClassifier(self.loss, fit_intercept=not penalised, tol=1e-7)
            found = tune(model, X, self.y, CS, cv=self.pairs, refit=False)
            self._least[penalised] = np.array(
                [[proof.primal for proof in row] for row in found.certificates]
            )
        return self._least[penalised]

    def worst(self, models: Grid, penalised: bool) -> float:
        """Of all models: (P - P*)/P."""
        least = self.least(penalised)
        worst = 0.0
        for (c, f), theta in models.items():
            train = self.pairs[f][0]
            w, b = theta[:-1], theta[-1]
            m = self.y[train] * (self.X[train] @ w + b)
            value = 0.5 * float(w @ w + (b * b if penalised else 0.0))
            value += CS[c] * losses_of(self.loss, m)
            worst = max(worst, (value - least[c, f]) / value)
        return worst if len(models) == len(CS) * len(self.pairs) else float("inf")


def logistic_cv(X: Any, y: np.ndarray, pairs: Pairs, solver: str, most: int) -> Rival:
    from sklearn.linear_model import LogisticRegressionCV

    def fit(tol: float) -> Grid:
        more = {"use_legacy_attributes": True, "l1_ratios": (0.0,)} if _newer() else {}
        model = LogisticRegressionCV(
            Cs=CS, cv=pairs, solver=solver, tol=tol, max_iter=most, refit=False, **more
        ).fit(X, y)
        (paths,) = model.coefs_paths_.values()
        paths = paths.reshape(len(pairs), len(CS), -1)
        return {(c, f): paths[f, c] for c in range(len(CS)) for f in range(len(pairs))}

    return fit


def _newer() -> bool:
    from inspect import signature

    from sklearn.linear_model import LogisticRegressionCV

    return "use_legacy_attributes" in signature(LogisticRegressionCV).parameters


def most_epochs(X: Any, limit: float) -> int:
    """LIBLINEAR cannot be interrupted: one fit makes no more than fit into the limit at a nanosecond per entry."""
    entries = X.nnz if sp.issparse(X) else X.size
    return max(10, min(100_000, int(limit / (1e-9 * entries))))


def grid_search(X: Any, y: np.ndarray, pairs: Pairs, loss: str, dual: bool, epochs: int) -> Rival:
    """GridSearchCV fits C by C, fold by fold; a scorer that looks on keeps the models."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import LinearSVC

    def fit(tol: float) -> Grid:
        seen: list[tuple[float, np.ndarray]] = []

        def score(model: Any, X: Any, y: np.ndarray) -> float:
            seen.append((model.C, np.append(model.coef_.ravel(), model.intercept_)))
            return float(model.score(X, y))

        search = GridSearchCV(
            LinearSVC(loss=loss, dual=dual, tol=tol, max_iter=epochs, random_state=0),
            {"C": CS},
            cv=pairs,
            scoring=score,
            refit=False,
            error_score="raise",  # the cap, above all
        )
        search.fit(X, y)
        out: Grid = {}
        for k, (C, theta) in enumerate(seen):
            out[int(np.flatnonzero(CS == C)[0]), k % len(pairs)] = theta
        return out

    return fit


def glum_cv(X: Any, y: np.ndarray, pairs: Pairs) -> Rival:
    """glum's path of each fold: mean loss + alpha/2 |w|^2, so alpha = 1/(C n)."""
    from glum import GeneralizedLinearRegressor

    def fit(tol: float) -> Grid:
        out: Grid = {}
        for f, (train, _) in enumerate(pairs):
            model = GeneralizedLinearRegressor(
                family="binomial",
                alpha_search=True,
                alpha=list(1.0 / (CS * len(train))),
                l1_ratio=0.0,
                gradient_tol=tol,
                max_iter=100_000,
            ).fit(X[train], (y[train] > 0).astype(float))
            for c, (w, b) in enumerate(zip(model.coef_path_, model.intercept_path_, strict=True)):
                out[c, f] = np.append(w, b)
        return out

    return fit


def rivals(
    X: Any, y: np.ndarray, pairs: Pairs, loss: str, limit: float
) -> Iterator[tuple[str, bool, Callable[[], Rival], tuple[float, ...]]]:
    """Name, whether its intercept is penalised, how to prepare it, the settings of its knob."""
    narrow = X.shape[1] <= 2000
    if loss == "logistic":
        for solver in ("lbfgs", "newton-cholesky") if narrow else ("lbfgs", "liblinear"):
            penalised = solver == "liblinear"
            most = most_epochs(X, limit) if penalised else 100_000
            yield (
                f"LogisticRegressionCV {solver}",
                penalised,
                lambda s=solver, m=most: logistic_cv(X, y, pairs, s, m),
                KNOB,
            )
        if narrow:
            yield "glum path of each fold", False, lambda: glum_cv(X, y, pairs), KNOB
        return
    for dual in (True,) if loss == "hinge" else (False, True):
        name = f"GridSearchCV(LinearSVC), {'dual' if dual else 'primal'}"
        tol, epochs = AS_IT_COMES
        for text, most, knobs in (
            (f"{name}, as it comes", epochs, (tol,)),
            (name, most_epochs(X, limit), KNOB),
        ):
            yield (
                text,
                True,
                lambda dual=dual, most=most: grid_search(X, y, pairs, loss, dual, most),
                knobs,
            )


def processor_seconds(run: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    answer = run()
    return time.process_time() - began, answer


def ours(X: Any, y: np.ndarray, pairs: Pairs, loss: str, target: float) -> tuple[float, float]:
    """Least processor seconds of two, and the largest proven gap."""
    from linsep import LinearClassifier, tune

    model = LinearClassifier(loss, tol=target, n_threads=1)
    least, worst = float("inf"), float("inf")
    for _ in range(2):
        seconds, found = processor_seconds(
            lambda: tune(model, X, y, CS, cv=pairs, scoring="error", refit=False)
        )
        worst = max(proof.relative_gap for proof in found.certificates.flat)
        least = min(least, seconds)
    return least, worst


def one_fit(X: Any, y: np.ndarray, loss: str, C: float, target: float) -> tuple[float, float]:
    """Least processor seconds of three cold fits of all rows, to compare a grid with, and the proven gap."""
    from linsep import LinearClassifier

    least, gap = float("inf"), float("inf")
    for _ in range(3):
        model = LinearClassifier(loss, C=C, tol=target, n_threads=1)
        seconds, _ = processor_seconds(lambda model=model: model.fit(X, y))
        least, gap = min(least, seconds), model.certificate_.relative_gap
    return least, gap


def race(table: tables.Table, name: str, loss: str, asked: argparse.Namespace) -> None:
    from sklearn.model_selection import StratifiedKFold

    X, y = load(name)
    pairs = list(StratifiedKFold(FOLDS).split(np.zeros(len(y)), y))
    certifier = SgdCertifier(X, y, loss, pairs)
    target = asked.target
    mine, gap = ours(X, y, pairs, loss, target)
    limit = min(asked.cap, max(5.0, FAR * mine))
    table.add(name, loss, target, "linsep tune", mine, gap, 1.0)
    for C in COLD:
        seconds, gap = one_fit(X, y, loss, C, target)
        table.add(name, loss, target, f"linsep, one fit at C={C:g}", seconds, gap, seconds / mine)
    for who, penalised, prepare, knobs in rivals(X, y, pairs, loss, limit):
        try:
            fit = prepare()
        except ImportError:
            continue
        spent, worst = 0.0, float("inf")
        for knob in knobs:
            began = time.process_time()
            try:
                with cap(limit):
                    models = fit(knob)
            except Capped:
                spent, worst = time.process_time() - began, float("inf")
                break
            spent, worst = time.process_time() - began, certifier.worst(models, penalised)
            if worst <= target:
                break
        reached = who if worst <= target else f"{who} (not reached)"
        table.add(name, loss, target, reached, spent, worst, spent / mine)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=",".join(DATA))
    parser.add_argument("--loss", default=",".join(LOSSES))
    parser.add_argument("--target", type=float, default=1e-6)
    parser.add_argument(
        "--cap", type=float, default=60.0, help="processor seconds of a rival's grid"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    table = tables.Table("tuning", COLUMNS, asked)
    known = (*MADE, *datasets.catalogue())
    with threadpool_limits(1):
        for name in SPARSE if asked.data == "sparse" else asked.data.split(","):
            if name not in known:
                print(f"{name}: not here", file=sys.stderr)
                continue
            for loss in asked.loss.split(","):
                race(table, name, loss, asked)
                table.write()  # what there is, in case the rest is given up


if __name__ == "__main__":
    main()
