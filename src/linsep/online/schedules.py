"""Step sizes eta_k of stochastic descent, k = 0, 1, 2, ..., and a test of the Robbins-Monro conditions.

The iterates converge for any noise of bounded variance if (Robbins and Monro 1951)

    sum_k eta_k = inf       so that the minimum can be reached from any starting point, and
    sum_k eta_k^2 < inf     so that the noise averages out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from linsep.arrays import FloatArray, IntArray
from linsep.errors import BadInput

Schedule = Callable[[Any], Any]

#: Name -> (sum of the steps is infinite, sum of their squares is finite); proven by comparison with k^-p.
NAMED = {"constant": (True, False), "inverse": (True, True), "inverse_sqrt": (True, False)}
#: scikit-learn's names for learning rates -> what to use here.
_OF_SKLEARN = {
    "optimal": "'inverse'",
    "invscaling": "a function, for instance lambda k: 0.01 / (k + 1) ** 0.25",
    "adaptive": "'inverse_sqrt'",
}
_OCTAVES = range(10, 41)  # steps 2^10 to 2^41, which represent the tail of a schedule
_POINTS = 256  # sampled steps per octave
_LEVEL = 1e-3  # log ratio of two octaves below which they count as equal


@dataclass(frozen=True)
class ScheduleCheck:
    """Whether step sizes satisfy the two Robbins-Monro conditions.

    Attributes
    ----------
    steps_diverge : bool
        sum eta = inf.
    squares_converge : bool
        sum eta^2 < inf.
    proven : bool
        True for the named schedules; for a function, the result is only numerical evidence.
    """

    steps_diverge: bool
    squares_converge: bool
    proven: bool

    @property
    def satisfied(self) -> bool:
        """Whether both conditions hold."""
        return self.steps_diverge and self.squares_converge

    def __str__(self) -> str:
        verb = "proven" if self.proven else "suggested by steps up to 2^41, not proven"
        first = "=" if self.steps_diverge else "<"
        second = "<" if self.squares_converge else "="
        return f"sum eta {first} inf, sum eta^2 {second} inf ({verb})"

    __repr__ = __str__


def check_schedule(schedule: str | Schedule) -> ScheduleCheck:
    """Check whether a schedule satisfies the conditions of Robbins and Monro.

    Parameters
    ----------
    schedule : {"constant", "inverse", "inverse_sqrt"} or callable
        A callable maps the step number k = 0, 1, 2, ... to a step size. It is tested numerically: if the sums over
        [2^j, 2^(j+1)) stop decreasing, the series is assumed to diverge. This is right for powers of k, but cannot
        detect logarithmic factors.

    Returns
    -------
    ScheduleCheck
        Whether sum eta_k = inf and sum eta_k^2 < inf, and whether that is proven.

    Raises
    ------
    BadInput
        If the schedule is unknown, or the callable fails or returns something other than finite numbers >= 0.

    See Also
    --------
    SGDClassifier : Uses the schedule.

    References
    ----------
    Robbins and Monro, A stochastic approximation method, Annals of Mathematical Statistics 22, 1951.

    Examples
    --------
    >>> from linsep import check_schedule
    >>> print(check_schedule("inverse"))
    sum eta = inf, sum eta^2 < inf (proven)
    >>> print(check_schedule(lambda k: 1 / (k + 1) ** 0.4))
    sum eta = inf, sum eta^2 = inf (suggested by steps up to 2^41, not proven)
    """
    if isinstance(schedule, str):
        check_name(schedule)
        return ScheduleCheck(*NAMED[schedule], proven=True)
    plain, squares = [], []
    for j in _OCTAVES:
        k = 2**j + np.arange(_POINTS) * (2**j // _POINTS)
        eta = sizes(schedule, k.astype(np.int64))
        plain.append(2.0**j * float(np.mean(eta)))
        squares.append(2.0**j * float(np.mean(eta * eta)))
    return ScheduleCheck(not _falls(plain), _falls(squares), proven=False)


def check_name(schedule: str) -> str:
    """Return the name of a schedule, or raise if it is unknown."""
    if schedule not in NAMED:
        names = ", ".join(map(repr, NAMED))
        theirs = (
            f", a learning rate of scikit-learn: use {_OF_SKLEARN[schedule]}"
            if schedule in _OF_SKLEARN
            else ""
        )
        raise BadInput(
            f"schedule must be one of {names} or a function of k, got {schedule!r}{theirs}."
        )
    return schedule


def sizes(schedule: Schedule, k: IntArray) -> FloatArray:
    """Step sizes eta_k for an array of step numbers; a function of single numbers is called for each."""
    eta: Any
    try:
        eta = np.asarray(schedule(k), dtype=np.float64)
    except (TypeError, ValueError, ArithmeticError):
        eta = None  # the function compares or rounds, so it accepts only single numbers
    if eta is None or eta.shape != k.shape:
        eta = np.array([_size(schedule, int(one)) for one in k])
    bad = ~(np.isfinite(eta) & (eta >= 0.0))
    if bad.any():
        at = int(np.argmax(bad))
        raise BadInput(
            f"schedule must return finite step sizes >= 0, got {eta[at]} at step k = {k[at]}."
        )
    return np.ascontiguousarray(eta)


def _size(schedule: Schedule, k: int) -> float:
    try:
        return float(schedule(k))
    except Exception as error:  # a user's function may raise anything
        raise BadInput(f"schedule fails at step k = {k}: {error}.") from error


def _falls(sums: list[float]) -> bool:
    """Return whether sums over octaves decrease geometrically at the end, so that their series converges."""
    last, before = sums[-1], sums[-9]
    if last == 0.0:
        return True
    return math.log(last / before) / 8.0 < -_LEVEL if before > 0.0 else False


@dataclass(frozen=True, eq=False)
class StepSizes:
    """Step sizes eta_k of each column: eta0, eta0/(1 + decay k), eta0/sqrt(1 + decay k), or a function of k."""

    schedule: str | Schedule
    eta0: FloatArray
    decay: FloatArray

    def for_kernel(self, first: int, count: int) -> tuple[str, FloatArray, FloatArray]:
        """Name, eta0 and decay as arguments of the compiled steps."""
        if isinstance(self.schedule, str):
            return self.schedule, self.eta0, self.decay
        return "listed", sizes(self.schedule, np.arange(first, first + count)), self.decay

    def table(self, first: int, count: int) -> FloatArray:
        """Step sizes of the steps first, first + 1, ..., (count, columns)."""
        k = np.arange(first, first + count)
        if not isinstance(self.schedule, str):
            return np.repeat(sizes(self.schedule, k)[:, None], len(self.decay), axis=1)
        growth = 1.0 + np.multiply.outer(k, self.decay)
        power = {"constant": 0.0, "inverse": 1.0, "inverse_sqrt": 0.5}[self.schedule]
        eta: FloatArray = self.eta0 / growth**power
        return eta
