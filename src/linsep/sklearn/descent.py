"""scikit-learn's models by stochastic gradient descent, fitted to the minimum of their objective."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import linear_model
from sklearn.utils.validation import check_array

from linsep import certificates, sklearn_objectives
from linsep.certificates import Optimality
from linsep.certificates.optimality import exact_zero
from linsep.losses import Loss
from linsep.sklearn import fitting
from linsep.sklearn.fitting import Delegated
from linsep.sklearn.regression import minimise_each, store
from linsep.sklearn_objectives import Part

#: Relative rounding error of a score per feature, relative to the sum of the sizes of its terms.
_ROUNDING = 2.0**-50


class SGDClassifier(linear_model.SGDClassifier):  # type: ignore[misc]
    """scikit-learn's ``SGDClassifier``, fitted to the minimum of its objective, with a proof in ``certificate_``.

    Parameters and attributes are those of ``sklearn.linear_model.SGDClassifier``. ``fit`` returns the minimum that
    stochastic descent approaches. Parameters that concern the descent itself leave the fit to scikit-learn:
    ``partial_fit``, ``average``, ``early_stopping``, a ``learning_rate`` other than "optimal", ``tol=None`` and fewer
    than 10 epochs. So do the loss "perceptron" and losses that linsep does not have.

    See Also
    --------
    sklearn.linear_model.SGDClassifier : Parameters and attributes.
    linsep.SGDClassifier : With linsep's own parameters.

    Notes
    -----
    The objective is

        alpha penalty(w) + sum_i s_i loss(y_i (x_i.w + b)) / n

    where ``s_i`` is the sample weight and ``n`` the number of rows. Three or more classes are fitted one-vs-rest.

    Examples
    --------
    >>> from linsep.sklearn import SGDClassifier
    >>> model = SGDClassifier().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> model.certificate_.certified
    True
    """

    def _fit_binary(self, *args: Any, **given: Any) -> None:
        self._descend(super()._fit_binary, args, given)

    def _fit_multiclass(self, *args: Any, **given: Any) -> None:
        self._descend(super()._fit_multiclass, args, given)

    def _descend(self, step: Any, args: Any, given: Any) -> None:
        """Call scikit-learn's method with ``fit_binary`` replaced, and collect the certificates."""
        fitting.forget(self)
        proofs: dict[int, Optimality] = {}
        original = step.__func__.__globals__["fit_binary"]
        routine = fitting.exchange(self, original, lambda found: _one_class(found, proofs))
        exchanged = fitting.with_globals(step.__func__, {"fit_binary": routine})
        exchanged(self, *args, **given)
        if len(proofs) == (1 if len(self.classes_) == 2 else len(self.classes_)):
            self.certificate_ = certificates.combine([proofs[i] for i in sorted(proofs)])


def _one_class(given: dict[str, Any], proofs: dict[int, Optimality]) -> tuple[Any, float, int]:
    """Minimise the problem that ``fit_binary`` is called for: class number i against the others."""
    model, X, number = given["est"], given["X"], given["i"]
    need_minimum(model, given["max_iter"], given["learning_rate"], ("optimal",))
    inside = np.asarray(given["y"]) == model.classes_[number]
    factor = np.where(inside, float(given["pos_weight"]), float(given["neg_weight"]))
    weight = factor * np.asarray(given["sample_weight"], dtype=float)
    fitting.need_weight(weight, inside.astype(np.int64), 2)
    part = Part(sign=np.where(inside, 1.0, -1.0), weight=weight)
    problem = sklearn_objectives.sgd(model, (part,), X.shape[0])
    if isinstance(problem.loss, Loss) and problem.loss.zero_at_origin:
        raise Delegated(f"loss={model.loss!r} is minimal at w = 0")
    tol = fitting.gap_tolerance(model.tol, X.dtype)
    found = fitting.minimise(problem, X, tol, dtype=X.dtype)
    proofs[number] = found.certificate
    coef = model.coef_.ravel() if len(model.classes_) == 2 else model.coef_[number]
    coef[:] = found.W[:-1, 0]
    passes = fitting.iterations(found.passes, given["max_iter"])
    return coef, float(found.W[-1, 0]), passes  # the intercept is a float64 for float32 rows too


def need_minimum(
    model: Any, max_iter: int, learning_rate: str, convergent: tuple[str, ...]
) -> None:
    """Raise ``Delegated`` for parameters that concern the descent and not the minimum it approaches.

    ``convergent`` are the learning rates with which it approaches the minimum.
    """
    if model.average:
        raise Delegated("average asks for the mean of the iterates of the descent")
    if model.early_stopping:
        raise Delegated("early_stopping asks for an iterate of the descent before its end")
    if learning_rate not in convergent:
        raise Delegated(f"learning_rate={learning_rate!r} asks for a descent of its own")
    if model.tol is None:
        raise Delegated("tol=None asks for exactly max_iter epochs")
    fitting.need_iterations(max_iter)


class SGDRegressor(linear_model.SGDRegressor):  # type: ignore[misc]
    """scikit-learn's ``SGDRegressor``, fitted to the minimum of its objective, with a proof in ``certificate_``.

    Parameters and attributes are those of ``sklearn.linear_model.SGDRegressor``. ``fit`` returns the minimum that
    stochastic descent approaches. Parameters that concern the descent itself leave the fit to scikit-learn:
    ``partial_fit``, ``average``, ``early_stopping``, ``tol=None``, fewer than 10 epochs, and learning rates other than
    "invscaling" and "optimal".

    See Also
    --------
    sklearn.linear_model.SGDRegressor : Parameters and attributes.
    linsep.LinearRegressor : With linsep's own parameters.

    Notes
    -----
    The objective is

        alpha penalty(w) + sum_i s_i loss(t_i - x_i.w - b) / n

    where ``s_i`` is the sample weight and ``n`` the number of rows.

    Examples
    --------
    >>> from linsep.sklearn import SGDRegressor
    >>> model = SGDRegressor().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> model.certificate_.certified
    True
    """

    def _fit_regressor(self, X: Any, y: Any, *given: Any) -> None:
        # alpha, before scikit-learn 1.8 C, loss, learning_rate, sample_weight, max_iter
        fitting.attempt(
            self,
            lambda: self._minimise(X, y, *given[-3:]),
            lambda: super(SGDRegressor, self)._fit_regressor(X, y, *given),
        )

    def _minimise(
        self, X: Any, y: Any, learning_rate: str, sample_weight: Any, max_iter: int
    ) -> None:
        need_minimum(self, max_iter, learning_rate, ("invscaling", "optimal"))
        weight = np.asarray(sample_weight, dtype=np.float64)
        plain = None if (weight == 1.0).all() else weight
        tol = fitting.gap_tolerance(self.tol, X.dtype)
        found = minimise_each(self, X, np.asarray(y).reshape(-1, 1), plain, tol)
        store(self, found, X.dtype, None)
        self.intercept_ = found.W[-1].copy()  # float64, also for float32 rows
        self.n_iter_ = fitting.iterations(found.passes, max_iter)
        self.t_ = 1.0 + self.n_iter_ * X.shape[0]


class Perceptron(linear_model.Perceptron):  # type: ignore[misc]
    """scikit-learn's ``Perceptron``; if it separates the training rows, ``certificate_`` proves it.

    Parameters and attributes are those of ``sklearn.linear_model.Perceptron``, and so are the updates of ``fit`` and
    ``partial_fit``. If, after ``fit``, every training row of positive weight is on the right side by more than its
    rounding error, ``certificate_`` proves it; otherwise there is no ``certificate_``.

    See Also
    --------
    sklearn.linear_model.Perceptron : Parameters and attributes.
    linsep.Perceptron : With linsep's own parameters.

    Notes
    -----
    The loss ``max(0, -m)`` of the perceptron is 0 at w = 0 and wherever the classes are separated: there is no other
    minimum to find, so linsep does not replace scikit-learn's routine.

    Examples
    --------
    >>> from linsep.sklearn import Perceptron
    >>> model = Perceptron().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> model.certificate_.certified
    True
    """

    def fit(
        self,
        X: Any,
        y: Any,
        coef_init: Any = None,
        intercept_init: Any = None,
        sample_weight: Any = None,
    ) -> Perceptron:
        """Fit by perceptron updates.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        coef_init, intercept_init : arrays, default=None
            Initial coefficients.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self
        """
        fitting.forget(self)
        super().fit(X, y, coef_init, intercept_init, sample_weight)
        if not self.penalty and _separates(self, X, y, sample_weight):
            self.certificate_ = exact_zero(fitting.gap_tolerance(self.tol))
        return self

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> Perceptron:
        """Run one epoch of updates on some rows, by scikit-learn; removes the certificate.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array of shape (n_classes,), default=None
            All classes, required in the first call.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self
        """
        fitting.forget(self)
        super().partial_fit(X, y, classes, sample_weight)
        return self


def _separates(model: Any, X: Any, y: Any, sample_weight: Any) -> bool:
    """Return whether every row of positive weight is provably on the right side of all hyperplanes."""
    rows = check_array(X, accept_sparse="csr", dtype=np.float64)
    W, b = model.coef_.T.astype(float), model.intercept_.astype(float)
    scores = np.asarray(rows @ W + b)
    error = np.asarray(abs(rows) @ np.abs(W) + np.abs(b)) * _ROUNDING * (rows.shape[1] + 2)
    labels = np.asarray(y).ravel()
    classes = model.classes_[1:] if len(model.classes_) == 2 else model.classes_
    sign = np.where(labels[:, None] == classes, 1.0, -1.0)
    right = (sign * scores > error).all(axis=1)
    counted = True if sample_weight is None else np.asarray(sample_weight) > 0.0
    return bool(np.all(right | ~np.broadcast_to(counted, right.shape)))
