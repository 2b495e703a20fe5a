"""What the cases ask of a library: fit arrays, read LIBSVM text. linsep, scikit-learn and LIBLINEAR answer."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from linsep import LinearRegressor, LogisticRegression, read_libsvm, verify
from linsep.errors import ConvergenceWarning, LinsepError
from scoreboard.harness import Said, check


class Linsep:
    """The library under test: messages must have the words that a case asks for."""

    name = "linsep"
    words = True
    weights = True
    typed: tuple[type[BaseException], ...] = (
        LinsepError,
        OSError,
        MemoryError,
        NotFittedError,
        Said,
    )

    @staticmethod
    def set_warnings() -> None:
        warnings.simplefilter("error")
        warnings.simplefilter("always", ConvergenceWarning)

    def fit(self, X: Any, y: Any, weight: Any = None, model: Any = None, **params: Any) -> Any:
        """Fit, with an answer that ``verify`` confirms; a refusal leaves the estimator as it was."""
        model = LogisticRegression(**params) if model is None else model.set_params(**params)
        before = fitted_state(model)
        try:
            with warnings.catch_warnings(record=True) as said:
                self.set_warnings()
                model.fit(X, y, sample_weight=weight)
        except Exception:
            after = fitted_state(model)
            kept = after.keys() == before.keys() and all(after[k] is before[k] for k in before)
            check(kept, "a refused fit changed the estimator")
            raise
        check(model.certificate_.certified or said, "not certified, and no warning says so")
        check(np.isfinite(model.coef_).all(), "coefficients that are not finite")
        return model

    def regress(self, X: Any, y: Any, weight: Any = None, **params: Any) -> Any:
        return self.fit(X, y, weight, LinearRegressor(), **params)

    @staticmethod
    def read(path: str) -> tuple[Any, Any]:
        found = read_libsvm(path)
        return found.X, found.y

    @staticmethod
    def confirm(model: Any, X: Any, y: Any, weight: Any = None) -> None:
        """The certificate holds in an independent computation."""
        if model.certificate_.certified:
            check(verify(model, X, y, weight).certified, "verify refuses what fit certified")


def fitted_state(model: Any) -> dict[str, Any]:
    return {key: value for key, value in vars(model).items() if key not in model.get_params()}


class _Peer:
    """Another library: any deliberate error counts as clear."""

    words = False
    typed: tuple[type[BaseException], ...] = (
        ValueError,
        TypeError,
        OSError,
        MemoryError,
        OverflowError,
    )

    @staticmethod
    def set_warnings() -> None:
        warnings.simplefilter("ignore")


class ScikitLearn(_Peer):
    """scikit-learn's classes of the same names."""

    name = "scikit-learn"
    weights = True

    def fit(self, X: Any, y: Any, weight: Any = None, **params: Any) -> Any:
        from sklearn.linear_model import LogisticRegression as Peer

        params = {key: value for key, value in params.items() if key in Peer().get_params()}
        return _warned(Peer(**{"max_iter": 1000, **params}), X, y, weight)

    def regress(self, X: Any, y: Any, weight: Any = None, **params: Any) -> Any:
        from sklearn.linear_model import Ridge

        return _warned(Ridge(), X, y, weight)

    @staticmethod
    def read(path: str) -> tuple[Any, Any]:
        from sklearn.datasets import load_svmlight_file

        return load_svmlight_file(path)

    @staticmethod
    def confirm(model: Any, X: Any, y: Any, weight: Any = None) -> None:
        """The objective is within a percent of the minimum that linsep proves, or there was a warning."""
        check(np.isfinite(model.coef_).all(), "coefficients that are not finite")
        if model.warned or len(model.classes_) > 2:
            return
        dense = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)
        lowest = LogisticRegression(C=model.C).fit(dense, y, sample_weight=weight).certificate_
        reached = _logistic(
            model.coef_[0], model.intercept_[0], dense, y == model.classes_[1], weight, model.C
        )
        check(
            reached <= lowest.primal * 1.01 + 1e-12, f"objective {reached}, minimum {lowest.primal}"
        )


def _warned(model: Any, X: Any, y: Any, weight: Any) -> Any:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(X, y, weight)
    model.warned = bool(said)
    return model


def _logistic(
    w: Any, b: float, X: Any, upper: Any, weight: Any, C: float, bias: float = 0.0
) -> float:
    """|w|^2 / 2 + bias b^2 / 2 + C sum s log(1 + exp(-margin))."""
    with np.errstate(all="ignore"):
        margins = np.where(upper, 1.0, -1.0) * (X @ w + b)
        losses = np.logaddexp(0.0, -margins) * (1.0 if weight is None else weight)
        return float(w @ w / 2 + bias * b * b / 2 + C * losses.sum())


class Liblinear(_Peer):
    """LIBLINEAR through its own Python interface: logistic regression with a penalised bias."""

    name = "LIBLINEAR"
    weights = False

    def fit(self, X: Any, y: Any, weight: Any = None, **params: Any) -> Any:
        from liblinear.liblinearutil import train

        if weight is not None or set(params) - {"C", "tol"}:
            raise NotApplicable
        options = f"-s 0 -q -B 1 -c {params.get('C', 1.0)} -e {params.get('tol', 1e-6)}"
        return _LiblinearModel(train(y, X, options), params.get("C", 1.0))

    def regress(self, X: Any, y: Any, weight: Any = None, **params: Any) -> Any:
        from liblinear.liblinearutil import train

        if weight is not None or params:
            raise NotApplicable
        return _LiblinearModel(train(y, X, "-s 11 -q -B 1"), 1.0)

    @staticmethod
    def read(path: str) -> tuple[Any, Any]:
        from liblinear.commonutil import svm_read_problem

        y, X = svm_read_problem(path, return_scipy=True)
        return X, y

    @staticmethod
    def confirm(model: Any, X: Any, y: Any, weight: Any = None) -> None:
        check(np.isfinite(model.coef_).all(), "coefficients that are not finite")
        if len(model.classes_) > 2:
            return
        dense = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)
        wide = np.column_stack([dense, np.ones(len(dense))])
        lowest = LogisticRegression(C=model.C, fit_intercept=False).fit(wide, y).certificate_
        reached = _logistic(
            model.coef_[0],
            model.intercept_[0],
            dense,
            np.asarray(y) == model.classes_[1],
            None,
            model.C,
            1.0,
        )
        check(
            reached <= lowest.primal * 1.01 + 1e-12, f"objective {reached}, minimum {lowest.primal}"
        )


class NotApplicable(Exception):
    """The library has no such option."""


class _LiblinearModel:
    def __init__(self, model: Any, C: float) -> None:
        self.C = C
        self.classes_ = np.sort(model.get_labels())
        w, b = model.get_decfun()
        flip = (
            1.0 if model.get_labels()[:1] == [self.classes_[-1]] or len(self.classes_) < 2 else -1.0
        )
        self.coef_, self.intercept_ = flip * np.array([w]), flip * np.array([b])

    def decision_function(self, X: Any) -> Any:
        return np.asarray(X @ self.coef_[0] + self.intercept_[0])


LIBRARIES = {kind.name: kind for kind in (Linsep, ScikitLearn, Liblinear)}
