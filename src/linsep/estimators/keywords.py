"""Error messages for keywords that scikit-learn's estimators accept and linsep's do not, with the replacement."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from typing import Any, TypeVar

Init = TypeVar("Init", bound=Callable[..., None])

#: Keyword of scikit-learn -> (required parameters, hint). The first hint applies whose parameters the estimator has.
REPLACEMENTS: dict[str, tuple[tuple[tuple[str, ...], str], ...]] = {
    "penalty": (
        (("l1_ratio",), "use l1_ratio=0 for L2, l1_ratio=1 for L1, C=inf for no penalty"),
        (("C",), 'leave it out for L2; for L1 use LinearClassifier("squared_hinge", l1_ratio=1)'),
        ((), "leave it out, because this estimator has no penalty"),
    ),
    "l1_ratio": (
        (("C",), 'use LinearClassifier("squared_hinge", l1_ratio=...)'),
        ((), "leave it out, because this estimator has no penalty"),
    ),
    "l1_ratios": (
        (("Cs",), "use LogisticRegressionCV"),
        (("l1_ratio",), "use LogisticRegressionCV, or linsep.tune(model, X, y, l1_ratios=...)"),
        ((), "leave it out, because this estimator has no L1 penalty"),
    ),
    "alpha": (
        (("C", "class_weight"), "use C = 1/(n_samples * alpha)"),
        (
            ("C",),
            "use C = 1/(2 * alpha) for the alpha of Ridge, C = 1/(2 * n_samples * alpha) for that of Lasso; "
            "linsep.sklearn has both classes",
        ),
        (("Cs",), "leave it out, because C is chosen by cross-validation"),
        ((), "leave it out, because this estimator has no penalty"),
    ),
    "max_iter": (
        (("epochs",), "use epochs"),
        (
            ("tol", "max_passes", "time_limit"),
            "leave it out: a fit runs until the proven gap is at most tol; max_passes and time_limit set a budget",
        ),
        (("max_passes",), "use max_passes, the largest number of passes over the rows"),
    ),
    "n_jobs": ((("n_threads",), "use n_threads"), ((), "leave it out: fits use one thread")),
    "verbose": (((), "use `with linsep.progress():`"),),
    "dual": (((), "leave it out: linsep chooses the method"),),
    "multi_class": (
        (("multiclass",), "use multiclass"),
        ((), "leave it out: each class is fitted against the others"),
    ),
    "intercept_scaling": (((), "leave it out: the intercept is never penalised"),),
    "learning_rate": (
        (("schedule",), "use schedule"),
        ((), "leave it out: only linsep.SGDClassifier has step sizes"),
    ),
    "power_t": (
        (("schedule",), "use schedule and decay, or a function of the step number as schedule"),
        ((), "leave it out: only linsep.SGDClassifier has step sizes"),
    ),
    "early_stopping": (((), "leave it out: only linsep.SGDClassifier has early stopping"),),
    "n_iter_no_change": (((), "leave it out: only linsep.SGDClassifier has early stopping"),),
    "validation_fraction": (
        ((), "leave it out: linsep.SGDClassifier has early stopping, linsep.tune a validation set"),
    ),
    "average": (
        (("keep",), 'use keep="average"'),
        ((), "leave it out: only Perceptron and SGDClassifier average"),
    ),
    "shuffle": (((), "leave it out: random_state sets the order of the rows"),),
    "epsilon": (
        (
            ("loss",),
            "pass the loss with its width, for instance LinearRegressor(linsep.losses.Huber(1.35))",
        ),
        ((), "leave it out: LinearRegressor has losses with a width"),
    ),
    "quantile": (((), "use LinearRegressor(linsep.losses.Pinball(0.9)) for the quantile 0.9"),),
    "kernel": (((), "leave it out: linsep's models are linear"),),
    "probability": (((), "use LogisticRegression, or sklearn.calibration.CalibratedClassifierCV"),),
    "refit": (((), "leave it out: the chosen model is always fitted to all rows"),),
    "random_state": (((), "leave it out: this estimator draws no random numbers"),),
}
#: Classes that also exist in ``linsep.sklearn``, with all parameters of scikit-learn -> a difference to warn of.
DROP_IN = {
    "LogisticRegression": "",
    "LogisticRegressionCV": "",
    "LinearSVC": " The default loss is the hinge here, and the squared hinge in scikit-learn.",
    "Perceptron": "",
    "SGDClassifier": "",
}


def explain_keywords(init: Init) -> Init:
    """Decorate a constructor so that its error for an unknown keyword names the replacement."""
    accepted = tuple(inspect.signature(init).parameters)

    @functools.wraps(init)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            init(self, *args, **kwargs)
        except TypeError:
            unknown = [name for name in kwargs if name not in accepted]
            if not unknown:
                raise
            raise TypeError(_refusal(type(self).__name__, unknown, accepted[1:])) from None

    return wrapped  # type: ignore[return-value]


@functools.cache
def _parameters_of(kind: Any) -> tuple[str, ...]:
    """Return the parameters of an estimator class, which take scikit-learn 0.1 ms to find in its signature."""
    return tuple(kind._get_param_names())


class ExplainsParameters:
    """Mixin whose ``set_params`` names the replacement of a parameter that the estimator does not have."""

    def set_params(self, **params: Any) -> Any:
        """Set parameters of this estimator.

        Parameters
        ----------
        **params : dict
            Parameters and their values.

        Returns
        -------
        self : estimator
            This estimator.

        Raises
        ------
        ValueError
            If the estimator has no such parameter; the message names the replacement of scikit-learn's parameters.
        """
        kind: Any = type(self)
        accepted = _parameters_of(kind)
        unknown = [name for name in params if name.partition("__")[0] not in accepted]
        if unknown:
            raise ValueError(_refusal(kind.__name__, unknown, accepted))
        return super().set_params(**params)  # type: ignore[misc]


def _refusal(estimator: str, unknown: list[str], accepted: Collection[str]) -> str:
    """Say which parameters an estimator does not have, and what to use instead."""
    hints = {name: _hint(name, accepted) for name in unknown if name in REPLACEMENTS}
    plural = "s" if len(unknown) > 1 else ""
    text = f"{estimator} has no parameter{plural} {', '.join(map(repr, unknown))}"
    if len(unknown) == len(hints) == 1:
        hint = f". {hints[unknown[0]][0].upper()}{hints[unknown[0]][1:]}"
    elif hints:
        hint = "".join(f". {word}: {hint}" for word, hint in hints.items())
    else:
        hint = f". Its parameters are {', '.join(accepted)}"
    if not hints or estimator not in DROP_IN:
        return f"{text}{hint}."
    return f"{text}{hint}. To keep scikit-learn's parameters, use linsep.sklearn.{estimator}.{DROP_IN[estimator]}"


def _hint(word: str, accepted: Collection[str]) -> str:
    """Return what to use instead of the keyword ``word`` in an estimator with the parameters ``accepted``."""
    return next(hint for needed, hint in REPLACEMENTS[word] if set(needed) <= set(accepted))
