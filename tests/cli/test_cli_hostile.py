"""The command line among hostile names, closed pipes and odd surroundings; its codes and its JSON are as documented."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import os
import re
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import linsep
from linsep.cli import fitting, main
from linsep.cli.commands import VERBS

COMMAND = [sys.executable, "-m", "linsep.cli"]
PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"
FAST = ["--C", "1", "--test", "0", "--no-report", "-q"]

# Names that columns and classes may have.
NAMES = {
    "script": "<script>alert(1)</script>",
    "image": '"><img src=x onerror=alert(1)>',
    "single quotes": "'><svg onload=alert(1)>",
    "end of everything": "</td></table></style></title></script><b>",
    "comment": "<!-- --><!--><script>",
    "cdata": "<![CDATA[<script>alert(1)</script>]]>",
    "entity": "&lt;script&gt;&#60;&quot;",
    "template": "{{ 7 * 7 }}{% for x in y %}{#",
    "link": "javascript:alert(1)",
    "style": "x;background:url(//evil.example/a)",
    "formula": "=HYPERLINK(0)",
    "at": "@SUM(1+1)",
    "plus": "+1+cmd|' /C calc'!A0",
    "mathematics": "$\\frac{1}{0}$ \\input{/etc/passwd}",
    "escape sequences": "\x1b[31mred\x1b]0;title\x07",
    "right to left": "\u202egnp.exe",
    "zero width": "a\u200bb\u2060c",
    "path": "../../etc/passwd",
    "Windows path": "C:\\temp\\..\\x.csv",
    "format": "%s%n{0.__class__}",
    "SQL": "x'); DROP TABLE data;--",
    "long": "n" * 5000,
}


def written(path: Path, names: list[str], labels: tuple[str, str]) -> Path:
    """A table with these columns and classes."""
    rng = np.random.default_rng(0)
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow([*names, "y"])
        for i in range(40):
            out.writerow([*np.round(rng.standard_normal(len(names)), 3), labels[i % 2]])
    return path


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A folder with a table, a model and a report full of those names."""
    folder = tmp_path_factory.mktemp("hostile")
    here = os.getcwd()
    os.chdir(folder)
    try:
        labels = (NAMES["script"], NAMES["formula"])
        written(folder / "t.csv", list(NAMES.values()), labels)
        assert main(["fit", "t.csv", "-t", "y", "--C", "1", "-q", "--model", "logistic"]) == 0
    finally:
        os.chdir(here)
    return folder


@pytest.mark.slow
def test_names_stay_text_in_the_report(hostile, tmp_path, monkeypatch):
    harmless = [f"column{j}" for j in range(len(NAMES))]
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "t.csv", harmless, ("no", "yes"))
    assert main(["fit", "t.csv", "-t", "y", "--C", "1", "-q"]) == 0
    pages = [(folder / "t.html").read_text("utf-8") for folder in (hostile, tmp_path)]
    elements = [re.findall(r"<([a-zA-Z/!][^\s>]*)", page) for page in pages]
    assert elements[0] == elements[1]  # no element more, none less
    assert len(pages[0]) < 2_000_000
    assert "onerror=" not in re.sub("onerror=alert", "", pages[0])
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", pages[0])
    assert "default-src &#39;none&#39;" in pages[0]


def test_nothing_is_written_elsewhere(hostile):
    assert sorted(path.name for path in hostile.rglob("*")) == ["t.csv", "t.html", "t.linsep"]


@pytest.mark.parametrize("verb", ["explain", "fit", "score"])
def test_names_cannot_command_a_terminal(hostile, verb, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model, data = str(hostile / "t.linsep"), str(hostile / "t.csv")
    words = {
        "explain": ["explain", model, "--top", "99"],
        "fit": ["fit", data, "-t", "y", *FAST[:-1], "-o", "m.linsep"],
        "score": ["score", model, data, "-t", "yy"],
    }[verb]
    assert main(words) in (0, 4)
    said = capsys.readouterr()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", said.out + said.err)
    assert said.err


def test_predictions_for_a_spreadsheet(hostile, capsys):
    model, data = str(hostile / "t.linsep"), str(hostile / "t.csv")
    assert main(["predict", model, data, "--proba"]) == 0
    plain = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert main(["predict", model, data, "--proba", "--spreadsheet"]) == 0
    guarded = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert "=HYPERLINK(0)" in {row[0] for row in plain}
    assert not [cell for row in guarded for cell in row if cell[:1] in set("=+-@\t\r")]
    assert [row[1:] for row in guarded[1:]] == [row[1:] for row in plain[1:]]  # numbers are numbers


def test_names_are_quoted_in_sql(hostile, capsys):
    model, data = str(hostile / "t.linsep"), hostile / "t.csv"
    assert main(["export", model, "--to", "sql"]) == 0
    query = capsys.readouterr().out
    names, *rows = csv.reader(io.StringIO(data.read_text("utf-8")))
    with contextlib.closing(sqlite3.connect(":memory:")) as base:
        base.create_function("EXP", 1, math.exp)
        quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
        base.execute(f"CREATE TABLE data ({quoted})")
        numbers = [[*map(float, row[:-1]), row[-1]] for row in rows]
        base.executemany(f"INSERT INTO data VALUES ({', '.join('?' * len(names))})", numbers)
        found = [row[1] for row in base.execute(query)]
    assert main(["predict", model, str(data)]) == 0
    expected = [row[0] for row in csv.reader(io.StringIO(capsys.readouterr().out))][1:]
    assert found == expected


def test_the_numeric_part_and_its_columns(tables, capsys):
    """What ``export --numeric`` takes is what ``convert --like`` writes."""
    Path("levels.csv").write_text("c,y\n" + "a,no\nb,yes\na,no\nb,yes\nb,no\n" * 4)
    assert main(["fit", "levels.csv", "-t", "y", *FAST, "-o", "levels.linsep"]) == 0
    assert main(["export", "levels.linsep", "--to", "onnx", "-o", "m.onnx"]) == 4
    assert "--numeric" in capsys.readouterr().err
    assert main(["export", "m.linsep", "--to", "python", "--numeric", "-o", "s.py", "-q"]) == 0
    assert main(["convert", "u.csv", "u.npz", "-t", "y", "--like", "m.linsep", "-q"]) == 0
    scorer = {}
    exec(Path("s.py").read_text(), scorer)
    saved = linsep.load("m.linsep")
    X = np.load("u.npz")["X"]
    again = saved[0].transform(linsep.read_table("u.csv", "y"))
    assert np.array_equal(X, again)
    found = [scorer["predict"](row.tolist()) for row in X]
    assert found == saved[-1].predict(X).tolist()
    linsep.save(saved[-1], "bare.linsep")
    assert main(["convert", "u.csv", "u.npz", "-t", "y", "--like", "bare.linsep"]) == 4
    assert "holds no encoder" in capsys.readouterr().err


CODES = {
    "done": (["separate", "t.csv", "-t", "y"], 0),
    "no verb": ([], 2),
    "unknown option": (["fit", "t.csv", "--nonsense"], 2),
    "not a number": (["fit", "t.csv", "--C", "much"], 2),
    "missing package": (["fit", "t.csv", "-t", "y", "--config", "t.csv"], 2),
    "not certified": (["fit", "t.csv", "-t", "y", "--tol", "1e-18", *FAST], 3),
    "certificate of other rows": (["verify", "m.linsep", "u.csv", "-t", "y"], 3),
    "nothing to prove": (["fit", "t.csv", "-t", "y", "--tol", "2", *FAST], 4),
    "no such file": (["fit", "nowhere.csv", "-t", "y"], 4),
    "no such folder": (["fit", "t.csv", "-t", "y", *FAST, "-o", "no/such/m.linsep"], 4),
    "folder as output": (["fit", "t.csv", "-t", "y", *FAST, "-o", "."], 4),
    "not a model": (["explain", "t.csv"], 5),
    "time is up": (["fit", "t.csv", "-t", "y", "--tol", "1e-15", "--time-limit", "1e-9", *FAST], 6),
}


@pytest.fixture
def tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "t.csv", ["a", "b"], ("no", "yes"))
    written(tmp_path / "u.csv", ["a", "b"], ("yes", "no"))
    (tmp_path / "coef.csv").write_text("name,coefficient\na,1\nb,0\nintercept,0.5\n")
    assert main(["fit", "t.csv", "-t", "y", *FAST, "-o", "m.linsep"]) == 0


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", CODES)
def test_exit_codes(tables, case, capsys):
    words, code = CODES[case]
    assert main(words) == code
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert code == 0 or said or "-q" in words


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 6, "not enough memory"),
        (ImportError("no module of that name"), 2, "no module of that name"),
        (FileNotFoundError(2, "No such file", "a.csv"), 4, "a.csv: no such file (relative to"),
        (FileNotFoundError(2, "No such file", "/a.csv"), 4, "/a.csv: no such file."),
        (PermissionError(13, "Permission denied", "b.csv"), 4, "b.csv: Permission denied."),
    ],
)
def test_what_may_happen_to_any_verb(tables, error, code, text, monkeypatch, capsys):
    def run(options):
        raise error

    monkeypatch.setattr(fitting, "run", run)
    assert main(["fit", "t.csv", "-t", "y", "--json"]) == code
    said = capsys.readouterr()
    assert json.loads(said.out)["code"] == code and text in said.err


def documented() -> dict[str, set[str]]:
    """Verb -> keys, from the page."""
    rows = re.findall(r"^\| (`\w+`|any error) \| (`.*) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    return {
        verb.strip("`"): set(" ".join(re.findall("`([^`]+)`", keys)).split()) for verb, keys in rows
    }


JSON = {
    "fit": ["fit", "t.csv", "-t", "y", *FAST],
    "tune": ["tune", "t.csv", "-t", "y", "--Cs", "2", "--cv", "2"],
    "predict": ["predict", "m.linsep", "t.csv"],
    "score": ["score", "m.linsep", "t.csv", "-t", "y"],
    "separate": ["separate", "t.csv", "-t", "y"],
    "verify": ["verify", "m.linsep", "t.csv", "-t", "y"],
    "audit": ["audit", "t.csv", "-t", "y", "--coef", "coef.csv"],
    "explain": ["explain", "m.linsep"],
    "report": ["report", "m.linsep", "t.csv", "-t", "y"],
    "export": ["export", "m.linsep", "--to", "sql"],
    "convert": ["convert", "t.csv", "t.npz", "-t", "y"],
    "completion": ["completion", "bash"],
    "any error": ["explain", "t.csv"],
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("verb", JSON)
def test_json_is_as_documented(tables, verb, capsys):
    main([*JSON[verb], "--json"])
    facts = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    allowed = documented()[verb] | {"verb"}
    optional = {
        "fit": {"test", "reads", "rounds", "bytes_sent", "bytes_received"},
        "score": {"r_squared"},
        "separate": {"margin", "rows", "weights"},
    }
    assert set(facts) <= allowed
    assert allowed - optional.get(verb, set()) <= set(facts)
    if "certificate" in facts:
        assert set(facts["certificate"]) == {
            *"primal dual gap relative_gap coef_error tol rounding certified kind".split()
        }


def test_every_verb_has_its_keys_documented():
    assert {*VERBS, "any error"} - {"demo"} <= set(documented())


def test_paths_with_blanks_and_backslashes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    name = "C:\\my data\\t; rm -rf $HOME.csv"
    written(tmp_path / name, ["a"], ("no", "yes"))
    assert main(["fit", name, "-t", "y", *FAST, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["model_file"] == name[:-4] + ".linsep"
    assert (tmp_path / f"{name[:-4]}.linsep").exists()


@pytest.mark.slow
def test_a_reader_that_leaves(tables):
    """``linsep predict ... | head -1`` ends quietly."""
    data = Path("t.csv")
    head, rows = data.read_text().split("\n", 1)
    data.write_text(head + "\n" + rows * 3000)
    run = subprocess.Popen(
        [*COMMAND, "predict", "m.linsep", "t.csv"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert run.stdout.readline() == b"prediction\n"
    run.stdout.close()
    assert run.stderr.read() == b"" and run.wait(60) == 0
    run.stderr.close()


@pytest.mark.slow
def test_no_home_no_terminal_and_a_locale_of_ascii(hostile, tmp_path):
    """Results are UTF-8 whatever the locale; nothing is coloured where there is no terminal."""
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "POSIX", "PYTHONIOENCODING": "ascii"}
    rows = [f"{x * x % 17},{'öl' if x % 3 else 'naïve'}" for x in range(30)]
    (tmp_path / "ü.csv").write_text("\n".join(["größe,y", *rows]), encoding="utf-8")
    fit = [*COMMAND, "fit", "ü.csv", "-t", "y", "--C", "1", "--test", "0", "--no-report"]
    model = linsep.LogisticRegression().fit(
        np.arange(30.0)[:, None], [r.split(",")[1] for r in rows]
    )
    linsep.save(model, tmp_path / "bare.linsep")
    done = subprocess.run(fit, cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b"\x1b" not in done.stderr
    done = subprocess.run(
        [*COMMAND, "explain", "bare.linsep"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0 and "öl" in done.stdout.decode("utf-8")


@pytest.mark.slow
def test_an_interrupt_ends_it(tables):
    """Ctrl-C: code 130 and one line, no traceback."""
    code = (
        "import sys, time; from linsep.cli import main, separating\n"
        "def run(options):\n    print('ready', flush=True); time.sleep(60)\n"
        "separating.run = run; sys.exit(main(['separate', 't.csv', '-t', 'y']))"
    )
    run = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert run.stdout.readline() == b"ready\n"
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=60)
    assert run.returncode == 130 and said == b"linsep: interrupted\n"
