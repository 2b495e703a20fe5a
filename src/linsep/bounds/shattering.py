"""Decide whether halfspaces shatter a set of points, with a proof in rational arithmetic.

Write every point as a row (x, 1), or as x for halfspaces through the origin, and let A be the matrix of these rows.

* A has independent rows: there is G with A G = I, so (w, b) = G y has score y_i at x_i, whatever the
  labels y. The set is shattered and G proves it.
* A has dependent rows: sum_i a_i (x_i, 1) = 0 with some a_i < 0 (else take -a). No halfspace labels
  the points with a_i > 0 by + and those with a_i < 0 by -: its scores g would give
  0 <= sum_{a_i > 0} a_i g_i = sum_{a_i < 0} |a_i| g_i < 0. The set is not shattered and a proves it.

Floats are rationals, so both proofs are exact.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from linsep.arrays import FloatArray
from linsep.bounds import bound
from linsep.errors import BadInput

Rational = Fraction | float
Rows = list[list[Fraction]]
_SHOWN = 20  # labels of a labelling that are printed


@dataclass(frozen=True)
class Shattered:
    """Proof that halfspaces realise all labellings of the points; true in a condition.

    ``inverse`` is a rational matrix G with (points, 1) G = I, so that G y is a separator for y.
    """

    points: FloatArray
    homogeneous: bool
    inverse: tuple[tuple[Fraction, ...], ...]

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        return (
            f"shattered: {_halfspaces(self.homogeneous)} realise all {2 ** len(self.points)} labellings "
            f"of the {_points(self.points)}"
        )

    __repr__ = __str__

    def separator(self, labels: Any) -> tuple[FloatArray, float]:
        """Return (w, b) with y_i (w.x_i + b) = 1 up to rounding, for labels y_i in {-1, +1}."""
        y = np.asarray(labels)
        if y.shape != (len(self.points),) or not np.isin(y, (-1, 1)).all():
            raise BadInput(f"labels must be {len(self.points)} numbers -1 or +1, got {labels!r}.")
        exact = [sum(int(s) * g for s, g in zip(y, row, strict=True)) for row in self.inverse]
        theta = np.array([float(t) for t in exact])
        return (theta, 0.0) if self.homogeneous else (theta[:-1], float(theta[-1]))

    def labellings(self) -> Iterator[tuple[tuple[int, ...], FloatArray, float]]:
        """Iterate over the 2^n labellings, each with its separator (w, b)."""
        for y in itertools.product((-1, 1), repeat=len(self.points)):
            yield (y, *self.separator(y))

    def check(self) -> bool:
        """Return whether (points, 1) times the inverse is the identity, in rational arithmetic."""
        rows = _rational_rows(self.points, self.homogeneous)
        return all(
            sum(r * g[j] for r, g in zip(row, self.inverse, strict=True)) == (i == j)
            for i, row in enumerate(rows)
            for j in range(len(rows))
        )


@dataclass(frozen=True)
class NotShattered:
    """Proof that no halfspace realises a certain labelling of the points; false in a condition.

    ``dependence`` holds rational a_i with sum_i a_i x_i = 0 (and sum_i a_i = 0 unless homogeneous);
    ``labelling`` has the sign of a_i, and +1 where a_i = 0, since that label does not matter.
    """

    points: FloatArray
    homogeneous: bool
    labelling: tuple[int, ...]
    dependence: tuple[Fraction, ...]

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        labels = "".join("+" if y > 0 else "-" for y in self.labelling)
        shown = labels if len(labels) <= _SHOWN else f"{labels[:_SHOWN]}..."
        return f"not shattered: {_halfspaces(self.homogeneous)} cannot label the {_points(self.points)} as {shown}"

    __repr__ = __str__

    def check(self) -> bool:
        """Return whether the dependence holds in rational arithmetic and its signs agree with the labels."""
        rows = _rational_rows(self.points, self.homogeneous)
        columns = range(len(rows[0]))
        a = self.dependence
        vanishes = all(
            sum(s * row[k] for s, row in zip(a, rows, strict=True)) == 0 for k in columns
        )
        agree = all(s == 0 or (s > 0) == (y > 0) for s, y in zip(a, self.labelling, strict=True))
        return vanishes and agree and min(a) < 0


@dataclass(frozen=True)
class RadonPartition:
    """Two disjoint groups of points whose convex hulls share a point.

    Attributes
    ----------
    positive, negative : tuple of int
        Row indices of the two groups; rows in neither are not needed.
    dependence : tuple
        a with sum_i a_i x_i = 0 and sum_i a_i = 0, scaled so that the positive ones sum to 1: these are the
        weights of ``point`` in one hull, and minus the negative ones its weights in the other. Fractions if
        exact, floats otherwise.
    point : ndarray (d,)
    """

    points: FloatArray
    dependence: tuple[Rational, ...]

    def __str__(self) -> str:
        point = ", ".join(f"{x:g}" for x in self.point)
        return f"the convex hulls of rows {self.positive} and rows {self.negative} share the point ({point})"

    __repr__ = __str__

    @property
    def positive(self) -> tuple[int, ...]:
        """Row indices of the first group."""
        return tuple(i for i, a in enumerate(self.dependence) if a > 0)

    @property
    def negative(self) -> tuple[int, ...]:
        """Row indices of the second group."""
        return tuple(i for i, a in enumerate(self.dependence) if a < 0)

    @property
    def point(self) -> FloatArray:
        """The common point, computed from the first group."""
        group = list(self.positive)
        return np.array([float(self.dependence[i]) for i in group]) @ self.points[group]

    def check(self, tol: float = 1e-9) -> bool:
        """Return whether both groups give the same point: exactly for fractions, otherwise up to ``tol``."""
        if isinstance(self.dependence[0], Fraction):
            rows = _rational_rows(self.points, homogeneous=False)
            sums = [
                sum(a * row[k] for a, row in zip(self.dependence, rows, strict=True))
                for k in range(len(rows[0]))
            ]
            return not any(sums) and bool(self.positive)
        a = np.array(self.dependence, dtype=np.float64)
        size = np.abs(self.points).max() + 1
        close = np.abs(a @ self.points).max() <= tol * size and abs(a.sum()) <= tol
        return bool(close and self.positive and self.negative)


def shatters(points: Any, homogeneous: bool = False) -> Shattered | NotShattered:
    """Decide whether halfspaces can label these points in all 2^n ways.

    Parameters
    ----------
    points : array (n, d)
    homogeneous : bool, default False
        Only halfspaces whose boundary passes through the origin.

    Returns
    -------
    Shattered or NotShattered
        True or false in a condition; ``check()`` verifies the proof.

    Raises
    ------
    BadInput
        If the points are not a finite array (n, d).

    See Also
    --------
    shattering_witness : Points that are shattered.
    linsep.separate : Decides one labelling.

    Notes
    -----
    n points in general position have ``2 sum_{k <= d} binom(n - 1, k)`` labellings by halfspaces.

    References
    ----------
    Cover, Geometrical and statistical properties of systems of linear inequalities with applications in pattern
    recognition, IEEE Transactions on Electronic Computers 14, 1965.

    Examples
    --------
    >>> from linsep.bounds import shatters
    >>> bool(shatters([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    True
    >>> shatters([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]).labelling
    (1, -1, -1, 1)
    """
    X = bound.points(points, "points")
    inverse, dependence = _inverse_or_dependence(_rational_rows(X, homogeneous))
    if inverse is not None:
        return Shattered(X, homogeneous, inverse)
    if min(dependence) >= 0:  # only without an intercept: a nonnegative combination is 0
        dependence = tuple(-a for a in dependence)
    if dependence[0] < 0 < max(dependence):
        # of a labelling and its opposite, choose the one that begins with +
        dependence = tuple(-a for a in dependence)
    return NotShattered(X, homogeneous, tuple(1 if a >= 0 else -1 for a in dependence), dependence)


def shattering_witness(d: int, homogeneous: bool = False) -> Shattered:
    """Return points that halfspaces of R^d shatter: e_1 ... e_d, and the origin unless ``homogeneous``.

    Their number is the VC dimension, which proves that it is no smaller.

    Parameters
    ----------
    d : int
        Dimension of the space.
    homogeneous : bool, default False
        Only halfspaces whose boundary passes through the origin.

    Returns
    -------
    Shattered
        The points, and a separator for every labelling; ``check()`` verifies them in rational arithmetic.

    Raises
    ------
    BadInput
        If ``d`` is not a whole number of at least 1.

    See Also
    --------
    shatters : For any points.
    vc_dimension : What it proves.

    References
    ----------
    Vapnik and Chervonenkis, On the uniform convergence of relative frequencies of events to their probabilities, Theory
    of Probability and its Applications 16, 1971.

    Examples
    --------
    >>> from linsep.bounds import shattering_witness
    >>> witness = shattering_witness(2)
    >>> len(witness.points), witness.check()
    (3, True)
    """
    d = bound.count("d", d)
    corners = np.eye(d) if homogeneous else np.vstack([np.eye(d), np.zeros(d)])
    answer = shatters(corners, homogeneous)
    assert isinstance(answer, Shattered)
    return answer


def radon(points: Any, exact: bool = False) -> RadonPartition:
    """Split d + 2 or more points of R^d into two groups whose convex hulls intersect (Radon 1921).

    Parameters
    ----------
    points : array (n, d), n >= d + 2
    exact : bool, default False
        Use rational arithmetic; otherwise a singular vector, with weights below 1e-12 set to zero.

    Returns
    -------
    RadonPartition
        The two groups, the common point and its weights; ``check()`` verifies them.

    Raises
    ------
    BadInput
        If there are fewer than d + 2 points.

    See Also
    --------
    vc_dimension : Radon's theorem bounds it from above.

    References
    ----------
    Radon, Mengen konvexer Koerper, die einen gemeinsamen Punkt enthalten, Mathematische Annalen 83, 1921.

    Examples
    --------
    >>> from linsep.bounds import radon
    >>> split = radon([[0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [0.0, 1.0]], exact=True)
    >>> split.positive, split.negative, split.point
    ((0, 1), (2, 3), array([0.5, 0.5]))
    """
    X = bound.points(points, "points")
    n, d = X.shape
    if n < d + 2:
        raise BadInput(
            f"Radon's theorem needs d + 2 = {d + 2} points in {d} dimensions, got {n}; "
            "ask shatters(points) whether these few are independent."
        )
    if exact:
        _, a = _inverse_or_dependence(_rational_rows(X, homogeneous=False))
        if next(s for s in a if s) < 0:
            a = tuple(-s for s in a)
        total = sum(s for s in a if s > 0)
        return RadonPartition(X, tuple(s / total for s in a))
    few = X[: d + 2] - X[: d + 2].mean(axis=0)  # d + 2 points are enough
    scaled = few / (np.abs(few).max() or 1.0)
    v = np.linalg.svd(np.column_stack([scaled, np.ones(d + 2)]).T)[2][-1]
    v = np.where(np.abs(v) > 1e-12 * np.abs(v).max(), v, 0.0)
    v = v * np.sign(v[np.nonzero(v)[0][0]])
    return RadonPartition(X, (*(v / v[v > 0].sum()).tolist(), *[0.0] * (n - d - 2)))


def _halfspaces(homogeneous: bool) -> str:
    return "halfspaces through the origin" if homogeneous else "halfspaces"


def _points(points: FloatArray) -> str:
    n, d = points.shape
    return f"{n} point{'s' * (n != 1)} in {d} dimension{'s' * (d != 1)}"


def _rational_rows(X: FloatArray, homogeneous: bool) -> Rows:
    last = [] if homogeneous else [Fraction(1)]
    return [[Fraction(x) for x in row] + last for row in X.tolist()]


def _inverse_or_dependence(
    A: Rows,
) -> tuple[tuple[tuple[Fraction, ...], ...] | None, tuple[Fraction, ...]]:
    """Return G with A G = I, or a with a A = 0, by Gauss-Jordan elimination of (A, I).

    One more row than columns is always dependent, so further rows are not read.
    """
    k = len(A[0])
    unused = [Fraction(0)] * (len(A) - k - 1)
    A = A[: k + 1]
    n = len(A)
    T = [row + [Fraction(i == j) for j in range(n)] for i, row in enumerate(A)]
    pivots: list[int] = []
    for i in range(n):
        row = T[i]
        pivot = next((j for j in range(k) if row[j]), None)
        if pivot is None:
            return None, (*row[k:], *unused)
        row[:] = [t / row[pivot] for t in row]
        for other in T:
            if other is not row and other[pivot]:
                factor = other[pivot]
                other[:] = [t - factor * r for t, r in zip(other, row, strict=True)]
        pivots.append(pivot)
    G = [tuple([Fraction(0)] * n)] * k
    for i, pivot in enumerate(pivots):
        G[pivot] = tuple(T[i][k:])
    return tuple(G), ()
