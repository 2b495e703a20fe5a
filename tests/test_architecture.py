"""The structure of the source: what exists once, and where."""

import ast
import re
from pathlib import Path

import linsep
from linsep.data import Dataset

SOURCE = Path(linsep.__file__).parent


def modules() -> dict[str, str]:
    """Text of every module by its path below src/linsep."""
    return {
        path.relative_to(SOURCE).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(SOURCE.rglob("*.py"))
    }


def defining(name: str) -> list[str]:
    """Modules that define a function or method of this name."""
    return [
        path
        for path, text in modules().items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.name == name
    ]


def matching(pattern: str) -> set[str]:
    """Modules whose text, comments and docstrings included, matches a pattern."""
    return {path for path, text in modules().items() if re.search(pattern, text)}


def test_closing_sums_become_a_primal_and_a_dual_value_in_one_module():
    for name in ("balance", "mixture", "dual_value", "coupled_dual_value", "ridge_values"):
        assert defining(name) == ["problem/duality.py"], name
    # the sides of a dual point, and the class sums of a coupled one
    readers = {"problem/duality.py", "solvers/dual_infeasibility.py"}
    assert matching(r"\.conj_(plus|minus)\b") <= readers
    assert matching(r"\bgap_of\b") == set()


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
    assert sum(found.values()) <= 12, {path: count for path, count in found.items() if count}
