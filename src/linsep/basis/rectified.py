"""Rectified linear functions: zero on one side of a hyperplane, linear on the other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import check_array, check_random_state

from linsep import arguments
from linsep.basis.base import Basis
from linsep.errors import BadInput

FloatArray = npt.NDArray[np.floating[Any]]


class RectifiedBasis(Basis):
    """Rectified linear functions max(0, a.x + b), one for each pair (a, b): an untrained layer of ReLU units.

    Parameters
    ----------
    n_functions : int, default 50
        Number of functions to draw; ignored if ``a`` is given.
    a : array (k, d), optional
        Directions. By default they are drawn uniformly on the sphere, in units of each feature's
        standard deviation.
    b : array (k,), optional
        Offsets, only with ``a``. By default every kink passes through a randomly drawn row of X.
    random_state : int, RandomState or None

    Attributes
    ----------
    a_ : ndarray (k, d)
    b_ : ndarray (k,)
    n_features_in_, feature_names_in_

    Raises
    ------
    BadInput
        In ``fit``, if ``b`` is given without ``a``, or their shapes do not match.

    See Also
    --------
    RadialBasis : Gaussian functions around centres.

    Notes
    -----
    With random a and b this is a random feature expansion: only the weights of the functions are learned.

    References
    ----------
    Rahimi and Recht, Weighted sums of random kitchen sinks, NIPS 2008.

    Examples
    --------
    >>> from linsep.basis import RectifiedBasis
    >>> RectifiedBasis(a=[[1.0], [-1.0]], b=[-1.0, 1.0]).fit_transform([[0.0], [3.0]])
    array([[0., 1.],
           [2., 0.]])
    """

    _takes_sparse = True

    def __init__(
        self, n_functions: int = 50, *, a: Any = None, b: Any = None, random_state: Any = None
    ) -> None:
        self.n_functions = n_functions
        self.a = a
        self.b = b
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> RectifiedBasis:
        """Draw the directions and offsets, or check those given."""
        count = arguments.count("n_functions", self.n_functions, "functions")
        if self.b is not None and self.a is None:
            raise BadInput("b is given without a: an offset belongs to a direction; give both.")
        X = self._validate(X, fitting=True)
        rng = check_random_state(self.random_state)
        if self.a is None:
            g = rng.standard_normal((count, X.shape[1]))
            a = g / np.linalg.norm(g, axis=1, keepdims=True) / _scale(X)
        else:
            a = check_array(self.a, input_name="a")
            if a.shape[1] != X.shape[1]:
                raise BadInput(f"a has {a.shape[1]} columns, X has {X.shape[1]} features.")
        self.a_ = a.astype(X.dtype)
        if self.b is None:
            through = X[rng.randint(X.shape[0], size=len(a))]
            if sp.issparse(through):
                b = -np.asarray(through.multiply(self.a_).sum(axis=1)).ravel()
            else:
                b = -(through * self.a_).sum(axis=1)
        else:
            b = check_array(self.b, ensure_2d=False, input_name="b")
            if b.shape != (len(a),):
                raise BadInput(
                    f"b must have one offset for each of {len(a)} rows of a, got shape {b.shape}."
                )
        self.b_ = b.astype(X.dtype)
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return the value of each function at each row, (n, k), dense."""
        X = self._validate(X)
        values = np.asarray(X @ self.a_.T) + self.b_
        return np.asarray(np.maximum(values, 0.0), dtype=X.dtype)

    def _names(self, features: npt.NDArray[np.object_]) -> Iterable[str]:
        return (f"rectified{k}" for k in range(len(self.a_)))


def _scale(X: Any) -> npt.NDArray[np.float64]:
    """Standard deviation of each feature; 1 for a constant feature."""
    if sp.issparse(X):
        mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
        square = np.asarray(X.multiply(X).mean(axis=0), dtype=np.float64).ravel()
        deviation = np.sqrt(np.maximum(square - mean**2, 0.0))
    else:
        deviation = X.std(axis=0, dtype=np.float64)
    return np.where(deviation > 0, deviation, 1.0)
