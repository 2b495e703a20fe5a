"""The linear support vector machine, with dual coefficients, support vectors and margin."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from linsep import certificates
from linsep.arrays import FloatArray, IntArray
from linsep.data.entrance import labels
from linsep.errors import BadInput
from linsep.estimators import parameters, support
from linsep.estimators.classification import Classification, subproblems
from linsep.estimators.keywords import explain_keywords
from linsep.estimators.scoring import dense_coef
from linsep.losses import CoupledLoss, Hinge, Loss, SquaredHinge
from linsep.solution import Explicit
from linsep.train import Fit

_LOSSES: dict[str, type[Loss]] = {"hinge": Hinge, "squared_hinge": SquaredHinge}


class LinearSVC(Classification):
    """Linear support vector machine with a certificate; hinge loss by default (scikit-learn's: squared hinge).

    scikit-learn's ``LinearSVC`` also penalises the intercept; ``linsep.sklearn.LinearSVC`` has its objective and its
    defaults. With ``loss="hinge"`` the problem is that of ``SVC(kernel="linear")``.

    Two classes, y in {-1, +1}: minimise over w and b

        1/2 |w|^2 + C sum_i s_i max(0, 1 - y_i (x_i.w + b))        (or its square)

    The intercept is never penalised. Three or more classes: one such problem for each class against the
    others (``ovr``), or one problem for all (``crammer_singer``): minimise over k columns w_c and b_c

        1/2 sum_c |w_c|^2 + C sum_i s_i max_c (z_ic + 1[c != y_i] - z_{i,y_i}),   z_ic = x_i.w_c + b_c

    Parameters
    ----------
    C : float, default 1.0
        Weight of the loss against the penalty, > 0. ``C=inf`` is the hard margin, for both losses: minimise
        1/2 |w|^2 subject to y_i (x_i.w + b) >= 1. If the classes are not separable ``fit`` then raises
        ``InseparableData``, which carries a proof of that.
    loss : {"hinge", "squared_hinge"}
        The hinge, or its square.
    multiclass : {"ovr", "crammer_singer"}
        How three or more classes are treated; ``crammer_singer`` has a hinge of its own.
    penalty_factor : array (d,), dict {column: factor} or None
        Factor p_j >= 0 on the penalty of each feature, which is 1/2 sum_j p_j w_j^2; 0 leaves a feature unpenalised.
        Needs a finite C. p_j w_j = sum_i y_i alpha_i x_ij then.
    fit_intercept : bool, default True
        Whether to fit the intercept b; otherwise it is 0.
    class_weight : dict {class: weight}, "balanced" or None
        Factor on the sample weights of each class; "balanced" gives all classes the same total weight.
    tol : float, default 1e-6
        Stop when the proven relative gap is at most ``tol``.
    solver : str, default "auto"
        "auto" picks the method that is predicted to be fastest. The page "How to choose a loss and a solver" lists all.
    time_limit, max_passes : float, optional
        Budget in seconds and in passes over the data. When it is spent, the fit ends with a valid certificate of the
        gap it has reached and a ``ConvergenceWarning``.
    n_threads : int, optional
        Number of threads; all processors by default. Results are bit-identical for any number.
    warm_start : bool, default False
        Start from the previous fit if it has the same classes and columns.
    random_state : int, RandomState or None
        Seed of solvers that draw at random; None means 0, so that results are reproducible.

    Attributes
    ----------
    alpha_ : ndarray (n,), or (n, k) for k >= 3 classes
        Dual coefficients. Hinge: in the box [0, C s_i]; squared hinge and hard margin: >= 0. w = sum_i y_i alpha_i
        x_i, and sum_i y_i alpha_i = 0 if there is an intercept. One-vs-rest: column c belongs to the problem of class c
        against the others. Crammer-Singer: C s_i (onehot(y_i) - p_i) with p_i in the simplex, so that
        ``coef_ = alpha_' X``, and rows and (with intercepts) columns sum to 0.
    support_ : ndarray of int
        Rows of X whose dual coefficient is not 0.
    free_support_, bounded_support_ : ndarray of int
        The two kinds of support vectors. Free: a dual coefficient lies strictly inside its box, so the row lies on the
        margin. Bounded: all nonzero dual coefficients are at their upper bound, so the row lies inside the margin or on
        the wrong side. The squared hinge and the hard margin have no upper bound: all are free.
    support_vectors_ : array or CSR matrix
        ``X[support_]``, kept if that is at most a million numbers; else index your own X.
    dual_coef_ : ndarray (1, n_support), or (k, n_support) for k >= 3 classes
        Dual coefficients of the support vectors times their signs y_i, as in scikit-learn's ``SVC``; the order is that
        of ``support_``. ``coef_ = dual_coef_ @ support_vectors_``.
    n_support_ : ndarray of int (k,)
        Number of support vectors of each class.
    margin_ : float, or ndarray
        ``1/|w|``, the distance from the hyperplane to the points of score +-1. One-vs-rest: (k,), one for each
        problem. Crammer-Singer: (k, k), ``1/|w_c - w_d|`` for each pair of classes.
    margin_width_ : float, or ndarray
        ``2/|w|``.
    coef_ : ndarray (1, d), or (k, d) for k >= 3 classes
        Coefficients w.
    intercept_ : ndarray (1,) or (k,)
        Intercept b.
    classes_ : ndarray (k,)
        Labels in sorted order; a positive score means ``classes_[1]``.
    certificate_ : Optimality
        Objective, proven lower bound, the gap between them, and the bound on |w - w*| it implies.
    n_passes_ : float
        Passes over the data.
    solver_ : str
        Solver used.
    trace_ : tuple of TraceRecord
        Passes, seconds, objective and lower bound during the fit.
    n_iter_ : ndarray of int (1,), or (k,) for one-vs-rest
        Passes over the data for each problem, rounded up.
    n_features_in_ : int
        Number of features d.
    feature_names_in_ : ndarray of str
        Column names, if the rows came with them.

    Raises
    ------
    BadInput
        If X, y or a parameter is not usable; the message names it.
    InseparableData
        If ``C=inf`` and no hyperplane separates the classes; the error holds a proof.
    Refused
        If the combination of loss, penalty and solver is not supported.

    See Also
    --------
    LinearSVCCV : Choose C by cross-validation.
    LinearClassifier : Squared hinge with L1 or elastic net.
    linsep.sklearn.LinearSVC : scikit-learn's signature and objective.
    sklearn.svm.LinearSVC : Penalises the intercept.

    Notes
    -----
    ``s_i`` is the sample weight of row i times the weight of its class, 1 by default; a weight of 2 is equivalent to
    repeating the row.

    The dual coefficients are those of the certificate [1]_, so they are feasible and consistent with ``coef_``. The
    problem for several classes is that of Crammer and Singer [2]_.

    References
    ----------
    .. [1] Cortes and Vapnik, Support-vector networks, Machine Learning 20, 1995.
    .. [2] Crammer and Singer, On the algorithmic implementation of multiclass kernel-based vector machines, JMLR 2,
       2001.

    Examples
    --------
    >>> from linsep import LinearSVC
    >>> model = LinearSVC().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> model.predict([[0.5], [2.5]])
    array([0, 1])
    >>> model.support_
    array([1, 2])
    >>> LinearSVC(float("inf")).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).margin_
    0.5
    """

    _schemes = ("ovr", "crammer_singer")
    _no_offset = (
        "LinearSVC has no offset; use LinearClassifier(loss='hinge') or 'squared_hinge', which has."
    )

    @explain_keywords
    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "hinge",
        multiclass: str = "ovr",
        penalty_factor: Any = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-6,
        solver: str = "auto",
        time_limit: float | None = None,
        max_passes: float | None = None,
        n_threads: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.loss = loss
        self.multiclass = multiclass
        self.penalty_factor = penalty_factor
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.solver = solver
        self.time_limit = time_limit
        self.max_passes = max_passes
        self.n_threads = n_threads
        self.warm_start = warm_start
        self.random_state = random_state

    @property
    def margin_(self) -> Any:
        """Geometric margin ``1/|w|``: the distance from the hyperplane to the points of score +-1."""
        if "coef_" not in vars(self):
            raise AttributeError("margin_: this LinearSVC is not fitted yet; call fit first.")
        w = dense_coef(self)
        if isinstance(self._fits[0].recipe.loss, CoupledLoss):
            w = w[:, np.newaxis, :] - w
        length = np.sqrt(np.einsum("...j,...j->...", w, w))
        margin = np.divide(1.0, length, out=np.full_like(length, np.inf), where=length > 0.0)
        return float(margin[0]) if margin.size == 1 else margin

    @property
    def margin_width_(self) -> Any:
        """Width of the margin, ``2/|w|``: the distance between the hyperplanes of score -1 and +1."""
        return 2.0 * self.margin_

    @property
    def support_vectors_(self) -> Any:
        """Rows ``support_`` of X."""
        state = vars(self)
        if state.get("_support_rows") is None:
            raise AttributeError(
                f"support_vectors_: the model keeps up to {support.MAX_STORED_ENTRIES:,} numbers, and these are "
                "more; take X[model.support_]."
                if "_support_rows" in state
                else "support_vectors_: this LinearSVC is not fitted yet; call fit first."
            )
        return state["_support_rows"]

    @property
    def dual_coef_(self) -> FloatArray:
        """Signed dual coefficients of the support vectors, one row for each problem."""
        codes = self._codes_of_support("dual_coef_")
        alpha: FloatArray = self.alpha_[self.support_]
        if isinstance(self._fits[0].recipe.loss, CoupledLoss):
            return alpha.T
        if alpha.ndim == 1:
            return np.where(codes == 1, alpha, -alpha)[np.newaxis]
        return np.where(codes == np.arange(alpha.shape[1])[:, np.newaxis], alpha.T, -alpha.T)

    @property
    def n_support_(self) -> npt.NDArray[np.int32]:
        """Number of support vectors of each class."""
        codes = self._codes_of_support("n_support_")
        return np.bincount(codes, minlength=len(self.classes_)).astype(np.int32)

    def _codes_of_support(self, name: str) -> IntArray:
        if "_support_codes" not in vars(self):
            raise AttributeError(f"{name}: this LinearSVC is not fitted yet; call fit first.")
        codes: IntArray = self._support_codes
        return codes

    def kkt(self, X: Any, y: Any, sample_weight: Any = None) -> certificates.KKT:
        """Compute the residuals of the Karush-Kuhn-Tucker conditions in numpy, from ``coef_`` and ``alpha_``.

        Parameters
        ----------
        X, y, sample_weight
            What the model was fitted to.

        Returns
        -------
        KKT
            Stationarity, intercept, box and complementarity.
        """
        parts = [certificates.Part(*part) for part in self._verification_parts(X, y, sample_weight)]
        if len(self.alpha_) != parts[0].X.shape[0]:
            raise BadInput(
                f"kkt needs the rows that the model was fitted to: there were {len(self.alpha_)}, "
                f"X has {parts[0].X.shape[0]}."
            )
        columns = self.alpha_.T if len(parts) > 1 else [self.alpha_]
        return certificates.kkt(zip(parts, columns, strict=True))

    def _two_class_loss(self) -> Loss:
        loss = _LOSSES[parameters.one_of("loss", self.loss, tuple(_LOSSES))]()
        scheme = parameters.one_of("multiclass", self.multiclass, self._schemes)
        if scheme == "crammer_singer" and self.loss != "hinge":
            raise BadInput(
                f"multiclass='crammer_singer' has a hinge of its own and takes no loss={self.loss!r}; "
                "use loss='hinge', or multiclass='ovr'."
            )
        hard = parameters.number("C", self.C) == np.inf
        return Hinge() if hard else loss  # the hard margin has no slack: both losses are the same

    def _own_answers(
        self, fits: list[Fit], rows: Any, known: labels.Labels, weight: FloatArray | None
    ) -> dict[str, Any]:
        recipe = fits[0].recipe
        weight = None if weight is None else np.asarray(weight)
        caps: Any = recipe.penalty.scale if weight is None else recipe.penalty.scale * weight
        if isinstance(recipe.loss, CoupledLoss):
            assert isinstance(fits[0].dual, Explicit)
            caps = caps if weight is None else caps[:, np.newaxis]
            alpha, codes = caps * fits[0].dual.u, np.asarray(known.codes)
        else:
            signs = [np.asarray(part.sigma) for part in subproblems(recipe.loss, known)]
            columns = [
                support.multipliers(fit, rows, sigma, weight)
                for fit, sigma in zip(fits, signs, strict=True)
            ]
            codes = signs[0] > 0.0 if len(signs) == 1 else np.argmax(signs, axis=0)
            alpha = columns[0] if len(columns) == 1 else np.column_stack(columns)
            if weight is not None and alpha.ndim == 2:
                caps = caps[:, np.newaxis]
            if recipe.loss.domain[1] == np.inf or recipe.penalty.C == np.inf:
                caps = np.inf
        used, free, bounded = support.support(alpha, caps)
        return {
            "alpha_": alpha,
            "support_": used,
            "free_support_": free,
            "bounded_support_": bounded,
            "_support_rows": support.support_rows(rows, used),
            "_support_codes": codes[used].astype(np.intp),
        }
