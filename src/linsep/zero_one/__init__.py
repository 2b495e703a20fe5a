"""The least number of errors that a hyperplane can make on given rows, with a proof.

Minimise over (w, b) the total weight of the rows that sign(w.x + b) gets wrong. The problem is NP-hard when the
dimension is part of the input (Johnson and Preparata 1978); one and two features are enumerated, more are settled by
covering witnesses of inseparability, which takes time that grows with the number of errors rather than of rows.
"""

from __future__ import annotations

from linsep.zero_one.certificate import ZeroOne
from linsep.zero_one.minimum import Found, minimise
from linsep.zero_one.points import Points, distinct, exact_signs

__all__ = ["Found", "Points", "ZeroOne", "distinct", "exact_signs", "minimise"]
