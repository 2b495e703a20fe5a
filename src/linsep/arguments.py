"""Validate arguments of public functions; errors name the argument and what it must be."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from linsep.errors import BadInput


def one_of(name: str, given: Any, known: tuple[Any, ...]) -> Any:
    """Return ``given`` if it is one of the known strings or booleans; raise otherwise."""
    if not isinstance(given, str | bool | np.bool_) or given not in known:
        raise BadInput(f"{name} must be one of {', '.join(map(repr, known))}, got {given!r:.80}.")
    return given


def flag(name: str, given: Any) -> bool:
    """Return a boolean; numbers and strings raise."""
    if given is not True and given is not False and not isinstance(given, np.bool_):
        raise BadInput(f"{name} must be True or False, got {given!r:.80}.")
    return bool(given)


def number(name: str, given: Any) -> float:
    """Return a real number as float; booleans and strings raise."""
    if type(given) is float:  # fast path: isinstance with an ABC is slow
        return given
    if isinstance(given, bool | np.bool_) or not isinstance(given, Real):
        hint = "; C=inf means no penalty" if name == "C" and given is None else ""
        raise BadInput(
            f"{name} must be a number, got {given!r:.80} ({type(given).__name__}){hint}."
        )
    try:
        return float(given)
    except OverflowError as error:
        raise BadInput(f"{name} is too large for a float64; use inf.") from error


def positive(name: str, given: Any, other: str = "") -> float:
    """Return a positive finite number; ``other`` names further accepted values in the error message."""
    value = number(name, given)
    if not 0 < value < np.inf:
        raise BadInput(f"{name} must be a positive finite number{other}, got {given!r}.")
    return value


def is_whole(given: object, least: int, most: int) -> bool:
    """Return whether ``given`` is an integer from ``least`` to ``most`` and not a boolean."""
    if isinstance(given, bool | np.bool_) or not isinstance(given, Integral):
        return False
    return least <= int(given) <= most


def count(name: str, given: Any, what: str, most: int = 2**63 - 1) -> int:
    """Return an integer from 1 to ``most``; the error message says that it counts ``what``."""
    if not is_whole(given, 1, most):
        upper = "" if most == 2**63 - 1 else f" and at most {most:,}"
        raise BadInput(
            f"{name} must be a whole number of {what}, at least 1{upper}, got {given!r:.80}."
        )
    return int(given)


def seed(given: Any, most: int | None = None) -> int | None:
    """Return ``random_state`` as an integer seed, drawn from it if it is a generator; None stays None."""
    if given is None:
        return None
    if isinstance(given, Integral):
        if 0 <= int(given) <= (int(given) if most is None else most):
            return int(given)
    else:
        with suppress(ValueError):
            return int(check_random_state(given).randint(2**31 - 1))
    upper = "" if most is None else f" and at most {most:,}"
    raise BadInput(
        f"random_state must be None, a whole number >= 0{upper} or a numpy RandomState, got {given!r:.80}."
    )


def threads(given: Any) -> int | None:
    """Return the number of threads; None means all processors."""
    if given is None:
        return None
    if not is_whole(given, 1, 1 << 20):
        raise BadInput(
            f"n_threads must be a whole number >= 1 and at most {1 << 20:,}, or None for all processors, "
            f"got {given!r:.80}."
        )
    return int(given)


def words(name: str, given: Any, what: str) -> list[Any]:
    """Return the entries of a list of names or column numbers; a single string raises."""
    if isinstance(given, str):
        raise BadInput(f"{name} must be a list of {what}: {name}=[{given!r}].")
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        raise BadInput(f"{name} must be a list of {what}, got {given!r:.80}.")
    found = list(given)
    wrong = [
        one for one in found if not isinstance(one, str) and not is_whole(one, -(2**63), 2**63)
    ]
    if wrong:
        raise BadInput(f"{name} must be a list of {what}, but {wrong[0]!r:.80} is in it.")
    return found


def pair(name: str, given: Any, what: str) -> tuple[Any, Any]:
    """Return the two entries of a pair, for example rows and their labels."""
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise BadInput(f"{name} must be a pair {what}, got {given!r:.80}.")
    return given[0], given[1]


def is_path(given: object) -> bool:
    """Return whether ``given`` has a type that ``open`` accepts as a path."""
    return isinstance(given, str | bytes | os.PathLike)
