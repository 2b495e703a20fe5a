"""Every example in a docstring runs and prints what it shows."""

import doctest
import importlib
from pathlib import Path

import pytest

import linsep

SOURCE = Path(linsep.__file__).parent
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def module_name(path):
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = sorted(
    module_name(path) for path in SOURCE.rglob("*.py") if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of(name):
    found = doctest.testmod(importlib.import_module(name), optionflags=FLAGS)
    assert found.attempted and not found.failed
