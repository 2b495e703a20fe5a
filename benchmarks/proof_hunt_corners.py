"""Third hunt for false certificates: settings that the other two do not draw.

    python benchmarks/proof_hunt_corners.py --problems 500 --seed 0 --seconds 600
    python benchmarks/proof_hunt_corners.py --replay 1234

Rows and labels are those of tests/support/hostile.py. The settings are others: quantile, epsilon-insensitive and scaled
losses, penalty factors (also 0) and groups of features, offsets, class weights from 1e-9 to 1e9, warm starts, and
storages from float16 and booleans to sparse matrices with duplicates and mapped files. The objective is evaluated in
ball arithmetic, and a few points near the coefficients try to refute the lower bound. Certified models have to pass
verify, verify(exact=True), verify after a save and a load, and the checker, on rows in plain storage.
"""

from __future__ import annotations

import argparse
import collections
import math
import os
import sys
import tempfile
import time
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "checker")]
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import hostile  # noqa: E402
import linsep_check as checker  # noqa: E402
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import scipy.sparse as sp  # noqa: E402
from flint import arb, ctx  # noqa: E402

import linsep  # noqa: E402
from linsep import losses as lib  # noqa: E402
from linsep.errors import CertificateError, LinsepError, Refused  # noqa: E402

Rng = np.random.Generator
_BITS = 600
_MOST_ROWS = 80
_CHECKED = 600  # entries up to which the checker is asked
_SLOW = 5.0


# --- the objective ----------------------------------------------------------------------------------------------


def _number(x: Any) -> arb:
    return arb(float(x))


def _margin_loss(loss: Any, m: arb) -> arb:
    """A loss of the margin."""
    kind, short = type(loss).__name__, (1 - m).nonnegative_part()
    if kind == "Logistic":
        return (1 + (-m).exp()).log() if m.mid() > 0 else (1 + m.exp()).log() - m
    if kind == "Exponential":
        return (-m).exp()
    if kind == "HuberisedHinge":
        bent = short.min(_number(loss.width))
        return bent * (short - bent / 2) / _number(loss.width)
    return short * short if kind == "SquaredHinge" else short


def _residual_loss(loss: Any, r: arb) -> arb:
    """A loss of the residual."""
    kind, size = type(loss).__name__, abs(r)
    if kind == "Pinball":
        q = _number(loss.quantile)
        return q * r.nonnegative_part() + (1 - q) * (-r).nonnegative_part()
    if kind == "Huber":
        bent = size.min(_number(loss.width))
        return bent * (size - bent / 2)
    if kind in ("EpsilonInsensitive", "SquaredEpsilonInsensitive"):
        size = (size - _number(loss.epsilon)).nonnegative_part()
    return size * size if kind.startswith("Squared") else size


@dataclass(eq=False)
class Case:
    """One problem: the estimator with its settings, the rows as stored and as plain numbers."""

    seed: int
    design: str
    storage: str
    estimator: Any
    loss: Any
    stored: Any
    X: Any
    y: Any
    weight: Any
    offset: Any
    factor: Any
    group: Any

    @property
    def regression(self) -> bool:
        return isinstance(self.estimator, linsep.LinearRegressor)

    def describe(self) -> str:
        given = "".join(
            f", {name}" for name in ("weight", "offset") if getattr(self, name) is not None
        )
        return f"{self.estimator!r} on {self.design} {self.X.shape} in {self.storage}{given}"

    def objective(self, W: Any) -> arb:
        """The objective at float64 coefficients (d + 1,), in balls."""
        ctx.prec = _BITS
        w, b = [_number(v) for v in W[:-1]], _number(W[-1])
        n, total = len(self.y), arb(0)
        offset = np.zeros(n) if self.offset is None else self.offset
        target = self.y - offset if self.regression else self.y  # rounded, as documented
        for x, y, o, s in zip(self.X, target, offset, self._weights(), strict=True):
            if s == 0.0:
                continue
            z = b + sum((_number(a) * v for a, v in zip(x, w, strict=True)), arb(0))
            own = _residual_loss(self._plain, _number(y) - z) if self.regression else None
            total += _number(s) * (
                own if own is not None else _margin_loss(self._plain, int(y) * (z + _number(o)))
            )
        total *= _number(getattr(self.loss, "factor", 1.0))
        return total if math.isinf(self.estimator.C) else self._penalised(total, w)

    @property
    def _plain(self) -> Any:
        return getattr(self.loss, "loss", self.loss)

    def _weights(self) -> Any:
        s = np.ones(len(self.y)) if self.weight is None else np.asarray(self.weight, dtype=float)
        of_class = getattr(self.estimator, "class_weight", None)
        if of_class is None:
            return s
        return s * np.where(self.y > 0, of_class[1], of_class[-1])

    def _penalised(self, total: arb, w: list[arb]) -> arb:
        d, r = len(w), _number(self.estimator.l1_ratio)
        factor = np.ones(d) if self.factor is None else self.factor
        group = np.arange(d) if self.group is None else self.group
        ridge = sum((_number(p) * v * v for p, v in zip(factor, w, strict=True)), arb(0)) / 2
        norms = arb(0)
        for g in np.unique(group):
            at = np.flatnonzero(group == g)
            own = abs(w[at[0]]) if len(at) == 1 else sum((w[j] ** 2 for j in at), arb(0)).sqrt()
            norms += _number(factor[at[0]] * np.sqrt(float(len(at)))) * own
        return _number(self.estimator.C) * total + (1 - r) * ridge + r * norms


# --- problems ---------------------------------------------------------------------------------------------------


def _with_duplicates(rng: Rng, X: Any) -> Any:
    """CSR whose entries are split in two, in any order of the columns."""
    n, d = X.shape
    columns = np.concatenate([rng.permutation(np.tile(np.arange(d), 2)) for _ in range(n)])
    halves = X[np.repeat(np.arange(n), 2 * d), columns] / 2
    return sp.csr_matrix((halves, columns, np.arange(0, 2 * n * d + 1, 2 * d)), shape=X.shape)


def _with_zeros(rng: Rng, X: Any) -> Any:
    """CSR with explicit zeros."""
    S = sp.csr_matrix(X)
    S.data[rng.random(S.nnz) < 0.2] = 0.0
    return S


def _mapped(X: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        np.save(path, X)
        return np.load(path, mmap_mode="r")


def _strided(X: Any) -> Any:
    wide = np.zeros((2 * X.shape[0], 3 * X.shape[1]))
    wide[::2, ::3] = X
    return wide[::2, ::3]


STORAGES: dict[str, Any] = {
    "C": lambda rng, X: X,
    "F": lambda rng, X: np.asfortranarray(X),
    "float32": lambda rng, X: np.clip(X, -1e38, 1e38).astype(np.float32),
    "float16": lambda rng, X: np.clip(X, -6e4, 6e4).astype(np.float16),
    "int8": lambda rng, X: np.clip(np.round(X), -100, 100).astype(np.int8),
    "bool": lambda rng, X: np.median(X) < X,
    "zeros": _with_zeros,
    "duplicates": _with_duplicates,
    "csc": lambda rng, X: sp.csc_array(X),
    "coo": lambda rng, X: sp.coo_matrix(X),
    "mapped": lambda rng, X: _mapped(X),
    "strided": lambda rng, X: _strided(X),
    "frame": lambda rng, X: pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])]),
}


def _loss(rng: Rng, regression: bool, size: float) -> Any:
    def width(low: float, high: float) -> float:
        return float(size * 10.0 ** rng.uniform(low, high))

    if regression:
        makers = [
            lambda: lib.Pinball(float(rng.choice([0.5, 0.1, 0.99, 1e-6]))),
            lambda: lib.EpsilonInsensitive(width(-6, 0.5)),
            lambda: lib.SquaredEpsilonInsensitive(width(-6, 0.5)),
            lambda: lib.Huber(width(-3, 1)),
            *(lib.Squared, lib.Absolute),
        ]
    else:
        makers = [
            *(lib.Hinge, lib.SquaredHinge, lib.Logistic, lib.Exponential),
            lambda: lib.HuberisedHinge(width(-4, 4)),
        ]
    loss = makers[rng.integers(len(makers))]()
    return lib.Scaled(loss, 10.0 ** rng.uniform(-6, 6)) if rng.random() < 0.25 else loss


def _weight(rng: Rng, n: int) -> Any:
    kind = rng.random()
    if kind < 0.3:
        return 10.0 ** rng.uniform(-12, 12, n)
    if kind < 0.4:
        return np.where((rng.random(n) < 0.3) & (np.arange(n) > 1), 0.0, rng.integers(1, 4, n))
    return np.full(n, 10.0 ** rng.uniform(-200, 200)) if kind < 0.5 else None


def _penalties(rng: Rng, d: int, l1_ratio: float) -> tuple[Any, Any]:
    """Penalty factors and groups."""
    if l1_ratio == 0.0 or rng.random() < 0.5:
        return rng.choice([0.0, 1.0, 0.5, 10.0 ** rng.uniform(-8, 8)], size=d), None
    group = np.unique(rng.integers(0, d // 2 + 1, d), return_inverse=True)[1].reshape(-1)
    of_group = rng.choice([0.0, 1.0, 1.0, 10.0 ** rng.uniform(-4, 4)], size=group.max() + 1)
    return of_group[group], group


def draw(seed: int) -> Case:
    """A problem from its seed."""
    rng = np.random.default_rng([seed, 4242])
    regression = bool(rng.random() < 0.5)
    given = hostile.draw(seed + 10**8, (), ("regression" if regression else "two",))
    X, y = hostile.dense(given.X)[:_MOST_ROWS], np.asarray(given.y)[:_MOST_ROWS]
    if not regression:
        y = np.where(y > 0, 1, -1)
        y[:2] = 1, -1
    storage = str(rng.choice(sorted(STORAGES)))
    stored = STORAGES[storage](rng, X)
    X = hostile.dense(stored)
    n, d = X.shape
    size = float(np.clip(np.abs(y).max(), 1e-280, 1e280)) if regression else 1.0
    loss = _loss(rng, regression, size)
    C = 10.0 ** rng.uniform(-9, 9) if rng.random() < 0.9 else math.inf
    settings: dict[str, Any] = {"C": C, "l1_ratio": 0.0}
    factor = group = None
    if math.isfinite(C):
        if loss.smooth:
            settings["l1_ratio"] = float(
                rng.choice([0.0, 1.0, 0.5, 0.01], p=[0.5, 0.25, 0.15, 0.1])
            )
        if rng.random() < 0.45:
            factor, group = _penalties(rng, d, settings["l1_ratio"])
            settings |= {"penalty_factor": factor.tolist()}
            settings |= {} if group is None else {"feature_groups": group.tolist()}
    if not regression and rng.random() < 0.2:
        settings["class_weight"] = {c: float(10.0 ** rng.uniform(-9, 9)) for c in (-1, 1)}
    settings |= {"fit_intercept": bool(rng.random() < 0.8), "warm_start": bool(rng.random() < 0.2)}
    settings["tol"] = float(rng.choice([1e-6, 1e-3, 1e-9]))
    offset = size * 10.0 ** rng.uniform(-3, 3) * rng.normal(size=n) if rng.random() < 0.25 else None
    kind = linsep.LinearRegressor if regression else linsep.LinearClassifier
    return Case(
        *(seed, given.design, storage, kind(loss, **settings), loss, stored, X, y),
        *(_weight(rng, n), offset, factor, group),
    )


# --- findings ---------------------------------------------------------------------------------------------------


def examine(seed: int) -> tuple[str, list[str]]:
    """How the fit of a problem ended, and what is wrong with it."""
    case = draw(seed)
    offset = {} if case.offset is None else {"offset": case.offset}
    given = case.stored, case.y, case.weight
    model, C = case.estimator, case.estimator.C
    began = time.process_time()
    try:
        if model.warm_start:
            model.set_params(C=3.0 * C).fit(*given, **offset)
        model.set_params(C=C).fit(*given, **offset)
    except LinsepError as error:
        return type(error).__name__, []
    found = ["slow"] if time.process_time() - began > _SLOW else []
    found += _judged(case, model)
    if not model.certificate_.certified:
        return "not certified", found
    for exact in (False, True):
        found += _rejected(f"exact={exact}", model, *given, exact=exact, **offset)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.linsep"
        linsep.save(model, path)
        rows = case.stored if case.storage == "frame" else case.X
        found += _rejected("loaded", linsep.load(path), rows, case.y, case.weight, **offset)
        if not offset and case.storage != "frame" and case.X.size <= _CHECKED:
            found += _refuted(path, case)
    return "certified", found


def _judged(case: Case, model: Any) -> list[str]:
    """What balls say about the claimed objective and the lower bound."""
    claim = model.certificate_
    hard = (
        math.isinf(model.C) and case._plain.name == "hinge"
    )  # the hard margin has another objective
    if hard or not (math.isfinite(claim.primal) and math.isfinite(claim.rounding)):
        return []
    W, rng = np.append(np.ravel(model.coef_), np.ravel(model.intercept_)), np.random.default_rng(0)
    true, found = case.objective(W), []
    allowed = arb(claim.rounding) + abs(arb(claim.primal)) * arb(2) ** -52 + arb(2) ** -1070
    if abs(true - arb(claim.primal)) > allowed:
        found.append(f"objective {claim.primal!r} is {true}")
    moves = [1.0 + 10.0 ** -rng.uniform(2, 9) * rng.normal(size=len(W)) for _ in range(4)]
    for move in (*moves, 0.0, 1.0 - 1e-3):
        if case.objective(move * W) < arb(claim.dual):
            return [*found, f"lower bound {claim.dual!r}"]
    return found


def _rejected(title: str, model: Any, *given: Any, **options: Any) -> list[str]:
    try:
        linsep.verify(model, *given, **options)
    except CertificateError as error:
        return [f"rejected, {title}: {error}"]
    except Refused:
        pass
    return []


def _refuted(path: Path, case: Case) -> list[str]:
    """What the checker rejects."""
    rows = path.with_name("rows.npz")
    weight = {} if case.weight is None else {"sample_weight": case.weight}
    np.savez(rows, X=case.X, y=case.y, **weight)
    try:
        checker.check(path, rows)
    except checker.Rejected as error:
        return [f"rejected, checker: {error}"]
    return []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problems", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seconds", type=float, default=3600.0, help="no new problem after this")
    parser.add_argument("--replay", type=int, help="examine this seed alone")
    given = parser.parse_args()
    first, count = (given.seed, given.problems) if given.replay is None else (given.replay, 1)
    end, ends = time.monotonic() + given.seconds, collections.Counter[str]()
    warnings.simplefilter("ignore")
    for seed in range(first, first + count):
        if time.monotonic() > end:
            break
        try:
            outcome, found = examine(seed)
        except Exception:
            outcome, found = "crash", [traceback.format_exc()]
        ends[outcome] += 1
        for finding in found:
            ends["findings"] += 1
            print(f"{seed}: {finding} | {draw(seed).describe()}", flush=True)
    print(", ".join(f"{name} {number}" for name, number in ends.most_common()))


if __name__ == "__main__":
    main()
