"""Reading a fitted model: standard errors and intervals where they are valid, and a reason where they are not."""

from __future__ import annotations

from linsep.inference.reading import summary
from linsep.inference.results import Coefficient, Summary

__all__ = ["Coefficient", "Summary", "summary"]
