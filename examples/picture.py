"""Draw the picture of the README from real runs.

Left: upper and lower bound close on the optimum of a logistic regression. Right: the proven distance to
the optimum for many strengths C, and where scikit-learn's default settings end on the same problems,
judged by the same lower bounds. Data: the breast cancer set, raw features.
Usage: python examples/picture.py [folder, default docs]
"""

import sys
import warnings
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import sklearn.linear_model
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning

from linsep import LogisticRegression

STRENGTHS = np.logspace(-3, 4, 8)
BLUE, ORANGE = "#0072B2", "#D55E00"  # told apart by everyone, after Okabe and Ito


def objective(model, X, y):
    """1/2 |w|^2 + C sum_i log(1 + exp(-y_i (x_i.w + b))) of a fitted model."""
    w = model.coef_[0]
    margins = np.where(y == 1, 1, -1) * (X @ w + model.intercept_[0])
    return w @ w / 2 + model.C * np.logaddexp(0, -margins).sum()


def peer(C, X, y):
    """Fit scikit-learn's estimator of the same objective with its default settings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return sklearn.linear_model.LogisticRegression(C=C).fit(X, y)


def draw_bounds(axes, model):
    """Objective and proven lower bound against passes over the data."""
    passes = [record.passes for record in model.trace_]
    primal = np.minimum.accumulate([record.primal for record in model.trace_])
    dual = np.maximum.accumulate([record.dual for record in model.trace_])
    axes.plot(passes, primal, "-s", color=ORANGE, markersize=5, label="objective so far")
    axes.plot(passes, dual, "-o", color=BLUE, markersize=5, label="proven lower bound")
    axes.fill_between(passes, dual, primal, color="0.9", label="the optimum is in here")
    axes.set_ylim(-5, 200)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set(
        xlabel="passes over the data", ylabel="objective", title="Two bounds close on the optimum"
    )


def draw_gaps(axes, X, y):
    """Proven relative gap for each strength, and the distance at which the peer ends."""
    models = [LogisticRegression(C=C).fit(X, y) for C in STRENGTHS]
    floors = np.array([model.certificate_.dual for model in models])
    values = np.array([objective(peer(C, X, y), X, y) for C in STRENGTHS])
    gaps = [model.certificate_.relative_gap for model in models]
    axes.plot(
        STRENGTHS,
        (values - floors) / values,
        "s",
        color=ORANGE,
        label="scikit-learn, default settings",
    )
    axes.plot(STRENGTHS, gaps, "o", color=BLUE, label="linsep, default settings")
    axes.axhline(
        models[0].tol, color="0.4", linestyle="--", linewidth=1, label="linsep's default tol"
    )
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="strength C",
        ylabel="(objective - lower bound) / objective",
    )
    axes.set_ylim(1e-13, 30)
    axes.set_title("Proven distance to the optimum")
    return models


def main(folder):
    X, y = load_breast_cancer(return_X_y=True)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    draw_bounds(left, LogisticRegression(C=1.0, solver="newton").fit(X, y))
    models = draw_gaps(right, X, y)
    left.legend(frameon=False, fontsize=9)
    right.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(0, 0.66))
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    path = folder / "picture.png"
    figure.savefig(path, dpi=130)
    for model in models:
        print(f"C = {model.C:g}: {model.certificate_}")
    print(f"wrote {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
