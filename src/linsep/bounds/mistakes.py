"""How many updates can a perceptron make on separable rows?

For rows z_i and any v with y_i <v, z_i> > 0, write R = max |z_i|. Each update adds at least
m = min y_i <v, z_i> to <v, w_t> and at most R^2 to |w_t|^2; hence m t <= |v| |w_t| <= |v| R sqrt(t).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linsep.bounds.bound import Bound, points, signs
from linsep.errors import BadInput

START = "updates start from w = 0 and happen only on rows with y <w, z> <= 0"


def mistake_bounds(w: Any, b: float | None, X: Any, y: Any) -> dict[str, Bound]:
    """All mistake bounds of the perceptron, from a separator of the rows.

    Valid for every separator, and smallest for the one of largest margin: with an intercept of the rows
    (x, 1), since the perceptron learns b as the weight of a constant feature.

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
    Z = X if b is None else np.column_stack([X, np.ones(len(X))])
    length = np.linalg.norm(Z, axis=1)
    size = float(np.linalg.norm(w if b is None else np.append(w, offset)))
    rho = float(functional.min()) / size
    angular = float((functional / length).min()) / size
    R = float(length.max())
    found = {
        "angular": _bound(
            "angular", angular**-2, f"{START}; normalised update w += y z/|z|", "Novikoff 1962"
        ),
        "norm": _bound("norm", (R * (1 / rho)) ** 2, f"{START}; update w += y z", "Novikoff 1962"),
        "margin": _bound(
            "margin", (R / rho) ** 2, f"{START}; update w += y z", "Block 1962; Novikoff 1962"
        ),
    }
    if b is not None and np.linalg.norm(w) > 0:
        found |= _with_intercept(w, offset, X, float(functional.min()))
    return found


def _with_intercept(w: Any, b: float, X: Any, smallest: float) -> dict[str, Bound]:
    norm = float(np.linalg.norm(w))
    gamma, shift = smallest / norm, b / norm
    R = float(np.linalg.norm(X, axis=1).max())
    return {
        "novikoff": _bound(
            "novikoff",
            (R**2 + 1) * (1 + shift**2) / gamma**2,
            f"{START}; rows (x, 1), update w += y x, b += y",
            "Novikoff 1962 applied to (x, 1) and (w, b)",
        ),
        "novikoff_printed": _bound(
            "novikoff_printed",
            (2 * R / gamma) ** 2,
            f"{START}; rows (x, R), that is the update b += y R^2 of the intercept",
            "Cristianini and Shawe-Taylor 2000, theorem 2.3",
            "FALSE in general when the intercept is the weight of a constant feature 1",
        ),
    }


def _bound(name: str, value: float, assumptions: str, reference: str, caveat: str = "") -> Bound:
    name = f"mistakes, {name}"
    return Bound(name, float(value), "updates", 1.0, assumptions, reference, caveat=caveat)
