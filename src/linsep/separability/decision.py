"""Decide whether a data set is separable, with a proof: separable, inseparable, or undecided."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from linsep.arrays import FloatArray, IntArray, dense
from linsep.data import Dataset, Location
from linsep.data.row_access import column_sizes
from linsep.errors import BadInput
from linsep.hyperplane import Hyperplane, length
from linsep.separability import programme, simplex, wide
from linsep.separability.checks import touches
from linsep.separability.faces import quasi_separation
from linsep.separability.frame import Frame
from linsep.separability.results import Inseparable, Separable, Undecided
from linsep.separability.rows import ROUNDOFF, SMALL, TINIEST, SignedRows
from linsep.separability.search import (
    CommonPoint,
    Inconclusive,
    Separator,
    Working,
    first_rows,
    proven_margin,
    search,
)
from linsep.separability.simplex import float_vectors
from linsep.separability.witness import Witness, make_witness, residual

Answer = Separable | Inseparable | Undecided

#: Number of features above which the working rows are not stored densely.
WIDE = 1500
METHODS = ("auto", "nnls", "lp")


def decide(
    data: Dataset,
    *,
    fit_intercept: bool = True,
    method: str = "auto",
    seed: int = 0,
    classes: npt.NDArray[np.generic] | None = None,
) -> Answer:
    """Decide whether the rows of sign -1 and +1 with positive weight are separable."""
    signed = SignedRows(data, fit_intercept)
    sides = data.sign[signed.counted]
    if fit_intercept and not (sides.min() < 0 < sides.max()):
        raise BadInput("all rows belong to one class: there is nothing to separate them from.")
    with np.errstate(all="ignore"):  # values that overflow or underflow prove nothing
        return _decide(signed, method, seed, classes)


def _decide(
    signed: SignedRows, method: str, seed: int, classes: npt.NDArray[np.generic] | None
) -> Answer:
    data, fit_intercept = signed.data, signed.fit_intercept
    working = None
    if data.d > WIDE and method != "lp":
        found = wide.search(signed, seed)
    else:
        order = data.d + int(fit_intercept)
        sample = first_rows(signed, 8 * (order + 1), seed)
        working = Working(Frame.of(signed, sample), sample)
        found = programme.solve(signed, working) if method == "lp" else search(signed, working)
    witness = None
    if isinstance(found, CommonPoint):
        witness = make_witness(signed, found.rows, found.weights)
        if witness is None:
            found = Inconclusive(0.0, 0.0)
    if isinstance(found, Inconclusive):
        found, witness = _exactly(signed, found)
    if isinstance(found, Separator):
        return _separable(signed, found, classes)
    if witness is None:
        assert isinstance(found, Inconclusive)
        return Undecided(found.ratio, found.residual, signed.passes, classes)
    return _inseparable(signed, working, witness, classes)


def proven(
    data: Dataset,
    theta: FloatArray,
    *,
    fit_intercept: bool = True,
    classes: npt.NDArray[np.generic] | None = None,
) -> Separable | None:
    """Proof that theta = (w, b) separates the rows; None if it does not. One pass."""
    signed = SignedRows(data, fit_intercept)
    low = proven_margin(signed, theta, signed.scan(theta, 1))
    return _separable(signed, Separator(theta, low), classes) if low > 0.0 else None


def _exactly(
    signed: SignedRows, found: Inconclusive
) -> tuple[Separator | Inconclusive, Witness | None]:
    """Decide in rational arithmetic, if the data are small enough."""
    rows = signed.counted
    if len(rows) * (signed.data.d + 1) > simplex.ENTRIES:
        return found, None
    theta, weights = simplex.decide(signed.signed_matrix(rows))
    if weights is not None:
        chosen = rows[np.array(sorted(weights))]
        exact = np.array([float(weights[i]) for i in sorted(weights)])
        missed = residual(signed.signed_matrix(chosen), exact)
        return found, Witness(chosen, exact, missed, proven=True)
    assert theta is not None
    for rounded in float_vectors(theta, signed.signed_matrix(rows)):
        full = rounded if signed.fit_intercept else np.append(rounded, 0.0)
        low = proven_margin(signed, full, signed.scan(full, 1))
        if low > 0.0:
            return Separator(full, low), None
    return found, None


def _separable(
    signed: SignedRows, found: Separator, classes: npt.NDArray[np.generic] | None
) -> Separable:
    w, b = found.theta[:-1], float(found.theta[-1])
    size = length(w)
    margin = found.low / size * (1 - (len(w) + 8) * ROUNDOFF)
    if margin < SMALL:  # absolute rounding errors: half a unit in each of two operations
        margin = max(margin - 2.0 * TINIEST, 0.0)
    if not SMALL < size < np.inf:  # it may have lost digits
        margin = 0.0
    return Separable(Hyperplane(w, b), margin, signed.passes, classes)


def _inseparable(
    signed: SignedRows,
    working: Working | None,
    witness: Witness,
    classes: npt.NDArray[np.generic] | None,
) -> Inseparable:
    quasi: bool | None = None
    direction, on = None, None
    if working is not None:
        quasi, face = quasi_separation(signed, working, witness.rows)
        if face is not None:
            direction, on = _direction(signed, face.theta), face.on
            if not _touches(signed, direction, on):
                quasi, direction, on = None, None, None
    point = None
    if signed.fit_intercept:
        ours = signed.data.sign[witness.rows] > 0
        point = 2.0 * (witness.weights[ours] @ dense(signed.features(witness.rows[ours])))
    return Inseparable(
        rows=witness.rows,
        weights=witness.weights,
        point=point,
        residual=witness.residual,
        quasi=quasi,
        direction=direction,
        rows_on=on,
        proven=witness.proven,
        passes=signed.passes,
        classes=classes,
    )


def _touches(signed: SignedRows, direction: tuple[FloatArray, float], on: IntArray) -> bool:
    """Return whether exact arithmetic confirms the direction; not checked for many rows or rows on a cluster."""
    data = signed.data
    if (
        len(signed.counted) < data.n
        or data.n * (data.d + 1) > simplex.ENTRIES
        or data.location is Location.CLUSTER
    ):
        return True
    sides = np.array([-1.0, 1.0])
    return touches(
        signed.features(signed.counted),
        data.sign,
        sides,
        direction,
        on,
        affine=signed.fit_intercept,
        exact=True,
    )


def _direction(signed: SignedRows, theta: FloatArray) -> tuple[FloatArray, float]:
    """Scale theta to unit length and remove entries that are rounding noise."""
    sizes = np.append(column_sizes(signed.data.X), 1.0) * np.abs(theta)
    theta = np.where(sizes > 1e-11 * sizes.max(), theta, 0.0)
    size = length(theta[:-1]) or abs(float(theta[-1]))
    return theta[:-1] / size, float(theta[-1]) / size
