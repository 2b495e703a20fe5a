"""Keywords and solver names of scikit-learn meet an error that says what to use instead."""

import inspect

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Lasso, Ridge

import linsep
import linsep.sklearn
from linsep.errors import BadInput
from linsep.estimators.keywords import REPLACEMENTS

ESTIMATORS = [
    linsep.LogisticRegression,
    linsep.LinearSVC,
    linsep.LinearClassifier,
    linsep.LinearRegressor,
    linsep.SGDClassifier,
    linsep.Perceptron,
    linsep.LogisticRegressionCV,
    linsep.LinearSVCCV,
]


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize("word", REPLACEMENTS)
def test_a_keyword_of_scikit_learn_names_its_replacement(kind, word):
    if word in inspect.signature(kind).parameters:
        assert kind(**{word: None}).get_params()[word] is None
        return
    with pytest.raises(TypeError) as error:
        kind(**{word: 1})
    said = str(error.value)
    assert said.startswith(f"{kind.__name__} has no parameter {word!r}. ")
    advised = next(
        needed for needed, hint in REPLACEMENTS[word] if f". {hint[0].upper()}{hint[1:]}." in said
    )
    assert set(advised) <= set(inspect.signature(kind).parameters)
    assert ("squared hinge in scikit-learn" in said) == (kind is linsep.LinearSVC)
    drop_in = f"use linsep.sklearn.{kind.__name__}." in said
    assert drop_in == (kind.__name__ in linsep.sklearn.__all__)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_what_a_replacement_names_exists(kind):
    model = kind()
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(TypeError, match=r"has no parameter 'colour'\. Its parameters are "):
        kind(colour=1)


def test_the_alpha_of_ridge_and_lasso_has_the_c_that_the_hint_names():
    rng = np.random.default_rng(0)
    X, y, alpha = rng.normal(size=(40, 3)), rng.normal(size=40), 0.05
    with pytest.raises(
        TypeError, match=r"C = 1/\(2 \* alpha\) for .* C = 1/\(2 \* n_samples \* alpha\)"
    ):
        linsep.LinearRegressor(alpha=alpha)
    for theirs, own in (
        (Ridge(alpha), linsep.LinearRegressor(C=1 / (2 * alpha))),
        (Lasso(alpha), linsep.LinearRegressor(C=1 / (2 * 40 * alpha), l1_ratio=1.0)),
    ):
        np.testing.assert_allclose(own.fit(X, y).coef_, theirs.fit(X, y).coef_, atol=1e-3)


def test_a_solver_of_scikit_learn_is_called_so():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 1, 0, 1])
    with pytest.raises(BadInput, match="'lbfgs' is a solver of scikit-learn"):
        linsep.LogisticRegression(solver="lbfgs").fit(X, y)
    with pytest.raises(BadInput, match="'saga' is a solver of scikit-learn"):
        linsep.LogisticRegression(solver="saga").fit(np.vstack([X, X]), [0, 1, 2, 0, 1, 2, 0, 1])


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_set_params_names_the_replacement_too(kind):
    with pytest.raises(
        ValueError, match=r"has no parameter 'dual'\. Leave it out: linsep chooses the method\."
    ):
        kind().set_params(dual=True)
    with pytest.raises(ValueError, match=r"has no parameters 'colour', 'max_iter'\. max_iter: "):
        kind().set_params(colour=1, max_iter=3)
    assert kind().set_params(random_state=3).random_state == 3


def test_an_unknown_loss_lists_those_that_the_estimator_takes():
    X, y = np.arange(6.0).reshape(-1, 1), [0, 1, 0, 1, 0, 1]
    with pytest.raises(BadInput, match="Known names: squared, absolute, logistic") as classes:
        linsep.LinearClassifier("poisson").fit(X, y)
    with pytest.raises(BadInput, match="Known names: squared, absolute, huber") as numbers:
        linsep.LinearRegressor("poisson").fit(X, y)
    assert "pinball" not in str(classes.value) and "hinge" not in str(numbers.value)
    assert "zero_one" not in str(classes.value) + str(numbers.value)


def test_a_column_of_times_is_named_without_unit_and_zone():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"when": pd.to_datetime(["2024-01-01"] * 4)})
    with pytest.raises(BadInput, match=r"do not: 'when' \(Datetime\); encode them"):
        linsep.LogisticRegression().fit(frame, [0, 1, 0, 1])
