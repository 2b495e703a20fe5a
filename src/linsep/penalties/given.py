"""Convert the parameters ``penalty_factor`` and ``feature_groups`` to a penalty."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from linsep.arrays import FloatArray, IntArray
from linsep.errors import BadInput
from linsep.penalties.elastic_net import ElasticNet
from linsep.penalties.group import GroupElasticNet


def resolve(
    plain: ElasticNet, factor: Any, groups: Any, d: int, names: Sequence[str] | None
) -> ElasticNet:
    """Return the penalty on d features, optionally named; ``plain`` itself if every feature is penalised alike."""
    if factor is None and groups is None:
        return plain
    if math.isinf(plain.C):
        raise BadInput(
            "penalty_factor and feature_groups need a finite C: C=inf means no penalty, and nothing to multiply."
        )
    if groups is not None and plain.l1_ratio == 0.0:
        raise BadInput(
            "feature_groups need l1_ratio > 0: the part l1_ratio of the penalty acts on groups, and with l1_ratio=0 "
            "there is none. Give l1_ratio=1 for the group lasso."
        )
    factors, numbers = _factors(factor, d, names), _groups(groups, d, names)
    alone = len(np.unique(numbers)) == d
    if alone and (factors == 1.0).all():
        return plain
    first = np.unique(numbers, return_index=True)[1]
    uneven = np.flatnonzero(factors != factors[first][numbers])
    if len(uneven):
        j = int(uneven[0])
        raise BadInput(
            f"All features of a group need the same penalty_factor; feature {j} has {float(factors[j])!r}, "
            f"feature {int(first[numbers[j]])} of its group {float(factors[first[numbers[j]]])!r}."
        )
    return GroupElasticNet(plain.C, plain.l1_ratio, factors, numbers)


def _by_name(what: str, given: dict[Any, Any], d: int, names: Sequence[str] | None) -> list[Any]:
    """Values of a dictionary {column: value} in feature order, None where missing."""
    if names is None:
        raise BadInput(
            f"{what} is a dictionary of column names, but X has no column names: give a data frame, or an array of {d} "
            "numbers."
        )
    at = {str(name): j for j, name in enumerate(names)}
    unknown = [key for key in given if str(key) not in at]
    if unknown:
        raise BadInput(f"{what} names {unknown[0]!r}, which is not a column of X.")
    values: list[Any] = [None] * d
    for key, value in given.items():
        values[at[str(key)]] = value
    return values


def _factors(given: Any, d: int, names: Sequence[str] | None) -> FloatArray:
    """One factor >= 0 for each feature; 1 where none is given."""
    if given is None:
        return np.ones(d)
    if isinstance(given, dict):
        given = [1.0 if v is None else v for v in _by_name("penalty_factor", given, d, names)]
    try:
        factors = np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BadInput(
            f"penalty_factor must be {d} numbers, one for each feature, or a dictionary of column names; got "
            f"{str(given)[:80]}."
        ) from error
    if factors.shape != (d,):
        raise BadInput(
            f"penalty_factor must have one number for each of the {d} features, got shape {factors.shape}."
        )
    if not (np.isfinite(factors).all() and (factors >= 0.0).all()):
        j = int(np.flatnonzero(~((factors >= 0.0) & np.isfinite(factors)))[0])
        raise BadInput(
            f"penalty_factor must be finite and not negative; that of feature {j} is {float(factors[j])!r}. "
            "0 leaves a feature unpenalised."
        )
    return factors


def _groups(given: Any, d: int, names: Sequence[str] | None) -> IntArray:
    """Group number of each feature, counted from 0; a feature without a group forms its own."""
    if given is None:
        return np.arange(d)
    if isinstance(given, dict):
        return _number_labels(_by_name("feature_groups", given, d, names))
    if isinstance(given, list | tuple) and any(
        isinstance(g, list | tuple | np.ndarray) for g in given
    ):
        return _number_lists(given, d)
    labels = np.asarray(given)
    if labels.shape != (d,):
        raise BadInput(
            f"feature_groups must have one label for each of the {d} features, or be a list of lists of feature "
            f"numbers; got shape {labels.shape}."
        )
    return _number_labels(labels.tolist())


def _number_lists(given: Sequence[Any], d: int) -> IntArray:
    labels: list[Any] = [None] * d
    for number, features in enumerate(given):
        for j in features:
            at = int(j)
            if at != j or not 0 <= at < d:
                raise BadInput(
                    f"feature_groups names feature {j!r}; X has the features 0 to {d - 1}."
                )
            if labels[at] is not None:
                raise BadInput(f"feature_groups names feature {at} twice: groups must not overlap.")
            labels[at] = number
    return _number_labels(labels)


def _number_labels(labels: list[Any]) -> IntArray:
    """Group numbers 0, 1, ... in order of each group's first feature; None forms a group of its own."""
    known: dict[Any, int] = {}
    numbers = [
        known.setdefault(("alone", j) if label is None else ("group", label), len(known))
        for j, label in enumerate(labels)
    ]
    return np.array(numbers, dtype=np.int64)
