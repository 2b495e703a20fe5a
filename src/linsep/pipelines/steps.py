"""Conversion of fitted preprocessing steps, also the ``Encoder``, to expressions of the input columns, for export."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

from linsep.errors import Refused
from linsep.pipelines import texts
from linsep.pipelines.expressions import (
    Affine,
    Clipped,
    Constant,
    Expression,
    Filled,
    Key,
    Level,
    Lookup,
    Missing,
    Normalised,
    Product,
    Truth,
)
from linsep.tables import Encoder
from linsep.tables.encodings import Boolean, Category, Number


def apply_step(step: Any, xs: list[Expression]) -> list[Expression]:
    """Return the output features of a fitted step as expressions, given its input features."""
    if step in (None, "passthrough") or (type(step) is FunctionTransformer and step.func is None):
        return xs
    for kind, rule in _RULES.items():
        ours = type(step) is Encoder
        if isinstance(step, kind) and (ours or type(step).__module__.startswith("sklearn.")):
            found: list[Expression] = rule(step, xs)
            return found
    if type(step).__module__.startswith("linsep.") and hasattr(step, "powers_"):
        return _polynomial(step, xs)  # a basis of monomials
    known = ", ".join(kind.__name__ for kind in _RULES if kind is not SelectorMixin)
    raise Refused(
        f"The step {type(step).__name__} cannot be exported; an export holds {known}, linsep.basis.Polynomial, "
        "linsep.basis.Interactions and feature selection. Export pipeline[-1] and transform the rows with "
        "pipeline[:-1], or write the whole pipeline with linsep.save."
    )


def _pipeline(step: Any, xs: list[Expression]) -> list[Expression]:
    for _, inner in step.steps:
        xs = apply_step(inner, xs)
    return xs


def _column_transformer(step: Any, xs: list[Expression]) -> list[Expression]:
    made: list[Expression] = []
    for name, inner, _ in step.transformers_:
        if inner != "drop":
            chosen = step._transformer_to_input_indices[name]
            made += apply_step(inner, [xs[int(j)] for j in chosen])
    return made


def _feature_union(step: Any, xs: list[Expression]) -> list[Expression]:
    made: list[Expression] = []
    weights = step.transformer_weights or {}
    for name, inner in step.transformer_list:
        if inner != "drop":
            weight = float(weights.get(name, 1.0))
            part = apply_step(inner, xs)
            made += part if weight == 1.0 else [affine(x, 0.0, 1.0 / weight) for x in part]
    return made


def affine(x: Expression, centre: float, divisor: float, shift: float = 0.0) -> Expression:
    """Return (x - centre) / divisor + shift; nested affine expressions are merged, and the identity is dropped."""
    centre, divisor, shift = float(centre), float(divisor), float(shift)
    if isinstance(x, Affine):
        return Affine(x.x, x.centre, x.divisor * divisor, (x.shift - centre) / divisor + shift)
    return x if (centre, divisor, shift) == (0.0, 1.0, 0.0) else Affine(x, centre, divisor, shift)


def _standard(step: Any, xs: list[Expression]) -> list[Expression]:
    centre = step.mean_ if step.with_mean else np.zeros(len(xs))
    scale = step.scale_ if step.with_std else np.ones(len(xs))
    return [affine(x, c, s) for x, c, s in zip(xs, centre, scale, strict=True)]


def _min_max(step: Any, xs: list[Expression]) -> list[Expression]:
    low, high = map(float, step.feature_range)
    made = [
        affine(x, centre, 1.0 / factor, low)
        for x, centre, factor in zip(xs, step.data_min_, step.scale_, strict=True)
    ]
    return [Clipped(x, low, high) for x in made] if step.clip else made


def _max_abs(step: Any, xs: list[Expression]) -> list[Expression]:
    made = [affine(x, 0.0, s) for x, s in zip(xs, step.scale_, strict=True)]
    return [Clipped(x, -1.0, 1.0) for x in made] if getattr(step, "clip", False) else made


def _robust(step: Any, xs: list[Expression]) -> list[Expression]:
    centre = step.center_ if step.with_centering else np.zeros(len(xs))
    scale = step.scale_ if step.with_scaling else np.ones(len(xs))
    return [affine(x, c, s) for x, c, s in zip(xs, centre, scale, strict=True)]


def _normalizer(step: Any, xs: list[Expression]) -> list[Expression]:
    words = texts.all_words(xs)
    if words is not None:
        return replace(words, norm=step.norm).features()
    row = tuple(xs)
    return [Normalised(x, row, step.norm) for x in xs]


def _polynomial(step: Any, xs: list[Expression]) -> list[Expression]:
    made: list[Expression] = []
    for powers in step.powers_:
        factors = [x for x, power in zip(xs, powers, strict=True) for _ in range(power)]
        if len(factors) <= 1:
            made.append(factors[0] if factors else Constant(1.0))
        else:
            made.append(Product(tuple(factors)))
    return made


def _selector(step: Any, xs: list[Expression]) -> list[Expression]:
    return [xs[j] for j in step.get_support(indices=True)]


def _imputer(step: Any, xs: list[Expression]) -> list[Expression]:
    marker = _key(step.missing_values)
    values = [_key(value) for value in step.statistics_]
    made: list[Expression] = [
        Filled(x, marker, value)
        for x, value in zip(xs, values, strict=True)
        if value is not None  # the imputer drops columns that were empty
    ]
    if step.add_indicator:
        made += [Missing(xs[int(j)], marker) for j in step.indicator_.features_]
    return made


def _key(value: Any) -> Key | None:
    """Return a level as a number or a text, or None if it is missing."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_ | int | float | np.integer | np.floating):
        return None if math.isnan(value) else float(value)
    if type(value).__name__ == "NAType":
        return None
    raise Refused(
        f"A level of type {type(value).__name__} cannot be exported; encode texts or numbers."
    )


def _categories(step: Any, xs: list[Expression]) -> list[Expression]:
    """Return lookups for one-hot or ordinal codes, whose values are found by encoding every level."""
    made: list[Expression] = []
    most = max(map(len, step.categories_))
    rows = np.array(
        [[levels[min(i, len(levels) - 1)] for levels in step.categories_] for i in range(most)],
        dtype=object,
    )
    codes = step.transform(_name_columns(step, rows))
    codes = np.asarray(codes.toarray() if hasattr(codes, "toarray") else codes, dtype=float)
    at = 0
    for j, (x, levels) in enumerate(zip(xs, step.categories_, strict=True)):
        width = step._n_features_outs[j] if isinstance(step, OneHotEncoder) else 1
        keys = [_key(level) for level in levels]
        unknown = _unknown(step, rows, j, slice(at, at + width))
        truth = all(isinstance(level, bool | np.bool_) for level in levels)
        for c in range(width):
            values = dict(zip(keys, codes[: len(levels), at + c].tolist(), strict=True))
            missing = values.pop(None, float(unknown[c]))
            base: Expression = Truth(x) if truth else x
            made.append(lookup(base, dict(values), float(unknown[c]), missing))  # type: ignore[arg-type]
        at += width
    return made


def _encoder(step: Any, xs: list[Expression]) -> list[Expression]:
    made: list[Expression] = []
    for encoding, x in zip(step.encodings_, xs, strict=True):
        if isinstance(encoding, Number):
            value = Truth(x) if isinstance(encoding, Boolean) else x
            made.append(affine(Filled(value, None, encoding.fill), encoding.mean, encoding.scale))
            made += [Missing(x, None)] * encoding.indicator
        elif isinstance(encoding, Category):
            made += _one_hot(encoding, x)
        elif encoding.width:
            raise Refused(
                f"The column {encoding.name!r} is encoded as {encoding.type}, which cannot be exported: fit without "
                "that column (linsep fit --ignore), or score the rows with linsep predict."
            )
    return made


def _one_hot(encoding: Category, x: Any) -> list[Expression]:
    level, levels = Level(x), encoding.levels
    made: list[Expression] = [Lookup(level, (key,), (1.0,), 0.0, 0.0) for key in levels]
    if encoding.other:  # also for missing values, if they have no column of their own
        zeros = (0.0,) * len(levels)
        made.append(Lookup(level, levels, zeros, 1.0, float(not encoding.indicator)))
    if encoding.indicator:
        made.append(Lookup(level, (), (), 0.0, 1.0))
    return made


def _unknown(step: Any, rows: Any, j: int, columns: slice) -> Any:
    """Return the codes of an unknown level, NaN if the encoder raises for such levels."""
    if step.handle_unknown == "error":
        return np.full(columns.stop - columns.start, math.nan)
    odd = rows[:1].copy()
    levels = [_key(level) for level in step.categories_[j]]
    numbers = [level for level in levels if isinstance(level, float)]
    odd[0, j] = max(map(abs, numbers)) + 1.0 if numbers else max(map(str, levels), key=len) + "?"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the encoder warns of unknown levels
        found = step.transform(_name_columns(step, odd))
    row = (found.toarray() if hasattr(found, "toarray") else np.asarray(found))[0]
    return np.asarray(row[columns], dtype=float)


def _name_columns(step: Any, rows: Any) -> Any:
    """Return the rows with the column names that the encoder was fitted with, to avoid its warning."""
    names = getattr(step, "feature_names_in_", None)
    if names is None:
        return rows
    import pandas as pd  # noqa: PLC0415  the encoder was fitted to a frame

    return pd.DataFrame(rows, columns=names, dtype=object)


def lookup(x: Expression, values: dict[Key, float], default: float, missing: float) -> Lookup:
    """Return a lookup of x; an imputation inside x is merged into the table."""
    found = Lookup(x, tuple(values), tuple(values.values()), default, missing)
    if not isinstance(x, Filled):
        return found
    filled = found.of(x.value)
    if x.marker is None:
        return lookup(x.x, values, default, filled)
    return lookup(x.x, {**values, x.marker: filled}, default, missing)


_RULES: dict[Any, Any] = {
    Pipeline: _pipeline,
    ColumnTransformer: _column_transformer,
    FeatureUnion: _feature_union,
    StandardScaler: _standard,
    MinMaxScaler: _min_max,
    MaxAbsScaler: _max_abs,
    RobustScaler: _robust,
    Normalizer: _normalizer,
    SimpleImputer: _imputer,
    OneHotEncoder: _categories,
    OrdinalEncoder: _categories,
    PolynomialFeatures: _polynomial,
    CountVectorizer: texts.vectorizer,  # and TfidfVectorizer, which extends it
    HashingVectorizer: texts.vectorizer,
    TfidfTransformer: texts.tfidf,
    SelectorMixin: _selector,
    Encoder: _encoder,
}
