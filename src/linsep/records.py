"""Frozen dataclasses whose constructor is as fast as that of ordinary ones."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, TypeVar

Record = TypeVar("Record")


def fast_constructor(cls: type[Record]) -> type[Record]:
    """Let the constructor of a frozen dataclass fill the dictionary of the instance.

    The constructor that ``dataclasses`` writes calls ``object.__setattr__`` for each field, which takes twice as long.
    For a fit of a hundred rows that is noticeable. Default factories and ``__post_init__`` are not supported.
    """
    stored = fields(cls)  # type: ignore[arg-type]
    assert not hasattr(cls, "__post_init__")
    assert all(f.init and not f.kw_only and f.default_factory is MISSING for f in stored)
    names = [f.name for f in stored]
    body = "".join(f"\n    state[{name!r}] = {name}" for name in names)
    scope: dict[str, Any] = {}
    exec(f"def __init__(self, {', '.join(names)}):\n    state = self.__dict__{body}", scope)
    init, slow = scope["__init__"], cls.__init__
    for kept in ("__defaults__", "__annotations__", "__qualname__", "__module__"):
        setattr(init, kept, getattr(slow, kept))
    cls.__init__ = init  # type: ignore[method-assign]
    return cls
