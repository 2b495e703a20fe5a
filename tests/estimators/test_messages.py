"""Errors of common mistakes say what was given and what to do."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression as Theirs

import linsep
from linsep import (
    LinearClassifier,
    LinearSVC,
    LogisticRegression,
    audit,
    datasets,
    losses,
    save,
    verify,
)
from linsep.errors import BadInput, CertificateError, NonFinite, Refused, SeparableData

X, y = datasets.overlapping(40)


def with_entry(value):
    other = X.copy()
    other[3, 1] = value
    return other


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: LogisticRegression(C=None).fit(X, y), BadInput, "C=inf means no penalty"),
        (lambda: LinearClassifier("hinges").fit(X, y), BadInput, "did you mean 'hinge'"),
        (lambda: LinearClassifier(losses.Hinge).fit(X, y), BadInput, r"write Hinge\(\)"),
        (lambda: LinearClassifier("zero_one").fit(X, y), Refused, "ZeroOneClassifier"),
        (lambda: LogisticRegression().fit(with_entry(np.nan), y), NonFinite, "linsep.Encoder"),
        (lambda: LogisticRegression().fit(with_entry(np.inf), y), NonFinite, "replace the value"),
        (
            lambda: LogisticRegression().fit(pd.DataFrame({"a": ["x", "z"] * 20}), y),
            BadInput,
            "linsep.Encoder",
        ),
        (lambda: LogisticRegression().fit(X[:, 0], y), BadInput, r"its shape is \(40,\)\. Reshape"),
        (lambda: LogisticRegression().fit(["a text"] * 40, y), BadInput, "TfidfVectorizer"),
        (lambda: LinearSVC(penalty="l1", dual=False), TypeError, "for L1 use LinearClassifier"),
        (lambda: audit(LogisticRegression().fit(X, y), X, y), Refused, "a model of linsep"),
        (lambda: save(Theirs().fit(X, y), "model"), Refused, "A sklearn LogisticRegression cannot"),
        (lambda: linsep.Lasso, AttributeError, "linsep.sklearn has a Lasso"),
    ],
)
def test_the_message_says_what_to_do(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_separation_names_the_features():
    frame = pd.DataFrame({"dose": [1.0, 2.0, 1.5, 2.5], "marker": [0, 0, 1, 1]})
    with pytest.raises(SeparableData, match="belong to 'marker'"):
        LogisticRegression(C=np.inf).fit(frame, [0, 0, 1, 1])


def test_wrong_rows_are_not_answered_with_advice_for_the_fit():
    model = LogisticRegression().fit(X, y)
    with pytest.raises(CertificateError) as caught:
        verify(model, X[::-1], y)
    assert "time_limit" not in str(caught.value) and "the same rows" in str(caught.value)


def test_a_warning_gives_its_advice_once():
    with pytest.warns(linsep.ConvergenceWarning) as caught:
        LogisticRegression(max_passes=1).fit(X, y)
    assert str(caught[0].message).count("max_passes") == 2  # reached, and to be raised


def test_the_front_page_knows_what_only_the_drop_in_classes_are():
    import linsep.sklearn

    only = {name for name in linsep.sklearn.__all__ if not hasattr(linsep, name)}
    assert only == set(linsep._DROP_IN)


def test_a_misspelt_name_is_answered_with_the_nearest():
    with pytest.raises(AttributeError, match="did you mean 'LogisticRegression'"):
        linsep.LogisticRegresion  # noqa: B018
