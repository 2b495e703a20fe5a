"""Docstrings of public names: every example runs and prints what it shows, and no section is missing."""

import doctest
import importlib
import inspect
import re
from pathlib import Path

import pytest

import linsep
import linsep.sklearn

SOURCE = Path(linsep.__file__).parent
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
SECTION = re.compile(r"^([A-Z][A-Za-z ]+)\n-{3,}$", re.MULTILINE)
RECORDS = {  # what functions return, and base classes: their attributes are listed, they have no call to show
    "bounds.Ball",
    "bounds.Bound",
    "bounds.MistakeBounds",
    "bounds.NotShattered",
    "bounds.RadonPartition",
    "bounds.Shattered",
    "losses.ConvexityCheck",
    "losses.CoupledLoss",
    "losses.DominationCheck",
    "losses.Loss",
}


def module_name(path):
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = sorted(
    module_name(path) for path in SOURCE.rglob("*.py") if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.fixture(autouse=True)
def no_figures_remain():
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    yield
    plt.close("all")


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of(name):
    found = doctest.testmod(importlib.import_module(name), optionflags=FLAGS)
    assert found.attempted and not found.failed


def public_names():
    """Public functions and classes by their dotted names, but for errors and records."""
    for name in linsep.__all__:
        thing = getattr(linsep, name)
        if name in ("errors", "ConvergenceWarning", "__version__"):
            continue
        if not inspect.ismodule(thing):
            yield name, thing
            continue
        members = getattr(thing, "__all__", None) or [
            key for key, value in vars(thing).items() if inspect.isfunction(value) and key[0] != "_"
        ]
        for member in members:
            full = f"{name}.{member}"
            if callable(getattr(thing, member)) and full not in RECORDS:
                yield full, getattr(thing, member)


PUBLIC = dict(public_names())
ESTIMATORS = [name for name, thing in PUBLIC.items() if {"fit", "predict"} <= set(dir(thing))]


def sections(thing):
    return set(SECTION.findall(inspect.getdoc(thing)))


@pytest.mark.parametrize("name", PUBLIC)
def test_the_sections_of(name):
    thing = PUBLIC[name]
    found = sections(thing)
    assert ">>> " in inspect.getdoc(thing)
    target = thing.__init__ if inspect.isclass(thing) else thing
    if set(inspect.signature(target).parameters) - {"self", "centre", "args", "kwargs"}:
        assert "Parameters" in found
    if inspect.isfunction(thing) and inspect.signature(thing).return_annotation != "None":
        assert found & {"Returns", "Yields"}
    assert "See Also" in found
    if inspect.isclass(thing) and name.startswith("losses."):
        assert "Notes" in found  # with the conjugate
    if name.startswith(("bounds.", "basis.")):
        assert "References" in found
    if name.startswith(("bounds.", "plot.")):
        assert "Raises" in found


@pytest.mark.parametrize("name", linsep.sklearn.__all__)
def test_a_drop_in_class_states_its_objective(name):
    text = inspect.getdoc(getattr(linsep.sklearn, name))
    assert {"See Also", "Notes", "Examples"} <= set(SECTION.findall(text))
    assert f"are those of ``sklearn.{'svm' if 'SV' in name else 'linear_model'}.{name}``" in text
    assert "``s_i`` is the sample weight" in text or name == "Perceptron"


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_documents_its_parameters_where_they_stand(name):
    text = inspect.getdoc(PUBLIC[name])
    assert {"Attributes", "Raises", "See Also", "Notes"} <= sections(PUBLIC[name])
    assert not re.search(r"^    As in ``", text, re.MULTILINE)
    for parameter in inspect.signature(PUBLIC[name].__init__).parameters:
        if parameter not in ("self", "args", "kwargs", "standardize", "normalized"):
            assert re.search(rf"^(\w+, )*{parameter}(, \w+)* : ", text, re.MULTILINE), parameter


def test_every_objective_defines_its_weights():
    for name in ESTIMATORS:
        text = inspect.getdoc(PUBLIC[name])
        if re.search(r"\bs_i\b", text):
            assert "``s_i`` is the sample weight" in text, name
