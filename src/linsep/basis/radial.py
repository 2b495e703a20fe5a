"""Radial basis functions: Gaussian functions around chosen centres."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist
from sklearn.utils import check_array

from linsep import arguments
from linsep.basis.base import Basis
from linsep.errors import BadInput

FloatArray = npt.NDArray[np.floating[Any]]


def farthest(X: FloatArray, count: int) -> FloatArray:
    """Return at most ``count`` distinct rows, each as far as possible from those before it.

    The first is the row nearest to the mean. The radius needed to cover X from these centres is at
    most twice the smallest possible (Gonzalez 1985).
    """
    chosen = [int(cdist(X.mean(axis=0, keepdims=True), X, "sqeuclidean").argmin())]
    distance = cdist(X[chosen], X, "sqeuclidean")[0]
    while len(chosen) < count and distance.max() > 0:
        chosen.append(int(distance.argmax()))
        distance = np.minimum(distance, cdist(X[chosen[-1:]], X, "sqeuclidean")[0])
    return X[chosen]


def quantiles(X: FloatArray, count: int) -> FloatArray:
    """Return the distinct quantiles (k + 1/2)/count of one feature."""
    if X.shape[1] != 1:
        raise BadInput(
            f'centres="quantiles" is for one feature, X has {X.shape[1]}; use centres="farthest", '
            "an array of centres, or a ColumnTransformer with one RadialBasis for each column."
        )
    levels = (np.arange(count) + 0.5) / count
    return np.unique(np.quantile(X[:, 0], levels))[:, None]


PLACEMENTS = {"farthest": farthest, "quantiles": quantiles}


class RadialBasis(Basis):
    """Radial basis functions exp(-|x - m|^2 / c), one for each centre m.

    Parameters
    ----------
    centres : {"farthest", "quantiles"} or array (k, d), default "farthest"
        "farthest": rows of X chosen one after another, each as far as possible from those before.
        "quantiles": evenly spaced quantiles, for a single feature.
    n_centres : int, default 10
        Number of centres (fewer if X has fewer distinct rows); ignored if ``centres`` is an array.
    width : float, optional
        The c of the formula, in squared units of x. By default the mean squared distance from a
        centre to its nearest neighbour, so that adjacent functions overlap.

    Attributes
    ----------
    centres_ : ndarray (k, d)
    width_ : float
    n_features_in_, feature_names_in_

    Raises
    ------
    BadInput
        In ``fit``, if ``width``, ``n_centres`` or ``centres`` is not usable.

    See Also
    --------
    RectifiedBasis : Piecewise linear functions.

    Notes
    -----
    Distances combine all features: scale them first if their units differ.

    References
    ----------
    Broomhead and Lowe, Multivariable functional interpolation and adaptive networks, Complex Systems 2, 1988.

    Gonzalez, Clustering to minimize the maximum intercluster distance, Theoretical Computer Science 38, 1985.

    Examples
    --------
    >>> from linsep.basis import RadialBasis
    >>> RadialBasis([[0.0], [2.0]], width=1.0).fit_transform([[0.0], [1.0]]).round(3)
    array([[1.   , 0.018],
           [0.368, 0.368]])
    """

    def __init__(
        self, centres: Any = "farthest", *, n_centres: int = 10, width: float | None = None
    ) -> None:
        self.centres = centres
        self.n_centres = n_centres
        self.width = width

    def fit(self, X: Any, y: Any = None) -> RadialBasis:
        """Choose the centres and the width."""
        count = arguments.count("n_centres", self.n_centres, "centres")
        if self.width is not None:
            arguments.positive("width", self.width)
        X = self._validate(X, fitting=True)
        if isinstance(self.centres, str):
            if self.centres not in PLACEMENTS:
                raise BadInput(
                    f"centres must be an array or one of {', '.join(map(repr, PLACEMENTS))}, "
                    f"got {self.centres!r}."
                )
            self.centres_ = PLACEMENTS[self.centres](X, count)
        elif np.ndim(self.centres) == 0:
            raise BadInput(
                f"centres must be an array (k, d) or one of {', '.join(map(repr, PLACEMENTS))}, got {self.centres!r}; "
                "n_centres sets the number of centres."
            )
        else:
            self.centres_ = check_array(self.centres, dtype=X.dtype, input_name="centres")
            if self.centres_.shape[1] != X.shape[1]:
                raise BadInput(
                    f"centres have {self.centres_.shape[1]} coordinates, X has {X.shape[1]} features."
                )
        self.width_ = _spacing(self.centres_) if self.width is None else float(self.width)
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return the values of the radial functions at each row, (n, k), in (0, 1]."""
        X = self._validate(X)
        squared = cdist(X, self.centres_, "sqeuclidean")
        return np.asarray(np.exp(-squared / self.width_), dtype=X.dtype)

    def _names(self, features: npt.NDArray[np.object_]) -> Iterable[str]:
        return (f"radial{k}" for k in range(len(self.centres_)))


def _spacing(centres: FloatArray) -> float:
    """Mean squared distance to the nearest other centre; 1 if there is no other."""
    squared = cdist(centres, centres, "sqeuclidean")
    squared[squared == 0] = math.inf
    nearest = squared.min(axis=1)
    return float(nearest.mean()) if np.isfinite(nearest).all() else 1.0
