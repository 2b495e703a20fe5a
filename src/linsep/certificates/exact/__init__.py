"""Certificates without rounding: rational arithmetic, and ball arithmetic for losses with irrational values."""

from __future__ import annotations

from linsep.certificates.exact.certificate import ANY, Goal, exact_certificate, exact_objective

__all__ = ["ANY", "Goal", "exact_certificate", "exact_objective"]
