"""Errors for keywords that scikit-learn's estimators accept and linsep's do not: what to use instead."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

Init = TypeVar("Init", bound=Callable[..., None])

#: Keyword of scikit-learn -> what takes its place.
REPLACEMENTS = {
    "penalty": "use l1_ratio=0 for L2, l1_ratio=1 for L1, C=inf for no penalty",
    "max_iter": "leave it out: fits run until the proven gap is at most tol; max_passes and time_limit set a budget",
    "n_jobs": "use n_threads",
    "verbose": "use `with linsep.progress():`",
    "dual": "leave it out: the solver is chosen automatically",
    "multi_class": "use multiclass",
    "intercept_scaling": "leave it out: the intercept is never penalised",
    "alpha": "use C = 1/(n_samples * alpha)",
    "learning_rate": "use schedule",
    "early_stopping": "leave it out: fits end at a proven optimum; linsep.SGDClassifier has early stopping",
    "n_iter_no_change": "leave it out: fits end at a proven optimum; linsep.SGDClassifier has early stopping",
    "validation_fraction": "leave it out: linsep.SGDClassifier has early stopping, linsep.tune a validation part",
    "average": 'use keep="average"',
    "power_t": "use schedule and decay, or a function of the step number as schedule",
    "shuffle": "leave it out: random_state sets the order of the rows",
    "epsilon": "pass the loss with its width, for instance loss=linsep.losses.Huber(1.35)",
    "l1_ratios": "use LogisticRegressionCV, or linsep.tune(model, X, y, l1_ratios=...)",
    "refit": "leave it out: the chosen model is always fitted to all rows",
    "random_state": "leave it out: this estimator draws no random numbers",
}
#: The same for estimators without ``l1_ratio``.
WITHOUT_L1 = {
    "penalty": 'leave it out for L2; for L1 use LinearClassifier("squared_hinge", l1_ratio=1)',
}
#: Classes that ``linsep.sklearn`` has, too, with all parameters of scikit-learn.
DROP_IN = ("LogisticRegression", "LogisticRegressionCV", "LinearSVC", "Perceptron", "SGDClassifier")


def explain_keywords(init: Init) -> Init:
    """Let a constructor name the replacement of a keyword that it does not accept."""
    accepted = tuple(inspect.signature(init).parameters)

    @functools.wraps(init)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            init(self, *args, **kwargs)
        except TypeError as error:
            unknown = [name for name in kwargs if name not in accepted]
            if not unknown:
                raise
            known = REPLACEMENTS if "l1_ratio" in accepted else {**REPLACEMENTS, **WITHOUT_L1}
            hints = [f"{name}: {known[name]}" for name in unknown if name in known]
            name = type(self).__name__
            text = f"{name} has no parameter {', '.join(map(repr, unknown))}"
            hint = f" ({'; '.join(hints)})" if hints else f". It has {', '.join(accepted[1:])}"
            other = (
                f" linsep.sklearn.{name} takes scikit-learn's parameters."
                if hints and name in DROP_IN
                else ""
            )
            raise TypeError(f"{text}{hint}.{other}") from error

    return wrapped  # type: ignore[return-value]
