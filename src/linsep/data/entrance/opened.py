"""``open``: validate X, y and weights at any location, for ``fit``, ``score`` and ``verify``."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from sklearn.utils.validation import check_is_fitted

from linsep.data.cluster import ClusterRows, Prefetch
from linsep.data.entrance import inputs, labels, partitions
from linsep.data.entrance.dataframes import Names
from linsep.data.entrance.labels import Labels
from linsep.data.location import Location, location_of
from linsep.data.memory_rows import few_on_cluster
from linsep.errors import BadInput


class Opened(Protocol):
    """Protocol of validated rows with their labels or targets and weights."""

    rows: Any  #: an array, a CSR matrix, rows on disk or rows on a cluster
    names: Names | None  #: column names
    location: Location
    fitted: dict[str, Any]  #: additional fitted attributes, such as ``traffic_`` on a cluster

    def labels(self, classes: Any = None) -> Any:
        """Return the class labels, encoded with the ``classes`` of a fitted model if they are given."""

    def weights(self) -> Any:
        """Return the sample weights; None means ones."""

    def class_weights(self, known: Any, class_weight: Any) -> Any:
        """Return sample weights times class weights; None means ones."""

    def regression(self, centre: float) -> tuple[Any, Any]:
        """Return signs (None means ones) and offsets such that margins are z + centre - t for targets t."""


class _Local:
    """Opened rows in memory or on disk."""

    def __init__(self, rows: Any, names: Names | None, y: Any, weight: Any, owner: str) -> None:
        self.rows, self.names, self.y, self.weight, self._owner = rows, names, y, weight, owner
        self.location = location_of(rows)
        self.fitted: dict[str, Any] = {}

    def labels(self, classes: Any = None) -> Labels:
        n = self.rows.shape[0]
        if classes is None:
            return labels.encode(self.y, n, self._owner)
        return labels.encode_as(classes, self.y, n, self._owner)

    def weights(self) -> Any:
        return inputs.weights(self.weight, self.rows.shape[0])

    def class_weights(self, known: Labels, class_weight: Any) -> Any:
        return labels.combined_weights(known, self.weights(), class_weight, self._owner)

    def regression(self, centre: float) -> tuple[Any, Any]:
        n = self.rows.shape[0]
        return np.ones(n), centre - inputs.targets(self.y, n, self._owner)


class _OnCluster:
    """Opened rows on the workers of a cluster, where labels and weights stay too."""

    location = Location.CLUSTER

    def __init__(self, rows: ClusterRows, owner: str) -> None:
        self.rows, self.names, self._owner = rows, rows.names, owner
        self.fitted = {"traffic_": rows.traffic}

    def labels(self, classes: Any = None) -> Any:
        return partitions.encode(self.rows, self._owner, classes)

    def weights(self) -> Any:
        return partitions.weights(self.rows)

    def class_weights(self, known: Any, class_weight: Any) -> Any:
        return partitions.weigh(known, class_weight, self._owner)

    def regression(self, centre: float) -> tuple[Any, Any]:
        return None, self.rows.offsets(centre)


def _fetched(rows: ClusterRows) -> tuple[Any, Names | None, Any, Any]:
    """Copy rows on a cluster to the client; return them with their column names, targets and weights."""
    X, y, weight = partitions.fetch(rows)
    return X, rows.names, y, weight


def open(
    X: Any,
    y: Any,
    weight: Any,
    owner: str,
    *,
    numbers: bool = False,
    model: Any = None,
    prefetch: Prefetch | None = None,
) -> Opened:
    """Validate X, targets and weights; a scan may have its own targets and weights.

    For a fit, rows in files or on a cluster are read into memory if they are few enough (``memory_rows``).

    Parameters
    ----------
    X : array, sparse matrix, data frame, scan or Dask collection
    y, weight : array, Dask collection or None
    owner : str
        Name of the estimator or function, for messages.
    numbers : bool
        Whether y contains numeric targets instead of class labels.
    model : fitted estimator, optional
        X must have the columns that it was fitted to.
    prefetch : function of (sizes of the partitions, d), optional
        Numbers of the rows that a fit requests first; a cluster sends them when it opens the partitions.
    """
    if model is not None:
        check_is_fitted(model, "coef_")
    where = location_of(X)
    if where is Location.CLUSTER:
        found = partitions.open_partitions(X, y, weight, owner, numbers, prefetch)
        if model is not None:
            inputs.refuse_other_columns(model, found.shape[1], found.names)
        elif few_on_cluster(found.nbytes, found.engine.memory_limit()):
            here = _Local(*_fetched(found), owner)
            here.fitted["traffic_"] = found.traffic
            return here
        return _OnCluster(found, owner)
    if model is None:
        rows, names = inputs.rows_or_scan(X, owner)
    else:
        rows, names = inputs.validate_new_rows(model, X), None
    if where is Location.DISK:
        y, weight = X.given(y, weight, owner)
    return _Local(rows, names, y, weight, owner)


def read_rows(X: Any, y: Any, weight: Any, owner: str) -> tuple[Any, Names | None, Any, Any]:
    """Return rows in memory with column names, targets and weights, for estimators that read single rows.

    Rows in files or on a cluster are read into memory if they are few enough; otherwise an error says so.
    """
    if location_of(X) is Location.MEMORY:
        return *inputs.rows(X, owner), y, weight
    many = location_of(X) is Location.DISK and not X.few()
    opened = None if many else open(X, y, weight, owner)
    if not isinstance(opened, _Local):
        raise BadInput(inputs.not_in_memory(X, owner, too_many=True))
    return opened.rows, opened.names, opened.y, opened.weight
