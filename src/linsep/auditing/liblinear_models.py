"""Read the problems that LIBLINEAR solves (Fan et al. 2008) from its model objects and model files.

All of them are penalty + C sum of losses. With a bias B >= 0 every row has an additional feature of value B, penalised
like the others unless the model was trained with -R.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linsep import losses
from linsep.arrays import FloatArray, IntArray
from linsep.auditing.objectives import Given, Objective, Part, split
from linsep.auditing.plain import check_labels
from linsep.auditing.subject import Stated, Subject
from linsep.errors import BadInput, Refused
from linsep.losses import CoupledLoss, CrammerSinger, Loss
from linsep.sklearn_objectives import one_vs_rest

#: Names in model files, by solver number.
SOLVERS = {
    0: "L2R_LR",
    1: "L2R_L2LOSS_SVC_DUAL",
    2: "L2R_L2LOSS_SVC",
    3: "L2R_L1LOSS_SVC_DUAL",
    4: "MCSVM_CS",
    5: "L1R_L2LOSS_SVC",
    6: "L1R_LR",
    7: "L2R_LR_DUAL",
    11: "L2R_L2LOSS_SVR",
    12: "L2R_L2LOSS_SVR_DUAL",
    13: "L2R_L1LOSS_SVR_DUAL",
    21: "ONECLASS_SVM",
}
_NUMBERS = {name: number for number, name in SOLVERS.items()}
_CLASSIFIERS: dict[int, Loss] = {
    **dict.fromkeys((0, 6, 7), losses.Logistic()),
    **dict.fromkeys((1, 2, 5), losses.SquaredHinge()),
    3: losses.Hinge(),
}
_REGRESSORS: dict[int, type[losses.EpsilonInsensitive] | type[losses.SquaredEpsilonInsensitive]] = {
    **dict.fromkeys((11, 12), losses.SquaredEpsilonInsensitive),
    13: losses.EpsilonInsensitive,
}
_LASSO = (5, 6)
_JOINT = 4


@dataclass(frozen=True, eq=False)
class LiblinearModel:
    """A LIBLINEAR model; values that its file does not store are None."""

    solver: int
    labels: IntArray  #: in LIBLINEAR's order: with two classes, a positive score means the first
    bias: float
    W: FloatArray  #: (d, k), or (d + 1, k) with the coefficients of the bias in the last row
    C: float | None = None
    epsilon: float | None = None
    free_bias: bool = False
    weighted: bool = False  #: trained with -wi

    @property
    def n_features(self) -> int:
        """Number of features without the bias."""
        return len(self.W) - int(self.bias >= 0.0)


def is_liblinear(model: Any) -> bool:
    """Return whether a model is an object of LIBLINEAR's Python package, or was read from a LIBLINEAR file."""
    kind = type(model)
    return isinstance(model, LiblinearModel) or (
        kind.__module__.split(".")[0] == "liblinear" and hasattr(model, "nr_class")
    )


def from_object(model: Any) -> LiblinearModel:
    """Copy a ``liblinear.liblinear.model``."""
    solver, k, bias = int(model.param.solver_type), int(model.nr_class), float(model.bias)
    _check_solver(solver)
    columns = 1 if (k == 2 and solver != _JOINT) or solver in _REGRESSORS else k
    d = int(model.nr_feature) + int(bias >= 0.0)
    W = np.ctypeslib.as_array(model.w, shape=(d * columns,)).reshape(d, columns).copy()
    labels = np.array([] if solver in _REGRESSORS else model.label[:k], dtype=np.int64)
    if not model.param.weight_label:  # loaded from a file, which stores no parameters
        return LiblinearModel(solver, labels, bias, W)
    return LiblinearModel(
        *(solver, labels, bias, W, float(model.param.C), float(model.param.p)),
        free_bias=bias >= 0.0 and not model.param.regularize_bias,
        weighted=model.param.nr_weight > 0,
    )


def _check_solver(solver: int) -> None:
    if solver not in _CLASSIFIERS and solver not in _REGRESSORS and solver != _JOINT:
        name = SOLVERS.get(solver, f"solver {solver}")
        raise Refused(f"linsep.audit takes classifiers and regressors of LIBLINEAR, got {name}.")


def parse(text: str, source: str) -> LiblinearModel:
    """Parse a model file written by LIBLINEAR's train."""
    head, _, body = text.partition("\nw\n")
    facts = dict(line.split(maxsplit=1) for line in head.splitlines() if " " in line.strip())
    try:
        solver = _NUMBERS[facts["solver_type"].strip()]
        k, d, bias = int(facts["nr_class"]), int(facts["nr_feature"]), float(facts["bias"])
        labels = np.array(facts.get("label", "").split(), dtype=np.int64)
        W = np.array([line.split() for line in body.splitlines() if line.strip()], dtype=np.float64)
    except (KeyError, ValueError) as error:
        raise BadInput(f"{source} is not a model file of LIBLINEAR: {error}.") from error
    _check_solver(solver)
    columns = 1 if (k == 2 and solver != _JOINT) or solver in _REGRESSORS else k
    if W.shape != (d + int(bias >= 0.0), columns) or not np.isfinite(W).all():
        raise BadInput(
            f"{source} declares {d + int(bias >= 0.0)} rows of {columns} coefficients and holds {W.shape}."
        )
    return LiblinearModel(solver, labels, bias, W)


def read(model: Any, X: Any, given: Given, stated: Stated) -> Subject:
    """Return the problem of a LIBLINEAR model, completed by the caller's statements."""
    found = model if isinstance(model, LiblinearModel) else from_object(model)
    name = f"LIBLINEAR {SOLVERS[found.solver]}"
    stated.refuse_all_but(("C", "epsilon", "class_weight"), name)
    if X.shape[1] != found.n_features:
        raise BadInput(f"{name} has {found.n_features} features and X has {X.shape[1]} columns.")
    C = _require_parameter("C", stated.C, found.C, name)
    loss: Loss | CoupledLoss
    parts: tuple[Part, ...]
    if found.solver in _REGRESSORS:
        epsilon = _require_parameter("epsilon", stated.epsilon, found.epsilon, name)
        loss = _REGRESSORS[found.solver](epsilon).for_targets()
        parts = (Part(target=given.y.astype(float), weight=given.weight),)
    elif found.solver == _JOINT:
        loss, parts = CrammerSinger(len(found.labels)), (_joint(found, given, stated),)
    else:
        loss, parts = _CLASSIFIERS[found.solver], _one_vs_rest_parts(found, given, stated)
    ratio = 1.0 if found.solver in _LASSO else 0.0
    fits = found.bias > 0.0  # a bias feature of value 0 has no effect
    penalised = fits and not found.free_bias
    end = "no bias" if not fits else "penalised bias" if penalised else "free bias"
    text = f"{'|w|_1' if ratio else '1/2 |w|^2'} + C sum {loss.name.replace('_', ' ')}, {end}"
    problem = Objective(
        *(text, loss, C, parts, ratio),
        fit_intercept=fits,
        intercept_scaling=found.bias if penalised else 0.0,
    )
    rows = _with_intercept(found)
    return Subject(name, problem, split(problem, rows[:, :-1], rows[:, -1]), X, given)


def _require_parameter(what: str, stated: float | None, known: float | None, name: str) -> float:
    """Return a parameter that the caller states, or that a model trained in this process still has."""
    if stated is None and known is None:
        raise BadInput(f"Model files of LIBLINEAR do not keep {what}: give {what}= for {name}.")
    return float(known if stated is None else stated)  # type: ignore[arg-type]


def _with_intercept(model: LiblinearModel) -> FloatArray:
    """Rows (w, b): the intercept is the coefficient of the bias feature times its value."""
    if model.bias < 0.0:
        return np.column_stack([model.W.T, np.zeros(model.W.shape[1])])
    return np.column_stack([model.W[:-1].T, model.bias * model.W[-1]])


def _factors(model: LiblinearModel, stated: Stated) -> FloatArray:
    """Class weights in the order of the labels."""
    if stated.class_weight is None:
        if model.weighted:
            raise BadInput(
                "The model was trained with weights of classes (-wi), which it does not keep: give class_weight=, a "
                "dictionary {label: weight}."
            )
        return np.ones(len(model.labels))
    if not isinstance(stated.class_weight, dict):
        raise BadInput("class_weight must be a dictionary {label: weight} for LIBLINEAR.")
    return np.array([float(stated.class_weight.get(int(each), 1.0)) for each in model.labels])


def _one_vs_rest_parts(model: LiblinearModel, given: Given, stated: Stated) -> tuple[Part, ...]:
    """One-vs-rest subproblems; with two classes, a positive score means the first."""
    check_labels(np.sort(model.labels), given.y)
    factors, labels = _factors(model, stated), model.labels
    if len(labels) == 2:
        factors, labels = factors[::-1], labels[::-1]
    return one_vs_rest(labels, given, None if (factors == 1.0).all() else factors)


def _joint(model: LiblinearModel, given: Given, stated: Stated) -> Part:
    """Joint subproblem of all classes, numbered in LIBLINEAR's order."""
    check_labels(np.sort(model.labels), given.y)
    place = {int(label): code for code, label in enumerate(model.labels)}
    codes = np.array([place[int(label)] for label in given.y], dtype=np.int64)
    each = _factors(model, stated)[codes]
    weight = given.weight
    if (each != 1.0).any():
        weight = each if weight is None else each * weight
    return Part(labels=codes, weight=weight)
