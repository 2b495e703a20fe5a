"""Results of ``tune`` and ``path``: validation curve, chosen C, certificates, models of the path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

import linsep
from linsep.arrays import FloatArray
from linsep.certificates import Optimality
from linsep.notebook import facts_table, table


@dataclass(frozen=True, eq=False)
class ValidationCurve:
    """Held-out scores of every C.

    Attributes
    ----------
    Cs : ndarray (c,)
        Values of C, in increasing order.
    scores : ndarray (c, folds)
        Score of each model on its held-out rows.
    scoring : str
        Name of the score.
    greater_is_better : bool
        Whether larger scores are better (not so for "error" and "log_loss").
    approximate : bool
        Whether the scores are approximate leave-one-out, (c, 1), instead of scores of models fitted without the rows.
    """

    Cs: FloatArray
    scores: FloatArray
    scoring: str
    greater_is_better: bool
    approximate: bool = False

    @property
    def mean(self) -> FloatArray:
        """Mean over the folds, (c,)."""
        mean: FloatArray = self.scores.mean(axis=1)
        return mean

    @property
    def utilities(self) -> FloatArray:
        """Scores (c, folds) for which greater is better: accuracy for "error", minus the score for losses."""
        if self.greater_is_better:
            return self.scores
        return 1.0 - self.scores if self.scoring == "error" else -self.scores

    @property
    def standard_error(self) -> FloatArray:
        """Standard error of the mean, (c,); nan with one fold.

        It treats the folds as independent, although their training rows overlap.
        """
        folds = self.scores.shape[1]
        if folds == 1:
            return np.full(len(self.Cs), np.nan)
        return np.asarray(self.scores.std(axis=1, ddof=1) / np.sqrt(folds))

    @property
    def best(self) -> int:
        """Position of the best mean; ties are resolved in favour of the smallest C."""
        mean = -self.mean if self.greater_is_better else self.mean
        return int(np.nanargmin(mean))

    @property
    def within_one_error(self) -> int:
        """Position of the smallest C whose mean is within one standard error of the best."""
        mean = -self.mean if self.greater_is_better else self.mean
        error = self.standard_error[self.best]
        limit = mean[self.best] + (error if np.isfinite(error) else 0.0)
        return int(np.flatnonzero(mean <= limit)[0])

    def plot(self, ax: Any = None) -> Any:
        """Plot mean and standard deviation of the folds with ``linsep.plot.validation_curve``; return the axes.

        The choice of the one-standard-error rule is marked if it differs from the best.
        """
        best, within = self.best, self.within_one_error
        ax = linsep.plot.validation_curve(self.Cs, self.scores, best=float(self.Cs[best]), ax=ax)
        for band in ax.collections:
            band.set_label("standard deviation of the folds")
        if within != best:
            C = float(self.Cs[within])
            label = f"within one standard error: C = {C:.3g}"
            ax.axvline(C, color="0.45", linestyle="-.", linewidth=1.2, label=label)
        ax.legend(frameon=False)
        ax.set_ylabel(self.scoring.replace("_", " "))
        if self.approximate:
            ax.set_title("approximate leave-one-out")
        return ax

    def __str__(self) -> str:
        lines = [f"{'C':>10}  {self.scoring:>12}  {'std. error':>10}"]
        for C, mean, error in zip(self.Cs, self.mean, self.standard_error, strict=True):
            lines.append(f"{C:>10.4g}  {mean:>12.6f}  {error:>10.6f}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        numbers = zip(self.Cs, self.mean, self.standard_error, strict=True)
        rows = ([f"{C:.4g}", f"{mean:.6f}", f"{error:.6f}"] for C, mean, error in numbers)
        return table(["C", self.scoring, "standard error"], rows)


def cv_results(params: Sequence[Mapping[str, float]], utilities: FloatArray) -> dict[str, Any]:
    """Return the results of a search with the keys of scikit-learn's ``cv_results_``, for ``pandas.DataFrame``.

    ``utilities`` (models, folds) are scores for which greater is better; equal means share the smallest rank.
    """
    mean = utilities.mean(axis=1)
    names = dict.fromkeys(name for one in params for name in one)
    return {
        **{f"param_{name}": np.array([one[name] for one in params]) for name in names},
        "params": [dict(one) for one in params],
        **{f"split{f}_test_score": utilities[:, f] for f in range(utilities.shape[1])},
        "mean_test_score": mean,
        "std_test_score": utilities.std(axis=1),
        "rank_test_score": rankdata(-np.nan_to_num(mean, nan=-np.inf), method="min").astype(
            np.int32
        ),
    }


@dataclass(frozen=True)
class GridRecord:
    """Record of a fitted model of the grid: seconds since tuning began, passes and relative gap."""

    C: float
    fold: int
    seconds: float
    passes: float
    relative_gap: float


@dataclass(frozen=True, eq=False)
class Tuning:
    """Result of :func:`linsep.tune`.

    Attributes
    ----------
    best_C : float
        The chosen C.
    rule : {"best", "one_standard_error"}
        Rule by which it was chosen from the curve.
    curve : ValidationCurve
        Held-out scores of every C.
    certificates : ndarray of Optimality (c, folds)
        Certificate of every model of the grid.
    best_estimator_ : estimator or None
        Fitted with the chosen C to all rows except the test rows; None with refit=False.
    test_score : float or None
        Score of the chosen model on the test rows (``test=``).
    test_bound : float or None
        With scoring="error": 95 % upper confidence bound on the true error (exact binomial).
    seconds : float
        Time of the whole search.
    trace : tuple of GridRecord
        The models of the grid in the order of completion. Models fitted together share their passes evenly.
    rejected : dict of C to (least, largest)
        With reject=True: the values of C whose models were left unfinished, and proven bounds on their mean error.
        Their scores and certificates are those of the unfinished models, which were fitted to a larger tol.
    coefs, intercepts : ndarray (c, folds, k, d) and (c, folds, k), or None
        Coefficients and intercepts of every model of the grid, with keep=True.
    best_l1_ratio : float or None
        The chosen ``l1_ratio``, if several were tried; curve, certificates and trace belong to it.
    by_l1_ratio : dict of float to Tuning
        The result for every ``l1_ratio`` that was tried.
    """

    best_C: float
    rule: str
    curve: ValidationCurve
    certificates: npt.NDArray[Any]
    best_estimator_: Any
    test_score: float | None
    test_bound: float | None
    seconds: float
    trace: tuple[GridRecord, ...] = ()
    rejected: dict[float, tuple[float, float]] = field(default_factory=dict)
    coefs: FloatArray | None = None
    intercepts: FloatArray | None = None
    best_l1_ratio: float | None = None
    by_l1_ratio: dict[float, Tuning] = field(default_factory=dict)

    @property
    def certified(self) -> bool:
        """Whether every model of the grid is certified."""
        others = all(one.certified for one in self.by_l1_ratio.values())
        return others and all(c.certified for c in self.certificates.flat)

    @property
    def cv_results_(self) -> dict[str, Any]:
        """Scores of the whole grid with the keys of scikit-learn's ``GridSearchCV``; greater is better."""
        if not self.by_l1_ratio:
            return cv_results([{"C": float(C)} for C in self.curve.Cs], self.curve.utilities)
        params = [
            {"C": float(C), "l1_ratio": ratio}
            for ratio, one in self.by_l1_ratio.items()
            for C in one.curve.Cs
        ]
        utilities = [one.curve.utilities for one in self.by_l1_ratio.values()]
        return cv_results(params, np.concatenate(utilities))

    @property
    def best_params_(self) -> dict[str, float]:
        """Chosen C, and l1_ratio if several were tried."""
        chosen = {"C": self.best_C}
        return chosen if self.best_l1_ratio is None else {**chosen, "l1_ratio": self.best_l1_ratio}

    @property
    def best_index_(self) -> int:
        """Position of the choice in ``cv_results_``."""
        return int(self.cv_results_["params"].index(self.best_params_))

    @property
    def best_score_(self) -> float:
        """Mean held-out score of the choice; greater is better."""
        return float(self.cv_results_["mean_test_score"][self.best_index_])

    @property
    def _choice(self) -> str:
        return ", ".join(f"{name} = {value:g}" for name, value in self.best_params_.items())

    @property
    def _describe_folds(self) -> str:
        if self.curve.approximate:
            return "by approximate leave-one-out"
        folds = self.curve.scores.shape[1]
        return "on the validation rows" if folds == 1 else f"over {folds} folds"

    def __str__(self) -> str:
        at = int(np.flatnonzero(self.curve.Cs == self.best_C)[0])
        count = sum(c.certified for c in self.certificates.flat)
        text = (
            f"{self._choice} ({self.rule.replace('_', ' ')}): {self.curve.scoring} "
            f"{self.curve.mean[at]:.6g} {self._describe_folds}; "
            f"{count} of {self.certificates.size} models certified"
        )
        if self.rejected:
            text += f"; {len(self.rejected)} C rejected by bounds"
        if self.test_score is not None:
            text += f"; test {self.curve.scoring} {self.test_score:.6g}"
            if self.test_bound is not None:
                text += f" (95 % upper confidence bound {self.test_bound:.4g})"
        return text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        at = int(np.flatnonzero(self.curve.Cs == self.best_C)[0])
        count = sum(c.certified for c in self.certificates.flat)
        facts = {
            self.curve.scoring: f"{self.curve.mean[at]:.6g} {self._describe_folds}",
            "models certified": f"{count} of {self.certificates.size}",
            "time": f"{self.seconds:.2f} s",
        }
        if self.rejected:
            facts["values of C rejected by bounds"] = str(len(self.rejected))
        if self.test_score is not None:
            facts[f"test {self.curve.scoring}"] = f"{self.test_score:.6g}"
        if self.test_bound is not None:
            facts["95 % upper confidence bound"] = f"{self.test_bound:.4g}"
        return facts_table(f"C = {self.best_C:g} ({self.rule.replace('_', ' ')})", facts)


@dataclass(frozen=True, eq=False)
class Path:
    """Result of :func:`linsep.path`: models for increasing C.

    Attributes
    ----------
    Cs : ndarray (c,)
        Values of C, in increasing order.
    coefs : ndarray (c, k, d)
        Coefficients of each model.
    intercepts : ndarray (c, k)
        Intercepts of each model.
    certificates : tuple of Optimality
        Certificate of each model.
    n_passes : float
        Passes over the data for all models together.
    """

    Cs: FloatArray
    coefs: FloatArray
    intercepts: FloatArray
    certificates: tuple[Optimality, ...]
    n_passes: float

    def __len__(self) -> int:
        return len(self.Cs)

    def __str__(self) -> str:
        count = sum(c.certified for c in self.certificates)
        return (
            f"{len(self)} models, C from {self.Cs[0]:g} to {self.Cs[-1]:g}, "
            f"{count} certified, {self.n_passes:.4g} passes"
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = (
            [f"{C:.4g}", f"{c.primal:.6g}", f"{c.relative_gap:.1e}", str(np.count_nonzero(W))]
            for C, c, W in zip(self.Cs, self.certificates, self.coefs, strict=True)
        )
        return table(["C", "objective", "proven relative gap", "nonzero coefficients"], rows)
