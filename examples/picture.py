"""Draw the picture of the README from real runs.

Left: objective and proven lower bound of a logistic regression that is stopped after 1, 3, 5, ... passes (standardised
features). Right: the proven excess over the optimum for eight values of C, and that of scikit-learn's default settings
on the same problems, by the same lower bounds (raw features). Data: the breast cancer set.
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

CS = np.logspace(-3, 4, 8)
BLUE, ORANGE = "#0072B2", "#D55E00"  # colour-blind safe, Okabe and Ito


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


def draw_bounds(axes, X, y):
    """Objective and proven lower bound of fits that are stopped early."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fits = [
            LogisticRegression(solver="newton", max_passes=k).fit(X, y) for k in range(1, 18, 2)
        ]
    passes = [fit.n_passes_ for fit in fits]
    primal = [fit.certificate_.primal for fit in fits]
    dual = [fit.certificate_.dual for fit in fits]
    axes.plot(passes, primal, "-s", color=ORANGE, markersize=5, label="objective")
    axes.plot(passes, dual, "-o", color=BLUE, markersize=5, label="proven lower bound")
    axes.fill_between(passes, dual, primal, color="0.9", label="the optimum is in here")
    axes.set_ylim(-3, 145)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set(
        xlabel="passes over the data",
        ylabel="objective",
        title="Two proven bounds\nenclose the optimum",
    )


def draw_gaps(axes, X, y):
    """Proven relative gap for each C, and the distance at which the peer ends."""
    models = [LogisticRegression(C=C).fit(X, y) for C in CS]
    floors = np.array([model.certificate_.dual for model in models])
    values = np.array([objective(peer(C, X, y), X, y) for C in CS])
    excess = values / floors - 1
    gaps = [model.certificate_.gap for model in models] / floors
    axes.plot(CS, excess, "s", color=ORANGE, label="scikit-learn, default settings")
    axes.plot(CS, gaps, "o", color=BLUE, label="linsep, default settings")
    axes.axhline(
        models[0].tol, color="0.4", linestyle="--", linewidth=1, label="linsep's default tol"
    )
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="C (unscaled features)",
        ylabel="relative excess over the optimum",
    )
    axes.set_ylim(1e-13, 30)
    low, high = 100 * excess.min(), 100 * excess.max()
    axes.set_title(f"scikit-learn ends {low:.0f} % to {high:.0f} %\nabove the optimum")
    return models


def main(folder):
    X, y = load_breast_cancer(return_X_y=True)
    plt.rcParams["font.size"] = 11  # readable on a phone, where the figure is about 360 pixels wide
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.9), layout="constrained")
    draw_bounds(left, (X - X.mean(axis=0)) / X.std(axis=0), y)
    models = draw_gaps(right, X, y)
    left.legend(frameon=False, fontsize=10, borderaxespad=0)
    right.legend(frameon=False, fontsize=10, loc="center left", bbox_to_anchor=(0, 0.66))
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    path = folder / "picture.png"
    figure.savefig(path, dpi=200)
    for model in models:
        print(f"C = {model.C:g}: {model.certificate_}")
    print(f"wrote {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
