"""The page that maps the lecture notes to linsep: every item is there, every name exists, every line is true."""

import contextlib
import importlib
import re
from functools import reduce
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
PAGE = (TESTS.parent / "docs" / "lectures.md").read_text()
CODE = re.compile(r"`([^`]+)`")


def rows(text):
    """Cells of every table row that begins with a number."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and cells[0].isdigit():
            yield int(cells[0]), cells[1:]


ROWS = list(rows(PAGE))


def resolve(name):
    """The object of a dotted public name, a module or an attribute."""
    with contextlib.suppress(ModuleNotFoundError):
        return importlib.import_module(name)
    module, *attributes = name.split(".")
    return reduce(getattr, attributes, importlib.import_module(module))


@pytest.fixture(scope="module")
def namespace():
    space = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        exec(block, space)
    return space


def test_every_item_is_there_once_and_in_order():
    assert [number for number, _ in ROWS] == list(range(1, 82))
    assert all(len(cells) == 4 for _, cells in ROWS)


@pytest.mark.parametrize(("number", "cells"), ROWS, ids=lambda value: str(value)[:3])
def test_the_item(number, cells, namespace):
    _, names, line, tests = (CODE.findall(cell) for cell in cells)
    assert names
    assert all(name.startswith("linsep.") for name in names)
    assert all(resolve(name) is not None for name in names)
    assert len(line) == 1
    assert eval(line[0], namespace), f"item {number}: {line[0]}"
    assert tests
    for test in tests:
        file, _, name = test.partition("::")
        (found,) = TESTS.rglob(f"{file}.py")
        assert re.search(rf"^ *def {name}\(", found.read_text(), re.MULTILINE), test
