"""Certificates of optimality, computed from (problem, W, dual) by code that imports no solver."""

from __future__ import annotations

from linsep.certificates.certify import certify, depends_on_rounding, prove
from linsep.certificates.closing import from_sums
from linsep.certificates.exact import exact_certificate, exact_objective
from linsep.certificates.kkt import KKT, kkt
from linsep.certificates.local import local_certificate
from linsep.certificates.loss_factor import LossFactor, loss_factor
from linsep.certificates.optimality import Optimality, combine
from linsep.certificates.recheck import Part, closing_sums_numpy
from linsep.certificates.relaxed import relaxations
from linsep.certificates.screening import Screening, screen
from linsep.certificates.shortfall import describe_bad_scale, explain
from linsep.certificates.softmax import from_softmax_sums, softmax_sums_numpy
from linsep.certificates.softmax_local import softmax_local_certificate
from linsep.certificates.target_units import TargetUnits, target_units
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
