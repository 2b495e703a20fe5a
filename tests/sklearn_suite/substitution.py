"""A pytest plugin that runs scikit-learn's own tests on the classes of ``linsep.sklearn``.

Wherever a module of scikit-learn holds one of its own classes that ``linsep.sklearn`` has too, ours takes its place
before tests are collected. Cases listed in ``deselected.md`` are expected to fail, each for the reason given there:
one that passes (unless it depends on rounding), or that is not there any more, fails the run.
"""

import sys
from importlib import import_module
from pathlib import Path

import pytest

import linsep.sklearn as ours
from linsep.sklearn import fitting

MODULES = ("sklearn.linear_model", "sklearn.svm")
TABLE = Path(__file__).parent / "deselected.md"
ROUNDING = "(depends on rounding)"  # such a case may pass with the kernels of some instruction sets
MOST = 40  # cases that may be deselected


def originals():
    """{scikit-learn's class: ours}."""
    found = {}
    for name in ours.__all__:
        for module in map(import_module, MODULES):
            if hasattr(module, name):
                found[getattr(module, name)] = getattr(ours, name)
    return found


def substitute():
    """Put our classes into every module of scikit-learn that has been loaded."""
    classes = originals()
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "sklearn" and module is not None:
            for attribute, value in list(vars(module).items()):
                if isinstance(value, type) and value in classes:
                    setattr(module, attribute, classes[value])


def listed():
    """{"file::test[parameters]": reason}, from the table ``| file | case | reason |``."""
    rows = [line.strip("| \n").split(" | ") for line in TABLE.read_text().splitlines()[2:]]
    return {f"{file}::{case.strip('`')}": reason for file, case, reason in rows}


COUNTS = {"minimised": 0, "left to scikit-learn": 0}


def counted(function, what):
    def counting(*args, **given):
        COUNTS[what] += 1
        return function(*args, **given)

    return counting


substitute()
fitting.minimise = counted(fitting.minimise, "minimised")
fitting.delegating = counted(fitting.delegating, "left to scikit-learn")


def pytest_sessionfinish(session):
    output = getattr(session.config, "workeroutput", None)
    if output is not None:  # a worker tells the session that started it
        output["fits"] = dict(COUNTS)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    for what, number in node.workeroutput.get("fits", {}).items():
        COUNTS[what] += number


def pytest_terminal_summary(terminalreporter):
    fits = ", ".join(f"{number:,} {what}" for what, number in COUNTS.items())
    terminalreporter.write_line(f"fits through linsep.sklearn: {fits}")


def pytest_collection_modifyitems(session, config, items):
    known = listed()
    if len(known) > MOST:
        raise pytest.UsageError(f"{TABLE.name} lists {len(known)} cases; at most {MOST} may be.")
    names = {f"{item.path.stem}::{item.name}": item for item in items}
    files = {item.path.stem for item in items}
    for case, reason in known.items():
        if case in names:
            names[case].add_marker(pytest.mark.xfail(reason=reason, strict=ROUNDING not in reason))
        elif case.partition("::")[0] in files and not config.option.keyword:
            raise pytest.UsageError(f"{TABLE.name} lists {case}, which is not there.")
