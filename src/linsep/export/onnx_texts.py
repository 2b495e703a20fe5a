"""Text vectorizers as nodes of an ONNX graph.

ONNX counts n-grams of tokens (TfIdfVectorizer) but has no operator that finds words in a text; onnxruntime has one
(com.microsoft.Tokenizer). Lowercasing is not supported, because its result depends on the locale of the machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linsep.errors import Refused
from linsep.export.formula import Document
from linsep.pipelines.texts import DEFAULT_PATTERN, Words

if TYPE_CHECKING:
    from linsep.export.onnx_graph import Graph

DOMAIN = "com.microsoft"
#: Words of at least two characters of Python's \w, in the syntax of RE2.
_WORDS = {DEFAULT_PATTERN: r"[\p{L}\p{N}_]{2,}", r"(?u)\b\w+\b": r"[\p{L}\p{N}_]+"}


def text_scores(graph: Graph, document: Document) -> str:
    """Add the contribution of a text column to the scores (n, k)."""
    words = document.words
    _refuse(words)
    axis = graph.number(np.array([1]))
    flat = graph.node("Squeeze", [graph.write(words.x), axis])
    tokens = graph.node(
        "Tokenizer",
        [flat],
        domain=DOMAIN,
        mark=0,
        mincharnum=1,
        pad_value=" ",  # part of no word
        tokenexp=_WORDS[words.analysis.pattern],
    )
    counted = graph.node("TfIdfVectorizer", [tokens], **_pool(words))
    x = graph.node("Cast", [counted], to=graph.types.DOUBLE)
    one, zero = graph.number(1.0), graph.number(0.0)
    if words.binary:
        x = graph.node("Min", [x, one])
    if words.sublinear:
        grown = graph.node("Add", [graph.node("Log", [graph.node("Max", [x, one])]), one])
        x = graph.node("Where", [graph.node("Greater", [x, zero]), grown, zero])
    if words.factor is not None:
        x = graph.node("Mul", [x, graph.number(words.factor)])
    if words.norm is not None:
        x = graph.node("Div", [x, graph.norm_of(x, words.norm)])
    return graph.node("MatMul", [x, graph.number(document.W)])


def _pool(words: Words) -> dict[str, Any]:
    """Return the vocabulary as attributes of TfIdfVectorizer: n-grams by length, and the feature of each."""
    low, high = words.analysis.ngrams
    known = sorted(words.vocabulary or {}, key=lambda term: (len(term.split(" ")), term))
    sizes = [len(term.split(" ")) for term in known]
    starts = [sum(size for size in sizes if size < n) for n in range(1, high + 1)]
    return {
        "mode": "TF",
        "min_gram_length": low,
        "max_gram_length": high,
        "max_skip_count": 0,
        "ngram_counts": starts,
        "ngram_indexes": [(words.vocabulary or {})[term] for term in known],
        "pool_strings": [word for term in known for word in term.split(" ")],
    }


def _refuse(words: Words) -> None:
    """Raise if a vectorizer cannot be expressed as a graph, with a message that names an alternative."""
    a = words.analysis
    reason = ""
    if words.vocabulary is None:
        reason = "has no hash function of texts; use CountVectorizer or TfidfVectorizer"
    elif a.lowercase:
        reason = (
            "has no lower case that does not depend on the locale of the machine; fit the pipeline with "
            "lowercase=False to texts that are in lower case, and give the graph such texts"
        )
    elif a.kind != "word" or a.pattern not in _WORDS:
        reason = "splits a text into words of the default token_pattern only; use analyzer='word'"
    elif a.accents is not None:
        reason = "has no way to strip accents; strip them before, and use strip_accents=None"
    elif a.stop_words and a.ngrams[1] > 1:
        reason = "cannot leave out stop words before it counts n-grams; use ngram_range=(1, 1)"
    if reason:
        raise Refused(
            f"An ONNX graph {reason}. export.python takes any vectorizer, export.c nearly all."
        )
