"""Quantities that predict the cost of a fit: sizes, storage, conditioning and correlation of the features."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from linsep import _kernels
from linsep.arrays import IntArray
from linsep.data import Dataset, Location
from linsep.losses import Loss
from linsep.problem import Problem


@dataclass(frozen=True)
class Shape:
    """Sizes of a problem, and measures of its difficulty."""

    n: int
    d: int
    entries: int  #: stored entries of X
    sparse: bool = False
    kept: float = 1.0  #: share of dense entries that coordinate ascent reads: it skips many zeros
    hardness: float = math.nan  #: C mean s |x|^2, times four times the curvature of the loss
    location: Location = Location.MEMORY
    correlation: float = (
        1.0  #: sum of the squared correlations of a feature with all features: 1 if independent
    )

    @property
    def per_row(self) -> float:
        """Stored entries per row."""
        return self.entries / max(1, self.n)

    @property
    def pairs(self) -> float:
        """Multiply-adds of the Gram matrix of the features."""
        return 0.5 * self.entries * self.per_row

    @property
    def storage(self) -> str:
        """Prefix of the names of counts that depend on storage."""
        return "sparse " if self.sparse else ""


def sampled_mean(problem: Problem) -> float:
    """Mean of s |x|^2 over a sample of rows, evenly spread."""
    block = problem.data.whole
    assert block is not None
    return _kernels.sampled_mean(block.rows, block.targets)


def hardness(problem: Problem, mean: float) -> float:
    """Hardness of a problem with this mean of s |x|^2: C times the mean, times four times the loss curvature."""
    return hardness_of(problem.loss, problem.lam, mean)


def hardness_of(loss: Loss, lam: float, mean: float) -> float:
    """Hardness 4 max l'' mean/lam, for the factor lam of |w|^2/2 and the mean of s |x|^2.

    4 max l'' is 1 for the logistic loss. A loss with a kink has the factor of the Huberised hinge of width 1.
    """
    return 4.0 * (loss.curvature_bound if loss.smooth else 1.0) * mean / lam


def shape_of(problem: Problem) -> Shape:
    """Return the shape of a problem. Reads about a thousand rows; one round on a cluster."""
    data = problem.data
    whole, kept, related, hard = data.whole, 1.0, 1.0, math.inf
    if problem.lam > 0.0:
        if whole is None:
            mean, kept, related = _sampled(data)
        else:
            mean = _kernels.sampled_mean(whole.rows, whole.targets)
            kept = 1.0 if data.sparse else _kernels.kept_share(whole.rows)
            rows = _probed_rows(data)
            related = correlation(data.sample(rows).X) if len(rows) else 1.0
        hard = hardness(problem, mean)
    sizes = data.n, data.d, data.n_entries, data.sparse
    return Shape(*sizes, kept, hard, data.location, related)


@np.errstate(all="ignore")
def correlation(X: Any) -> float:
    """Sum of the squared correlations of a feature with all features, itself included; the mean over the features.

    Estimates tr(S^2)/d without bias, S the correlation matrix, from inner products of centred and scaled rows. Rounded
    to two digits, so that it does not depend on the order of summation.
    """
    A = np.array(X, dtype=np.float64)
    A -= A.mean(axis=0)
    spread = np.sqrt(np.mean(A * A, axis=0))
    varies = (spread > 0.0) & (spread < math.inf)
    d, k = int(np.count_nonzero(varies)), len(A)
    if d == 0 or k < 3:
        return 1.0
    A = (A if d == len(varies) else A[:, varies]) / spread[varies]
    G = A @ A.T
    own = np.diag(G)
    size = float(own.mean())
    squares = (float(np.sum(G * G)) - float(np.sum(own * own))) / (k * (k - 1))
    squares -= (size / (k - 1)) ** 2  # correct the bias from centring
    return float(f"{max(1.0, d * squares / size**2):.2g}")


# Sampling as in kernels/dual/dual_start.cpp and compressed.cpp, for rows that are not in memory.
_RUNS, _RUN = 16, 64  # number and length of the runs of consecutive rows that are averaged
_PROBED, _LONG, _MANY, _SPARSE = 64, 64, 100_000, 0.25
# Features and entries of dense data from which correlations are estimated.
_RELATED, _RELATED_ENTRIES = 16, 32_768


def probed_rows(n: int, d: int) -> IntArray:
    """Return the numbers of dense rows that ``correlation`` samples; empty if the data are too small to matter."""
    count = min(n, _PROBED) if d >= _RELATED and n * d >= _RELATED_ENTRIES else 0
    return n // max(1, count) * np.arange(count)


def _probed_rows(data: Dataset) -> IntArray:
    return probed_rows(0 if data.sparse else data.n, data.d)


def _sampled(data: Dataset) -> tuple[float, float, float]:
    """Return the mean of s |x|^2, the share of nonzero entries (1 unless low) and ``correlation``, from samples."""
    n, d = data.n, data.d
    some = n >= _RUNS * _RUN
    norms = (np.arange(_RUNS)[:, None] * (n // _RUNS) + np.arange(_RUN)).ravel()
    norms = norms if some else np.arange(n)
    counted = _probed_rows(data)
    rows = np.union1d(norms, counted)
    part = data.sample(rows)
    block = part.sample(np.searchsorted(rows, norms)).whole
    assert block is not None
    share = related = 1.0
    if len(counted):
        some = part.X[np.searchsorted(rows, counted)]
        related = correlation(some)
        if d >= _LONG and n >= _MANY // d:
            share = np.count_nonzero(some) / (len(counted) * d)
    mean = _kernels.sampled_mean(block.rows, block.targets)
    return mean, share if share <= _SPARSE else 1.0, related
