"""Minimise the number of errors of a hyperplane on given rows, with a proof.

Minimise over (w, b) the total weight of the rows that sign(w.x + b) misclassifies. The problem is NP-hard if the
dimension is part of the input (Johnson and Preparata 1978). One or two features are solved by enumeration, more by
covering witnesses of inseparability, which takes time that grows with the number of errors rather than of rows.
"""

from __future__ import annotations

from linsep.zero_one.certificate import ZeroOne
from linsep.zero_one.minimum import Found, minimise
from linsep.zero_one.points import Points, distinct, exact_signs

__all__ = ["Found", "Points", "ZeroOne", "distinct", "exact_signs", "minimise"]
