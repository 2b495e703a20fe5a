"""Validation of rows on a cluster: each worker checks its partition by the rules for arrays in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from linsep.arrays import FloatArray, stack_rows
from linsep.data.cluster import (
    ClusterRows,
    ClusterScan,
    Facts,
    Partition,
    Prefetch,
    open_rows,
    partition_results,
)
from linsep.data.cluster.engine import length
from linsep.data.cluster.partition import with_partition_number
from linsep.data.entrance import inputs, labels
from linsep.data.entrance.finite import refuse_nonfinite
from linsep.data.memory import readable
from linsep.errors import BadInput

if TYPE_CHECKING:
    import numpy.typing as npt


def open_partitions(
    X: Any, y: Any, weight: Any, owner: str, numbers: bool, prefetch: Prefetch | None = None
) -> ClusterRows:
    """Open rows, labels (or targets, if ``numbers``) and weights on the workers. One round.

    ``prefetch(sizes, d)`` returns the numbers of the rows that a fit requests first.
    """
    if y is None and not isinstance(X, ClusterScan):
        raise BadInput(f"This {owner} estimator requires y to be passed, but the target y is None.")
    rows = open_rows(X, y, weight, prepare, prefetch, owner=owner, numbers=numbers)
    if rows.weighted and max(fact.weight[1] for fact in rows.facts if fact.weight) == 0.0:
        raise BadInput(
            "sample_weight is zero in every row, so nothing is left to learn from; give at least "
            "one row of each class a positive weight."
        )
    return rows


def prepare(
    x: Any, y: Any, weight: Any, number: int, *, owner: str, numbers: bool
) -> Partition | None:
    """Check a partition on its worker and return it in a layout the kernels read; None if it is empty."""
    with with_partition_number(number):
        if length(x) == 0:
            return None
        X, names = inputs.rows(x, owner)
        refuse_nonfinite(X, names)
        X = readable(X)
        n = X.shape[0]
        codes = classes = target = counts = totals = None
        s = None if weight is None else inputs.nonnegative_weights(weight, n)
        if numbers:
            target = inputs.targets(y, n, owner)
        else:
            known = labels.encode_any(y, n, owner)
            classes, codes = known.classes, known.codes.astype(np.int64)
            counts = np.bincount(codes, minlength=len(classes))
            totals = np.bincount(codes, weights=s, minlength=len(classes)).astype(np.float64)
        facts = Facts(
            n=n,
            d=X.shape[1],
            dtype=X.dtype.name,
            sparse=not isinstance(X, np.ndarray),
            entries=int(X.size if isinstance(X, np.ndarray) else X.nnz),
            counts=counts,
            totals=totals,
            classes=classes,
            weight=None if s is None else (float(s.min()), float(s.max()), float(s.sum())),
            names=names,
            largest=0.0 if target is None else float(np.abs(target).max(initial=0.0)),
        )
        return Partition(X, codes, classes, target, s, facts)


class RemoteLabels:
    """Labels of rows on a cluster, with the interface of ``labels.Labels``; the codes stay on the workers."""

    def __init__(self, rows: ClusterRows, classes: npt.NDArray[Any]) -> None:
        self.rows, self.classes = rows, classes
        rows.classes = classes
        rows.places = [labels.positions_in(classes, _classes(fact)) for fact in rows.facts]

    @property
    def codes(self) -> Any:
        """Class number of each row."""
        return self.rows.vector(coupled=True)

    def signs(self, positive: int = 1) -> Any:
        """Return +1.0 for the rows of class number ``positive`` and -1.0 for the others."""
        return self.rows.vector(positive=positive)

    def totals(self) -> FloatArray:
        """Return the sum of the sample weights of each class."""
        totals = np.zeros(len(self.classes))
        for fact, place in zip(self.rows.facts, self.rows.places, strict=True):
            assert fact.totals is not None
            totals[place] += fact.totals
        return totals


def _classes(fact: Facts) -> npt.NDArray[Any]:
    assert fact.classes is not None
    return fact.classes


def encode(rows: ClusterRows, owner: str, classes: npt.NDArray[Any] | None = None) -> Any:
    """Encode the labels of all partitions, with the ``classes`` of a fitted model if they are given."""
    if classes is not None:
        return RemoteLabels(rows, classes)
    given = [_classes(fact) for fact in rows.facts]
    _refuse_different_kinds(given)
    found = labels.classes_of(np.concatenate(given))
    labels.refuse_one_class(found, owner)
    return RemoteLabels(rows, found)


def _refuse_different_kinds(given: list[npt.NDArray[Any]]) -> None:
    """Raise if the labels of the partitions are strings in some and numbers in others."""
    kinds = {found.dtype.kind for found in given}
    if len(kinds) > 1 and not kinds <= set("iufb") and not kinds <= set("UOT"):
        raise BadInput(
            f"y holds labels of different kinds in different partitions (dtype kinds {sorted(kinds)}): make "
            "them all strings or all integers."
        )


def fetch(rows: ClusterRows) -> tuple[Any, Any, Any]:
    """Copy rows, labels (or targets) and weights to the client: an array or CSR matrix, and vectors. One round."""
    parts = rows.fetch()
    if parts[0].codes is not None:
        _refuse_different_kinds([_classes(fact) for fact in rows.facts])
    found = [(part.X, _targets(part), part.weight) for part in parts]
    X, y, weight = map(stack_rows, zip(*found, strict=True))
    return X, y, weight


def _targets(part: Partition) -> npt.NDArray[Any]:
    """Return the class labels of a partition, or its numeric targets."""
    found = part.target if part.codes is None else part.classes[part.codes]  # type: ignore[index]
    assert found is not None
    return found


def weigh(known: RemoteLabels, class_weight: Any, owner: str) -> Any:
    """Return sample weight times class weight, on the workers; None means ones."""
    rows = known.rows
    factors = labels.class_factors(known.classes, known.totals(), class_weight, owner)
    if factors is None:
        return weights(rows)
    return rows.vector(factors=tuple(factors.tolist()))


def weights(rows: ClusterRows) -> Any:
    """Return the sample weights, on the workers; None means ones."""
    return rows.vector() if rows.weighted else None


def accuracy(model: Any, X: Any, y: Any, sample_weight: Any) -> float:
    """Compute the weighted accuracy on a cluster. One round that returns only sums."""
    _refuse_missing(model, X, y)
    right, total = np.sum(partition_results(_right, model, X, y, sample_weight), axis=0)
    return float(right / total)


def _right(model: Any, x: Any, y: Any, s: FloatArray) -> FloatArray:
    """Return the weight of the correctly classified rows of a partition, and the total weight."""
    return np.array([s @ (model.predict(x) == y), s.sum()])


def r_squared(model: Any, X: Any, y: Any, sample_weight: Any) -> float:
    """Compute R^2 = 1 - sum s (y - z)^2 / sum s (y - mean)^2 on a cluster. One round that returns only sums."""
    _refuse_missing(model, X, y)
    found = np.array(partition_results(_deviations, model, X, y, sample_weight))
    mass, means, within, left = found[found[:, 0] > 0.0].T
    between = mass @ (means - mass @ means / mass.sum()) ** 2
    return float(1.0 - left.sum() / (within.sum() + between))


def _deviations(model: Any, x: Any, y: Any, s: FloatArray) -> FloatArray:
    """Return weight, mean, and sums of squares about the mean and about the predictions, of a partition."""
    mean = (s @ y) / s.sum() if s.sum() > 0.0 else 0.0
    return np.array([s.sum(), mean, s @ (y - mean) ** 2, s @ (y - model.predict(x)) ** 2])


def _refuse_missing(model: Any, X: Any, y: Any) -> None:
    check_is_fitted(model, "coef_")
    if y is None and not isinstance(X, ClusterScan):
        raise BadInput(f"score of {type(model).__name__} needs y.")
