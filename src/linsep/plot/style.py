"""The style of all figures, and conversion of arguments to points, labels and planes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from linsep.arrays import BoolArray, FloatArray
from linsep.errors import BadInput
from linsep.estimators.scoring import dense_coef

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Plane = tuple[FloatArray, float]

# Palette of Okabe and Ito, safe for colour-blind readers.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
GREY = "#666666"
#: Negative and positive class: colour and marker.
CLASSES = ((BLUE, "o"), (VERMILION, "^"))


def pyplot() -> Any:
    """Return ``matplotlib.pyplot``, or raise with installation instructions."""
    try:
        import matplotlib.pyplot as plt  # noqa: PLC0415
    except ImportError as error:
        raise ImportError(
            "linsep.plot draws with matplotlib, which is not installed: pip install matplotlib."
        ) from error
    return plt


def new_axes(ax: Axes | None, size: tuple[float, float] = (5.6, 4.2)) -> Any:
    """Return ``ax``, or the axes of a new figure."""
    if ax is not None:
        return ax
    return pyplot().subplots(figsize=size, layout="constrained")[1]


def new_row(axes: Any, count: int, size: tuple[float, float] = (3.6, 3.4), **options: Any) -> Any:
    """Return ``axes`` if there are ``count`` of them, or those of a new figure with that many side by side."""
    if axes is None:
        width, height = size
        plt = pyplot()
        return plt.subplots(
            1,
            count,
            figsize=(width * count, height),
            layout="constrained",
            squeeze=False,
            **options,
        )[1][0]
    axes = np.asarray(axes).ravel()
    if len(axes) != count:
        raise BadInput(f"{count} axes are needed, got {len(axes)}.")
    return axes


def finish(ax: Any, xlabel: str = "", ylabel: str = "", title: str = "") -> Any:
    """Set the labels, and remove the box around the data."""
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.set_title(title, fontsize=11)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def two_features(X: Any) -> FloatArray:
    """Return X as points of the plane, or raise if it does not have two features."""
    try:
        points = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BadInput(f"X must be a dense array of numbers, got {type(X).__name__}.") from error
    if points.ndim != 2 or points.shape[1] != 2 or not len(points):
        raise BadInput(
            f"this figure shows two features: X must have shape (n, 2), got {points.shape}. "
            "Pick two columns, or project first."
        )
    if not np.isfinite(points).all():
        raise BadInput("X must be finite to be drawn.")
    return points


def two_classes(y: Any, n: int) -> tuple[npt.NDArray[Any], BoolArray]:
    """Return the two classes in sorted order, and a mask of the rows of the second."""
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise BadInput(f"y must have one label for each of {n} rows, got shape {labels.shape}.")
    classes = np.unique(labels)
    if len(classes) != 2:
        raise BadInput(
            f"this figure shows two classes, y has {len(classes)}; show one against the others, for instance "
            f"y == {classes[:1].tolist()[0]!r}."
        )
    return classes, labels == classes[1]


def column_names(X: Any) -> tuple[str, str]:
    """Return the names of the two columns, or defaults if X has none."""
    columns = getattr(X, "columns", None)
    return ("$x_1$", "$x_2$") if columns is None else (str(columns[0]), str(columns[1]))


def plane(model: Any, d: int | None = 2) -> Plane:
    """Return (w, b) of a fitted linear model of two classes, of an object with w and b, or of a pair."""
    if isinstance(model, tuple) and len(model) == 2:
        w, b = model
    elif getattr(model, "coef_", None) is not None:
        w, b = dense_coef(model), model.intercept_
    elif getattr(model, "w", None) is not None:
        w, b = model.w, model.b
    else:
        raise BadInput(
            f"a fitted linear model (with coef_ and intercept_) or a pair (w, b) is needed, got {model!r}."
        )
    w, b = np.asarray(w, dtype=np.float64), np.ravel(np.asarray(b, dtype=np.float64))
    if w.ndim == 2 and len(w) > 1:
        raise BadInput(
            f"this figure shows two classes, the model has {len(w)} rows of coefficients; show one of them as the "
            "pair (coef_[c], intercept_[c])."
        )
    w = w.ravel()
    if (d is not None and len(w) != d) or len(b) != 1:
        raise BadInput(f"{d} coefficients and one intercept are needed, got {len(w)} and {len(b)}.")
    return w, float(b[0])


def frame(X: FloatArray, room: float = 0.12) -> tuple[float, float, float, float]:
    """Return a box around the points with a margin: x0, x1, y0, y1."""
    low, high = X.min(axis=0), X.max(axis=0)
    extra = room * np.where(high > low, high - low, 1.0)
    (x0, y0), (x1, y1) = low - extra, high + extra
    return float(x0), float(x1), float(y0), float(y1)


def halfplane(w: FloatArray, b: float, box: tuple[float, float, float, float]) -> FloatArray:
    """Return the corners of the part of the box where w.x + b >= 0, (k, 2), possibly none."""
    x0, x1, y0, y1 = box
    corners = np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]])
    g = corners @ w + b
    found = []
    for i in range(4):
        j = (i + 1) % 4
        if g[i] >= 0:
            found.append(corners[i])
        if (g[i] < 0) != (g[j] < 0):
            found.append(corners[i] + (corners[j] - corners[i]) * (g[i] / (g[i] - g[j])))
    return np.array(found).reshape(-1, 2)


def segment(w: FloatArray, b: float, box: tuple[float, float, float, float]) -> FloatArray | None:
    """Return the ends of the line w.x + b = 0 in the box, (2, 2), or None if it does not meet the box."""
    x0, x1, y0, y1 = box
    corners = np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]])
    g = corners @ w + b
    ends = [
        corners[i] + (corners[j] - corners[i]) * (g[i] / (g[i] - g[j]))
        for i, j in ((0, 1), (1, 2), (2, 3), (3, 0))
        if (g[i] < 0) != (g[j] < 0)
    ]
    return np.array(ends) if len(ends) == 2 else None


def scatter(ax: Any, X: FloatArray, y: Any, size: float = 36) -> None:
    """Draw the rows with one marker and colour for each class."""
    classes, positive = two_classes(y, len(X))
    for label, rows, (colour, marker) in zip(classes, (~positive, positive), CLASSES, strict=True):
        ax.scatter(
            *X[rows].T,
            s=size,
            marker=marker,
            color=colour,
            edgecolor="white",
            linewidth=0.6,
            label=f"class {label}",
            zorder=3,
        )


def draw_line(ax: Any, w: FloatArray, b: float, box: Any, **style: Any) -> Any:
    """Draw the line w.x + b = 0 within the box, if it meets the box."""
    ends = segment(w, b, box)
    if ends is None:
        return None
    return ax.plot(*ends.T, **style)[0]


def fit_box(ax: Any, box: tuple[float, float, float, float]) -> None:
    """Set the limits to the box, with equal scales of both axes, so that right angles look right."""
    ax.set_xlim(box[:2])
    ax.set_ylim(box[2:])
    ax.set_aspect("equal", adjustable="box")
