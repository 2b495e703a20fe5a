"""The command line: every verb on a real table, exit codes, JSON, and errors in one line."""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import linsep
from linsep.cli import live, main
from linsep.cli.commands import VERBS, options_of
from linsep.cli.modelling import held_out_words

PENGUINS = Path(linsep.__file__).parent / "cli" / "data" / "penguins.csv"


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "penguins.csv"
    path.write_bytes(PENGUINS.read_bytes())
    return path


@pytest.fixture
def model(data):
    assert main(["fit", str(data), "-t", "species", "--C", "1", "--no-report", "-q"]) == 0
    return data.with_suffix(".linsep")


def answer(capsys):
    return json.loads(capsys.readouterr().out)


def test_fit_does_the_whole_job(data, capsys):
    assert main(["fit", str(data), "--target", "species", "--no-report", "--json"]) == 0
    said = capsys.readouterr()
    facts = json.loads(said.out)
    assert facts["certificate"]["certified"] and facts["rows"] == 344
    assert 1e-4 <= facts["C"] <= 1e4
    assert facts["test"]["rows"] == 86
    assert facts["test"]["score"] <= facts["test"]["bound"] < 0.2
    assert "island" in said.err and "category" in said.err  # the types are shown
    saved = linsep.load(facts["model_file"])
    table = linsep.read_table(data, "species")
    assert linsep.verify(saved[-1], saved[0].transform(table), table.y).certified


@pytest.mark.slow
def test_the_same_seed_gives_the_same_file(data):
    files = []
    for name in ("a.linsep", "b.linsep"):
        words = ["fit", str(data), "-t", "species", "--no-report", "-q", "-o", name, "--seed", "3"]
        assert main(words) == 0
        loaded = linsep.load(name)
        files.append((loaded[-1].coef_, loaded[-1].C))
    assert np.array_equal(files[0][0], files[1][0]) and files[0][1] == files[1][1]


@pytest.mark.parametrize("name", ["svm", pytest.param("squared-hinge", marks=pytest.mark.slow)])
def test_other_models(data, name, capsys):
    words = [
        "fit",
        str(data),
        "-t",
        "species",
        "--model",
        name,
        "--C",
        "1",
        "--no-report",
        "--json",
    ]
    assert main(words) == 0
    assert answer(capsys)["model"] == "LinearSVC"


def test_numbers_are_regressed(data, capsys):
    words = ["fit", str(data), "-t", "flipper_length_mm", "--no-report", "--json"]
    gaps = data.read_text().replace("NA", "190", 1)
    lines = [line for line in gaps.splitlines() if not line.split(",")[4] == "NA"]
    data.write_text("\n".join(lines) + "\n")
    assert main([*words, "--task", "regress", "--balanced"]) == 4
    assert "--balanced" in answer(capsys)["message"]
    assert main([*words, "--task", "regress"]) == 0
    facts = answer(capsys)
    assert facts["model"] == "LinearRegressor" and facts["test"]["score"] > 0.7


def test_predict_streams_csv_and_agrees_with_the_library(data, model, capsys):
    assert main(["predict", str(model), str(data), "--proba", "--scores"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    saved = linsep.load(model)
    X = saved[0].transform(linsep.read_table(data, "species"))
    assert [row["prediction"] for row in rows] == saved[-1].predict(X).tolist()
    p = np.array([[float(row[f"p {c}"]) for c in saved[-1].classes_] for row in rows])
    assert np.allclose(p, saved[-1].predict_proba(X), rtol=1e-12)
    assert main(["predict", str(model), str(data), "-o", "out.csv", "-q"]) == 0
    assert Path("out.csv").read_text().splitlines()[0] == "prediction"


def test_predict_goes_through_a_file_piece_by_piece(data, model, tuned, capsys):
    assert main(["predict", str(model), str(data), "--proba"]) == 0
    whole = capsys.readouterr().out
    tuned(delimited_block=1500)
    for words in ([], ["-o", "out.csv", "-q"], ["--json"]):
        assert main(["predict", str(model), str(data), "--proba", *words]) == 0
        said = capsys.readouterr().out
        if words == ["--json"]:
            facts = json.loads(said)
            assert facts["rows"] == 344 == len(facts["columns"]["prediction"])
        else:
            assert (Path("out.csv").read_text() if words else said) == whole
    lines = data.read_text().splitlines()
    data.write_text("\n".join([*lines[:300], lines[300] + ",more", *lines[301:]]) + "\n")
    Path("out.csv").unlink()
    assert main(["predict", str(model), str(data), "-o", "out.csv"]) == 4
    assert "penguins.csv:301" in capsys.readouterr().err
    assert not list(Path().glob("out.csv*"))


def test_a_model_without_an_encoder_takes_columns_by_name(data, capsys):
    lines = [f"{i},{i * i % 7},1,{'yes' if i % 3 else 'no'}" for i in range(40)]
    Path("t.csv").write_text("a,b,always,y\n" + "\n".join(lines) + "\n")
    frame = pd.read_csv("t.csv")
    bare = linsep.LogisticRegression().fit(frame[["a", "b", "always"]], frame["y"])
    linsep.save(bare, "t.linsep")
    assert bare.feature_names_in_.tolist() == ["a", "b", "always"]
    assert main(["predict", "t.linsep", "t.csv", "--scores", "--json"]) == 0
    found = answer(capsys)["columns"]["score"]
    X = np.array([line.split(",")[:3] for line in lines], float)
    assert np.allclose(found, X @ bare.coef_[0] + bare.intercept_)
    Path("t.csv").write_text("always,b,y\n1,2,no\n")
    assert main(["predict", "t.linsep", "t.csv"]) == 4
    assert "has no column 'a'" in capsys.readouterr().err
    Path("t.csv").write_text("always,b,a\n1,2,\n1,2,3\n")
    assert main(["predict", "t.linsep", "t.csv"]) == 4
    assert "column 'a' holds text or missing values" in capsys.readouterr().err


@pytest.mark.parametrize("packed", [bytes, gzip.compress, lzma.compress], ids=["plain", "gz", "xz"])
def test_predict_reads_standard_input(data, model, packed, monkeypatch, capsys):
    pipe = io.TextIOWrapper(io.BufferedReader(io.BytesIO(packed(data.read_bytes()))))
    monkeypatch.setattr(sys, "stdin", pipe)
    assert main(["predict", str(model), "-"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 345


@pytest.mark.slow
def test_predictions_leave_while_rows_come(data, model):
    """A pipe that stays open: the answer is there before its end."""
    names, *rows = data.read_bytes().splitlines(keepends=True)
    with subprocess.Popen(
        [sys.executable, "-m", "linsep.cli", "predict", str(model), "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as run:
        for k, row in enumerate(rows[:3]):
            run.stdin.write((names if k == 0 else b"") + row)
            run.stdin.flush()
            if k == 0:
                assert run.stdout.readline() == b"prediction\n"
            assert run.stdout.readline() == b"Adelie\n"
        run.stdin.close()
        assert run.stdout.read() == b"" and run.wait() == 0


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
def test_pipes_are_cut_between_rows(size):
    """Never inside quotes, wherever the bytes are torn; messages tell the line of the whole."""
    rows = ["1,'a b'", "2,'a\nb'", "3,'it''s'", "4,c", "5,'x\n\ny'"] * 3
    text = ("n,t\n" + "\n".join(rows) + "\n").replace("'", '"').encode()

    class Torn(io.BytesIO):
        def read1(self, n=-1):
            return super().read1(size)

    def pairs(table):
        levels = table.levels["t"]
        codes = zip(table.values("n"), table.values("t"), strict=True)
        return [(value, levels[code]) for value, code in codes]

    found = [pair for table in live.tables(Torn(text)) for pair in pairs(table)]
    assert found == pairs(linsep.read_table(io.BytesIO(text)))
    broken = text + b"6,d,e\n"
    with pytest.raises(linsep.errors.BadFile) as caught:
        list(live.tables(Torn(broken)))
    with pytest.raises(linsep.errors.BadFile) as expected:
        linsep.read_table(io.BytesIO(broken))
    assert caught.value.line == expected.value.line


def test_score_verify_and_explain(data, model, capsys):
    assert main(["score", str(model), str(data), "-t", "species", "--json"]) == 0
    scored = answer(capsys)
    assert scored["error"] == scored["errors"] / 344 <= scored["bound"]
    assert main(["verify", str(model), str(data), "-t", "species", "--json"]) == 0
    assert answer(capsys)["verified"] is True
    assert main(["explain", str(model), "--top", "3"]) == 0
    said = capsys.readouterr()
    assert "bill_length_mm" in said.out and "certified" in said.err
    assert "the 3 largest are shown" in said.err and "per standard deviation" in said.err
    assert len(said.out.splitlines()) == 5  # heads, three, intercept


def test_verify_refuses_other_rows(data, model, capsys):
    lines = data.read_text().splitlines()
    data.write_text("\n".join([*lines[:-1], lines[-1].replace("Chinstrap", "Adelie")]) + "\n")
    assert main(["verify", str(model), str(data), "-t", "species"]) == 3
    assert "does not hold" in capsys.readouterr().err


def test_tune_prints_the_curve(data, capsys):
    assert main(["tune", str(data), "-t", "species", "--Cs", "3", "--cv", "3", "--json"]) == 0
    facts = answer(capsys)
    assert len(facts["Cs"]) == 3 and np.shape(facts["scores"]) == (3, 3)
    assert facts["best_C"] in facts["Cs"] and facts["certified"]


def test_separate_proves_either_way(tmp_path, capsys):
    path = tmp_path / "and.csv"
    path.write_text("a,b,y\n0,0,no\n0,1,no\n1,0,no\n1,1,yes\n0.5,0.1,no\n0.9,0.8,yes\n")
    assert main(["separate", str(path), "-t", "y", "--exact", "--json"]) == 0
    facts = answer(capsys)
    assert facts["separable"] is True and facts["checked"] and facts["margin"] > 0
    path.write_text("a,b,y\n0,0,no\n0,1,yes\n1,0,yes\n1,1,no\n0.5,0.5,yes\n")
    assert main(["separate", str(path), "-t", "y", "--json"]) == 0
    facts = answer(capsys)
    assert facts["separable"] is False and np.isclose(sum(facts["weights"]), 1.0)
    assert main(["separate", str(path), "-t", "y", "--exact"]) == 0
    assert "proof checked in exact arithmetic: it holds\n" in capsys.readouterr().err


def test_the_model_of_a_compressed_file_is_named_without_both_suffixes(tmp_path, capsys):
    path = tmp_path / "and.csv.gz"
    path.write_bytes(gzip.compress(b"a,y\n0,no\n1,yes\n0,no\n2,yes\n1,no\n2,no\n"))
    assert main(["fit", str(path), "-t", "y", "--C", "1", "--test", "0", "--no-report"]) == 0
    assert (tmp_path / "and.linsep").exists()


def test_a_long_class_name_is_cut_in_the_held_out_error():
    label = "upgraded to the family plan yesterday again"
    text, _ = held_out_words(0.25, np.array([label, label, "other"]), regression=False)
    assert "baseline (always upgraded to the family plan yesterday...) 33.3 %" in text


def test_separate_one_class_from_the_others(data, capsys):
    assert main(["separate", str(data), "-t", "species"]) == 4
    assert "--of 'Adelie'" in capsys.readouterr().err
    assert main(["separate", str(data), "-t", "species", "--of", "Gentoo", "--json"]) == 0
    facts = answer(capsys)
    assert facts["separable"] is True and facts["checked"]
    assert main(["separate", str(data), "-t", "species", "--of", "Emperor"]) == 4
    assert "it holds 'Adelie', 'Chinstrap', 'Gentoo'" in capsys.readouterr().err


@pytest.mark.parametrize("to", ["sql", "python", "c"])
def test_export(tmp_path, monkeypatch, to, capsys):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("a,b,y\n" + "".join(f"{i},{i * i % 7},{i % 2}\n" for i in range(30)))
    assert main(["fit", "t.csv", "-t", "y", "--C", "1", "--test", "0", "--no-report", "-q"]) == 0
    assert main(["export", "t.linsep", "--to", "sql"]) == 0
    assert "SELECT" in capsys.readouterr().out.upper()
    Path("t.npz").unlink(missing_ok=True)
    assert main(["convert", "t.csv", "t.npz", "-t", "y", "-q"]) == 0
    bare = linsep.LogisticRegression().fit(np.load("t.npz")["X"], np.load("t.npz")["y"])
    linsep.save(bare, "bare.linsep")
    assert main(["export", "bare.linsep", "--to", to, "-o", f"scorer.{to}", "-q"]) == 0
    assert Path(f"scorer.{to}").stat().st_size > 100


@pytest.mark.parametrize(
    "suffix", [".npz", ".svm", ".csv", ".tsv", ".parquet", ".arrow", ".feather"]
)
def test_convert_keeps_the_numbers(data, suffix, capsys):
    out = data.with_name("numbers" + suffix)
    assert main(["convert", str(data), str(out), "-t", "species", "--json"]) == 0
    names = answer(capsys)["columns"]
    table = linsep.read_table(data, "species")
    X = linsep.Encoder().fit_transform(table)
    matrix = suffix in (".npz", ".svm")
    again = linsep.read_table(out, None if matrix else "species")
    if not matrix:
        assert again.y.tolist() == table.y.tolist()
        assert again.columns == names
        back = np.column_stack([again.values(name) for name in names])
    else:
        back = again.matrix.toarray() if hasattr(again.matrix, "toarray") else again.matrix
    assert np.allclose(back, X)


def test_a_config_file_gives_defaults_and_the_command_line_wins(data, capsys):
    Path("linsep.toml").write_text(
        '[fit]\ntarget = "species"\nC = 0.5\nno_report = true\nquiet = true\n'
    )
    assert main(["fit", str(data), "--config", "linsep.toml", "--json"]) == 0
    assert answer(capsys)["C"] == 0.5
    assert main(["fit", str(data), "--config", "linsep.toml", "--C", "2", "--json"]) == 0
    assert answer(capsys)["C"] == 2.0
    assert main(["fit", str(data), "--config", "nowhere.toml"]) == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fit = 5", "write [fit] above its options"),
        ("[[fit]]", "write [fit] above its options"),
        ("[fit]\ntarg = 'y'", "no option 'targ'; did you mean target?"),
        ("[fit]\n'' = true", "no option ''"),
        ("[fit]\nhelp = true", "no option 'help'"),
        ("[fit]\nC = {a = 1}", "neither a number, a text, true, false nor a list"),
        ("x = " + "[" * 5000, "recursion"),
    ],
)
def test_a_config_file_is_refused(text, words, capsys, tmp_path):
    path = tmp_path / "linsep.toml"
    path.write_text(text)
    assert main(["fit", "data.csv", "--config", str(path)]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        ([], 2, "VERB"),
        (["nonsense"], 2, "argument VERB: there is no 'nonsense'; choose one of fit, tune, "),
        (
            ["fitt", "penguins.csv"],
            2,
            "there is no 'fitt'; did you mean fit? `linsep --help` lists all verbs.",
        ),
        (
            ["fit", "penguins.csv", "--model", "svc"],
            2,
            "linsep fit: argument --model: there is no 'svc'; did you",
        ),
        (
            ["fit", "penguins.csv", "--C", "much"],
            2,
            "argument --C: invalid float value: 'much'. `linsep fit --help`",
        ),
        (["fit", "penguins.csv", "--deciml", ","], 2, "did you mean --decimal?"),
        (["fit", "penguins.csv", "--loss", "hinge"], 2, "'--loss'; did you mean --model?"),
        (["fit", "penguins.csv", "--force"], 2, "unknown argument '--force'. `linsep fit"),
        (["fit", "penguins.csv"], 4, "--target"),
        (["fit", "penguins.csv", "-t", "specis"], 4, "species"),
        (["fit", "nowhere.csv", "-t", "y"], 4, "nowhere.csv"),
        (["fit", "penguins.csv", "-t", "species", "--type", "year"], 4, "COLUMN=TYPE"),
        (["fit", "penguins.csv", "-t", "species", "--test", "2"], 4, "--test"),
        (["fit", "penguins.csv", "-t", "species", "--model", "huber"], 4, "target of classes"),
        (["fit", "penguins.csv", "-t", "species", "--C", "-1", "--no-report"], 4, "C must lie"),
        (["fit", "penguins.csv", "-t", "bill"], 4, "'bill_length_mm' or 'bill_depth_mm'?"),
        (["fit", "penguins.csv", "-t", "spec"], 4, "did you mean 'species'?"),
        (["predict", "penguins.csv", "penguins.csv"], 5, "penguins.csv"),
        (["predict", "nowhere.linsep", "penguins.csv"], 4, "nowhere.linsep"),
        (["convert", "penguins.csv", "out.xlsx"], 4, ".npz"),
    ],
)
def test_errors_are_one_line_and_a_code(data, words, code, text, capsys):
    assert main(words) == code
    said = capsys.readouterr().err
    assert text in said and "Traceback" not in said
    assert not words or (said.splitlines()[-1].startswith("linsep") and "usage:" not in said)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--C", "0"], "C must lie in (0, inf], got 0.0"),
        (["--Cs", "1"], "at least 2 values"),
        (["--cv", "1"], "at least 2 folds"),
        (["--scoring", "acuracy"], "Unknown scoring 'acuracy'"),
        (["--l1-ratio", "2"], "l1_ratio must lie in [0, 1]"),
        (["--tol", "-1"], "tol"),
        (["--threads", "-3"], "n_threads"),
        (["-o", "nowhere/model.linsep"], "nowhere: no such folder; create it first."),
        (["--report", "nowhere/page.html"], "nowhere: no such folder; create it first."),
        (["-o", "."], "is a folder"),
    ],
)
def test_options_are_refused_before_the_table_is_read(tmp_path, monkeypatch, words, text, capsys):
    monkeypatch.chdir(tmp_path)
    Path("damaged.csv").write_bytes(b"a,y\n1,u\n\x00,v\n")
    assert main(["fit", "damaged.csv", "-t", "y", *words]) == 4
    assert text in capsys.readouterr().err


def test_the_target_is_asked_for_before_the_table_is_read(tmp_path, capsys):
    path = tmp_path / "rows.csv"
    path.write_text("a,price,y\n1,$5,u\n2,$6,v\n")
    assert main(["fit", str(path)]) == 4
    said = capsys.readouterr().err
    assert (
        "name the column to predict with --target NAME; its columns are 'a', 'price', 'y'." in said
    )
    assert main(["fit", str(path), "-t", ""]) == 4
    assert "has no column ''" in capsys.readouterr().err


def test_model_and_data_the_wrong_way_round(model, data, capsys):
    assert main(["predict", str(data), str(model)]) == 4
    assert f"the model comes first: linsep predict {model} {data}." in capsys.readouterr().err


def test_a_value_that_new_rows_cannot_have_is_named_in_words(model, data, capsys):
    text = data.read_text().replace("39.1", "n.a.", 1)
    Path("new.csv").write_text(text)
    assert main(["predict", str(model), "new.csv"]) == 4
    said = capsys.readouterr().err
    assert "'n.a.' in column 'bill_length_mm', which holds numbers otherwise" in said
    assert "declare it missing with --missing TEXT" in said


def test_rows_without_a_target_are_left_out_if_asked(data, capsys):
    path = Path("gaps.csv")
    path.write_text(Path("penguins.csv").read_text().replace("Adelie", "", 2))
    words = ["fit", "gaps.csv", "-t", "species", "--C", "1", "--test", "0", "--no-report"]
    assert main(words) == 4
    assert "--drop-unlabelled" in capsys.readouterr().err
    assert main([*words, "--drop-unlabelled"]) == 0
    assert "342 rows; left out 2 without a target" in capsys.readouterr().err
    checked = ["verify", "gaps.linsep", "gaps.csv", "-t", "species", "--drop-unlabelled"]
    assert main(checked) == 0


def test_errors_are_json_too(data, capsys):
    assert main(["fit", "nowhere.csv", "-t", "y", "--json"]) == 4
    facts = answer(capsys)
    assert facts["code"] == 4 and "nowhere.csv" in facts["message"]


def test_a_limit_has_its_own_code(data, capsys):
    words = [
        "fit",
        str(data),
        "-t",
        "species",
        "--C",
        "1e6",
        "--tol",
        "1e-15",
        "--time-limit",
        "1e-6",
    ]
    assert main([*words, "--no-report", "-q", "--test", "0"]) == 6


def test_help_of_every_verb_and_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == linsep.__version__
    for verb in VERBS:
        assert main([verb, "--help"]) == 0
        assert "--json" in capsys.readouterr().out
        assert all(option.help for option in options_of(verb)._actions)


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from linsep.cli import main; main(['--help']); "
        "print(sorted({'numpy', 'scipy', 'sklearn', 'pyarrow', 'matplotlib'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "[]"


def test_a_fault_of_its_own_ends_with_a_traceback_and_not_with_a_hang(data):
    code = (
        "import sys; from linsep.cli import command, fitting, reading\n"
        "def broken(*a):\n    raise RuntimeError('a fault')\n"
        "from linsep.data.files.columns import Target; Target.add = broken\n"
        "sys.argv = ['linsep', 'fit', 'penguins.csv', '-t', 'species']; command()"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert run.returncode == 1 and "RuntimeError: a fault" in run.stderr


@pytest.mark.slow
def test_the_command_does_not_load_pandas(data):
    code = (
        "import sys, linsep.cli as cli\n"
        "run = cli.run\n"
        "def told(argv):\n    code = run(argv); print(sys.modules.get('pandas')); return code\n"
        "cli.run = told\n"
        "sys.argv = ['linsep', 'fit', 'penguins.csv', '-t', 'species', '--C', '1', '-q']; cli.command()"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "None\n"), run.stderr


def test_the_report_judges_by_rows_the_fit_has_not_seen(data, capsys):
    words = ["fit", str(data), "-t", "species", "--C", "1", "--json", "--report", "page.html"]
    assert main(words) == 0
    facts = answer(capsys)
    page = Path(facts["report"]).read_text("utf-8")
    assert "86 held-out rows" in page and "258 rows for fitting" in page
    assert "most missing values: sex" in page
    assert main(["report", facts["model_file"], str(data), "-t", "species", "-q"]) == 0
    assert Path(facts["model_file"]).with_suffix(".html").stat().st_size > 10_000


def test_a_report_by_rows_from_another_file(data, model, capsys):
    lines = data.read_text().splitlines()
    Path("new.csv").write_text("\n".join([lines[0], *lines[1::5]]) + "\n")
    words = ["report", str(model), str(data), "-t", "species", "--title", "Which penguin?"]
    assert main([*words, "--test", "new.csv", "-o", "page.html", "--json"]) == 0
    assert answer(capsys) == {"verb": "report", "report": "page.html"}
    page = Path("page.html").read_text("utf-8")
    assert "69 held-out rows" in page and "evaluated on new.csv" in page
    assert "<title>Which penguin?</title>" in page
    assert "69 of 69 held-out rows are also among the training rows" in page
    assert main([*words, "--test", "nowhere.csv"]) == 4
    assert "nowhere.csv" in capsys.readouterr().err


def test_the_demo_leaves_everything_in_one_folder(tmp_path, capsys):
    assert main(["demo", str(tmp_path / "there"), "--json", "-q"]) == 0
    assert answer(capsys)["certificate"]["certified"]
    names = {path.name for path in (tmp_path / "there").iterdir()}
    assert names == {"penguins.csv", "penguins.linsep", "penguins.html"}


@pytest.fixture
def numbers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 3))
    label = np.where(X[:, 0] + rng.normal(size=900) > 0, "yes", "no")
    lines = [f"{a:.6f},{b:.6f},{c:.6f},{t}" for (a, b, c), t in zip(X, label, strict=True)]
    path = tmp_path / "numbers.csv"
    path.write_text("\n".join(["a,b,c,label", *lines]) + "\n")
    return path


def test_a_table_larger_than_the_limit_is_read_from_disk(numbers, tuned, capsys, without_figures):
    tuned(stored_in_memory=0)
    words = ["fit", str(numbers), "-t", "label", "--json", "--memory-limit", "10K"]
    assert main([*words, "--resume", "state", "--Cs", "3"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["certificate"]["certified"] and facts["reads"] > 1 and facts["report"]
    assert facts["test"]["rows"] == 225 and facts["test"]["score"] <= facts["test"]["bound"]
    assert not Path("state").exists()
    saved, table = linsep.load(facts["model_file"]), linsep.read_table(numbers, "label")
    with saved[0].to_disk(table) as rows:
        assert linsep.verify(saved[-1], rows, table.y).certified
    numbers.write_text(numbers.read_text().replace(",", ";").replace(".", ","))
    dialect = ["--delimiter", ";", "--decimal", ",", "--encoding", "latin-1", "--missing", "x"]
    words += ["--C", "1", "--test", "0", "--no-report", "--type", "a=category"]
    assert main([*words, *dialect]) == 0
    assert answer(capsys)["C"] == 1.0


def test_limits_that_are_none(numbers, capsys):
    words = ["fit", str(numbers), "-t", "label", "--memory-limit"]
    assert main([*words, "much"]) == 4
    assert "write a number of bytes" in capsys.readouterr().err
    assert main([*words, "1T", "--C", "1", "--no-report", "--resume", "state"]) == 0
    assert "fits in memory" in capsys.readouterr().err


@pytest.mark.parametrize("share", [pytest.param("0", marks=pytest.mark.slow), "0.25"])
def test_a_large_table_waits_in_a_file_and_gives_the_same_model(
    data, share, tuned, capsys, without_figures
):
    words = ["fit", str(data), "-t", "species", "--C", "1", "--test", share, "--json", "--report"]
    assert main([*words, "small.html"]) == 0
    small = answer(capsys)
    tuned(batches_kept=0, batches_piece=1000)
    assert main([*words, "large.html"]) == 0
    large = answer(capsys)
    assert large["certificate"] == small["certificate"] and large["test"] == small["test"]
    assert large["rows"] == 344
    assert Path("large.html").read_bytes() == Path("small.html").read_bytes()


def churned(n=200):
    """Rows with a column that was written down after the answer, one in another unit, a date, and noise."""
    rng = np.random.default_rng(0)
    age = rng.integers(18, 80, n)
    gone = age + rng.normal(0, 20, n) > 50
    for i in range(n):
        yield age[i], 12.5 * gone[i], "price" if gone[i] else "", 365.25 * age[i], i, gone[i]


@pytest.mark.parametrize("task", ["classify", pytest.param("regress", marks=pytest.mark.slow)])
def test_columns_that_know_too_much_are_named(data, task, capsys):
    lines = [
        f"{i + 1000 * g},{a},{r},{w},{d},{1 + i % 28}/3/2024,{'yes' if g else 'no'}"
        for a, r, w, d, i, g in churned()
    ]
    # the identifier, which tells the class too, is left out of the model in any case
    Path("c.csv").write_text("id,age,refund,reason,days,seen,churn\n" + "\n".join(lines) + "\n")
    target = "churn" if task == "classify" else "age"
    words = ["fit", "c.csv", "-t", target, "--task", task, "--C", "1", "--no-report", "--json"]
    assert main(words) == 0
    said = capsys.readouterr()
    named = [note.split("'")[1] for note in json.loads(said.out)["notes"]]
    assert named == (["refund", "reason"] if task == "classify" else ["days"])
    assert "--ignore 'refund'" in said.err or task == "regress"
    assert "dates are read as such if written 2024-01-31" in said.err
    assert main([*words, "--ignore", "refund", "--ignore", "reason", "--ignore", "days"]) == 0
    assert answer(capsys)["notes"] == []


def test_a_model_that_learned_nothing_is_told_so(data, capsys):
    rows = [f"{i * 7919 % 101},{int(i % 50 == 0)}" for i in range(400)]
    Path("rare.csv").write_text("x,fraud\n" + "\n".join(rows) + "\n")
    assert main(["fit", "rare.csv", "-t", "fraud", "--C", "1", "--no-report", "--json"]) == 0
    said = capsys.readouterr()
    test = json.loads(said.out)["test"]
    assert test["score"] == test["baseline"] == 0.02
    assert "baseline (always 0) 2.0 %" in said.err and "no better than the baseline" in said.err
    Path("rare.csv").write_text(
        "x,kind\n" + "".join(f"{i * i},{'ab'[i % 2] if i > 3 else 'c'}\n" for i in range(40))
    )
    assert main(["fit", "rare.csv", "-t", "kind", "--no-report", "--cv", "5"]) == 4
    assert "--cv" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("rare", "test", "then"),
    [(4, "0.25", "3 folds instead of 5"), (2, "0.5", "C = 1, without cross-validation")],
)
def test_rare_classes_get_fewer_folds(data, rare, test, then, capsys):
    kinds = ["c" if i < rare else "ab"[i % 2] for i in range(40)]
    rows = "".join(f"{i * i % 37},{kind}\n" for i, kind in enumerate(kinds))
    Path("rare.csv").write_text("x,kind\n" + rows)
    assert main(["fit", "rare.csv", "-t", "kind", "--no-report", "--test", test]) == 0
    said = capsys.readouterr().err
    assert f"to fit; using {then}\n" in said and "certified optimum" in said


def test_the_module_is_the_command():
    run = subprocess.run(
        [sys.executable, "-m", "linsep", "--version"], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == linsep.__version__


def test_the_held_out_error_is_that_of_a_model_without_the_row_numbers_that_the_saved_one_lacks(
    tmp_path, capsys
):
    # Part of the rows does not show that the column numbers them all.
    rng = np.random.default_rng(0)
    path = tmp_path / "rows.csv"
    pd.DataFrame({"a": range(80), "b": rng.normal(size=80), "y": np.arange(80) * 3.5}).to_csv(
        path, index=False
    )
    assert main(["fit", str(path), "--target", "y", "--no-report", "--json", "-q"]) == 0
    facts = answer(capsys)
    assert facts["features"] == 1 and facts["test"]["score"] < 0.5


def test_regression_on_text_is_an_error(data, capsys):
    for verb in ("fit", "tune"):
        assert main([verb, str(data), "--target", "species", "--task", "regress"]) == 4
        assert "--task regress needs a target of numbers" in capsys.readouterr().err


def test_prices_with_separators_are_numbers_if_asked_and_never_classes(tmp_path, capsys):
    path = tmp_path / "prices.csv"
    rows = "".join(f'{i * i % 23},"{1000 + 37 * (i * i % 23) + i:,}.50"\n' for i in range(60))
    path.write_text("size,price\n" + rows)
    words = ["fit", str(path), "-t", "price", "--no-report", "--C", "1"]
    assert main(words) == 4
    said = capsys.readouterr().err
    assert "'1,000.50' in the target, which holds numbers with grouped digits" in said
    assert "give --thousands ',', or predict it as a class with --task classify." in said
    assert main([*words, "--thousands", ","]) == 0
    assert "held-out R squared" in capsys.readouterr().err


GERMAN = ["--decimal", ",", "--thousands", ".", "--missing", "k.A."]


def german(path, number="{:,.2f}"):
    """Prices with decimal commas and separators of thousands, gaps called k.A., and a target."""
    rng = np.random.default_rng(4)
    swap = str.maketrans(",.", ".,")
    lines = ["price;size;bought"]
    for price, size in zip(rng.uniform(900, 9000, 60), rng.normal(size=60), strict=True):
        gap = "k.A." if size > 1.5 else f"{size:.4f}".translate(swap)
        lines.append(
            f"{number.format(price).translate(swap)};{gap};{'yes' if price > 4000 else 'no'}"
        )
    path.write_text("\n".join(lines) + "\n")
    return path


def test_new_files_are_read_as_the_training_file_was(tmp_path, capsys):
    path = german(tmp_path / "rows.csv")
    words = ["fit", str(path), "-t", "bought", "--C", "1", "--test", "0", "--no-report", "-q"]
    assert main([*words, *GERMAN]) == 0
    model = str(path.with_suffix(".linsep"))
    stored = linsep.load(model)[0].reading_
    assert (stored["target"], stored["decimal"], stored["thousands"]) == ("bought", ",", ".")
    table = linsep.read_table(path, **stored)
    assert np.isnan(table.values("size")).any() and table.values("price").max() > 1000.0
    for verb in ("verify", "score"):
        assert main([verb, model, str(path), "-q"]) == 0
    assert main(["predict", model, str(path), "--scores"]) == 0
    plain = capsys.readouterr().out
    assert main(["predict", model, str(path), "--scores", *GERMAN]) == 0
    assert capsys.readouterr().out == plain
    rows = tmp_path / "rows.npz"
    assert main(["convert", str(path), str(rows), "--like", model, "-t", "bought", "-q"]) == 0
    assert main(["verify", model, str(rows)]) == 0  # rows that are already encoded


def test_a_missing_column_is_not_mistaken_for_another_that_is_used(data, model, capsys):
    rows = [line.rsplit(",", 5)[0] for line in data.read_text().splitlines()]
    short = data.with_name("short.csv")
    short.write_text("\n".join(rows) + "\n")  # species, island, bill_length_mm
    assert main(["predict", str(model), str(short)]) == 4
    said = capsys.readouterr().err
    assert (
        "no column 'bill_depth_mm'; its columns are 'species', 'island', 'bill_length_mm'" in said
    )


def test_options_of_the_command_line_outrank_those_of_the_model(tmp_path, capsys):
    path = german(tmp_path / "rows.csv")
    words = ["fit", str(path), "-t", "bought", "--C", "1", "--no-report", "-q"]
    assert main([*words, *GERMAN]) == 0
    english = tmp_path / "english.csv"
    english.write_text("price;size\n1234.5;0.25\n4321.5;n/k\n")
    model = str(path.with_suffix(".linsep"))
    assert main(["predict", model, str(english)]) == 4
    assert "'1234.5' in column 'price'" in capsys.readouterr().err
    words = ["predict", model, str(english), "--decimal", ".", "--missing", "n/k"]
    assert main(words) == 0
    assert capsys.readouterr().out.split() == ["prediction", "no", "yes"]


def test_command_finds_pandas_for_pipelines_that_select_columns_by_name(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=40), "b": rng.choice(["x", "y"], 40)})
    labels = np.where(frame.a + (frame.b == "x") > 0.5, "yes", "no")
    steps = make_column_transformer((StandardScaler(), ["a"]), (OneHotEncoder(), ["b"]))
    model = make_pipeline(steps, linsep.LogisticRegression()).fit(frame, labels)
    linsep.save(model, tmp_path / "m.linsep")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    words = ["predict", str(tmp_path / "m.linsep"), str(tmp_path / "rows.csv")]
    code = f"import sys; sys.argv[1:] = {words!r}; from linsep.cli import command; command()"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["prediction", *model.predict(frame)]
