"""Newton's method for the multinomial loss, k >= 3 classes, with the Newton-dual certificate.

::

    min_W  lam/2 |W_w|^2 + sum_i s_i (logsumexp(z_i) - z_{i,y_i}),     z_i = W'(x_i, 1)

A step D at W gives the dual point p~ = p + (diag p - p p') dz. The Newton equations make X'(s U), U = onehot(y) - p~,
equal to lam (W + D) up to the residual of the linear solve, so the duality gap is the Fenchel-Young slack of
the losses, of fourth order in the step. Far from the optimum steps are rough; the pass that closes the gap
takes the place of a sweep once the step is short. From W = 0 the unit step is nearly always good (logsumexp
is self-concordant-like: Bach 2010); when P would not fall enough, one pass tries many shorter ones.

Many rows per feature: a pilot on a sample of the rows, in which every class is present, is solved first.
"""

from __future__ import annotations

import numpy as np

from linsep.arrays import FloatArray
from linsep.data import Location
from linsep.problem.coupled import CoupledProblem
from linsep.solution import Linearised, Solution, Status, Stop
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
from linsep.solvers.multiclass.softmax_recession import refuse_separable, shortest
from linsep.solvers.run import LimitReached, Run
from linsep.solvers.sampling import bounded, draw_by_class, evenly

MAX_STEPS = 200
_POLISH = 1_000_000  # n d k below which the answer is taken to working precision
_FINE = 1e-13  # decrement, as a share of P, of a polished answer
_FINEST = 1e-18  # the same without a penalty, where only the step itself can prove anything
_CLOSING_DECREMENT = 0.3  # the gap after a step is up to ten times the square of its decrement
# A penalty below this share of P is weak; the closing decrement then.
_WEAK_PENALTY, _CLOSING_DECREMENT_WEAK = 1e-5, 1e-3
_PILOT_WORK = 4_000_000  # n d k from which a pilot pays
_PILOT_TOL = 1e-3
_MOST_EXACT_FEW = 1500  # unknowns whose Hessian is formed where rounds count
_PILOT_SHARE_FEW = 0.5  # of the rows, likewise
_PILOT_ENTRIES_FEW = 1 << 20  # of a pilot, likewise: 8 MB at least
_PILOT_ROWS = 50  # per unknown: the pilot's optimum then exceeds the minimum by 1 % of a row's loss
_PILOT_SHARE = 0.15  # of the rows, at most
_SAMPLE_ROWS = 8  # per feature, for the preconditioner
_SAMPLE_LEAST = 2048
_SAMPLE_SHARE = 1 / 16  # of the rows, at most: they lie in memory even if the others are on disk
_SAMPLE_PRICE = 3  # products that the blocks may cost before fewer rows are taken
_PACKED_WORK = 20_000_000  # n d k from which the Kronecker preconditioner pays
_KEPT = 1 << 23  # probabilities that are kept: 64 MB; more are computed again in every product
_MOST_FEATURES = 4096  # whose covariance is decomposed: of more, only what as many rows span
_COVARIANCE_PRICE = 4  # rows of the covariance may cost as much as two products
_PER_CLASS = 20  # rows of each class in a sample, at least (all of them if there are fewer)
_COMMON = 100  # the same from which a sample of all rows will do
_STALLS = 3  # steps of rounding noise that are enough
_RECESSION = 8  # without a penalty: every so many steps missing minimisers are looked for


def _work(problem: CoupledProblem) -> int:
    """Multiply-adds of a pass, up to a factor: n d k for dense rows."""
    return problem.data.n_entries * problem.k


def _is_small(problem: CoupledProblem) -> bool:
    return _work(problem) < _POLISH and problem.order * problem.k <= MOST_EXACT


def sample(problem: CoupledProblem, m: int, seed: int) -> CoupledProblem:
    """The problem on about m rows, drawn evenly through each class and counted for those they stand for.

    Where no class is rare they are drawn from all rows alike.
    """
    data, m = problem.data, bounded(m, problem.data)
    rng, counts = np.random.default_rng(seed), problem.data.counts(problem.k)
    if m < data.n and m * int(counts.min()) >= _COMMON * data.n:
        drawn = data.sample(evenly(data.n, m, rng))
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
    """The optimum of a pilot to three digits, where that saves passes, and the centre of its rows."""
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
    """Newton's method on one problem: where it stands, and the next step."""

    def __init__(
        self,
        run: Run[CoupledProblem],
        W: FloatArray,
        seed: int,
        polish: bool,
        centre: FloatArray | None = None,
        few: bool = False,
    ) -> None:
        self.run, self.problem, self.lam = run, run.problem, run.problem.lam
        self.W, self.seed, self.centre, self.few = W, seed, centre, few
        self.value, self.g = np.inf, W
        self.dual = Linearised(W, np.zeros_like(W))
        self.to_the_end = polish or self.lam == 0.0
        self.fine = _FINEST if self.lam == 0.0 else _FINE  # of the last decrement, if to the end
        self.near = _CLOSING_DECREMENT * np.sqrt(run.stop.tol)
        self.stalls = 0  # steps that found only rounding noise
        self.stuck = False

    def solve(self) -> Solution:
        """Until the gap is closed, nothing moves any more, or a limit is reached."""
        status = Status.WORKING_PRECISION
        try:
            with self.run.in_time():
                direction = _direction(self.run, self.seed, self.centre, self.few)
                self._start()
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
                    if not self._advance(D, decrement, step, last) or self.stalls >= _STALLS:
                        break
                if status is not Status.CERTIFIED and self.lam > 0.0:
                    if self.run.close(self.W, self.dual):  # nothing moves any more
                        status = Status.CERTIFIED
        except LimitReached as limit:
            status = limit.status
        except np.linalg.LinAlgError:
            self.stuck = True
        return self.run.solution(status, self.W, self.dual)

    def _start(self) -> None:
        """The first evaluation; W = 0, whose value is known, is never worse than the start."""
        problem = self.problem
        self.value, self.g = problem.start(self.W)
        flat = np.log(problem.k) * problem.data.total_weight()
        if self.W.any() and not self.value <= flat:
            self.W = np.zeros_like(self.W)
            self.value, self.g = problem.value_gradient(self.W)
        self.run.record(self.value)

    def _target(self) -> Target:
        """The accuracy of the next step."""
        end, P = self.to_the_end, self.value
        relative = 1e-6 if end else 1e-9
        return Target(P, self.lam, self.run.stop.tol, self._last_decrement() * P, relative, end)

    def _last_decrement(self) -> float:
        """Share of P below which the decrement of a last step lies.

        Rows whose dual point leaves the simplex unbalance V, at the price of 1/lam: a weak penalty wants a step that
        no row follows so far.
        """
        weak = self.problem.penalty_value(self.W) < _WEAK_PENALTY * self.value
        return float(min(self.near, _CLOSING_DECREMENT_WEAK) if weak else self.near)

    def _finish(self, D: FloatArray, last: bool) -> bool:
        """Take the step D if it is the last and closes the gap."""
        self.dual = Linearised(self.W, D)
        if not last or self.lam == 0.0:
            return False
        if self.run.close(self.W + D, self.dual):
            return True
        self.near *= 0.3
        self.run.check_limits()
        return False

    def _advance(self, D: FloatArray, decrement: float, step: int, last: bool) -> bool:
        """Move along D; False at the end of the road."""
        problem, W = self.problem, self.W
        trial = W + D
        new, g = problem.value_gradient(trial)
        noise = decrement <= _FINE * self.value
        if not new <= (self.value * (1 + 1e-12) if noise else self.value - 1e-4 * decrement):
            trial = self._shorter(D)
            new, g = problem.value_gradient(trial)
            if not new < self.value:
                self.stuck = not noise
                return False
        self.W, self.value, self.g = trial, new, g
        self.stalls += noise
        self.run.record(new)
        if self.lam > 0.0:
            return True
        ends = last or new == 0.0
        refuse_separable(problem, trial, trial - W, ends or step % _RECESSION == 0)
        if ends:
            self.W = shortest(problem, trial)
        return not ends

    def _shorter(self, D: FloatArray) -> FloatArray:
        """The best of many steps along D: one pass."""
        self.run.check_limits()
        steps = 0.5 ** np.arange(1.0, 25.0)
        with np.errstate(over="ignore", invalid="ignore"):
            values, _ = self.problem.along(self.W, D, steps)
            best = int(np.argmin(np.where(np.isfinite(values), values, np.inf)))
            out: FloatArray = self.W + steps[best] * D
        return out


def _direction(
    run: Run[CoupledProblem], seed: int, centre: FloatArray | None, few: bool
) -> Exact | ConjugateGradients | PackedConjugateGradients:
    problem, data = run.problem, run.problem.data
    if _is_small(problem) or (problem.lam == 0.0 and problem.order * problem.k <= MOST_EXACT):
        return Exact(problem, centre)
    if few and problem.order * problem.k <= _MOST_EXACT_FEW:
        return Exact(problem, centre)
    if problem.packed and problem.lam > 0.0 and _work(problem) > _PACKED_WORK:
        return _packed_direction(run, seed)
    if data.location is Location.CLUSTER:  # products with a preconditioner that is made here
        m = bounded(max(_SAMPLE_LEAST, _SAMPLE_ROWS * data.d), data)
        return ConjugateGradients(problem, sample(problem, m, seed), run.check_limits)
    price = block_count(problem) * block_price(problem, data.n)
    share = min(_SAMPLE_SHARE, _SAMPLE_PRICE / price)
    m = max(_SAMPLE_LEAST, _SAMPLE_ROWS * data.d, int(data.n * share))
    some = problem if 2 * data.n <= 3 * m or price == np.inf else sample(problem, m, seed)
    return ConjugateGradients(problem, some, run.check_limits, run.stop.limited)


def _packed_direction(run: Run[CoupledProblem], seed: int) -> PackedConjugateGradients:
    """Conjugate gradients for many features and classes, and what its sweeps must add up."""
    problem, data = run.problem, run.problem.data
    problem.sums_cross = True
    problem.keeps_probabilities = data.n * problem.k <= _KEPT
    single = _work(problem) >= _POLISH
    return PackedConjugateGradients(problem, _covariance(problem, seed), run.check_limits, single)


def _covariance(problem: CoupledProblem, seed: int) -> Covariance:
    """The covariance of all rows or of a sample; of many features, by few rows and what they leave out."""
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
    """Newton's method from W (d+1, k); ``few``: few rounds count more than few operations."""
    run = Run(problem, stop)
    W = zero_sum(W)  # shorter, and the same scores up to a number for each row
    at_hand = problem.data.whole is not None
    if _is_small(problem) and problem.lam > 0.0 and at_hand and not stop.limited:
        precise, at, dual, sums = problem.newton(W, MAX_STEPS)
        if precise and run.close(at, dual, sums):
            return run.solution(Status.CERTIFIED, at, dual)
    polish = _work(problem) < _POLISH
    start, centre = _pilot(problem, W, run, seed, few)
    method = _Newton(run, start, seed, polish, centre, few)
    solution = method.solve()
    if method.stuck and W.any():  # a bad start: exponentials saturate, and H says nothing there
        solution = _Newton(run, np.zeros_like(W), seed, polish, centre, few).solve()
    return solution


def solve_in_few_rounds(
    problem: CoupledProblem, W: FloatArray, stop: Stop, seed: int = 0
) -> Solution:
    """Solve on a cluster in few rounds: a larger pilot, and Hessians computed in the sweeps."""
    return solve(problem, W, stop, seed, few=True)
