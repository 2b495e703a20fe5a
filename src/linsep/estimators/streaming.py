"""Online learning from batches of rows: ``partial_fit`` of ``SGDClassifier`` and the state it keeps between calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.arrays import FloatArray, IntArray
from linsep.data import Memory, readable
from linsep.data.entrance import inputs, labels
from linsep.data.entrance.finite import refuse_nonfinite
from linsep.errors import BadInput
from linsep.online import Descent, Plan, Scaling, StepSizes, choose_steps, make_steps

_ONLY_AFTER_FIT = (
    *("certificate_", "history_", "trace_", "n_passes_", "solver_", "_fits"),
    *("validation_scores_", "validation_rows_"),
)
_TRIAL = 1024


@dataclass(eq=False)
class Stream:
    """State of a stochastic descent: the iterate W (columns, d+1), and ``sums`` = sum_k k W_k over all iterates."""

    W: FloatArray
    sums: FloatArray | None
    steps: int
    seen: float  #: total weight of the rows so far
    step_sizes: StepSizes
    scaling: Scaling | None = None

    @classmethod
    def after_fit(cls, done: Descent, total: float) -> Stream:
        """Return the state at the end of ``fit``, from which ``partial_fit`` continues."""
        last = done.continuation, done.sums, done.n_steps
        return cls(*last, total, done.step_sizes, done.scaling)


def expected_classes(model: Any, classes: Any) -> npt.NDArray[Any]:
    """Return the classes of all batches; they are given in the first call and must not change later."""
    state = vars(model)
    if classes is None:
        if "classes_" not in state:
            raise BadInput(
                "classes must be passed on the first call to partial_fit: all labels that will ever occur, "
                "for instance np.unique(y) of the whole data."
            )
        found: npt.NDArray[Any] = model.classes_
        return found
    given = labels.encode(classes, len(np.atleast_1d(classes)), type(model).__name__).classes
    if "classes_" in state and not np.array_equal(given, model.classes_):
        raise BadInput(
            f"classes must be the same in every call to partial_fit: {model.classes_.tolist()} before, now "
            f"{given.tolist()}; start anew with a clone of the model."
        )
    return given


def validated_batch(
    model: Any, X: Any, y: Any, classes: Any, sample_weight: Any
) -> tuple[Any, labels.Labels, FloatArray | None, dict[str, Any]]:
    """Return checked rows, labels and weights of a batch, and the fitted attributes that the first batch determines."""
    if isinstance(model.class_weight, str):
        raise BadInput(
            "class_weight='balanced' needs all labels at once, which partial_fit never has; give a dict "
            "{class: weight}, for instance from sklearn.utils.class_weight.compute_class_weight."
        )
    owner = type(model).__name__
    first = "coef_" not in vars(model)
    expected = expected_classes(model, classes)
    if first:
        rows, names = inputs.rows(X, owner)
        settled: dict[str, Any] = {"n_features_in_": rows.shape[1], "classes_": expected}
        if names is not None:
            settled["feature_names_in_"] = names
    else:
        rows, names, settled = inputs.validate_new_rows(model, X), None, {}
    rows = readable(rows)
    refuse_nonfinite(rows, names)
    known = labels.encode_as(expected, y, rows.shape[0], owner)
    weight = inputs.weights(sample_weight, rows.shape[0])
    if model.class_weight is not None:
        factors = labels.factors(known.classes, model.class_weight)[known.codes.astype(np.intp)]
        weight = factors if weight is None else factors * weight
    return rows, known, weight, settled


def advance(model: Any, plan: Plan, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
    """Take stochastic steps at the rows of one batch, in their order, and store the new state in the model."""
    rows, known, weight, settled = validated_batch(model, X, y, classes, sample_weight)
    k, n = len(known.classes), rows.shape[0]
    codes = np.ascontiguousarray(known.codes, dtype=np.int64)
    stream: Stream | None = None if settled else vars(model).get("_stream")
    seen = (0.0 if stream is None else stream.seen) + float(n if weight is None else weight.sum())
    lam = plan.lam(seen)
    if stream is None:
        W = np.zeros((1 if k == 2 else k, rows.shape[1] + 1))
        tried = slice(0, _TRIAL)
        scaling = None
        if plan.standardise:
            scaling = Scaling.of(Memory(rows, weight=weight), plan.fit_intercept, lam)
        chosen = choose_steps(
            *(plan, rows[tried], codes[tried], k),
            lam=lam,
            per_epoch=_TRIAL,
            start=W,
            scaling=scaling,
        )
        stream = Stream(W, None, 0, 0.0, chosen, scaling)
    W, sums = stream.W.copy(), None if stream.sums is None else stream.sums.copy()
    if plan.keep == "average" and sums is None:
        sums = W * (0.5 * stream.steps * (stream.steps + 1.0))
    done = _run_steps(plan, rows, codes, k, W, sums, weight=weight, lam=lam, stream=stream)
    if not np.isfinite(W).all():
        raise BadInput(
            "the steps were too large and the coefficients overflowed; the model is as it was before this "
            f"call. Give a smaller eta0 (the first step was {float(stream.step_sizes.eta0.max()):g}), or "
            "set standardise=True."
        )
    shown = W if sums is None else sums / (0.5 * done * (done + 1.0))
    state = vars(model)
    for name in _ONLY_AFTER_FIT:
        state.pop(name, None)
    state.update(
        settled,
        coef_=np.ascontiguousarray(shown[:, :-1]),
        intercept_=shown[:, -1].copy(),
        n_iter_=1,
        n_steps_=done,
        eta0_=stream.step_sizes.eta0,
        _stream=Stream(W, sums, done, seen, stream.step_sizes, stream.scaling),
    )


def _run_steps(
    plan: Plan,
    X: Any,
    codes: IntArray,
    k: int,
    W: FloatArray,
    sums: FloatArray | None,
    *,
    weight: FloatArray | None,
    lam: float,
    stream: Stream,
) -> int:
    """Update W and ``sums`` in place: full mini-batches, then a smaller last one. Return the total number of steps."""
    data = Memory(X, labels=codes)
    assert data.whole is not None
    done, n, at = stream.steps, data.n, 0
    batch = n if plan.batch is None else min(plan.batch, n)
    for size in (batch, n % batch):
        if size == 0 or at == n:
            continue
        steps = make_steps(
            stream.scaling,
            *(plan.loss, data.X, data.whole.rows, codes, k),
            weight=weight,
            lam=lam,
            batch=size,
            total=float(size),
            fit_intercept=plan.fit_intercept,
        )
        end = n // batch * batch if size == batch and at == 0 else n
        while at < end:
            now = min(steps.in_a_call, (end - at) // size)
            steps.run(stream.step_sizes, done, np.arange(at, at + now * size), W, sums)
            done, at = done + now, at + now * size
    return done
