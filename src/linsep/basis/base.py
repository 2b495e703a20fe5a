"""What all bases share: validation of the rows, names of the columns, and scikit-learn's tags."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from linsep.data.entrance.finite import refuse_nonfinite


class Basis(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of transformers that return basis functions of the features."""

    _takes_sparse: ClassVar[bool] = False

    def _validate(self, X: Any, *, fitting: bool = False) -> Any:
        """Return X as floating-point rows; unless ``fitting``, it must have the columns that were fitted."""
        if not fitting:
            check_is_fitted(self)
        sparse = "csr" if self._takes_sparse else False
        kinds = (np.float64, np.float32)
        rows = validate_data(
            self, X, accept_sparse=sparse, dtype=kinds, reset=fitting, ensure_all_finite=False
        )
        refuse_nonfinite(rows, getattr(self, "feature_names_in_", None))  # names the cell
        return rows

    @abstractmethod
    def _names(self, features: npt.NDArray[np.object_]) -> Iterable[str]:
        """Return the names of the columns of the output."""

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Return the name of each column of the output, from the names of the features."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        return np.array(list(self._names(names)), dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
