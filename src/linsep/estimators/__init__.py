"""scikit-learn estimators: they check parameters and data, call ``train`` and store the fitted attributes."""

from __future__ import annotations

from linsep.estimators.cross_validated import LinearSVCCV, LogisticRegressionCV
from linsep.estimators.linear import LinearClassifier, LinearRegressor
from linsep.estimators.logistic import LogisticRegression
from linsep.estimators.perceptron import Perceptron
from linsep.estimators.separation import separate
from linsep.estimators.sgd import SGDClassifier
from linsep.estimators.svm import LinearSVC
from linsep.estimators.zero_one import SurrogatePrice, ZeroOneClassifier

__all__ = [
    "LinearClassifier",
    "LinearRegressor",
    "LinearSVC",
    "LinearSVCCV",
    "LogisticRegression",
    "LogisticRegressionCV",
    "Perceptron",
    "SGDClassifier",
    "SurrogatePrice",
    "ZeroOneClassifier",
    "separate",
]
