"""Distinguish overlapping from quasi-separable classes by facial reduction.

The rows of a witness lie on every hyperplane with a_i.theta >= 0 for all i, since sum alpha_i a_i = 0. So theta is
orthogonal to their span L, and the decision is repeated for the other rows, projected along L. A new witness enlarges
L, at most d + 1 times; a separator of the projected rows is the direction of a quasi-separation; and if no row is left
outside L, the classes overlap (Albert and Anderson 1984; the reduction is that of Borwein and Wolkowicz 1981).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linsep.arrays import BoolArray, FloatArray, IntArray
from linsep.data import Location
from linsep.exact.rational import null_vector
from linsep.interrupts import lapack
from linsep.separability import simplex
from linsep.separability.frame import Frame
from linsep.separability.null_vectors import constant_on, simple_null_vectors
from linsep.separability.rows import SLACK, SignedRows
from linsep.separability.search import Working, witness_or_separator

#: Relative singular value above which the row space is certainly not due to rounding.
_CLEAR = 1e-6
#: Number of entries of the rows up to which rounding is always excluded.
_FEW = 4_000
ON = 1e-9  # length of the component outside L, for a unit vector, that counts as zero
_CHUNK = 4096
_MAX_PASSES = 400


@dataclass(frozen=True, eq=False)
class Quasi:
    """Direction theta with a_i.theta >= 0 for every row: zero for the rows ``on``, positive for all others."""

    theta: FloatArray
    on: IntArray


def quasi_separation(
    signed: SignedRows, working: Working, rows: IntArray
) -> tuple[bool | None, Quasi | None]:
    """Return whether the classes are quasi-separable, and the direction with the most rows off the hyperplane.

    ``rows`` are those of a witness. False means that the classes overlap, None that rounding prevents a decision.
    """
    frame = working.frame
    span, _ = frame.vectors(rows)
    Q = _complement(span)
    for attempt in range(_MAX_PASSES):
        if Q.shape[1] == 0:
            return _overlap(signed, frame, span, Q)
        P, outside = _project(working.A, Q)
        if not outside.any():
            found = _rows_off_plane(
                signed, frame, Q @ np.random.default_rng(attempt).standard_normal(Q.shape[1])
            )
            if not working.add(found[: 8 * (frame.order + 1)]):
                return _overlap(signed, frame, span, Q)
            continue
        split = witness_or_separator(P[outside])
        if not split.separated:
            used = split.weights > ON * split.weights.max()  # smaller weights may be rounding noise
            span = np.vstack([span, working.A[outside][used]])
            Q = _complement(span)
            continue
        phi = Q @ split.theta
        theta = frame.theta(phi)
        scan = signed.scan(theta, 4 * (frame.order + 1), noise=frame.noise(phi))
        still = _zero_rows_outside(frame, scan.doubtful, Q)
        if scan.violated == 0 and not len(still):
            return True, Quasi(theta, scan.doubtful)
        wrong = scan.worst[scan.ratio < -SLACK]
        if not working.add(np.unique(np.concatenate([wrong, still[: 4 * frame.order]]))):
            break
    return None, None


def _overlap(
    signed: SignedRows, frame: Frame, span: FloatArray, Q: FloatArray
) -> tuple[bool | None, Quasi | None]:
    """Return the result if no row is outside L: the classes overlap, unless rounding may have hidden a row.

    Rounding may hide a row if columns vary little relative to their size, or are nearly dependent. Small tables are
    then decided in rational arithmetic.
    """
    s = lapack(np.linalg.svd, span, compute_uv=False)
    rank = frame.order - Q.shape[1]
    if s[rank - 1] > _CLEAR * s[0] and frame.error() < ON / 100.0 and _spans(signed, frame, Q):
        return False, None
    if signed.data.location is Location.CLUSTER or signed.data.n * frame.order > _FEW:
        return None, None
    theta = simplex.half_space(signed.signed_matrix(signed.counted))
    if theta is None:
        return False, None
    on = [
        i
        for i, score in enumerate(simplex.scores(signed.signed_matrix(signed.counted), theta))
        if not score
    ]
    largest = max(map(abs, theta))
    rounded = np.array([float(x / largest) for x in theta])
    full = rounded if signed.fit_intercept else np.append(rounded, 0.0)
    return True, Quasi(full, signed.counted[np.array(on, dtype=np.intp)])


def _spans(signed: SignedRows, frame: Frame, Q: FloatArray) -> bool:
    """Return whether every row provably lies in L: independent null vectors of the rows, as many as Q has columns.

    Rows on a cluster are not read again, so nothing is proven about them.
    """
    if Q.shape[1] == 0:
        return True
    if signed.data.location is Location.CLUSTER:
        return False
    guesses = np.array([frame.theta(q) for q in Q.T])
    if not np.isfinite(guesses).all():
        return False
    Z = simple_null_vectors(guesses[:, :-1])
    if Z is not None and constant_on(signed, Z):
        return True
    return signed.data.n * frame.order <= simplex.ENTRIES and _spans_small(signed, guesses)


def _spans_small(signed: SignedRows, guesses: FloatArray) -> bool:
    """Return whether elimination without rounding finds as many independent null vectors as there are guesses."""
    A = signed.signed_matrix(signed.counted)
    found = [null_vector(A, guess[: A.shape[1]]) for guess in guesses]
    if any(v is None for v in found):
        return False
    units = np.abs(A).max(axis=0, initial=0.0)
    vectors = np.array([[float(x) for x in v] for v in found if v is not None]) * units
    sizes = np.sqrt((vectors * vectors).sum(axis=1))
    if not (np.isfinite(sizes).all() and (sizes > 0.0).all()):
        return False
    s = lapack(np.linalg.svd, vectors / sizes[:, None], compute_uv=False)
    return bool(s[-1] > _CLEAR)


def _complement(span: FloatArray) -> FloatArray:
    """Orthonormal basis, in columns, of the orthogonal complement of the rows of ``span``."""
    _, s, Vt = lapack(np.linalg.svd, span, full_matrices=True)
    rank = int((s > ON * s[0]).sum())
    return np.ascontiguousarray(Vt[rank:].T)


def _project(A: FloatArray, Q: FloatArray) -> tuple[FloatArray, BoolArray]:
    """A Q with rows scaled to unit length, and a mask of the rows of nonzero length."""
    P = A @ Q
    size = np.sqrt(np.einsum("ij,ij->i", P, P))
    outside = size > ON
    return P / np.where(outside, size, 1.0)[:, None], outside


def _rows_off_plane(signed: SignedRows, frame: Frame, phi: FloatArray) -> IntArray:
    """Indices of the rows that lie off the hyperplane. One pass."""
    scan = signed.scan(frame.theta(phi), 1, noise=frame.noise(phi))
    moved = np.zeros(signed.data.n, dtype=bool)
    moved[signed.counted] = True
    moved[scan.doubtful] = False
    return np.flatnonzero(moved)


def _zero_rows_outside(frame: Frame, rows: IntArray, Q: FloatArray) -> IntArray:
    """Rows outside the subspace L on which theta is zero."""
    found = [
        part[_project(frame.vectors(part)[0], Q)[1]]
        for part in np.array_split(rows, max(1, len(rows) // _CHUNK))
        if len(part)
    ]
    return np.concatenate(found) if found else rows[:0]
