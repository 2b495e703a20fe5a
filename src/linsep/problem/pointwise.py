"""The objective of a pointwise loss, with one column of weights.

::

    P(theta) = lam/2 |w|^2 + sum_i s_i l(m_i),   m_i = sigma_i (x_i.w + b) + offset_i,   theta = (w, b)

Each method is one pass over the rows unless it says otherwise: small vectors are sent to the blocks and only sums are
returned. Losses with a kernel use compiled sweeps; a loss written in Python combines the compiled row kernels with its
numpy formulas.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray
from linsep.data import Block, Dataset, Location
from linsep.data.dataset import Sum
from linsep.data.row_access import extremes
from linsep.errors import NonFinite
from linsep.losses import CoupledLoss, Loss
from linsep.penalties import ElasticNet
from linsep.problem import duality
from linsep.problem.duality import dot
from linsep.problem.gram import constant_columns, symmetric
from linsep.problem.numpy_passes import NumpyPasses
from linsep.solution import Explicit, Linearised

CURVATURE = "curvature"
DUAL = "dual"
WEIGHTS = "weights"  # row weights of a Gram matrix that is not the Hessian of the last sweep
_SAMPLE = 256  # rows whose median centres the Hessian
#: Up to this many features, sweeps also compute the Hessian: reading the rows is a large part of its cost.
MAX_FUSED_FEATURES = 64


def hard_margin(loss: Loss | CoupledLoss, penalty: ElasticNet) -> bool:
    """Return whether C = inf means the hard margin: the w of smallest norm among those with zero loss."""
    return math.isinf(penalty.C) and not isinstance(loss, CoupledLoss) and loss.soft_margin


def not_finite_error() -> NonFinite:
    """Error to raise if the objective is not finite even at w = 0."""
    return NonFinite(
        "The objective is not finite at w = 0: X, y or sample_weight contain NaN, infinity "
        "or numbers too large to square. Find and repair those rows."
    )


class _Native:
    """Compiled passes of a loss that has a kernel."""

    def __init__(self, loss: Loss) -> None:
        assert loss.native is not None
        self.loss = _kernels.Loss(loss.native, *loss.params)
        self._loss = loss

    def __reduce__(self) -> tuple[type[_Native], tuple[Loss]]:
        return _Native, (self._loss,)  # compiled objects cannot be pickled

    def _losses(
        self, block: Block
    ) -> tuple[_kernels.Rows, _kernels.Targets, _kernels.Loss, int, int]:
        """Arguments of a kernel that describe the losses of a block."""
        return block.rows, block.targets, self.loss, block.lo, block.hi

    def sweep(self, block: Block, theta: FloatArray, out: FloatArray, blend: float) -> None:
        kept = block.row_state(CURVATURE)
        _kernels.sweep(*self._losses(block), theta, out, kept, True, blend)

    def ray(
        self,
        block: Block,
        theta: FloatArray,
        delta: FloatArray,
        steps: FloatArray,
        out: FloatArray,
    ) -> None:
        _kernels.ray(*self._losses(block), theta, delta, steps, out)

    def closing(
        self,
        block: Block,
        base: FloatArray,
        step: FloatArray,
        theta: FloatArray,
        explicit: bool,
        out: FloatArray,
    ) -> None:
        part = block.row_state(DUAL) if explicit else None
        _kernels.closing(*self._losses(block), base, step, theta, part, out)

    def dual_variables(
        self, block: Block, base: FloatArray, step: FloatArray, theta: FloatArray
    ) -> FloatArray:
        """Dual variables that ``closing`` uses for the rows of the block."""
        found, sums = np.zeros(block.rows.n), np.zeros(8 + 2 * block.rows.d)
        _kernels.closing(*self._losses(block), base, step, theta, None, sums, found)
        return found[block.lo : block.hi]


def _gram(
    mu: FloatArray, single: bool, weights: str = CURVATURE
) -> Callable[[Block, FloatArray], None]:
    """Return a function that sums h (x - mu, 1)(x - mu, 1)', with h the curvatures of the last sweep or ``weights``."""

    def add(block: Block, out: FloatArray) -> None:
        _kernels.gram(block.rows, block.lo, block.hi, block.row_state(weights), mu, out, single)

    return add


class TrialPoint(NamedTuple):
    """Value, gradient and closing sums of a trial point, from one pass."""

    at: FloatArray
    sums: FloatArray  #: closing sums
    value: float
    g: FloatArray
    along: tuple[FloatArray, FloatArray]  #: P and its derivative between base and ``at``


class Problem:
    """Objective of a pointwise loss. Counts its passes and stores the curvatures of its last sweep."""

    def __init__(
        self, loss: Loss, penalty: ElasticNet, data: Dataset, fit_intercept: bool = True
    ) -> None:
        self.loss, self.penalty, self.data = loss, penalty, data
        self.fit_intercept = fit_intercept
        self.lam = penalty.l2
        self.passes = 0.0
        self.native = loss.native is not None
        self._expected: tuple[FloatArray, bool] | None = None
        self._ready: FloatArray | None = None  # sums of the Hessian at the last sweep
        self._run: _Native | NumpyPasses = _Native(loss) if self.native else NumpyPasses(loss)

    @property
    def native_loss(self) -> _kernels.Loss:
        """Compiled loss; the loss must have a kernel."""
        assert isinstance(self._run, _Native)
        return self._run.loss

    @property
    def order(self) -> int:
        """d + 1: number of weights and intercept."""
        return self.data.d + 1

    def penalty_value(self, theta: FloatArray) -> float:
        """lam/2 |w|^2 (no pass)."""
        w = theta[:-1]
        return 0.5 * self.lam * dot(w, w) if self.lam else 0.0

    def values(self, theta: FloatArray, sums: FloatArray) -> tuple[float, float]:
        """P and D from the sums of a closing pass at theta, without a rounding bound (no pass)."""
        return duality.values(sums, theta, self.penalty, self.fit_intercept)

    def value_gradient(self, theta: FloatArray, blend: float = 0.0) -> tuple[float, FloatArray]:
        """P and its gradient; stores the curvatures s l'' of all rows for the Hessian. One pass.

        With ``blend`` = 1 the stored curvatures are at least the secant curvatures (kernels/sums/sweep.hpp).
        """
        self.passes += 1
        wanted = self._sweep(theta, blend)
        found = self.data.sums(wanted, writes=(CURVATURE,), rarely_read=len(wanted) > 1)
        return self._read_sweep(theta, found)

    def _sweep(self, theta: FloatArray, blend: float) -> list[tuple[Sum, int]]:
        """Sums to request in a sweep, including those of the Hessian if it is expected."""
        run, order = self._run, self.order
        at = theta.copy()  # a deferred pass must not see later changes to theta
        wanted: list[tuple[Sum, int]] = [(lambda b, o: run.sweep(b, at, o, blend), order + 1)]
        if self._expected is not None:
            wanted.append((_gram(*self._expected), order * order))
        return wanted

    def _read_sweep(self, theta: FloatArray, found: list[FloatArray]) -> tuple[float, FloatArray]:
        """P and its gradient from the sums of a sweep (no pass)."""
        out, *others = found
        self._ready = others[0] if others else None
        value, g = float(out[0]) + self.penalty_value(theta), out[1:]
        g[:-1] += self.lam * theta[:-1]
        if not self.fit_intercept:
            g[-1] = 0.0
        return value, g

    def expect_hessian(self, mu: FloatArray, single: bool) -> None:
        """Compute the Hessian in every later sweep, because it is needed next.

        Done where rows must be fetched, or where reading them takes a large part of the time.
        """
        if self.data.location is not Location.MEMORY or self.data.d <= MAX_FUSED_FEATURES:
            self._expected = mu, single

    def _is_expected(self, mu: FloatArray, single: bool) -> bool:
        found = self._expected
        return found is not None and found[0] is mu and found[1] == single

    def start(self, theta: FloatArray) -> tuple[FloatArray, float, FloatArray]:
        """Evaluate P and its gradient at theta, or at 0 if P is smaller there; return the chosen point with both.

        Raises ``NonFinite`` if P is not finite even at 0, which means that the data are not finite.
        """
        value, g = self.value_gradient(theta)
        finite = np.isfinite(value) and np.isfinite(g).all()
        if finite and (not theta.any() or value <= self.null_value()):
            return theta, value, g
        theta = np.zeros_like(theta)
        value, g = self.value_gradient(theta)
        if not (np.isfinite(value) and np.isfinite(g).all()):
            raise not_finite_error()
        return theta, value, g

    def hessian(self, mu: FloatArray, single: bool = False) -> FloatArray:
        """Hessian in coordinates (w, c) with c = b + mu.w, from the curvatures of the last sweep. One pass.

        With ``single``, single precision: accurate to 1e-7 of the diagonal, and it may overflow to infinity.
        """
        self.passes += 1
        order = self.order
        if self._ready is not None and self._is_expected(mu, single):
            H, self._ready = self._ready.reshape(order, order), None
        else:
            H = self.data.sum(_gram(mu, single), order * order, reads=(CURVATURE,))
            H = H.reshape(order, order)
        if not single and not np.isfinite(H).all():
            raise NonFinite(
                "The Hessian is not finite: some features are too large to square in float64. Divide those "
                "columns by a power of ten."
            )
        return self.hessian_of(H, mu)

    def gram(self, weights: FloatArray, mu: FloatArray, single: bool = False) -> FloatArray:
        """Sum of h (x - mu, 1)(x - mu, 1)' over rows with weight h > 0; one triangle, see ``symmetric``. One pass."""
        self.passes += 1
        self.data.set_row_state(WEIGHTS, weights)
        out = self.data.sum(_gram(mu, single, WEIGHTS), self.order * self.order, reads=(WEIGHTS,))
        return out.reshape(self.order, self.order)

    def hessian_of(self, sums: FloatArray, mu: FloatArray) -> FloatArray:
        """Hessian from the sums of a Gram pass, with the penalty (no pass)."""
        order = self.order
        H = symmetric(sums, self.data.sparse)
        noise = constant_columns(H, mu)
        H[noise], H[:, noise] = 0.0, 0.0
        H[np.arange(order - 1), np.arange(order - 1)] += self.lam
        if not self.fit_intercept:
            H[-1], H[:, -1] = 0.0, 0.0
        return H

    def hess_vec(self, v: FloatArray) -> FloatArray:
        """Hessian times v = (w, b), in the uncentred coordinates. One pass."""
        self.passes += 1

        def add(block: Block, out: FloatArray) -> None:
            _kernels.hess_vec(block.rows, block.lo, block.hi, block.row_state(CURVATURE), v, out)

        out = self.data.sum(add, self.order, reads=(CURVATURE,))
        out[:-1] += self.lam * v[:-1]
        if not self.fit_intercept:
            out[-1] = 0.0
        return out

    def curvature_sum(self) -> float:
        """Sum of the stored curvatures (no pass over X)."""

        def add(block: Block, out: FloatArray) -> None:
            out[0] += block.row_state(CURVATURE)[block.lo : block.hi].sum()

        return float(self.data.sum(add, 1, reads=(CURVATURE,), features=False)[0])

    def moments(self, weighted: bool = True) -> tuple[FloatArray, FloatArray, float]:
        """Sums of h x^2, h x and h, where h are the stored curvatures (or 1). One pass."""
        self.passes += 1
        d = self.data.d

        def add(block: Block, out: FloatArray) -> None:
            h = block.row_state(CURVATURE) if weighted else None
            _kernels.moments(block.rows, block.lo, block.hi, h, out)

        out = self.data.sum(add, 2 * d + 1, reads=(CURVATURE,) if weighted else ())
        return out[:d], out[d : 2 * d], float(out[2 * d])

    def along(
        self, theta: FloatArray, delta: FloatArray, steps: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """P and its derivative with respect to the step, at several points theta + step * delta. One pass."""
        self.passes += 1
        run = self._run
        out = self.data.sum(
            lambda b, o: run.ray(b, theta, delta, steps, o), 2 * len(steps), reads=()
        )
        return self._add_penalty(theta, delta, steps, out.reshape(-1, 2))

    def _add_penalty(
        self, theta: FloatArray, delta: FloatArray, steps: FloatArray, out: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Add the penalty to losses and their derivatives along a ray (no pass)."""
        w, dw = theta[:-1], delta[:-1]
        ww, wd, dd = dot(w, w), dot(w, dw), dot(dw, dw)
        values = out[:, 0] + 0.5 * self.lam * (ww + 2 * steps * wd + steps**2 * dd)
        return values, out[:, 1] + self.lam * (wd + steps * dd)

    def closing_with_trial(
        self,
        theta: FloatArray,
        dual: Linearised,
        steps: FloatArray,
        visit_block: Callable[[Block], Any],
        rows_to_fetch: Callable[[list[Any]], Any],
    ) -> tuple[TrialPoint, list[Any]]:
        """Evaluate ``closing``, ``value_gradient``, and ``along`` from the base of the dual point to theta in one pass.

        Also calls ``visit_block`` on each block; ``rows_to_fetch`` turns the results into the indices of the rows to
        fetch in this pass.
        """
        self.passes += 3
        base, step = self._unfold(theta, dual)
        at, delta, run = theta.copy(), theta - base, self._run

        def rays(block: Block, out: FloatArray) -> Any:
            run.ray(block, base, delta, steps, out)
            return visit_block(block)

        close: Sum = lambda b, o: run.closing(b, base, step, at, False, o)  # noqa: E731
        wanted = [(close, 8 + 2 * self.data.d), *self._sweep(theta, 0.0), (rays, 2 * len(steps))]
        (sums, *others, seen), found = self.data.visits(
            wanted,
            writes=(CURVATURE,),
            rarely_read=self._expected is not None,
            prefetch_rows=rows_to_fetch,
            merge=lambda parts: (rows_to_fetch(parts),),
        )
        value, g = self._read_sweep(theta, others)
        along = self._add_penalty(base, delta, steps, seen.reshape(-1, 2))
        return TrialPoint(at, sums, value, g, along), found

    def closing(self, theta: FloatArray, dual: Linearised | Explicit) -> FloatArray:
        """Compute the sums of a certificate, in the layout of kernels/sums/closing.hpp. One pass."""
        self.passes += 1
        base, step = self._unfold(theta, dual)
        explicit, run = self._place_dual(dual), self._run
        return self.data.sum(
            lambda b, o: run.closing(b, base, step, theta, explicit, o),
            8 + 2 * self.data.d,
            reads=(DUAL,) if explicit else (),
        )

    def unfold(self, theta: FloatArray, dual: Linearised) -> FloatArray:
        """Dual variables of a linearised dual point for all rows, as the closing pass computes them. One pass."""
        self.passes += 1
        base, step = self._unfold(theta, dual)
        run, u = self._run, np.empty(self.data.n)

        def fill(block: Block, out: FloatArray) -> None:
            block.own(u)[block.lo : block.hi] = run.dual_variables(block, base, step, theta)

        self.data.sum(fill, 1)
        return u

    def closing_at_stored_dual(self, theta: FloatArray) -> Callable[[Block, FloatArray], None]:
        """Return a function that adds the closing sums of a block at the dual variables in its row state DUAL."""
        run = self._run
        return lambda b, o: run.closing(b, theta, theta, theta, True, o)

    @staticmethod
    def _unfold(theta: FloatArray, dual: Linearised | Explicit) -> tuple[FloatArray, FloatArray]:
        """Base and step of a linearised dual point; theta as an unused placeholder for an explicit one."""
        if isinstance(dual, Explicit):
            return theta, theta
        return np.ascontiguousarray(dual.base[:, 0]), np.ascontiguousarray(dual.step[:, 0])

    def _place_dual(self, dual: Linearised | Explicit) -> bool:
        """Store an explicit dual point in the row state; return whether the dual point is explicit."""
        if not isinstance(dual, Explicit):
            return False
        self.data.set_row_state(DUAL, np.ascontiguousarray(dual.u, dtype=np.float64))
        return True

    def largest_entry(self, sums: FloatArray) -> float:
        """Bound on sum s |u_i x_ij| for every j, from the sums of a closing pass.

        If X has no negative entry, this is max (v+ - v-), inflated by 1e-6 to cover rounding; otherwise |X|_max times
        the total mass.
        """
        d = self.data.d
        least, most = extremes(self.data.X)
        if least >= 0.0:
            v = sums[8 : 8 + d] - sums[8 + d : 8 + 2 * d]
            return (1.0 + 1e-6) * float(v.max(initial=0.0))
        return max(-least, most) * float(sums[3] + sums[4])

    def null_value(self) -> float:
        """P at w = 0, b = 0 (targets only, no pass over X)."""
        loss = self.loss
        if not self.data.targets.has_offset:
            return float(loss.value(np.zeros(1))[0]) * self.data.total_weight()

        def add(block: Block, out: FloatArray) -> None:
            m = block.margins(np.zeros(block.hi - block.lo))
            out[0] += block.weights() @ loss.value(m)

        return float(self.data.sum(add, 1, features=False)[0])

    def centre(self) -> FloatArray:
        """Column medians of a sample of rows, robust to outliers; 0 if sparse or without intercept.

        Any point among the rows will do: the Hessian of rows centred there loses no digits to their mean.
        """
        data = self.data
        if data.sparse or not self.fit_intercept:
            return np.zeros(data.d)
        rows = np.unique(np.linspace(0, data.n - 1, min(data.n, _SAMPLE)).astype(np.int64))
        some = data.sample(rows)
        X = np.asarray(some.X, dtype=np.float64)
        if some.weight is not None and (some.weight > 0).any():
            X = X[some.weight > 0]
        return np.ascontiguousarray(np.median(X, axis=0))
