"""Two classes that no line separates: the fewest errors, what convex losses make of it, and what it says of new rows.

Usage: python examples/agnostic.py [folder for the picture, default build/agnostic]
"""

import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from linsep import LogisticRegression, ZeroOneClassifier, bounds, datasets, plot, separate


def main(folder):
    """Print every step and save a figure."""
    X, y = datasets.overlapping(n=120, distance=2.5)
    X[:6] = -4.0 * X[:6]  # a few rows far on the wrong side
    print(separate(X, y))

    fewest = ZeroOneClassifier().fit(X, y)
    print(fewest.certificate_)
    assert fewest.certificate_.check(X, y)
    print(f"\nthe price of the surrogate:\n{fewest.price(X, y)}")

    new, truth = datasets.overlapping(n=2000, distance=2.5, seed=1)
    logistic = LogisticRegression().fit(X, y)
    print("\nerror on 2000 new rows, and its upper bound with probability 0.95:")
    for name, model in (("fewest errors", fewest), ("logistic", logistic)):
        wrong = int((model.predict(new) != truth).sum())
        bound = bounds.clopper_pearson(wrong, len(truth))
        print(f"  {name:<14} {wrong / len(truth):.3f} <= {bound.value:.3f}")

    share = fewest.errors_ / len(y)
    print("\nwhat the training rows alone can promise:")
    print(f"  {bounds.vc_bound(share, len(y), bounds.vc_dimension(2))}")
    print(f"  rows for 5 percent of excess: {bounds.rows_needed(2, 0.05)}")

    figure, axes = plt.subplots(1, 2, figsize=(10, 4.5), sharex=True, sharey=True)
    for ax, model, title in zip(
        axes, (fewest, logistic), ("fewest errors", "logistic"), strict=True
    ):
        plot.boundary(model, X, y, ax=ax, margins=False)
        ax.set_title(f"{title}: {np.sum(model.predict(X) != y)} errors")
    figure.savefig(folder / "agnostic.svg")
    print("\nsaved agnostic.svg")


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "build/agnostic")
    target.mkdir(parents=True, exist_ok=True)
    main(target)
