"""The support vector machine, from its margin to a tuned model.

The two forms of one problem, the multipliers and what they say of each row, the effect of C, and a C chosen on rows
the model has not seen.

Usage: python examples/svm.py [folder for the pictures, default build/svm]
"""

import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from linsep import LinearSVC, datasets, plot, tune, verify

STRENGTHS = (0.01, 0.1, 10.0)


def primal_and_dual(X, y):
    """Slacks or hinges, multipliers or weights: four descriptions, one number."""
    print("1. Primal = dual:")
    model = LinearSVC(C=1.0).fit(X, y)
    print(f"   {model.certificate_}")
    print(
        f"   again in exact arithmetic: relative gap {verify(model, X, y, exact=True).relative_gap:.1e}"
    )
    sign = np.where(y == model.classes_[1], 1.0, -1.0)
    w, z = model.coef_[0], sign * model.decision_function(X)
    slack = np.maximum(0.0, 1.0 - z)
    signed = sign * model.alpha_
    print(f"   1/2 |w|^2 + C sum of slacks                 = {w @ w / 2 + slack.sum():.6f}")
    print(
        f"   sum of alpha - 1/2 |sum of alpha y x|^2     = {model.alpha_.sum() - np.sum((signed @ X) ** 2) / 2:.6f}"
    )
    return model, sign, z


def what_the_multipliers_say(model, X, y, sign, z):
    """Complementarity sorts the rows in three kinds; only support vectors make w."""
    print("\n2. What a multiplier says of its row:")
    free, bounded = model.free_support_, model.bounded_support_
    out = np.setdiff1d(np.arange(len(y)), model.support_)
    print(f"   alpha = 0      {len(out):>3} rows, least margin {z[out].min():.4f} (at least 1)")
    print(
        f"   0 < alpha < C  {len(free):>3} rows, margins {z[free].min():.4f} to {z[free].max():.4f} (on the margin)"
    )
    print(
        f"   alpha = C      {len(bounded):>3} rows, largest margin {z[bounded].max():.4f} (at most 1)"
    )
    assert z[out].min() >= 1 - 1e-4
    assert np.allclose(z[free], 1, atol=1e-4)
    assert z[bounded].max() <= 1 + 1e-4
    assert np.abs((sign * model.alpha_) @ X - model.coef_[0]).max() < 1e-4
    print(f"   {model.kkt(X, y)}")


def effect_of_strength(X, y):
    """C weighs the slacks against the margin."""
    print("\n3. The smaller C, the wider the margin:")
    models = [LinearSVC(C=C).fit(X, y) for C in STRENGTHS]
    for machine in models:
        errors = int((machine.predict(X) != y).sum())
        print(
            f"   C = {machine.C:<5g} width {machine.margin_width_:.3f}, {len(machine.support_)} support vectors, "
            f"{errors} training errors"
        )
    widths = [machine.margin_width_ for machine in models]
    assert widths == sorted(widths, reverse=True)
    return models


def choose_strength():
    """Train, validate, and only then look at the test rows."""
    print("\n4. C chosen on held-out rows of the breast cancer data:")
    data, label = datasets.breast_cancer()
    data = (data - data.mean(axis=0)) / data.std(axis=0)
    Cs = np.logspace(-4, 1, 11)
    tuning = tune(LinearSVC(), data, label, Cs=Cs, cv=5, test=0.25, random_state=0)
    print(f"   {tuning}")
    assert tuning.certified
    plot.validation_curve(Cs, tuning.curve.scores, best=tuning.best_C)


def main(folder):
    """Print every step and save two figures."""
    X, y = datasets.overlapping(n=150, distance=3.0)
    model, sign, z = primal_and_dual(X, y)
    what_the_multipliers_say(model, X, y, sign, z)
    plot.effect_of_strength(effect_of_strength(X, y), X, y)
    plt.gcf().savefig(folder / "effect_of_C.svg")
    choose_strength()
    plt.gcf().savefig(folder / "validation.svg")
    print("\nsaved effect_of_C.svg and validation.svg")


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "build/svm")
    target.mkdir(parents=True, exist_ok=True)
    main(target)
