"""Draw the figures of the documentation from real runs: those of docs/figures.md, and those of the lessons.

Usage: python examples/figures.py [folder, default docs/figures]
"""

import contextlib
import io
import os
import re
import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline

from linsep import (
    LinearClassifier,
    LinearSVC,
    LogisticRegression,
    Perceptron,
    SGDClassifier,
    datasets,
    plot,
)
from linsep.basis import Interactions


def updates_and_bounds():
    """Perceptrons on separable rows of shrinking margin, with the bound (R B)^2 that holds for rows (x, 1)."""
    made, allowed = [], []
    for seed, margin in enumerate(np.geomspace(1.5, 0.02, 12)):
        X, y = datasets.blobs_margin(60, margin=margin, seed=seed)
        model = Perceptron().fit(X, y)
        made.append(model.n_updates_)
        allowed.append(model.bounds(X, y).radius_norm)
    return made, allowed


def hinge_risks(X, y, epochs=60):
    """Empirical hinge risk along stochastic sub-gradient descent with steps 1/sqrt(k + 1), and where."""
    model = SGDClassifier(
        "hinge", C=np.inf, schedule="inverse_sqrt", eta0=1, decay=1, epochs=epochs, tol=1e-9
    )
    history = model.fit(X, y).history_
    return history.last / len(X), history.steps / len(X)


def errors_by_strength(X, y, Cs):
    """Errors of logistic regression on training and validation rows, (len(Cs), folds)."""
    train, validation = np.empty((2, len(Cs), 5))
    for fold, (fit, held) in enumerate(KFold(5, shuffle=True, random_state=0).split(X)):
        for row, C in enumerate(Cs):
            model = LogisticRegression(C=C).fit(X[fit], y[fit])
            train[row, fold] = 1 - model.score(X[fit], y[fit])
            validation[row, fold] = 1 - model.score(X[held], y[held])
    return train, validation


def figures():
    """Name and figure of each."""
    X, y = datasets.blobs_margin(40, margin=0.3, seed=2)
    over_X, over_y = datasets.overlapping(80)
    yield "separable", plot.separability(X, y)
    yield "not-separable", plot.separability(over_X, over_y)
    yield "separators", plot.separators(X, y)
    hard = LinearClassifier("squared_hinge", C=1e6).fit(X, y)
    signed = np.where(y > 0, 1, -1) * hard.decision_function(X)
    yield "boundary", plot.boundary(hard, X, y, support=np.nonzero(signed < 1.001)[0])
    near_X, near_y = datasets.blobs_margin(40, margin=0.8, seed=2)
    near_X[near_y > 0] += [0.0, 0.4]
    near_X[0], near_y[0] = [-1.8, 0.3], 1  # one row near the other class
    fits = [LinearSVC(C=C).fit(near_X, near_y) for C in (0.02, 0.3, 100.0)]
    yield "effect-of-strength", plot.effect_of_strength(fits, near_X, near_y)
    crossed_X, crossed_y = datasets.exclusive_or(80)
    curved = make_pipeline(Interactions(), LogisticRegression(C=10)).fit(crossed_X, crossed_y)
    yield "curved", plot.boundary(curved, crossed_X, crossed_y)
    yield "losses", plot.losses()
    yield "geometry", plot.geometry()
    yield "step-sizes", plot.step_sizes()
    yield "updates", plot.updates_against_bound(*updates_and_bounds())
    last, epochs = hinge_risks(over_X, over_y)
    yield "risks", plot.risks(last, epochs=epochs)
    wide_X, wide_y = datasets.overlapping(120, d=30, distance=2.5)
    Cs = np.logspace(-3.5, 2, 12)
    train, validation = errors_by_strength(wide_X, wide_y, Cs)
    yield "validation-curve", plot.validation_curve(Cs, validation, train)
    cancer = load_breast_cancer(as_frame=True)
    model = LogisticRegression().fit(cancer.data, cancer.target_names[cancer.target])
    ax = plot.coefficients(model, top=12, scale=cancer.data.std())
    ax.set_xlabel(
        "effect of one standard deviation on the log-odds\nhatched: benign, plain: malignant"
    )
    yield "coefficients", ax


def lessons(folder):
    """Run the code of each lesson, which ends by saving its figure into the current folder."""
    pages = sorted((Path(__file__).parents[1] / "docs" / "lessons").glob("[1-9]*.md"))
    here = Path.cwd()
    os.chdir(folder)
    for page in pages:
        blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
        with contextlib.redirect_stdout(io.StringIO()):
            exec("\n".join(blocks), {"__name__": "__main__"})
        plt.close("all")
    os.chdir(here)
    return [f"{page.stem}.svg" for page in pages]


def main(folder):
    mpl.rcParams["svg.hashsalt"] = "linsep"  # the same bytes in every run
    os.environ["SOURCE_DATE_EPOCH"] = "0"
    folder.mkdir(parents=True, exist_ok=True)
    drawn = lessons(folder)
    print(f"wrote {', '.join(drawn)}")
    for name, axes in figures():
        figure = np.ravel(axes)[0].figure
        figure.savefig(folder / f"{name}.svg")
        plt.close(figure)
        print(f"wrote {folder / name}.svg")
    X, y = datasets.blobs_margin(40, margin=0.1, seed=8)
    for kind in ("html", "gif"):
        print(f"wrote {plot.perceptron_animation(X, y, path=folder / f'perceptron.{kind}')}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/figures"))
