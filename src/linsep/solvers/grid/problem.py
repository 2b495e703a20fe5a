"""Interface of the grid engines: models for every C, trained without each part (fold) of the rows.

Problem, for every C and every part f::

    min_theta  lam/2 |w|^2 + sum over rows outside f of s l(m),        lam = 1/C

An engine fits all of them together and returns, for each, a point, a dual point and the sums of its closing pass.
``linsep.train_grid`` computes the certificates.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from linsep.arrays import BoolArray, FloatArray, IntArray
from linsep.data import Dataset, dataset
from linsep.losses import Loss
from linsep.penalties import ElasticNet
from linsep.problem.gram import GramRows
from linsep.problem.recipe import Recipe
from linsep.solution import Solution

_COPIED = 1 << 24  # entries of X up to which a separately fitted model gets a copy of its rows


@dataclass(frozen=True, eq=False)
class GridProblem:
    """A problem with a pointwise loss, for the values ``Cs`` and the parts (folds) of the rows.

    ``part`` (n,) is the part of each row, -1 for none. ``attributes`` are the fitted attributes of a model other than
    its weights (classes_, ...).
    """

    recipe: Recipe
    rows: Any
    sigma: FloatArray | None
    offset: FloatArray | None
    weight: FloatArray | None
    attributes: dict[str, Any] = field(default_factory=dict)
    Cs: tuple[float, ...] = ()
    part: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def with_grid(self, Cs: Iterable[float], part: IntArray | None = None) -> GridProblem:
        """Return the problem with these C, and these parts or none."""
        if part is None:
            part = np.full(self.rows.shape[0], -1, dtype=np.int64)
        return replace(self, Cs=tuple(float(C) for C in Cs), part=part)

    @property
    def loss(self) -> Loss:
        """The pointwise loss; engines do not support losses that couple the classes."""
        loss: Any = self.recipe.loss
        return loss  # type: ignore[no-any-return]

    @property
    def folds(self) -> list[int]:
        """Parts that models are trained without; [-1] if there are none."""
        return sorted({int(f) for f in np.unique(self.part) if f >= 0}) or [-1]

    @property
    def plain_ridge(self) -> bool:
        """Return whether every C is finite, the penalty is a ridge and the solver is "auto"."""
        recipe = self.recipe
        finite = bool(np.isfinite(self.Cs).all())
        return finite and not recipe.penalty.l1_ratio and recipe.solver == "auto"

    @property
    def both_classes(self) -> bool:
        """Return whether every model is trained on rows of both classes; always true for regression."""
        if not self.loss.classification or self.sigma is None:
            return True
        kind = 2 * (self.part + 1) + (self.sigma > 0)
        if self.weight is not None:
            kind = kind[self.weight > 0]
        inside = np.bincount(kind, minlength=2 * int(self.part.max()) + 4).reshape(-1, 2)
        return bool((inside.sum(axis=0) > inside[1:]).all())

    def recipe_of(self, c: int) -> Recipe:
        """Return the recipe of the models with C number ``c``."""
        return replace(self.recipe, penalty=ElasticNet(self.Cs[c]))

    def training_rows(self, f: int) -> BoolArray:
        """Return the mask of the rows that models without part ``f`` are trained on."""
        return np.asarray((self.part != f) | (f < 0))

    def copies_rows(self) -> bool:
        """Return whether a separately fitted model gets a copy of its rows, instead of weights 0 for the others."""
        return isinstance(self.rows, np.ndarray) and self.rows.size <= _COPIED

    def training_data(self, f: int) -> Dataset:
        """Return the rows outside part ``f``; if they are many, or not in memory, all rows with weight 0 inside it.

        Copies are preferred because rows of weight 0 still enter the rounding bounds: one with entries of 1e8 would
        spoil the certificate.
        """
        outside, n_threads = self.training_rows(f), self.recipe.n_threads
        if self.copies_rows():
            vectors = (self.sigma, self.offset, self.weight)
            sigma, offset, weight = (None if v is None else v[outside] for v in vectors)
            return dataset(self.rows[outside], sigma, offset, weight, None, n_threads)
        weight = outside.astype(np.float64) if self.weight is None else self.weight * outside
        return dataset(self.rows, self.sigma, self.offset, weight, None, n_threads)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Held-out scores and errors of all models, written by the engines.

    ``scores`` (n, number of Cs) are x.w + b of every row by the models trained without it; ``errors`` (number of Cs,
    parts) count the misclassified rows of each part. A score of 0 is positive, as in ``predict``.
    """

    scores: FloatArray | None = None
    errors: IntArray | None = None

    @property
    def wanted(self) -> bool:
        """Return whether scores or errors were requested."""
        return self.scores is not None or self.errors is not None

    def record(self, problem: GridProblem, c: int, f: int, rows: Any, z: FloatArray) -> None:
        """Store the scores z of the rows of part f (a mask or row numbers) by the model (c, f)."""
        if self.scores is not None:
            self.scores[rows, c] = z
        if self.errors is not None and problem.sigma is not None:
            self.errors[c, f] = int(((z >= 0.0) != (problem.sigma[rows] > 0.0)).sum())


@dataclass(frozen=True, eq=False)
class Proposal:
    """One model of a grid: C number ``c`` without part ``f``, with the sums of its closing pass over the training rows.

    ``rows_per_sum`` is the length of the longest chain of additions in those sums.
    """

    c: int
    f: int
    solution: Solution
    rows_per_sum: float


@dataclass(frozen=True, eq=False)
class SpanProposal:
    """One model in the span of its training rows: dual variables u, and the intercept b for centred rows.

    ``stretches`` are relative amounts by which a model of a loss with a kink may be scaled up, tried in this order.
    """

    c: int
    f: int
    span: Span
    rows: GramRows
    u: FloatArray
    b: float
    stretches: tuple[float, ...]
    passes: float
    seconds: float


class Span(Protocol):
    """Rows given by their Gram matrix, for models that are linear combinations of the rows."""

    def lift(self, A: FloatArray, b: FloatArray) -> FloatArray:
        """Return coefficients and intercepts (d + 1, models) of the combinations A (n, models)."""

    def scores(self, A: FloatArray, b: FloatArray) -> FloatArray:
        """Return the scores of all rows, (n, models)."""


class GridEngine(Protocol):
    """Interface of a module that fits all models of a grid together."""

    NAME: str

    def applies(self, problem: GridProblem) -> bool:
        """Return whether this engine supports the grid."""

    def solve(self, problem: GridProblem, held: HeldOut) -> Iterable[Proposal | SpanProposal]:
        """Yield a proposal for every model, or for most of them; held-out rows are scored in the same passes."""
