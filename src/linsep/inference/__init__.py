"""``summary`` of a fitted model: standard errors, p-values and intervals where valid, otherwise the reason why not."""

from __future__ import annotations

from linsep.inference.reading import summary
from linsep.inference.results import Coefficient, Summary

__all__ = ["Coefficient", "Summary", "summary"]
