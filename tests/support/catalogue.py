"""The lists that tests are products of; a test that takes its cases from here covers what is added later.

==================  =========================================================================================
losses              ``CONVEX``: ``SMOOTH``, ``KINKED`` and others; ``NATIVE`` have a kernel, ``CENTRED`` of residuals
penalties           ``PENALTIES``: the share of |w|_1, from ridge to lasso
problems            ``MAKERS``: a few rows each, by what is particular about them; ``makers(loss)``: which make sense
kinds of storage    ``KINDS`` = ``STORAGES`` (read where they lie) + ``LAYOUTS`` (converted)
instruction sets    ``INSTRUCTION_SETS`` of this machine
solvers             ``cases``: every solver x loss x problem x penalty whose declared needs are met
==================  =========================================================================================

``objective`` and ``reference`` are the truth that answers are compared with: numpy and scipy, nothing of linsep but
the losses' own functions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp

from linsep import _kernels, losses
from linsep.data import Memory
from linsep.losses import Absolute, Huber, HuberisedHinge, Loss, Squared
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.solvers import SOLVERS
from linsep.train import Fit, Recipe, train

CONVEX = [losses.get(name) for name in losses.NAMES if losses.get(name).convex]
#: Losses of the residual as regression uses them, and about another margin.
CENTRED = [Squared(centre=0.0), Absolute(centre=-0.25), Huber(0.5, centre=0.0)]
NATIVE = [loss for loss in CONVEX if loss.native] + [HuberisedHinge(0.25), Huber(0.01), *CENTRED]
SMOOTH = [loss for loss in CONVEX if loss.smooth]
#: Losses with one kink and a kernel.
KINKED = [loss for loss in CONVEX if not loss.smooth and loss.native]
#: Losses that fall for ever, so that separable rows leave them no minimiser without a penalty.
FALLING = [loss for loss in SMOOTH if loss.recedes]

#: Share of |w|_1 in the penalty.
PENALTIES = {"ridge": 0.0, "elastic": 0.5, "lasso": 1.0}


@dataclass(frozen=True)
class Quartic(Loss):
    """(1 - m)^4, as a user writes a loss."""

    name = "quartic"
    regression = True

    def value(self, m):
        return (1 - m) ** 4

    def slope(self, m):
        return -4 * (1 - m) ** 3

    def curvature(self, m):
        return 12 * (1 - m) ** 2

    def conjugate(self, q):
        return q + 3 * (np.abs(q) / 4) ** (4 / 3)


def naming(value: Any) -> str | None:
    """The id of a loss in a list of parameters."""
    if isinstance(value, Loss):
        return value.name + "".join(f"-{p:g}" for p in value.params)
    return None


def in_python(loss: Loss) -> Loss:
    """The same loss without its kernel."""
    twin = type(f"Python{type(loss).__name__}", (type(loss),), {"native": None})
    return twin(**{field.name: getattr(loss, field.name) for field in fields(loss)})


def _has(name: str) -> bool:
    before = _kernels.instruction_set()
    try:
        _kernels.use_instruction_set(name)
    except ValueError:
        return False
    _kernels.use_instruction_set(before)
    return True


#: Instruction sets of this machine.
INSTRUCTION_SETS = [name for name in ("base", "avx2", "avx512") if _has(name)]


def _csr(kind: type, index: type) -> Callable[[Any], Any]:
    def convert(X: Any) -> Any:
        out = sp.csr_matrix(X).astype(kind)
        out.indices, out.indptr = out.indices.astype(index), out.indptr.astype(index)
        return out

    return convert


def _between(X: Any) -> Any:
    """Every other column of a wider array: no order at all."""
    wide = np.full((X.shape[0], 2 * X.shape[1]), np.nan)
    wide[:, ::2] = X
    return wide[:, ::2]


def _unsorted(X: Any) -> Any:
    """CSR with the columns of each row in falling order."""
    out = sp.csr_matrix(X)
    for start, stop in itertools.pairwise(out.indptr):
        for part in (out.data, out.indices):
            part[start:stop] = part[start:stop][::-1].copy()
    out.has_sorted_indices = False
    return out


#: What the kernels read, with indices of 32 bits where they lie and with copies of those of 64.
STORAGES: dict[str, Callable[[Any], Any]] = {
    "dense64": lambda X: np.array(X, np.float64, order="C"),
    "dense32": lambda X: np.array(X, np.float32, order="C"),
    "csr64-int32": _csr(np.float64, np.int32),
    "csr32-int64": _csr(np.float32, np.int64),
    "csr64-unsorted": _unsorted,
}
#: What is converted, once or block by block.
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "fortran64": lambda X: np.array(X, np.float64, order="F"),
    "fortran32": lambda X: np.array(X, np.float32, order="F"),
    "between": _between,
    "swapped": lambda X: np.array(X, np.dtype(np.float64).newbyteorder()),
    "int8": lambda X: np.array(X, np.int8),
    "int64": lambda X: np.array(X, np.int64),
    "bool": lambda X: np.array(X, np.bool_),
    "float16": lambda X: np.array(X, np.float16),
    "csc64": sp.csc_matrix,
    "csr-int8": lambda X: sp.csr_matrix(X).astype(np.int8),
    "csr-array": sp.csr_array,
}
KINDS = {**STORAGES, **LAYOUTS}


def dense(X: Any) -> Any:
    """X as a float64 array."""
    return np.asarray(X.toarray() if sp.issparse(X) else X, np.float64)


@dataclass(frozen=True, eq=False)
class Sample:
    """A small problem: rows, labels, and perhaps offsets and weights."""

    X: Any
    sign: Any
    offset: Any = None
    weight: Any = None

    def memory(self, **options: Any) -> Memory:
        return Memory(self.X, self.sign, self.offset, self.weight, **options)

    def problem(
        self, loss: Loss, C: float = 1.0, fit_intercept: bool = True, l1_ratio: float = 0.0
    ) -> Problem:
        return Problem(loss, ElasticNet(C, l1_ratio), self.memory(), fit_intercept)

    def in_storage(self, kind: str) -> Sample:
        """The same rows in another storage."""
        return replace(self, X=KINDS[kind](dense(self.X)))


def labels(X: Any, rng: Any, noise: float) -> Any:
    """Signs of a noisy linear score; both occur."""
    z = X @ np.linspace(1.0, -1.0, X.shape[1]) + 0.3 + noise * rng.normal(size=len(X))
    sign = np.where(z > 0, 1.0, -1.0)
    sign[:2] = 1.0, -1.0
    return sign


def plain(n: int = 60, d: int = 4, seed: int = 0, noise: float = 1.5) -> Sample:
    """Rows that overlap, so that every loss has a minimiser for every C."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return Sample(X, labels(X, rng, noise))


def weighted() -> Sample:
    sample, rng = plain(), np.random.default_rng(1)
    return replace(sample, weight=rng.choice([0.0, 0.3, 1.0, 4.0], size=len(sample.sign)))


def offsets() -> Sample:
    """Margins that do not begin at 0."""
    sample, rng = plain(seed=2), np.random.default_rng(2)
    return replace(sample, offset=rng.normal(size=len(sample.sign)))


def regression() -> Sample:
    """Sign 1 and offset 1 - target, with weights."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(50, 3))
    target = X @ np.array([1.0, -2.0, 0.5]) + 0.7 + 0.5 * rng.normal(size=50)
    return Sample(X, np.ones(50), 1.0 - target, rng.uniform(0.5, 2.0, 50))


def far_targets() -> Sample:
    """Regression on targets far from 0: at the start every residual is in the tail of its loss."""
    rng = np.random.default_rng(11)
    X = rng.normal(size=(80, 3))
    target = 1000.0 + 20.0 * X @ np.array([1.0, -2.0, 0.5]) + 10.0 * rng.normal(size=80)
    return Sample(X, np.ones(80), 1.0 - target)


def unscaled() -> Sample:
    """Columns from 1e-6 to 1e6."""
    sample = plain(d=5, seed=3)
    return replace(sample, X=sample.X * np.logspace(-6, 6, 5))


def duplicate() -> Sample:
    """Equal, opposite and constant columns."""
    sample = plain(d=3, seed=4)
    X, one = sample.X, np.ones((len(sample.X), 1))
    return replace(sample, X=np.hstack([X, X[:, :1], -X[:, 1:2], 3.7 * one, 0.0 * one]))


def wide() -> Sample:
    return plain(n=15, d=40, seed=5)


def tall() -> Sample:
    return plain(n=1500, d=2, seed=6)


def imbalanced() -> Sample:
    sample = plain(n=300, d=3, seed=7, noise=0.0)
    sign = np.full(300, -1.0)
    sign[[3, 50, 201]] = 1.0
    return replace(sample, sign=sign)


def nearly_separable() -> Sample:
    """All but one row are on their side."""
    sample = separable()
    sign = sample.sign.copy()
    sign[-1] *= -1
    return replace(sample, sign=sign)


def separable() -> Sample:
    rng = np.random.default_rng(8)
    X = rng.normal(size=(40, 2))
    z = X @ np.array([2.0, -1.0]) + 0.2
    keep = np.abs(z) > 0.3
    return Sample(X[keep], np.sign(z[keep]))


def far_away() -> Sample:
    """Columns whose mean is large beside their spread."""
    sample = plain(d=3, seed=9)
    return replace(sample, X=sample.X + np.array([1e4, -30.0, 0.0]))


def outlier() -> Sample:
    """One number out of all proportion."""
    sample = plain(d=3, seed=10)
    X = sample.X.copy()
    X[5, 1] = 1e7
    return replace(sample, X=X)


MAKERS: dict[str, Callable[[], Sample]] = {
    make.__name__: make
    for make in (
        plain,
        weighted,
        offsets,
        regression,
        far_targets,
        unscaled,
        duplicate,
        wide,
        tall,
        imbalanced,
        nearly_separable,
        separable,
        far_away,
        outlier,
    )
}


def makers(loss: Loss) -> list[str]:
    """The problems on which the loss makes sense, penalised or not: one-sided losses need both signs."""
    return [name for name in MAKERS if loss.regression or name not in ("regression", "far_targets")]


def objective(
    loss: Loss,
    C: float,
    sample: Sample,
    theta: Any,
    fit_intercept: bool = True,
    l1_ratio: float = 0.0,
) -> tuple[float, Any, Any]:
    """Reported objective, and gradient and Hessian of its smooth part, in a few lines of numpy."""
    X = dense(sample.X)
    A = np.column_stack([X, np.full(len(X), float(fit_intercept))])
    s = np.ones(len(X)) if sample.weight is None else sample.weight
    o = np.zeros(len(X)) if sample.offset is None else sample.offset
    m = sample.sign * (A @ theta) + o
    scale, ridge = (C, 1.0 - l1_ratio) if np.isfinite(C) else (1.0, 0.0)
    penalty = ridge * np.append(np.ones(X.shape[1]), 0.0)
    value = scale * (s @ loss.value(m)) + 0.5 * penalty @ theta**2
    if np.isfinite(C):
        value += l1_ratio * np.abs(theta[:-1]).sum()
    g = scale * A.T @ (s * sample.sign * loss.slope(m)) + penalty * theta
    H = scale * A.T @ ((s * loss.curvature(m))[:, None] * A) + np.diag(penalty)
    return float(value), g, H


def precise_objective(loss: Loss, C: float, sample: Sample, theta: Any, *settings: Any) -> float:
    """Reported objective, in extended precision: plain numpy would add rounding errors of its own."""
    return objective(loss, C, sample, theta.astype(np.longdouble), *settings)[0]


@cache
def reference(loss: Loss, maker: str, C: float, fit_intercept: bool = True) -> float:
    """The least objective that a trust region method of scipy finds for a smooth loss and a ridge, in reported units.

    Columns are scaled, so that it is precise to eight digits or more; being the objective of a point,
    it can only lie above the minimum.
    """
    sample = MAKERS[maker]()
    zero = np.zeros(sample.X.shape[1] + 1)
    at_zero, _, H = objective(loss, C, sample, zero, fit_intercept)
    unit = 1.0 / np.sqrt(np.where(np.diag(H) > 0, np.diag(H), 1.0))

    def part(k: int, phi: Any) -> Any:
        return objective(loss, C, sample, unit * phi, fit_intercept)[k]

    with np.errstate(all="ignore"):
        found = scipy.optimize.minimize(
            lambda phi: part(0, phi),
            zero,
            jac=lambda phi: unit * part(1, phi),
            hess=lambda phi: unit[:, None] * part(2, phi) * unit,
            method="trust-exact",
            options={
                "gtol": 1e-13 * max(1.0, at_zero),
                "initial_trust_radius": 100.0,
                "max_trust_radius": 1e12,
                "maxiter": 500,
            },
        )
    return float(found.fun)


def fit(
    sample: Sample,
    loss: str | Loss = "logistic",
    C: float = 1.0,
    solver: str = "auto",
    *,
    l1_ratio: float = 0.0,
    start: Any = None,
    n_threads: int | None = None,
    **options: Any,
) -> Fit:
    """Train on the sample."""
    data = sample.memory(n_threads=n_threads)
    try:
        recipe = Recipe(losses.get(loss), ElasticNet(C, l1_ratio), solver=solver, **options)
        return train(recipe, data, start)
    finally:
        data.close()


def takes(
    solver: str,
    sample: Sample,
    loss: str | Loss = "logistic",
    C: float = 1.0,
    l1_ratio: float = 0.0,
) -> bool:
    """Whether the needs of the solver are met."""
    problem = sample.problem(losses.get(loss), C, l1_ratio=l1_ratio)
    return not SOLVERS[solver].missing(problem)


def able(
    sample: Sample, loss: str | Loss = "logistic", C: float = 1.0, l1_ratio: float = 0.0
) -> list[str]:
    """The solvers whose needs are met."""
    return [solver for solver in SOLVERS if takes(solver, sample, loss, C, l1_ratio)]


def cases(
    some: Sequence[Loss] = CONVEX,
    problems: Sequence[str] | None = None,
    penalties: Sequence[str] = tuple(PENALTIES),
) -> list[Any]:
    """Parameters (solver, loss, maker, l1_ratio): every combination that the solver takes at a finite C."""
    found = []
    for maker, make in MAKERS.items():
        sample = make()
        for loss, penalty in itertools.product(some, penalties):
            if maker not in makers(loss) or (problems is not None and maker not in problems):
                continue
            found += [
                pytest.param(
                    solver,
                    loss,
                    maker,
                    PENALTIES[penalty],
                    id=f"{solver}-{naming(loss)}-{maker}-{penalty}",
                )
                for solver in able(sample, loss, 1.0, PENALTIES[penalty])
            ]
    return found
