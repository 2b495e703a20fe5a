"""Explain why a fit ended uncertified: which column is badly scaled, if any, and what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from linsep.arrays import FloatArray
from linsep.certificates.optimality import Optimality
from linsep.data import Location, location_of
from linsep.data.row_access import column_sizes
from linsep.solution import Status

Names = npt.NDArray[np.object_]

UNLIKE = 1e4  # a column this many times larger than the others, or than its spread, loses digits
LARGE = 1e6  # columns of this size lose digits
_ROWS = 10_000  # rows read to distinguish one large entry from a large column


def explain(
    status: Status,
    certificate: Optimality,
    X: Any = None,
    names: Names | None = None,
    cause: str = "",
) -> str:
    """Text of a ConvergenceWarning: the reason, or the column or other cause that is known, and the certificate.

    Parameters
    ----------
    status : Status
        Why the solver stopped.
    certificate : Optimality
        What was proven.
    X : array, sparse matrix or rows on disk, optional
        The rows of the fit.
    names : ndarray of str, optional
        Names of the columns.
    cause : str
        Sentence about a cause that the caller has found, such as dependent columns.
    """
    reason = status.message
    if status in (Status.WORKING_PRECISION, Status.GIVEN_UP):
        known = (describe_bad_scale(certificate, X, names), cause)
        reason = " ".join(filter(None, known)) or reason
    elif cause:
        reason = f"{reason} {cause}"
    return f"{reason} Now: {certificate.describe(advice=False)}"


def describe_bad_scale(certificate: Optimality, X: Any, names: Names | None = None) -> str:
    """Sentence that names the column whose scale loses digits, and says what to do; "" if none stands out."""
    known = isinstance(X, np.ndarray) or sp.issparse(X)
    if not (known or location_of(X) is Location.DISK) or certificate.certified or min(X.shape) == 0:
        return ""
    sizes = column_sizes(X)
    if not np.isfinite(sizes).all() or not sizes.any():
        return ""
    fact, advice = _fact(X, sizes, names)
    return f"{fact}: {_cost(certificate)}. {advice}" if fact else ""


def _cost(certificate: Optimality) -> str:
    scale = max(abs(certificate.primal), abs(certificate.dual))
    if not certificate.rounding > certificate.tol * scale:
        return "in float64 that costs the solver the digits to close the gap"
    if not certificate.rounding < scale:
        return "rounding alone may exceed the objective"
    return f"rounding alone accounts for a relative gap of {certificate.rounding / scale:.0e}"


def _fact(X: Any, sizes: FloatArray, names: Names | None) -> tuple[str, str]:
    """The most unusual property of a column, and advice; empty if there is none."""
    worst = int(np.argmax(sizes))
    others = np.delete(sizes, worst)
    others = others[others > 0.0]
    usual = float(np.median(others)) if len(others) else 1.0
    who, size = _describe_column(worst, names), float(sizes[worst])
    if size >= UNLIKE * usual:
        typical = _typical(X, worst)
        if 0.0 < typical and size >= UNLIKE * typical:
            return (
                f"{who} has an entry of {size:.0e} while its entries are near {typical:.0e} as a rule",
                "Correct or clip that entry, or transform the column, for instance by a logarithm.",
            )
        return (
            f"{who} has entries near {size:.0e} while those of the other columns are near {usual:.0e}",
            "Divide it by a power of ten, standardise it, or drop it if it is an identifier.",
        )
    spread = _spreads(X)
    far = np.where(spread > 0.0, sizes / np.where(spread > 0.0, spread, 1.0), 0.0)
    if far.max(initial=0.0) >= UNLIKE:
        worst = int(np.argmax(far))
        return (
            f"{_describe_column(worst, names)} has entries near {sizes[worst]:.0e} "
            f"that differ by {spread[worst]:.0e} at most",
            "Subtract its mean, or standardise it.",
        )
    if usual >= LARGE:
        return (
            f"The columns have entries near {usual:.0e}",
            "Divide them by a power of ten, or standardise them.",
        )
    return "", ""


def _describe_column(column: int, names: Names | None) -> str:
    return f"Column {column} " + (
        "(counting from 0)" if names is None else f"({str(names[column])!r})"
    )


def _first_rows(X: Any) -> Any:
    """The first ``_ROWS`` rows."""
    count = min(X.shape[0], _ROWS)
    if location_of(X) is Location.DISK:
        return X.read(0, count)
    return X[:count] if isinstance(X, np.ndarray) else X.tocsr()[:count]


def _typical(X: Any, column: int) -> float:
    """Median absolute value of the nonzero entries of a column, in the first rows."""
    rows = _first_rows(X)
    part = rows[:, [column]]
    values = part.toarray().ravel() if sp.issparse(part) else np.asarray(part, np.float64).ravel()
    values = np.abs(values[values != 0.0])
    return float(np.median(values)) if len(values) else 0.0


def _spreads(X: Any) -> FloatArray:
    """Largest minus smallest entry of every column, in the first rows."""
    rows = _first_rows(X)
    if sp.issparse(rows):
        high = np.asarray(rows.max(axis=0).todense(), np.float64).ravel()
        return high - np.asarray(rows.min(axis=0).todense(), np.float64).ravel()
    rows = np.asarray(rows, dtype=np.float64)
    return np.asarray(rows.max(axis=0) - rows.min(axis=0))
