"""The objective of the multiclass hinge loss of Crammer and Singer, with k columns of weights.

::

    P(W) = lam/2 |W_w|^2 + sum_i s_i max_c (z_ic + 1[c != y_i]) - z_{i,y_i},   z_i = W'(x_i, 1),   W = (W_w; b')

Scores Z and simplex points P, both (n, K), are stored between passes; K is k padded to whole vectors.
"""

from __future__ import annotations

import numpy as np

from linsep import _kernels
from linsep.arrays import BoolArray, FloatArray, IntArray
from linsep.data import Block, Location
from linsep.errors import Refused
from linsep.losses import Multinomial
from linsep.problem.coupled import CoupledProblem
from linsep.solution import Explicit, Linearised


class MaxMarginProblem(CoupledProblem):
    """Crammer-Singer objective and its smoothed proximal-point subproblems (softmax/crammer_singer.hpp)."""

    def allocate_zeros(self) -> FloatArray:
        """Allocate zeros (n, K) where the data set stores row state: in memory or in a memory-mapped file."""
        zeros = self.data.allocate_state(self._width).reshape(self.data.n, self._width)
        zeros[:] = 0.0
        return zeros

    def scores(self, W: FloatArray) -> FloatArray:
        """Scores Z = X W + b (n, K). One pass."""
        self.passes += 1
        V, Z = self._pad(W), self.allocate_zeros()

        def fill(block: Block, out: FloatArray) -> None:
            part = Z[block.first + block.lo : block.first + block.hi]
            _kernels.scores_k(block.rows, block.lo, block.hi, V, part.reshape(-1))

        self.data.sum(fill, 1)
        return Z

    def smooth(
        self,
        Z: FloatArray,
        dZ: FloatArray | None,
        t: float,
        before: FloatArray,
        sigma: float,
        P: FloatArray,
    ) -> tuple[float, float, float, float]:
        """Smoothed losses at Z + t dZ, their derivative by t, their proximal part, and the slack of p (no pass).

        ``P`` receives the maximising simplex points p. Their slack is sum s (max_c lead_c - p.lead), which p adds to
        the duality gap.
        """

        def add(block: Block, out: FloatArray) -> None:
            move = None if dZ is None else block.own(dZ)
            _kernels.crammer_singer_step(
                self._classes(block),
                block.lo,
                block.hi,
                block.own(Z),
                move,
                t,
                block.own(before),
                sigma,
                block.own(P),
                out,
            )

        value, slope, moved, slack = self.data.sum(add, 4, features=False).tolist()
        return value, slope, moved, slack

    def gradient(self, P: FloatArray) -> FloatArray:
        """Gradient of the losses, sum of s (x, 1) (p - onehot(y))', (d+1, k). One pass."""
        self.passes += 1

        def add(block: Block, out: FloatArray) -> None:
            _kernels.crammer_singer_gradient(
                block.rows, self._classes(block), block.lo, block.hi, block.own(P), out
            )

        return self._matrix(self.data.sum(add, self.order * self._width))

    def ascend(
        self,
        order: IntArray,
        bucket: int,
        stiffness: float,
        norms: FloatArray,
        P: FloatArray,
        W: FloatArray,
        state: FloatArray,
    ) -> None:
        """Update W (d+1, K) by dual coordinate ascent over buckets of rows in the given order."""
        block = self.data.whole
        assert block is not None
        _kernels.crammer_singer_ascend(
            block.rows,
            self._classes(block),
            0,
            len(order),
            order,
            bucket,
            self.lam,
            stiffness,
            norms,
            P,
            W,
            state,
        )

    def row_norms(self) -> FloatArray:
        """Squared norms |x_i|^2 of all rows. One pass."""
        self.passes += 1
        return self.data.row_norms()

    def label_distribution(self) -> FloatArray:
        """P (n, K) = onehot(y): the simplex points of the dual point U = 0."""
        P = self.allocate_zeros()
        assert self.data.labels is not None
        P[np.arange(self.data.n), self.data.labels] = 1.0
        return P

    def closing(self, W: FloatArray, dual: Linearised | Explicit) -> FloatArray:
        """Compute the sums of a certificate, in the layout of ``CoupledProblem.closing``. One pass."""
        assert isinstance(dual, Explicit)
        self.passes += 1
        at, u, bound = self._pad(W), np.ascontiguousarray(dual.u), np.abs(W).max(axis=1)

        def add(block: Block, out: FloatArray) -> None:
            _kernels.crammer_singer_closing(
                block.rows, self._classes(block), block.lo, block.hi, at, bound, block.own(u), out
            )

        return self._closing_sums(self.data.sum(add, self._closing_size))

    def curved_subproblem(self, rows: IntArray, active: BoolArray, sigma: float) -> CoupledProblem:
        """Return the rows whose smoothed losses have curvature, as a softmax problem with the same Hessian.

        With a the indicator of the active classes of a row, the curvature sigma (diag a - a a'/|a|) equals that of
        a softmax with p = a/|a| and weight sigma |a|.
        """
        if self.data.location is not Location.MEMORY and not self.data.fits_memory(len(rows)):
            raise Refused(
                f"At {len(rows):,} of {self.data.n:,} rows two classes or more compete, and the {self.loss.name} loss "
                "needs those in memory, which are more than 1 GiB. Fit fewer rows or columns, or use "
                "LogisticRegression, or loss='squared_hinge' with multiclass='ovr', which leave all rows on disk."
            )
        count = active.sum(axis=1)
        data = self.data.sample(rows, sigma * count)
        curved = CoupledProblem(Multinomial(self.k), self.penalty, data, self.fit_intercept)
        curved.keep((active / count[:, None]).T)
        return curved
