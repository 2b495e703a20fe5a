"""Upper bounds on the number of perceptron updates on separable rows.

For rows z_i and any v with y_i <v, z_i> > 0, let R = max |z_i|. Each update adds at least
m = min y_i <v, z_i> to <v, w_t> and at most R^2 to |w_t|^2; hence m t <= |v| |w_t| <= |v| R sqrt(t).
"""

from __future__ import annotations

import math
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from linsep.arrays import FloatArray
from linsep.bounds.bound import Bound, points, signs
from linsep.bounds.rounding import (
    Rational,
    fractions,
    largest,
    largest_square,
    rows_at,
    square,
    upwards,
)
from linsep.data import Memory
from linsep.errors import BadInput, LinsepError, Refused
from linsep.hyperplane import Hyperplane
from linsep.losses import Hinge
from linsep.penalties import ElasticNet
from linsep.problem.recipe import Recipe
from linsep.separability import Separable, decide
from linsep.train import train

_TOL = 1e-9  # relative gap of the hard-margin fits that propose hyperplanes
START = "updates start from w = 0 and happen only on rows with y <w, z> <= 0"


def mistake_bounds(w: Any, b: float | None, X: Any, y: Any) -> dict[str, Bound]:
    """Compute all mistake bounds of the perceptron from a separating hyperplane.

    The bounds hold for every separating hyperplane and are smallest for the one with the largest margin. With an
    intercept this is the margin of the rows (x, 1), since the perceptron learns b as the weight of a constant feature.

    Parameters
    ----------
    w : array (d,)
    b : float or None
        None for a perceptron without intercept; then z = x, otherwise z = (x, 1) and v = (w, b).
    X, y : array (n, d) and labels of two classes, the second in sorted order being positive

    Returns
    -------
    dict of Bound
        "angular": 1/gamma^2, gamma = min y <v, z>/(|v| |z|), for the update w += y z/|z|.
        "norm": (R B)^2, B = |v|/min y <v, z>, for the update w += y z.
        "margin": (R/rho)^2, rho = 1/B the margin; equal to "norm".
        With an intercept also "novikoff": (R^2 + 1)(1 + b^2)/gamma^2 with |w| = 1, R = max |x|, gamma
        the distance of the closest row; and "novikoff_printed": (2R/gamma)^2, which is wrong for the
        constant feature 1, see its assumptions.

    Raises
    ------
    BadInput
        If (w, b) does not separate the rows, or X or y is not usable.

    See Also
    --------
    best_mistake_bounds : From the best hyperplane.
    linsep.Perceptron : Makes the mistakes.

    References
    ----------
    Novikoff, On convergence proofs for perceptrons, 1962.

    Examples
    --------
    >>> from linsep.bounds import mistake_bounds
    >>> print(mistake_bounds([1.0], 0.0, [[2.0], [-2.0]], [1, -1])["norm"])
    mistakes, norm: updates <= 2
    """
    X = points(X)
    sigma = signs(y, len(X))
    w = np.ravel(np.asarray(w, dtype=np.float64))
    if w.shape != (X.shape[1],):
        raise BadInput(
            f"w must have {X.shape[1]} numbers, one for each column of X, got {w.shape}."
        )
    offset = 0.0 if b is None else float(np.squeeze(b))
    rows = _signed_rows(X, sigma, b is not None)
    v = w if b is None else np.append(w, offset)
    if not np.isfinite(v).all():
        raise BadInput("w and b must be finite.")
    margins = _Margins(rows, v)
    if not margins.least > 0:
        row = int(np.argmin(margins.m))
        raise BadInput(
            f"(w, b) does not separate the rows: y g(x) = {margins.m[row]:g} at row {row}. Mistake "
            "bounds exist for separable rows only; take (w, b) from a hard-margin fit."
        )
    norm = margins.norm_bound()
    found = {
        "angular": _bound(
            "angular",
            margins.angular_bound(),
            f"{START}; normalised update w += y z/|z|",
            "Novikoff 1962",
        ),
        "norm": _bound("norm", norm, f"{START}; update w += y z", "Novikoff 1962"),
        "margin": _bound("margin", norm, f"{START}; update w += y z", "Block 1962; Novikoff 1962"),
    }
    if b is not None and w.any():
        found |= _with_intercept(margins, X)
    return found


def _with_intercept(margins: _Margins, X: Any) -> dict[str, Bound]:
    true, printed = margins.novikoff_bounds(X)
    return {
        "novikoff": _bound(
            "novikoff",
            true,
            f"{START}; rows (x, 1), update w += y x, b += y",
            "Novikoff 1962 applied to (x, 1) and (w, b)",
        ),
        "novikoff_printed": _bound(
            "novikoff_printed",
            printed,
            f"{START}; rows (x, R), that is the update b += y R^2 of the intercept",
            "Cristianini and Shawe-Taylor 2000, theorem 2.3",
            "FALSE in general when the intercept is the weight of a constant feature 1",
        ),
    }


def _bound(name: str, value: float, assumptions: str, reference: str, caveat: str = "") -> Bound:
    name = f"mistakes, {name}"
    return Bound(name, float(value), "updates", 1.0, assumptions, reference, caveat=caveat)


class _Margins:
    """Margins <v, z> of signed rows z, and the bounds from v, in rational arithmetic and rounded upwards."""

    def __init__(self, rows: Any, v: FloatArray) -> None:
        self.rows, self.v = rows, fractions(v)
        self.length2 = square(self.v)
        with np.errstate(over="ignore", invalid="ignore"):
            self.m = np.asarray(rows @ v, dtype=np.float64).ravel()
            reach = np.asarray(abs(rows) @ np.abs(v), dtype=np.float64).ravel()
            self.error = (len(v) + 2) * 2.0**-52 * reach + len(v) * 2.0**-1000
            low, high = self.m - self.error, self.m + self.error
        self.least = -largest(-high, -low, lambda at: [-m for m in self._exactly(at)], len(v))

    def _exactly(self, places: Any) -> list[Fraction]:
        """Margins of the given rows without rounding."""
        return [
            sum((a * x for a, x in zip(self.v, row, strict=True)), Fraction(0))
            for row in rows_at(self.rows, places)
        ]

    def _least_square(self) -> Fraction:
        assert isinstance(self.least, Fraction)  # because it is positive
        return self.least**2

    def norm_bound(self) -> float:
        """(R B)^2 = (R/rho)^2, B = |v|/min <v, z>."""
        return upwards(largest_square(self.rows), self.length2 / self._least_square())

    def angular_bound(self) -> float:
        """1/gamma^2, gamma = min <v, z>/(|v| |z|)."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            lengths = _row_lengths(self.rows)
            slack = (len(self.v) + 4) * 2.0**-52
            low = (lengths * (1 - slack) / (self.m + self.error)) ** 2 * (1 - slack)
            high = (lengths * (1 + slack) / np.maximum(self.m - self.error, 0.0)) ** 2 * (1 + slack)
            high = np.where(lengths > 2.0**-500, high, np.inf)  # squares may have underflowed

        def exactly(places: Any) -> list[Rational]:
            rows = rows_at(self.rows, places)
            return [
                square(z) / m**2 if m > 0 else math.inf
                for z, m in zip(rows, self._exactly(places), strict=True)
            ]

        return upwards(largest(low, high, exactly, len(self.v)), self.length2)

    def novikoff_bounds(self, X: Any) -> tuple[float, float]:
        """(R^2 + 1)(1 + b^2)/gamma^2 and (2R/gamma)^2 for v = (w, b) divided by |w|."""
        R2, b2 = largest_square(X), self.v[-1] ** 2
        return (
            upwards(R2 + 1, self.length2 / self._least_square()),
            upwards(R2, 4 * (self.length2 - b2) / self._least_square()),
        )


def _best_margins(rows: Any, *proposed: FloatArray | None) -> list[_Margins]:
    """Margins of those of the proposed vectors that are proven to separate the rows."""
    found = [_Margins(rows, v) for v in proposed if v is not None and np.isfinite(v).all()]
    found = [each for each in found if each.least > 0]
    if not found:
        raise Refused(
            "The classes are separable, but float64 cannot tell by how much: too many rows are next to the hyperplane. "
            "Scale the columns of X."
        )
    return found


@dataclass(frozen=True)
class MistakeBounds:
    """Upper bounds on the number of perceptron updates on separable rows, for any order of corrections.

    Attributes
    ----------
    normalised : float
        1/gamma^2 for normalised updates, gamma the largest margin of the rows divided by their norms.
    radius_norm : float
        (R B)^2 for raw updates, B the smallest norm of a u with margins >= 1.
    radius_margin : float
        (R/rho)^2 with the margin rho = 1/B; equal to ``radius_norm``.
    novikoff : float
        (R^2 + 1)(1 + b^2)/gamma^2 for the hyperplane (w, b), |w| = 1, of the largest margin gamma of rows x of
        radius R; inf without an intercept.
    printed : float
        (2 R/gamma)^2, as often printed for the same hyperplane. It is *not* a bound if
        the intercept is learned as the weight of a constant feature 1.
    """

    normalised: float
    radius_norm: float
    radius_margin: float
    novikoff: float
    printed: float

    def __str__(self) -> str:
        text = f"at most {self.normalised:.6g} normalised or {self.radius_norm:.6g} raw updates"
        if math.isinf(self.novikoff):  # without an intercept there is one margin only
            return text
        return f"{text}; with the hyperplane of the largest margin {self.novikoff:.6g} raw updates"

    __repr__ = __str__


def best_mistake_bounds(X: Any, sign: FloatArray, fit_intercept: bool) -> MistakeBounds:
    """Compute the best mistake bounds for separable rows with labels -1 and +1.

    Each bound is smallest for a certain separating hyperplane. If rounding prevents finding it, the hyperplane that
    proves separability is used instead; the bounds hold for any.

    Parameters
    ----------
    X : array (n, d)
    sign : array (n,)
        Labels -1 and +1.
    fit_intercept : bool
        Whether the perceptron learns an intercept.

    Returns
    -------
    MistakeBounds

    Raises
    ------
    Refused
        If no hyperplane separates the rows, or the margin is below rounding; the message says which.

    See Also
    --------
    mistake_bounds : From a given hyperplane.
    linsep.Perceptron : Makes the mistakes.

    References
    ----------
    Novikoff, On convergence proofs for perceptrons, 1962.

    Examples
    --------
    >>> import numpy as np
    >>> from linsep.bounds import best_mistake_bounds
    >>> best_mistake_bounds(np.array([[2.0], [-2.0]]), np.array([1.0, -1.0]), False).radius_norm
    1.0
    """
    sign = np.asarray(sign, dtype=np.float64)
    plane = _a_separator(X, sign, fit_intercept)
    rows = _signed_rows(X, sign, fit_intercept)
    known = np.append(plane.w, plane.b) if fit_intercept else np.asarray(plane.w)
    lengths = _row_lengths(rows)
    scaled = sp.diags_array(1.0 / lengths) @ rows if sp.issparse(rows) else rows / lengths[:, None]
    every = np.ones(len(sign))
    shortest, angle = _widest(rows, every, False), _widest(scaled, every, False)
    norm = min(each.norm_bound() for each in _best_margins(rows, shortest, known))
    angular = min(each.angular_bound() for each in _best_margins(rows, angle, known))
    novikoff, printed = math.inf, 4.0 * norm
    if fit_intercept:
        proposed = _widest(X, sign, True)
        novikoff, printed = _best_margins(rows, proposed, known)[0].novikoff_bounds(X)
    return MistakeBounds(angular, norm, norm, novikoff, printed)


def _a_separator(X: Any, sign: FloatArray, fit_intercept: bool) -> Hyperplane:
    """Return a hyperplane that is proven to separate the rows."""
    with closing(Memory(X, sign)) as data:
        answer = decide(data, fit_intercept=fit_intercept)
    if not isinstance(answer, Separable):
        raise Refused(
            f"The number of updates has no proven bound: {answer}. The perceptron never stops on rows that no "
            "hyperplane separates."
        )
    return answer.hyperplane


def _widest(X: Any, sign: FloatArray, fit_intercept: bool) -> FloatArray | None:
    """Return w, or (w, b) with an intercept, of the largest margin; None if rounding prevents finding it.

    No bound relies on its optimality: each is computed from the smallest margin of the vector found, over all rows.
    """
    recipe = Recipe(Hinge(), ElasticNet(math.inf), fit_intercept, _TOL)
    try:
        with closing(Memory(X, sign)) as data:
            found: FloatArray = train(recipe, data, warn=False).W[:, 0]
    except LinsepError:
        return None
    return found if fit_intercept else found[:-1]


def _signed_rows(X: Any, sign: FloatArray, fit_intercept: bool) -> Any:
    """Return the rows y (x, 1), or y x without an intercept."""
    if sp.issparse(X):
        parts = [X, np.ones((X.shape[0], 1))] if fit_intercept else [X]
        return (sp.diags_array(sign) @ sp.hstack(parts)).tocsr()
    rows = np.asarray(X, dtype=np.float64)
    if fit_intercept:
        rows = np.column_stack([rows, np.ones(len(rows))])
    return sign[:, None] * rows


def _row_lengths(rows: Any) -> FloatArray:
    """Euclidean norm of each row."""
    square = rows.multiply(rows) if sp.issparse(rows) else np.square(rows, dtype=np.float64)
    return np.sqrt(np.asarray(square.sum(axis=1), dtype=np.float64)).ravel()
