"""Certificates without rounding: rational arithmetic, and ball arithmetic for losses with irrational values.

``certificate`` encloses the gap. It reads the rows as dyadic numbers (``points``, and ``pointwise`` or ``coupled`` for
one or k scores), the ``losses`` and the ``penalty`` as exact formulas, and the dual points that ``dual`` finds.
"""

from __future__ import annotations

from linsep.certificates.exact.certificate import ANY, Goal, exact_certificate, exact_objective

__all__ = ["ANY", "Goal", "exact_certificate", "exact_objective"]
