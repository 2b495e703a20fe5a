"""The hard-margin support vector machine, solved directly instead of as the limit of a large C.

    min 1/2 |w|^2   subject to   sigma_i (x_i.w + b) >= 1   for every row of positive weight

Its dual is max sum alpha - 1/2 |sum alpha_i sigma_i x_i|^2 over alpha >= 0 with sum sigma_i alpha_i = 0. On a working
set both are solved by non-negative least squares, as a least distance problem (Lawson and Hanson 1974,
chapter 23). The unpenalised intercept is found by proximal steps: b = b0 + t with t penalised, and b0 updated until t
vanishes. One pass then finds the optimal b for this w on all rows, the gap, and the rows with the smallest margins,
which join the working set.

With many features, rows are nearly orthogonal and dual ascent is fast. Soft margins are therefore solved first
(``soft_margin.py``): their multipliers are feasible here for any C, and optimal if none of them is at its bound.

Separability is decided first; if the classes are not separable, the error has the witness.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from linsep import _kernels
from linsep.arrays import FloatArray, IntArray
from linsep.data import Block
from linsep.errors import InseparableData, NonFinite, Refused
from linsep.problem import Problem, hard_margin
from linsep.separability import Inseparable, Separable, decide
from linsep.separability.rows import SignedRows
from linsep.separability.search import first_rows
from linsep.separability.wide import span_coordinates
from linsep.solution import Explicit, Solution, Status, Stop
from linsep.solvers.hard_margin import soft_margin
from linsep.solvers.run import SAFETY, LimitReached, Run

_DENSE = 1500  # largest number of features for which working rows are stored densely
_WIDE_ROWS = 300  # rows that join the working set at a time if there are more features
_MAX_ROUNDS = 300
_PROXIMAL_STEPS = 30
_NNLS_STEPS = 1000
_LARGE = 1_000_000  # entries of a working set above which the limits are checked more often


def applies(problem: Problem) -> bool:
    """Return whether the problem is a hard-margin problem."""
    return hard_margin(problem.loss, problem.penalty)


class _Best:
    """The best w so far, and the multipliers of the best lower bound, which the run stores."""

    def __init__(self, run: Run[Problem], found: _Found) -> None:
        self.run, self.found, self.alpha = run, found, np.zeros(run.problem.data.n)

    def take(self, found: _Found, alpha: FloatArray, v: FloatArray) -> bool:
        """Compare with another w, and with alpha, v = sum alpha sigma x; return whether the gap closed."""
        run, total, size = self.run, float(alpha.sum()), float(np.sqrt(v @ v))
        if found.half > 0 and found.primal <= self.found.primal:
            self.found = found
        lower = 0.5 * (total / size) ** 2 if size > 0 else 0.0
        if lower > run.lower:
            run.lower, self.alpha = lower, alpha
        run.record(self.found.primal)
        return self.found.primal - run.lower <= SAFETY * run.stop.tol * self.found.primal


def solve(problem: Problem, theta: FloatArray, stop: Stop, seed: int) -> Solution:
    """Solve by soft margins or working sets; ``theta`` is ignored, the start is a separating hyperplane."""
    run = Run(problem, stop)
    data = problem.data
    answer = decide(data, fit_intercept=problem.fit_intercept, seed=seed)
    problem.passes += answer.passes
    if not isinstance(answer, Separable):
        raise _refusal(answer)
    signed = SignedRows(data, problem.fit_intercept)
    count = 4 * (data.d + 2) if data.d <= _DENSE else _WIDE_ROWS
    best = _Best(run, _Found.at(signed, answer.hyperplane.w, problem, count))
    status = Status.WORKING_PRECISION
    try:
        with run.in_time():
            if _by_soft_margins(best, signed, seed) or _on_working_sets(
                best, signed, count, answer.margin, seed
            ):
                status = Status.CERTIFIED
    except LimitReached as limit:
        status = limit.status
    scale = 2 * run.lower / max(float(best.alpha.sum()), 1e-300)
    return Solution(
        W=best.found.theta[:, None],
        dual=Explicit(best.alpha * scale),
        status=status,
        passes=problem.passes,
        seconds=run.seconds,
        trace=tuple(run.trace),
    )


def _by_soft_margins(best: _Best, signed: SignedRows, seed: int) -> bool:
    """Solve soft margins, if there are so many features that ascent is fast; return whether the gap closed."""
    problem = best.run.problem
    if problem.data.d <= _DENSE or problem.data.whole is None:
        return False
    for alpha, v in soft_margin.points(best.run, seed):
        if best.take(_Found.at(signed, v, problem, 1), alpha, v):
            return True
    return False


def _on_working_sets(best: _Best, signed: SignedRows, count: int, spread: float, seed: int) -> bool:
    """Solve on growing working sets; return whether the gap closed."""
    run = best.run
    found = _Found.at(signed, best.found.theta[:-1], run.problem, count)
    rows = np.union1d(first_rows(signed, 2 * count, seed), found.worst)
    start = best.alpha[rows]
    for _ in range(_MAX_ROUNDS):
        start, w = _on_working_set(run, signed, rows, start, spread)
        found = _Found.at(signed, w, run.problem, count)
        alpha = np.zeros(run.problem.data.n)
        alpha[rows] = start
        if best.take(found, alpha, w):
            return True
        run.check_limits()
        spread = 1.0 / np.sqrt(2 * run.lower) if run.lower > 0 else spread
        new = np.setdiff1d(found.worst, rows)
        if not len(new):
            return False
        if len(rows) > 5 * count:
            rows, start = rows[start > 0], start[start > 0]
        rows, start = np.append(rows, new), np.append(start, np.zeros(len(new)))
    return False


def _refusal(answer: object) -> InseparableData | Refused:
    if isinstance(answer, Inseparable):
        return InseparableData(
            f"C=inf means the hard margin, but the classes are not separable ({answer}). The attribute "
            "witness of this error holds the proof: rows and weights. Use a finite C (soft "
            "margin), or correct these rows.",
            witness=answer,
        )
    return Refused(f"C=inf means the hard margin, which needs separable classes: {answer}.")


@dataclass(frozen=True, eq=False)
class _Found:
    """Result of a pass at w: optimal b, half the gap between the classes along w, rows with the smallest margins."""

    theta: FloatArray  # scaled to a smallest margin of 1, if half > 0
    half: float
    primal: float
    worst: IntArray

    @classmethod
    def at(cls, signed: SignedRows, w: FloatArray, problem: Problem, count: int) -> _Found:
        """Compute the result at w, with ``count`` rows in ``worst``. One pass."""
        problem.passes += 1
        theta = np.append(w, 0.0)
        parts: list[tuple[int, IntArray, FloatArray]] = []

        def add(block: Block, out: FloatArray) -> None:
            m = block.sign[block.lo : block.hi] * block.scores(theta)
            m[block.weights() == 0] = np.inf
            first = block.first + block.lo
            for side in (-1.0, 1.0):
                own = np.flatnonzero(block.sign[block.lo : block.hi] == side)
                few = own
                if len(own) > count:
                    few = own[np.argpartition(m[own], count)[:count]]
                parts.append((first, first + few, m[few]))

        signed.data.sum(add, 1)
        parts.sort(key=lambda part: (part[0], tuple(part[1][:1].tolist())))
        rows = np.concatenate([part[1] for part in parts])
        m = np.concatenate([part[2] for part in parts])
        rows, m = rows[np.isfinite(m)], m[np.isfinite(m)]
        sign = signed.data.sign[rows]
        if not (len(m) and (not signed.fit_intercept or ((sign < 0).any() and (sign > 0).any()))):
            raise NonFinite(
                "The margins of a hard-margin classifier are not finite: the features are too large or too small "
                "for float64. Multiply or divide them by a power of ten so that they are near 1."
            )
        order = np.lexsort((rows, m))
        if signed.fit_intercept:
            low, high = m[sign < 0].min(), m[sign > 0].min()
            half, b = 0.5 * (low + high), 0.5 * (low - high)
            worst = np.concatenate([rows[order][sign[order] == s][: count // 2] for s in (-1, 1)])
        else:
            half, b = m.min(), 0.0
            worst = rows[order][:count]
        theta[-1] = b
        if half > 0:
            theta = theta / half
        return cls(theta, float(half), 0.5 * float(theta[:-1] @ theta[:-1]), np.unique(worst))


def _on_working_set(
    run: Run[Problem], signed: SignedRows, rows: IntArray, start: FloatArray, spread: float
) -> tuple[FloatArray, FloatArray]:
    """Solve on a working set; return alpha and w = sum alpha sigma x. ``spread`` estimates the margin."""
    X, sign = signed.features(rows), signed.data.sign[rows]
    centred = signed.fit_intercept and not sp.issparse(X)
    centre = X.mean(axis=0) if centred else np.zeros(X.shape[1])
    if sp.issparse(X) and X.shape[1] <= _DENSE:
        X = X.toarray()
    X = X - centre if centred else X
    spanned = sp.issparse(X) or X.shape[1] > max(_DENSE, len(X))
    U = span_coordinates(X) if spanned else np.ascontiguousarray(X)
    size = float(np.sqrt(np.einsum("ij,ij->i", U, U).max())) or 1.0
    alpha, w = _least_distance(
        run, U / size, sign, start * size * size, spread / size, signed.fit_intercept
    )
    alpha = alpha / (size * size)
    if signed.fit_intercept:
        plus, minus = float(alpha[sign > 0].sum()), float(alpha[sign < 0].sum())
        if plus > 0 and minus > 0:  # makes sum sigma alpha = 0 up to rounding
            alpha = np.where(sign > 0, alpha * np.sqrt(minus / plus), alpha * np.sqrt(plus / minus))
    if spanned:
        return alpha, np.asarray(X.T @ (alpha * sign)).ravel()
    return alpha, w / size  # more accurate than sum alpha sigma x, whose terms cancel


def _least_distance(
    run: Run[Problem],
    U: FloatArray,
    sign: FloatArray,
    start: FloatArray,
    spread: float,
    affine: bool,
) -> tuple[FloatArray, FloatArray]:
    """Return alpha and w of min 1/2 |w|^2 + 1/2 t^2 with sigma (u.w + b0 + t) >= 1, b0 updated until t = 0.

    Least distance problem: with rows (g_i, s h_i) and the x >= 0 whose combination is nearest to (0, 1), the residual r
    gives w = -r_g / (s r_h) and alpha = x / (s r_h); s, about the margin, balances the two parts of r.
    """
    m, q = U.shape
    E = np.empty((m, q + 1 + int(affine)))
    E[:, :q] = sign[:, None] * U
    if affine:
        E[:, q] = sign
    f, r = np.zeros(E.shape[1]), np.zeros(E.shape[1])
    f[-1] = 1.0
    x, b0, alpha, w = start, 0.0, start, np.zeros(q)
    for _ in range(_PROXIMAL_STEPS if affine else 1):
        E[:, -1] = spread * (1.0 - sign * b0)
        x = np.array(x)
        for _ in range(2 + 20 * (m + q) // _NNLS_STEPS):
            status, _ = _kernels.nnls(E, f, 1e-15, _NNLS_STEPS, x, r)
            if status != 2:
                break
            run.check_limits()
        if not r[-1] > 0.0:
            break
        unit = spread * r[-1]
        alpha, w = x / unit, -r[:q] / unit
        shift = float(-r[q] / unit) if affine else 0.0
        b0 += shift
        if abs(shift) <= 1e-13 * (1.0 + abs(b0)):
            break
        if m * q > _LARGE:
            run.check_limits()
    return alpha, w
