"""Two classes that a line separates: decide it, find one line, count the mistakes, find the widest margin.

Usage: python examples/realizable.py [folder for the pictures, default build/realizable]
"""

import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from linsep import Hyperplane, LinearClassifier, Perceptron, datasets, plot, separate, verify


def main(folder):
    """Print every step and save two figures."""
    X, y = datasets.blobs_margin(n=80, margin=0.4)
    answer = separate(X, y)
    print(answer)
    print(f"checked in exact arithmetic: {answer.check(X, y, exact=True)}")

    print("\nupdates of the perceptron, and what the theorem allows:")
    for update, bound in (("raw", "radius_norm"), ("normalised", "normalised")):
        model = Perceptron(update=update).fit(X, y)
        allowed = getattr(model.bounds(X, y), bound)
        assert model.separated_
        assert model.n_updates_ <= allowed
        print(f"  {update:<11} {model.n_updates_:>4} <= {allowed:.1f}")

    widest = LinearClassifier("hinge", C=np.inf).fit(X, y)
    plane = Hyperplane(widest.coef_, widest.intercept_)
    print(f"\nhard margin: {widest.certificate_}")
    print(f"margin {plane.margin(X, y):.4f}, no hyperplane has a larger one")
    assert verify(widest, X, y, exact=True).certified
    assert plane.margin(X, y) >= answer.margin

    moved = X.copy()
    moved[0] = X[y != y[0]].mean(axis=0)  # one row moves into the other class
    print(f"\none row moved: {separate(moved, y)}")

    figure, axes = plt.subplots(1, 2, figsize=(10, 4.5))
    plot.separators(X, y, ax=axes[0])
    plot.boundary(widest, X, y, ax=axes[1])
    figure.savefig(folder / "realizable.svg")
    page = folder / "perceptron.html"
    plot.perceptron_animation(X, y, path=page)
    print(f"\nsaved realizable.svg and {page.name}")


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "build/realizable")
    target.mkdir(parents=True, exist_ok=True)
    main(target)
