"""Bad input by group: each case states its expected outcome, and one harness classifies what happens."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

GROUPS: dict[str, ModuleType] = {
    f"F{int(name[1:3])}": import_module(f"scoreboard.{name}")
    for name in (
        "f01_libsvm",
        "f02_csv",
        "f03_columnar",
        "f04_arrays",
        "f05_labels",
        "f06_scales",
        "f07_certificates",
        "f08_model_files",
        "f09_crashes",
        "f10_interrupts",
        "f11_threads",
        "f13_command_line",
        "f14_failing_calls",
        "f15_ecosystem",
        "f16_parameters",
    )
}
PEER_GROUPS = ("F1", "F4", "F5", "F6")  #: asked of other libraries too
