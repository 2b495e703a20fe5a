"""The structure of the source: what exists once, and where."""

import ast
import importlib
import re
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import linsep
from linsep import losses
from linsep.data import Dataset

SOURCE = Path(linsep.__file__).parent
ROOT = Path(__file__).parents[1]
#: Attributes that name a loss: code asks for facts instead (``linsep.losses.Loss``).
NAMING = {"name", "native"}
LOSS_NAMES = {*losses.NAMES, "multinomial", "crammer_singer"}


@cache
def modules() -> dict[str, str]:
    """Text of every module by its path below src/linsep."""
    return {
        path.relative_to(SOURCE).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(SOURCE.rglob("*.py"))
    }


@cache
def trees() -> dict[str, ast.Module]:
    """Syntax tree of every module by its path below src/linsep."""
    return {path: ast.parse(text) for path, text in modules().items()}


def defining(name: str) -> list[str]:
    """Modules that define a function or method of this name."""
    return [
        path
        for path, text in modules().items()
        if re.search(rf"\bdef {name}\b", text)
        for node in ast.walk(trees()[path])
        if isinstance(node, ast.FunctionDef) and node.name == name
    ]


def matching(pattern: str) -> set[str]:
    """Modules whose text, comments and docstrings included, matches a pattern."""
    return {path for path, text in modules().items() if re.search(pattern, text)}


def test_closing_sums_become_a_primal_and_a_dual_value_in_one_module():
    for name in ("balance", "mixture", "dual_value", "coupled_dual_value", "ridge_values"):
        floats = [path for path in defining(name) if not path.startswith("certificates/exact")]
        assert floats == ["problem/duality.py"], name  # rational numbers have a text of their own
    # the sides of a dual point, and the class sums of a coupled one
    readers = {"problem/duality.py", "solvers/dual_infeasibility.py"}
    assert matching(r"\.conj_(plus|minus)\b") <= readers
    assert matching(r"\bgap_of\b") == set()


def test_the_page_about_the_architecture_lists_the_layers_that_are_checked():
    root = Path(__file__).parents[1]
    page = (root / "docs" / "architecture.md").read_text(encoding="utf-8")
    listed = re.search(r"## Layers.*?```text\n(.*?)```", page, re.DOTALL)
    checked = re.search(r"layers = \[(.*?)\]", (root / "pyproject.toml").read_text(), re.DOTALL)
    assert listed is not None and checked is not None
    *layers, native = [re.split(r" {2,}", line)[0] for line in listed[1].splitlines()]
    assert native == "_kernels"
    assert ["__main__", *layers] == re.findall(r'"(.*?)"', checked[1])


def test_the_map_of_the_certificates_names_every_module():
    folders = {path.parent for path in (SOURCE / "certificates").rglob("__init__.py")}
    for folder in folders:
        text = importlib.import_module(
            ".".join(("linsep", *folder.relative_to(SOURCE).parts))
        ).__doc__
        names = {path.stem for path in folder.glob("*.py")} - {"__init__"}
        names |= {path.name for path in folders if path.parent == folder}
        assert names <= set(re.findall(r"``(\w+)``", text)), folder.name


def test_a_data_back_end_is_seven_methods():
    """Facts are attributes; everything else a data set offers is derived from these methods."""
    assert Dataset.__abstractmethods__ == {
        *("sums", "longest_sum", "row_state", "set_row_state"),
        *("sample", "columns", "close"),
    }


def test_code_outside_data_asks_where_rows_are_and_not_what_type_they_have():
    classes = "Memory|Disk|Cluster|Recorded|Scan|StoredRows|ClusterRows|ClusterScan|PersistedRows"
    tests = rf"isinstance\([^)\n]*\b(?:{classes})\b"
    found = {
        path: len(re.findall(tests, text))
        for path, text in modules().items()
        if not path.startswith("data/")
    }
    assert sum(found.values()) <= 2, {path: count for path, count in found.items() if count}


def strings(node):
    """Every string constant in a syntax tree."""
    return {
        found.value
        for found in ast.walk(node)
        if isinstance(found, ast.Constant) and isinstance(found.value, str)
    }


def is_name_of_a_loss(node):
    """Whether an expression reads the name of a loss: ``loss.name``, ``p.loss.native``, ``getattr(loss, "name")``."""
    if isinstance(node, ast.Attribute) and node.attr in NAMING:
        return ast.unparse(node.value).rsplit(".", 1)[-1].rstrip("_").endswith("loss")
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr":
        return (
            len(node.args) > 1
            and bool(strings(node.args[1]) & NAMING)
            and "loss" in ast.unparse(node.args[0])
        )
    return False


def name_tests(tree):
    """Comparisons of the name of a loss, and look-ups by it; ``is None`` asks whether there is a kernel."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            if all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
                continue
            sides = [node.left, *node.comparators]
            named = any(is_name_of_a_loss(side) for side in sides)
            by_attribute = any(isinstance(s, ast.Attribute) and s.attr == "native" for s in sides)
            if named or (by_attribute and any(strings(side) & LOSS_NAMES for side in sides)):
                yield node
        elif isinstance(node, ast.Subscript) and is_name_of_a_loss(node.slice):
            yield node


@pytest.mark.parametrize(
    "text",
    [
        'problem.loss.native == "hinge"',
        'loss.name in ("logistic", "exponential")',
        "loss.native not in LOSSES",
        'getattr(loss, "name", "") == "hinge"',
        "TABLE[loss.native]",
        'given.native == "absolute"',
    ],
)
def test_a_test_of_a_name_is_recognised(text):
    assert list(name_tests(ast.parse(text)))


def test_whether_a_kernel_exists_may_be_asked():
    assert not list(name_tests(ast.parse('loss.native is None or score.name != "error"')))


def test_no_code_outside_losses_asks_for_the_name_of_a_loss():
    found = [
        f"{path}:{node.lineno}: {ast.unparse(node)}"
        for path, tree in trees().items()
        if not path.startswith("losses/")
        for node in name_tests(tree)
    ]
    assert not found, "\n".join(found)


def test_a_fit_is_constructed_in_one_function():
    found = [
        (path, node.name)
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Fit"
    ]
    assert found == [("train.py", "conclude")]


def test_tuning_names_the_private_methods_that_it_calls_in_one_protocol():
    private = r"getattr\(estimator, \"_|estimator\._[a-z]"
    assert {path for path in matching(private) if path.startswith("tuning/")} == set()


def test_docstrings_can_be_read_alone():
    """A tooltip shows the first line: it says what it is about, and does not point to a neighbour."""
    openings = ("The same", "Of ", "As ", "These ", "Those ", "Such ")
    found = [
        f"{path}:{node.lineno}"
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        if (ast.get_docstring(node) or "").startswith(openings)
    ]
    assert not found, found


def test_tests_set_tuned_numbers_by_their_names_in_one_table():
    patched = re.compile(r"setattr\([\w.]+, \"_?[A-Z][A-Z_]+\"")
    files = Path(__file__).parent.rglob("*.py")
    assert [path.name for path in files if patched.search(path.read_text(encoding="utf-8"))] == []


def test_the_types_of_arrays_are_named_in_one_module():
    assert matching(r"(?m)^\w+ = npt\.NDArray\[np\.float64\]$") == {"arrays.py"}
    assert matching(r"(?m)^IntArray = npt\.NDArray\[np\.int64\]$") == {"arrays.py"}


SCRIPTS = sorted(
    path for folder in ("benchmarks", "examples", ".ci") for path in (ROOT / folder).rglob("*.py")
)


def of_linsep(tree: ast.Module) -> dict[str, tuple[str, str]]:
    """Return what a script imports from linsep: local name -> module and name there."""
    return {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "linsep"
        for alias in node.names
    }


def found_in(module: str, name: str) -> object:
    """Return a name of a module, which may be a module itself."""
    owner = importlib.import_module(module)
    return (
        getattr(owner, name)
        if hasattr(owner, name)
        else importlib.import_module(f"{module}.{name}")
    )


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_scripts_use_names_of_linsep_that_exist(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    known = {local: found_in(*place) for local, place in of_linsep(tree).items()}
    used = {
        (node.value.id, node.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and isinstance(known.get(node.value.id), ModuleType)
    }
    assert [f"{local}.{name}" for local, name in used if not hasattr(known[local], name)] == []
