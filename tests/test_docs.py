"""Run every Python block and every command of the README and the docs, and every example.

The blocks of a page run in order in one namespace. Where a ``text`` block follows a Python block
directly, it is what the block prints: words must agree exactly, numbers to six digits, except numbers
below 1e-2 (gaps, errors), whose size depends on the machine.
"""

import contextlib
import importlib
import inspect
import io
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import warnings
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression as Other

import linsep
from linsep import LogisticRegression, audit
from linsep.cli import main
from linsep.solvers import SOLVERS

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs").glob("[ln]*/*.md")),  # lessons, notebooks
]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
GALLERY = sorted((ROOT / "examples" / "gallery").glob("*/plot_*.py"))
LONG = ("figures.py", "picture.py", "cluster.py")  # many figures, several processes: slow
# A second or two each.
LONG_PAGES = ("figures.md", "penalties.md", "report.md", "scaling.md", "zero-one.md")
EXAMPLES = [
    pytest.param(path, marks=[pytest.mark.slow] if path.name in LONG else [])
    for path in sorted((ROOT / "examples").glob("*.py"))
]
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n*```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def same_number(a: str, b: str) -> bool:
    x, y = float(a), float(b)
    return abs(x - y) <= 1e-6 * max(abs(x), abs(y)) or max(abs(x), abs(y)) < 1e-2


def same_output(printed: str, promised: str) -> bool:
    words = [NUMBER.sub("#", text).split() for text in (printed, promised)]
    numbers = [NUMBER.findall(text) for text in (printed, promised)]
    return words[0] == words[1] and all(map(same_number, *numbers))


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] if page.name in LONG_PAGES else [])
        for page in PAGES
    ],
    ids=relative,
)
def test_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    namespace = {"__name__": "__main__"}
    for block in BLOCK.finditer(text):
        line = text[: block.start()].count("\n") + 1
        code = compile("\n" * line + block[1], str(page), "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        if block[2] is not None:
            assert same_output(printed.getvalue(), block[2]), (
                f"{page}:{line} prints\n{printed.getvalue()}"
            )
    for figure in re.findall(r'savefig\("(.*?)"\)', text):
        assert (tmp_path / figure).exists()


def run_python(folder, *words):
    """What a Python process prints that has to end well."""
    command = [sys.executable, *words]
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=relative)
def test_example(example, tmp_path):
    assert run_python(tmp_path, "-W", "error", str(example), str(tmp_path)).strip()


@pytest.mark.slow  # `make docs` runs them too, in a kernel
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(notebook, capsys):
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    namespace = {"__name__": "__main__"}
    for cell in json.loads(notebook.read_text())["cells"]:
        if cell["cell_type"] == "code":
            assert not cell["outputs"], "commit notebooks without their outputs"
            exec("".join(cell["source"]), namespace)
    plt.close("all")
    assert capsys.readouterr().out


@pytest.mark.slow  # `make docs` runs them too
@pytest.mark.parametrize("example", GALLERY, ids=lambda path: path.stem)
def test_gallery_example_draws_a_figure(example, capsys, monkeypatch):
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    plt.close("all")  # pages of the documentation leave theirs open
    monkeypatch.setattr(plt, "show", lambda: None)
    with warnings.catch_warnings():  # examples may silence some
        runpy.run_path(str(example), run_name="__main__")
    assert len(plt.get_fignums()) == 1
    assert capsys.readouterr().out.strip()
    plt.close("all")


def test_links_lead_somewhere():
    for page in PAGES:
        prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\(([^)#\s]+)", prose):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page}: {target}"


def test_the_page_of_a_package_index_has_no_relative_links():
    settings = pytest.importorskip("tomllib").loads((ROOT / "pyproject.toml").read_text())
    page = (ROOT / "README.md").read_text()
    for rule in settings["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"][
        "substitutions"
    ]:
        page = re.sub(rule["pattern"], rule["replacement"], page)
    assert "*Figure: " in page and not re.search(r"\]\((?!https?:)", page)


def test_advice_to_install_names_packages_that_an_index_has():
    advice = re.findall(r"pip install ([^.`\n]+)", "\n".join(sources()))
    assert advice and not any("linsep" in words for words in advice)


def test_before_and_after_in_the_readme():
    X, y = load_breast_cancer(return_X_y=True)
    (block,) = re.findall(r"^```diff\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
    before, after = ({"X": X, "y": y}, {"X": X, "y": y})
    with pytest.warns(ConvergenceWarning, match="lbfgs failed to converge"):
        exec("\n".join(re.findall(r"^-(.*)", block, re.M)), before)
    exec("\n".join(re.findall(r"^\+(.*)", block, re.M)), after)
    assert after["model"].certificate_.certified
    assert not audit(before["model"], X, y).optimal


def test_every_solver_is_on_its_page():
    page = (ROOT / "docs" / "how-to-choose-a-solver.md").read_text()
    assert all(f"| `{name}` |" in page for name in SOLVERS)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_the_readme_promises_the_same_bits_for_any_number_of_threads(kind):
    rng = np.random.default_rng(0)
    # Many blocks, so that threads do share the work.
    X = rng.standard_normal((400_000, 20)).astype(kind)
    y = X @ rng.standard_normal(20) + rng.logistic(size=len(X)) > 0
    one, *others = (LogisticRegression(n_threads=count).fit(X, y) for count in (1, 2, 3, 8))
    for other in others:
        assert np.array_equal(one.coef_, other.coef_)
        assert np.array_equal(one.intercept_, other.intercept_)
        assert one.certificate_ == other.certificate_


@pytest.mark.parametrize(
    ("printed", "promised", "same"),
    [
        ("gap 3.1e-09 of 12.345678", "gap 2.0e-10 of 12.345678", True),
        ("objective 12.345678", "objective 12.345778", False),
        ("certified", "not certified", False),
    ],
)
def test_same_output(printed, promised, same):
    assert same_output(printed, promised) is same


def test_every_public_name_is_in_the_reference():
    entries = (ROOT / "docs" / "reference.md").read_text()
    listed = set(re.findall(r"^   (?:\w+\.)*(\w+)$", entries, re.MULTILINE))
    modules = set(re.findall(r"automodule:: linsep\.(\w+)", entries))
    for name in linsep.__all__:
        home = getattr(linsep, name)
        if name in modules or name == "__version__":
            continue
        members = home.__all__ if inspect.ismodule(home) else [name]
        missing = {m for m in members if callable(getattr(home, m, home))} - listed
        assert not missing, f"{name}: {missing} have no reference page"


def test_every_drop_in_class_is_in_the_reference():
    import linsep.sklearn

    entries = (ROOT / "docs" / "reference.md").read_text()
    assert all(f"   sklearn.{name}\n" in entries for name in linsep.sklearn.__all__)


def sources():
    return [path.read_text() for path in (ROOT / "src" / "linsep").rglob("*.py")]


def test_links_to_scikit_learn_name_what_it_has():
    external = runpy.run_path(str(ROOT / "docs" / "external.py"))["SKLEARN"]
    known = {name for names in external.values() for name in names}
    for name in known:
        module, _, member = name.rpartition(".")
        assert hasattr(importlib.import_module(module), member)
    linked = re.findall(r"^ +(sklearn\.[\w.]+) : ", "\n".join(sources()), re.MULTILINE)
    assert set(linked) == known


def test_every_typeset_formula_is_in_a_docstring():
    formulas = runpy.run_path(str(ROOT / "docs" / "formulas.py"))
    text = "\n".join(sources())
    for line in formulas["DISPLAYED"]:
        assert f"    {line}\n" in text
    for span in formulas["INLINE"]:
        assert f"``{span}``" in text


# Commands: lines of ``sh`` blocks that call linsep run on files of these names; others name what exists.
SHELL_BLOCK = re.compile(
    r"^```sh\n(.*?)^```\n(?:\n*```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL
)
COMMANDS = [
    page for page in [*PAGES, ROOT / "CONTRIBUTING.md"] if SHELL_BLOCK.search(page.read_text())
]
FAST = ("CONTRIBUTING.md", "docs/benchmarks.md")
MAKEFILE = (ROOT / "Makefile").read_text()
EXTRAS = (ROOT / "pyproject.toml").read_text()


def write_files(folder):
    """Write all files that the commands read."""
    penguins = pd.read_csv(files("linsep.cli") / "data" / "penguins.csv")
    penguins.to_csv(folder / "penguins.csv", index=False)
    penguins.rename(columns={"species": "churn"}).to_csv(folder / "customers.csv", index=False)
    penguins.drop(columns="species").head().to_csv(folder / "new.csv", index=False)
    shutil.copy(ROOT / "examples" / "accel" / "train.py", folder)
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").touch()
    shutil.copy(ROOT / "examples" / "accel" / "train.py", folder / "package")
    X, y = linsep.datasets.overlapping(60)
    lines = [f"{int(label)} 1:{a!r} 2:{b!r}\n" for label, (a, b) in zip(y, X.tolist(), strict=True)]
    for name in ("rows.libsvm", "data.svm"):
        (folder / name).write_text("".join(lines))
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y}).to_csv(folder / "data.csv", index=False)
    fitted = Other().fit(pd.DataFrame(X, columns=["a", "b"]), y)
    ours = LogisticRegression().fit(X, y)
    linsep.save(ours, folder / "model.linsep", data=(X, y))
    np.savez(folder / "rows.npz", X=X, y=y)
    rows = [("a", fitted.coef_[0, 0]), ("b", fitted.coef_[0, 1]), ("intercept", *fitted.intercept_)]
    pd.DataFrame(rows, columns=["name", "coefficient"]).to_csv(folder / "coef.csv", index=False)
    return fitted, ours


def write_models(folder, fitted, ours):
    """Write model files of other libraries."""
    import skops.io
    from liblinear.liblinearutil import save_model, svm_read_problem, train

    skops.io.dump(fitted, folder / "model.skops")
    (folder / "model.onnx").write_bytes(linsep.export.onnx(ours))
    labels, rows = svm_read_problem(str(folder / "data.svm"))
    save_model(str(folder / "liblinear-model.txt"), train(labels, rows, "-s 0 -c 1 -e 1e-8 -q"))


def call(line, folder):
    """Run a line that calls linsep, or find what another one calls; returns what it prints, or None."""
    command = line.partition(" #")[0].partition(" > ")[0].partition(" | ")[0]
    command = command.replace("source <(", "").replace(")", "")
    words = shlex.split(command)
    if words[0] == "linsep":
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = main(words[1:])
        # 3: an audited model of another library may be short of its optimum
        assert code == 0 or (words[1] == "audit" and code == 3), printed.getvalue()
        return printed.getvalue()
    if words[0] == "python":
        if words[1].endswith(".py"):
            words[1] = str(ROOT / words[1])
        run_python(folder, *words[1:])
    elif words[0] == "make":
        assert re.search(rf"^{words[1]}:", MAKEFILE, re.MULTILINE), line
    elif words[0] == "pip":
        extra = re.search(r"\[(\w+)\]", command)
        assert extra is None or f"\n{extra[1]} = [" in EXTRAS
    elif words[0] == ".venv-bench/bin/python" or words[0].startswith(".ci/"):
        assert (ROOT / (words[1] if "python" in words[0] else words[0])).exists()
    else:
        assert words[0] in ("git", "train"), f"neither run nor checked: {line}"
    return None


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[] if relative(page) in FAST else [pytest.mark.slow])
        for page in COMMANDS
    ],
    ids=relative,
)
def test_the_commands_of(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    models = write_files(tmp_path)
    if "model.skops" in page.read_text():
        write_models(tmp_path, *models)
    for block in SHELL_BLOCK.finditer(page.read_text()):
        printed = [call(line, tmp_path) for line in block[1].splitlines() if line.strip()]
        if block[2] is not None:
            assert same_output("".join(filter(None, printed)), block[2]), printed


@pytest.mark.parametrize("page", [*PAGES, *ROOT.glob("[A-Z]*.md")], ids=relative)
def test_prose_is_wrapped(page):
    """Prose has at most 120 characters in a line; tables, code, formulas and images may have more."""
    text = re.sub(r"^ *(`{3,}).*?^ *\1 *$|^\$\$$.*?^\$\$$", "", page.read_text(), flags=re.M | re.S)
    long = [line for line in text.splitlines() if len(line) > 120]
    assert [line for line in long if not line.lstrip().startswith(("|", "!["))] == []
