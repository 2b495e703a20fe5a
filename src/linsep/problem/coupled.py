"""The objective of the multinomial loss: k columns of weights, coupled by the softmax.

::

    P(W) = lam/2 |W_w|^2 + sum_i s_i (logsumexp(z_i) - z_{i,y_i}),   z_i = W'(x_i, 1),   W = (W_w; b')

W is (d+1, k) with the intercepts in its last row. Adding one number to all intercepts (and, without a penalty, one
vector to all columns) does not change P; solvers fix this null space by keeping the sum over classes at zero. Each
method is one pass over the rows unless it says otherwise. A sweep stores the probabilities, one plane of n numbers per
class, for the Hessian at that point. For dense rows with many features and classes they need not be stored: Hessian
products then recompute them, and memory holds no n x k array.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray
from linsep.data import Block, Dataset, Location
from linsep.losses import CoupledLoss
from linsep.penalties import ElasticNet
from linsep.problem import duality
from linsep.problem.gram import symmetric
from linsep.problem.pointwise import not_finite_error
from linsep.solution import Explicit, Linearised

PROBABILITIES = "probabilities"  # row state written by a sweep, one plane per class
_HEADER = 3  # loss and two row counts, before the gradient
_CLOSING = 7  # scalars of the closing pass
_SAMPLE = 4096  # rows whose mean centres the Hessian: any value near the mean will do
_SAME = 1e-12  # relative difference between a mean and a value that rounding alone can explain


class Classes:
    """Cache of the compiled labels and weights of each block, checked once per process."""

    def __init__(self, k: int) -> None:
        self.k = k
        self._known: dict[tuple[int, int], _kernels.Classes] = {}

    def __call__(self, block: Block) -> _kernels.Classes:
        """Return the compiled labels and weights of a block, created on first use."""
        key = (block.first, block.rows.n)
        found = self._known.get(key)
        if found is None:
            assert block.labels is not None
            found = _kernels.Classes(block.labels, block.weight, self.k)
            self._known[key] = found
        return found

    def probabilities(self, block: Block) -> FloatArray:
        """Stored probabilities of the block, (k, rows)."""
        return block.row_state(PROBABILITIES, self.k)

    def __reduce__(self) -> tuple[type[Classes], tuple[int]]:
        return Classes, (self.k,)


class CoupledProblem:
    """Objective of a loss that couples k classes. Counts its passes and stores the probabilities of its last sweep.

    ``misfits`` and ``crossed`` describe the last sweep: the number of rows of positive weight whose margin
    z_y - max_{c != y} z_c is not positive, and the number where it is negative.
    """

    def __init__(
        self, loss: CoupledLoss, penalty: ElasticNet, data: Dataset, fit_intercept: bool = True
    ) -> None:
        self.loss, self.penalty, self.data = loss, penalty, data
        self.fit_intercept = fit_intercept
        self.lam = penalty.l2
        self.k = loss.k
        self.passes = 0.0
        self.misfits = self.crossed = data.n
        self._width = -(-self.k // 8) * 8  # columns, padded to whole vectors for the kernels
        self._classes = Classes(self.k)
        self.packed = _kernels.softmax_is_packed(data.example_row(), self.k)
        self.keeps_probabilities = True
        self.sums_cross = False  # whether sweeps also compute sum s p p'
        self._at = np.zeros((self.order, self._width))  # W of the last sweep, padded
        self._cross: FloatArray | None = None  # sum s p p' of the last sweep
        self._expected: FloatArray | None = None
        self._ready: FloatArray | None = None  # sums of the Hessian at the last sweep

    @property
    def order(self) -> int:
        """d + 1: number of weights and intercept of one class."""
        return self.data.d + 1

    def penalty_value(self, W: FloatArray) -> float:
        """lam/2 |W_w|^2 (no pass)."""
        return 0.5 * self.lam * float(np.vdot(W[:-1], W[:-1])) if self.lam else 0.0

    def values(self, W: FloatArray, sums: FloatArray) -> tuple[float, float]:
        """P and D from the sums of a closing pass at W, without a rounding bound (no pass)."""
        return duality.coupled_values(sums, W, self.loss, self.penalty, self.fit_intercept)

    def keep(self, P: FloatArray) -> None:
        """Store P (k, n) as the probabilities of the last sweep."""
        # copy: a view of a single row may have arbitrary strides
        self.data.set_row_state(PROBABILITIES, np.array(P, order="C"))

    def _pad(self, W: FloatArray) -> FloatArray:
        if self._width == self.k:
            return np.ascontiguousarray(W)
        out = np.zeros((len(W), self._width))
        out[:, : self.k] = W
        return out

    def _matrix(self, flat: FloatArray) -> FloatArray:
        """Return the padded sums of a kernel as (d+1, k); the last row is 0 if there are no intercepts."""
        out = np.ascontiguousarray(flat.reshape(self.order, self._width)[:, : self.k])
        if not self.fit_intercept:
            out[-1] = 0.0
        return out

    def value_gradient(self, W: FloatArray, single: bool = False) -> tuple[float, FloatArray]:
        """P and its gradient (d+1, k); stores the probabilities for the Hessian. ``single`` is as in ``hess_vec``."""
        self.passes += 1
        V = self._pad(W)
        V = V.copy() if V is W else V  # as in Problem: a deferred pass must see the current values
        of, keeps, end = self._classes, self.keeps_probabilities, _HEADER + V.size
        size = end + (self._width**2 if self.sums_cross else 0)

        def add(block: Block, out: FloatArray) -> None:
            p = of.probabilities(block) if keeps else None
            cross = out[end:] if len(out) > end else None
            _kernels.softmax_sweep(
                block.rows, of(block), block.lo, block.hi, V, out, p, cross, single
            )

        wanted: list[tuple[Callable[[Block, FloatArray], None], int]] = [(add, size)]
        if self._expected is not None:
            wanted.append((self._gram(self._expected), self._gram_size))
        out, *others = self.data.sums(
            wanted,
            writes=(PROBABILITIES,) if keeps else (),
            rarely_read=self._expected is not None,
        )
        self._at, self._cross = V, out[end:] if self.sums_cross else None
        self._ready = others[0] if others else None
        self.misfits, self.crossed = int(out[1]), int(out[2])
        g = self._matrix(out[_HEADER:end])
        g[:-1] += self.lam * W[:-1]
        return float(out[0]) + self.penalty_value(W), g

    def start(self, W: FloatArray, single: bool = False) -> tuple[float, FloatArray]:
        """P and its gradient at the starting point; raise ``NonFinite`` if P is not finite even at W = 0."""
        value, g = self.value_gradient(W, single)
        if not (np.isfinite(value) and np.isfinite(g).all()):
            zero, g0 = self.value_gradient(np.zeros_like(W))
            if not (np.isfinite(zero) and np.isfinite(g0).all()):
                raise not_finite_error()
        return value, g

    def hess_vec(self, V: FloatArray, single: bool = False) -> FloatArray:
        """Hessian at the last sweep times V (d+1, k); ``single`` uses single precision where rows are packed."""
        self.passes += 1
        padded, at = self._pad(V), self._at
        of, packed, keeps = self._classes, self.packed, self.keeps_probabilities

        def add(block: Block, out: FloatArray) -> None:
            lo, hi, p = block.lo, block.hi, of.probabilities(block) if keeps else None
            if packed:
                _kernels.softmax_product(block.rows, of(block), lo, hi, p, at, padded, single, out)
            else:
                assert p is not None
                _kernels.softmax_hess_vec(block.rows, of(block), lo, hi, p, padded, out)

        reads = (PROBABILITIES,) if keeps else ()
        out = self._matrix(self.data.sum(add, padded.size, reads=reads))
        out[:-1] += self.lam * V[:-1]
        return out

    def expect_hessian(self, mu: FloatArray) -> None:
        """Compute the Hessian in every later sweep if the rows are on disk or on a cluster, which saves a pass."""
        if self.data.location is not Location.MEMORY:
            self._expected = mu

    @property
    def _gram_size(self) -> int:
        return self.k * (self.k + 1) // 2 * self.order**2

    def _gram(self, mu: FloatArray) -> Callable[[Block, FloatArray], None]:
        """Return a function that adds the Gram matrices of all pairs of classes at the last sweep."""
        of = self._classes

        def add(block: Block, out: FloatArray) -> None:
            _kernels.softmax_hessian(
                block.rows, of(block), block.lo, block.hi, of.probabilities(block), mu, out
            )

        return add

    def hessian(self, mu: FloatArray) -> FloatArray:
        """Hessian at the last sweep, (k (d+1))^2 ordered by class, in coordinates (w, c) with c = b + mu.w."""
        self.passes += 1
        k, order = self.k, self.order
        first, second = np.triu_indices(k)
        if self._ready is not None and self._expected is mu:
            G, self._ready = self._ready, None
        else:
            G = self.data.sum(self._gram(mu), self._gram_size, reads=(PROBABILITIES,))
        G = G.reshape(-1, order, order)
        G[first != second] *= -1.0
        G = self._symmetric(G)
        H = np.empty((k, k, order, order))
        H[first, second] = G
        H[second, first] = G
        diagonal, weights = np.arange(k)[:, None], np.arange(order - 1)
        H[diagonal, diagonal, weights, weights] += self.lam
        return np.ascontiguousarray(H.transpose(0, 2, 1, 3)).reshape(k * order, k * order)

    def _symmetric(self, G: FloatArray) -> FloatArray:
        """Fill matrices G (m, d+1, d+1) from the triangle that the kernels compute."""
        full = symmetric(G, self.data.sparse)
        if not self.fit_intercept:
            full[:, -1, :] = full[:, :, -1] = 0.0
        return full

    def curvatures(self) -> FloatArray:
        """s p_c (1 - p_c) at the last sweep, (k, n): row weights of the diagonal blocks of the Hessian (no pass)."""
        p = self.data.row_state(PROBABILITIES)
        h = p * (1.0 - p)
        return h if self.data.weight is None else h * self.data.weight

    def own_blocks(self, h: FloatArray, mu: FloatArray, single: bool = False) -> FloatArray:
        """sum h_c (x - mu, 1)(x - mu, 1)' for each plane of h (m, n), as (m, d+1, d+1); optionally in float32."""

        def add(block: Block, plane: FloatArray, out: FloatArray) -> None:
            _kernels.gram(block.rows, block.lo, block.hi, plane, mu, out, single)

        total = self._each_plane(h, self.order**2, add)
        return self._symmetric(total.reshape(-1, self.order, self.order))

    def own_moments(self, h: FloatArray) -> FloatArray:
        """sum h_c (x^2, x, 1) for each plane of h (m, n), as (m, 2 d + 1)."""

        def add(block: Block, plane: FloatArray, out: FloatArray) -> None:
            _kernels.moments(block.rows, block.lo, block.hi, plane, out)

        return self._each_plane(h, 2 * self.data.d + 1, add)

    def _each_plane(
        self, h: FloatArray, size: int, add: Callable[[Block, FloatArray, FloatArray], None]
    ) -> FloatArray:
        """Sums of ``size`` numbers for each plane of h (m, n), as (m, size)."""
        self.passes += 1

        def add_all(block: Block, out: FloatArray) -> None:
            for plane, part in zip(h, out.reshape(len(h), size), strict=True):
                add(block, block.own(plane), part)

        return self.data.sum(add_all, len(h) * size, reads=()).reshape(-1, size)

    def moments(self) -> FloatArray:
        """sum (x^2, x, 1) over the rows, (2 d + 1,)."""
        self.passes += 1
        return self.data.sum(
            lambda b, o: _kernels.moments(b.rows, b.lo, b.hi, None, o),
            2 * self.data.d + 1,
            reads=(),
        )

    def intercept_hessian(self) -> FloatArray:
        """sum s (diag p - p p') (k, k): the Hessian restricted to the intercepts (no pass over X)."""
        width, of = self._width, self._classes

        def add(block: Block, out: FloatArray) -> None:
            _kernels.softmax_cross(of(block), block.lo, block.hi, of.probabilities(block), out)

        cross = self._cross
        if cross is None:
            cross = self.data.sum(add, width * width, reads=(PROBABILITIES,), features=False)
        cross = cross.reshape(width, width)[: self.k, : self.k]
        return np.asarray(np.diag(cross.sum(axis=1)) - cross)  # makes every row sum exactly 0

    def along(
        self, W: FloatArray, D: FloatArray, steps: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """P and its derivative with respect to the step, at several points W + step * D. One pass."""
        self.passes += 1
        start, move = self._pad(W), self._pad(D)

        of = self._classes

        def add(block: Block, out: FloatArray) -> None:
            _kernels.softmax_ray(block.rows, of(block), block.lo, block.hi, start, move, steps, out)

        out = self.data.sum(add, 2 * len(steps), reads=()).reshape(-1, 2)
        ww, wd, dd = (float(np.vdot(a[:-1], b[:-1])) for a, b in ((W, W), (W, D), (D, D)))
        values = out[:, 0] + 0.5 * self.lam * (ww + 2 * steps * wd + steps**2 * dd)
        return values, out[:, 1] + self.lam * (wd + steps * dd)

    def closing(self, W: FloatArray, dual: Linearised | Explicit) -> FloatArray:
        """Compute the sums of a certificate.

        Layout: [loss, entropy, magnitude, absolute, mass (k), residual (k), V (d, k), M (d, k), spread, bulk], where
        residual = sum s U, V = sum s x U', and column c of M is sum s x over the rows of class c.
        kernels/softmax/closing.hpp defines the other entries.
        """
        self.passes += 1
        at = self._pad(W)
        u, base, step = None, None, at
        if isinstance(dual, Explicit):
            u = np.ascontiguousarray(dual.u)
        else:
            step = self._pad(dual.step)
            if not np.array_equal(
                dual.base + dual.step, W
            ):  # else its scores follow from W and step
                base = self._pad(dual.base)
        bound = np.abs(W).max(axis=1)

        of = self._classes

        def add(block: Block, out: FloatArray) -> None:
            part = None if u is None else block.own(u)
            _kernels.softmax_closing(
                block.rows, of(block), block.lo, block.hi, base, step, at, bound, part, out
            )

        return self._closing_sums(self.data.sum(add, self._closing_size, reads=()))

    @property
    def _closing_size(self) -> int:
        return _CLOSING + self._width * (self.order + 1) + self.k * self.data.d

    def _closing_sums(self, out: FloatArray) -> FloatArray:
        """Remove the padding from the closing sums; V and M are both stored by feature."""
        d, k, width = self.data.d, self.k, self._width
        mass, VE, M = np.split(out[_CLOSING:], np.cumsum([width, (d + 1) * width]))
        VE = VE.reshape(d + 1, width)[:, :k]
        parts = (out[:4], mass[:k], VE[-1], VE[:-1].ravel(), M.reshape(k, d).T.ravel(), out[4:6])
        return np.concatenate(parts)

    def newton(
        self, W: FloatArray, max_steps: int
    ) -> tuple[bool, FloatArray, Linearised, FloatArray]:
        """Run a whole fit in one native call (kernels/softmax/fit.hpp); needs a single block and lam > 0.

        Returns whether it converged to working precision, W, the dual point, and the sums of the closing pass.
        """
        block = self.data.whole
        assert block is not None
        at, base, step = (np.zeros((self.order, self._width)) for _ in range(3))
        at[:, : self.k] = W
        out = np.zeros(self._closing_size)
        status, _, sweeps, grams, _ = _kernels.softmax_newton(
            block.rows,
            self._classes(block),
            self.lam,
            max_steps,
            self.fit_intercept,
            at,
            base,
            step,
            out,
        )
        self.passes += sweeps + grams
        at, base, step = (np.ascontiguousarray(a[:, : self.k]) for a in (at, base, step))
        return status == 1, at, Linearised(base, step), self._closing_sums(out)

    def conjugate_gradients(
        self,
        factors: tuple[FloatArray, FloatArray],
        mu: FloatArray,
        accuracy: FloatArray,
        most: int,
        at: tuple[FloatArray, FloatArray, FloatArray, float],
    ) -> tuple[FloatArray, FloatArray, int, float, bool]:
        """Run conjugate gradients for H D = -g in one native call (kernels/softmax/directions.hpp), rows in memory.

        ``at`` = (g, D, residual R, initial rho), with rho = 0 at the first call. Returns D, R, the number of Hessian
        products, rho, and whether further products cannot improve D.
        """
        block, data = self.data.whole, self.data
        assert block is not None and data.location is Location.MEMORY
        g, D, R = (self._pad(a).copy() for a in at[:3])
        products, first, done = _kernels.softmax_steps(
            block.rows,
            self._classes(block),
            self.data.row_state(PROBABILITIES),
            self.lam,
            self.fit_intercept,
            mu,
            factors[0],
            factors[1],
            accuracy,
            most,
            data.n_threads > 1,
            g,
            D,
            R,
            at[3],
        )
        self.passes += products
        D, R = (np.ascontiguousarray(a[:, : self.k]) for a in (D, R))
        return D, R, products, first, done

    def longest_sum(self, size: int) -> int:
        """Bound on the number of terms added sequentially in any of ``size`` sums of a pass (no pass).

        Dense kernels first sum chunks of rows in registers and then add the chunk sums: far fewer roundings than rows.
        """
        rows = self.data.longest_sum(size)
        chunk = _kernels.softmax_chunk(self.data.example_row(), self.k)
        return min(rows, chunk + 2 * (rows // chunk + 1))  # twice: a block may begin inside a chunk

    def centre(self) -> FloatArray:
        """Column means of a sample of rows; zero for sparse rows, or without an intercept to absorb them.

        A constant column is centred at its value exactly, since the rounding error of a mean would look like variation.
        """
        data = self.data
        if data.sparse or not self.fit_intercept:
            return np.zeros(data.d)
        if data.n > _SAMPLE or data.location is not Location.MEMORY:
            rows = np.unique(np.linspace(0, data.n - 1, min(data.n, _SAMPLE)).astype(np.int64))
            data = data.sample(rows)
        mean, first = _means(data), _means(data.sample(np.zeros(1, dtype=np.int64)))
        return np.where(np.abs(mean - first) <= _SAME * np.abs(first), first, mean)


def _means(data: Dataset) -> FloatArray:
    total = data.sum(lambda b, o: _kernels.moments(b.rows, b.lo, b.hi, None, o), 2 * data.d + 1)
    return np.ascontiguousarray(total[data.d : 2 * data.d] / data.n)
