"""The result of every bound: a number with its assumptions and confidence level."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from linsep.arrays import FloatArray
from linsep.errors import BadInput


@dataclass(frozen=True)
class Bound:
    """A bound: a number with its assumptions, its confidence level, and whether it is vacuous.

    Attributes
    ----------
    name : str
    value : float
        ``float(bound)`` is this number.
    of : str
        What is bounded: "error", "risk", "updates" or "rows".
    holds_with : float
        Confidence level, over the draw of the rows; 1 for a fact about the given rows.
    assumptions : str
        Conditions under which it holds, and caveats.
    reference : str
        The theorem and its source.
    trivial : float
        Value that is known without a theorem: for an error 1/2 or the fraction of the rarer class. A bound that is
        not smaller is ``vacuous``. inf if there is none.
    sign : {"<=", ">="}
    caveat : str
        Why it is not a guarantee, if there is a reason; always printed.
    """

    name: str
    value: float
    of: str
    holds_with: float
    assumptions: str
    reference: str
    trivial: float = math.inf
    sign: str = "<="
    caveat: str = ""

    @property
    def vacuous(self) -> bool:
        """Whether a constant prediction is known to be as good."""
        return self.value >= self.trivial

    def __float__(self) -> float:
        return float(self.value)

    def __int__(self) -> int:
        return math.floor(self.value)

    def __str__(self) -> str:
        text = f"{self.name}: "
        text += (
            self._format_value()
            if self.of == "rows"
            else f"{self.of} {self.sign} {self._format_value()}"
        )
        if self.holds_with < 1:
            text += f" at confidence {self.holds_with:g}"
        if self.vacuous:
            text += f" (vacuous: the trivial bound is {self.trivial:g})"
        return f"{text}; {self.caveat}" if self.caveat else text

    __repr__ = __str__

    def _format_value(self) -> str:
        """Format errors and risks with four decimals, counts as integers, rounded to the unfavourable side."""
        if self.of not in ("error", "risk"):
            return str(math.ceil(self.value * (1 - 1e-12)))  # 484.0000000002 is 484 and rounding
        away = math.ceil if self.sign == "<=" else math.floor
        return f"{away(self.value * 10**4) / 10**4:.4f}"

    def explain(self) -> str:
        """Return the bound with its assumptions and its reference as a few lines of text."""
        return f"{self}\n  assumes: {self.assumptions}\n  theorem: {self.reference}"


def share(name: str, value: Any, low_open: bool = False) -> float:
    """Return ``value`` as a float, checked to lie in [0, 1], or in (0, 1) if ``low_open``."""
    number = float(value)
    inside = 0 < number < 1 if low_open else 0 <= number <= 1
    if not inside:
        raise BadInput(f"{name} must lie in {'(0, 1)' if low_open else '[0, 1]'}, got {value!r}.")
    return number


def confidence(delta: float) -> float:
    """Return 1 - delta as a float below 1, however small delta is."""
    return min(1 - delta, math.nextafter(1.0, 0.0))


def count(name: str, value: Any, low: int = 1) -> int:
    """Return ``value`` as an int, checked to be a whole number of at least ``low``."""
    if isinstance(value, bool) or not float(value).is_integer() or int(value) < low:
        raise BadInput(f"{name} must be a whole number of at least {low}, got {value!r}.")
    return int(value)


def guess(minority: float | None) -> float:
    """Error of the better constant prediction: ``minority`` if known, at most 1/2."""
    return 0.5 if minority is None else min(0.5, share("minority", minority))


def points(X: Any, name: str = "X") -> FloatArray:
    """Return X as a float64 array (n, d), checked to be finite with n, d >= 1."""
    try:
        array = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BadInput(
            f"{name} must be a dense array of numbers, got {type(X).__name__}."
        ) from error
    if array.ndim != 2 or 0 in array.shape:
        raise BadInput(f"{name} must have shape (n, d) with n, d >= 1, got shape {array.shape}.")
    if not np.isfinite(array).all():
        row = int(np.nonzero(~np.isfinite(array).all(axis=1))[0][0])
        raise BadInput(f"{name} must be finite, row {row} is not.")
    return array


def signs(y: Any, n: int) -> FloatArray:
    """Return labels of two classes as -1 and +1; the second class in sorted order is +1."""
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise BadInput(f"y must have one label for each of {n} rows, got shape {labels.shape}.")
    classes = np.unique(labels)
    if len(classes) != 2 and not set(classes.tolist()) <= {-1, 1}:
        raise BadInput(f"y must have two classes (or be -1 and +1), it has {len(classes)}.")
    return np.where(labels == (1 if len(classes) == 1 else classes[1]), 1.0, -1.0)
