"""The geometry of a hyperplane {x : w.x + b = 0}."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from linsep.arrays import FloatArray, IntArray, dense, squares
from linsep.data.row_access import plain_rows, plain_signs
from linsep.errors import BadInput


@dataclass(frozen=True, eq=False)
class Hyperplane:
    """The hyperplane {x : w.x + b = 0} and its two sides; x lies on the positive one if w.x + b >= 0.

    Parameters
    ----------
    w : array (d,)
        Normal vector, not zero.
    b : float, default 0.0
        Intercept: the score of the origin.

    Raises
    ------
    BadInput
        If w is zero or not finite.

    See Also
    --------
    separate : A separating hyperplane, or a proof that there is none.

    Notes
    -----
    The distance of x is ``|w.x + b| / |w|``, its projection ``x - (w.x + b) w / |w|^2``.

    Examples
    --------
    >>> from linsep import Hyperplane
    >>> line = Hyperplane([3.0, 4.0], -5.0)
    >>> line.score([[3.0, 4.0], [0.0, 0.0]])
    array([20., -5.])
    >>> line.distance([[3.0, 4.0], [0.0, 0.0]])
    array([4., 1.])
    >>> line.project([[3.0, 4.0]])
    array([[0.6, 0.8]])
    """

    w: Any
    b: Any = 0.0

    def __post_init__(self) -> None:
        try:
            w = np.array(self.w, dtype=np.float64)
            b = np.asarray(self.b, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise BadInput(f"w and b must be numbers: {error}") from error
        if w.ndim == 2 and w.shape[0] == 1:  # coef_ of a model of two classes
            w = w[0]
        if w.ndim != 1 or b.size != 1:
            raise BadInput(
                f"a hyperplane has one normal vector w (d,) and one number b, got shapes {w.shape} and "
                f"{b.shape}."
            )
        if not (np.isfinite(w).all() and np.isfinite(b).all()):
            raise BadInput("w and b must be finite.")
        if not w.any():
            raise BadInput("w is zero, and {x : b = 0} is not a hyperplane; give a nonzero w.")
        w.setflags(write=False)
        object.__setattr__(self, "w", w)
        object.__setattr__(self, "b", float(b.ravel()[0]))

    def __str__(self) -> str:
        shown = ", ".join(f"{x:.6g}" for x in self.w[:6]) + (", ..." if len(self.w) > 6 else "")
        return f"hyperplane w.x + b = 0 with w = ({shown}), b = {self.b:.6g}"

    __repr__ = __str__

    @property
    def norm(self) -> float:
        """|w|."""
        return length(self.w)

    @property
    def distance_to_origin(self) -> float:
        """|b| / |w|."""
        return float(abs(self.b) / self.norm)

    def score(self, X: Any) -> FloatArray:
        """w.x + b for each row of X, an array, a sparse matrix or a frame."""
        return np.asarray(self._rows(X) @ self.w + self.b, dtype=np.float64)

    def predict(self, X: Any) -> IntArray:
        """+1 where w.x + b >= 0, else -1."""
        return np.where(self.score(X) >= 0.0, 1, -1)

    def distance(self, X: Any) -> FloatArray:
        """Euclidean distance of each row from the hyperplane, |w.x + b| / |w|."""
        return np.abs(self.signed_distance(X))

    def signed_distance(self, X: Any) -> FloatArray:
        """(w.x + b) / |w|: positive on the side that w points to."""
        return self.score(X) / self.norm

    def project(self, X: Any) -> FloatArray:
        """Nearest point on the hyperplane for each row, x - (w.x + b) w / |w|^2, as a dense array."""
        rows = self._rows(X)
        rows = dense(rows)
        return np.asarray(rows - np.outer(self.signed_distance(rows), self.w / self.norm))

    def functional_margins(self, X: Any, y: Any) -> FloatArray:
        """Functional margin y (w.x + b) of each row; of the two classes in y, the second in sorted order is +1."""
        z = self.score(X)
        return plain_signs(y, len(z)) * z

    def geometric_margins(self, X: Any, y: Any) -> FloatArray:
        """Geometric margin y (w.x + b) / |w| of each row: its distance, negative on the wrong side."""
        return self.functional_margins(X, y) / self.norm

    def angular_margins(self, X: Any, y: Any) -> FloatArray:
        """Angular margin y w.x / (|w| |x|) of each row: the cosine between w and y x, for b = 0.

        An affine hyperplane passes through the origin in one dimension more, see ``homogeneous``. The margin of a
        zero row is 0.
        """
        if self.b != 0.0:
            raise BadInput(
                f"angular margins are those of a hyperplane through the origin, but b = {self.b:g}; use "
                "homogeneous() and append the constant 1 to the rows."
            )
        rows = self._rows(X)
        length = np.sqrt(np.asarray(squares(rows).sum(axis=1), dtype=np.float64).ravel())
        margins = self.geometric_margins(rows, y)
        return np.divide(margins, length, out=np.zeros_like(margins), where=length > 0.0)

    def margin(self, X: Any, y: Any) -> float:
        """Smallest geometric margin: the distance of the closest row, negative if any row is on the wrong side."""
        return float(self.geometric_margins(X, y).min())

    def canonical(self, X: Any) -> Hyperplane:
        """Scale (w, b) so that the smallest |w.x + b| over the rows is 1; then margin = 1/|w|."""
        smallest = float(np.abs(self.score(X)).min())
        if smallest == 0.0:
            raise BadInput("a row of X lies on the hyperplane, so no scaling makes its score 1.")
        return Hyperplane(self.w / smallest, self.b / smallest)

    def homogeneous(self, first: bool = False) -> FloatArray:
        """(w, b), the normal of a hyperplane through the origin for rows with the constant 1 appended.

        With ``first`` the constant comes first: (b, w).
        """
        return np.append(self.w, self.b) if not first else np.append(self.b, self.w)

    @classmethod
    def from_homogeneous(cls, theta: Any, first: bool = False) -> Hyperplane:
        """Construct the hyperplane from (w, b), or from (b, w) with ``first``."""
        theta = np.asarray(theta, dtype=np.float64)
        if theta.ndim != 1 or len(theta) < 2:
            raise BadInput(f"(w, b) is a vector of at least two numbers, got shape {theta.shape}.")
        return cls(theta[1:], theta[0]) if first else cls(theta[:-1], theta[-1])

    def _rows(self, X: Any) -> Any:
        rows = plain_rows(X)
        if rows.shape[1] != len(self.w):
            raise BadInput(
                f"X has {rows.shape[1]} columns, the hyperplane has {len(self.w)} coefficients."
            )
        return rows


def length(w: FloatArray) -> float:
    """Euclidean norm |w|, without overflow or underflow."""
    largest = float(np.abs(w).max(initial=0.0))
    return largest * math.sqrt(float(((w / largest) ** 2).sum())) if largest > 0.0 else 0.0
