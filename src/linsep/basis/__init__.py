"""Basis functions: replace x by phi(x), so that a linear model has curved decision boundaries.

Every class is a scikit-learn transformer, to be used before an estimator in a pipeline:

>>> from sklearn.pipeline import make_pipeline
>>> from linsep import LogisticRegression
>>> from linsep.basis import Interactions
>>> model = make_pipeline(Interactions(), LogisticRegression())

=====================  ==========================================================
``Polynomial``         monomials x_i x_j ... of degree at most k; keeps sparsity
``Interactions``       the quadratic model: x_j and all products x_i x_j
``RadialBasis``        exp(-|x - m|^2 / c) around centres m
``RectifiedBasis``     max(0, a.x + b)
``FourierBasis``       cos and sin of each feature, k = 1, 2, ... times a period
``HaarWavelet``        steps on halves, quarters, eighths ... of each feature's range
=====================  ==========================================================

No transformer adds a constant column by default: the unpenalised intercept of the estimator takes its place.
"""

from linsep.basis.fourier import FourierBasis
from linsep.basis.haar import HaarWavelet
from linsep.basis.polynomial import Interactions, Polynomial
from linsep.basis.radial import RadialBasis
from linsep.basis.rectified import RectifiedBasis

__all__ = [
    "FourierBasis",
    "HaarWavelet",
    "Interactions",
    "Polynomial",
    "RadialBasis",
    "RectifiedBasis",
]
