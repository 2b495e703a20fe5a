"""Evaluation of the rows: predicted class, margin and loss of each, computed block by block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.arrays import BoolArray, FloatArray, IntArray
from linsep.errors import BadInput
from linsep.losses import CoupledLoss, Loss, zero_margin
from linsep.report.columns import Columns
from linsep.report.subject import Rows, Subject
from linsep.tuning import Tuning

_BLOCK = 1 << 17  # number of scores computed at a time
UNKNOWN = -1  # code of a label that is not a class of the model

Codes = npt.NDArray[np.signedinteger[Any]]  # int8 up to 128 classes


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Predictions of the model for n rows with known targets."""

    rows: Rows
    held_out: bool
    truth: Codes  # position in classes, -1 if the label is not a class; empty: regression
    answer: Codes
    target: FloatArray  # of a regression, else empty
    score: FloatArray  # of the second class, of the predicted class, or the prediction
    own_margin: FloatArray | None  # z_y minus the largest other score; None for two classes
    loss: FloatArray | None
    weight: FloatArray

    @property
    def margin(self) -> FloatArray:
        """Score times the sign of the class, lead over the best other class, or residual."""
        return (
            self.own_margin if self.own_margin is not None else _two_margins(self.score, self.truth)
        )

    @property
    def wrong(self) -> BoolArray:
        """Mask of the rows whose class is not the predicted one."""
        return np.asarray(self.truth != self.answer)

    @property
    def error(self) -> float:
        """Weighted fraction of misclassified rows."""
        return float(self.weight @ self.wrong) / float(self.weight.sum())

    @property
    def unknown(self) -> int:
        """Number of rows whose label is not a class of the model."""
        return int((self.truth == UNKNOWN).sum()) if len(self.truth) else 0


@dataclass(frozen=True, eq=False)
class Content:
    """What the sections of a report describe."""

    subject: Subject
    evaluated: Evaluation
    columns: Columns
    tuning: Tuning | None
    source: str | None  # where the rows came from, as the user says


def evaluate(subject: Subject, rows: Rows) -> Evaluation:
    """Compute scores, predictions, margins and losses of all rows."""
    n, k = len(rows), len(subject.coef)
    truth, target = _truth(subject, rows)
    answer = np.zeros_like(truth)
    score = np.empty(n)
    margin = np.empty(n) if subject.classes is None or k > 1 else None
    loss = None if subject.loss is None else np.empty(n)
    step = max(1, min(rows.step, _BLOCK // k))
    for low in range(0, n, step):
        here = slice(low, min(n, low + step))
        Z = scores(subject, rows, here)
        if subject.classes is None:
            score[here] = Z[:, 0]
            some = target[here] - Z[:, 0]
        else:
            answer[here], score[here], some = _classify(Z, truth[here])
        if margin is not None:
            margin[here] = some
        if loss is not None:
            loss[here] = _losses(subject, Z, truth[here], some)
    if not np.isfinite(score).all():
        row = int(np.argmin(np.isfinite(score)))
        raise BadInput(
            f"The score of row {row} (counting from 0) is not finite: its numbers are too large."
        )
    weight = np.broadcast_to(1.0, n) if rows.weight is None else rows.weight
    held_out = rows is subject.test
    return Evaluation(rows, held_out, truth, answer, target, score, margin, loss, weight)


def scores(subject: Subject, rows: Rows, here: slice | IntArray) -> FloatArray:
    """Compute Z = X W + b of some rows, (n, k); many rows given by index are read in pieces."""
    if not isinstance(here, slice) and len(here) > rows.step:
        pieces = (here[low : low + rows.step] for low in range(0, len(here), rows.step))
        return np.concatenate([scores(subject, rows, piece) for piece in pieces])
    X = rows.X[here]
    with np.errstate(over="ignore", invalid="ignore"):
        Z = np.asarray(X @ subject.coef.T, dtype=np.float64)
    return Z + subject.intercept


def _truth(subject: Subject, rows: Rows) -> tuple[Codes, FloatArray]:
    """Return labels as positions in the classes, or the targets of a regression."""
    if subject.classes is None:
        try:
            target = rows.y.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise BadInput(f"The targets of a regression must be numbers: {error}") from error
        if not np.isfinite(target).all():
            raise BadInput("The targets of a regression must be finite.")
        return np.zeros(0, dtype=np.int8), target
    place = {label: code for code, label in enumerate(subject.classes.tolist())}
    labels, inverse = rows.labels
    smallest = np.min_scalar_type(-len(place))
    codes = np.array([place.get(label, UNKNOWN) for label in labels], dtype=smallest)
    truth = codes[inverse]
    if (truth == UNKNOWN).all():
        known = ", ".join(repr(label) for label in subject.classes[:5].tolist())
        raise BadInput(f"No row has a label the model knows; it knows {known}.")
    return truth, np.zeros(0)


def _classify(Z: FloatArray, truth: Codes) -> tuple[Codes, FloatArray, FloatArray]:
    """Return the predicted class, its score (for two classes, that of the second), and the margin."""
    if Z.shape[1] == 1:
        z = Z[:, 0]
        return (z >= 0).astype(truth.dtype), z, _two_margins(z, truth)
    rows = np.arange(len(Z))
    answer = Z.argmax(axis=1).astype(truth.dtype)
    own = Z[rows, truth]
    others = Z.copy()
    others[rows, truth] = -np.inf
    return answer, Z[rows, answer], own - others.max(axis=1)


def _two_margins(z: FloatArray, truth: Codes) -> FloatArray:
    """Margins y z for two classes."""
    return np.where(truth == 1, z, -z)


def _losses(subject: Subject, Z: FloatArray, truth: Codes, margin: FloatArray) -> FloatArray:
    """Loss of each row in the objective; infinite where the label is unknown."""
    loss = subject.loss
    if isinstance(loss, CoupledLoss):
        values = loss.value(Z, np.maximum(truth, 0))
    elif subject.classes is None:
        assert isinstance(loss, Loss)
        values = loss.value(zero_margin(loss) - margin)  # centre - residual
    elif Z.shape[1] == 1:
        assert isinstance(loss, Loss)
        values = loss.value(margin)
    else:
        assert isinstance(loss, Loss)
        sign = -np.ones(Z.shape)
        sign[np.arange(len(Z)), np.maximum(truth, 0)] = 1.0
        values = loss.value(sign * Z).sum(axis=1)
    return np.asarray(np.where(truth == UNKNOWN, np.inf, values) if len(truth) else values)
