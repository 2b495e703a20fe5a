"""Classifier that minimises the number of training errors (the 0-1 loss), with a proof."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from linsep.arrays import FloatArray, dense
from linsep.data import Memory
from linsep.data.entrance import inputs, labels
from linsep.data.entrance.finite import refuse_nonfinite
from linsep.data.entrance.opened import read_rows
from linsep.errors import BadInput, CertificateError, ConvergenceWarning, Refused
from linsep.estimators import parameters
from linsep.estimators.classification import ByScores
from linsep.estimators.scoring import dense_coef, scores
from linsep.exact.dyadic import below
from linsep.interrupts import until
from linsep.losses import get
from linsep.monitoring import Job
from linsep.penalties import ElasticNet
from linsep.train import Recipe, train
from linsep.zero_one import Points, ZeroOne, distinct, exact_signs, minimise

_LARGEST = 100_000_000  # largest number of entries of X, which is stored densely
_STARTS = (("logistic", 1.0), ("logistic", 1e3), ("hinge", 1.0), ("squared_hinge", 10.0))
_SURROGATES = ("logistic", "hinge", "squared_hinge")


@dataclass(frozen=True)
class SurrogatePrice:
    """Training errors of models that minimise a convex loss, compared with the fewest possible.

    Attributes
    ----------
    errors : dict
        Total weight of the errors for each loss.
    minimum : float
        Total weight of the errors of the ``ZeroOneClassifier``.
    lower_bound : float
        Proven lower bound on the errors of every hyperplane.
    C : float
        Weight of the convex losses against the penalty.
    """

    errors: dict[str, float]
    minimum: float
    lower_bound: float
    C: float

    def __str__(self) -> str:
        known = "fewest possible" if self.minimum == self.lower_bound else "fewest found"
        lines = [f"{'loss':<15}{'errors':>8}  price", f"{known:<15}{self.minimum:>8g}"]
        if self.minimum > self.lower_bound:
            lines.append(f"{'at least':<15}{self.lower_bound:>8g}")
        for name, count in self.errors.items():
            lines.append(f"{name:<15}{count:>8g}  {count - self.minimum:+g}")
        return "\n".join(lines)

    __repr__ = __str__


class ZeroOneClassifier(ByScores):
    """Linear classifier with the fewest errors on the training rows, with a proof.

    Minimises the 0-1 loss itself: sum_i s_i [sign(x_i.w + b) != y_i] with sign(0) = +1. One feature is solved by
    sorting, two by rotating a line about every point. With more features, the fit collects witnesses of inseparability
    (sets of at most d + 2 rows in which every hyperplane makes an error) and covers them by as few rows as possible, a
    mixed-integer programme. If the rows outside an optimal cover are separable, the cover is the optimum. The cost
    grows more with the number of errors than with the number of rows: up to 10 or 15 errors take seconds.
    At ``time_limit`` the fit returns the best hyperplane found and a proven lower bound.

    Two classes only. Scores whose sign could be changed by rounding are computed in rational arithmetic, in
    ``decision_function`` and ``predict`` as well as in the proof.

    Parameters
    ----------
    time_limit : float or None, default 60
        Budget in seconds. None: run until the optimum is proven.
    max_rounds : int, optional
        Largest number of covers to solve, each within a fixed number of nodes. With ``time_limit=None`` the result of
        an unfinished search then depends only on the data and the seed, not on the speed of the machine.
    class_weight : dict {class: weight}, "balanced" or None
        Cost of an error in each class; "balanced" gives all classes the same total weight.
    random_state : int, RandomState or None
        Seed of the searches; None means 0.

    Attributes
    ----------
    errors_ : float
        Total weight of the rows that ``predict`` misclassifies: the float nearest to the exact sum.
    lower_bound_ : float
        Lower bound on ``errors_`` for every hyperplane, proven in exact arithmetic.
    proven_ : bool
        Whether ``errors_`` equals ``lower_bound_``.
    certificate_ : ZeroOne
        Errors, proven lower bound, the misclassified rows and the witnesses; ``check(X, y, exact=False)`` proves it.
    coef_ : ndarray (1, d)
        Coefficients w.
    intercept_ : ndarray (1,)
        Intercept b.
    classes_ : ndarray (2,)
        Labels in sorted order; a positive score means ``classes_[1]``.
    n_features_in_ : int
        Number of features d.
    feature_names_in_ : ndarray of str
        Column names, if the rows came with them.

    Raises
    ------
    BadInput
        If X, y or a parameter is not usable, or y has more than two classes.

    See Also
    --------
    LinearClassifier : Convex losses instead of the number of errors.
    separate : Is the fewest number of errors zero?

    Notes
    -----
    ``s_i`` is the sample weight of row i times the weight of its class: the cost of an error. Minimising errors is
    NP-hard if the number of features is part of the input [1]_.

    References
    ----------
    .. [1] Johnson and Preparata, The densest hemisphere problem, Theoretical Computer Science 6, 1978.

    Examples
    --------
    >>> from linsep import ZeroOneClassifier
    >>> model = ZeroOneClassifier().fit([[0.0], [1.0], [2.0], [3.0]], ["a", "b", "a", "b"])
    >>> model.errors_, model.proven_
    (1.0, True)
    """

    def __init__(
        self,
        time_limit: float | None = 60.0,
        *,
        max_rounds: int | None = None,
        class_weight: Any = None,
        random_state: Any = None,
    ) -> None:
        self.time_limit = time_limit
        self.max_rounds = max_rounds
        self.class_weight = class_weight
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> ZeroOneClassifier:
        """Find the hyperplane with the fewest errors and prove that no other has fewer.

        Parameters
        ----------
        X : array, sparse matrix, dataframe or scan (n, d)
            Finite numbers. Rows in files (``linsep.scan``) or on a cluster are read into memory; too many are refused.
        y : array (n,)
            Labels of two classes. Optional if X is a scan with its own target.
        sample_weight : array (n,), optional
            Cost of an error in each row, >= 0: weight 2 is equivalent to repeating the row, weight 0 to omitting it.

        Returns
        -------
        self
        """
        began = perf_counter()
        owner = type(self).__name__
        limit = math.inf
        if self.time_limit is not None:
            limit = parameters.limit("time_limit", self.time_limit, "seconds")
        rounds = self.max_rounds
        if rounds is not None:
            rounds = parameters.count("max_rounds", rounds, "rounds")
        seed = parameters.seed(self.random_state) or 0
        rows, names, y, sample_weight = read_rows(X, y, sample_weight, owner)
        known = labels.encode(y, rows.shape[0], owner)
        if len(known.classes) > 2:
            raise BadInput(
                "Only binary classification is supported. The type of the target is multiclass: y holds "
                f"{len(known.classes)} classes, and the fewest errors of one class against the others are not those of "
                "all; fit two classes, or use LogisticRegression or LinearSVC."
            )
        refuse_nonfinite(rows, names)
        given = inputs.weights(sample_weight, rows.shape[0])
        weight = labels.combined_weights(known, given, self.class_weight, owner)
        points = distinct(_dense(rows, owner), known.signs(), weight)
        with Job("fewest errors"), until(began + limit):
            found = minimise(
                points,
                _Starts(points, limit),
                began + limit,
                np.random.default_rng(seed),
                rounds,
            )
        w, b = found.theta[:-1], float(found.theta[-1])
        proven = found.bound >= found.errors
        count = points.value(found.errors)
        bound = count if proven else below(points.weight_of(found.bound))
        certificate = ZeroOne(
            errors=count,
            lower_bound=bound,
            proven=proven,
            w=w,
            b=b,
            wrong=np.flatnonzero((points.place >= 0) & found.wrong[points.place]),
            witnesses=tuple((points.first[w.rows], w.weights) for w in found.witnesses),
            method=found.method,
            seconds=perf_counter() - began,
            classes=known.classes,
        )
        state: Any = vars(self)
        state.pop("feature_names_in_", None)
        if names is not None:
            state["feature_names_in_"] = names
        state.update(
            coef_=w[np.newaxis].copy(),
            intercept_=np.array([b]),
            classes_=known.classes,
            n_features_in_=len(w),
            errors_=count,
            lower_bound_=bound,
            proven_=proven,
            certificate_=certificate,
            _class_weight=self.class_weight,
        )
        if not proven:
            late = perf_counter() - began >= limit
            reason = "Time is up." if late else "The rounds are up, or float64 has too few digits."
            warnings.warn(
                ConvergenceWarning(f"{reason} Now: {certificate}", certificate), stacklevel=2
            )
        return self

    def price(self, X: Any, y: Any, sample_weight: Any = None, *, C: float = 1.0) -> SurrogatePrice:
        """Compare the errors of logistic regression and support vector machines with the fewest possible.

        Parameters
        ----------
        X, y, sample_weight
            What the model was fitted to.
        C : float, default 1.0
            Weight of the convex losses against the penalty, as in ``LinearClassifier``.

        Returns
        -------
        SurrogatePrice
        """
        check_is_fitted(self, "coef_")
        rows = inputs.validate_new_rows(self, X)
        known = labels.encode_as(self.classes_, y, rows.shape[0], type(self).__name__)
        weight = self._weight(X, y, sample_weight)
        points = distinct(_dense(rows, type(self).__name__), known.signs(), weight)
        wrong = points.find_errors(np.append(dense_coef(self), self.intercept_))
        listed = np.flatnonzero((points.place >= 0) & wrong[points.place])
        if not np.array_equal(listed, self.certificate_.wrong):
            raise BadInput("price needs the rows, labels and weights that the model was fitted to.")
        penalty = ElasticNet(parameters.positive("C", C))
        errors = {}
        for name in _SURROGATES:
            theta = _surrogate(points, points.X, points.weight, name, penalty, None)
            errors[name] = points.value(points.count(points.find_errors(theta)))
        return SurrogatePrice(errors, self.errors_, self.lower_bound_, float(C))

    def _weight(self, X: Any, y: Any, sample_weight: Any) -> FloatArray | None:
        rows = inputs.validate_new_rows(self, X)
        owner = type(self).__name__
        known = labels.encode_as(self.classes_, y, rows.shape[0], owner)
        given = inputs.weights(sample_weight, rows.shape[0])
        return labels.combined_weights(known, given, self._class_weight, owner)

    def _linear_scores(self, X: Any) -> FloatArray:
        """Return scores with exact signs, so that the certificate holds for the output of ``predict``."""
        check_is_fitted(self, "coef_")
        theta = np.append(dense_coef(self), self.intercept_)
        return scores(self, X, lambda rows, Z: exact_signs(rows, theta, Z[:, 0])[:, np.newaxis])

    def _verify(self, X: Any, y: Any, sample_weight: Any, exact: bool) -> ZeroOne:
        """Return the certificate; raise if it does not hold for the coefficients and these data."""
        claimed: ZeroOne = self.certificate_
        rows = inputs.validate_new_rows(self, X)
        known = labels.encode_any(y, rows.shape[0], type(self).__name__)
        if not (
            isinstance(claimed, ZeroOne)
            and self._is_unaltered(claimed, known)
            and claimed.check(rows, y, weight := self._weight(X, y, sample_weight), exact)
            and self._predicts(claimed, X, known, weight)
        ):
            raise CertificateError(
                f"The certificate of the model does not hold for these data. Claimed: {claimed}. Give verify the "
                "same rows, labels and weights as fit; if they are the same, the model or its certificate was "
                "altered: fit again."
            )
        if not claimed.proven:
            raise CertificateError(
                f"The model is not proven optimal on these data: {claimed}.", claimed
            )
        return claimed

    def _is_unaltered(self, claimed: ZeroOne, known: labels.Labels) -> bool:
        """Return whether the fitted attributes agree with the certificate and the classes with those of y."""
        return (
            np.array_equal(dense_coef(self), [claimed.w])
            and np.array_equal(self.intercept_, [claimed.b])
            and np.array_equal(self.classes_, known.classes)
            and claimed.classes is not None
            and np.array_equal(claimed.classes, known.classes)
            and self.errors_ == claimed.errors
            and self.lower_bound_ == claimed.lower_bound
            and self.proven_ == claimed.proven
            and (self.class_weight is None) == (self._class_weight is None)
            and bool(self.class_weight == self._class_weight)
        )

    def _predicts(self, claimed: ZeroOne, X: Any, known: labels.Labels, weight: Any) -> bool:
        """Return whether ``predict`` misclassifies exactly the rows that the certificate lists."""
        wrong = self.predict(X) != known.classes.take(known.codes.astype(np.intp))
        counted = wrong if weight is None else wrong & (weight > 0)
        return np.array_equal(np.flatnonzero(counted), claimed.wrong)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        # Even a row of tiny weight is classified correctly if that costs nothing, which scikit-learn does not expect.
        tags.classifier_tags.poor_score = True
        return tags


class _Starts:
    """Starting hyperplanes: minimisers of convex losses on standardised columns, fitted on first use."""

    def __init__(self, points: Points, limit: float) -> None:
        self.points, self.limit = points, limit

    def __iter__(self) -> Any:
        frame = self.points.frame
        scaled = (self.points.X - frame.centre) / frame.spread
        for name, C in _STARTS:
            seconds = None if math.isinf(self.limit) else self.limit / 20
            theta = _surrogate(self.points, scaled, self.points.cost, name, ElasticNet(C), seconds)
            w = theta[:-1] / frame.spread
            yield np.append(w, theta[-1] - frame.centre @ w)


def _surrogate(
    points: Points,
    X: FloatArray,
    weight: FloatArray,
    name: str,
    penalty: ElasticNet,
    seconds: float | None,
) -> FloatArray:
    """Return the (w, b) that minimises a convex loss on the points."""
    recipe = Recipe(loss=get(name), penalty=penalty, tol=1e-6, time_limit=seconds)
    fit = train(recipe, Memory(X, points.sign, weight=weight, n_threads=1), warn=False)
    return np.asarray(fit.W[:, 0])


def _dense(rows: Any, owner: str) -> FloatArray:
    if rows.shape[0] * rows.shape[1] > _LARGEST:
        raise Refused(
            f"{owner} holds its rows densely, and X has {rows.shape[0]:,} x {rows.shape[1]:,} numbers, more than "
            f"{_LARGEST:,}; ask separate whether the classes overlap at all, or use a convex loss."
        )
    return np.asarray(dense(rows), dtype=np.float64)
