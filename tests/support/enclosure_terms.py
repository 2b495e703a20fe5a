"""The rounding allowance of ``certificates/closing.py`` and kernels/sums/enclosure.hpp, term by term."""

import numpy as np

from linsep.problem.closing_rows import ROUNDOFF, score_share

#: What ``closing.py`` multiplies the whole allowance with, to pay for the roundings of adding it up.
SAFETY = 1.0 + 2.0**-10


def pieces(sums, w, *, lam, rows, fit_intercept):
    """The terms of the allowance for lam > 0 and no absolute penalty, by name."""
    chain, score = (rows + 40) * ROUNDOFF, score_share(len(w))
    factors = [1.0, 1.0]
    if fit_intercept:
        heavy = int(sums.mass_minus > sums.mass_plus)
        masses = sums.mass_plus, sums.mass_minus
        factors[heavy] = masses[1 - heavy] / masses[heavy] if masses[heavy] else 1.0
    conj = [factors[0] * sums.conj_plus, factors[1] * sums.conj_minus]
    sides = [factors[0] * sums.v_plus, factors[1] * sums.v_minus]
    v = sides[0] + sides[1]
    kappa = min(1.0, max(0.0, -sum(conj) * lam / (v @ v))) if v @ v > 0 and sum(conj) < 0 else 1.0
    conj, sides, v = [kappa * c for c in conj], [kappa * side for side in sides], kappa * v
    at = v / lam
    error = chain * sums.spread
    along = chain * sums.magnitude + error * float(np.linalg.norm(at - w))
    share = 2.0 * (chain + ROUNDOFF) if fit_intercept else 0.0
    moved = error + share * max(float(np.linalg.norm(side)) for side in sides)
    d = len(w)
    return {
        "score": score * sums.magnitude,
        "chain": chain * sums.absolute,
        "v, first order": min(error * float(np.linalg.norm(at)), along),
        "v, second order": 0.5 * moved * moved / lam,
        "balance": max(
            share * (abs(c) + abs(side @ at)) for c, side in zip(conj, sides, strict=True)
        ),
        "penalty": score * 0.5 * lam * (w @ w + at @ at),
        "underflow": 2.0**-1070 * (d * (lam + 1.0 / lam) + 1.0),
    }
