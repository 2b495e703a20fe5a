"""Conversion of a model to a fitted scikit-learn estimator with the same coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC

from linsep.errors import Refused
from linsep.export.formula import Formula, formula
from linsep.tables import Encoder


def to_sklearn(model: Any) -> Any:
    """Convert the model to a fitted scikit-learn estimator with the same predictions.

    A regression becomes LinearRegression; a classifier with probabilities becomes LogisticRegression (one-vs-rest: a
    OneVsRestClassifier of these); any other classifier becomes LinearSVC, which has only scores. A pipeline becomes a
    pipeline of the same fitted steps.

    Parameters
    ----------
    model : fitted estimator, or Pipeline that ends in one

    Returns
    -------
    estimator of scikit-learn, or Pipeline

    Raises
    ------
    Refused
        If scikit-learn has no such model.

    See Also
    --------
    python : Without dependencies.
    onnx : An ONNX graph.

    Examples
    --------
    >>> import linsep
    >>> from linsep import export
    >>> model = linsep.LogisticRegression().fit([[0.0], [1.0]], ["no", "yes"])
    >>> export.to_sklearn(model).predict([[2.0]])
    array(['yes'], dtype='<U3')
    """
    if isinstance(model, Pipeline):
        if type(model[0]) is Encoder:
            raise Refused(
                "A scikit-learn estimator holds the numeric part of a model only; export model[-1], and encode the "
                "rows with model[0], or use sql, c or python, which include the encoder."
            )
        return Pipeline([*model.steps[:-1], (model.steps[-1][0], to_sklearn(model[-1]))])
    f = formula(model)
    made = _make(f, model)
    if hasattr(model, "feature_names_in_"):
        made.feature_names_in_ = model.feature_names_in_.copy()
    made.n_features_in_ = f.W.shape[1]
    return made


def _make(f: Formula, model: Any) -> Any:
    if f.classes is None:
        regression = LinearRegression()
        regression.coef_, regression.intercept_ = f.W[0].copy(), float(f.b[0])
        return regression
    if f.link == "ovr":
        return _one_vs_rest(f, model)
    made = LinearSVC() if f.link is None else LogisticRegression()
    made.coef_, made.intercept_ = f.W.copy(), f.b.copy()
    made.classes_ = model.classes_.copy()
    if hasattr(model, "n_iter_"):  # the fewest errors are found without iterations
        made.n_iter_ = np.atleast_1d(model.n_iter_).astype(np.int32)
    return made


def _one_vs_rest(f: Formula, model: Any) -> Any:
    from sklearn.preprocessing import LabelBinarizer  # noqa: PLC0415

    made = OneVsRestClassifier(LogisticRegression())
    made.estimators_ = []
    for row, b in zip(f.W, f.b, strict=True):
        part = LogisticRegression()
        part.coef_, part.intercept_ = row[np.newaxis].copy(), np.array([b])
        part.classes_ = np.array([0, 1])
        part.n_iter_ = np.array([np.max(model.n_iter_)], dtype=np.int32)
        part.n_features_in_ = f.W.shape[1]
        made.estimators_.append(part)
    made.label_binarizer_ = LabelBinarizer(sparse_output=True).fit(model.classes_)
    made.classes_ = model.classes_.copy()
    return made
