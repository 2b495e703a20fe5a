"""Settings shared by all tests."""

import gc
import os
from collections import defaultdict
from functools import partial
from unittest.mock import MagicMock

import pytest
from catalogue import INSTRUCTION_SETS
from hypothesis import settings
from tuned import tune, tuning

from linsep import _kernels

os.environ.setdefault("MPLBACKEND", "Agg")

# Timing is not a law, and a failure must be found again by whoever runs the suite next.
settings.register_profile("linsep", deadline=None, derandomize=True, max_examples=30, database=None)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "linsep"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Leave the cases of a test that are not among its samples to the slow tests.

    SciPy must be told before it is imported that it will be handed other libraries' arrays, and nobody who uses
    linsep tells it: scikit-learn's checks of such arrays run in a process of their own (test_sklearn_checks.py).
    """
    _sample(items)
    if os.environ.get("SCIPY_ARRAY_API") != "1":
        apart = [item for item in items if "array_api" in item.name.partition("[")[2]]
        config.hook.pytest_deselected(items=apart)
        items[:] = [item for item in items if item not in set(apart)]


def _sample(items):
    """Of a test with the mark ``sampled(k)``, k cases from first to last stay fast, and all others are slow."""
    cases = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled"):
            cases[item.nodeid.partition("[")[0]].append(item)
    for family in cases.values():
        k = family[0].get_closest_marker("sampled").args[0]
        kept = {round(i * (len(family) - 1) / max(k - 1, 1)) for i in range(k)}
        for place, item in enumerate(family):
            if place not in kept:
                item.add_marker(pytest.mark.slow)


def pytest_collection_finish():
    """Thousands of tests and the libraries they load are there to stay: garbage is not searched for among them."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _rows_on_disk_stay_there():
    """Tests fit few rows on disk and on a cluster as if they were many; test_one_rule.py has few and many."""
    with tuning(few_on_disk=0, few_always=0, few_on_cluster=0):
        yield


@pytest.fixture(scope="module")
def client():
    """A cluster of one worker with two threads, in this process."""
    distributed = pytest.importorskip("distributed")
    with distributed.Client(
        processes=False, n_workers=1, threads_per_worker=2, dashboard_address=":0"
    ) as one:
        yield one


@pytest.fixture
def without_figures(monkeypatch):
    """Reports without their figures, which take nine tenths of the time: for tests of the text and the numbers."""
    monkeypatch.setattr("linsep.report.svg.to_svg", lambda ax, key, *rest, **more: "<svg></svg>")
    monkeypatch.setattr("linsep.report.svg.new_axes", lambda *size: MagicMock())


@pytest.fixture
def tuned(monkeypatch):
    """Set tuned numbers of the source for one test, by the names of tests/support/tuned.py."""
    return partial(tune, monkeypatch)


@pytest.fixture(params=INSTRUCTION_SETS)
def instructions(request):
    """Run a test with the kernels of every instruction set of this machine."""
    before = _kernels.instruction_set()
    _kernels.use_instruction_set(request.param)
    yield request.param
    _kernels.use_instruction_set(before)
