"""Base classes of the linear classifiers: labels to subproblems, and scores to labels.

Two classes give one subproblem with signs sigma_i = -1 or +1. Three or more classes give either one problem that
couples them (multinomial, Crammer-Singer) or one problem for each class against the others (one-vs-rest).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from linsep import data
from linsep.arrays import FloatArray
from linsep.data import Location, location_of
from linsep.data.cluster import predict_lazily
from linsep.data.entrance import inputs, labels, partitions
from linsep.errors import BadInput
from linsep.estimators import fitting, parameters
from linsep.estimators.fitting import Subproblem
from linsep.estimators.keywords import ExplainsParameters
from linsep.estimators.scoring import dense_coef, scores
from linsep.losses import CoupledLoss, CrammerSinger, Loss, Multinomial
from linsep.notebook import ShowsCertificate
from linsep.solvers.grid.problem import GridProblem
from linsep.train import Fit

Scored = TypeVar("Scored", bound="ByScores")
Model = TypeVar("Model", bound="Classification")

#: Schemes that solve one problem for all classes together.
_COUPLED: dict[str, type[CoupledLoss]] = {
    "multinomial": Multinomial,
    "crammer_singer": CrammerSinger,
}


class ByScores(ExplainsParameters, ShowsCertificate, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifier that predicts classes from linear scores."""

    def decision_function(self, X: Any) -> FloatArray:
        """Return the scores x.w + b: (n,) for two classes, where positive means ``classes_[1]``; (n, k) for more."""
        if location_of(X) is Location.CLUSTER:
            return predict_lazily(self, "decision_function", X)  # type: ignore[no-any-return]
        Z = self._linear_scores(X)
        return Z[:, 0] if Z.shape[1] == 1 else Z

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict the class of each row; with two classes, a score of exactly 0 means ``classes_[1]``."""
        if location_of(X) is Location.CLUSTER:
            return predict_lazily(self, "predict", X)  # type: ignore[no-any-return]
        Z = self._linear_scores(X)
        at = (Z[:, 0] >= 0).view(np.int8) if Z.shape[1] == 1 else Z.argmax(axis=1)
        predicted: npt.NDArray[Any] = self.classes_.take(at)
        return predicted

    def sparsify(self: Scored) -> Scored:
        """Convert ``coef_`` to a CSR matrix, which is smaller if most coefficients are 0; ``densify`` converts it back.

        Returns
        -------
        self
        """
        check_is_fitted(self, "coef_")
        self.__dict__["coef_"] = sp.csr_matrix(dense_coef(self))
        return self

    def densify(self: Scored) -> Scored:
        """Convert ``coef_`` back to an array, the type that ``fit`` stores.

        Returns
        -------
        self
        """
        check_is_fitted(self, "coef_")
        self.__dict__["coef_"] = dense_coef(self)
        return self

    def _linear_scores(self, X: Any) -> FloatArray:
        return scores(self, X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class Classification(ByScores):
    """Base of the linear classifiers; subclasses define the loss and the multiclass schemes."""

    _schemes: ClassVar[tuple[str, ...]]

    @abstractmethod
    def _two_class_loss(self) -> Loss:
        """Return the loss of the margin for two classes, from the parameters."""

    def _loss_for(self, k: int) -> Loss | CoupledLoss:
        """Return the loss that the parameters specify for k classes."""
        loss = self._two_class_loss()
        scheme = parameters.one_of("multiclass", self.multiclass, self._schemes)
        return _COUPLED[scheme](k) if scheme in _COUPLED and k > 2 else loss

    def _current_loss(self) -> Loss | CoupledLoss:
        """Return the loss that the current parameters specify, for the classes of the fit."""
        return self._loss_for(len(self.classes_))

    def fit(
        self: Model, X: Any, y: Any = None, sample_weight: Any = None, *, offset: Any = None
    ) -> Model:
        """Minimise the objective and certify it.

        Parameters
        ----------
        X : array, sparse matrix, dataframe or scan (n, d)
            Finite numbers. Float arrays in C order and CSR matrices are not copied. A scan (``linsep.scan``)
            is read from disk in every pass.
        y : array (n,)
            Class labels: strings, integers or booleans. Optional if X is a scan with its own target.
        sample_weight : array (n,), optional
            Weight of each row, >= 0: weight 2 is equivalent to repeating the row, weight 0 to omitting it.
        offset : array (n,), optional
            Known part of the score of each row, for two classes: the score is x.w + b + offset. It is part of the
            certified problem, so pass it to ``verify`` too. Predictions do not include it: add it to
            ``decision_function(X)``.

        Returns
        -------
        self
        """
        owner = type(self).__name__
        recipe = parameters.recipe(self, self._loss_for(2))
        opened = data.open(X, y, sample_weight, owner, prefetch=partial(fitting.first_rows, recipe))
        rows, names, known = opened.rows, opened.names, opened.labels()
        weight = opened.class_weights(known, self.class_weight)
        recipe = parameters.for_features(self, recipe, rows.shape[1], names)
        k = len(known.classes)
        if k > 2:
            recipe = replace(recipe, loss=self._loss_for(k))
        count = 1 if k == 2 or isinstance(recipe.loss, CoupledLoss) else k
        parts = self._subproblems(recipe.loss, known, opened, offset)
        start = self._start(known.classes, rows.shape[1])
        fits = fitting.solve(recipe, parts, count, rows, names, weight, start)
        own = self._own_answers(fits, rows, known, weight)
        settled = {"classes_": known.classes, "_class_weight": self.class_weight}
        settled["_has_offset"] = offset is not None
        fitting.store(self, fits, names, **settled, **own, **opened.fitted)
        return self

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the weighted accuracy of the predictions. A scan may contain y and the weights."""
        if location_of(X) is Location.CLUSTER:
            return partitions.accuracy(self, X, y, sample_weight)
        if location_of(X) is Location.DISK:
            y, sample_weight = X.given(y, sample_weight, type(self).__name__)
        return float(super().score(X, y, sample_weight))

    def _own_answers(
        self, fits: list[Fit], rows: Any, known: labels.Labels, weight: FloatArray | None
    ) -> dict[str, Any]:
        """Return fitted attributes beyond those of every linear classifier."""
        return {}

    def _read_targets(self, X: Any, y: Any) -> tuple[Any, Any, npt.NDArray[Any]]:
        """Return rows, column names and labels, read as ``fit`` reads them."""
        owner = type(self).__name__
        rows, names = inputs.rows_or_scan(X, owner)
        known = labels.encode(y, rows.shape[0], owner)
        return rows, names, known.classes[known.codes.astype(np.intp)]

    def _grid_problem(self, X: Any, y: Any, weight: FloatArray | None) -> GridProblem | None:
        """Return the problem that all models of a grid of C share, or None if each must be fitted separately.

        That is so for three or more classes, penalties that differ between features, and "balanced" class weights,
        which depend on the training rows and so differ from fold to fold.
        """
        owner = type(self).__name__
        if isinstance(self.class_weight, str) or parameters.has_feature_penalties(self):
            return None
        recipe = parameters.recipe(self, self._two_class_loss())
        rows, _ = inputs.rows_or_scan(X, owner)
        known = labels.encode(y, rows.shape[0], owner)
        if len(known.classes) > 2:
            return None
        weight = labels.combined_weights(
            known, inputs.weights(weight, rows.shape[0]), self.class_weight, owner
        )
        classes = {"classes_": known.classes}
        return GridProblem(recipe, rows, known.signs(), None, weight, classes)

    def _scoring_model(self, problem: GridProblem, fit: Fit) -> Classification:
        """Return a fitted model whose only feature is the score of another model: w = 1, b = 0."""
        judge: Classification = clone(self)
        unit = replace(fit, W=np.array([[1.0], [0.0]]))
        fitting.store(judge, [unit], None, **problem.attributes)
        return judge

    def _start(self, classes: npt.NDArray[Any], d: int) -> FloatArray | None:
        if not self.warm_start or "classes_" not in vars(self):
            return None
        if not np.array_equal(self.classes_, classes):
            return None
        return fitting.warm_start_matrix(self, (d + 1, 1 if len(classes) == 2 else len(classes)))

    def _subproblems(
        self, loss: Loss | CoupledLoss, known: Any, opened: data.Opened, offset: Any
    ) -> Iterator[Subproblem]:
        """Return the subproblems of the labels; with two classes, the margins may have offsets."""
        if offset is None:
            return subproblems(loss, known)
        fitting.refuse_offset(self, opened, len(known.classes))
        if isinstance(loss, Loss) and loss.soft_margin and math.isinf(self.C):
            raise BadInput(
                "offset has no meaning for the hard margin (hinge losses with C=inf): use a finite C."
            )
        sigma = known.signs()
        o = inputs.offsets(offset, opened.rows.shape[0])
        return iter([Subproblem(loss, sigma=sigma, offset=sigma * o)])

    def _verification_parts(
        self, X: Any, y: Any, sample_weight: Any, offset: Any = None
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the fields of a ``Part`` for each subproblem."""
        owner = type(self).__name__
        fitting.need_offset(self, offset)
        opened = data.open(X, y, sample_weight, owner, model=self)
        known = opened.labels(self.classes_)
        weight = opened.class_weights(known, self._class_weight)
        parts = self._subproblems(self._fits[0].recipe.loss, known, opened, offset)
        yield from fitting.verification_parts(self, parts, opened.rows, weight)


def subproblems(loss: Loss | CoupledLoss, known: Any) -> Iterator[Subproblem]:
    """Yield one subproblem for all classes, or one for each class against the others."""
    if isinstance(loss, CoupledLoss):
        yield Subproblem(loss, labels=known.codes)
    elif len(known.classes) == 2:
        yield Subproblem(loss, sigma=known.signs())
    else:
        for c, label in enumerate(known.classes.tolist()):
            title = f"class {label!r} against the others"
            yield Subproblem(loss, sigma=known.signs(c), title=title)
