"""``linsep audit``: verdicts, exit codes and bad coefficient files."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import skops.io
from sklearn.linear_model import LogisticRegression

import linsep
from linsep.cli import main


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.where(X[:, 0] + rng.normal(size=60) > 0, "yes", "no")
    lines = [f"{a!r},{b!r},{label}" for (a, b), label in zip(X.tolist(), y, strict=True)]
    Path("t.csv").write_text("\n".join(["height,width,bought", *lines]) + "\n")
    return LogisticRegression(tol=1e-12, max_iter=10_000).fit(X, y)


def write(coef, intercept):
    lines = [
        "name,coefficient",
        f"width,{coef[1]!r}",
        f"height,{coef[0]!r}",
        f"intercept,{intercept!r}",
    ]
    Path("coef.csv").write_text("\n".join(lines) + "\n")


ARGUMENTS = ["audit", "t.csv", "-t", "bought", "--coef", "coef.csv"]


def test_an_optimal_model_and_one_that_is_not(data, capsys):
    coef, intercept = data.coef_[0].tolist(), float(data.intercept_[0])
    write(coef, intercept)
    assert main([*ARGUMENTS, "--json"]) == 0
    found = capsys.readouterr()
    assert json.loads(found.out)["optimal"] and "optimal: at most" in found.err
    write([coef[0] + 1.0, coef[1]], intercept)
    assert main([*ARGUMENTS, "--json"]) == 3
    facts = json.loads(capsys.readouterr().out)
    assert not facts["optimal"] and facts["relative_excess"][0] > 0.01 and facts["rows"] == 60


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name,coefficient\nhight,1\n", "has no column 'hight'; did you mean 'height'?"),
        ("name,coefficient\nheight,1\nheight,2\n", "more than once"),
        ("name\nheight\n", "needs two columns"),
        ("name,coefficient\nheight,\nwidth,1\n", "must hold finite numbers"),
    ],
)
def test_a_bad_coefficient_file(data, capsys, text, words):
    Path("coef.csv").write_text(text)
    assert main(ARGUMENTS) == 4
    assert words in capsys.readouterr().err


def test_stored_models(data, capsys):
    skops.io.dump(data, "model.skops")
    arguments = ["audit", "t.csv", "-t", "bought", "--json", "--model"]
    assert main([*arguments, "model.skops"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["optimal"] and facts["model"] == "LogisticRegression"
    assert main([*arguments, "model.skops", "--C", "2"]) == 4
    assert "LogisticRegression knows its own C" in capsys.readouterr().err
    table = linsep.read_table("t.csv", "bought")
    ours = linsep.LogisticRegression(C=0.3).fit(
        np.column_stack([table.values("height"), table.values("width")]), table.y
    )
    Path("model.onnx").write_bytes(linsep.export.onnx(ours))
    assert main([*arguments, "model.onnx", "--C", "0.3"]) == 0
    assert json.loads(capsys.readouterr().out)["model"] == "ONNX model"
    assert main([*arguments, "model.onnx", "--C", "3"]) == 3
    capsys.readouterr()
    Path("model.pkl").write_bytes(pickle.dumps(data))
    assert main([*arguments, "model.pkl"]) == 4
    assert "is a pickle, which runs code when it is loaded" in capsys.readouterr().err


def test_columns_by_the_names_that_a_model_knows(data, capsys):
    table = linsep.read_table("t.csv", "bought")
    names = np.array(["width", "height"], dtype=object)
    X = np.column_stack([table.values(name) for name in names])
    model = LogisticRegression(tol=1e-12).fit(X, table.y)
    model.feature_names_in_ = names
    skops.io.dump(model, "model.skops")
    assert main(["audit", "t.csv", "-t", "bought", "--model", "model.skops"]) == 0
    capsys.readouterr()
    Path("model.txt").write_text(
        "solver_type L2R_LR\nnr_class 2\nlabel 1 0\nnr_feature 2\nbias -1\nw\n0.5 \n0.1 \n"
    )
    Path("u.csv").write_text("a,b,y\n" + "".join(f"{i},{i % 3},{i % 2}\n" for i in range(12)))
    assert main(["audit", "u.csv", "-t", "y", "--model", "model.txt", "--C", "1"]) == 3
    assert "LIBLINEAR L2R_LR" in capsys.readouterr().err


def test_a_loss_that_is_not_convex_is_refused_in_one_sentence(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("u.csv").write_text("a,y\n" + "".join(f"{i % 5},{i % 2}\n" for i in range(12)))
    Path("coef.csv").write_text("name,coefficient\na,0.1\n")
    arguments = ["audit", "u.csv", "-t", "y", "--coef", "coef.csv", "--loss"]
    assert main([*arguments, "zero_one"]) == 4
    said = capsys.readouterr().err
    assert "'zero_one' is not convex" in said and "ZeroOneClassifier" in said
