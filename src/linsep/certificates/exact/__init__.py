"""Certificates without rounding: rational numbers, and balls where a loss has no rational values."""

from __future__ import annotations

from linsep.certificates.exact.certificate import ANY, Goal, exact_certificate, exact_objective

__all__ = ["ANY", "Goal", "exact_certificate", "exact_objective"]
