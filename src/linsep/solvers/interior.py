"""Mehrotra's interior point method for the losses with one kink, on all rows.

Problem: min lam/2 |w|^2 - c.theta + sum s l(m) with l(m) = max of u (kink - m) over lo <= u <= hi: the hinge (u in
[0, 1], kink 1), the absolute loss ([-1, 1], 1) and the perceptron's ([0, 1], 0). The linear term c is 0 here; the
reduced problems of ``globbing.py`` have one. kernels/interior.hpp derives the steps and makes the passes over
the rows: each iteration sums one weighted Gram, solves twice with it, and reads the rows four times.

The start is the minimiser of the squared loss of the same kind, lifted to the central path, which halves the
iterations. The end is the exact solution (kernels/crossover.hpp) where the guess of the free rows is right; the gap
that counts is always that of the closing pass.

Without a penalty (the absolute loss) this is a linear programme, its exact solution a vertex. A dual point is then
feasible or worth nothing, so how far it is from feasible counts in the gap (``imbalance.py``).

A small problem is one native call (kernels/interior_fit.hpp). Where it fails, for want of digits in the Gram,
directions along which no score changes are penalised (``null_directions``), and the method is run again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from linsep import _kernels
from linsep.errors import NonFinite
from linsep.losses import Squared, SquaredHinge
from linsep.problem import Problem, dot
from linsep.problem.pointwise import CURVATURE
from linsep.solution import Explicit, Solution, Status, Stop
from linsep.solvers import newton, small, wide
from linsep.solvers.dense import Adaptive
from linsep.solvers.directions import Factor, solved
from linsep.solvers.imbalance import Imbalance, begin
from linsep.solvers.run import SAFETY, LimitReached, Run

if TYPE_CHECKING:
    from linsep.data import Block
    from linsep.solution import FloatArray

LOSSES = ("hinge", "absolute", "perceptron")
PLANES = 9  # numbers per row: kernels/interior.hpp names them
SHARE = 0.995  # of the way to the boundary
LIMIT = 100  # iterations
NEAR = 1e-9  # relative gap from which the free rows are known, as a rule
PATIENCE = 12  # iterations without progress
FACTORED = 100  # order from which a factorisation is worth keeping for the second solve
CROSSED = 320  # order up to which the exact solution is looked for
ROUNDS = 40
VERTEX = 1e-11  # relative gap above which a vertex is not the optimal one
EXACT = 1e-12  # share of the objective that rounding may leave of an exact fit
_NO_POINT = 3
_NATIVE_WORK = 3e8  # multiply-adds of a Gram up to which one thread makes the start

Solve = Callable[["FloatArray"], "FloatArray"]


def applies(problem: Problem) -> bool:
    """Whether the loss has one kink and a kernel."""
    return problem.loss.native in LOSSES


def factorisable(problem: Problem) -> bool:
    """Whether rows or features are so few that a matrix of their number can be factorised."""
    return min(problem.data.n, problem.data.d) <= wide.LARGEST


def kernel(problem: Problem) -> _kernels.Loss:
    """The loss as the kernels know it."""
    assert problem.loss.native is not None
    return _kernels.Loss(problem.loss.native)


class Path:
    """Iterates of the method on one problem, all rows of which take part.

    ``linear`` is c and ``constant`` a number to be added to the objective. ``share`` counts the passes made here
    as parts of passes over all rows of ``run``'s problem, when this is a reduced one.
    """

    def __init__(
        self,
        run: Run[Problem],
        problem: Problem,
        linear: FloatArray | None = None,
        constant: float = 0.0,
        null: FloatArray | None = None,
    ) -> None:
        self.run, self.problem = run, problem
        self.linear = np.zeros(problem.order) if linear is None else linear
        self.constant, self.null = constant, null
        self.loss = kernel(problem)
        low, high = problem.loss.domain
        self.width = high - low
        self.low, self.high = low, high
        self.mu = problem.centre()
        self._balance = Imbalance(problem) if problem.lam == 0.0 else None
        n = problem.data.n
        self.state = np.zeros((PLANES, n))
        self.share = n / run.problem.data.n if problem is not run.problem else 0.0
        weight = problem.data.weight
        self.mass = float(n) if weight is None else float(weight.sum())
        self.theta = np.zeros(problem.order)
        self.value = self.gap = np.inf
        self._step = 0.0
        self._sums = np.zeros(0)
        self.steps = 0

    @property
    def v(self) -> FloatArray:
        """m - kink of every row."""
        plane: FloatArray = self.state[4]
        return plane

    def _count(self, passes: float) -> None:
        self.problem.passes += passes
        self.run.problem.passes += passes * self.share

    def margins(self) -> None:
        """The margins at theta, afresh."""
        self._count(1.0)
        v = self.v

        def add(b: Block, out: FloatArray) -> None:
            part = v[b.first : b.first + b.rows.n]
            _kernels.kink_margins(b.rows, b.targets, self.loss, b.lo, b.hi, self.theta, part, out)

        self.problem.data.sum(add, 1)

    def place(self, theta: FloatArray, mu: float | None = None) -> None:
        """Begin at theta, at the point of the central path that belongs to mu (or to what v suggests)."""
        self.theta = theta.copy()
        self.margins()
        if mu is None:
            mu = self.width * usual_distance(self.v, self.problem.data.weight)
        _kernels.ipm_central(self.loss, 0, self.problem.data.n, max(mu, 1e-100), self.state)
        self._step = 0.0

    def measure(self) -> None:
        """Make the last step; objective and gap there. No term of the gap is negative: nothing cancels."""
        self._count(1.0)
        lam, d, order = self.problem.lam, self.problem.data.d, self.problem.order

        def add(b: Block, out: FloatArray) -> None:
            h = b.kept(CURVATURE)
            _kernels.ipm_gather(
                *(b.rows, b.targets, self.loss, b.lo, b.hi, self._step, self.state, b.first, h, out)
            )

        sums = self.problem.data.sum(add, 3 + 2 * order)
        self._step = 0.0
        sums[3 : 3 + order] += self.linear
        r = sums[3 : 3 + d] - lam * self.theta[:-1]
        self._sums = sums
        self.value = float(sums[0]) + self.problem.penalty_value(self.theta) + self.constant
        self.value -= dot(self.linear, self.theta)
        size = dot(r, r)
        self.gap = float(sums[1])
        if self._balance is not None:
            self.gap += abs(self.value) * self._balance.share(sums[3 : 3 + order])
            return
        self.gap += 0.5 * size / lam
        if self.problem.fit_intercept:
            self.gap += abs(float(sums[2 + order]) * float(self.theta[-1]))

    def _solver(self) -> Solve:
        """Solves with the Gram of the state, in the user's coordinates."""
        lam, mu, before = self.problem.lam, self.mu, self.problem.passes
        H = self.problem.hessian(mu)
        self.run.problem.passes += (self.problem.passes - before) * self.share
        if self.null is not None:
            for y in self.null:
                H[:-1, :-1] += float(np.diag(H)[:-1] @ (y * y)) * np.outer(y, y)
        definite = lam > 0.0
        factor = Factor(H, definite) if len(H) > FACTORED else None

        def solve(rhs: FloatArray) -> FloatArray:
            centred = rhs.copy()
            centred[:-1] -= mu * rhs[-1]
            x = factor.solve(centred) if factor is not None else solved(H, centred, definite)
            x[-1] -= float(mu @ x[:-1])
            return x

        return solve

    def advance(self) -> bool:
        """One step from the sums of ``measure``; false if it is of no use."""
        order, lam = self.problem.order, self.problem.lam
        both = float(self._sums[2])
        rhs = self._sums[3 : 3 + order] - self._sums[3 + order :]
        rhs[:-1] -= lam * self.theta[:-1]
        if not self.problem.fit_intercept:
            rhs[-1] = 0.0
        solve = self._solver()
        far, sums = self._predict(solve(rhs))
        length = min(1.0, 1.0 / far)
        left = 1.0 - length + length * length * float(sums[0]) / both
        target = min(1.0, max(1e-6, left**3)) * both / (2.0 * self.mass)
        rhs += target * sums[1 : 1 + order] + sums[1 + order :]
        if not self.problem.fit_intercept:
            rhs[-1] = 0.0
        delta = solve(rhs)
        reach = self._correct(delta, target)
        self._step = SHARE / reach if reach > SHARE else 1.0
        self.theta += self._step * delta
        self.steps += 1
        return self._step > 1e-8 and bool(np.isfinite(reach))

    def _predict(self, delta: FloatArray) -> tuple[float, FloatArray]:
        self._count(1.0)
        far: list[float] = [1.0]

        def add(b: Block, out: FloatArray) -> None:
            far.append(
                _kernels.ipm_predict(b.rows, b.targets, b.lo, b.hi, delta, self.state, b.first, out)
            )

        sums = self.problem.data.sum(add, 1 + 2 * self.problem.order)
        return max(far), sums

    def _correct(self, delta: FloatArray, mu: float) -> float:
        self._count(1.0)
        far: list[float] = [0.0]

        def add(b: Block, out: FloatArray) -> None:
            far.append(
                _kernels.ipm_correct(b.rows, b.targets, b.lo, b.hi, delta, mu, self.state, b.first)
            )

        self.problem.data.sum(add, 1)
        return max(far) if np.isfinite(far).all() else np.inf

    def descend(self, target: float, limit: int = LIMIT, shortest: float = 0.0) -> bool:
        """Iterate until gap <= target * objective; false if the gap no longer falls.

        ``shortest``: a length of the steps below which, four times in a row, the attempt is given up.
        """
        lowest, idle, short = np.inf, 0, 0
        limit += self.steps
        try:
            while idle < PATIENCE:
                self.run.check_limits()
                self.measure()
                if not np.isfinite(self.gap):
                    return False
                if self.gap <= target * abs(self.value):
                    return True
                idle = 0 if self.gap < 0.9 * lowest else idle + 1
                lowest = min(lowest, self.gap)
                if self.steps >= limit or not self.advance():
                    return False
                short = short + 1 if self._step < shortest else 0
                if short == 4:
                    return False
                if self.steps % 8 == 0:  # against drift
                    self.measure()
                    self.margins()
        except NonFinite:  # the Gram overflowed
            return False
        return False

    def dual(self) -> FloatArray:
        """u of the rows."""
        if self._step:
            self.measure()
        a, t = self.state[0], self.state[1]
        u: FloatArray = np.where(a < t, self.low + a, self.high - t)
        return u

    def exact(self, theta: FloatArray, u: FloatArray) -> tuple[bool, FloatArray, FloatArray]:
        """The exact solution near theta and u: whether it was found, and the point."""
        block = self.problem.data.whole
        assert block is not None
        theta, u, v = theta.copy(), u.copy(), np.zeros_like(u)
        _kernels.kink_margins(
            block.rows, block.targets, self.loss, 0, len(u), theta, v, np.zeros(1)
        )
        right = _kernels.crossover(
            block.rows,
            block.targets,
            self.loss,
            self.problem.lam,
            self.problem.fit_intercept,
            self.linear,
            ROUNDS,
            theta,
            u,
            v,
        )
        self._count(4.0)
        return right and bool(np.isfinite(theta).all()), theta, u

    @property
    def crossable(self) -> bool:
        """Whether the exact solution is worth looking for."""
        return self.problem.data.whole is not None and self.problem.order <= CROSSED


def usual_distance(v: FloatArray, weight: FloatArray | None) -> float:
    """Median of |v| over the rows that count, or half the mean where most of them are on the kink."""
    size = np.abs(v if weight is None else v[weight > 0.0])
    if not len(size):
        return 1e-8
    median, mean = float(np.median(size)), float(size.mean())
    return max(median if median >= 1e-3 * mean else 0.5 * mean, 1e-8)


def feasible(problem: Problem, u: FloatArray) -> FloatArray:
    """The same u, moved into its box and to sum s sigma u = 0 (kernels/crossover.hpp)."""
    data = problem.data
    targets = _kernels.Targets(data.sign, data.offset, data.weight)
    _kernels.make_feasible(targets, kernel(problem), problem.fit_intercept, u)
    return u


def squared_start(problem: Problem, theta: FloatArray) -> FloatArray:
    """The minimiser of the squared loss of the same kind, to two digits."""
    if theta.any() or problem.loss.native == "perceptron":
        return theta
    loss = Squared() if problem.loss.native == "absolute" else SquaredHinge()
    easy = Problem(loss, problem.penalty, problem.data, problem.fit_intercept)
    data = problem.data
    if data.whole is not None and data.n_entries * data.d <= _NATIVE_WORK:
        start = theta.copy()
        small.run_native(easy, start, 1e-2, polish=False)
    else:
        start = newton.solve(easy, theta, Stop(1e-2), Adaptive(easy, None)).W[:, 0].copy()
    problem.passes += easy.passes
    return start if np.isfinite(start).all() else theta


def null_directions(problem: Problem) -> FloatArray | None:
    """Unit vectors w, a basis of those for which x.w is the same for every row: only the penalty sees them.

    One-hot columns have them. In the Gram of an iterate they drown in rounding errors once its entries are
    1e15 times the penalty; the optimal w is orthogonal to them.
    """
    data = problem.data

    def ones(b: Block, out: FloatArray) -> None:
        b.kept(CURVATURE)[b.lo : b.hi] = b.weights() > 0.0

    data.sum(ones, 1)
    H = problem.hessian(problem.centre())
    H[np.arange(data.d), np.arange(data.d)] -= problem.lam
    diagonal = np.diag(H)
    unit = np.where(diagonal > 0.0, 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0)), 0.0)
    values, vectors = np.linalg.eigh(H * unit * unit[:, None] + np.diag(1.0 * (unit == 0.0)))
    flat = (unit[:, None] * vectors[:, values < 1e-12 * max(1.0, float(values[-1]))])[:-1]
    flat = flat[:, np.linalg.norm(flat, axis=0) > 0.0]
    if not flat.shape[1]:
        return None
    basis, _ = np.linalg.qr(flat / np.linalg.norm(flat, axis=0))
    return np.ascontiguousarray(basis.T)


def flat_answer(problem: Problem) -> FloatArray | None:
    """The answer when some intercept alone makes every loss 0: one class, one target, or offsets beyond the kink."""
    data = problem.data
    live = slice(None) if data.weight is None else data.weight > 0.0
    sign = data.sign[live]
    need = 1.0 * (problem.loss.native != "perceptron") * np.ones(len(sign))
    if data.offset is not None:
        need -= data.offset[live]
    b = 0.0
    if len(sign) and problem.fit_intercept and (sign == sign[0]).all():
        b = float(sign[0] * max(0.0 if problem.loss.domain[0] == 0.0 else -np.inf, need.max()))
    enough = sign * b == need if problem.loss.domain[0] < 0.0 else sign * b >= need
    return np.append(np.zeros(data.d), b) if enough.all() else None


def exact_fit(problem: Problem, value: float) -> FloatArray | None:
    """Least squares, if it leaves no residuals but rounding; ``value`` is the objective to compare with.

    Then nothing can be better, whatever the loss, and there is no kink to be found.
    """
    easy = Problem(Squared(), problem.penalty, problem.data, problem.fit_intercept)
    theta = newton.solve(easy, np.zeros(problem.order), Stop(1e-9), Adaptive(easy, None)).W[:, 0]
    problem.passes += easy.passes
    if not np.isfinite(theta).all():
        return None
    theta = np.ascontiguousarray(theta)
    left, _ = problem.value_gradient(theta)
    return theta if left <= EXACT * value else None


def _finish(run: Run[Problem], path: Path) -> tuple[bool, bool]:
    """The exact point if it is found, else the iterate: whether it is exact, whether the gap closed."""
    u = path.dual()
    if path.crossable:
        right, theta, exact = path.exact(path.theta, u)
        if right and run.close(theta, Explicit(feasible(path.problem, exact))):
            assert run.best is not None
            return run.problem.lam > 0.0 or run.best[0] <= VERTEX * run.trace[-1].primal, True
    return False, run.close(path.theta, Explicit(feasible(path.problem, u)))


def iterate(run: Run[Problem], theta: FloatArray, null: FloatArray | None = None) -> bool:
    """The method on all rows from theta, and from 0 if that fails. Whether the gap closed."""
    path = Path(run, run.problem, null=null)
    try:
        return _iterate(run, path, theta)
    except LimitReached:
        if np.isfinite(path.theta).all():
            run.close(path.theta, Explicit(feasible(run.problem, path.dual())))
        raise


def _iterate(run: Run[Problem], path: Path, theta: FloatArray) -> bool:
    tol = run.stop.tol
    target = min(0.1 * tol, NEAR) if path.crossable else 0.3 * tol
    path.place(theta)
    falling = path.descend(target)
    if not falling and not path.gap <= 1e-3 * abs(path.value):
        path.place(np.zeros_like(theta), 0.5 * path.width * float(np.abs(path.v).mean()))
        falling = path.descend(target)
    if not np.isfinite(path.theta).all():
        return False
    closed = False
    for _ in range(3):
        exact, enough = _finish(run, path)
        closed = closed or enough
        # Without a penalty it is the vertex that is wanted: a gap below tol is not yet a reason to stop.
        if exact or (closed and run.problem.lam > 0.0):
            return True
        if not falling:
            break
        target *= 1e-2
        falling = path.descend(target, 10)
    return closed


def attempt(run: Run[Problem], theta: FloatArray) -> bool:
    """The method from the start it likes best; again, more carefully, if that fails."""
    if iterate(run, squared_start(run.problem, theta)):
        return True
    return iterate(run, theta, null_directions(run.problem))


def solve(problem: Problem, theta: FloatArray, stop: Stop, seed: int = 0) -> Solution:
    """Minimise; see the head of this file."""
    run = begin(problem, stop)
    known = flat_answer(problem)
    nothing = Explicit(np.zeros(problem.data.n))
    if known is not None and run.close(known, nothing):
        return run.solution(Status.CERTIFIED, known, nothing)
    status = Status.WORKING_PRECISION
    try:
        if small.fits(problem) and small.ends_before(stop) and problem.data.n >= problem.data.d:
            if _native(run, theta):
                return run.solution(Status.CERTIFIED, theta, nothing)
        theta, value, _ = problem.start(theta)
        run.record(value)
        exact = exact_fit(problem, value) if problem.lam == 0.0 else None
        if exact is not None:
            run.best = None
            return run.solution(Status.WORKING_PRECISION, exact, nothing)
        if wide.solve(run, attempt) if wide.applies(problem) else attempt(run, theta):
            status = Status.CERTIFIED
    except LimitReached as limit:
        status = limit.status
    return run.solution(status, theta, nothing)


def _native(run: Run[Problem], theta: FloatArray) -> bool:
    """The whole fit in one call; whether the gap closed."""
    problem = run.problem
    block = problem.data.whole
    assert block is not None
    at, u = theta.copy(), np.zeros(problem.data.n)
    sums = np.zeros(8 + 2 * problem.data.d)
    status, _, sweeps, grams, _ = _kernels.interior(
        block.rows,
        block.targets,
        kernel(problem),
        problem.lam,
        SAFETY * run.stop.tol,
        LIMIT,
        problem.fit_intercept,
        bool(theta.any()),
        at,
        u,
        sums,
    )
    problem.passes += sweeps + grams
    return status != _NO_POINT and run.close(at, Explicit(u), sums)
