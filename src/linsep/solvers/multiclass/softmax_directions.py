"""The Newton system of the multinomial loss, H D = -g for D (d+1, k): factorised, or by conjugate gradients.

H = sum_i s_i (diag p_i - p_i p_i') (x) (x_i, 1)(x_i, 1)' + lam on the weights. The losses do not see one vector
added to all columns, and the penalty wants the columns to sum to zero: all of this lives in the space of zero
sums, and is projected there, because rounding would be amplified outside (H is only lam there, however
large X is).

Exact: the k (k + 1)/2 Gram matrices of all pairs of classes, for few unknowns.

Conjugate gradients, preconditioned by the blocks of H that belong to one class each. At W = 0 all p are 1/k and
(X'SX/k + lam)^-1 for every class inverts H on the columns that sum to zero: one Gram serves all classes and
the first step needs one product. Later the blocks of the classes differ, and are made anew once the
products since the last time have cost as much as making them does. Blocks too large for that become diagonal.
Between nearly separable classes few rows have curvature, each in two classes, so that the blocks say little: a step of
many products goes over to the whole Hessian of those rows, factorised, for a preconditioner.

Many features and classes: preconditioned by a Kronecker product (``softmax_kronecker``). Products are made in single
precision: the next step, whose gradient is exact, repairs their rounding.

What the intercepts' equations lack after the last product is solved exactly in the intercepts alone (k x k): the
class sums of the Newton-dual point then vanish, and the residual R of the weights enters the duality gap
only by |R|^2/(2 lam).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray
from linsep.data import Location
from linsep.problem.coupled import PROBABILITIES, CoupledProblem
from linsep.solvers.linalg import cg
from linsep.solvers.linalg.factor import Factor, Inverse
from linsep.solvers.multiclass.softmax_kronecker import Covariance, Kronecker

MOST_EXACT = 150  # unknowns
_BLOCK_ORDER = 2000  # features of a block that is inverted at all
_BLOCK_NUMBERS = 20_000_000  # of all inverses
_FACTORISED = 256  # order of a block up to which its factor is as quick as its inverse
_AT_ONCE = 20_000_000  # n d k up to which the products of a step are made in one native call
_SINGLE = 1e-5  # of its diagonal: if lam is as much, a large block is inverted in single precision
_SPARSE_PENALTY = 6.0  # a scattered multiply-add of a sparse Gram, in those of a product
_WORTH = 30  # products that the first block may cost: without it the first steps need more
_PATIENCE = 0.5  # of the price of new blocks, in products of one step
_PRODUCTS = 1000
_MANY = 50  # products of a step that blocks may take, however cheap the whole Hessian is
_WHOLE_ORDER = 4000  # unknowns whose Hessian is factorised as a preconditioner
_NEGLECTED = 10.0  # times lam: curvature that it may lack
_FEW_DROPPED = 0.2  # of the rows: fewer are not left out
_RELATIVE = 0.25  # residual of a step far from the optimum, in the norm of the preconditioner


@dataclass(frozen=True)
class Target:
    """How accurate a step from a point of objective ``value`` must be.

    Far from the optimum a rough solution does. From the decrement ``close`` on it is near, and |R|^2 must be at most
    ``residual``, or the residual ``relative``, if that comes first: the gap after a last step is its slack, about the
    square of the decrement, and |R|^2/(2 lam). ``to_the_end``: only the latter counts.
    """

    value: float
    lam: float
    tol: float
    close: float
    relative: float
    to_the_end: bool

    def is_short(self, decrement: float) -> bool:
        """Whether a step of this decrement is a short one."""
        return decrement <= self.close

    def residual(self, decrement: float) -> float:
        """Largest admissible |R|^2."""
        if self.to_the_end:
            return 0.0
        slack = max(0.2 * self.tol, 0.7 * self.tol - (decrement / self.value) ** 2)
        return 2.0 * self.lam * self.value * slack

    def numbers(self) -> FloatArray:
        """The numbers that the kernel reads: value, tol, close, and squared shares."""
        shares = _RELATIVE**2, self.relative**2, float(self.to_the_end)
        return np.array([self.value, self.tol, self.close, *shares])


def zero_sum(V: FloatArray) -> FloatArray:
    """V with the mean of its columns taken from each."""
    out: FloatArray = V - V.mean(axis=1, keepdims=True)
    return out


class Whole:
    """M^-1, the factorised Hessian of a problem at its last sweep, for rows centred at mu."""

    def __init__(self, problem: CoupledProblem, mu: FloatArray) -> None:
        self.mu, self._shape = mu, (problem.k, problem.order)
        k, order = self._shape
        H = problem.hessian(mu)
        blocks = H.reshape(k, order, k, order)
        j = np.arange(order)
        weight = H[np.diag_indices(k * order)].reshape(k, order).sum(axis=0) / k**2
        # On sums over the classes: the right side has none.
        blocks[:, j, :, j] += weight[:, None, None]
        self._factor = Factor(H, definite=problem.lam > 0.0)

    def __call__(self, R: FloatArray) -> FloatArray:
        """M^-1 R."""
        right = zero_sum(R)
        right[:-1] -= np.outer(self.mu, right[-1])
        out = np.ascontiguousarray(self._factor.solve(right.T.ravel()).reshape(self._shape).T)
        out[-1] -= self.mu @ out[:-1]
        return zero_sum(out)


class Exact:
    """Newton steps by the whole Hessian of rows centred at ``mu``, or amid them."""

    def __init__(self, problem: CoupledProblem, mu: FloatArray | None = None) -> None:
        self.problem = problem
        self.mu = problem.centre() if mu is None else mu
        problem.expect_hessian(self.mu)

    def __call__(self, W: FloatArray, g: FloatArray, target: Target) -> FloatArray:
        """Return D."""
        return Whole(self.problem, self.mu)(-g)


def whole_price(problem: CoupledProblem) -> float:
    """Products that a step may take before the whole Hessian pays, by its cost; inf if it is too large."""
    data, k, order = problem.data, problem.k, float(problem.order * problem.k)
    if order > _WHOLE_ORDER or data.location is not Location.MEMORY or problem.lam == 0.0:
        return np.inf
    entries = data.n_entries / max(1, data.n)
    pairs = k * (k + 1) / 4 * data.n * entries**2 * (_SPARSE_PENALTY if data.sparse else 1.0)
    return max(_MANY, (pairs + order**3 / 3) / (2.0 * max(1, data.n_entries) * max(8, k)))


def carry_curvature(problem: CoupledProblem) -> CoupledProblem:
    """The problem on the rows that make up its Hessian at the last sweep, apart from a few times lam.

    Where the classes are nearly separable, most rows have a probability of 1 and none of the curvature.
    """
    data, d = problem.data, problem.data.d
    p = data.row_state(PROBABILITIES)
    h = 1.0 - np.einsum("ci,ci->i", p, p)
    h = h if data.weight is None else h * data.weight
    moments = problem.moments()
    mean = moments[d : 2 * d] / data.n
    spread = float(moments[:d].sum()) / data.n
    spread -= float(mean @ mean) if problem.fit_intercept else 0.0
    order = np.argsort(h, kind="stable")
    dropped = np.searchsorted(np.cumsum(h[order]) * spread, _NEGLECTED * problem.lam)
    if dropped < _FEW_DROPPED * data.n or dropped >= data.n:
        return problem
    rows = np.sort(order[dropped:])
    some = CoupledProblem(problem.loss, problem.penalty, data.sample(rows), problem.fit_intercept)
    some.keep(p[:, rows])
    return some


class Blocks:
    """M^-1, one (d+1)^2 block per class (or one for all), for rows centred at mu.

    Small blocks are factorised, large ones inverted: a row times a column is what kernels are good at.
    """

    def __init__(self, G: FloatArray, mu: FloatArray, lam: float) -> None:
        m, order, _ = G.shape
        i = np.arange(order)
        G[:, i[:-1], i[:-1]] += lam
        G[:, i, i] *= 1.0 + 1e-10  # dependent columns, classes that lost their weight
        self.mu = mu
        self.factors: tuple[FloatArray, FloatArray] | None = None
        self._inverses: list[Inverse] = []
        if order > _FACTORISED:
            self._inverses = [Inverse(block, _is_well_conditioned(block, lam)) for block in G]
            return
        U, scale = np.empty((m * order, order)), np.empty((m, order))
        for c, block in enumerate(G):
            _kernels.spd_factor(block, False, U[c * order : (c + 1) * order], scale[c])
        self.factors = U, scale

    def _solve(self, c: int, r: FloatArray) -> FloatArray:
        if self.factors is None:
            return self._inverses[c % len(self._inverses)].apply(r)
        U, scale = self.factors
        c, out = c % len(scale), np.empty_like(r)
        _kernels.spd_apply(U[c * len(r) : (c + 1) * len(r)], scale[c], r, out)
        return out

    def __call__(self, R: FloatArray) -> FloatArray:
        """M^-1 R."""
        right = R - np.append(self.mu, 0.0)[:, None] * R[-1]
        out = np.empty_like(R)
        for c, column in enumerate(np.ascontiguousarray(right.T)):
            out[:, c] = self._solve(c, column)
        out[-1] -= self.mu @ out[:-1]
        return out


def _is_well_conditioned(A: FloatArray, lam: float) -> bool:
    """Whether the penalty keeps A definite in single precision."""
    return lam >= _SINGLE * float(np.diagonal(A).max(initial=0.0))


class Diagonal:
    """M^-1 from the diagonals of the classes' blocks, for rows centred at the mean of the class's curvature.

    One pass for the mean of the classes serves all, each with its own mass: a pass for each takes longer than it saves.
    """

    def __init__(self, moments: FloatArray, lam: float, fit_intercept: bool) -> None:
        d = moments.shape[1] // 2
        squares, sums, mass = moments[:, :d].T, moments[:, d : 2 * d].T, moments[:, 2 * d]
        self._mass = np.where(mass > 0.0, mass, 1.0)
        self._mean = sums / self._mass if fit_intercept else np.zeros_like(sums)
        size = np.maximum(squares - self._mean * sums, 1e-12 * squares) + lam
        self._size = np.where(size > 0.0, size, 1.0)

    def __call__(self, R: FloatArray) -> FloatArray:
        """M^-1 R."""
        out = np.empty_like(R)
        out[:-1] = (R[:-1] - self._mean * R[-1]) / self._size
        out[-1] = R[-1] / self._mass - np.einsum("jc,jc->c", self._mean, out[:-1])
        return out


def _balance(D: FloatArray, R: FloatArray, B: FloatArray) -> None:
    """Solve what the residual R lacks in the intercepts' equations exactly, with their own Hessian B."""
    B += np.trace(B) / len(B) ** 2  # the null space again
    D[-1] += Factor(B, definite=True).solve(R[-1])


def _is_accurate(
    R: FloatArray, decrement: float, rho: float, target: Target, mu: FloatArray
) -> bool:
    """Whether a solution of this residual and decrement is accurate enough; rho: R.M^-1 R as a share of the first."""
    if rho > _RELATIVE**2:
        return False
    if rho <= target.relative**2 or not target.is_short(decrement):
        return True
    rest = R[:-1] - np.outer(mu, R[-1])  # as it will be when the intercepts have been solved for
    return float(np.vdot(rest, rest)) <= target.residual(decrement)


def block_count(problem: CoupledProblem) -> int:
    """One block for each class, or one for all where those would be too many numbers."""
    return problem.k if problem.k * problem.order**2 <= _BLOCK_NUMBERS else 1


def block_price(problem: CoupledProblem, rows: int) -> float:
    """Cost of making one block from so many rows, in products with H."""
    if problem.order > _BLOCK_ORDER:
        return np.inf
    data = problem.data
    entries = data.n_entries / max(1, data.n)
    pairs = 0.5 * rows * entries**2 * (_SPARSE_PENALTY if data.sparse else 1.0)
    return (pairs + float(problem.order) ** 3) / (2.0 * max(1, data.n_entries) * max(8, problem.k))


class ConjugateGradients:
    """Truncated Newton steps; ``sample`` (the problem itself, or fewer rows) gives the preconditioner."""

    def __init__(
        self,
        problem: CoupledProblem,
        sample: CoupledProblem,
        check: Callable[[], None],
        limited: bool = True,
    ) -> None:
        self.problem, self.sample, self._check = problem, sample, check
        data = problem.data
        one = data.one_block and data.whole is not None
        self._at_once = one and not limited and data.n_entries * problem.k <= _AT_ONCE
        self.mu = sample.centre()
        self.apply: Blocks | Diagonal | Whole | None = None
        self._products = 0.0  # with a diagonal preconditioner
        self._rounds = 0  # products of this step, or of the last one
        self._fresh = False
        self._shared_price = block_price(problem, sample.data.n)
        self._planes = block_count(problem)
        self._price = self._planes * self._shared_price
        self._whole_price = whole_price(problem)

    def _refresh(self, W: FloatArray, first: bool) -> None:
        """Make the preconditioner for the point W, the most expensive kind that pays."""
        if isinstance(self.apply, Whole) or self._escalates():
            self.apply, self._price = (
                Whole(carry_curvature(self.problem), self.mu),
                self._whole_price,
            )
            self._fresh, self._rounds = True, 0
            return
        sample, lam = self.sample, self.problem.lam
        before = sample.passes
        if sample is not self.problem:
            sample.value_gradient(W)
        h = sample.curvatures()
        if self._shared_price > _WORTH if first else self._products < self._price:
            mean, mass = h.mean(axis=0, keepdims=True), h.sum(axis=1)
            shared = sample.own_moments(mean) / max(float(mean.sum()), 1e-300)
            self.apply = Diagonal(mass[:, None] * shared, lam, sample.fit_intercept)
        else:
            if self._planes == 1 or (first and not W.any()):
                h = h.mean(axis=0, keepdims=True)
                if first and not W.any():
                    h /= 1.0 - 1.0 / sample.k
            single = sample.order > _FACTORISED and self._allows_single(h)
            self.apply = Blocks(sample.own_blocks(h, self.mu, single), self.mu, lam)
            self._products = np.inf  # never diagonal again
        sample.passes = before
        self.problem.passes += sample.data.n / self.problem.data.n
        self._fresh = True

    def _allows_single(self, h: FloatArray) -> bool:
        """Whether the penalty keeps blocks definite that are made in single precision."""
        squares = self.sample.own_moments(h.max(axis=0, keepdims=True))[0, : self.sample.data.d]
        return bool(self.problem.lam >= _SINGLE * float(squares.max(initial=0.0)))

    def _escalates(self) -> bool:
        """Whether one step has cost as much with blocks as the whole Hessian would."""
        return isinstance(self.apply, Blocks) and self._rounds >= self._whole_price

    def _is_outdated(self) -> bool:
        """Whether better blocks pay: products have cost more than making them would."""
        if isinstance(self.apply, Diagonal):
            return self._products >= self._price
        if self._escalates():
            return True
        return not self._fresh and self._rounds >= _PATIENCE * self._price

    def __call__(self, W: FloatArray, g: FloatArray, target: Target) -> FloatArray:
        """Return D."""
        self._fresh = False
        if not isinstance(self.apply, Blocks | Whole) or self._is_outdated():
            self._refresh(W, self.apply is None)
        self._rounds = 0
        D, R = self._solve(W, g, target)
        if self.problem.fit_intercept:
            _balance(D, R, self.problem.intercept_hessian())
        return zero_sum(D)

    def _solve_at_once(
        self, W: FloatArray, g: FloatArray, target: Target
    ) -> tuple[FloatArray, FloatArray]:
        """D and the residual -g - H D, by native products as long as one preconditioner serves."""
        D, R, first, done = np.zeros_like(g), zero_sum(-g), 0.0, False
        while not done and self._rounds < _PRODUCTS:
            if isinstance(self.apply, Whole):
                return self._solve(W, g, target)
            assert isinstance(self.apply, Blocks) and self.apply.factors is not None
            most = int(min(_PRODUCTS, np.ceil(self._whole_price))) - self._rounds
            if not self._fresh:
                most = min(most, max(1, int(np.ceil(_PATIENCE * self._price)) - self._rounds))
            D, R, products, first, done = self.problem.steps(
                *(self.apply.factors, self.apply.mu, target.numbers(), most), (g, D, R, first)
            )
            self._rounds += products
            if not done and self._is_outdated():
                self._refresh(W, False)
        return D, R

    def _solve(self, W: FloatArray, g: FloatArray, target: Target) -> tuple[FloatArray, FloatArray]:
        """D and the residual -g - H D."""
        assert self.apply is not None
        if self._at_once and isinstance(self.apply, Blocks) and self.apply.factors is not None:
            return self._solve_at_once(W, g, target)

        def times(Q: FloatArray) -> FloatArray:
            self._check()
            self._rounds += 1
            self._products += 1
            return self.problem.hess_vec(Q)

        def precondition(R: FloatArray) -> FloatArray:
            assert self.apply is not None
            return self.apply(R)

        def ends(at: cg.Iterate) -> bool:
            if not at.rho > 1e-28 * at.rho_first:
                return True
            share = at.rho / at.rho_first
            return at.products > 0 and _is_accurate(
                at.r, -cg.inner(g, at.x), share, target, self.mu
            )

        def renew() -> bool:
            outdated = self._is_outdated()
            if outdated:
                self._refresh(W, False)
            return outdated

        at = cg.solve(times, precondition, -g, ends, _PRODUCTS, zero_sum, renew)
        return at.x, at.r


class PackedConjugateGradients:
    """Truncated Newton steps for many features and classes, with the Kronecker preconditioner.

    ``single``: products in single precision, until they no longer shorten the steps near the optimum.
    """

    def __init__(
        self, problem: CoupledProblem, rows: Covariance, check: Callable[[], None], single: bool
    ) -> None:
        self.problem, self.rows, self._check, self._single = problem, rows, check, single
        self._shortest = np.inf  # decrement of the steps near the optimum so far

    def __call__(self, W: FloatArray, g: FloatArray, target: Target) -> FloatArray:
        """Return D."""
        problem, mu = self.problem, self.rows.mu
        S = problem.intercept_hessian()
        precondition = Kronecker(self.rows, problem.lam, S)

        def times(Q: FloatArray) -> FloatArray:
            self._check()
            return problem.hess_vec(Q, self._single)

        def ends(at: cg.Iterate) -> bool:
            if not at.rho > 1e-28 * at.rho_first:
                return True
            share = at.rho / at.rho_first
            return at.products > 0 and _is_accurate(at.r, -cg.inner(g, at.x), share, target, mu)

        at = cg.solve(times, precondition, -g, ends, _PRODUCTS, zero_sum)
        if problem.fit_intercept:
            _balance(at.x, at.r, S)
        self._watch(-cg.inner(g, at.x), target)
        return zero_sum(at.x)

    def _watch(self, decrement: float, target: Target) -> None:
        """Go over to double precision when steps near the optimum stop getting shorter."""
        if target.is_short(decrement):
            self._single = self._single and decrement <= 0.5 * self._shortest
            self._shortest = min(self._shortest, decrement)
