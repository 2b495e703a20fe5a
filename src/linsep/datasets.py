"""Small data sets for examples and lectures: seeded generators, and bundled data as two classes.

Every function returns (X, y): float64 rows and labels -1 and +1 (int64). The same arguments give the same
rows.

=====================  ==========================================================
``blobs_margin``       separable, with at least the given margin
``overlapping``        two overlapping normal distributions
``exclusive_or``       four clusters, opposite corners in one class: a line gets at most three of them right
``moons``              two interleaved half circles
``touching_hulls``     the convex hulls share exactly one point: quasi-separable
``breast_cancer``      569 x 30, malignant (+1) or benign; scikit-learn's copy
``iris``               100 x 4, two of the three species; ``("setosa", ...)`` is separable
``digits``             about 360 x 64, images of two digits
=====================  ==========================================================
"""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

import numpy as np
import sklearn.datasets

from linsep.arrays import FloatArray, IntArray
from linsep.errors import BadInput

__all__ = [
    "blobs_margin",
    "breast_cancer",
    "digits",
    "exclusive_or",
    "iris",
    "moons",
    "overlapping",
    "touching_hulls",
]

Sample = tuple[FloatArray, IntArray]
SPECIES = ("setosa", "versicolor", "virginica")


def blobs_margin(n: int = 100, d: int = 2, margin: float = 0.5, seed: int = 0) -> Sample:
    """Draw n normal rows in d dimensions, shifted away from a random hyperplane by ``margin``.

    Every row has at least that distance from the hyperplane, so the largest margin is at least as large.

    Parameters
    ----------
    n : int
        Number of rows.
    d : int, default 2
        Number of features.
    margin : float, default 0.5
        Minimum distance of the rows from the hyperplane.
    seed : int, default 0
        Seed; the same arguments give the same rows.

    Returns
    -------
    tuple (X, y)
        Rows (n, d) as float64, and labels -1 and +1 as int64.

    Raises
    ------
    BadInput
        If an argument is out of range.

    See Also
    --------
    overlapping : Classes that no hyperplane separates.

    Examples
    --------
    >>> from linsep import datasets
    >>> X, y = datasets.blobs_margin(40, margin=1.0)
    >>> X.shape
    (40, 2)
    >>> sorted(set(y.tolist()))
    [-1, 1]
    """
    rng = _rng(n, d, seed)
    if not 0 <= margin < math.inf:
        raise BadInput(f"margin must be at least 0 and finite, got {margin!r}.")
    w = rng.normal(size=d)
    w /= np.linalg.norm(w)
    X = rng.normal(size=(n, d))
    y = _halves(n)
    X += np.outer(y * np.abs(X @ w) - X @ w, w)  # reflect to the side of the label
    return X + margin * np.outer(y, w), y


def overlapping(n: int = 200, d: int = 2, distance: float = 2.0, seed: int = 0) -> Sample:
    """Draw two classes from unit normal distributions whose means are ``distance`` apart along the diagonal.

    Parameters
    ----------
    n : int
        Number of rows.
    d : int, default 2
        Number of features.
    distance : float, default 2.0
        Distance between the two means.
    seed : int, default 0
        Seed; the same arguments give the same rows.

    Returns
    -------
    tuple (X, y)
        Rows (n, d) as float64, and labels -1 and +1 as int64.

    Raises
    ------
    BadInput
        If an argument is out of range.

    See Also
    --------
    blobs_margin : Separable classes.

    Examples
    --------
    >>> from linsep import datasets
    >>> X, y = datasets.overlapping(50)
    >>> X.shape
    (50, 2)
    """
    rng = _rng(n, d, seed)
    y = _halves(n)
    return rng.normal(size=(n, d)) + np.outer(y, np.full(d, distance / 2 / math.sqrt(d))), y


def exclusive_or(n: int = 200, spread: float = 0.2, seed: int = 0) -> Sample:
    """Draw normal clusters at the corners of the square (-1, 1)^2; +1 where the coordinates differ in sign.

    Parameters
    ----------
    n : int
        Number of rows.
    spread : float, default 0.2
        Standard deviation of each cluster.
    seed : int, default 0
        Seed; the same arguments give the same rows.

    Returns
    -------
    tuple (X, y)
        Rows (n, d) as float64, and labels -1 and +1 as int64.

    Raises
    ------
    BadInput
        If an argument is out of range.

    See Also
    --------
    moons : Another problem for basis functions.

    Examples
    --------
    >>> from linsep import datasets
    >>> X, y = datasets.exclusive_or(40)
    >>> X.shape
    (40, 2)
    """
    rng = _rng(n, 2, seed)
    corner = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, 1.0], [1.0, -1.0]])[np.arange(n) % 4]
    y = np.where(corner[:, 0] * corner[:, 1] < 0, 1, -1).astype(np.int64)
    return corner + spread * rng.normal(size=(n, 2)), y


def moons(n: int = 200, noise: float = 0.1, seed: int = 0) -> Sample:
    """Draw two interleaved half circles of radius 1 with noise.

    Parameters
    ----------
    n : int
        Number of rows.
    noise : float, default 0.1
        Standard deviation of the noise.
    seed : int, default 0
        Seed; the same arguments give the same rows.

    Returns
    -------
    tuple (X, y)
        Rows (n, d) as float64, and labels -1 and +1 as int64.

    Raises
    ------
    BadInput
        If an argument is out of range.

    See Also
    --------
    exclusive_or : Another problem for basis functions.
    sklearn.datasets.make_moons : With more options.

    Examples
    --------
    >>> from linsep import datasets
    >>> X, y = datasets.moons(40)
    >>> X.shape
    (40, 2)
    """
    rng = _rng(n, 2, seed)
    y = _halves(n)
    angle = rng.uniform(0, np.pi, size=n)
    arc = np.column_stack([np.cos(angle), np.sin(angle)])
    X = np.where(y[:, None] > 0, arc, [1.0, 0.5] - arc)
    return X + noise * rng.normal(size=(n, 2)), y


def touching_hulls(n: int = 40, seed: int = 0) -> Sample:
    """Draw two classes on either side of x_1 = 0 whose convex hulls share only the origin.

    The first row, the origin, is +1 and is the midpoint of the second and the third row, which are -1.

    Parameters
    ----------
    n : int
        Number of rows, at least 4.
    seed : int, default 0
        Seed; the same arguments give the same rows.

    Returns
    -------
    tuple (X, y)
        Rows (n, d) as float64, and labels -1 and +1 as int64.

    Raises
    ------
    BadInput
        If an argument is out of range.

    See Also
    --------
    linsep.separate : Decides such cases.

    Examples
    --------
    >>> from linsep import datasets, separate
    >>> separate(*datasets.touching_hulls()).quasi
    True
    """
    if n < 4:
        raise BadInput(f"n must be at least 4, got {n!r}.")
    rng = _rng(n, 2, seed)
    y = _halves(n)
    X = rng.normal(size=(n, 2))
    X[:, 0] = y * (0.5 + np.abs(X[:, 0]))
    X[:3], y[:3] = [[0.0, 0.0], [0.0, 1.0], [0.0, -1.0]], [1, -1, -1]
    return X, y


def breast_cancer() -> Sample:
    """Load the breast cancer data: malignant (+1) and benign (-1) tumours, 569 x 30, in original units.

    Returns
    -------
    tuple (X, y)
        Rows (n, d) as float64, and labels -1 and +1 as int64.

    See Also
    --------
    sklearn.datasets.load_breast_cancer : The same rows with names.

    References
    ----------
    Street, Wolberg and Mangasarian, Nuclear feature extraction for breast tumor diagnosis, 1993.

    Examples
    --------
    >>> from linsep import datasets
    >>> X, y = datasets.breast_cancer()
    >>> X.shape
    (569, 30)
    """
    X, benign = sklearn.datasets.load_breast_cancer(return_X_y=True)
    return X, np.where(benign == 0, 1, -1).astype(np.int64)


def iris(positive: str = "virginica", negative: str = "versicolor") -> Sample:
    """Load two species of the iris data, 100 x 4.

    Parameters
    ----------
    positive, negative : {"setosa", "versicolor", "virginica"}
        The species labelled +1 and -1.

    Returns
    -------
    tuple (X, y)
        Rows (n, d) as float64, and labels -1 and +1 as int64.

    Raises
    ------
    BadInput
        If a species is unknown.

    See Also
    --------
    sklearn.datasets.load_iris : All three species.

    References
    ----------
    Fisher, The use of multiple measurements in taxonomic problems, Annals of Eugenics 7, 1936.

    Examples
    --------
    >>> from linsep import datasets
    >>> X, y = datasets.iris()
    >>> X.shape
    (100, 4)
    """
    for species in (positive, negative):
        if species not in SPECIES:
            raise BadInput(f"species must be one of {', '.join(SPECIES)}, got {species!r}.")
    X, y = sklearn.datasets.load_iris(return_X_y=True)
    return _pair(X, y, SPECIES.index(positive), SPECIES.index(negative))


def digits(positive: int = 8, negative: int = 3) -> Sample:
    """Load the images of two digits, 8 x 8 grey levels from 0 to 16.

    Parameters
    ----------
    positive, negative : int
        The digits labelled +1 and -1.

    Returns
    -------
    tuple (X, y)
        Rows (n, d) as float64, and labels -1 and +1 as int64.

    Raises
    ------
    BadInput
        If a digit is not between 0 and 9.

    See Also
    --------
    sklearn.datasets.load_digits : All ten digits.

    References
    ----------
    Alpaydin and Kaynak, Cascading classifiers, Kybernetika 34, 1998.

    Examples
    --------
    >>> from linsep import datasets
    >>> X, y = datasets.digits(8, 3)
    >>> X.shape
    (357, 64)
    """
    if positive not in range(10) or negative not in range(10):
        raise BadInput(f"digits are 0 ... 9, got {positive!r} and {negative!r}.")
    X, y = sklearn.datasets.load_digits(return_X_y=True)
    return _pair(X, y, positive, negative)


def _pair(X: Any, y: Any, positive: int, negative: int) -> Sample:
    if positive == negative:
        raise BadInput("two different classes are needed.")
    rows = (y == positive) | (y == negative)
    return X[rows], np.where(y[rows] == positive, 1, -1).astype(np.int64)


def _halves(n: int) -> IntArray:
    """Return alternating labels, so that the first rows contain both classes."""
    return np.where(np.arange(n) % 2 == 0, 1, -1).astype(np.int64)


def _rng(n: object, d: object, seed: int) -> np.random.Generator:
    for name, value, least in (("n", n, 2), ("d", d, 1)):
        if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
            raise BadInput(f"{name} must be a whole number of at least {least}, got {value!r}.")
    return np.random.default_rng(seed)
