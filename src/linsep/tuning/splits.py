"""Splits of the rows into training and held-out rows of each fold, and a test set."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import StratifiedKFold, check_cv, train_test_split
from sklearn.utils import check_random_state

from linsep.arrays import BoolArray, IntArray
from linsep.data.entrance.coded_labels import CodedLabels
from linsep.errors import BadInput

LEAVE_ONE_OUT = "loo-approximate"

_CLASSES = 64  # with more classes scikit-learn makes the folds, as here each costs a pass over y


def leaves_one_out(cv: Any) -> bool:
    """Return whether ``cv`` requests approximate leave-one-out, which has no folds."""
    return isinstance(cv, str) and cv == LEAVE_ONE_OUT


@dataclass(frozen=True, eq=False)
class Splits:
    """Row numbers (training, held out) of each fold, and the rows of the test set.

    Folds that partition all rows outside the test set are stored as the fold number of each row.
    """

    listed: tuple[tuple[IntArray, IntArray], ...]
    test: IntArray | None
    rest: IntArray | None  #: all rows outside the test set; None if there is no test set
    fold: IntArray | None = None  #: fold number of each of these rows, instead of ``listed``

    @cached_property
    def pairs(self) -> tuple[tuple[IntArray, IntArray], ...]:
        """Row numbers (training, held out) of each fold."""
        if self.fold is None:
            return self.listed
        inside = [self.fold == f for f in range(self.count)]
        pairs = [(np.flatnonzero(~held), np.flatnonzero(held)) for held in inside]
        if self.rest is None:
            return tuple(pairs)
        return tuple((self.rest[train], self.rest[held]) for train, held in pairs)

    @property
    def count(self) -> int:
        """Number of folds, which is the number of models per C."""
        return len(self.listed) if self.fold is None else int(self.fold.max()) + 1

    @property
    def sizes(self) -> list[int]:
        """Number of held-out rows of each fold."""
        if self.fold is not None:
            sizes: list[int] = np.bincount(self.fold).tolist()
            return sizes
        return [len(held) for _, held in self.listed]

    def parts(self, n: int) -> IntArray | None:
        """Return the fold of each row if the folds are disjoint and each model is trained on all other rows, else None.

        Only then can a grid be fitted together. Rows of a test set, on which no model is trained, rule it out.
        """
        if self.fold is not None:
            return self.fold if len(self.fold) == n else None
        part = np.full(n, -1, dtype=np.int64)
        for f, (train, held) in enumerate(self.listed):
            if (part[held] >= 0).any() or len(train) + len(held) != n:
                return None
            part[held] = f
        for f, (train, held) in enumerate(self.listed):
            if np.array_equal(train, np.flatnonzero(part != f)):
                continue
            seen = np.zeros(n, dtype=bool)
            seen[train] = True
            if seen[held].any() or int(seen.sum()) != len(train):
                return None
        return part

    def renumber(self) -> Splits:
        """Return the splits with row numbers relative to ``rest``."""
        if self.rest is None or self.fold is not None:
            return Splits(self.listed, None, None, self.fold)
        at = np.empty(int(self.rest.max()) + 1, dtype=np.int64)
        at[self.rest] = np.arange(len(self.rest))
        return Splits(tuple((at[train], at[held]) for train, held in self.listed), None, None)


def make(
    y: npt.NDArray[Any] | CodedLabels,
    *,
    cv: Any,
    validation: Any,
    test: Any,
    groups: Any,
    classifier: bool,
    seed: int | None,
) -> Splits:
    """Split the n rows of y: first the test set, then folds or a validation set of the remaining rows."""
    n = len(y)
    rows = np.arange(n)
    held_out = None
    if test is not None:
        rows, held_out = _split(rows, y, _share("test", test), classifier, seed)
    if leaves_one_out(cv):
        return Splits((), held_out, None if held_out is None else rows)
    if validation is not None:
        part = _split(rows, y[rows], _share("validation", validation), classifier, seed)
        pairs: Sequence[tuple[IntArray, IntArray]] = [part]
    else:
        rest = None if held_out is None else rows
        mine = np.asarray(y if rest is None else y[rest])
        if (fold := _stratified_folds(mine, cv, classifier, seed)) is not None:
            return Splits((), held_out, rest, fold)
        own = None if groups is None else np.asarray(groups)[rows]
        pairs = _folds(rows, mine, cv, own, classifier, seed)
    return Splits(tuple(pairs), held_out, None if held_out is None else rows)


def _stratified_folds(
    y: npt.NDArray[Any], cv: Any, classifier: bool, seed: int | None
) -> IntArray | None:
    """Return the fold of each row for an integer ``cv``: the folds of StratifiedKFold, computed without sorting.

    The classes, in order of first appearance, are distributed over the folds in turn; within a class, each fold
    gets consecutive rows or, with a seed, random ones. Return None if ``cv`` or y calls for other folds.
    """
    if not classifier or type(cv) is bool or not isinstance(cv, int | np.integer) or cv < 2:
        return None
    if y.ndim != 1 or y.dtype.kind not in "biuUf" or not len(y):
        return None
    labels, counts = np.unique(y, return_counts=True)
    # Fractional numbers are not class labels.
    numbers = y.dtype.kind != "f" or bool((labels == np.round(labels)).all())
    if not numbers or len(labels) > _CLASSES or counts.min() < cv:
        return None
    rows_of = sorted((np.flatnonzero(y == label) for label in labels), key=lambda rows: rows[0])
    rng = None if seed is None else check_random_state(seed)
    fold, dealt, turn = np.empty(len(y), dtype=np.int64), 0, np.arange(cv)
    for rows in rows_of:
        mine = ((turn - dealt) % cv < len(rows) % cv) + len(rows) // cv
        folds = turn.repeat(mine)
        if rng is not None:
            rng.shuffle(folds)
        fold[rows] = folds
        dealt += len(rows)
    return fold


def require_folds(cv: int | np.integer[Any]) -> None:
    """Refuse fewer than two folds."""
    if cv < 2:
        raise BadInput(f"cv must be at least 2 folds, got {cv}; for one split use validation=0.25.")


def _folds(
    rows: IntArray, y: npt.NDArray[Any], cv: Any, groups: Any, classifier: bool, seed: int | None
) -> list[tuple[IntArray, IntArray]]:
    if isinstance(cv, int | np.integer) and type(cv) is not bool:
        require_folds(cv)
        if classifier:
            _, counts = np.unique(y, return_counts=True)
            if counts.min() < cv:
                raise BadInput(
                    f"the rarest class has {_count(counts.min())}, too few for {cv} folds: every fold "
                    "needs one; use a smaller cv, or validation=0.25."
                )
        if classifier and seed is not None:
            cv = StratifiedKFold(int(cv), shuffle=True, random_state=seed)
    try:
        splitter = check_cv(cv, y, classifier=classifier)
        pairs = [
            (_numbers(rows, train), _numbers(rows, held))
            for train, held in splitter.split(np.zeros((len(y), 1)), y, groups)
        ]
    except (ValueError, TypeError, IndexError) as error:
        raise BadInput(f"cv={cv!r} gives no splits of {len(y)} rows: {error}") from error
    if not pairs or any(len(train) == 0 or len(held) == 0 for train, held in pairs):
        raise BadInput(f"cv={cv!r} gives a split without rows on one side.")
    return pairs


def _count(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows} rows"


def _numbers(rows: IntArray, at: Any) -> IntArray:
    """Return rows[at], without a copy if rows is 0, 1, 2, ... and ``at`` is in range."""
    numbers: npt.NDArray[Any] = np.asarray(at)
    plain = len(numbers) and numbers.dtype == np.int64 and rows[-1] == len(rows) - 1
    within = plain and numbers.min() >= 0 and numbers.max() < len(rows)
    chosen: IntArray = numbers if within else rows[numbers]
    return chosen


def _split(
    rows: IntArray, y: Any, share: float, classifier: bool, seed: int | None
) -> tuple[IntArray, IntArray]:
    """Split off a random fraction of the rows, stratified by class; return the remaining rows and the part."""
    if classifier:
        part = _stratified_part(y, share, check_random_state(seed or 0))
        return rows[~part], rows[part]
    try:
        a, b = train_test_split(rows, test_size=share, random_state=seed or 0)
    except ValueError as error:
        raise BadInput(f"cannot hold out a fraction of {share:g} of the rows: {error}") from error
    return np.sort(a), np.sort(b)


def _stratified_part(y: Any, share: float, rng: Any) -> BoolArray:
    """Return the mask of the part that scikit-learn's ``train_test_split(stratify=y)`` splits off.

    scikit-learn holds about 90 bytes per row meanwhile, lists of Python integers among them; here it is at most 26.
    """
    if not isinstance(y, CodedLabels):
        y = CodedLabels(*np.unique(y, return_inverse=True))
    present = np.flatnonzero(y.counts())
    counts = y.counts()[present]
    rare = y.classes[present[counts < 2]].tolist()
    if len(rare) == len(counts) > 1:
        raise BadInput(
            f"every row has a class of its own ({', '.join(map(repr, rare[:5]))}), so no split can have each class on "
            "both sides: choose a target that does not identify the rows, or use a regressor to predict numbers."
        )
    if rare and len(counts) > 1:
        raise BadInput(
            f"{len(rare)} of {len(counts)} classes have only one row ({', '.join(map(repr, rare[:5]))}), but both "
            "sides of a split need one: add rows, leave these classes out, hold out no rows, or "
            "predict numbers instead of classes."
        )
    n_part = math.ceil(share * len(y))
    if min(n_part, len(y) - n_part) < len(counts):
        raise BadInput(
            f"cannot hold out a fraction of {share:g} of the rows: {_count(len(y))} of {len(counts)} classes would be "
            f"split into {len(y) - n_part} and {n_part}, and each side needs a row of every class."
        )
    kept = _proportional_counts(counts, len(y) - n_part, rng)
    taken = _proportional_counts(counts - kept, n_part, rng)
    part = np.zeros(len(y), bool)
    by_class = np.split(np.argsort(y.codes, kind="stable"), np.cumsum(counts)[:-1])
    for mine, stay, go in zip(by_class, kept, taken, strict=True):
        part[mine[rng.permutation(len(mine))[stay : stay + go]]] = True
    return part


def _proportional_counts(counts: IntArray, draws: int, rng: Any) -> IntArray:
    """Divide ``draws`` rows among the classes in proportion to their counts; ties of the remainders are drawn."""
    exact = counts / counts.sum() * draws
    found = np.floor(exact)
    remainder = exact - found
    missing = int(draws - found.sum())
    for value in np.unique(remainder)[::-1]:
        if missing <= 0:
            break
        tied = np.flatnonzero(remainder == value)
        chosen = rng.choice(tied, size=min(len(tied), missing), replace=False)
        found[chosen] += 1
        missing -= len(chosen)
    chosen_counts: IntArray = found.astype(np.int64)
    return chosen_counts


def _share(name: str, given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, Real) or not 0 < float(given) < 1:
        raise BadInput(f"{name} must be a fraction of the rows between 0 and 1, got {given!r}.")
    return float(given)
