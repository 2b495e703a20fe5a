"""The agnostic case: two classes that no line separates.

The fewest errors any line makes, proven; what convex losses make of the same rows, and why; what the errors on these
rows say about new ones, and how many rows a promise needs.

Usage: python examples/agnostic.py [folder for the picture, default build/agnostic]
"""

import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from linsep import LogisticRegression, ZeroOneClassifier, bounds, datasets, losses, plot, separate


def fewest_errors(X, y):
    """Minimising errors is hard in general, but small problems can be solved, and the answer proven."""
    print("1. No line separates the classes, so how few errors are possible?")
    print(f"   {separate(X, y)}")
    fewest = ZeroOneClassifier().fit(X, y)
    print(f"   {fewest.certificate_}")
    assert fewest.certificate_.check(X, y)
    return fewest


def price_of_the_surrogate(X, y, fewest):
    """A convex loss above the 0-1 loss bounds the errors; a few distant rows move its minimum."""
    print("\n2. Convex losses lie above the 0-1 loss, so a small risk means few errors:")
    for name in ("hinge", "squared_hinge", "exponential"):
        assert losses.dominates_zero_one(losses.get(name))
    assert losses.dominates_zero_one(losses.LOGISTIC_BASE_2)  # in base e it does not, at 0
    assert not losses.dominates_zero_one(losses.Logistic())
    table = str(fewest.price(X, y)).replace("\n", "\n   ")
    print(f"   {table}")
    logistic = LogisticRegression().fit(X, y)
    z = np.where(y == logistic.classes_[1], 1, -1) * logistic.decision_function(X)
    risk, wrong = losses.LOGISTIC_BASE_2.value(z).sum(), int((z <= 0).sum())
    print(f"   logistic: {wrong} errors <= sum of its losses in base 2 = {risk:.1f}")
    assert wrong <= risk
    largest = np.sort(losses.LOGISTIC_BASE_2.value(z))[::-1]
    print(
        f"   the six largest losses are {largest[:6].sum() / risk:.0%} of that sum: outliers pull"
    )
    return logistic


def new_rows(X, y, models):
    """Held-out rows give the number to report; what training rows alone can promise is much weaker."""
    new, truth = datasets.overlapping(n=2000, distance=2.5, seed=1)
    print("\n3. Errors on 2000 new rows, and the bound that holds with probability 0.95:")
    for name, model in models.items():
        wrong = int((model.predict(new) != truth).sum())
        bound = bounds.clopper_pearson(wrong, len(truth))
        print(f"   {name:<14} {wrong / len(truth):.3f} <= {bound.value:.3f}")

    fewest = models["fewest errors"]
    share = fewest.errors_ / len(y)
    print("   Without them, from the errors on the training rows:")
    print(f"   {bounds.vc_bound(share, len(y), bounds.vc_dimension(2))}")
    print(f"   {bounds.vc_bound(share, 100 * len(y), bounds.vc_dimension(2))} (100 times the rows)")
    enough = bounds.rows_needed(2, 0.05)
    print(
        f"   {enough.value:.0f} rows suffice to be within 0.05 of the best line (probability 0.95)"
    )


def main(folder):
    """Print every step and save a figure."""
    X, y = datasets.overlapping(n=120, distance=2.5)
    X[:6] = -4.0 * X[:6]  # a few rows far on the wrong side
    fewest = fewest_errors(X, y)
    logistic = price_of_the_surrogate(X, y, fewest)
    new_rows(X, y, {"fewest errors": fewest, "logistic": logistic})

    figure, axes = plt.subplots(
        1, 2, figsize=(11, 4.5), sharex=True, sharey=True, layout="constrained"
    )
    for ax, model, title in zip(
        axes, (fewest, logistic), ("fewest errors", "logistic"), strict=True
    ):
        plot.boundary(model, X, y, ax=ax, margins=False, legend=model is logistic)
        ax.set_title(f"{title}: {np.sum(model.predict(X) != y)} errors")
    figure.savefig(folder / "agnostic.svg")
    print("\nsaved agnostic.svg")


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "build/agnostic")
    target.mkdir(parents=True, exist_ok=True)
    main(target)
