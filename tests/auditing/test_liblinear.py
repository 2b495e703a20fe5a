"""audit of LIBLINEAR: every solver type, bias, weights of classes, model objects and model files."""

import math

import numpy as np
import pytest
from liblinear.liblinearutil import load_model, save_model, train
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.preprocessing import StandardScaler

from linsep import audit
from linsep.errors import BadInput, Refused


def standardised(load):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X), y.astype(float)


CANCER, WINE, DIABETES = (
    standardised(load) for load in (load_breast_cancer, load_wine, load_diabetes)
)


def hinge(m):
    return np.maximum(0.0, 1.0 - m)


LOSSES = {
    **dict.fromkeys((0, 6, 7), lambda m: np.logaddexp(0.0, -m)),
    **dict.fromkeys((1, 2, 5), lambda m: hinge(m) ** 2),
    3: hinge,
}


def weights(model):
    """Rows (w, bias coefficient) of the model, one for each column that LIBLINEAR stores."""
    k = 1 if model.nr_class == 2 else model.nr_class
    rows = np.ctypeslib.as_array(model.w, (k * (model.nr_feature + (model.bias >= 0)),))
    return rows.reshape(-1, k).T.copy()


@pytest.mark.parametrize("bias", [-1, 1, 2.5])
@pytest.mark.parametrize("solver", LOSSES)
def test_two_classes(solver, bias):
    X, y = CANCER
    model = train(y, X, f"-s {solver} -c 0.3 -B {bias} -e 1e-6 -q")
    found = audit(model, X, y)
    (w,) = weights(model)
    wide = X if bias < 0 else np.column_stack([X, np.full(len(X), bias)])
    sign = np.where(y == model.label[0], 1.0, -1.0)
    penalty = np.abs(w).sum() if solver in (5, 6) else 0.5 * w @ w
    own = penalty + 0.3 * LOSSES[solver](sign * (wide @ w)).sum()
    assert math.isclose(found.objective, own, rel_tol=1e-9)
    limited = solver == 3  # stops after 1000 iterations
    assert found.relative_excess[1] < (2e-2 if limited else 1e-4) and found.changed <= 3
    assert str(found).startswith("LIBLINEAR L")


@pytest.mark.parametrize("solver", [0, 1, 2, 3, 5, 6, 7])
@pytest.mark.parametrize("options", ["", "-w1 4 -w2 0.3"])
def test_three_classes(solver, options):
    X, y = WINE
    model = train(y, X, f"-s {solver} -c 0.05 -B 1 -e 1e-7 -q {options}")
    given = {1: 4.0, 2: 0.3} if options else {}
    found = audit(model, X, y, class_weight=given or None)
    own = 0.0
    for label, w in zip(model.get_labels(), weights(model), strict=True):
        m = np.where(y == label, 1.0, -1.0) * (X @ w[:-1] + w[-1])
        each = np.where(y == label, given.get(label, 1.0), 1.0)
        penalty = np.abs(w).sum() if solver in (5, 6) else 0.5 * w @ w
        own += penalty + 0.05 * (each * LOSSES[solver](m)).sum()
    assert math.isclose(found.objective, own, rel_tol=1e-9)
    assert found.relative_excess[1] < 1e-4


def test_all_classes_together():
    X, y = WINE
    model = train(y, X, "-s 4 -c 0.05 -e 1e-8 -q")
    found = audit(model, X, y)
    assert found.relative_excess[1] < 1e-5 and "crammer singer" in found.problem
    weighted = train(y, X, "-s 4 -c 0.05 -e 1e-8 -B 1 -q -w0 5")
    assert audit(weighted, X, y, class_weight={0: 5.0}).relative_excess[1] < 1e-5
    two = train(CANCER[1], CANCER[0], "-s 4 -c 0.05 -e 1e-8 -q")
    assert audit(two, *CANCER).relative_excess[1] < 1e-5


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 20.0])
@pytest.mark.parametrize("solver", [11, 12, 13])
def test_regression(solver, epsilon):
    X, t = DIABETES
    model = train(t, X, f"-s {solver} -c 0.2 -p {epsilon} -B 10 -e 1e-7 -q")
    found = audit(model, X, t)
    (w,) = weights(model)
    r = np.maximum(0.0, np.abs(t - X @ w[:-1] - 10 * w[-1]) - epsilon)
    own = 0.5 * w @ w + 0.2 * (r.sum() if solver == 13 else (r**2).sum())
    assert math.isclose(found.objective, own, rel_tol=1e-9)
    assert found.relative_excess[1] < 1e-4 and found.changed is None


def test_a_free_bias():
    X, y = CANCER
    model = train(y, X, "-s 0 -c 0.3 -B 1 -R -e 1e-7 -q")
    found = audit(model, X, y)
    assert found.relative_excess[1] < 1e-6 and "free bias" in found.problem


@pytest.mark.parametrize("options", ["-s 0", "-s 3 -B 1", "-s 4", "-s 6 -B 2", "-s 13 -B 10"])
def test_files_need_the_parameters_that_they_do_not_keep(tmp_path, options):
    X, y = DIABETES if "13" in options else WINE
    model = train(y, X, f"{options} -c 0.2 -q")
    path = tmp_path / "model.txt"
    save_model(str(path), model)
    first = audit(model, X, y)
    for stored in (path, str(path), load_model(str(path))):
        with pytest.raises(BadInput, match="do not keep C: give C="):
            audit(stored, X, y)
        again = audit(stored, X, y, C=0.2, epsilon=0.1 if "13" in options else None)
        assert math.isclose(again.objective, first.objective, rel_tol=1e-12)
        assert np.allclose(again.minimum, first.minimum, rtol=1e-12)


def test_bad_calls(tmp_path):
    X, y = CANCER
    model = train(y, X, "-q")
    with pytest.raises(BadInput, match="has 30 features and X has 29 columns"):
        audit(model, X[:, 1:], y)
    with pytest.raises(BadInput, match="which is not a class of the model"):
        audit(model, X, y + 1)
    with pytest.raises(BadInput, match="knows its own loss"):
        audit(model, X, y, loss="hinge")
    with pytest.raises(BadInput, match=r"weights of classes \(-wi\)"):
        audit(train(y, X, "-q -w1 2"), X, y)
    with pytest.raises(Refused, match="ONECLASS_SVM"):
        audit(train(y, X, "-s 21 -q"), X, y, C=1.0)
    path = tmp_path / "model"
    path.write_text("solver_type L2R_LR\nnr_class 2\nlabel 1 0\nnr_feature 3\nbias 1\nw\n1 \n2 \n")
    with pytest.raises(BadInput, match="declares 4 rows of 1 coefficients"):
        audit(path, X, y, C=1.0)
    path.write_text("solver_type NONE\nnr_class 2\nlabel 1 0\nnr_feature 3\nbias 1\nw\n1 \n2 \n")
    with pytest.raises(BadInput, match="not a model file of LIBLINEAR"):
        audit(path, X, y, C=1.0)
