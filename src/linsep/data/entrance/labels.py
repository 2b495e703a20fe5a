"""Encoding of class labels as positions in the sorted list of classes, and class weights.

Labels are integers, booleans, strings, or floats that are whole numbers. For speed, sorting is avoided where
possible: two classes are found from the minimum, the maximum and two comparisons, and small integers are counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep import _kernels
from linsep.arrays import FloatArray, IntArray
from linsep.data.entrance.coded_labels import CodedLabels
from linsep.data.entrance.finite import refuse_nonfinite_vector
from linsep.data.entrance.inputs import LARGEST_WEIGHT, column, is_missing
from linsep.errors import BadInput

_FEW = 16  # classes up to which strings are encoded by one vectorised comparison per class
_TOGETHER = 1 << 16  # labels converted to Python objects together


class Labels:
    """Encoded class labels: sorted ``classes``, and ``codes``, the class number of each row.

    ``codes`` is boolean if there are at most two classes, int64 otherwise. For two classes the signs may be
    given instead.
    """

    def __init__(
        self,
        classes: npt.NDArray[Any],
        codes: npt.NDArray[Any] | None = None,
        signs: FloatArray | None = None,
    ) -> None:
        self.classes, self._codes, self._signs = classes, codes, signs

    @property
    def codes(self) -> npt.NDArray[Any]:
        """Class number of each row."""
        if self._codes is None:
            assert self._signs is not None
            self._codes = self._signs > 0.0
        return self._codes

    def signs(self, positive: int = 1) -> FloatArray:
        """Return +1.0 for the rows of class number ``positive`` and -1.0 for the others."""
        if self._signs is not None:
            return self._signs if positive == 1 else -self._signs
        ours = self.codes if self.codes.dtype == np.bool_ else self.codes == positive
        signs: FloatArray = ours.view(np.int8).astype(np.float64)  # far faster than np.where
        signs += signs
        signs -= 1.0
        return signs


def encode(y: Any, n: int, owner: str) -> Labels:
    """Encode the labels of the n rows of X; raise if there are fewer than two classes."""
    labels = encode_any(y, n, owner)
    refuse_one_class(labels.classes, owner)
    return labels


def encode_any(y: Any, n: int, owner: str) -> Labels:
    """Encode the labels of n rows, which may all be of one class."""
    return _encode(column(y, n, owner))


def classes_of(values: npt.NDArray[Any] | CodedLabels) -> npt.NDArray[Any]:
    """Return the distinct labels, sorted."""
    return _encode(values).classes


def code_strings(y: npt.NDArray[Any]) -> npt.NDArray[Any] | CodedLabels:
    """Return labels that are strings as codes, which take less memory; other labels as they are."""
    if y.dtype.kind != "O":
        return y
    known = _encode_objects(y)
    return CodedLabels(known.classes, known.codes)


def refuse_one_class(classes: npt.NDArray[Any], owner: str) -> None:
    """Raise if there is only one class."""
    if len(classes) < 2:
        raise BadInput(
            f"y holds one class only, {_show(classes)}; {owner} needs at least 2 classes: "
            "give it rows of another class."
        )


def encode_as(classes: npt.NDArray[Any], y: Any, n: int, owner: str) -> Labels:
    """Encode the labels of n rows with the classes of a fitted model; raise for a new class."""
    labels = encode_any(y, n, owner)
    moved = positions_in(classes, labels.classes)
    if len(classes) == 2:  # so there are at most two codes, False and True
        return Labels(classes, np.where(labels.codes, moved[-1] == 1, moved[0] == 1))
    return Labels(classes, moved[labels.codes.astype(np.intp)])


def positions_in(classes: npt.NDArray[Any], among: npt.NDArray[Any]) -> IntArray:
    """Return the position of each label among the classes of a fitted model; raise for a new label."""
    place = {label: at for at, label in enumerate(classes.tolist())}
    try:
        return np.array([place[label] for label in among.tolist()], dtype=np.int64)
    except KeyError as error:
        raise BadInput(
            f"y holds the label {error.args[0]!r}, which is not one of the classes of this "
            f"model: {_show(classes)}; give the labels the model was fitted to."
        ) from None


def combined_weights(
    labels: Labels, weight: FloatArray | None, class_weight: Any, owner: str
) -> FloatArray | None:
    """Return sample weight times class weight, one number per row; None means ones.

    ``"balanced"`` gives every class the same total: weight S / (k S_c), with S_c the sum of the
    sample weights in class c, S their sum over all k classes.
    """
    if class_weight is None and (weight is None or weight.min() > 0):
        return weight
    k = len(labels.classes)
    totals = np.bincount(labels.codes, weights=weight, minlength=k).astype(np.float64)
    factors = class_factors(labels.classes, totals, class_weight, owner)
    if factors is None:
        return weight
    of_rows: FloatArray = factors[labels.codes.astype(np.intp)]
    return of_rows if weight is None else of_rows * weight


def class_factors(
    classes: npt.NDArray[Any], totals: FloatArray, class_weight: Any, owner: str
) -> FloatArray | None:
    """Return the weight of each class, or None for ones; ``totals`` are the sums of the sample weights per class."""
    factors = None
    if class_weight is not None:
        factors = _class_factors(classes, totals, class_weight)
        totals = totals * factors
        if totals.max() > LARGEST_WEIGHT:
            raise BadInput(
                f"class_weight times sample_weight adds up to {totals.max()} in one class, and "
                "squares of such numbers overflow; divide the weights by a constant and multiply "
                "C by it: the optimum is the same."
            )
    if not totals.all():
        empty = classes[totals == 0]
        raise BadInput(
            f"the total weight of the rows of class {_show(empty)} is zero, so they count as "
            f"absent; {owner} needs at least one row of positive weight in each class: leave "
            "those rows out, or give them weight."
        )
    return factors


def factors(classes: npt.NDArray[Any], class_weight: Any) -> FloatArray:
    """Return the weight of each class from a dict, 1 for classes that it does not contain."""
    return _class_factors(classes, np.ones(len(classes)), class_weight)


def _class_factors(classes: npt.NDArray[Any], totals: FloatArray, class_weight: Any) -> FloatArray:
    if isinstance(class_weight, str) and class_weight == "balanced":
        with np.errstate(divide="ignore"):
            factors: FloatArray = totals.sum() / (len(classes) * totals)
        return np.where(totals > 0, factors, 0.0)
    if not isinstance(class_weight, Mapping):
        raise BadInput(
            f"class_weight must be a dict {{class: weight}}, 'balanced' or None, got "
            f"{class_weight!r}."
        )
    factors = np.ones(len(classes))
    place = {label: at for at, label in enumerate(classes.tolist())}
    for label, value in class_weight.items():
        if label not in place:
            raise BadInput(
                f"class_weight names the class {label!r}, which does not occur in y; the classes of "
                f"y are {_show(classes)}."
            )
        if not isinstance(value, Real) or not 0 <= float(value) <= LARGEST_WEIGHT:
            raise BadInput(
                f"class_weight[{label!r}] must be a number from 0 to {LARGEST_WEIGHT:g}, got "
                f"{value!r}."
            )
        factors[place[label]] = value
    return factors


def _encode_two(y: npt.NDArray[Any]) -> Labels | None:
    """Encode labels that are two whole numbers, by a kernel; return None for everything else."""
    if y.dtype.char not in "dlqib?" or not y.flags.c_contiguous or not y.dtype.isnative:
        return None
    signs = np.empty(len(y))
    low, high = _kernels.two_classes(y, signs)
    if low < 0:
        return None
    classes = y.take((low, high))
    if y.dtype.char == "d" and not all(c.is_integer() for c in classes.tolist()):
        return None
    return Labels(classes, signs=signs)


def _encode(y: npt.NDArray[Any] | CodedLabels) -> Labels:
    if isinstance(y, CodedLabels):
        return _encode_codes(y)
    if (two := _encode_two(y)) is not None:
        return two
    kind = y.dtype.kind
    if kind in "iub":
        return _encode_numbers(y)
    if kind == "f":
        refuse_nonfinite_vector(y, "y")
        return _encode_numbers(y)
    if kind == "U" and (few := _encode_few(y)) is not None:
        return few
    if kind in "UTO":
        return _encode_objects(y)
    if kind == "S":
        raise BadInput(
            "Unknown label type: bytes. y holds bytes, which scikit-learn's scores do not "
            "accept; decode them: y = np.char.decode(y)."
        )
    raise BadInput(
        f"Unknown label type: {y.dtype}. Class labels must be strings, integers or booleans; "
        "convert y, for instance with y.astype(str)."
    )


def _encode_codes(y: CodedLabels) -> Labels:
    present = np.flatnonzero(y.counts())
    if len(present) <= 2:
        codes = y.codes == present[1] if len(present) == 2 else np.zeros(len(y), bool)
        return Labels(y.classes[present], codes)
    place = np.zeros(len(y.classes), np.int64)
    place[present] = np.arange(len(present))
    return Labels(y.classes[present], place[y.codes])


def _encode_numbers(y: npt.NDArray[Any]) -> Labels:
    low, high = y.min(), y.max()
    upper = y == high
    if low == high or np.count_nonzero(upper) + np.count_nonzero(y == low) == len(y):
        classes = y[[int(np.argmin(upper)), int(np.argmax(upper))]] if low != high else y[:1]
        _refuse_fractions(classes, y)
        return Labels(classes, upper if low != high else ~upper)
    _refuse_fractions(y, y)
    low, high = int(low), int(high)
    if -(2**53) < low and high < 2**53 and high - low < 4 * len(y) + 1024:
        shifted = y.astype(np.int64) - low
        present = np.flatnonzero(np.bincount(shifted))
        codes = np.empty(int(present[-1]) + 1, dtype=np.int64)
        codes[present] = np.arange(len(present))
        return Labels((present + low).astype(y.dtype), codes[shifted])
    classes, inverse = np.unique(y, return_inverse=True)
    return Labels(classes, inverse.astype(np.int64))


def _refuse_fractions(values: npt.NDArray[Any], y: npt.NDArray[Any]) -> None:
    """Raise if a label is fractional, because such numbers are measurements and not class labels."""
    if values.dtype.kind == "f" and not (values == np.floor(values)).all():
        row = int(np.argmax(y != np.floor(y)))
        raise BadInput(
            f"Unknown label type: continuous. y holds fractions, the first is {y[row]} at row "
            f"{row} (counting from 0); a classifier needs class labels: use a regressor to "
            "predict numbers, or turn the numbers into names with y.astype(str)."
        )


def _encode_few(y: npt.NDArray[np.str_]) -> Labels | None:
    """Encode fixed-width strings, one class at a time; return None if there are more than ``_FEW`` classes."""
    names: list[str] = []
    codes = np.full(len(y), -1)
    at = 0
    while codes[at] < 0:
        if len(names) == _FEW:
            return None
        codes[y == y[at]] = len(names)
        names.append(str(y[at]))
        at = int(np.argmin(codes))
    order = sorted(range(len(names)), key=names.__getitem__)
    rank = np.argsort(order)
    codes = rank[codes].astype(np.int64, copy=False)
    classes = np.array([names[at] for at in order], dtype=y.dtype)
    return Labels(classes, codes == 1 if len(names) <= 2 else codes)


def _encode_objects(y: npt.NDArray[Any]) -> Labels:
    parts = [slice(at, at + _TOGETHER) for at in range(0, len(y), _TOGETHER)]
    distinct: set[Any] = set()
    try:
        for part in parts:
            distinct.update(y[part].tolist())
    except TypeError as error:
        raise BadInput(
            f"Unknown label type: {error}; give each row one string, integer or boolean."
        ) from error
    if any(map(is_missing, distinct)):
        row = next(i for i, value in enumerate(y) if is_missing(value))
        raise BadInput(
            f"Input y contains NaN.\nThe label at row {row} (counting from 0) is missing "
            f"({y[row]!r}); every row needs a label: leave that row out."
        )
    if all(isinstance(value, str) for value in distinct):
        names = sorted(distinct)
        place = {name: at for at, name in enumerate(names)}
        codes: npt.NDArray[Any] = np.empty(len(y), np.bool_ if len(names) <= 2 else np.int64)
        for part in parts:
            found = [place[value] for value in y[part].tolist()]
            codes[part] = np.equal(found, 1) if len(names) <= 2 else found
        return Labels(np.array(names, dtype=y.dtype), codes)
    if all(isinstance(value, Real | np.bool_) for value in distinct):
        numbers = np.array(y.tolist())
        if numbers.dtype.kind == "O":  # integers beyond 64 bits
            raise BadInput(
                "y holds whole numbers beyond 64 bits; use y.astype(str) as class names."
            )
        return _encode(numbers)
    kinds = sorted({type(value).__name__ for value in distinct})
    raise BadInput(
        f"Unknown label type: unknown. y holds labels of type {', '.join(kinds)}; they must be "
        "all strings or all integers: convert y, for instance with y.astype(str)."
    )


def _show(classes: npt.NDArray[Any]) -> str:
    """Return the classes as text for a message, at most ten of them."""
    shown = ", ".join(repr(value) for value in classes[:10].tolist())
    return shown if len(classes) <= 10 else f"{shown}, ... ({len(classes)} in all)"
