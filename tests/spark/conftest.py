"""Tests on Spark run only when asked for: `make spark-test`, or pytest -m spark. They need Java 17."""


def pytest_collection_modifyitems(config, items):
    if "spark" in config.getoption("markexpr"):
        return
    here = [item for item in items if item.get_closest_marker("spark")]
    if here:
        config.hook.pytest_deselected(items=here)
        items[:] = [item for item in items if item not in here]
