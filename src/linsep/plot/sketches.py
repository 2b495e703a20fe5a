"""Illustrations of the theory: losses, geometry, step sizes, all computed rather than sketched."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linsep import losses as catalogue
from linsep.errors import BadInput
from linsep.plot import style

# Colour and dashes of each loss. The squared and the absolute loss coincide with the squared hinge and the hinge
# below margin 1: one of each pair is dashed and drawn on top of the other, so that both are visible.
_LOOKS: dict[str, tuple[str, Any]] = {
    "0-1": (style.BLACK, "-"),
    "hinge": (style.BLUE, "-"),
    "squared hinge": (style.BLUE, "--"),
    "huberised hinge": (style.BLUE, ":"),
    "logistic": (style.VERMILION, "--"),
    "logistic, base 2": (style.VERMILION, "-"),
    "exponential": (style.PURPLE, "-."),
    "squared": (style.GREEN, "-"),
    "absolute": (style.ORANGE, (0, (5, 5))),
    "perceptron": (style.BLACK, "-."),
}


def losses(names: Sequence[Any] | None = None, ax: Any = None) -> Any:
    """Draw losses against the margin, and show which of them are upper bounds of the 0-1 loss.

    The logistic loss is drawn with the natural logarithm and with base 2: only the latter is an upper bound of
    the 0-1 loss, since log 2 = 0.693 < 1 at margin 0.

    Parameters
    ----------
    names : sequence of names or Loss, optional
        By default all losses for classification, and the logistic loss in base 2.
    ax : Axes, optional

    Returns
    -------
    Axes

    Raises
    ------
    BadInput
        If a loss is unknown.
    ImportError
        If matplotlib is not installed.

    See Also
    --------
    linsep.losses.dominates_zero_one : Whether a loss is an upper bound of the 0-1 loss.

    Examples
    --------
    >>> from linsep import plot
    >>> ax = plot.losses(["hinge", "logistic"])
    """
    ax = style.new_axes(ax, (7.6, 4.4))
    m = np.unique(np.concatenate([np.linspace(-2, 3, 501), [0.0, 1.0]]))
    groups: dict[str, list[Any]] = {"above the 0-1 loss:": [], "not always above it:": []}
    first: list[Any] = []
    spare = itertools.cycle(itertools.product(("-", "--", ":", "-."), (style.SKY, style.GREY)))
    for label, loss in _choose(names):
        if label in _LOOKS:
            colour, dashes = _LOOKS[label]
        else:
            dashes, colour = next(spare)
        jump = isinstance(loss, catalogue.ZeroOne)
        (line,) = ax.plot(
            [-2, 0, 0, 3] if jump else m,
            [1, 1, 0, 0] if jump else loss.value(m),
            color=colour,
            linestyle=dashes,
            linewidth=2.6 if jump else 1.8,
            zorder=2 if dashes == "-" else 3,
            label=label,
        )
        above = catalogue.dominates_zero_one(loss, ties="correct")
        (first if jump else groups[list(groups)[not above]]).append(line)
    handles = list(first)
    for title, lines in groups.items():
        if lines:
            handles += [ax.plot([], [], linestyle="none", label=title)[0], *lines]
    ax.legend(
        handles=handles,
        frameon=False,
        fontsize=9,
        handlelength=3,
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
    )
    ax.axvline(0, color=style.GREY, linewidth=0.7, zorder=0)
    ax.set_xlim(-2, 3)
    ax.set_ylim(-0.1, 4.2)
    return style.finish(ax, "margin $m = y\\,g(x)$", "loss", "losses as functions of the margin")


def _choose(names: Sequence[Any] | None) -> list[tuple[str, catalogue.Loss]]:
    if names is not None:
        return [(_label(loss), loss) for loss in map(catalogue.get, names)]
    found = []
    for name in catalogue.NAMES:
        loss = catalogue.get(name)
        if loss.classification:
            found.append((_label(loss), loss))
        if name == "logistic":
            found.append(("logistic, base 2", catalogue.LOGISTIC_BASE_2))
    return found


def _label(loss: catalogue.Loss) -> str:
    """Return the name of a loss in prose."""
    return "0-1" if isinstance(loss, catalogue.ZeroOne) else loss.name.replace("_", " ")


def geometry(w: Any = (2.0, 1.0), b: float = -3.0, x: Any = (3.0, 2.5), ax: Any = None) -> Any:
    """Draw the line w.x + b = 0 in the plane with its normal w and three distances.

    Parameters
    ----------
    w : pair of numbers, Hyperplane or fitted linear model
        The last two contain b too.
    b : float
    x : pair of numbers
        A point; its projection and its distance |g(x)|/|w| are drawn.
    ax : Axes, optional

    Returns
    -------
    Axes

    Raises
    ------
    BadInput
        If w = 0.
    ImportError
        If matplotlib is not installed.

    See Also
    --------
    linsep.Hyperplane : Scores, distances and projections.

    Examples
    --------
    >>> from linsep import plot
    >>> ax = plot.geometry(w=(2.0, 1.0), b=-3.0, x=(3.0, 2.5))
    """
    w, b = style.plane(w if hasattr(w, "w") or hasattr(w, "coef_") else (w, b))
    point = style.two_features([x])[0]
    size = float(np.linalg.norm(w))
    if not size > 0:
        raise BadInput("w = 0 does not define a hyperplane; give a nonzero w.")
    ax = style.new_axes(ax, (5.6, 5.0))
    g = float(point @ w + b)
    foot = point - g * w / size**2
    origin_foot = -b * w / size**2
    along = np.array([-w[1], w[0]]) / size
    base = origin_foot - 1.1 * along * np.sign(along @ (foot - origin_foot) or 1.0)
    shown = np.array([point, foot, origin_foot, [0.0, 0.0], base, base + w / size])
    box = _square(shown)
    style.draw_line(ax, w, b, box, color=style.BLACK, linewidth=2)
    area = style.halfplane(w, b, box)
    if len(area):
        ax.fill(*area.T, facecolor=style.VERMILION, alpha=0.07, linewidth=0, zorder=0)
    arrow = {"arrowstyle": "-|>", "color": style.GREEN, "lw": 2, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", base + w / size, base, arrowprops=arrow)
    ax.plot(*np.array([point, foot]).T, "--", color=style.VERMILION, linewidth=1.6)
    ax.plot(*np.array([[0.0, 0.0], origin_foot]).T, ":", color=style.BLUE, linewidth=2)
    ax.plot(*point, "^", color=style.VERMILION, markersize=9)
    ax.plot(*foot, "s", color=style.VERMILION, markersize=6)
    ax.plot(0, 0, "o", color=style.BLUE, markersize=7)
    away = w / size * (np.sign(g) or 1.0)  # from the hyperplane to x
    back = w / size * (np.sign(b) or 1.0)  # from the hyperplane to the origin
    _note(ax, "$w/\\|w\\|$", base + w / size, style.GREEN, w / size)
    _note(ax, f"$x$,  $g(x) = {g:.3g}$", point, style.VERMILION, away)
    _note(
        ax,
        f"distance {abs(g) / size:.3g}",
        (point + foot) / 2,
        style.VERMILION,
        _side_direction(along, away),
    )
    outward = along * (np.sign(along @ (foot - origin_foot)) or 1.0)
    _note(ax, "projection", foot, style.VERMILION, outward - away)
    text = f"$|b|/\\|w\\| = {abs(b) / size:.3g}$"
    _note(ax, text, origin_foot / 2, style.BLUE, _side_direction(along, back))
    _note(ax, "origin", np.zeros(2), style.BLUE, back)
    style.fit_box(ax, box)
    title = f"$g(x) = {w[0]:g}\\,x_1 {w[1]:+g}\\,x_2 {b:+g}$"
    return style.finish(ax, "$x_1$", "$x_2$", title)


def _square(points: Any) -> tuple[float, float, float, float]:
    """Return a square box around the points with space for text."""
    low, high = points.min(axis=0), points.max(axis=0)
    (x, y), half = (low + high) / 2, 0.82 * float((high - low).max())
    return float(x - half), float(x + half), float(y - half), float(y + half)


def _side_direction(along: Any, away: Any) -> Any:
    """Return the direction along the hyperplane in which text does not cross it."""
    return along if along[0] * away[0] > 0 else -along


def _note(ax: Any, text: str, at: Any, colour: str, direction: Any) -> None:
    """Write text beside a point, on the side of ``direction``."""
    x, y = direction / np.linalg.norm(direction)
    ax.annotate(
        text,
        at,
        xytext=(12 * x, 12 * y),
        textcoords="offset points",
        color=colour,
        fontsize=10,
        ha="left" if x > 0.3 else "right" if x < -0.3 else "center",
        va="bottom" if y > 0.3 else "top" if y < -0.3 else "center",
        bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 1},
    )


def descend(start: float, steps: Callable[[int], float], count: int) -> Any:
    """Run gradient descent on w^2/2, whose gradient is w; return the (count + 1,) iterates for k = 1, 2, ..."""
    path = [start]
    for k in range(1, count + 1):
        path.append(path[-1] * (1 - steps(k)))
    return np.array(path)


def step_sizes(axes: Any = None, count: int = 12) -> Any:
    """Draw gradient descent on the risk w^2/2 with step sizes that are too small, too large, and diminishing.

    Parameters
    ----------
    axes : sequence of three Axes, optional
    count : int, default 12
        Number of steps.

    Returns
    -------
    array of three Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.

    See Also
    --------
    linsep.check_schedule : Whether a step size schedule converges.

    Examples
    --------
    >>> from linsep import plot
    >>> small, large, diminishing = plot.step_sizes()
    """
    axes = style.new_row(axes, 3, sharey=True)
    w = np.linspace(-5.8, 5.8, 201)
    cases: list[tuple[str, Callable[[int], float]]] = [
        ("too small: $\\eta = 0.05$", lambda k: 0.05),
        ("too large: $\\eta = 2.05$", lambda k: 2.05),
        ("diminishing: $\\eta_t = 1.9/\\sqrt{t}$", lambda k: 1.9 / np.sqrt(k)),
    ]
    for ax, (title, steps) in zip(axes, cases, strict=True):
        path = descend(-3.0, steps, count)
        ax.plot(w, w**2 / 2, color=style.GREY, linewidth=1.5)
        ax.plot(path, path**2 / 2, "-o", color=style.BLUE, linewidth=1, markersize=4)
        ax.plot(path[0], path[0] ** 2 / 2, "s", color=style.GREEN, markersize=8, label="start")
        label = f"after {count} steps"
        ax.plot(path[-1], path[-1] ** 2 / 2, "*", color=style.VERMILION, markersize=13, label=label)
        ax.legend(frameon=False, fontsize=9, loc="upper center")
        style.finish(ax, "$w$", "risk" if ax is axes[0] else "", title)
    return axes
