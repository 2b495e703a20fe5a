"""Cost model of the methods: work of one iteration times a fitted number of iterations.

A method declares the work of one iteration as counts (``Work``). ``prices.json`` holds the price of each count in
nanoseconds and, for every method and kind of loss, a log-normal model of the number of iterations, called a law: its
logarithm has a mean linear in ``terms``, clipped to the range seen in calibration. The prediction is the expectation,
so that of two methods with the same median the less variable one is chosen. ``make calibrate`` measures prices and laws
on one thread; they are committed, so a choice depends on the problem alone, not on the machine. The file is JSON
because Python 3.10 has no TOML parser.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from linsep.losses import Loss
from linsep.solvers.cost.shape import Shape

#: Counts by name: calls (from Python), rows (loss evaluations of a sweep), reads (entries of X read in a sweep),
#: vectors (entries in operations on vectors of length d), visits (rows of an epoch of coordinate ascent), visited
#: (their entries), and the multiply-adds of gram (a weighted Gram matrix), factors (a Cholesky factorisation) and
#: products (a matrix product). A prefix "sparse " or "single " names storage or precision.
Work = Mapping[str, float]
Declared = Callable[[Shape], Work]

#: Predictors of the laws, as decimal logarithms but for "sparse"; laws are linear in ``terms``.
FEATURES = ("hardness", "digits", "n", "d", "sparse", "correlation")
RECEDING, QUADRATIC, KINKED = "receding", "quadratic", "kinked"


def sweeps(shape: Shape, count: float) -> Work:
    """Return the work of ``count`` sweeps over the rows."""
    rows, reads = shape.storage + "rows", shape.storage + "reads"
    return {rows: count * shape.n, reads: count * shape.entries}


def kind_of(loss: Loss) -> str:
    """Return the kind of a loss: receding (such as logistic), otherwise smooth, or with a kink. Each has its laws."""
    if not loss.smooth:
        return KINKED
    return RECEDING if loss.recedes else QUADRATIC


def features(shape: Shape, tol: float) -> tuple[float, ...]:
    """Return the predictors listed in ``FEATURES``; dense rows with mostly zeros count as sparse."""
    return (
        math.log10(min(max(shape.hardness, 1e-9), 1e12)),
        -math.log10(max(tol, 1e-15)),
        math.log10(max(1, shape.n)),
        math.log10(max(1, shape.d)),
        float(shape.sparse or shape.kept < 1.0),
        math.log10(max(1.0, shape.correlation)),
    )


def terms(at: tuple[float, ...]) -> tuple[float, ...]:
    """Return 1, the predictors, and products of hardness, rows per feature and correlation."""
    hard, tall, related = at[0], at[2] - at[3], at[5]
    return (1.0, *at, hard * hard, hard * tall, tall * tall, related * hard, related * tall)


@dataclass(frozen=True)
class Law:
    """Law of the iterations: their logarithm is normal with mean coefficients . terms, clipped to [least, most]."""

    coefficients: tuple[float, ...]
    least: float
    most: float
    spread: float = 0.0  #: standard deviation in calibration; 0 if the method hands over when slow

    def iterations(self, at: tuple[float, ...]) -> float:
        """Expected number of iterations, exp(mean + spread^2/2)."""
        found = sum(c * x for c, x in zip(self.coefficients, at, strict=True))
        return math.exp(min(max(found, self.least), self.most) + 0.5 * self.spread**2)


@dataclass(frozen=True)
class Prices:
    """Contents of prices.json."""

    nanoseconds: Mapping[str, float]  #: price of each count
    laws: Mapping[tuple[str, str], Law]  #: by method and kind of loss
    #: Smallest and largest value of each predictor in calibration.
    ranges: tuple[tuple[float, float], ...]

    def terms(self, shape: Shape, tol: float) -> tuple[float, ...]:
        """Return the terms of the laws for a shape; predictors are clipped to the range of calibration."""
        within = zip(features(shape, tol), self.ranges, strict=True)
        return terms(tuple(min(max(x, lo), hi) for x, (lo, hi) in within))

    def iteration(self, work: Declared, shape: Shape) -> float:
        """Predicted processor time of one iteration [s]."""
        price = self.nanoseconds
        return 1e-9 * sum(price[name] * count for name, count in work(shape).items())

    def assumed(self, shape: Shape) -> Shape:
        """Return the shape, with the middle of the calibrated range if its hardness is unknown."""
        if not math.isnan(shape.hardness):
            return shape
        lo, hi = self.ranges[0]
        return replace(shape, hardness=10.0 ** (0.5 * (lo + hi)))


def parse(text: str) -> Prices:
    """Parse the text of a price file (JSON)."""
    given: dict[str, Any] = json.loads(text)
    laws = {
        (method, kind): Law(tuple(law["coefficients"]), law["least"], law["most"], law["spread"])
        for method, kinds in given["laws"].items()
        for kind, law in kinds.items()
    }
    ranges = tuple((lo, hi) for lo, hi in given["ranges"].values())
    return Prices(given["prices"], laws, ranges)


@cache
def prices() -> Prices:
    """Return the prices shipped with this version, read once."""
    return parse(files(__package__).joinpath("prices.json").read_text(encoding="utf-8"))
