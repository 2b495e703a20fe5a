"""Browser tests run only when asked for: `make browser-test`, or pytest -m browser."""

import pytest


def pytest_collection_modifyitems(config, items):
    if "browser" in config.getoption("markexpr"):
        return
    here = [item for item in items if item.get_closest_marker("browser")]
    if here:
        config.hook.pytest_deselected(items=here)
        items[:] = [item for item in items if item not in here]


@pytest.fixture(scope="module")
def chromium():
    from driving import browser

    with browser() as found:
        yield found
