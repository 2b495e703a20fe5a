"""Accept American spellings of parameter names, and store the values under the British names."""

from __future__ import annotations

import functools
from typing import Any, TypeVar

Kind = TypeVar("Kind", bound=type)

#: American spelling -> parameter name.
SPELLINGS = {"standardize": "standardise"}


def accept_american(kind: Kind) -> Kind:
    """Let the constructor and ``set_params`` of an estimator accept the American names of its parameters."""
    for name in ("__init__", "set_params"):
        setattr(kind, name, _translate(getattr(kind, name)))
    return kind


def _translate(method: Any) -> Any:
    @functools.wraps(method)
    def wrapped(self: Any, *args: Any, **given: Any) -> Any:
        for american, name in SPELLINGS.items():
            if american in given:
                if name in given:
                    raise TypeError(f"{name} and {american} are the same parameter; give one.")
                given[name] = given.pop(american)
        return method(self, *args, **given)

    return wrapped
