"""Figures of two features: points, convex hulls and decision boundaries."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull, QhullError
from sklearn.pipeline import Pipeline

from linsep.arrays import FloatArray
from linsep.data import Memory
from linsep.errors import BadInput
from linsep.estimators import Perceptron
from linsep.plot import style
from linsep.plot.style import Plane
from linsep.separability import Separable, decide

BOUNDARY = {"color": style.BLACK, "linewidth": 2.0, "linestyle": "-"}
MARGIN = {"color": style.BLACK, "linewidth": 1.1, "linestyle": "--"}


def separability(X: Any, y: Any, ax: Any = None) -> Any:
    """Draw the rows of two classes with their convex hulls: the classes are separable iff the hulls do not meet.

    Parameters
    ----------
    X : array or dataframe (n, 2)
    y : labels of two classes
    ax : Axes, optional

    Returns
    -------
    Axes
        Its title is "linearly separable" or "not linearly separable", decided by ``linsep.separate``.

    Raises
    ------
    BadInput
        If X does not have two features and y two classes.
    ImportError
        If matplotlib is not installed.

    See Also
    --------
    linsep.separate : Decides separability in any dimension, with a proof.

    Examples
    --------
    >>> from linsep import datasets, plot
    >>> X, y = datasets.blobs_margin(40, margin=0.3)
    >>> plot.separability(X, y).get_title()
    'linearly separable'
    """
    points = style.two_features(X)
    _, positive = style.two_classes(y, len(points))
    ax = style.new_axes(ax)
    for rows, (colour, _), dashes in zip(
        (~positive, positive), style.CLASSES, ("--", "-"), strict=True
    ):
        outline = _hull(points[rows])
        ax.fill(*outline.T, facecolor=colour, alpha=0.12)
        ax.plot(*np.vstack([outline, outline[:1]]).T, dashes, color=colour, linewidth=1.2)
    style.scatter(ax, points, y)
    ax.legend(frameon=False)
    ax.set_aspect("equal", adjustable="datalim")
    title = f"{'' if _separable(points, positive) else 'not '}linearly separable"
    return style.finish(ax, *style.column_names(X), title)


def separators(X: Any, y: Any, lines: Sequence[Any] | None = None, ax: Any = None) -> Any:
    """Draw several lines that separate the same rows, the one with the widest margin in bold.

    Parameters
    ----------
    X : array or dataframe (n, 2)
    y : labels of two classes
    lines : sequence of models or pairs (w, b), optional
        By default the lines found by perceptrons with five orders of the rows.
    ax : Axes, optional

    Returns
    -------
    Axes

    Raises
    ------
    BadInput
        If no line separates the classes.

    See Also
    --------
    separability : The convex hulls.
    linsep.LinearSVC : With ``C=inf``, the widest margin.

    Examples
    --------
    >>> from linsep import datasets, plot
    >>> X, y = datasets.blobs_margin(40, margin=0.3)
    >>> ax = plot.separators(X, y)
    """
    points = style.two_features(X)
    _, positive = style.two_classes(y, len(points))
    signs = np.where(positive, 1.0, -1.0)
    found = _perceptrons(points, signs) if lines is None else [style.plane(line) for line in lines]
    ax = style.new_axes(ax)
    box = style.frame(points)
    margins = [float((signs * (points @ w + b)).min() / np.linalg.norm(w)) for w, b in found]
    looks = itertools.cycle([(0, (5, 2)), (0, (1, 1.5)), (0, (5, 2, 1, 2)), (0, (3, 1))])
    for place, k in enumerate(np.argsort(margins, kind="stable")[::-1]):
        look = {"color": style.BLACK, "linewidth": 2.2, "linestyle": "-"}
        if place > 0:
            look = {"color": style.GREY, "linewidth": 1.3, "linestyle": next(looks)}
        w, b = found[k]
        style.draw_line(ax, w, b, box, label=f"margin {margins[k]:.3g}", **look)
    style.scatter(ax, points, y)
    style.fit_box(ax, box)
    ax.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return style.finish(ax, *style.column_names(X), "many separators, one widest margin")


def boundary(
    model: Any,
    X: Any,
    y: Any,
    support: Any = None,
    ax: Any = None,
    margins: bool = True,
    legend: bool = True,
) -> Any:
    """Draw the decision boundary g(x) = 0, the margins g(x) = -1, +1 and the support vectors.

    Parameters
    ----------
    model : fitted linear model, pair (w, b), or fitted Pipeline
        A linear model has ``coef_`` and ``intercept_``. For a pipeline, for instance basis functions before
        a linear model, the curves g(x) = 0, -1, +1 are drawn.
    X : array or dataframe (n, 2)
    y : labels of two classes
    support : array of int, optional
        Rows to circle; by default ``support_`` of the model, if it has one.
    ax : Axes, optional
    margins : bool, default True
        Draw g = -1 and g = +1, at distance 1/|w| from the boundary.
    legend : bool, default True

    Returns
    -------
    Axes

    Raises
    ------
    BadInput
        If X does not have two features, or the model has more than two classes or no boundary.
    ImportError
        If matplotlib is not installed.

    See Also
    --------
    effect_of_strength : Several C side by side.

    Examples
    --------
    >>> from linsep import LinearSVC, datasets, plot
    >>> X, y = datasets.overlapping(40)
    >>> ax = plot.boundary(LinearSVC().fit(X, y), X, y)
    """
    points = style.two_features(X)
    curved = isinstance(model, Pipeline)
    plane = None if curved else _boundary_plane(model)
    ax = style.new_axes(ax)
    box = style.frame(points)
    if plane is None:
        _draw_curves(ax, model, X, box, margins)
    else:
        _draw_lines(ax, plane, box, margins)
    style.scatter(ax, points, y)
    if support is None:
        support = getattr(model, "support_", None)
    if support is not None and len(support):
        ax.scatter(
            *points[np.asarray(support)].T,
            s=120,
            facecolor="none",
            edgecolor=style.BLACK,
            linewidth=1.2,
            zorder=4,
            label="support vectors",
        )
    style.fit_box(ax, box)
    if legend:
        ax.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return style.finish(ax, *style.column_names(X))


def _boundary_plane(model: Any) -> Plane:
    w, b = style.plane(model)
    if not np.linalg.norm(w) > 0:
        raise BadInput("w = 0: this model has no boundary, every row gets the same label.")
    return w, b


def _draw_lines(ax: Any, plane: Plane, box: Any, margins: bool) -> None:
    w, b = plane
    for side, (colour, _) in zip((-1, 1), style.CLASSES, strict=True):
        area = style.halfplane(side * w, side * b, box)
        if len(area):
            ax.fill(*area.T, facecolor=colour, alpha=0.07, linewidth=0, zorder=0)
    style.draw_line(ax, w, b, box, label="$g(x) = 0$", **BOUNDARY)
    label: str | None = r"$g(x) = \pm 1$"
    for level in (-1, 1) if margins else ():
        if style.draw_line(ax, w, b - level, box, label=label, **MARGIN) is not None:
            label = None


def _draw_curves(ax: Any, model: Any, X: Any, box: Any, margins: bool) -> None:
    """Draw contours of the scores on a grid of 200 x 200 points."""
    x, y = np.linspace(box[0], box[1], 200), np.linspace(box[2], box[3], 200)
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    columns = getattr(X, "columns", None)
    rows = grid if columns is None else type(X)(dict(zip(columns, grid.T, strict=True)))
    scores = np.asarray(model.decision_function(rows), dtype=np.float64)
    if scores.ndim != 1:
        raise BadInput(f"this figure shows two classes, the model scores {scores.shape[1]}.")
    scores = scores.reshape(200, 200)
    shades = [colour for colour, _ in style.CLASSES]
    ax.contourf(x, y, scores >= 0, levels=[-0.5, 0.5, 1.5], colors=shades, alpha=0.07, zorder=0)
    for levels, label, look in (
        ([0.0], "$g(x) = 0$", BOUNDARY),
        ([-1.0, 1.0], r"$g(x) = \pm 1$", MARGIN),
    ):
        if (
            (label == "$g(x) = 0$" or margins)
            and scores.min() < levels[-1]
            and scores.max() > levels[0]
        ):
            ax.contour(
                x,
                y,
                scores,
                levels=levels,
                colors=look["color"],
                linewidths=look["linewidth"],
                linestyles=look["linestyle"],
            )
            # Contours do not create a legend entry.
            ax.plot([], [], label=label, **look)


def effect_of_strength(models: Sequence[Any], X: Any, y: Any, axes: Any = None) -> Any:
    """Draw fits of the same rows with different C side by side: a smaller C gives a wider margin.

    Parameters
    ----------
    models : sequence of fitted linear models
        The titles show their ``C``, if they have one, and the width 2/|w| between the margins.
    X, y
        Rows (n, 2) and labels of two classes.
    axes : sequence of Axes, optional
        One for each model.

    Returns
    -------
    array of Axes

    Raises
    ------
    BadInput
        If there is no model, or X does not have two features.
    ImportError
        If matplotlib is not installed.

    See Also
    --------
    boundary : One model.

    Examples
    --------
    >>> from linsep import LinearSVC, datasets, plot
    >>> X, y = datasets.overlapping(40)
    >>> axes = plot.effect_of_strength([LinearSVC(C=C).fit(X, y) for C in (0.01, 1.0)], X, y)
    """
    if not len(models):
        raise BadInput("at least one model is needed.")
    axes = style.new_row(axes, len(models))
    for k, (model, ax) in enumerate(zip(models, axes, strict=True)):
        boundary(model, X, y, ax=ax, legend=False)
        width = 2 / np.linalg.norm(style.plane(model)[0])
        strength = getattr(model, "C", None)
        title = f"width {width:.3g}" if strength is None else f"C = {strength:g}, width {width:.3g}"
        ax.set_title(title, fontsize=11)
        if k:
            ax.set_ylabel("")
    return axes


def _hull(points: FloatArray) -> FloatArray:
    """Return the vertices of the convex hull in order; for collinear points, the two ends."""
    try:
        return np.asarray(points[ConvexHull(points).vertices])
    except (QhullError, ValueError):  # fewer than three points, or all on a line
        centred = points - points.mean(axis=0)
        along = centred @ np.linalg.svd(centred)[2][0]
        return points[[along.argmin(), along.argmax()]]


def _separable(points: FloatArray, positive: Any) -> bool:
    """Return whether some line has every row strictly on the side of its class."""
    with closing(Memory(points, np.where(positive, 1.0, -1.0))) as data:
        return isinstance(decide(data, fit_intercept=True), Separable)


def _perceptrons(points: FloatArray, signs: FloatArray, runs: int = 5) -> list[Plane]:
    """Return separators found by perceptrons that visit the rows in different orders."""
    if not _separable(points, signs > 0):
        raise BadInput("the classes are not linearly separable: there is no separator to draw.")
    centre, scale = points.mean(axis=0), np.abs(points - points.mean(axis=0)).max()
    found = []
    for run in range(runs):
        model = Perceptron(order="random", max_updates=100_000, random_state=run)
        model.fit((points - centre) / scale, signs)
        if model.separated_:
            w = model.coef_[0] / scale
            found.append((w, float(model.intercept_[0] - w @ centre)))
    if not found:
        raise BadInput("the margin is too small for a perceptron: pass the lines to draw.")
    return found
