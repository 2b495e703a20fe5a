"""Keywords and solver names of scikit-learn meet an error that says what to use instead."""

import inspect

import numpy as np
import pytest
from sklearn.base import clone

import linsep
import linsep.sklearn
from linsep.errors import BadInput
from linsep.estimators.keywords import REPLACEMENTS, WITHOUT_L1

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
    assert str(error.value).startswith(f"{kind.__name__} has no parameter {word!r} ({word}: ")
    without = {} if "l1_ratio" in inspect.signature(kind).parameters else WITHOUT_L1
    assert {**REPLACEMENTS, **without}[word] in str(error.value)
    drop_in = f"linsep.sklearn.{kind.__name__} takes" in str(error.value)
    assert drop_in == (kind.__name__ in linsep.sklearn.__all__)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_what_a_replacement_names_exists(kind):
    model = kind()
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(TypeError, match=r"has no parameter 'colour'\. It has "):
        kind(colour=1)


def test_the_parameters_that_replace_others_are_there():
    known = {name for kind in ESTIMATORS for name in inspect.signature(kind).parameters}
    assert {"l1_ratio", "C", "tol", "max_passes", "time_limit", "n_threads", "multiclass"} <= known
    assert {"schedule", "keep"} <= known


def test_a_solver_of_scikit_learn_is_called_so():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 1, 0, 1])
    with pytest.raises(BadInput, match="'lbfgs' is scikit-learn's"):
        linsep.LogisticRegression(solver="lbfgs").fit(X, y)
    with pytest.raises(BadInput, match="'saga' is scikit-learn's"):
        linsep.LogisticRegression(solver="saga").fit(np.vstack([X, X]), [0, 1, 2, 0, 1, 2, 0, 1])
