"""Replace classes of scikit-learn by those of ``linsep.sklearn`` in loaded modules.

A class of ``linsep.sklearn`` replaces the scikit-learn class that it extends, in every loaded module of scikit-learn
except the one that defines it: pickles find a class by its module and name, and models of scikit-learn's own class must
remain readable and writable. Modules loaded later import from the packages, where the name is already replaced.
"""

from __future__ import annotations

import sys
from types import ModuleType

Pairs = dict[str, tuple[type, type]]


def pairs() -> Pairs:
    """Pairs (class of scikit-learn, class of linsep), by name."""
    import sklearn.linear_model  # noqa: PLC0415
    import sklearn.svm  # noqa: F401, PLC0415

    import linsep.sklearn as ours  # noqa: PLC0415

    found = {}
    for name in ours.__all__:
        kind = getattr(ours, name)
        if not isinstance(kind, type):
            continue
        for base in kind.__mro__:
            if base.__name__ == name and base.__module__.startswith("sklearn."):
                found[name] = (base, kind)
                break
    return found


def substitute(found: Pairs) -> None:
    """Replace scikit-learn's classes by linsep's."""
    for name, (theirs, ours) in found.items():
        for module in _modules(theirs):
            _exchange(module, name, theirs, ours)


def restore(found: Pairs) -> None:
    """Restore scikit-learn's classes, also where they were imported in the meantime."""
    for name, (theirs, ours) in found.items():
        for module in _modules(theirs):
            _exchange(module, name, ours, theirs)


def holders(found: Pairs) -> dict[str, tuple[str, ...]]:
    """Modules outside scikit-learn and linsep that hold scikit-learn's classes, with the names of these classes."""
    held: dict[str, tuple[str, ...]] = {}
    for module_name, module in list(sys.modules.items()):
        top = module_name.partition(".")[0]
        if top in ("sklearn", "linsep") or not isinstance(module, ModuleType):
            continue
        names = vars(module)
        known = tuple(name for name, (theirs, _) in found.items() if names.get(name) is theirs)
        if known:
            held[module_name] = known
    return held


def _modules(defined: type) -> list[ModuleType]:
    """Loaded modules of scikit-learn in which the class is replaced."""
    return [
        module
        for name, module in list(sys.modules.items())
        if (name == "sklearn" or name.startswith("sklearn."))
        and isinstance(module, ModuleType)
        and name != defined.__module__
        and ".tests" not in name
    ]


def _exchange(module: ModuleType, name: str, old: type, new: type) -> None:
    if vars(module).get(name) is old:
        setattr(module, name, new)
