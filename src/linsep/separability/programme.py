"""Decide separability by linear programming with HiGHS: A theta >= 1 and, if infeasible, its Farkas alternative.

By Farkas' lemma either some theta has a_i.theta >= 1 for every row, or some alpha >= 0 of sum 1 has
sum alpha_i a_i = 0; a vertex of the second polytope has at most d + 2 positive weights.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from linsep.interrupts import linear_programme
from linsep.separability.rows import SignedRows
from linsep.separability.search import CommonPoint, Inconclusive, Separator, Working, proven_margin


def solve(signed: SignedRows, working: Working) -> Separator | CommonPoint | Inconclusive:
    """Solve both linear programmes on all rows, in scaled coordinates; separators and witnesses are proven later."""
    frame = working.frame
    A, lengths = frame.vectors(signed.counted)
    m, p = A.shape
    signed.passes += 1
    limits = {"A_ub": -A, "b_ub": -np.ones(m), "bounds": (None, None)}
    primal = linear_programme(linprog, np.zeros(p), A, **limits, method="highs")
    ratio = -1.0
    if primal.x is not None:
        theta = frame.theta(primal.x)
        scan = signed.scan(theta, 1)
        low = proven_margin(signed, theta, scan)
        if low > 0.0:
            return Separator(theta, low)
        ratio = float(scan.ratio.min(initial=1.0))
    E = np.vstack([A.T, np.ones(m)])
    target = np.zeros(p + 1)
    target[-1] = 1.0
    signed.passes += 1
    limits = {"A_eq": E, "b_eq": target, "bounds": (0, None)}
    dual = linear_programme(linprog, np.zeros(m), E, **limits, method="highs-ds")
    if dual.x is None:
        return Inconclusive(ratio, np.inf)
    used = dual.x > 1e-12
    return CommonPoint(signed.counted[used], (dual.x / lengths)[used])
