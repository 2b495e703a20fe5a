"""Names of other libraries that docstrings link to, and where their pages are.

Sphinx resolves such names in the inventory of the other documentation, which it fetches. These few are written into
an inventory of our own, so that the links exist and the build needs no network.
"""

from __future__ import annotations

import zlib
from pathlib import Path

SKLEARN = {
    "py:class": (
        "sklearn.linear_model.ElasticNet",
        "sklearn.linear_model.HuberRegressor",
        "sklearn.linear_model.Lasso",
        "sklearn.linear_model.LinearRegression",
        "sklearn.linear_model.LogisticRegression",
        "sklearn.linear_model.LogisticRegressionCV",
        "sklearn.linear_model.Perceptron",
        "sklearn.linear_model.QuantileRegressor",
        "sklearn.linear_model.Ridge",
        "sklearn.linear_model.RidgeClassifier",
        "sklearn.linear_model.SGDClassifier",
        "sklearn.linear_model.SGDRegressor",
        "sklearn.preprocessing.PolynomialFeatures",
        "sklearn.svm.LinearSVC",
        "sklearn.svm.LinearSVR",
    ),
    "py:function": (
        "sklearn.datasets.load_breast_cancer",
        "sklearn.datasets.load_digits",
        "sklearn.datasets.load_iris",
        "sklearn.datasets.make_moons",
    ),
}
HEADER = (
    "# Sphinx inventory version 2\n"
    "# Project: scikit-learn\n"
    "# Version: stable\n"
    "# The remainder of this file is compressed using zlib.\n"
)


def write_inventory(path: Path) -> None:
    """Write the inventory of scikit-learn's names; ``$`` in an address stands for the name."""
    lines = [
        f"{name} {role} 1 modules/generated/$.html -\n"
        for role, names in SKLEARN.items()
        for name in names
    ]
    path.write_bytes(HEADER.encode() + zlib.compress("".join(lines).encode()))
