"""One module per rival library. A library that is not installed has no contestants and is reported absent."""

from __future__ import annotations

from dataclasses import replace
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


def contestants(threads: int = 1) -> dict[str, Contestant]:
    """Every contestant of every library that is installed, by name "library solver".

    More threads can be slower (small products in a threaded BLAS), and users can choose: who can use several
    is entered twice, the second time with one thread.
    """
    present = versions()
    entered: dict[str, Contestant] = {}
    for module, distribution in LIBRARIES.items():
        if present[distribution] != "absent":
            for contestant in import_module(f"rivals.{module}").CONTESTANTS:
                name = f"{distribution} {contestant.name}"
                entered[name] = contestant
                if threads > 1 and contestant.threads == "all":
                    entered[f"{name}, 1 thread"] = replace(contestant, single=True)
    return entered
