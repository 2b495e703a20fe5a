"""Decide whether two classes are linearly separable, with a proof of either answer, for any data set."""

from __future__ import annotations

from linsep.separability.decision import METHODS, WIDE, Answer, decide, proven
from linsep.separability.results import Inseparable, Separable, Undecided
from linsep.separability.search import Split, witness_or_separator

__all__ = [
    "METHODS",
    "WIDE",
    "Answer",
    "Inseparable",
    "Separable",
    "Split",
    "Undecided",
    "decide",
    "proven",
    "witness_or_separator",
]
