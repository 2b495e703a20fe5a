"""One module per rival library. A library that is not installed has no contestants and is reported absent."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

from rivals.contest import Contestant

# module here -> the distribution that it needs
LIBRARIES = {
    "scikit_learn": "scikit-learn",
    "scikit_learn_intelex": "scikit-learn-intelex",
    "liblinear_official": "liblinear-official",
    "glum": "glum",
    "skglm": "skglm",
    "snapml": "snapml",
    "statsmodels": "statsmodels",
}


def versions() -> dict[str, str]:
    """Version of each library, or "absent"."""
    found = {}
    for distribution in LIBRARIES.values():
        try:
            found[distribution] = version(distribution)
        except PackageNotFoundError:
            found[distribution] = "absent"
    return found


def contestants() -> dict[str, Contestant]:
    """Every contestant of every library that is installed, by name "library solver"."""
    present = versions()
    entered: dict[str, Contestant] = {}
    for module, distribution in LIBRARIES.items():
        if present[distribution] != "absent":
            for contestant in import_module(f"rivals.{module}").CONTESTANTS:
                entered[f"{distribution} {contestant.name}"] = contestant
    return entered
