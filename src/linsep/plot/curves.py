"""Curves over C, epochs and problems, and bar charts of coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linsep.arrays import FloatArray
from linsep.errors import BadInput
from linsep.plot import style


def validation_curve(
    Cs: Any, validation: Any = None, train: Any = None, best: float | None = None, ax: Any = None
) -> Any:
    """Draw the error against C, on a logarithmic axis, and mark the best C.

    Parameters
    ----------
    Cs : array (k,), or result of ``linsep.tune``
        Positive and finite. A result of ``tune`` contains the validation errors and the chosen C too.
    validation : array (k,) or (k, folds)
        Errors on validation rows; several folds are drawn as mean and standard deviation.
    train : array (k,) or (k, folds), optional
        Errors on training rows.
    best : float, optional
        By default the C with the smallest mean validation error; among ties, the smallest.
    ax : Axes, optional

    Returns
    -------
    Axes

    Raises
    ------
    BadInput
        If a C is not positive and finite, or the arrays do not match.
    ImportError
        If matplotlib is not installed.

    See Also
    --------
    linsep.tune : Computes the curve.

    Examples
    --------
    >>> from linsep import plot
    >>> ax = plot.validation_curve([0.1, 1.0, 10.0], [0.3, 0.2, 0.25])
    """
    score = "error"
    if hasattr(Cs, "curve"):
        best = Cs.best_C if best is None else best
        Cs, validation, score = Cs.curve.Cs, Cs.curve.scores, Cs.curve.scoring
    if validation is None:
        raise BadInput("validation is needed: the errors for each C, or give the result of tune.")
    Cs = _curve("Cs", Cs)
    if not ((Cs > 0) & np.isfinite(Cs)).all():
        raise BadInput("Cs must be positive and finite to be drawn on a logarithmic axis.")
    order = np.argsort(Cs)
    ax = style.new_axes(ax)
    for values, label, colour, look in (
        (train, "training", style.BLUE, "--o"),
        (validation, "validation", style.VERMILION, "-^"),
    ):
        if values is not None:
            mean, spread = _folds(label, values, len(Cs))
            ax.plot(Cs[order], mean[order], look, color=colour, markersize=5, label=label)
            if spread is not None:
                low, high = (mean - spread)[order], (mean + spread)[order]
                ax.fill_between(Cs[order], low, high, color=colour, alpha=0.15, linewidth=0)
    mean = _folds("validation", validation, len(Cs))[0]
    if best is None:
        best = float(Cs[order][mean[order].argmin()])
    ax.axvline(best, color=style.BLACK, linestyle=":", linewidth=1.4, label=f"best C = {best:.3g}")
    ax.set_xscale("log")
    ax.legend(frameon=False)
    return style.finish(ax, "C (a large C means a weak penalty)", score, "validation curve")


def risks(last: Any, best: Any = None, ax: Any = None, epochs: Any = None) -> Any:
    """Draw the empirical risk of the last and of the best iterate against the epoch.

    Parameters
    ----------
    last : array (points,), or fitted SGDClassifier of two classes
        Risk at successive points of the run. For a model: the objective in its ``history_``, against the step.
    best : array (points,), optional
        By default the running minimum of ``last``.
    ax : Axes, optional
    epochs : array (points,), optional
        Number of epochs before each point, for instance ``history_.steps / n``; by default 1, 2, 3, ...

    Returns
    -------
    Axes

    Raises
    ------
    BadInput
        If the arrays differ in length.
    ImportError
        If matplotlib is not installed.

    See Also
    --------
    step_sizes : The effect of the step size.
    linsep.SGDClassifier : Records the risks in ``history_``.

    Examples
    --------
    >>> from linsep import plot
    >>> ax = plot.risks([3.0, 1.0, 2.0])
    """
    horizontal, vertical = "epoch", "empirical risk"
    if hasattr(last, "history_"):
        history, horizontal, vertical = last.history_, "step", "objective"
        last, best, epochs = history.last, history.best, history.steps
    last = _curve("last", last)
    best = np.minimum.accumulate(last) if best is None else _curve("best", best)
    if len(best) != len(last):
        raise BadInput(f"last and best must be equally long, got {len(last)} and {len(best)}.")
    epochs = np.arange(1, len(last) + 1) if epochs is None else _curve("epochs", epochs)
    if len(epochs) != len(last):
        raise BadInput(f"last and epochs must be equally long, got {len(last)} and {len(epochs)}.")
    ax = style.new_axes(ax)
    ax.plot(epochs, last, "-", color=style.SKY, linewidth=1.2, label="last iterate")
    ax.plot(epochs, best, "--", color=style.BLACK, linewidth=1.8, label="best so far")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend(frameon=False)
    return style.finish(ax, horizontal, vertical, "stochastic descent: last and best iterate")


def updates_against_bound(updates: Any, bound: Any, ax: Any = None) -> Any:
    """Draw the number of perceptron updates against its bound, one point per problem.

    Points above the diagonal contradict the bound and are drawn as crosses.

    Parameters
    ----------
    updates, bound : array (problems,)
        Positive numbers; ``bound`` may contain ``Bound`` objects of ``linsep.bounds``.
    ax : Axes, optional

    Returns
    -------
    Axes

    Raises
    ------
    BadInput
        If the numbers are not positive, or the arrays differ in length.
    ImportError
        If matplotlib is not installed.

    See Also
    --------
    linsep.bounds.mistake_bounds : The bounds.

    Examples
    --------
    >>> from linsep import plot
    >>> ax = plot.updates_against_bound([3, 9], [10, 20])
    """
    made = _curve("updates", updates)
    allowed = _curve("bound", [float(value) for value in np.ravel(bound)])
    if len(made) != len(allowed) or not ((made > 0) & (allowed > 0)).all():
        raise BadInput("updates and bound must be positive and equally many.")
    ax = style.new_axes(ax)
    ends = [min(made.min(), allowed.min()) / 1.5, max(made.max(), allowed.max()) * 1.5]
    ax.plot(ends, ends, "--", color=style.BLACK, linewidth=1.2, label="updates = bound")
    broken = made > allowed
    ax.plot(allowed[~broken], made[~broken], "o", color=style.BLUE, label="within the bound")
    if broken.any():
        ax.plot(
            allowed[broken],
            made[broken],
            "X",
            color=style.VERMILION,
            markersize=9,
            label="above it",
        )
    ax.set(xscale="log", yscale="log")
    ax.legend(frameon=False)
    return style.finish(ax, "bound", "updates made", "perceptron updates against the bound")


def coefficients(
    model: Any, names: Sequence[str] | None = None, top: int = 20, scale: Any = None, ax: Any = None
) -> Any:
    """Draw the largest coefficients of a two-class model as bars, with names.

    Parameters
    ----------
    model : fitted linear model, or pair (w, b)
    names : sequence of str, optional
        By default ``feature_names_in_`` of the model, else x0, x1, ...
    top : int, default 20
        Number of coefficients to draw, by absolute value.
    scale : array (d,), optional
        Factor for each coefficient, for instance the standard deviation of its feature, which makes them
        comparable.
    ax : Axes, optional

    Returns
    -------
    Axes

    Raises
    ------
    BadInput
        If the model has more than two classes, or names and coefficients do not match.
    ImportError
        If matplotlib is not installed.

    See Also
    --------
    linsep.summary : Coefficients with standard errors.

    Examples
    --------
    >>> from linsep import LogisticRegression, datasets, plot
    >>> X, y = datasets.breast_cancer()
    >>> ax = plot.coefficients(LogisticRegression().fit(X, y), top=10, scale=X.std(axis=0))
    """
    w, _ = style.plane(model, d=None)
    if names is None:
        names = getattr(model, "feature_names_in_", None)
    labels = [f"x{j}" for j in range(len(w))] if names is None else [str(name) for name in names]
    if len(labels) != len(w):
        raise BadInput(f"{len(w)} names are needed, got {len(labels)}.")
    if top < 1:
        raise BadInput(f"top must be at least 1, got {top!r}.")
    values = w if scale is None else w * _curve("scale", scale, len(w))
    chosen = np.argsort(-np.abs(values), kind="stable")[:top][::-1]
    ax = style.new_axes(ax, (6.0, 1.2 + 0.26 * len(chosen)))
    for sign, colour, hatch in ((1, style.VERMILION, ""), (-1, style.BLUE, "///")):
        rows = np.nonzero(np.sign(values[chosen]) == sign)[0]
        ax.barh(
            rows, values[chosen][rows], color=colour, hatch=hatch, edgecolor="white", linewidth=0
        )
    ax.set_yticks(range(len(chosen)), [labels[j] for j in chosen])
    ax.set_ylim(-0.6, len(chosen) - 0.4)
    ax.axvline(0, color=style.BLACK, linewidth=0.8)
    classes = getattr(model, "classes_", None)
    first, second = ("first class", "second class") if classes is None else classes
    of = "coefficient" if scale is None else "coefficient times scale of the feature"
    sides = f"{of}\nhatched: towards {first}, plain: towards {second}"
    return style.finish(ax, sides, "", "largest coefficients")


def _curve(name: str, values: Any, length: int | None = None) -> FloatArray:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BadInput(f"{name} must be a sequence of numbers, got {values!r:.80}.") from error
    if array.ndim != 1 or not len(array) or (length is not None and len(array) != length):
        wanted = "a sequence of numbers" if length is None else f"{length} numbers"
        raise BadInput(f"{name} must be {wanted}, got shape {array.shape}.")
    return array


def _folds(name: str, values: Any, count: int) -> tuple[FloatArray, FloatArray | None]:
    """Return mean and standard deviation over the folds; None for the latter without folds."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim not in (1, 2) or len(array) != count:
        raise BadInput(
            f"{name} errors must have shape ({count},) or ({count}, folds), got {array.shape}."
        )
    if array.ndim == 1:
        return array, None
    return array.mean(axis=1), array.std(axis=1)
