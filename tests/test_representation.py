"""What the library returns prints the same text in a console, a notebook and ``print``."""

import numpy as np
import pytest

import linsep
from linsep import LinearRegressor, LogisticRegression, Perceptron, bounds, path, separate, tune

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


def test_notebooks_show_tables():
    model = LogisticRegression().fit(X, y)
    rows, labels = np.tile(X, (4, 1)), np.tile(y, 4)
    tuning = tune(LogisticRegression(), rows, labels, Cs=[0.1, 1.0], cv=2, test=0.25)
    shown = {
        "Certified optimum": model.certificate_,
        "C = ": tuning,
        "standard error": tuning.curve,
        "nonzero coefficients": path(LogisticRegression(), X, y, Cs=[0.1, 1.0]),
        "Not separable, proven": separate(X, [0, 0, 1, 1, 0, 1]),
        "Separable, proven": separate(X, X[:, 0] > 2.5),
    }
    for text, result in shown.items():
        found = result._repr_html_()
        assert text in found and "<table" in found and found.count("<tr>") == found.count("</tr>")
        assert "<=" not in found  # escaped


def test_the_html_of_a_fitted_estimator_ends_with_its_certificate():
    for model, target in (
        (LogisticRegression(), y),
        (LinearRegressor(), y),
        (Perceptron(), X[:, 0] > 2.5),
    ):
        before = model._repr_mimebundle_()["text/html"]
        assert "ertified" not in before and "eparable" not in before
        model.fit(X, target)
        for found in (model._repr_mimebundle_()["text/html"], model._repr_html_()):
            assert model.certificate_._repr_html_() in found
    with pytest.warns(linsep.ConvergenceWarning):
        model = LogisticRegression(solver="newton", max_passes=1).fit(X, y)
    assert "Not certified" in model._repr_html_()
