"""How many updates can a perceptron make on separable rows?

For rows z_i and any v with y_i <v, z_i> > 0, write R = max |z_i|. Each update adds at least
m = min y_i <v, z_i> to <v, w_t> and at most R^2 to |w_t|^2; hence m t <= |v| |w_t| <= |v| R sqrt(t).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from linsep.bounds.bound import Bound, points, signs
from linsep.bounds.separators import a_separator, best, row_lengths, signed_rows, widest
from linsep.errors import BadInput, Refused

FloatArray = npt.NDArray[np.float64]

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
        "margin": (R/rho)^2, rho = 1/B the margin; the same number.
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
    functional = sigma * (X @ w + offset)
    if not functional.min() > 0:
        row = int(functional.argmin())
        raise BadInput(
            f"(w, b) does not separate the rows: y g(x) = {functional[row]:g} at row {row}. Mistake "
            "bounds exist for separable rows only; take (w, b) from a hard-margin fit."
        )
    rows = signed_rows(X, sigma, b is not None)
    v = w if b is None else np.append(w, offset)
    norm = _norm_bound(rows, v)
    found = {
        "angular": _bound(
            "angular",
            _angular_bound(rows, v),
            f"{START}; normalised update w += y z/|z|",
            "Novikoff 1962",
        ),
        "norm": _bound("norm", norm, f"{START}; update w += y z", "Novikoff 1962"),
        "margin": _bound("margin", norm, f"{START}; update w += y z", "Block 1962; Novikoff 1962"),
    }
    if b is not None and np.linalg.norm(w) > 0:
        found |= _with_intercept(w, offset, X, float(functional.min()))
    return found


def _with_intercept(w: FloatArray, b: float, X: Any, smallest: float) -> dict[str, Bound]:
    true, printed = _novikoff(w, b, X, smallest)
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


def _norm_bound(rows: Any, v: FloatArray) -> float:
    """(R B)^2 = (R/rho)^2, B = |v|/min <v, z>, of signed rows z."""
    return float(row_lengths(rows).max() * np.linalg.norm(v) / _least(rows @ v)) ** 2


def _angular_bound(rows: Any, v: FloatArray) -> float:
    """1/gamma^2, gamma = min <v, z>/(|v| |z|), of signed rows z."""
    return float(np.linalg.norm(v) / _least((rows @ v) / row_lengths(rows))) ** 2


def _novikoff(w: FloatArray, b: float, X: Any, smallest: float) -> tuple[float, float]:
    """(R^2 + 1)(1 + b^2)/gamma^2 and (2R/gamma)^2 for (w, b) divided by |w|."""
    norm, R = float(np.linalg.norm(w)), float(row_lengths(X).max())
    gamma, shift = smallest / norm, b / norm
    return (R**2 + 1.0) * (1.0 + shift**2) / gamma**2, (2.0 * R / gamma) ** 2


def _least(margins: Any) -> float:
    """The least margin."""
    found = float(np.asarray(margins).min())
    if not found > 0.0:
        raise Refused(
            f"The classes are separable, but float64 cannot tell by how much: the least margin comes out as {found}. "
            "Scale the columns of X."
        )
    return found


@dataclass(frozen=True)
class MistakeBounds:
    """Upper bounds on the updates of the perceptron on separable rows, from any start order.

    Attributes
    ----------
    normalised : float
        1/gamma^2, gamma the largest margin of the rows divided by their lengths: for normalised updates.
    radius_norm : float
        (R B)^2, B the least length of a u with margins >= 1: for raw updates.
    radius_margin : float
        (R/rho)^2 with the margin rho = 1/B: the same number, seen from the margin.
    novikoff : float
        (R^2 + 1)(1 + b^2)/gamma^2 for the hyperplane (w, b), |w| = 1, of the largest margin gamma of rows x of
        radius R; inf without an intercept.
    printed : float
        (2 R/gamma)^2, as often printed for the same hyperplane. It is *not* a bound when
        the intercept is learned from a constant 1.
    """

    normalised: float
    radius_norm: float
    radius_margin: float
    novikoff: float
    printed: float

    def __str__(self) -> str:
        return (
            f"at most {self.normalised:.6g} normalised or {self.radius_norm:.6g} raw updates; "
            f"with the hyperplane of the largest margin {self.novikoff:.6g} raw updates"
        )

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
        If no hyperplane separates the rows, or rounding hides by how much; the message says which.

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
    plane = a_separator(X, sign, fit_intercept)
    rows = signed_rows(X, sign, fit_intercept)
    known = np.append(plane.w, plane.b) if fit_intercept else np.asarray(plane.w)
    lengths = row_lengths(rows)
    scaled = sp.diags_array(1.0 / lengths) @ rows if sp.issparse(rows) else rows / lengths[:, None]
    norm = _norm_bound(rows, best(rows, known))
    angular = _angular_bound(rows, best(scaled, known))
    novikoff, printed = math.inf, 4.0 * norm
    if fit_intercept:
        w, b = widest(X, sign) or (np.asarray(plane.w), float(plane.b))
        novikoff, printed = _novikoff(w, b, X, _least(rows @ np.append(w, b)))
    return MistakeBounds(angular, norm, norm, novikoff, printed)
