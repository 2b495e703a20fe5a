"""Numerical tests of a loss: is it convex, and does it lie above the 0-1 loss?

Both evaluate finitely many margins. A failure comes with a witness that can be checked by hand; success means that no
witness was found among the margins tried, which the result reports.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from linsep.arrays import FloatArray
from linsep.losses.loss import Loss
from linsep.losses.piecewise_linear import ZeroOne

Function = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class ConvexityCheck:
    """Result of :func:`is_convex`; true or false in a condition.

    ``witness`` is (a, b, t) with l(t a + (1-t) b) > t l(a) + (1-t) l(b), and ``excess`` is the difference.
    """

    convex: bool
    witness: tuple[float, float, float] | None
    excess: float
    tried: tuple[float, float, int]

    def __bool__(self) -> bool:
        return self.convex

    def __str__(self) -> str:
        low, high, chords = self.tried
        if self.witness is None:
            return f"convex on {chords} tested chords in [{low:g}, {high:g}]"
        a, b, t = self.witness
        return f"not convex: at {t:g} * {a:g} + {1 - t:g} * {b:g} it lies {self.excess:g} above its chord"

    __repr__ = __str__


@dataclass(frozen=True)
class DominationCheck:
    """Result of :func:`dominates_zero_one`; true or false in a condition.

    ``margin`` is where the loss lies furthest below the 0-1 loss, and ``shortfall`` by how much.
    """

    dominates: bool
    margin: float | None
    shortfall: float
    tried: tuple[float, float, int]

    def __bool__(self) -> bool:
        return self.dominates

    def __str__(self) -> str:
        low, high, margins = self.tried
        if self.margin is None:
            return f"dominates the 0-1 loss at {margins} margins in [{low:g}, {high:g}]"
        return f"does not dominate: at margin {self.margin:g} it lies {self.shortfall:.6g} below the 0-1 loss"

    __repr__ = __str__


def _function(loss: Loss | Function) -> Function:
    return loss.value if isinstance(loss, Loss) else loss


def is_convex(
    loss: Loss | Function, low: float = -10.0, high: float = 10.0, chords: int = 20_000
) -> ConvexityCheck:
    """Test whether a loss is convex, on chords of all lengths between margins in [low, high].

    Half of the chords join neighbours of a regular grid and detect small dents; the other half join random margins and
    detect large ones (the seed is fixed). Differences within rounding are ignored.

    Parameters
    ----------
    loss : Loss or function
        A loss, or a function of an array of margins.
    low, high : float
        Range of margins.
    chords : int
        Number of chords to try.

    Returns
    -------
    ConvexityCheck
        True or false in a condition; holds a witness if the test failed.

    See Also
    --------
    dominates_zero_one : Does a loss lie above the 0-1 loss?

    Notes
    -----
    Jensen's inequality is ``l(t a + (1 - t) b) <= t l(a) + (1 - t) l(b)`` for ``0 <= t <= 1``.

    Examples
    --------
    >>> import numpy as np
    >>> from linsep import losses
    >>> bool(losses.is_convex(losses.Hinge())), bool(losses.is_convex(np.sin))
    (True, False)
    """
    function = _function(loss)
    half = max(chords // 2, 1)
    grid = np.linspace(low, high, half + 2)
    rng = np.random.default_rng(0)
    a = np.concatenate([grid[:-2], rng.uniform(low, high, half)])
    b = np.concatenate([grid[2:], rng.uniform(low, high, half)])
    t = np.concatenate([np.full(half, 0.5), rng.uniform(0.0, 1.0, half)])
    at_a, at_b = function(a), function(b)
    with np.errstate(invalid="ignore"):
        excess = function(t * a + (1 - t) * b) - (t * at_a + (1 - t) * at_b)
        forgiven = (
            64 * np.finfo(np.float64).eps * (np.abs(at_a) + np.abs(at_b) + np.abs(a) + np.abs(b))
        )
    excess = np.where(np.isinf(at_a) | np.isinf(at_b), -np.inf, excess)
    # a loss that is NaN somewhere counts as not convex
    worst = int(np.argmax(np.where(np.isnan(excess), np.inf, excess - forgiven)))
    tried = (low, high, 2 * half)
    if excess[worst] <= forgiven[worst]:
        return ConvexityCheck(True, None, 0.0, tried)
    return ConvexityCheck(
        False, (float(a[worst]), float(b[worst]), float(t[worst])), float(excess[worst]), tried
    )


def dominates_zero_one(
    loss: Loss | Function,
    ties: Literal["correct", "error"] = "error",
    low: float = -10.0,
    high: float = 10.0,
    margins: int = 20_001,
) -> DominationCheck:
    """Test whether a loss lies above the 0-1 loss, on a regular grid of margins that includes 0 and its neighbours.

    ``ties`` says how a zero margin counts, see :class:`ZeroOne`. The natural-log logistic loss is 0.693 at 0 and does
    not dominate under either convention; divided by log 2 it does.

    Parameters
    ----------
    loss : Loss or function
        A loss, or a function of an array of margins.
    ties : {"error", "correct"}
        How a zero margin counts; see :class:`ZeroOne`.
    low, high : float
        Range of margins.
    margins : int
        Number of margins to try.

    Returns
    -------
    DominationCheck
        True or false in a condition; holds the margin and the shortfall if the test failed.

    Raises
    ------
    BadInput
        If ``ties`` is neither "error" nor "correct".

    See Also
    --------
    is_convex : Is a loss convex?
    ZeroOne : The loss to compare with.

    References
    ----------
    Bartlett, Jordan and McAuliffe, Convexity, classification, and risk bounds, Journal of the American Statistical
    Association 101, 2006.

    Examples
    --------
    >>> from linsep import losses
    >>> bool(losses.dominates_zero_one(losses.Hinge())), bool(losses.dominates_zero_one(losses.Logistic()))
    (True, False)
    """
    tiny = float(np.finfo(np.float64).tiny)
    m = np.concatenate([np.linspace(low, high, margins), [-tiny, 0.0, tiny]])
    shortfall = ZeroOne(ties).value(m) - _function(loss)(m)
    shortfall = np.where(np.isnan(shortfall), np.inf, shortfall)
    worst = int(np.argmax(shortfall))
    tried = (low, high, len(m))
    if shortfall[worst] <= 4 * np.finfo(np.float64).eps:  # rounding of values near 1
        return DominationCheck(True, None, 0.0, tried)
    return DominationCheck(False, float(m[worst]), float(shortfall[worst]), tried)
