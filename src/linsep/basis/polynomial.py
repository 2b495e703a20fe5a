"""Monomials of the features, computed by scikit-learn's ``PolynomialFeatures``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.validation import check_is_fitted

from linsep.arrays import IntArray
from linsep.basis.base import Basis
from linsep.errors import BadInput

Model = TypeVar("Model", bound="Monomials")


class Monomials(Basis):
    """Base class of the monomial bases; subclasses choose the monomials."""

    _takes_sparse = True

    @abstractmethod
    def _expansion(self) -> PolynomialFeatures:
        """Return the scikit-learn transformer for the chosen monomials."""

    def fit(self: Model, X: Any, y: Any = None) -> Model:
        """Determine the monomials for the number of features of X."""
        X = self._validate(X, fitting=True)
        try:
            # use arrays internally, whatever the global configuration: the index of a frame is added by the wrapper
            self._monomials = self._expansion().set_output(transform="default").fit(X)
        except ValueError as error:
            raise BadInput(str(error).replace("PolynomialFeatures", type(self).__name__)) from error
        self.n_output_features_ = self._monomials.n_output_features_
        return self

    def transform(self, X: Any) -> Any:
        """Return the monomials of each row, one per column; CSR if X is sparse."""
        X = self._validate(X)
        values = self._monomials.transform(X)
        return values.tocsr() if sp.issparse(values) else values

    def _names(self, features: npt.NDArray[np.object_]) -> Iterable[str]:
        names: Iterable[str] = self._monomials.get_feature_names_out(features)
        return names

    @property
    def powers_(self) -> IntArray:
        """Exponent of each feature in each monomial, one row for each column of the output."""
        check_is_fitted(self)
        powers: IntArray = self._monomials.powers_
        return powers


class Polynomial(Monomials):
    """Monomials x_i x_j ... x_k of degree at most ``degree``.

    Parameters
    ----------
    degree : int or tuple (lowest, highest), default 2
    interaction_only : bool, default False
        Omit powers: no feature occurs twice in a product.
    include_bias : bool, default False
        Add the monomial of degree 0. Estimators have their own intercept, so this is rarely needed.

    Attributes
    ----------
    powers_ : ndarray (columns, d)
        Exponent of each feature in each monomial.
    n_output_features_ : int
    n_features_in_, feature_names_in_

    Raises
    ------
    BadInput
        In ``fit``, if ``degree`` is not a whole number, or a pair of them.

    See Also
    --------
    Interactions : Degree 2, with the choice to leave out squares.
    sklearn.preprocessing.PolynomialFeatures : The same columns.

    Notes
    -----
    CSR input gives CSR output. Polynomial regression is ``Polynomial`` followed by ``LinearRegressor``.

    References
    ----------
    Hastie, Tibshirani and Friedman, The Elements of Statistical Learning, 2009, chapter 5.

    Examples
    --------
    >>> from linsep.basis import Polynomial
    >>> Polynomial(3).fit_transform([[2.0], [3.0]])
    array([[ 2.,  4.,  8.],
           [ 3.,  9., 27.]])
    """

    def __init__(
        self,
        degree: int | tuple[int, int] = 2,
        *,
        interaction_only: bool = False,
        include_bias: bool = False,
    ) -> None:
        self.degree = degree
        self.interaction_only = interaction_only
        self.include_bias = include_bias

    def _expansion(self) -> PolynomialFeatures:
        return PolynomialFeatures(
            self.degree, interaction_only=self.interaction_only, include_bias=self.include_bias
        )


class Interactions(Monomials):
    """Quadratic basis: every feature, every product of two features, and (by default) every square.

    The score is g(x) = sum_{i <= j} w_ij x_i x_j + sum_j w_j x_j + b. For d features there are
    d + d (d + 1)/2 coefficients, so the number of rows needed grows with d^2.

    Parameters
    ----------
    squares : bool, default True
        Whether to include the products x_j x_j.

    Attributes
    ----------
    powers_ : ndarray (columns, d)
    n_output_features_ : int
    n_features_in_, feature_names_in_

    Raises
    ------
    ValueError
        In ``fit``, if X is not numeric and finite.

    See Also
    --------
    Polynomial : Higher degrees.

    References
    ----------
    Hastie, Tibshirani and Friedman, The Elements of Statistical Learning, 2009, chapter 5.

    Examples
    --------
    >>> from linsep.basis import Interactions
    >>> Interactions().fit([[2.0, 3.0]]).get_feature_names_out(["a", "b"])
    array(['a', 'b', 'a^2', 'a b', 'b^2'], dtype=object)
    """

    def __init__(self, *, squares: bool = True) -> None:
        self.squares = squares

    def _expansion(self) -> PolynomialFeatures:
        return PolynomialFeatures(2, interaction_only=not self.squares, include_bias=False)
