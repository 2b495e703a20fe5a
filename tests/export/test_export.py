"""Every export gives the answers of the model it came from."""

import json
import shutil
import sqlite3
import subprocess
import sys

import duckdb
import numpy as np
import onnxruntime
import pyarrow as pa
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import StandardScaler

from linsep import (
    LinearClassifier,
    LinearRegressor,
    LogisticRegression,
    ZeroOneClassifier,
    export,
)
from linsep.errors import BadInput, Refused

X, Y = load_iris(return_X_y=True)
NASTY = [
    'a"b',
    "c'; DROP TABLE t; --",
    '/* " */ ??/ \\',
    "ü\n名",
]
WORDS = np.array(["it's", 'say "no"', "back\\slash ??) \x07"])[Y]
MODELS = {
    "two classes": lambda: LogisticRegression(C=0.5).fit(X[50:], WORDS[50:]),
    "multinomial": lambda: LogisticRegression(C=100.0).fit(pa_table(X), WORDS),
    "ovr": lambda: LogisticRegression(multiclass="ovr").fit(X, Y),
    "scores": lambda: LinearClassifier("squared_hinge").fit(pa_table(X), Y),
    "two scores": lambda: LinearClassifier("huberised_hinge").fit(X, Y == 1),
    "regression": lambda: LinearRegressor("huber", C=1.0).fit(X, Y - 0.5),
}
# ordinary rows, large ones, and a score of 0
ROWS = np.vstack([X[::7], 1e3 * X[:20] - 2e3, np.zeros((1, 4))])


def pa_table(rows):
    return pa.table(dict(zip(NASTY, rows.T, strict=True)))


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return MODELS[request.param]()


def answers(model, rows=ROWS):
    """Scores (n, k), classes, probabilities or None."""
    given = pa_table(rows) if hasattr(model, "feature_names_in_") else rows
    if not hasattr(model, "decision_function"):
        z = model.predict(given)
        return z[:, np.newaxis], z.tolist(), None
    z = model.decision_function(given)
    p = model.predict_proba(given) if hasattr(model, "predict_proba") else None
    return z.reshape(len(rows), -1), model.predict(given).tolist(), p


def same(found, model, rows=ROWS):
    scores, classes, p = found
    z, expected, q = answers(model, rows)
    np.testing.assert_allclose(scores, z, rtol=1e-9, atol=1e-9)
    if isinstance(expected[0], float):
        np.testing.assert_allclose(classes, expected, rtol=1e-9)
    else:
        assert list(classes) == expected
    assert (p is None) == (q is None)
    if q is not None:
        np.testing.assert_allclose(p, q, rtol=1e-8, atol=1e-11)


def test_python(model, tmp_path):
    (tmp_path / "scorer.py").write_text(export.python(model))
    (tmp_path / "rows.json").write_text(json.dumps(ROWS.tolist()))
    code = (
        "import json, scorer; rows = json.load(open('rows.json')); p = getattr(scorer, 'predict_proba', None);"
        "print(json.dumps([[scorer.score(r) for r in rows], [scorer.predict(r) for r in rows],"
        " [p(r) for r in rows] if p else None]))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, '.'); {code}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    same(json.loads(done.stdout), model)


MAIN = """
#include <stdio.h>
int main(void) {
    double x[D], z[K], p[P];
    while (1) {
        for (int j = 0; j < D; ++j) if (scanf("%lf", x + j) != 1) return 0;
        m_score(x, z);
        for (int c = 0; c < K; ++c) printf("%.17g ", z[c]);
        printf("%.17g ", (double)m_predict(x));
        if (PROBA) { PROBA_CALL; for (int c = 0; c < P; ++c) printf("%.17g ", p[c]); }
        printf("\\n");
    }
}
"""


@pytest.mark.sampled(4)
@pytest.mark.parametrize("compiler", ["cc", "c++"])
def test_c(model, tmp_path, compiler):
    assert shutil.which(compiler)
    _, _, q = answers(model)
    k = np.atleast_2d(model.coef_).shape[0]
    text = export.c(model, "m") + MAIN
    for key, value in {"PROBA_CALL": "m_proba(x, p)" if q is not None else "(void)p"}.items():
        text = text.replace(key, value)
    (tmp_path / "m.c").write_text(text)
    flags = ["-std=c99"] if compiler == "cc" else ["-x", "c++", "-std=c++17"]
    defines = [
        "-DD=4",
        f"-DK={k}",
        f"-DP={q.shape[1] if q is not None else 1}",
        f"-DPROBA={int(q is not None)}",
    ]
    subprocess.run(
        [
            compiler,
            *flags,
            "-Wall",
            "-Wextra",
            "-pedantic",
            "-Werror",
            *defines,
            "m.c",
            "-o",
            "m",
            "-lm",
        ],
        cwd=tmp_path,
        check=True,
    )
    rows = "\n".join(" ".join(map(repr, row)) for row in ROWS.tolist())
    done = subprocess.run([tmp_path / "m"], input=rows, capture_output=True, text=True, check=True)
    found = np.array([line.split() for line in done.stdout.splitlines()], dtype=float)
    classes = found[:, k].tolist()
    if hasattr(model, "classes_"):
        classes = model.classes_[found[:, k].astype(int)].tolist()
    same((found[:, :k], classes, found[:, k + 1 :] if q is not None else None), model)


def test_names_in_c(tmp_path):
    model = MODELS["multinomial"]()
    main = "#include <stdio.h>\nint main(void) { for (int j = 0; j < 4; ++j) { fputs(m_names[j], stdout); putchar(0); }"
    main += " for (int c = 0; c < 3; ++c) { fputs(m_classes[c], stdout); putchar(0); } }"
    (tmp_path / "m.c").write_text(export.c(model, "m") + main)
    subprocess.run(
        ["cc", "-std=c99", "-trigraphs", "m.c", "-o", "m", "-lm"], cwd=tmp_path, check=True
    )
    done = subprocess.run([tmp_path / "m"], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == [*NASTY, *model.classes_.tolist()]
    for name in ("2x", "a b", "x;y", ""):
        with pytest.raises(BadInput, match="C identifier"):
            export.c(model, name)


ENGINES = {"sqlite": sqlite3.connect, "duckdb": duckdb.connect}


def run_sql(engine, columns, rows, query, types=None):
    """Rows of the answer, in the order of the rows given."""
    table = '"odd ""table"" name"'
    kinds = types or ["DOUBLE PRECISION"] * len(columns)
    names = ", ".join(
        f"{export.queries.quote(name)} {kind}" for name, kind in zip(columns, kinds, strict=True)
    )
    db = ENGINES[engine](":memory:")
    db.execute(f'CREATE TABLE {table} ("row id" INTEGER, {names})')
    marks = ", ".join("?" * (len(columns) + 1))
    db.executemany(
        f"INSERT INTO {table} VALUES ({marks})", [[i, *row] for i, row in enumerate(rows)]
    )
    found = db.execute(query).fetchall()
    db.close()
    assert [row[0] for row in found] == list(range(len(rows)))
    return [row[1:] for row in found]


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_sql(model, engine):
    columns = NASTY if hasattr(model, "feature_names_in_") else ["x1", "x2", "x3", "x4"]
    query = export.sql(model, 'odd "table" name', key="row id")
    found = run_sql(engine, columns, ROWS.tolist(), query)
    k = np.atleast_2d(model.coef_).shape[0]
    _, _, q = answers(model)
    scores = np.array([row[:k] for row in found], dtype=float)
    classes = [row[k] for row in found]
    if hasattr(model, "classes_") and model.classes_.dtype.kind == "b":
        classes = [bool(label) for label in classes]
    p = np.array([row[k + 1 :] for row in found], dtype=float) if q is not None else None
    same((scores, classes, p), model)
    short = run_sql(
        engine,
        columns,
        ROWS.tolist(),
        export.sql(model, 'odd "table" name', key="row id", proba=False),
    )
    assert [row[: k + 1] for row in short] == [row[: k + 1] for row in found]


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_null_in_sql(engine):
    model = MODELS["two classes"]()
    query = export.sql(model, 'odd "table" name', key="row id")
    ((score, label, *p),) = run_sql(
        engine, ["x1", "x2", "x3", "x4"], [[1.0, None, 1.0, 1.0]], query
    )
    assert score is None and label is None and p == [None, None]


def test_many_columns_in_sql():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((60, 300))
    model = LogisticRegression().fit(rows, rows[:, 0] > 0)
    names = [f"x{j + 1}" for j in range(300)]
    found = run_sql(
        "sqlite", names, rows.tolist(), export.sql(model, 'odd "table" name', key="row id")
    )
    np.testing.assert_allclose(
        [row[0] for row in found], model.decision_function(rows), rtol=1e-9, atol=1e-12
    )


def test_onnx(model):
    session = onnxruntime.InferenceSession(export.onnx(model), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    found = dict(zip(names, session.run(None, {"X": ROWS}), strict=True))
    classes = found["label"].tolist() if "label" in found else found["score"][:, 0].tolist()
    if hasattr(model, "classes_") and model.classes_.dtype.kind == "b":
        classes = [bool(label) for label in classes]
    same((found["score"], classes, found.get("probability")), model)
    columns = session.get_modelmeta().custom_metadata_map["columns"]
    assert ("名" in columns) == hasattr(model, "feature_names_in_")


def test_scikit_learn(model):
    made = export.to_sklearn(model)
    given = ROWS
    if hasattr(model, "feature_names_in_"):
        pandas = pytest.importorskip("pandas")
        given = pandas.DataFrame(ROWS, columns=NASTY)
    if not hasattr(model, "classes_"):
        z = made.predict(given)
        same((z[:, np.newaxis], z, None), model)
        return
    z = made.decision_function(given).reshape(len(ROWS), -1)
    p = made.predict_proba(given) if hasattr(made, "predict_proba") else None
    nonzero = np.abs(z).min(axis=1) > 0
    assert nonzero.sum() > 20
    same((z, made.predict(given).tolist(), p), model)


def test_fewest_errors_for_scikit_learn():
    model = ZeroOneClassifier().fit([[0.0], [1.0], [2.0], [3.0]], ["a", "b", "a", "b"])
    made = export.to_sklearn(model)
    assert made.predict([[-1.0], [4.0]]).tolist() == model.predict([[-1.0], [4.0]]).tolist()


def test_what_has_no_export():
    with pytest.raises(Refused, match="A StandardScaler cannot be exported"):
        export.sql(StandardScaler().fit(X), "t")
    with pytest.raises(BadInput, match="NUL"):
        export.sql(MODELS["two classes"](), "t\0")


def test_a_larger_model():
    rows, labels = load_breast_cancer(return_X_y=True)
    model = LogisticRegression(C=10.0).fit(rows, labels)
    scope = {}
    exec(export.python(model), scope)
    z = [scope["score"](row)[0] for row in rows]
    np.testing.assert_allclose(z, model.decision_function(rows), rtol=1e-9, atol=1e-9)
    assert [scope["predict"](row) for row in rows] == model.predict(rows).tolist()
