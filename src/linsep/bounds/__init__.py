"""Theoretical guarantees for linear classifiers: numbers, and proofs that can be checked.

Learnability
    ``vc_dimension``, ``shattering_witness``, ``shatters``, ``radon``, ``rows_needed``
Error of a classifier
    ``clopper_pearson`` (on held-out rows: the one to report), ``pac_bayes_margin``,
    ``sample_compression``, ``vc_bound``, ``margin_bound``, ``discretisation_bound``
Perceptron
    ``mistake_bounds`` from a separating hyperplane, ``best_mistake_bounds`` from rows
Geometry
    ``minimum_enclosing_ball``

Every bound is a :class:`Bound`: a number with its assumptions, its confidence level, and whether it is vacuous.
Functions raise ``BadInput`` if an argument is out of range or of the wrong type.

>>> from linsep import bounds
>>> print(bounds.clopper_pearson(errors=45, n=1000))
Clopper-Pearson: error <= 0.0574 at confidence 0.95
"""

from linsep.bounds.ball import Ball, minimum_enclosing_ball
from linsep.bounds.bound import Bound
from linsep.bounds.held_out import clopper_pearson, sample_compression
from linsep.bounds.mistakes import MistakeBounds, best_mistake_bounds, mistake_bounds
from linsep.bounds.pac_bayes import kl_inverse, pac_bayes_margin
from linsep.bounds.shattering import (
    NotShattered,
    RadonPartition,
    Shattered,
    radon,
    shattering_witness,
    shatters,
)
from linsep.bounds.vc import (
    discretisation_bound,
    margin_bound,
    margin_dimension,
    rows_needed,
    vc_bound,
    vc_dimension,
)

__all__ = [
    "Ball",
    "Bound",
    "MistakeBounds",
    "NotShattered",
    "RadonPartition",
    "Shattered",
    "best_mistake_bounds",
    "clopper_pearson",
    "discretisation_bound",
    "kl_inverse",
    "margin_bound",
    "margin_dimension",
    "minimum_enclosing_ball",
    "mistake_bounds",
    "pac_bayes_margin",
    "radon",
    "rows_needed",
    "sample_compression",
    "shattering_witness",
    "shatters",
    "vc_bound",
    "vc_dimension",
]
