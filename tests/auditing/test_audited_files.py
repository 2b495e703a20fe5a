"""audit of ONNX and skops files; pickles are refused."""

import json
import math
import pickle
import warnings

import joblib
import numpy as np
import onnx
import pandas as pd
import pytest
import skops.io
from onnx import TensorProto, helper
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

import linsep
from linsep import audit
from linsep.cli import main
from linsep.errors import BadInput, Refused

CANCER, WINE, DIABETES = (
    load(return_X_y=True) for load in (load_breast_cancer, load_wine, load_diabetes)
)


def fitted(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def stored(path, *nodes, d=0, constants=(), domain="ai.onnx.ml", inputs=None):
    """An ONNX file with an input X (n, d), or ``inputs`` (n, 1) of these types, and the output of the last node."""
    columns = {"X": (TensorProto.FLOAT, d)} if inputs is None else inputs
    graph = helper.make_graph(
        list(nodes),
        "model",
        [
            helper.make_tensor_value_info(name, kind, [None, width])
            for name, (kind, width) in columns.items()
        ],
        [helper.make_tensor_value_info(nodes[-1].output[-1], TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in constants],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(domain, 3)]
    path.write_bytes(
        helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    )
    return path


def node(kind, inputs, outputs, **attributes):
    ml = kind.startswith(
        ("Linear", "Scaler", "Normalizer", "Imputer", "OneHot", "Feature", "Array")
    )
    return helper.make_node(kind, inputs, outputs, domain="ai.onnx.ml" if ml else "", **attributes)


def test_skops_files_know_their_objective(tmp_path):
    model = fitted(make_pipeline(StandardScaler(), LogisticRegression(C=0.3)), *CANCER)
    skops.io.dump(model, tmp_path / "model.skops")
    found = audit(tmp_path / "model.skops", *CANCER)
    assert found.to_dict() == audit(model, *CANCER).to_dict()


def test_a_linear_classifier_behind_a_scaler_as_skl2onnx_writes_it(tmp_path):
    X, y = CANCER
    scaler = StandardScaler().fit(X)
    model = fitted(LogisticRegression(C=0.3), scaler.transform(X), y)
    w, b = model.coef_[0].astype(np.float32), np.float32(model.intercept_[0])
    offset, scale = scaler.mean_.astype(np.float32), (1 / scaler.scale_).astype(np.float32)
    path = stored(
        tmp_path / "model.onnx",
        node("Scaler", ["X"], ["scaled"], offset=offset, scale=scale),
        node(
            "LinearClassifier",
            ["scaled"],
            ["label", "score"],
            coefficients=np.concatenate([-w, w]),
            intercepts=[-b, b],
            classlabels_ints=[0, 1],
            post_transform="LOGISTIC",
        ),
        d=30,
    )
    found = audit(path, X, y, C=0.3)
    Z = (X - offset.astype(float)) * scale.astype(float)
    plain = audit((w.astype(float), float(b)), Z, y, C=0.3)
    assert math.isclose(found.objective, plain.objective, rel_tol=1e-12)
    assert found.model_name == "ONNX model" and found.relative_excess[1] < 1e-4
    with pytest.raises(BadInput, match="takes 30 columns, and X has 29"):
        audit(path, X[:, 1:], y, C=0.3)


def test_softmax_strings_and_classes_in_any_order(tmp_path):
    X, y = StandardScaler().fit_transform(WINE[0]), np.array(["b", "a", "c"])[WINE[1]]
    model = fitted(LogisticRegression(C=0.1, tol=1e-10), X, y)
    order = [2, 0, 1]
    path = stored(
        tmp_path / "model.onnx",
        node(
            "LinearClassifier",
            ["X"],
            ["label", "score"],
            coefficients=model.coef_[order].ravel(),
            intercepts=model.intercept_[order],
            classlabels_strings=list(model.classes_[order]),
            post_transform="SOFTMAX",
        ),
        d=13,
    )
    found = audit(path, X, y, C=0.1)
    assert math.isclose(found.objective, audit(model, X, y).objective, rel_tol=1e-6)
    assert found.relative_excess[1] < 1e-6


@pytest.mark.parametrize("classes", [2, 3])
def test_our_own_export(tmp_path, classes):
    X, y = WINE
    X, y = X[y < classes], y[y < classes]
    X = StandardScaler().fit_transform(X)
    model = linsep.LogisticRegression(C=0.5).fit(X, y)
    path = tmp_path / "model.onnx"
    path.write_bytes(linsep.export.onnx(model))
    found = audit(path, X, y, C=0.5)
    assert found.optimal
    assert math.isclose(found.objective, model.certificate_.primal, rel_tol=1e-9)


TABLE = pd.DataFrame(
    {
        "bill length": np.random.default_rng(0).normal(44.0, 5.0, 90),
        "mass": np.random.default_rng(1).normal(4200.0, 800.0, 90),
        "island": np.random.default_rng(2).choice(["Biscoe", "Dream", "Torgersen"], 90),
    }
)
SEX = np.where(TABLE.mass + 200.0 * (TABLE.island == "Dream") > 4300.0, "male", "female")


def column_graph(path):
    """The graph that skl2onnx writes for a column transformer fitted to a data frame, and the pipeline."""
    steps = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["bill length", "mass"]),
        (OneHotEncoder(), ["island"]),
    )
    model = fitted(make_pipeline(steps, LogisticRegression(C=0.5, tol=1e-9)), TABLE, SEX)
    fill, scaler = steps.transformers_[0][1]
    w, b = model[-1].coef_[0], model[-1].intercept_[0]
    nodes = [
        node("FeatureVectorizer", ["bill_length", "mass"], ["joined"], inputdimensions=[1, 1]),
        node("CastLike", ["joined", "mass"], ["numbers"]),
        node("Imputer", ["numbers"], ["filled"], imputed_value_floats=fill.statistics_.tolist()),
        node("Sub", ["filled", "mean"], ["centred"]),
        node("Div", ["centred", "scale"], ["scaled"]),
        node("OneHotEncoder", ["island"], ["one"], cats_strings=sorted(set(TABLE.island)), zeros=0),
        node("Reshape", ["one", "flat"], ["indicators"]),
        node("Cast", ["indicators"], ["doubles"], to=TensorProto.DOUBLE),
        node("Concat", ["scaled", "doubles"], ["all"], axis=1),
        node("MatMul", ["all", "coef"], ["product"]),
        node("Add", ["product", "intercept"], ["scores"]),
        node("ArgMax", ["scores"], ["best"], axis=1),
        node("ArrayFeatureExtractor", ["classes", "best"], ["label"]),
    ]
    constants = {
        "mean": scaler.mean_,
        "scale": scaler.scale_,
        "flat": np.array([-1, 3]),
        "coef": np.column_stack([-w, w]),
        "intercept": np.array([[-b, b]]),
        "classes": np.array(["female", "male"], dtype=object),
    }
    kinds = {
        "bill_length": (TensorProto.DOUBLE, 1),
        "mass": (TensorProto.DOUBLE, 1),
        "island": (TensorProto.STRING, 1),
    }
    return model, stored(path, *nodes, constants=constants.items(), inputs=kinds)


def test_a_graph_with_one_input_for_each_column(tmp_path):
    """Rows with text are encoded as the graph says; columns are found by name, or by position in an array."""
    model, path = column_graph(tmp_path / "model.onnx")
    expected = audit(model, TABLE, SEX)
    for rows in (TABLE, TABLE[["island", "mass", "bill length"]], TABLE.to_numpy(object)):
        found = audit(path, rows, SEX, C=0.5)
        assert found.optimal and math.isclose(found.objective, expected.objective, rel_tol=1e-12)
    with pytest.raises(BadInput, match="X lacks 'mass'"):
        audit(path, TABLE.drop(columns="mass"), SEX)
    with pytest.raises(BadInput, match="takes 3 columns, and X has 2"):
        audit(path, TABLE.to_numpy(object)[:, 1:], SEX)
    with pytest.raises(BadInput, match="'Anvers', a category that the ONNX model does not know"):
        audit(path, TABLE.replace("Dream", "Anvers"), SEX)
    with pytest.raises(BadInput, match=r"model.onnx: FeatureVectorizer|model.onnx: Imputer"):
        audit(path, TABLE.assign(mass="heavy"), SEX)


def test_rows_and_columns_on_the_command_line(tmp_path, monkeypatch, capsys):
    """Text and truth values in a CSV file reach pipelines and graphs as they were when the model was fitted."""
    monkeypatch.chdir(tmp_path)
    model, _ = column_graph(tmp_path / "model.onnx")
    skops.io.dump(model, "model.skops")
    TABLE.assign(sex=SEX).to_csv("t.csv", index=False)
    for words in (["model.skops"], ["model.onnx", "--C", "0.5"]):
        assert main(["audit", "t.csv", "-t", "sex", "--json", "-q", "--model", *words]) == 0
        found = json.loads(capsys.readouterr().out)
        assert math.isclose(found["objective"], audit(model, TABLE, SEX).objective)
    skops.io.dump(fitted(model, TABLE, SEX == "male"), "model.skops")
    TABLE.assign(sex=SEX == "male").to_csv("t.csv", index=False)
    assert main(["audit", "t.csv", "-t", "sex", "--model", "model.skops"]) == 0


def test_steps_that_change_rows_in_other_ways_are_refused(tmp_path):
    X, y = CANCER
    flat = ("flat", np.array([-1, 3]))
    for kind, inputs, attributes in (
        ("Reshape", ["X", "flat"], {}),
        ("Concat", ["X", "X"], {"axis": 0}),
        ("Gather", ["X", "flat"], {"axis": 0}),
        ("Cast", ["X"], {"to": TensorProto.STRING}),
    ):
        path = stored(
            tmp_path / "model.onnx",
            node(kind, inputs, ["Y"], **attributes),
            node("MatMul", ["Y", "W"], ["Z"]),
            d=30,
            constants=[("W", np.ones((30, 1))), flat],
        )
        with pytest.raises(Refused, match=f"{kind} of .* is not supported"):
            audit(path, X, y)


def test_the_last_linear_operator_is_the_model(tmp_path):
    """A projection before it is a step, as for a PCA; columns may be selected."""
    X, t = 20.0 * DIABETES[0], DIABETES[1]
    P = np.linalg.svd(X, full_matrices=False)[2].T
    model = Ridge(alpha=0.5, tol=1e-12).fit((X @ P)[:, [0, 3]], t)
    path = stored(
        tmp_path / "model.onnx",
        node("MatMul", ["X", "P"], ["turned"]),
        node("Gather", ["turned", "some"], ["two"], axis=1),
        node("MatMul", ["two", "W"], ["score"]),
        node("Add", ["score", "b"], ["t"]),
        d=10,
        constants=[
            *(("P", P), ("some", np.array([0, 3])), ("W", model.coef_[:, np.newaxis])),
            ("b", np.array([model.intercept_])),
        ],
    )
    found = audit(path, X, t, loss="squared", C=1.0)
    assert found.optimal
    assert math.isclose(found.objective, audit(model, (X @ P)[:, [0, 3]], t).objective)


def test_regressions_in_several_forms(tmp_path):
    X, t = 20.0 * DIABETES[0], DIABETES[1]
    model = Ridge(alpha=0.5).fit(X, t)
    w, b = model.coef_.astype(np.float32), np.float32(model.intercept_)
    how = {"loss": "squared", "C": 1.0}
    forms = {
        "regressor": (
            [node("LinearRegressor", ["X"], ["t"], coefficients=w, intercepts=[b])],
            (),
        ),
        "gemm": (
            [node("Gemm", ["X", "W", "b"], ["t"], transB=1)],
            [("W", w[np.newaxis]), ("b", np.array([b]))],
        ),
        "halved and doubled": (
            [
                node("Div", ["X", "two"], ["half"]),
                node("Mul", ["half", "two"], ["same"]),
                node("Identity", ["same"], ["again"]),
                node("MatMul", ["again", "W"], ["score"]),
                node("Add", ["score", "b"], ["t"]),
            ],
            [("two", np.float32(2.0)), ("W", w[:, np.newaxis]), ("b", np.array([b]))],
        ),
        "centred": (
            [
                node("Sub", ["X", "centre"], ["shifted"]),
                node("MatMul", ["shifted", "W"], ["score"]),
                node("Add", ["score", "b"], ["t"]),
            ],
            [("centre", np.zeros(10, np.float32)), ("W", w[:, np.newaxis]), ("b", np.array([b]))],
        ),
    }
    for name, (nodes, constants) in forms.items():
        found = audit(stored(tmp_path / name, *nodes, d=10, constants=constants), X, t, **how)
        assert found.optimal and math.isclose(found.objective, audit(model, X, t).objective), name


def test_graphs_that_are_not_linear(tmp_path):
    X, y = CANCER
    matmul = node("MatMul", ["Y", "W"], ["Z"])
    path = stored(
        *(tmp_path / "a.onnx", node("Relu", ["X"], ["Y"]), matmul),
        d=30,
        constants=[("W", np.ones((30, 1)))],
    )
    with pytest.raises(Refused, match="the operator Relu is none of them"):
        audit(path, X, y)
    path = stored(tmp_path / "b.onnx", node("Identity", ["X"], ["Y"]), d=30)
    with pytest.raises(Refused, match="no linear operator"):
        audit(path, X, y)
    for slope, shift in ((0.5, 0.0), (1.0, 1.0)):
        linear = node(
            "LinearClassifier",
            ["X"],
            ["label", "score"],
            coefficients=np.concatenate([np.ones(30), np.full(30, -slope)]),
            intercepts=[shift, 0.0],
            classlabels_ints=[0, 1],
        )
        with pytest.raises(Refused, match="not opposite"):
            audit(stored(tmp_path / "c.onnx", linear, d=30), X, y)


def test_pickles_and_strange_files_are_refused(tmp_path):
    X, y = CANCER
    model = fitted(LinearSVC(), X, y)
    for name in ("model.pkl", "model.joblib", "model.onnx"):
        path = tmp_path / name
        if name.endswith("joblib"):
            joblib.dump(model, path)
        else:
            path.write_bytes(pickle.dumps(model))
        with pytest.raises(Refused, match="is a pickle, which runs code when it is loaded"):
            audit(path, X, y)
    linsep.save(linsep.LogisticRegression().fit(X, y), tmp_path / "model.linsep")
    with pytest.raises(Refused, match="is a model of linsep, which carries its own certificate"):
        audit(tmp_path / "model.linsep", X, y)
    odd = tmp_path / "model.onnx"
    odd.write_bytes(b"name,coefficient\n")
    with pytest.raises(BadInput, match="neither ONNX nor skops nor"):
        audit(odd, X, y)
    with pytest.raises(BadInput, match="No such file"):
        audit(tmp_path / "absent.onnx", X, y)
    unknown = make_pipeline(FunctionTransformer(fitted), LinearSVC())
    skops.io.dump(unknown, tmp_path / "model.skops")
    with pytest.raises(Refused, match="types that skops does not trust"):
        audit(tmp_path / "model.skops", X, y)
    (tmp_path / "model.skops").write_bytes(b"PK\x03\x04")
    with pytest.raises(BadInput, match="not a model that skops can read"):
        audit(tmp_path / "model.skops", X, y)
