"""Predicted time of a method: counts of what one iteration does, times a fitted number of iterations.

A method declares the work of one iteration as counts (``Work``). ``prices.json`` holds the price of each count in
nanoseconds and, for every method and kind of loss, one law for the number of iterations: log-normal about the
exponential of a linear function of ``terms``, between the least and the greatest number that calibration has seen.
What is predicted is the mean, so that of two methods with the same median the one that varies less is chosen. Prices
and laws are measured by ``make calibrate`` on one thread and committed, so a choice depends on the problem alone, not
on the machine. The file is JSON because Python 3.10 reads no TOML.
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

#: Counts by name: calls from Python, rows of a sweep (the loss at each), reads (entries of X in a sweep), vectors
#: (numbers in products of vectors of d), visits (rows of an epoch of coordinate ascent), visited (their entries), gram
#: (multiply-adds of a weighted Gram matrix), factors (of a Cholesky factor), products (of a matrix product). A prefix
#: "sparse " or "single " names storage or precision.
Work = Mapping[str, float]
Declared = Callable[[Shape], Work]

#: Quantities of which laws are made, logarithms decimal; ``terms`` lists the products of them that laws are linear in.
FEATURES = ("hardness", "digits", "n", "d", "sparse", "correlation")
RECEDING, QUADRATIC, KINKED = "receding", "quadratic", "kinked"


def sweeps(shape: Shape, count: float) -> Work:
    """Counts of so many sweeps over the rows."""
    return {"rows": count * shape.n, shape.storage + "reads": count * shape.entries}


def kind_of(loss: Loss) -> str:
    """Kind of loss that has laws of its own: receding (logistic), otherwise smooth, or with a kink."""
    if not loss.smooth:
        return KINKED
    return RECEDING if loss.recedes else QUADRATIC


def features(shape: Shape, tol: float) -> tuple[float, ...]:
    """Features of a problem, by the names of ``FEATURES``; dense rows of mostly zeros count as sparse."""
    return (
        math.log10(min(max(shape.hardness, 1e-9), 1e12)),
        -math.log10(max(tol, 1e-15)),
        math.log10(max(1, shape.n)),
        math.log10(max(1, shape.d)),
        float(shape.sparse or shape.kept < 1.0),
        math.log10(max(1.0, shape.correlation)),
    )


def terms(at: tuple[float, ...]) -> tuple[float, ...]:
    """1, the features, and products of hardness, rows per feature and correlation."""
    hard, tall, related = at[0], at[2] - at[3], at[5]
    return (1.0, *at, hard * hard, hard * tall, tall * tall, related * hard, related * tall)


@dataclass(frozen=True)
class Law:
    """log(iterations) = coefficients . terms, within bounds, and normally distributed about that."""

    coefficients: tuple[float, ...]
    least: float
    most: float
    spread: float = 0.0  #: standard deviation in calibration; 0 for a method that hands over where it takes long

    def iterations(self, at: tuple[float, ...]) -> float:
        """Expected iterations for these terms: more than their median where they vary much."""
        found = sum(c * x for c, x in zip(self.coefficients, at, strict=True))
        return math.exp(min(max(found, self.least), self.most) + 0.5 * self.spread**2)


@dataclass(frozen=True)
class Prices:
    """Contents of prices.json."""

    nanoseconds: Mapping[str, float]  #: price of each count
    laws: Mapping[tuple[str, str], Law]  #: by method and kind of loss
    #: Least and greatest value of each feature in calibration.
    ranges: tuple[tuple[float, float], ...]

    def terms(self, shape: Shape, tol: float) -> tuple[float, ...]:
        """Terms of the laws at a shape; features outside the range of calibration count as its ends."""
        within = zip(features(shape, tol), self.ranges, strict=True)
        return terms(tuple(min(max(x, lo), hi) for x, (lo, hi) in within))

    def iteration(self, work: Declared, shape: Shape) -> float:
        """Predicted processor time of one iteration [s]."""
        price = self.nanoseconds
        return 1e-9 * sum(price[name] * count for name, count in work(shape).items())

    def assumed(self, shape: Shape) -> Shape:
        """Shape with a middling hardness if it is unknown, as that of rows elsewhere is."""
        if not math.isnan(shape.hardness):
            return shape
        lo, hi = self.ranges[0]
        return replace(shape, hardness=10.0 ** (0.5 * (lo + hi)))


def parse(text: str) -> Prices:
    """Prices from the text of a JSON file."""
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
    """Prices of this version, read once."""
    return parse(files(__package__).joinpath("prices.json").read_text(encoding="utf-8"))
