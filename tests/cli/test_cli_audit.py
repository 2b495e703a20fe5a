"""``linsep audit``: verdicts, exit codes and bad coefficient files."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

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
