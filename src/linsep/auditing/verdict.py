"""The result of an audit: an objective and proven bounds on its minimum, as text, dictionary or improved model."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from linsep.arrays import FloatArray
from linsep.auditing import support_vectors
from linsep.auditing.support_vectors import SupportVectors
from linsep.errors import BadInput
from linsep.notebook import facts_table
from linsep.pipelines import take_apart

#: Width of the name column in the text of an audit.
_NAME = 10


@dataclass(frozen=True, eq=False)
class Audit:
    """Result of an audit: how far a model is from the optimum of its own problem.

    All values are in units of the model's own objective.

    Attributes
    ----------
    model_name, problem : str
        Class of the model, and the objective that it minimises.
    objective : float
        Objective at the model's coefficients.
    minimum : tuple (low, high)
        Proven bounds on the minimum of that objective, or on its infimum if no minimiser exists.
    excess : tuple (at_least, at_most)
        Proven bounds on ``objective`` minus the minimum.
    relative_excess : tuple (at_least, at_most)
        ``excess`` relative to the minimum.
    coef_error : float
        Proven bound on the distance |w - w*| to the optimal coefficients, inf if there is none.
    coef_distance : float
        Distance to the coefficients found by linsep.
    changed : int or None
        Number of training rows whose predicted class differs at the optimum; None for regression.
    n_rows : int
    separable : bool
        Whether no minimiser exists, because the classes are separable and there is no penalty.
    optimal : bool
        Whether the relative excess is proven to be at most ``tol``.
    tol : float
    """

    model_name: str
    problem: str
    objective: float
    minimum: tuple[float, float]
    excess: tuple[float, float]
    relative_excess: tuple[float, float]
    coef_error: float
    coef_distance: float
    changed: int | None
    n_rows: int
    separable: bool | None
    tol: float
    _model: Any = field(repr=False, default=None)
    _optimum: FloatArray | None = field(repr=False, default=None)
    #: for an SVC, which computes its coefficients from them
    _support: SupportVectors | None = field(repr=False, default=None)

    no_optimum: ClassVar[str] = (
        "There is no optimum to move to: the classes are separable and nothing is penalised."
    )

    @property
    def optimal(self) -> bool:
        """Whether the relative excess is proven to be at most ``tol``."""
        return self.relative_excess[1] <= self.tol

    @property
    def optimum(self) -> tuple[FloatArray, FloatArray]:
        """Coefficients (k, d) and intercepts (k,) of the optimum with which the model is compared."""
        if self._optimum is None:
            raise BadInput(self.no_optimum)
        return self._optimum[:-1].T.copy(), self._optimum[-1].copy()

    def __str__(self) -> str:
        facts = {"objective": f"{self.objective:.9g}", **self._findings()}
        lines = [
            f"  {name:<{_NAME}} {fact}" if len(name) <= _NAME else f"  {name}: {fact}"
            for name, fact in facts.items()
        ]
        return "\n".join([f"{self.model_name}: {self.problem}", *lines])

    __repr__ = __str__

    def _findings(self) -> dict[str, str]:
        """Proven results by name, as text."""
        if self.separable:
            return {"no minimum exists": "the classes are separable and nothing is penalised"}
        low, high = self.relative_excess
        facts = {
            "minimum": f"{self.minimum[0]:.9g} to {self.minimum[1]:.9g}, proven",
            "verdict": self._verdict(low, high),
        }
        if math.isfinite(self.coef_error):
            distance, most = self.coef_distance, self.coef_error
            facts["|w - w*|"] = f"{distance:.2g} (proven: at most {most:.2g})"
        if self.changed is not None:
            name = "predictions that change at the optimum"
            facts[name] = f"{self.changed:,} of {self.n_rows:,}"
        return facts

    def _verdict(self, low: float, high: float) -> str:
        if high <= self.tol:
            return f"optimal: at most {in_words(high)}"
        if low > self.tol:
            return f"not optimal: {in_words(low)}"
        return f"at most {in_words(high)}"

    def _repr_html_(self) -> str:
        facts = {"objective": f"{self.objective:.9g}", **self._findings()}
        return facts_table(f"{self.model_name}: {self.problem}", facts)

    def to_dict(self) -> dict[str, Any]:
        """Return the audit as numbers and strings, ready for JSON except for infinities."""
        return {
            "model": self.model_name,
            "problem": self.problem,
            "objective": self.objective,
            "minimum": list(self.minimum),
            "excess": list(self.excess),
            "relative_excess": list(self.relative_excess),
            "coef_error": self.coef_error,
            "coef_distance": self.coef_distance,
            "changed": self.changed,
            "rows": self.n_rows,
            "separable": self.separable,
            "optimal": self.optimal,
            "tol": self.tol,
        }

    def improve(self) -> Any:
        """Return a copy of the scikit-learn model with the coefficients of the proven optimum.

        They are rounded to the model's dtype, and an intercept that is penalised to float64. On columns far from zero,
        a hinge loss with a huge C may notice that rounding; ``audit`` of the copy proves what is left.
        """
        coef, intercept = self.optimum
        model: Any = copy.deepcopy(self._model) if hasattr(self._model, "get_params") else None
        final = take_apart(model).model
        if not hasattr(final, "coef_"):
            raise BadInput(
                f"improve needs a model of scikit-learn; this is {self.model_name}. The coefficients of the optimum "
                "are in audit(...).optimum."
            )
        if self._support is not None:
            support_vectors.put(final, self._support)
            return model
        final.coef_ = coef.reshape(np.shape(final.coef_)).astype(final.coef_.dtype)
        final.intercept_ = intercept if np.ndim(final.intercept_) else float(intercept[0])
        return model


@dataclass(frozen=True, eq=False)
class PerceptronAudit(Audit):
    """Audit of a perceptron, whose loss max(0, -m) is 0 at w = 0, so that the minimum alone is not informative.

    Attributes
    ----------
    separable : bool or None
        Whether a hyperplane provably has every row strictly on the side of its class (with three or more classes: for
        each class against the others); None if that could not be decided.
    quasi : bool
        Whether the classes are not separable, but some hyperplane has no row on the wrong side.
    mistakes : int
        Number of training rows whose margin is not positive, over all one-vs-rest problems.
    optimal : bool
        Whether the perceptron has converged: the classes are separable, and it makes no mistake.
    """

    quasi: bool = False
    mistakes: int = 0

    no_optimum: ClassVar[str] = (
        "There is no hyperplane to move to: none is proven to separate the classes."
    )

    @property
    def optimal(self) -> bool:
        """Whether the perceptron separates the classes."""
        return self.separable is True and self.mistakes == 0

    def _findings(self) -> dict[str, str]:
        answers = {
            True: "yes, proven: some hyperplane makes no mistake",
            None: "not decided",
            False: "no, proven: the perceptron never converges",
        }
        touching = (
            "no, proven: some hyperplane has no row on the wrong side, but some rows lie on it"
        )
        verdict = "converged: no mistakes" if self.optimal else "not converged"
        if not self.optimal:
            verdict += f": {self.mistakes:,} mistakes in {self.n_rows:,} rows"
        return {
            "minimum": "0, at w = 0 and at every hyperplane without a row on the wrong side",
            "separable": touching if self.quasi else answers[self.separable],
            "verdict": verdict,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the audit as numbers and strings, ready for JSON except for infinities."""
        return {**super().to_dict(), "quasi": self.quasi, "mistakes": self.mistakes}


def in_words(excess: float, of: str = "minimum") -> str:
    """A relative excess over the minimum: as a multiple of it, in percent, or as a small number."""
    if not math.isfinite(excess):
        return f"any amount above the {of}"
    if excess >= 10.0:
        return f"{float(f'{1.0 + excess:.3g}'):,.0f} times the {of}"
    share = f"{100 * excess:.3g} %" if excess >= 1e-4 else f"a relative {excess:.1e}"
    return f"{share} above the {of}"
