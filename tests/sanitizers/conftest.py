"""These tests need kernels that were compiled under a sanitizer: `make sanitize`, `make sanitize-threads`."""

from linsep import _kernels


def pytest_collection_modifyitems(config, items):
    if hasattr(_kernels, "fail_allocation"):
        return
    here = [item for item in items if "sanitizers" in item.path.parts]
    if here:
        config.hook.pytest_deselected(items=here)
        items[:] = [item for item in items if item not in here]
