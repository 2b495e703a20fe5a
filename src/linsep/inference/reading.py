"""``summary``: a table of the coefficients of a fitted model, with statistics of the fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from linsep.arguments import number, pair
from linsep.bounds import clopper_pearson
from linsep.certificates import Part
from linsep.data.entrance import inputs
from linsep.errors import BadInput, Refused
from linsep.inference.intervals import (
    INTERCEPT,
    covariance,
    likelihood_facts,
    log_likelihood,
    refusal,
    with_intervals,
)
from linsep.inference.results import Coefficient, Summary
from linsep.losses import Logistic
from linsep.pipelines import require_parts


def summary(
    model: Any,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    level: float = 0.95,
    held_out: tuple[Any, Any] | None = None,
    offset: Any = None,
) -> Summary:
    """Summarise the coefficients of a fitted model: standard errors, p-values and intervals where they are valid.

    Parameters
    ----------
    model : fitted estimator of linsep, or Pipeline that ends in one
        For a pipeline, the table has one line per transformed feature.
    X, y, sample_weight : array-likes
        Training data of the model; a scan may contain y and the weights.
    level : float
        Confidence level of the intervals.
    held_out : (X, y), optional
        Held-out rows; the summary then contains their error, with an exact binomial bound on the true error.
    offset : array (n,), optional
        The offset of the fit; not together with ``held_out``.

    Returns
    -------
    Summary
        Print it, or use ``to_dict()`` and ``to_html()``.

    Raises
    ------
    BadInput
        If the rows are not those of the model, or ``level`` is not between 0 and 1.

    See Also
    --------
    write_report : The same facts and more on an HTML page.

    Notes
    -----
    Logistic regression: Wald intervals from the inverse Fisher information, valid for many rows. Least squares: t
    intervals, exact for normal errors of equal variance. Penalised models, collinear columns and losses that are not
    likelihoods have no intervals; ``inference`` says why.

    References
    ----------
    McCullagh and Nelder, Generalized Linear Models, 1989.

    Examples
    --------
    >>> import numpy as np
    >>> from linsep import LinearRegressor, summary
    >>> X = np.arange(6.0).reshape(-1, 1)
    >>> model = LinearRegressor().fit(X, [0.1, 0.9, 2.2, 2.8, 4.1, 5.0])
    >>> summary(model, X, [0.1, 0.9, 2.2, 2.8, 4.1, 5.0]).valid
    True
    """
    opened = require_parts(model, "summary")
    model, X = opened.model, opened.transform(X)
    if not 0.0 < number("level", level) < 1.0:
        raise BadInput(f"level must lie between 0 and 1, got {level!r}.")
    if not hasattr(model, "_verification_parts"):
        raise Refused(
            f"{type(model).__name__} minimises no likelihood and no sum of smooth losses, so its coefficients have no "
            "standard errors; use LogisticRegression with C=inf."
        )
    if offset is not None and held_out is not None:
        raise BadInput("held_out rows have no offset here: leave held_out out.")
    offsets = () if offset is None else (offset,)
    given = [Part(*part) for part in model._verification_parts(X, y, sample_weight, *offsets)]
    # A loss times a factor is not a likelihood: use the loss without it.
    parts = [part._replace(loss=part.loss.plain) for part in given]
    names = opened.feature_names(parts[0].W.shape[0] - 1)
    reason = refusal(parts[0])
    tables: dict[str, tuple[Coefficient, ...]] = {}
    kind = ""
    for title, column, part in _columns(model, parts):
        if reason is None:
            spread, count, kind = covariance(part)
            reason = None if spread is not None else kind
        if reason is None:
            assert spread is not None
            tables[title] = with_intervals(part, names, spread, count, level)
        else:
            tables[title] = _coefficients_only(part, names, column)
    facts = _facts(model, parts, X, y, sample_weight, offset is None)
    if reason is None and len(parts) == 1:
        facts |= likelihood_facts(parts[0])
    if held_out is not None:
        other, answers = pair("held_out", held_out, "(X, y)")
        facts.update(_held_out_performance(model, opened.transform(other), answers, level=level))
    weight = parts[0].weight
    return Summary(
        title=f"{type(model).__name__}, {given[0].loss.name} loss, C = {parts[0].penalty.C:g}",
        rows=float(parts[0].X.shape[0] if weight is None else weight.sum()),
        objective=str(model.certificate_),
        coefficients=tables,
        level=level,
        inference=kind if reason is None else f"No standard errors: {reason}",
        valid=reason is None,
        facts=facts,
    )


def _columns(model: Any, parts: list[Part]) -> list[tuple[str, int, Part]]:
    """Return title, column of W and part for each table of coefficients."""
    classes = getattr(model, "classes_", None)
    if len(parts) == 1 and parts[0].W.shape[1] == 1:
        return [("", 0, parts[0])]
    assert classes is not None
    if len(parts) == 1:
        return [(f"class {label!r}", c, parts[0]) for c, label in enumerate(classes.tolist())]
    pairs = zip(classes.tolist(), parts, strict=True)
    return [(f"class {label!r} against the others", 0, part) for label, part in pairs]


def _coefficients_only(part: Part, names: list[str], column: int) -> tuple[Coefficient, ...]:
    titles = [*names, INTERCEPT] if part.fit_intercept else names
    return tuple(Coefficient(name, float(part.W[j, column])) for j, name in enumerate(titles))


def _facts(
    model: Any, parts: list[Part], X: Any, y: Any, weight: Any, scored: bool
) -> dict[str, float]:
    """Return statistics of the fit; ``scored`` is False if it had offsets, which predictions do not include."""
    facts: dict[str, float] = {}
    part = parts[0]
    if hasattr(model, "classes_"):
        if scored:
            facts["training error"] = 1.0 - float(model.score(X, y, sample_weight=weight))
        if len(parts) == 1 and isinstance(part.loss, Logistic):
            facts["log-likelihood"] = log_likelihood(part)
    elif scored:
        facts["R squared"] = float(model.score(X, y, sample_weight=weight))
    return facts


def _held_out_performance(model: Any, X: Any, y: Any, *, level: float) -> dict[str, float]:
    if not hasattr(model, "classes_"):
        return {"held-out R squared": float(model.score(X, y))}
    y = np.asarray(y)
    found = model.predict(X)
    y = inputs.column(y, len(found), type(model).__name__)
    n, wrong = len(y), int(np.count_nonzero(found != y))
    bound = float(clopper_pearson(wrong, n, delta=1.0 - level))
    return {"held-out error": wrong / n, f"its upper bound, level {level:g}": bound}
