"""Settings of a fit: the problem, the tolerance, the solver and its limits."""

from __future__ import annotations

from dataclasses import dataclass, replace

from linsep.losses import CoupledLoss, Loss
from linsep.penalties import ElasticNet
from linsep.records import fast_constructor


@fast_constructor
@dataclass(frozen=True)
class Recipe:
    """Settings of one fit: loss, penalty, tolerance, solver and limits."""

    loss: Loss | CoupledLoss
    penalty: ElasticNet
    fit_intercept: bool = True
    tol: float = 1e-6
    solver: str = "auto"
    time_limit: float | None = None
    max_passes: float | None = None
    n_threads: int | None = None
    seed: int | None = None

    @property
    def limited(self) -> bool:
        """Whether the fit has a limit on time or passes."""
        return self.time_limit is not None or self.max_passes is not None


def reproducible_fields(recipe: Recipe) -> Recipe:
    """Return the recipe without the settings that do not affect the result: threads and time limit."""
    return replace(recipe, n_threads=None, time_limit=None)
