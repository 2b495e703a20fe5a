"""Solve the Newton system of the multinomial loss, H D = -g for D (d+1, k), by a factorisation or conjugate gradients.

H = sum_i s_i (diag p_i - p_i p_i') (x) (x_i, 1)(x_i, 1)' + lam on the weights. The losses do not change if one vector
is added to all columns, and at the minimum of the penalty the columns sum to zero: all vectors are therefore projected
to zero sums over the classes, because rounding errors outside would be amplified (H is only lam there, however
large X is).

Exact: the k (k + 1)/2 Gram matrices of all pairs of classes, for few unknowns.

Conjugate gradients, preconditioned by the diagonal blocks of H, one for each class. At W = 0 all p are 1/k, and
(X'SX/k + lam)^-1 for every class inverts H on columns that sum to zero: one Gram matrix serves all classes, and
the first step needs one product. Later the blocks of the classes differ; they are recomputed once the products since
the last time have cost as much as computing them. If the blocks are too large, the preconditioner is diagonal.
If the classes are nearly separable, few rows have curvature, each in two classes, and the blocks are a poor
preconditioner: a step with many products switches to the factorised Hessian of those rows.

Many features and classes: preconditioned by a Kronecker product (``softmax_kronecker``), updated by the products
of earlier steps (``linalg.curvature_pairs``). Products and sweeps are in single precision; the closing pass, in double
precision, decides whether that was enough.

After the last product, the residual of the intercepts' equations is eliminated exactly by a step in the intercepts
alone (k x k): the class sums of the Newton-dual point then vanish, and the residual R of the weights contributes
|R|^2/(2 lam) to the duality gap.
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
from linsep.solvers.linalg.curvature_pairs import CurvaturePairs
from linsep.solvers.linalg.factor import Factor, Inverse
from linsep.solvers.multiclass.softmax_kronecker import Covariance, Kronecker

MOST_EXACT = 150  # largest number of unknowns of the factorised Hessian
_BLOCK_ORDER = 2000  # largest order of a block that is inverted
_BLOCK_NUMBERS = 20_000_000  # largest number of entries of all inverses
_FACTORISED = 256  # order of a block up to which applying its factor is as fast as its inverse
_AT_ONCE = 20_000_000  # n d k up to which the products of a step are made in one native call
_SINGLE = 1e-5  # a block may be in single precision if lam is at least this times its diagonal
_SPARSE_PENALTY = 6.0  # cost of a multiply-add of a sparse Gram matrix relative to one of a product
_WORTH = 30  # cost [products] up to which the first block is computed: it saves more than that
_PATIENCE = 0.5  # blocks are recomputed when the products of a step reach this times their cost
_PRODUCTS = 1000
_MANY = 50  # smallest number of products of a step before the whole Hessian replaces the blocks
_WHOLE_ORDER = 4000  # largest number of unknowns whose Hessian is factorised as a preconditioner
_NEGLECTED = 10.0  # curvature that the preconditioner may lack, relative to lam
_FEW_DROPPED = 0.2  # smallest fraction of the rows that is worth dropping
_RELATIVE = 0.25  # relative residual far from the optimum, in the norm of the preconditioner


@dataclass(frozen=True)
class Target:
    """Required accuracy of a step from a point with objective ``value``.

    Far from the optimum a rough solution suffices. If the squared decrement is at most ``close``, |R|^2 must be at most
    ``residual``, or the relative residual at most ``relative``: the gap after the last step is the Fenchel-Young slack,
    about the square of the squared decrement, plus |R|^2/(2 lam). ``to_the_end``: only ``relative`` applies.
    """

    value: float
    lam: float
    tol: float
    close: float
    relative: float
    to_the_end: bool

    def is_short(self, decrement: float) -> bool:
        """Return whether a step of this squared decrement is short."""
        return decrement <= self.close

    def residual(self, decrement: float) -> float:
        """Largest admissible |R|^2."""
        if self.to_the_end:
            return 0.0
        slack = max(0.2 * self.tol, 0.7 * self.tol - (decrement / self.value) ** 2)
        return 2.0 * self.lam * self.value * slack

    def numbers(self) -> FloatArray:
        """Return the parameters of the kernel: value, tol, close, squared relative residuals, to_the_end."""
        shares = _RELATIVE**2, self.relative**2, float(self.to_the_end)
        return np.array([self.value, self.tol, self.close, *shares])


def zero_sum(V: FloatArray) -> FloatArray:
    """Subtract the mean of the columns of V from each column."""
    out: FloatArray = V - V.mean(axis=1, keepdims=True)
    return out


class Whole:
    """M^-1, the factorised Hessian of a problem at its last sweep, for rows centred at mu."""

    def __init__(
        self, problem: CoupledProblem, mu: FloatArray, intercept_ridge: float = 0.0
    ) -> None:
        self.mu, self._shape = mu, (problem.k, problem.order)
        k, order = self._shape
        H = problem.hessian(mu)
        blocks = H.reshape(k, order, k, order)
        c, j = np.arange(k), np.arange(order)
        blocks[c, -1, c, -1] += intercept_ridge
        weight = H[np.diag_indices(k * order)].reshape(k, order).sum(axis=0) / k**2
        # Make H definite on equal columns, on which the right-hand side vanishes.
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
    """Newton direction by a factorisation of the full Hessian, for rows centred at ``mu``."""

    single = False

    def __init__(self, problem: CoupledProblem, mu: FloatArray | None = None) -> None:
        self.problem = problem
        self.mu = problem.centre() if mu is None else mu
        problem.expect_hessian(self.mu)

    def __call__(self, W: FloatArray, g: FloatArray, target: Target) -> FloatArray:
        """Return the step D."""
        return Whole(self.problem, self.mu)(-g)


def whole_price(problem: CoupledProblem) -> float:
    """Return the number of products after which the whole Hessian pays; inf if it is too large."""
    data, k, order = problem.data, problem.k, float(problem.order * problem.k)
    if order > _WHOLE_ORDER or data.location is not Location.MEMORY or problem.lam == 0.0:
        return np.inf
    entries = data.n_entries / max(1, data.n)
    pairs = k * (k + 1) / 4 * data.n * entries**2 * (_SPARSE_PENALTY if data.sparse else 1.0)
    return max(_MANY, (pairs + order**3 / 3) / (2.0 * max(1, data.n_entries) * max(8, k)))


def carry_curvature(problem: CoupledProblem) -> CoupledProblem:
    """Return the problem on the rows that carry its curvature at the last sweep, up to a few times lam.

    If the classes are nearly separable, most rows have a probability near 1 and no curvature.
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
    """Block preconditioner M^-1: one (d+1)^2 block per class, or one for all, for rows centred at mu.

    Small blocks are factorised, large ones inverted, because matrix-vector products are fast in the kernels.
    """

    def __init__(self, G: FloatArray, mu: FloatArray, lam: float) -> None:
        m, order, _ = G.shape
        i = np.arange(order)
        G[:, i[:-1], i[:-1]] += lam
        G[:, i, i] *= 1.0 + 1e-10  # for dependent columns and classes without curvature
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
        """Return M^-1 R."""
        right = R - np.append(self.mu, 0.0)[:, None] * R[-1]
        out = np.empty_like(R)
        for c, column in enumerate(np.ascontiguousarray(right.T)):
            out[:, c] = self._solve(c, column)
        out[-1] -= self.mu @ out[:-1]
        return out


def _is_well_conditioned(A: FloatArray, lam: float) -> bool:
    """Return whether the penalty keeps A definite in single precision."""
    return lam >= _SINGLE * float(np.diagonal(A).max(initial=0.0))


class Diagonal:
    """Diagonal preconditioner M^-1, for rows centred at the curvature-weighted mean of each class.

    One pass with the mean curvature serves all classes, scaled by the mass of each: separate passes cost more than they
    save.
    """

    def __init__(self, moments: FloatArray, lam: float, fit_intercept: bool) -> None:
        d = moments.shape[1] // 2
        squares, sums, mass = moments[:, :d].T, moments[:, d : 2 * d].T, moments[:, 2 * d]
        self._mass = np.where(mass > 0.0, mass, 1.0)
        self._mean = sums / self._mass if fit_intercept else np.zeros_like(sums)
        size = np.maximum(squares - self._mean * sums, 1e-12 * squares) + lam
        self._size = np.where(size > 0.0, size, 1.0)

    def __call__(self, R: FloatArray) -> FloatArray:
        """Return M^-1 R."""
        out = np.empty_like(R)
        out[:-1] = (R[:-1] - self._mean * R[-1]) / self._size
        out[-1] = R[-1] / self._mass - np.einsum("jc,jc->c", self._mean, out[:-1])
        return out


def _balance(D: FloatArray, R: FloatArray, B: FloatArray) -> None:
    """Eliminate the residual R of the intercepts' equations by a step in the intercepts, with their Hessian B."""
    B += np.trace(B) / len(B) ** 2  # make B definite on equal shifts of all intercepts
    D[-1] += Factor(B, definite=True).solve(R[-1])


def _is_accurate(
    R: FloatArray, decrement: float, rho: float, target: Target, mu: FloatArray
) -> bool:
    """Return whether a solution with residual R is accurate enough; rho is R.M^-1 R relative to its first value."""
    if rho > _RELATIVE**2:
        return False
    if rho <= target.relative**2 or not target.is_short(decrement):
        return True
    rest = R[:-1] - np.outer(mu, R[-1])  # residual after the step in the intercepts
    return float(np.vdot(rest, rest)) <= target.residual(decrement)


def _ending(g: FloatArray, target: Target, mu: FloatArray) -> Callable[[cg.Iterate], bool]:
    """Return the stopping rule of conjugate gradients for a step at the gradient g."""

    def ends(at: cg.Iterate) -> bool:
        if not at.rho > 1e-28 * at.rho_first:
            return True
        share = at.rho / at.rho_first
        return at.products > 0 and _is_accurate(at.r, -cg.inner(g, at.x), share, target, mu)

    return ends


def block_count(problem: CoupledProblem) -> int:
    """Return the number of blocks: one for each class, or one for all if those would need too much memory."""
    return problem.k if problem.k * problem.order**2 <= _BLOCK_NUMBERS else 1


def block_price(problem: CoupledProblem, rows: int) -> float:
    """Cost of computing one block from ``rows`` rows [products with H]; inf if it is too large."""
    if problem.order > _BLOCK_ORDER:
        return np.inf
    data = problem.data
    entries = data.n_entries / max(1, data.n)
    pairs = 0.5 * rows * entries**2 * (_SPARSE_PENALTY if data.sparse else 1.0)
    return (pairs + float(problem.order) ** 3) / (2.0 * max(1, data.n_entries) * max(8, problem.k))


class ConjugateGradients:
    """Truncated Newton steps; the preconditioner is computed from ``sample``, the problem or a subsample of it."""

    single = False

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
        self._products = 0.0  # products made with a diagonal preconditioner
        self._rounds = 0  # products of the current step, or of the last one
        self._fresh = False
        self._shared_price = block_price(problem, sample.data.n)
        self._planes = block_count(problem)
        self._price = self._planes * self._shared_price
        self._whole_price = whole_price(problem)

    def _refresh(self, W: FloatArray, first: bool) -> None:
        """Compute the preconditioner at W, of the most accurate kind that pays."""
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
            self._products = np.inf  # always blocks from now on
        sample.passes = before
        self.problem.passes += sample.data.n / self.problem.data.n
        self._fresh = True

    def _allows_single(self, h: FloatArray) -> bool:
        """Return whether the penalty keeps blocks in single precision definite."""
        squares = self.sample.own_moments(h.max(axis=0, keepdims=True))[0, : self.sample.data.d]
        return bool(self.problem.lam >= _SINGLE * float(squares.max(initial=0.0)))

    def _escalates(self) -> bool:
        """Return whether one step with blocks has cost as much as the whole Hessian would."""
        return isinstance(self.apply, Blocks) and self._rounds >= self._whole_price

    def _is_outdated(self) -> bool:
        """Return whether new blocks pay: the products so far have cost as much (half as much, if there are blocks)."""
        if isinstance(self.apply, Diagonal):
            return self._products >= self._price
        if self._escalates():
            return True
        return not self._fresh and self._rounds >= _PATIENCE * self._price

    def __call__(self, W: FloatArray, g: FloatArray, target: Target) -> FloatArray:
        """Return the step D."""
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
        """Return D and the residual -g - H D, in one native call for each preconditioner."""
        D, R, first, done = np.zeros_like(g), zero_sum(-g), 0.0, False
        while not done and self._rounds < _PRODUCTS:
            if isinstance(self.apply, Whole):
                return self._solve(W, g, target)
            assert isinstance(self.apply, Blocks) and self.apply.factors is not None
            most = int(min(_PRODUCTS, np.ceil(self._whole_price))) - self._rounds
            if not self._fresh:
                most = min(most, max(1, int(np.ceil(_PATIENCE * self._price)) - self._rounds))
            D, R, products, first, done = self.problem.conjugate_gradients(
                *(self.apply.factors, self.apply.mu, target.numbers(), most), (g, D, R, first)
            )
            self._rounds += products
            if not done and self._is_outdated():
                self._refresh(W, False)
        return D, R

    def _solve(self, W: FloatArray, g: FloatArray, target: Target) -> tuple[FloatArray, FloatArray]:
        """Return D and the residual -g - H D."""
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

        def renew() -> bool:
            outdated = self._is_outdated()
            if outdated:
                self._refresh(W, False)
            return outdated

        ends = _ending(g, target, self.mu)
        at = cg.solve(times, precondition, -g, ends, _PRODUCTS, zero_sum, renew)
        return at.x, at.r


class PackedConjugateGradients:
    """Truncated Newton steps for many features and classes, with the Kronecker preconditioner.

    The preconditioner is updated by the products of earlier steps. ``single``: use single precision until the steps
    near the optimum no longer get shorter.
    """

    def __init__(
        self,
        problem: CoupledProblem,
        rows: Covariance,
        pairs: CurvaturePairs,
        check: Callable[[], None],
        single: bool,
    ) -> None:
        self.problem, self.rows, self._pairs, self._check = problem, rows, pairs, check
        self.single = single
        self._shortest = np.inf  # smallest squared decrement of steps near the optimum

    def __call__(self, W: FloatArray, g: FloatArray, target: Target) -> FloatArray:
        """Return the step D."""
        problem, mu = self.problem, self.rows.mu
        S, at_zero = problem.intercept_hessian(), not W.any()
        kronecker = Kronecker(self.rows, problem.lam, S, at_zero)
        if at_zero:  # there the preconditioner is the Hessian, up to sampling
            D = zero_sum(kronecker(zero_sum(-g)))
            if not target.is_short(-cg.inner(g, D)):
                return D

        def times(Q: FloatArray) -> FloatArray:
            self._check()
            product = problem.hess_vec(Q, self.single)
            self._pairs.add(Q, zero_sum(product))
            return product

        precondition = self._pairs.update(kronecker)
        at = cg.solve(times, precondition, -g, _ending(g, target, mu), _PRODUCTS, zero_sum)
        self._pairs.commit()
        if problem.fit_intercept:
            _balance(at.x, at.r, S)
        self._watch(-cg.inner(g, at.x), target)
        return zero_sum(at.x)

    def _watch(self, decrement: float, target: Target) -> None:
        """Switch to double precision when steps near the optimum no longer get shorter."""
        if target.is_short(decrement):
            self.single = self.single and decrement <= 0.5 * self._shortest
            self._shortest = min(self._shortest, decrement)
