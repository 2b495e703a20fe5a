"""Newton's method for the multinomial loss, k >= 3 classes, with the Newton-dual certificate.

::

    min_W  lam/2 |W_w|^2 + sum_i s_i (logsumexp(z_i) - z_{i,y_i}),     z_i = W'(x_i, 1)

A step D at W gives the dual point p~ = p + (diag p - p p') dz. The Newton equations make X'(s U), U = onehot(y) - p~,
equal to lam (W + D) up to the residual of the linear solve, so the duality gap is the Fenchel-Young slack of
the losses, of fourth order in the step. Far from the optimum steps are computed roughly; once the step is short, a
closing pass replaces a sweep. From W = 0 the unit step is nearly always good (logsumexp is self-concordant-like: Bach
2010); if P does not decrease enough, one pass evaluates many shorter steps.

With many rows per feature, a pilot on a sample of the rows in which every class is present is solved first.
"""

from __future__ import annotations

import numpy as np

from linsep.arrays import FloatArray
from linsep.data import Location
from linsep.problem.coupled import CoupledProblem
from linsep.solution import Linearised, Solution, Status, Stop
from linsep.solvers.linalg.curvature_pairs import CurvaturePairs
from linsep.solvers.multiclass import softmax_path
from linsep.solvers.multiclass.softmax_directions import (
    MOST_EXACT,
    ConjugateGradients,
    Exact,
    PackedConjugateGradients,
    Target,
    block_count,
    block_price,
    zero_sum,
)
from linsep.solvers.multiclass.softmax_kronecker import Covariance
from linsep.solvers.multiclass.softmax_path import SoftmaxPath
from linsep.solvers.multiclass.softmax_recession import minimum_norm, refuse_separable
from linsep.solvers.run import LimitReached, Run
from linsep.solvers.sampling import draw_by_class, limit_to_memory, sample_rows

Direction = Exact | ConjugateGradients | PackedConjugateGradients

MAX_STEPS = 200
_POLISH = 1_000_000  # n d k below which the solution is computed to working precision
_FINE = 1e-13  # squared decrement, relative to P, of such a solution
_FINEST = 1e-18  # without a penalty, where the certificate depends on the step itself
_CLOSING_DECREMENT = 0.3  # the gap after a step is up to ten times the square of its decrement
# Share of P below which a penalty is weak, and the closing decrement then.
_WEAK_PENALTY, _CLOSING_DECREMENT_WEAK = 1e-5, 1e-3
_PILOT_WORK = 4_000_000  # n d k from which a pilot pays
_PILOT_TOL = 1e-3
_MOST_EXACT_FEW = 1500  # on a cluster: largest number of unknowns of a factorised Hessian
_PILOT_SHARE_FEW = 0.5  # on a cluster: largest share of the rows in a pilot
_PILOT_ENTRIES_FEW = 1 << 20  # on a cluster: smallest pilot [entries], 8 MB
_PILOT_ROWS = 50  # per unknown: the pilot's optimum then exceeds the minimum by 1 % of a row's loss
_PILOT_SHARE = 0.15  # largest share of the rows in a pilot
_SAMPLE_ROWS = 8  # rows per feature in the sample for the preconditioner
_SAMPLE_LEAST = 2048
_SAMPLE_SHARE = 1 / 16  # largest share of the rows: the sample is in memory even if X is on disk
_SAMPLE_PRICE = 3  # cost of the blocks [products] above which the sample is smaller
_PACKED_WORK = 20_000_000  # n d k from which the Kronecker preconditioner pays
_KEPT = 1 << 23  # probabilities that are stored: 64 MB; more are recomputed in every product
_MOST_FEATURES = 4096  # with more features the covariance is that of at most so many rows
_COVARIANCE_PRICE = 4  # the covariance may use as many rows as cost two products
_PAIRS = 24  # products that update the preconditioner,
_PAIR_NUMBERS = 1 << 23  # and the numbers in all of them: 64 MB
# Sweeps are in single precision until a step may be the last: its gap, about 1e-6 from rounding, must be below tol. The
# relative squared decrement of the next step is predicted as the power 1.5 of the last one, within this factor.
_ROUGH_GAP, _NEXT = 1e-5, 10.0
_PER_CLASS = 20  # smallest number of rows of each class in a sample (all if there are fewer)
_COMMON = 100  # expected rows of the rarest class from which a sample need not be stratified
_STALLS = 3  # steps of rounding noise before the method ends
_RECESSION = 8  # without a penalty: steps between checks whether a minimiser exists


def _work(problem: CoupledProblem) -> int:
    """Work of a pass up to a factor: n d k for dense rows."""
    return problem.data.n_entries * problem.k


def _is_small(problem: CoupledProblem) -> bool:
    return _work(problem) < _POLISH and problem.order * problem.k <= MOST_EXACT


def sample(problem: CoupledProblem, m: int, seed: int) -> CoupledProblem:
    """Return the problem on about m rows, evenly spread in each class and weighted by the rows they represent.

    If no class is rare, the rows are drawn without regard to the classes.
    """
    data, m = problem.data, limit_to_memory(m, problem.data)
    rng, counts = np.random.default_rng(seed), problem.data.counts(problem.k)
    if m < data.n and m * int(counts.min()) >= _COMMON * data.n:
        drawn = data.sample(sample_rows(data.n, m, rng))
        assert drawn.labels is not None
        stands = counts / np.maximum(1, drawn.counts(problem.k))
        drawn = drawn.reweighted(stands[drawn.labels])
        return CoupledProblem(problem.loss, problem.penalty, drawn, problem.fit_intercept)
    sizes = [min(int(k), max(_PER_CLASS, round(m * int(k) / data.n))) for k in counts]
    data = data.sample(*draw_by_class(data, counts, sizes, rng))
    return CoupledProblem(problem.loss, problem.penalty, data, problem.fit_intercept)


def _pilot(
    problem: CoupledProblem, W: FloatArray, run: Run[CoupledProblem], seed: int, few: bool
) -> tuple[FloatArray, FloatArray | None]:
    """Return the optimum of a pilot to three digits and the centre of its rows; W and None if it would not pay."""
    data, k = problem.data, problem.k
    m = max(data.n // 20, _PILOT_ROWS * data.d * (k - 1))
    if few:
        m = max(m, min(_PILOT_ENTRIES_FEW // data.d, int(_PILOT_SHARE_FEW * data.n)))
    small = m > _PILOT_SHARE_FEW * data.n
    if not few:
        small = _work(problem) < _PILOT_WORK or m > _PILOT_SHARE * data.n
    if small or W.any() or problem.lam == 0.0:
        return W, None
    sub = sample(problem, m, seed)
    start = _Newton(Run(sub, run.rest(_PILOT_TOL)), W, seed, polish=False).solve().W
    problem.passes += sub.passes * sub.data.n / data.n
    return start, sub.centre()


class _Newton:
    """Newton's method on one problem: iterate, dual point and stopping state."""

    def __init__(
        self,
        run: Run[CoupledProblem],
        W: FloatArray,
        seed: int,
        polish: bool,
        centre: FloatArray | None = None,
        few: bool = False,
        path: SoftmaxPath | None = None,
    ) -> None:
        self.run, self.problem, self.lam = run, run.problem, run.problem.lam
        self.W, self.seed, self.centre, self.few = W, seed, centre, few
        self.path = SoftmaxPath() if path is None else path
        self.value, self.g = np.inf, W
        self.dual = Linearised(W, np.zeros_like(W))
        self.to_the_end = polish or self.lam == 0.0
        self.fine = _FINEST if self.lam == 0.0 else _FINE  # last decrement if ``to_the_end``
        self.near = _CLOSING_DECREMENT * np.sqrt(run.stop.tol)
        self.stalls = 0  # steps whose decrease was rounding noise
        self.rough = False  # whether the last sweep was in single precision
        self.stuck = False

    def solve(self) -> Solution:
        """Iterate until the gap closes, no step makes progress, or a limit is reached."""
        status = Status.WORKING_PRECISION
        try:
            with self.run.in_time():
                direction = _direction(self.run, self.seed, self.centre, self.few, self.path)
                self._start(direction)
                for step in range(1, MAX_STEPS + 1):
                    self.run.check_limits()
                    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                        D = direction(self.W, self.g, self._target())
                        decrement = -float(np.vdot(self.g, D))
                    if not (abs(decrement) < np.inf and decrement >= -_FINE * self.value):
                        self.stuck = True
                        break
                    last = (
                        decrement
                        <= (self.fine if self.to_the_end else self._last_decrement()) * self.value
                    )
                    if self._finish(D, last):
                        status = Status.CERTIFIED
                        break
                    if not self._advance(D, decrement, step, last, direction):
                        break
                if status is not Status.CERTIFIED and self.lam > 0.0:
                    if self.run.close(self.W, self.dual):  # no step makes progress
                        status = Status.CERTIFIED
        except LimitReached as limit:
            status = limit.status
        except np.linalg.LinAlgError:
            self.stuck = True
        return self.run.solution(status, self.W, self.dual)

    def _start(self, direction: Direction) -> None:
        """Evaluate the start; replace it by W = 0, whose objective is known, if that is better."""
        problem = self.problem
        self.rough = direction.single
        self.value, self.g = problem.start(self.W, self.rough)
        flat = np.log(problem.k) * problem.data.total_weight()
        if self.W.any() and not self.value <= flat:
            self.W = np.zeros_like(self.W)
            self.value, self.g = problem.value_gradient(self.W, self.rough)
        self.rough = self.rough and bool(self.W.any())
        self.run.record(self.value)

    def _target(self) -> Target:
        """Return the required accuracy of the next step."""
        end, P = self.to_the_end, self.value
        relative = 1e-6 if end else 1e-9
        return Target(P, self.lam, self.run.stop.tol, self._last_decrement() * P, relative, end)

    def _last_decrement(self) -> float:
        """Squared decrement, relative to P, below which a step may be the last one.

        Rows whose dual point leaves the simplex change V, which adds to the gap in proportion to 1/lam. With a weak
        penalty the last step must therefore be shorter.
        """
        weak = self.problem.penalty_value(self.W) < _WEAK_PENALTY * self.value
        return float(min(self.near, _CLOSING_DECREMENT_WEAK) if weak else self.near)

    def _finish(self, D: FloatArray, last: bool) -> bool:
        """Try to close the gap with the step D if it is the last; return whether it closed."""
        self.dual = Linearised(self.W, D)
        if not last or self.lam == 0.0 or (self.rough and self.run.stop.tol < _ROUGH_GAP):
            return False
        if self.run.close(self.W + D, self.dual):
            return True
        self.near *= 0.3
        self.run.check_limits()
        return False

    def _advance(
        self, D: FloatArray, decrement: float, step: int, last: bool, direction: Direction
    ) -> bool:
        """Move along D; return False if the method ends."""
        problem, W = self.problem, self.W
        trial = W + D
        share = decrement / self.value
        rough = direction.single and share**1.5 > _NEXT * self._last_decrement()
        new, g = problem.value_gradient(trial, rough)
        noise = decrement <= _FINE * self.value
        if not new <= (self.value * (1 + 1e-12) if noise else self.value - 1e-4 * decrement):
            if rough or self.rough:  # the values may be too inaccurate to compare
                direction.single = self.rough = False
                self.value, self.g = problem.value_gradient(W)
                return True
            trial = self._shorter(D)
            new, g = problem.value_gradient(trial)
            if not new < self.value:
                self.stuck = not noise
                return False
        self.W, self.value, self.g, self.rough = trial, new, g, rough
        self.stalls += noise
        self.run.record(new)
        if self.lam > 0.0:
            return self.stalls < _STALLS
        ends = last or new == 0.0
        refuse_separable(problem, trial, trial - W, ends or step % _RECESSION == 0)
        if ends:
            self.W = minimum_norm(problem, trial)
        return not ends and self.stalls < _STALLS

    def _shorter(self, D: FloatArray) -> FloatArray:
        """Return the best point of many shorter steps along D. One pass."""
        self.run.check_limits()
        steps = 0.5 ** np.arange(1.0, 25.0)
        with np.errstate(over="ignore", invalid="ignore"):
            values, _ = self.problem.along(self.W, D, steps)
            best = int(np.argmin(np.where(np.isfinite(values), values, np.inf)))
            out: FloatArray = self.W + steps[best] * D
        return out


def _direction(
    run: Run[CoupledProblem], seed: int, centre: FloatArray | None, few: bool, path: SoftmaxPath
) -> Direction:
    problem, data = run.problem, run.problem.data
    if _is_small(problem) or (problem.lam == 0.0 and problem.order * problem.k <= MOST_EXACT):
        return Exact(problem, centre)
    if few and problem.order * problem.k <= _MOST_EXACT_FEW:
        return Exact(problem, centre)
    if problem.packed and problem.lam > 0.0 and _work(problem) > _PACKED_WORK:
        return _packed_direction(run, seed, path)
    if data.location is Location.CLUSTER:  # the preconditioner is computed at the client
        m = limit_to_memory(max(_SAMPLE_LEAST, _SAMPLE_ROWS * data.d), data)
        return ConjugateGradients(problem, sample(problem, m, seed), run.check_limits)
    price = block_count(problem) * block_price(problem, data.n)
    share = min(_SAMPLE_SHARE, _SAMPLE_PRICE / price)
    m = max(_SAMPLE_LEAST, _SAMPLE_ROWS * data.d, int(data.n * share))
    some = problem if 2 * data.n <= 3 * m or price == np.inf else sample(problem, m, seed)
    return ConjugateGradients(problem, some, run.check_limits, run.stop.limited)


def _packed_direction(
    run: Run[CoupledProblem], seed: int, path: SoftmaxPath
) -> PackedConjugateGradients:
    """Set up conjugate gradients for many features and classes, and the sums that its sweeps need."""
    problem, data = run.problem, run.problem.data
    problem.sums_cross = True
    problem.keeps_probabilities = data.n * problem.k <= _KEPT
    single = _work(problem) >= _POLISH
    if path.covariance is None:
        path.covariance = _covariance(problem, seed)
    if path.pairs is None:
        most = min(_PAIRS, _PAIR_NUMBERS // (2 * problem.order * problem.k))
        path.pairs = CurvaturePairs(most)
    path.pairs.set_ridge(problem.lam)
    return PackedConjugateGradients(problem, path.covariance, path.pairs, run.check_limits, single)


def _covariance(problem: CoupledProblem, seed: int) -> Covariance:
    """Covariance of all rows or of a sample; with many features, in the span of few rows plus the mean rest."""
    data = problem.data
    if data.d > min(data.n, _MOST_FEATURES):
        at_hand = data.location is Location.MEMORY and data.n <= _MOST_FEATURES
        some = problem if at_hand else sample(problem, min(data.n, _MOST_FEATURES), seed)
        if data.n <= _MOST_FEATURES:
            return Covariance(some)
        first, second = (_every_other(some, k) for k in (0, 1))
        covariance = Covariance(first)
        covariance.leave_out(second)
        return covariance
    m = max(_SAMPLE_ROWS * data.d, _COVARIANCE_PRICE * data.n * problem.k // data.d)
    whole = 2 * m >= data.n and data.location is not Location.CLUSTER
    return Covariance(
        problem if whole else sample(problem, min(m, max(data.n // 4, _SAMPLE_LEAST)), seed)
    )


def _every_other(problem: CoupledProblem, first: int) -> CoupledProblem:
    rows = np.arange(first, problem.data.n, 2)
    return CoupledProblem(
        problem.loss, problem.penalty, problem.data.sample(rows), problem.fit_intercept
    )


def solve(
    problem: CoupledProblem, W: FloatArray, stop: Stop, seed: int = 0, few: bool = False
) -> Solution:
    """Run Newton's method from W (d+1, k); ``few``: minimise rounds instead of operations, for a cluster."""
    run = Run(problem, stop)
    W = zero_sum(W)  # smaller norm, with the same scores up to a constant for each row
    at_hand = problem.data.whole is not None
    if _is_small(problem) and problem.lam > 0.0 and at_hand and not stop.limited:
        precise, at, dual, sums = problem.newton(W, MAX_STEPS)
        if precise and run.close(at, dual, sums):
            return run.solution(Status.CERTIFIED, at, dual)
    polish = _work(problem) < _POLISH
    path = softmax_path.current(problem)
    W = path.extrapolate(W, problem.lam)
    start, centre = _pilot(problem, W, run, seed, few)
    method = _Newton(run, start, seed, polish, centre, few, path)
    solution = method.solve()
    if method.stuck and W.any():  # bad start: saturated exponentials leave H without curvature
        solution = _Newton(run, np.zeros_like(W), seed, polish, centre, few).solve()
    path.remember(problem.lam, solution.W)
    return solution


def solve_in_few_rounds(
    problem: CoupledProblem, W: FloatArray, stop: Stop, seed: int = 0
) -> Solution:
    """Solve on a cluster in few rounds: a larger pilot, and Hessians computed in the sweeps."""
    return solve(problem, W, stop, seed, few=True)
