"""Animation of the perceptron: every update turns the line towards the misclassified row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from linsep.arrays import FloatArray, IntArray
from linsep.errors import BadInput
from linsep.estimators import Perceptron
from linsep.plot import player, style

#: Maximum number of frames; more updates are thinned out evenly, keeping the first and the last.
MOST_FRAMES = 500


@dataclass(frozen=True)
class Frame:
    """The state of the perceptron after some number of updates."""

    number: int  #: updates so far
    row: int | None  #: the row of the last update
    v: FloatArray  #: (w1, w2, b) after it
    before: FloatArray  #: and before it
    wrong: int  #: rows with y g(x) <= 0


def perceptron_animation(
    X: Any, y: Any, history: Any = None, path: str | Path | None = None, seconds: float = 0.8
) -> str | Path:
    """Animate the updates of a perceptron on two features.

    Parameters
    ----------
    X : array (n, 2)
    y : labels of two classes
    history : pair (W, rows), or sequence of (w, b, row), optional
        The coefficients (w1, w2, b) after each update, and the row that caused it. By default at most 500 updates
        w += y x, b += y of a cyclic perceptron that starts at zero.
    path : str or Path, optional
        "*.html": a self-contained page with a player, operable by keyboard. "*.gif": an animated
        image. None: return the page as text, for instance for ``IPython.display.HTML``.
    seconds : float, default 0.8
        Duration of one update.

    Returns
    -------
    Path, or str if no path is given

    Raises
    ------
    BadInput
        If X does not have two features and y two classes, or ``path`` ends in neither .html nor .gif.
    ImportError
        For a .gif, if matplotlib is not installed.

    See Also
    --------
    linsep.Perceptron : The learner.

    Examples
    --------
    >>> from linsep import datasets, plot
    >>> X, y = datasets.blobs_margin(40, margin=0.3)
    >>> "<html" in plot.perceptron_animation(X, y)
    True
    """
    points = style.two_features(X)
    classes, positive = style.two_classes(y, len(points))
    signs = np.where(positive, 1.0, -1.0)
    if not 0.02 <= seconds <= 60:
        raise BadInput(f"seconds must lie between 0.02 and 60, got {seconds!r}.")
    W, rows = _record(history, len(points)) if history is not None else _run(points, signs)
    frames = _frames(points, signs, W, rows)
    names = (str(classes[0]), str(classes[1]))
    if path is None:
        return player.page(points, positive, names, frames, seconds)
    path = Path(path)
    if path.suffix == ".html":
        path.write_text(player.page(points, positive, names, frames, seconds), encoding="utf-8")
    elif path.suffix == ".gif":
        _write_gif(points, y, frames, path, seconds)
    else:
        raise BadInput(f"path must end in .html or .gif, got {path.name!r}.")
    return path


def _run(points: FloatArray, signs: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return (w1, w2, b) after each update of a cyclic perceptron, and the rows of the updates."""
    rows = Perceptron(max_updates=MOST_FRAMES).fit(points, signs).history_.rows
    Z = np.column_stack([points, np.ones(len(points))])
    return np.cumsum(signs[rows, None] * Z[rows], axis=0), rows


def _record(history: Any, n: int) -> tuple[FloatArray, IntArray]:
    """Convert either form of a history to (W, rows)."""
    wanted = "history must be a pair (W, rows) with W (T, 3), or a sequence of (w, b, row)"
    try:
        if isinstance(history, tuple) and len(history) == 2:
            W, rows = np.asarray(history[0], dtype=np.float64), np.asarray(history[1])
        else:
            steps: Sequence[Any] = list(history)
            W = np.array(
                [[*np.ravel(w), float(np.squeeze(b))] for w, b, _ in steps], dtype=np.float64
            )
            rows = np.array([row for *_, row in steps])
    except (TypeError, ValueError) as error:
        raise BadInput(f"{wanted}: {error}") from error
    if W.ndim != 2 or W.shape[1:] != (3,) or rows.shape != (len(W),):
        raise BadInput(f"{wanted}, got W {W.shape} and rows {rows.shape}.")
    if not np.isfinite(W).all() or ((rows < 0) | (rows >= n)).any():
        raise BadInput(f"{wanted}; coefficients must be finite and rows lie in 0 ... {n - 1}.")
    return W, rows.astype(np.intp)


def _frames(points: FloatArray, signs: FloatArray, W: FloatArray, rows: Any) -> list[Frame]:
    """Return the initial state and the state after each update, thinned out if there are too many."""
    Z = np.column_stack([points, np.ones(len(points))])
    V = np.vstack([np.zeros(3), W.reshape(-1, 3)])
    kept = np.unique(np.linspace(0, len(W), min(len(W), MOST_FRAMES) + 1).astype(int))
    return [
        Frame(
            int(t),
            int(rows[t - 1]) if t else None,
            V[t],
            V[max(t - 1, 0)],
            int((signs * (Z @ V[t]) <= 0).sum()),
        )
        for t in kept
    ]


def _write_gif(points: FloatArray, y: Any, frames: list[Frame], path: Path, seconds: float) -> None:
    plt = style.pyplot()
    from matplotlib.animation import FuncAnimation, PillowWriter  # noqa: PLC0415

    figure, ax = plt.subplots(figsize=(5.6, 4.6), layout="constrained")
    box = style.frame(points)

    def draw(frame: Frame) -> list[Any]:
        ax.clear()
        style.draw_line(
            ax,
            frame.before[:2],
            frame.before[2],
            box,
            color=style.GREY,
            linestyle="--",
            linewidth=1.4,
        )
        style.draw_line(ax, frame.v[:2], frame.v[2], box, color=style.BLACK, linewidth=2.2)
        style.scatter(ax, points, y)
        if frame.row is not None:
            ax.scatter(
                *points[frame.row],
                s=190,
                facecolor="none",
                edgecolor=style.BLACK,
                linewidth=1.8,
                zorder=4,
            )
        style.fit_box(ax, box)
        ax.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
        style.finish(ax, "$x_1$", "$x_2$", f"update {frame.number}: {frame.wrong} rows wrong")
        return []

    try:
        animation = FuncAnimation(figure, draw, frames=frames, init_func=lambda: [])
        writer = PillowWriter(fps=1 / seconds)  # type: ignore[arg-type]
        animation.save(path, writer=writer, dpi=90)
    finally:
        plt.close(figure)
