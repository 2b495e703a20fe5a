"""The minimum enclosing ball of given points, with a certificate.

For weights lambda on the simplex, sum_i lambda_i |x_i|^2 - |sum_i lambda_i x_i|^2 <= R*^2, with equality
for the optimal weights, which are nonzero on at most d + 1 points. The method updates a set of such
support points and their weights: it moves to the centre of the sphere through them, removing points whose
weight would become negative, and then adds the point farthest from the centre. The dual value increases
each time, so no set repeats (the idea of Wolfe's 1976 algorithm for the point of minimum norm; compare
Fischer, Gaertner and Kutz 2003).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from linsep.arrays import FloatArray, IntArray
from linsep.bounds.bound import points
from linsep.bounds.rounding import (
    MOST_ENTRIES,
    Rational,
    fractions,
    largest,
    root_downwards,
    root_upwards,
    rows_at,
    square,
)
from linsep.errors import BadInput


@dataclass(frozen=True)
class Ball:
    """A ball that contains all points, with a proven lower bound on the smallest radius.

    Attributes
    ----------
    centre : ndarray (d,)
    radius : float
        Distance from the centre to the farthest point, rounded upwards.
    lower_bound : float
        No ball of smaller radius contains the points: the dual value of ``weights``.
    support : ndarray of int
        Rows on the boundary that determine the ball.
    weights : ndarray
        Convex weights of those rows; the centre is their mean.
    """

    centre: FloatArray
    radius: float
    lower_bound: float
    support: IntArray
    weights: FloatArray

    def __str__(self) -> str:
        return (
            f"smallest enclosing ball: radius {self.radius:.9g}, lower bound {self.lower_bound:.9g}, "
            f"{len(self.support)} support point{'s' * (len(self.support) != 1)}"
        )

    __repr__ = __str__

    def check(self, X: Any, tol: float = 1e-9) -> bool:
        """Return whether all points lie in the ball and the dual value equals the lower bound, up to ``tol``."""
        X = points(X) - self.centre
        size = float(np.abs(X).max())
        inside = np.linalg.norm(X, axis=1).max() <= self.radius + tol * size
        S, lam = X[self.support], self.weights
        convex = lam.min() >= 0 and abs(lam.sum() - 1) <= tol
        dual = math.sqrt(max(lam @ (S**2).sum(axis=1) - ((lam @ S) ** 2).sum(), 0.0))
        return bool(inside and convex and dual >= self.lower_bound - tol * size)


def minimum_enclosing_ball(X: Any, tol: float = 1e-9) -> Ball:
    """Compute the smallest ball that contains all rows of X.

    Parameters
    ----------
    X : array (n, d)
    tol : float
        Stop when radius <= (1 + tol) lower bound.

    Returns
    -------
    Ball
        Centre and radius, with a lower bound on the radius of every enclosing ball.

    Raises
    ------
    BadInput
        If X is not a finite array (n, d) with at least one row.

    See Also
    --------
    margin_dimension : Uses the radius.

    Notes
    -----
    For weights ``lambda_i >= 0`` of sum 1, ``sum_i lambda_i |x_i|^2 - |sum_i lambda_i x_i|^2`` is at most the square
    of the smallest radius: that is the lower bound. Both numbers are computed in rational arithmetic and rounded
    outwards.

    References
    ----------
    Fischer, Gaertner and Kutz, Fast smallest-enclosing-ball computation in high dimensions, ESA 2003.

    Examples
    --------
    >>> from linsep.bounds import minimum_enclosing_ball
    >>> ball = minimum_enclosing_ball([[0.0, 0.0], [4.0, 0.0], [2.0, 1.0]])
    >>> ball.centre, ball.radius
    (array([2., 0.]), 2.0)
    """
    if not 0 < tol < 1:
        raise BadInput(f"tol must lie in (0, 1), got {tol!r}.")
    X = points(X)
    middle = X.mean(axis=0)
    Y = X - middle
    support = [int((Y**2).sum(axis=1).argmax())]
    lam = np.ones(1)
    ball = None
    while True:
        centre = lam @ Y[support]
        squared = ((Y - centre) ** 2).sum(axis=1)
        far = int(squared.argmax())
        radius = math.sqrt(squared[far])
        lower = min(math.sqrt(lam @ squared[support]), radius)  # dual value, origin at the centre
        if ball is not None and lower <= ball.lower_bound:
            return _proven(X, ball)  # the dual value no longer increases, because of rounding
        ball = Ball(middle + centre, radius, lower, np.array(support), lam)
        if radius <= (1 + tol) * lower or far in support:
            return _proven(X, ball)
        support, lam = _settle(Y, [*support, far], np.append(lam, 0.0))


def _proven(X: FloatArray, ball: Ball) -> Ball:
    """Return the ball with its radius rounded upwards and its lower bound downwards, for the centre as stored.

    With weights of sum L the dual value is sum lambda_i |y_i|^2/L - |sum lambda_i y_i|^2/L^2, y_i = x_i - centre.
    """
    with np.errstate(over="ignore"):
        Y = X - ball.centre
    centre, lam = fractions(ball.centre), fractions(ball.weights)
    S = Y[ball.support]
    if S.size <= MOST_ENTRIES:
        points = [
            [x - c for x, c in zip(row, centre, strict=True)] for row in rows_at(X, ball.support)
        ]
        mean = [
            sum((a * row[j] for a, row in zip(lam, points, strict=True)), Fraction(0))
            for j in range(len(centre))
        ]
        total = sum(lam, Fraction(0))
        sizes = (a * square(row) for a, row in zip(lam, points, strict=True))
        dual: Rational = sum(sizes, Fraction(0)) / total - square(mean) / total**2
    else:
        # each y_ij is rounded once, so its square has an error of 2 roundoffs; sums of k and d terms add k + d + 8
        slack = 2.0 * (S.shape[0] + S.shape[1] + 16) * 2.0**-53
        lengths = ball.weights @ (S**2).sum(axis=1) / ball.weights.sum()
        drift = np.linalg.norm(ball.weights @ S) + slack * math.sqrt(lengths)
        dual = Fraction(float(lengths * (1.0 - slack) - 2.0 * drift**2))
    radius = root_upwards(_largest_distance(X, ball.centre))
    return replace(ball, radius=radius, lower_bound=root_downwards(max(dual, Fraction(0))))


def _largest_distance(X: FloatArray, centre: FloatArray) -> Rational:
    """Upper bound on the largest |x - centre|^2."""
    d = X.shape[1]
    exact = fractions(centre)
    with np.errstate(over="ignore", invalid="ignore"):
        squared = ((X - centre) ** 2).sum(axis=1)
        error = (d + 8) * 2.0**-52 * squared + d * 2.0**-1000
    return largest(
        squared - error,
        squared + error,
        lambda at: [
            square(x - c for x, c in zip(row, exact, strict=True)) for row in rows_at(X, at)
        ],
        d,
    )


def _settle(Y: FloatArray, support: list[int], lam: FloatArray) -> tuple[list[int], FloatArray]:
    """Maximise the dual over ``support`` until the centre of the sphere lies in the hull of the remaining points."""
    while len(support) > 1:
        S = Y[support]
        Q = S[1:] - S[0]
        G, h = Q @ Q.T, (Q**2).sum(axis=1) / 2
        t = np.linalg.lstsq(G, h, rcond=1e-13)[0]
        residual = h - G @ t
        if np.abs(residual).max() > 1e-9 * np.abs(h).max():
            # dependent points: the dual is linear there
            step = np.append(-residual.sum(), residual)
            scale = math.inf
        else:
            step = np.append(1 - t.sum(), t) - lam
            scale = 1.0
        falling = step < 0
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(falling, -lam / step, math.inf)
        if reach.min() >= scale:
            lam = np.maximum(lam + step, 0.0)
            return support, lam / lam.sum()
        drop = int(reach.argmin())
        lam = np.maximum(lam + reach[drop] * step, 0.0)
        keep = [i for i in range(len(support)) if i != drop]
        support, lam = [support[i] for i in keep], lam[keep] / lam[keep].sum()
    return support, np.ones(1)
