"""Conversion of scikit-learn's text vectorizers to expressions: weighted and normalised counts of terms, for export.

A text t becomes the features x_j = f_j g(n_j(t)) / |...|, with the number n_j of occurrences of term j, g(n) = n, 1 or
1 + log n, the inverse document frequency f_j, and the norm of all features of the text. Terms are words, characters or
n-grams of them; a hashing vectorizer uses a signed hash value instead of a vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.pipeline import FeatureUnion, Pipeline

from linsep.arrays import FloatArray
from linsep.errors import Refused
from linsep.pipelines.expressions import Column, Expression

#: The default ``token_pattern`` of scikit-learn: words of two characters or more.
DEFAULT_PATTERN = r"(?u)\b\w\w+\b"


class Analysis(NamedTuple):
    """Settings for splitting a text into terms."""

    kind: str  #: "word", "char" or "char_wb" (characters within words)
    lowercase: bool
    accents: str | None  #: "unicode", "ascii" or None: how accents are stripped
    pattern: str  #: regular expression of a word
    stop_words: tuple[str, ...]
    ngrams: tuple[int, int]


@dataclass(frozen=True)
class Words(Expression):
    """All features of a text column: a fitted vectorizer."""

    x: Column
    analysis: Analysis
    width: int  #: number of features
    vocabulary: dict[str, int] | None  #: position of each term; None: hashed
    signed: bool = False  #: the hash value also gives the sign
    binary: bool = False
    sublinear: bool = False
    factor: FloatArray | None = None  #: inverse document frequency of each feature
    norm: str | None = None

    # Vectorizers are compared by identity, because each has its own table.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def features(self) -> list[Expression]:
        """Return one expression for each feature."""
        return [Word(self, j) for j in range(self.width)]


@dataclass(frozen=True)
class Word(Expression):
    """One feature of a text column."""

    words: Words
    at: int


def all_words(xs: list[Expression]) -> Words | None:
    """Return the vectorizer if ``xs`` are all its features, in order and not yet normalised, otherwise None."""
    first = xs[0] if xs else None
    if not isinstance(first, Word) or first.words.norm is not None:
        return None
    words = first.words
    same = len(xs) == words.width and all(
        isinstance(x, Word) and x.words is words and x.at == j for j, x in enumerate(xs)
    )
    return words if same else None


def reads_texts(step: Any) -> bool:
    """Return whether the input of a step is a sequence of texts instead of a table."""
    if isinstance(step, Pipeline):
        return reads_texts(step.steps[0][1])
    if isinstance(step, FeatureUnion):
        return any(reads_texts(inner) for _, inner in step.transformer_list)
    return isinstance(step, CountVectorizer | HashingVectorizer)


def vectorizer(step: Any, xs: list[Expression]) -> list[Expression]:
    """Return the features of a fitted ``CountVectorizer``, ``TfidfVectorizer`` or ``HashingVectorizer``."""
    name = type(step).__name__
    if len(xs) != 1 or not isinstance(xs[0], Column):
        raise Refused(f"To be exported, {name} must read a single text column, unchanged.")
    analysis = _analysis(step, name)
    if isinstance(step, HashingVectorizer):
        width = int(step.n_features)
        words = Words(xs[0], analysis, width, None, bool(step.alternate_sign), bool(step.binary))
        return replace(words, norm=step.norm).features()
    known = {str(term): int(at) for term, at in step.vocabulary_.items()}
    words = Words(xs[0], analysis, len(known), known, binary=bool(step.binary))
    return (_weigh_terms(words, step) if isinstance(step, TfidfVectorizer) else words).features()


def tfidf(step: Any, xs: list[Expression]) -> list[Expression]:
    """Return the features of a ``TfidfTransformer`` that follows a vectorizer."""
    words = all_words(xs)
    if words is None or words.sublinear or words.factor is not None:
        raise Refused(
            "TfidfTransformer can be exported right behind a CountVectorizer, or a HashingVectorizer with norm=None: "
            "use TfidfVectorizer, or write the whole pipeline with linsep.save."
        )
    return _weigh_terms(words, step).features()


def _weigh_terms(words: Words, step: Any) -> Words:
    factor = np.asarray(step.idf_, dtype=float) if step.use_idf else None
    return replace(words, sublinear=bool(step.sublinear_tf), factor=factor, norm=step.norm)


def _analysis(step: Any, name: str) -> Analysis:
    """Return the settings for splitting texts into terms; raise if one of them is a function."""
    for parameter in ("analyzer", "tokenizer", "preprocessor", "strip_accents"):
        if callable(getattr(step, parameter)):
            raise Refused(
                f"{name} with a function as {parameter} cannot be exported: a function is code. Use the parameters of "
                "the vectorizer, or export pipeline[-1] and transform the rows with pipeline[:-1]."
            )
    if step.input != "content":
        raise Refused(
            f"{name}(input={step.input!r}) reads files; an exported scorer takes texts. Use input='content'."
        )
    stop = tuple(sorted(step.get_stop_words() or ())) if step.analyzer == "word" else ()
    low, high = map(int, step.ngram_range)
    pattern = str(step.token_pattern)
    return Analysis(
        step.analyzer, bool(step.lowercase), step.strip_accents, pattern, stop, (low, high)
    )
