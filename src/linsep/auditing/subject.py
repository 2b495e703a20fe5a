"""The subject of an audit (rows, targets, objective), and the caller's statements about the objective."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from linsep.arrays import FloatArray
from linsep.errors import BadInput
from linsep.losses import Loss
from linsep.sklearn_objectives import Given, Objective


class Subject(NamedTuple):
    """A fitted model with its objective, rows and targets."""

    name: str
    objective: Objective
    W: list[FloatArray]  #: coefficients (d + 1, k) of each subproblem, intercepts in the last row
    X: Any
    given: Given


@dataclass(frozen=True)
class Stated:
    """The parts of the objective that the caller states; None if not stated."""

    loss: str | Loss | None = None
    C: float | None = None
    l1_ratio: float | None = None
    alpha: Any = None
    epsilon: float | None = None
    class_weight: Any = None

    def refuse_all_but(self, accepted: tuple[str, ...], name: str) -> None:
        """Raise if the caller states something that the model itself determines."""
        said = [each.name for each in fields(self) if getattr(self, each.name) is not None]
        extra = [each for each in said if each not in accepted]
        if extra:
            takes = f"it takes {', '.join(accepted)}" if accepted else "it takes none of them"
            raise BadInput(f"{name} knows its own {', '.join(extra)}; {takes}.")
