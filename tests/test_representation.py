"""What the library returns prints the same text in a console, a notebook and ``print``."""

import numpy as np

import linsep
from linsep import LogisticRegression, bounds, path, separate, tune

X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [4.0, 1.0], [5.0, 1.0]])
y = np.array([0, 0, 1, 0, 1, 1])


def test_a_result_shows_its_text():
    model = LogisticRegression().fit(X, y)
    shown = [
        model.certificate_,
        tune(LogisticRegression(), X, y, Cs=[0.1, 1.0], cv=2),
        path(LogisticRegression(), X, y, Cs=[0.1, 1.0]),
        separate(X, y),
        separate(X, X[:, 0] > 2.5),
        bounds.clopper_pearson(1, 20),
        linsep.Hyperplane(model.coef_[0], model.intercept_[0]),
    ]
    for result in shown:
        assert repr(result) == str(result) and "\n" not in repr(result).strip("\n")[:40]
    assert repr(shown[0]).startswith("certified optimum: objective ")
