"""Certificates of optimality, computed from (problem, W, dual) by code that imports no solver.

A proof turns the coefficients W and a dual point into an objective, a lower bound, and a bound on the rounding errors
of both. ``optimality.enclose`` turns these three numbers into a certificate. A fit meets the modules in this order.

Before the solver, and again after it:

* ``reductions``: the problem that is solved in place of the user's, and the way back.

Proofs of a fit. ``certify`` says which of them apply; each is tried only if those before it fall short:

* ``closing``: duality, from the sums of one pass. ``softmax`` does it for losses that couple the classes, ``group`` for
  penalty factors and groups of features, ``gram`` from inner products for grids, ``margin`` for the hard margin.
* ``curvature``: strong convexity around the solution. It needs no penalty, and a huge C does not harm it.
* ``precise``, ``softmax_precise``: the sums of ``closing`` and ``softmax`` in about twice the working precision.
* ``exact``: duality without rounding, for small data and dual points with more digits than float64.

The certificate:

* ``optimality``: its fields and text, the enclosure, and the combination of one-vs-rest parts.

``verify`` repeats the proofs without kernels:

* ``parts``: one subproblem with its claimed solution, and the sums of its closing pass in plain numpy.
* ``verification``: the proofs above in numpy or in exact arithmetic, until one confirms the claim.
* ``claims``: a field of a claim that contradicts the others, the rows, or the parameters of the model.
* ``attained``: an objective below the lower bound of a claim, which refutes it.

What follows from a certificate, or from its absence:

* ``kkt``, ``screening``: residuals of the optimality conditions, and coefficients that are proven to be zero.
* ``shortfall``: why a fit is not certified, and what to do.
"""

from __future__ import annotations

from linsep.certificates.certify import certify, depends_on_rounding, prove
from linsep.certificates.closing import from_sums
from linsep.certificates.curvature.certificate import local_certificate
from linsep.certificates.curvature.softmax import softmax_local_certificate
from linsep.certificates.exact import exact_certificate, exact_objective
from linsep.certificates.kkt import KKT, kkt
from linsep.certificates.optimality import Optimality, combine
from linsep.certificates.parts import Part, closing_sums_numpy
from linsep.certificates.reductions.loss_factor import LossFactor, loss_factor
from linsep.certificates.reductions.relaxed import relaxations
from linsep.certificates.reductions.target_units import TargetUnits, target_units
from linsep.certificates.screening import Screening, screen
from linsep.certificates.shortfall import describe_bad_scale, explain
from linsep.certificates.softmax import from_softmax_sums, softmax_sums_numpy
from linsep.certificates.verification import EXACT_SIZE, recheck_part, verify
from linsep.problem.duality import ClosingSums, CoupledSums

__all__ = [
    "EXACT_SIZE",
    "KKT",
    "ClosingSums",
    "CoupledSums",
    "LossFactor",
    "Optimality",
    "Part",
    "Screening",
    "TargetUnits",
    "certify",
    "closing_sums_numpy",
    "combine",
    "depends_on_rounding",
    "describe_bad_scale",
    "exact_certificate",
    "exact_objective",
    "explain",
    "from_softmax_sums",
    "from_sums",
    "kkt",
    "local_certificate",
    "loss_factor",
    "prove",
    "recheck_part",
    "relaxations",
    "screen",
    "softmax_local_certificate",
    "softmax_sums_numpy",
    "target_units",
    "verify",
]
