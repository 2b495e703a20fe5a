"""The formula of a model, common to all exports: input columns, scores, classes and probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from linsep.arrays import FloatArray
from linsep.errors import Refused
from linsep.estimators.scoring import dense_coef
from linsep.losses import Logistic, Multinomial
from linsep.pipelines import take_apart
from linsep.pipelines.expressions import (
    Affine,
    Column,
    Constant,
    Expression,
    Key,
    Lookup,
    children,
    columns_of,
    looks_up_texts,
    text_columns,
)
from linsep.pipelines.steps import apply_step
from linsep.pipelines.texts import Word, Words, reads_texts

#: A scaling is folded into the coefficients if |centre| is at most this many times its divisor; folding then loses at
#: most six bits.
_FOLDED = 64.0


@dataclass(frozen=True, eq=False)
class Table:
    """Contributions of the levels of one column to the k scores."""

    x: Expression
    keys: tuple[Key, ...]
    values: FloatArray  # (levels, k)
    default: FloatArray  # (k,) for a level that is not listed; NaN if it is refused
    missing: FloatArray  # (k,)

    @property
    def of_texts(self) -> bool:
        """Whether the keys are texts."""
        return looks_up_texts(self.x, self.keys)


@dataclass(frozen=True, eq=False)
class Document:
    """Contributions of the terms of a text column to the k scores."""

    words: Words
    W: FloatArray  # (width, k)

    def entries(self) -> list[tuple[int, float, list[float]]]:
        """Return position, factor and weights of the features; for hashing, only of those unlike ``other``."""
        words, known = self.words, list(range(self.words.width))
        factor = np.ones(words.width) if words.factor is None else words.factor
        if words.vocabulary is None:
            stored = self.W.any(axis=1) | (factor != factor.max())
            known = np.flatnonzero(stored).tolist()
        return [(j, float(factor[j]), self.W[j].tolist()) for j in known]

    @property
    def other(self) -> float:
        """Factor of a hash value without an entry, which has no weights and contributes only to the norm."""
        return 1.0 if self.words.factor is None else float(self.words.factor.max())


@dataclass(frozen=True, eq=False)
class Formula:
    """Scores z = W t + b + sum of tables and documents, where t are terms of the columns, and the link of z.

    ``link`` is "softmax" (of all scores), "logistic" (of one score), "ovr" (logistic of each, divided by
    their sum), or None if the model has no probabilities. ``classes`` is None for a regression.
    """

    terms: list[Expression]
    W: FloatArray  # (k, t)
    b: FloatArray  # (k,)
    columns: list[str]
    classes: list[Any] | None
    link: str | None
    tables: list[Table] = field(default_factory=list)
    documents: list[Document] = field(default_factory=list)

    @property
    def plain(self) -> bool:
        """Whether the terms are the columns themselves, all and in order."""
        tables = self.tables or self.documents
        return not tables and self.terms == _columns(self.columns)

    @property
    def used(self) -> list[int]:
        """Positions of the columns that occur in the formula."""
        parts = [*self.terms, *(t.x for t in self.tables), *(d.words for d in self.documents)]
        return sorted({c.at for x in parts for c in columns_of(x)})

    @property
    def texts(self) -> list[int]:
        """Positions of the text columns."""
        found = text_columns(self.terms) | {document.words.x.at for document in self.documents}
        for table in self.tables:
            if table.of_texts:
                found |= text_columns([Lookup(table.x, table.keys, (), 0.0, 0.0)])
        return sorted(found)


class Writer:
    """Base of the writers of one language: each kind of expression has a method, such as ``_column``."""

    def write(self, x: Expression, key: bool = False) -> str:
        """Write an expression; a ``key`` is looked up in a table, and not converted to a number."""
        written: str = getattr(self, f"_{type(x).__name__.lower()}")(x, key)
        return written


def formula(model: Any) -> Formula:
    """Return the formula of a fitted linsep model, or of a pipeline that ends in one, with affine steps folded in."""
    opened = take_apart(model)
    steps, model = opened.steps, opened.model
    if not hasattr(type(model), "get_params") or not type(model).__module__.startswith("linsep."):
        raise Refused(
            f"A {type(model).__name__} cannot be exported; give a fitted linsep estimator, or a Pipeline that ends in "
            "one."
        )
    check_is_fitted(model, "coef_")
    W = np.atleast_2d(dense_coef(model)).astype(np.float64)
    b = np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64))
    classes = model.classes_.tolist() if hasattr(model, "classes_") else None
    names = _input_names(model if steps is None else steps, W.shape[1])
    inputs = _columns(names)
    if steps is None:
        return Formula(inputs, W, b, names, classes, _link(model))
    features = apply_step(steps, inputs)
    if len(features) != W.shape[1]:
        raise Refused(
            f"The steps make {len(features)} features where the model has {W.shape[1]}: they cannot be exported."
        )
    terms, W, b, tables, documents = fold(features, W, b)
    return Formula(terms, W, b, names, classes, _link(model), tables, documents)


def fold(
    features: Sequence[Expression], W: FloatArray, b: FloatArray
) -> tuple[list[Expression], FloatArray, FloatArray, list[Table], list[Document]]:
    """Fold scalings and codes into the coefficients; return terms, weights, intercepts, tables and documents."""
    weights: dict[Expression, FloatArray] = {}
    levels: dict[Expression, list[tuple[Lookup, FloatArray]]] = {}
    documents: dict[Words, Document] = {}
    b = b.copy()
    for x, w in zip(features, W.T, strict=True):
        part, factor = x, w
        if isinstance(x, Affine):
            b += w * x.shift
            part = Affine(x.x, x.centre, x.divisor)
            if abs(x.centre) <= _FOLDED * abs(x.divisor):
                b -= w * (x.centre / x.divisor)
                part, factor = x.x, w / x.divisor
        if isinstance(part, Constant):
            b += factor * part.value
        elif isinstance(part, Lookup):
            levels.setdefault(part.x, []).append((part, factor))
        elif isinstance(part, Word):
            if part.words not in documents:
                documents[part.words] = Document(part.words, np.zeros((part.words.width, len(b))))
            documents[part.words].W[part.at] += factor
        else:
            _refuse_words(part)
            weights[part] = weights.get(part, np.zeros_like(w)) + factor
    terms = sorted(weights, key=_order)
    matrix = np.array([weights[x] for x in terms]).reshape(len(terms), len(b)).T
    tables = [_table(x, found) for x, found in levels.items()]
    return terms, matrix, b, tables, list(documents.values())


def _refuse_words(x: Expression) -> None:
    """Raise if an expression contains a word, which may only contribute to the scores additively, not in products."""
    if isinstance(x, Word):
        raise Refused(
            "A text vectorizer can be exported if scalings, a Normalizer or feature selection follow it, and no other "
            "step. Write the whole pipeline with linsep.save, or export pipeline[-1]."
        )
    for part in children(x):
        _refuse_words(part)


def _order(x: Expression) -> tuple[int, int]:
    """Sort key: columns in their order, then everything else."""
    return (0, x.at) if isinstance(x, Column) else (1, 0)


def _table(x: Expression, found: list[tuple[Lookup, FloatArray]]) -> Table:
    """Merge several codes of the same column into one table."""
    keys = tuple(dict.fromkeys(key for part, _ in found for key in part.keys))

    def of(key: Key | None) -> FloatArray:
        total: FloatArray = np.sum([w * part.of(key) for part, w in found], axis=0)
        return total

    values = np.array([of(key) for key in keys]).reshape(len(keys), len(found[0][1]))
    default = np.sum([w * part.default for part, w in found], axis=0)
    return Table(x, keys, values, default, of(None))


def _columns(names: list[str]) -> list[Expression]:
    return [Column(j, name) for j, name in enumerate(names)]


def _input_names(first: Any, d: int) -> list[str]:
    """Return the names of the input columns; x1, x2, ... if they have none, and ``text`` for a plain list of texts."""
    if reads_texts(first):
        return ["text"]
    names = getattr(first, "feature_names_in_", None)
    if names is not None:
        return [str(name) for name in names]
    return [f"x{j + 1}" for j in range(getattr(first, "n_features_in_", d))]


def _link(model: Any) -> str | None:
    """Return the link of the model's ``predict_proba``, or None if it has none."""
    if not hasattr(model, "predict_proba"):
        return None
    if isinstance(model, LogisticRegression):  # a class of linsep.sklearn
        return "logistic" if len(model.classes_) == 2 else "softmax"
    loss = model._fits[0].recipe.loss.plain
    if isinstance(loss, Multinomial):
        return "softmax"
    if not isinstance(loss, Logistic):
        return None
    return "logistic" if len(model.classes_) == 2 else "ovr"
