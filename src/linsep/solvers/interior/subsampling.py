"""Subsamples for the losses with one kink: a pilot, and samples of a band that is too large (``sifting.py``).

The effect of an error of theta on the score of a row grows with the distance of the row from the centre,
q^2 = 1 + sum_j scale_j (x_j - mu_j)^2, with the medians mu of the columns and their median absolute deviations, which
are robust to outliers. With heavy tails a few rows determine the solution: they belong to every sample, with weight 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray, IntArray, mix_bits, stack_rows
from linsep.data import Block, Dataset, Memory
from linsep.interrupts import lapack
from linsep.problem import Problem
from linsep.solvers import sampling
from linsep.solvers.interior.central_path import Path, native_loss
from linsep.solvers.interior.start import squared_start
from linsep.solvers.run import Run

TOL = 1e-3  # relative gap of the pilot; each further digit costs an iteration or two
_SAMPLE = 2000  # rows from which medians are computed
_NORMAL = 1.4826  # standard deviation of a normal variable / its median absolute deviation
# Tails are heavy if the first share of the rows has more than the second share of sum q^2.
_TOP, _HEAVY = 0.01, 0.15
_MOVED = 0.99  # quantile of the changes of the margins
# IntArray from which the density at the kink is estimated: share of all, and at least per feature.
_LOCAL, _LOCAL_ROWS = 0.1, 3
_DEVIATIONS = 2.3  # half the width of a band, in standard deviations of the error of theta
_SALT = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Thinning:
    """Sampling of a band: rows at random from each class, and the rows that belong to every sample."""

    rates: tuple[float, float]  # sampling rates of the classes with sign -1 and +1
    always: IntArray
    seed: int

    def of(self, rows: IntArray, sign: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the positions in ``rows`` of the sampled rows, and how many rows each represents."""
        rate = np.where(sign > 0.0, self.rates[1], self.rates[0])
        if len(self.always):
            at = np.minimum(np.searchsorted(self.always, rows), len(self.always) - 1)
            rate[self.always[at] == rows] = 1.0
        taken = np.flatnonzero(_uniform(rows, self.seed) < rate)
        return taken, 1.0 / rate[taken]


def _uniform(rows: IntArray, seed: int) -> FloatArray:
    """Pseudorandom numbers in [0, 1) that depend only on the row number and the seed (splitmix64)."""
    z = mix_bits((rows.astype(np.uint64) + np.uint64(seed + 1)) * _SALT)
    return np.asarray(z >> np.uint64(11), np.float64) * 2.0**-53


class Pilot:
    """A sample of about m rows, solved to three digits, from which distances to the kink are estimated."""

    def __init__(self, run: Run[Problem], theta: FloatArray, m: int, seed: int) -> None:
        self.run, self.size, self.seed = run, m, seed
        problem, data = run.problem, run.problem.data
        rows, share = sampling.draw(data, m, seed)
        sample = data.sample(rows, share)
        problem.passes += len(rows) / data.n
        self.mu, self.scale = _robust(sample, problem.fit_intercept)
        q = self._distance(sample)
        self.always = self._heavy(q)
        if len(self.always):
            light = np.flatnonzero(~np.isin(rows, self.always))
            more = (data.n - len(self.always)) / max(1.0, float(share[light].sum()))
            order = np.argsort(np.append(rows[light], self.always))
            share = np.append(more * share[light], np.ones(len(self.always)))[order]
            heavy = data.sample(self.always, np.ones(len(self.always)))
            sample = merge_rows(sample.sample(light, np.full(len(light), more)), heavy, order)
            q = self._distance(sample)
        self._sample, self._share, self._q = sample, share, q
        counts = np.maximum(data.counts(), 1.0)
        drawn = np.array([np.sum(sample.sign < 0.0), np.sum(sample.sign > 0.0)])
        self._rates = np.maximum(drawn / counts, 1e-300)
        self.warm = bool(theta.any())
        self.theta = self._solve(theta)

    def _distance(self, sample: Dataset) -> FloatArray:
        X = np.asarray(sample.X, np.float64) - self.mu
        q: FloatArray = np.sqrt(1.0 + X**2 @ self.scale)
        return q

    def _heavy(self, q: FloatArray) -> IntArray:
        """Return the rows with the largest q, about half as many as the pilot has, if tails are heavy. One pass."""
        falling = np.sort(q)[::-1]
        top = falling[: max(1, int(_TOP * len(q)))]
        if not float(top @ top) > _HEAVY * float(q @ q):
            return np.zeros(0, np.int64)
        problem = self.run.problem
        problem.passes += 1
        least = float(np.quantile(q, 1.0 - 0.5 * self.size / problem.data.n))
        mu, scale = self.mu, self.scale
        nowhere = np.zeros(problem.order)

        def add(b: Block, out: FloatArray) -> tuple[IntArray]:
            n = b.rows.n
            u, some = np.zeros(n), np.zeros(2 * len(nowhere) + 3)
            targets = _kernels.Targets(np.ones(n), None, None)  # v = -1 everywhere
            where = b.rows, targets, _kernels.Loss("hinge"), b.lo, b.hi
            _kernels.sort_rows(*where, nowhere, 1.0 / least, mu, scale, np.zeros(n), u, some)
            return (b.first + b.lo + np.flatnonzero(u[b.lo : b.hi] > 1.0),)

        _, found = problem.data.visit(add, 1, reads=(), prefetch_rows=_concatenate)
        return _concatenate(found)

    def _solve(self, theta: FloatArray) -> FloatArray | None:
        """Solve the pilot; None if that fails. A warm start is returned unchanged."""
        if self.warm:
            return theta
        problem = self.run.problem
        sub = Problem(problem.loss, problem.penalty, self._sample, problem.fit_intercept)
        path = Path(self.run, sub)
        for start in (squared_start(sub, theta), theta):
            path.place(start)
            if path.descend(TOL):
                return path.theta
        return None

    def kink_distances(self, theta: FloatArray) -> FloatArray:
        """Distances |v|/q of the pilot's rows from the kink at theta."""
        return np.abs(self._margins(theta)) / self._q

    def _margins(self, theta: FloatArray) -> FloatArray:
        sample, problem = self._sample, self.run.problem
        out = np.zeros(sample.n)
        kernel = native_loss(problem.loss)

        def add(b: Block, sums: FloatArray) -> None:
            _kernels.kink_margins(b.rows, b.targets, kernel, b.lo, b.hi, theta, b.own(out), sums)

        sample.sum(add, 1)
        return out

    def margin_change(self, theta: FloatArray, other: FloatArray, tau: float) -> float:
        """Quantile _MOVED of the changes of the margins in the band from theta to other [units of q]."""
        v, w = self._margins(theta), self._margins(other)
        near = np.minimum(np.abs(v), np.abs(w)) <= tau * self._q
        change = np.abs(w - v)[near] / self._q[near]
        return float(np.quantile(change, _MOVED)) if len(change) else 0.0

    def tau(self, far: FloatArray, rows: float) -> float:
        """Return the tau for which the band |v| <= tau q has about ``rows`` rows."""
        order = np.argsort(far)
        reach = int(np.searchsorted(np.cumsum(self._share[order]), rows))
        return max(float(far[order[min(reach, len(order) - 1)]]), 1e-300)

    def width(self, theta: FloatArray) -> float:
        """Return a tau that covers the changes of most margins due to the sampling error of theta.

        To first order this error has the covariance H^-1 S H^-1: S is the covariance of the gradient, H its derivative,
        which is the density of the rows at the kink (Huber, The behavior of maximum likelihood estimates under
        nonstandard conditions, 1967).
        """
        problem, v, weight = self.run.problem, self._margins(theta), self._sample.weight
        n, d = self._sample.X.shape
        assert weight is not None  # includes the number of rows that each represents
        far = np.abs(v)
        count = min(n - 1, max(_LOCAL_ROWS * d, int(_LOCAL * n)))
        h = float(np.partition(far, count)[count])
        if not h > 0.0:
            return 0.0
        near = np.flatnonzero(far <= h)
        near = near[:: max(1, len(near) // max(_SAMPLE, 10 * d))]
        some = np.arange(0, n, max(1, n // max(_SAMPLE, 10 * d)))
        Z = self._whiten(near)
        H = (Z.T * (weight[near] * ((count + 1) / (2.0 * h * len(near))))) @ Z
        H[np.diag_indices(d)] += problem.lam * self.scale
        H[np.diag_indices(d + 1)] += 1e-10 * np.trace(H)
        low, high = problem.loss.domain
        u = weight[some] * np.where(v[some] < 0.0, high, low)
        spread = u * np.sqrt(np.maximum(0.0, 1.0 - 1.0 / self._share[some]) * n / len(u))
        Z = self._whiten(some)
        try:
            error = lapack(np.linalg.solve, H, (Z * spread[:, None]).T)
        except np.linalg.LinAlgError:
            return 0.0
        squares = np.einsum("ij,ij->i", Z @ (error @ error.T), Z)
        found = _DEVIATIONS * float(np.quantile(np.sqrt(np.abs(squares)) / self._q[some], 0.9))
        return found if np.isfinite(found) else 0.0

    def _whiten(self, rows: IntArray) -> FloatArray:
        X = np.asarray(self._sample.X[rows], np.float64)
        return np.hstack([(X - self.mu) * np.sqrt(self.scale), np.ones((len(X), 1))])

    def expected_rows(self, far: FloatArray, tau: float) -> float:
        """Estimated number of rows in the band |v| <= tau q."""
        return float(np.sum(self._share[far <= tau]))

    def thinning(self, far: FloatArray, tau: float, m: float) -> Thinning:
        """Return a sampling of the band with about m rows, in the class proportions of the pilot."""
        inside = max(1, int(np.sum(far <= tau)))
        minus, plus = (min(1.0, float(rate) * m / inside) for rate in self._rates)
        return Thinning((minus, plus), self.always, self.seed)


def _robust(sample: Dataset, centred: bool) -> tuple[FloatArray, FloatArray]:
    """Medians and inverse squared scales of the columns, by the median absolute deviation; if 0, by the deviation."""
    X = np.asarray(sample.X, np.float64)
    some = X[:: max(1, len(X) // _SAMPLE)]
    mu = np.median(some, axis=0) if centred else np.zeros(X.shape[1])
    size = _NORMAL * np.median(np.abs(some - mu), axis=0)
    flat = np.flatnonzero(size == 0.0)
    size[flat] = np.sqrt(np.mean((X[:, flat] - mu[flat]) ** 2, axis=0))
    return np.ascontiguousarray(mu), np.where(
        size > 0.0, 1.0 / np.where(size > 0.0, size, 1.0), 0.0
    ) ** 2


def _concatenate(found: list[tuple[IntArray]]) -> IntArray:
    return np.concatenate([rows for (rows,) in found])


def merge_rows(a: Memory, b: Memory, order: IntArray) -> Memory:
    """Concatenate the rows of a and b, and permute them by ``order``."""
    columns = [(x.X, x.sign, x.offset, x.weight) for x in (a, b)]
    both = map(stack_rows, zip(*columns, strict=True))
    X, sign, offset, weight = (None if p is None else p[order] for p in both)
    return Memory(X, sign, offset, weight, n_threads=a.n_threads)
