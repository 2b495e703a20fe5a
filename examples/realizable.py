"""The realizable case: two classes that a line separates.

Four questions of a first lecture, each answered with a proof: is there a line? does the perceptron find one, and
how soon? which line is best? and what if one row moves to the other side?

Usage: python examples/realizable.py [folder for the pictures, default build/realizable]
"""

import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from linsep import Hyperplane, LinearSVC, Perceptron, bounds, datasets, plot, separate, verify

ORDERS = ("cyclic", "first", "random", "worst")


def is_there_a_line(X, y):
    """A separator is its own proof: put in the rows and look at the signs, without any rounding if you like."""
    print("1. Is there a line?")
    answer = separate(X, y)
    print(f"   {answer}")
    print(f"   checked in exact arithmetic: {answer.check(X, y, exact=True)}")
    return answer


def how_many_mistakes(X, y):
    """Novikoff's theorem: whichever mistake is corrected first, no more than (R B)^2 updates."""
    print("\n2. The perceptron finds one. Updates made, and what the theorem allows:")
    for update, bound in (("raw", "radius_norm"), ("normalised", "normalised")):
        models = [Perceptron(update=update, order=order).fit(X, y) for order in ORDERS]
        allowed = getattr(models[0].bounds(X, y), bound)
        assert all(model.separated_ and model.n_updates_ <= allowed for model in models)
        made = ", ".join(
            f"{model.n_updates_} ({order})" for order, model in zip(ORDERS, models, strict=True)
        )
        print(f"   {update:<11} {made} <= {allowed:.1f}")

    model = Perceptron().fit(X, y)
    widest = LinearSVC(C=np.inf).fit(X, y)
    w, b = widest.coef_[0], widest.intercept_[0]
    inner, cosine = model.history_.against(w, b, X, np.where(y == model.classes_[1], 1, -1))
    print("   The two halves of the proof, for u the separator with all margins at least 1:")
    print("   update   <u, w_t> >= t    |w_t| <= R sqrt(t)    cosine")
    R = np.sqrt((X**2).sum(axis=1).max() + 1)
    for t, norm in enumerate(model.history_.norms, 1):
        assert inner[t - 1] >= t * (1 - 1e-6)
        assert norm <= R * np.sqrt(t) * (1 + 1e-12)
        print(
            f"   {t:>6}   {inner[t - 1]:>8.2f} >= {t:<3}  {norm:>7.2f} <= {R * np.sqrt(t):<8.2f}    {cosine[t - 1]:.3f}"
        )


def which_line_is_best(X, y, answer):
    """The hard margin: the shortest w with all margins at least 1, certified by its dual."""
    print("\n3. The widest margin:")
    widest = LinearSVC(C=np.inf).fit(X, y)
    plane = Hyperplane(widest.coef_, widest.intercept_)
    print(f"   {widest.certificate_}")
    print(f"   margin {plane.margin(X, y):.4f}; that of the first separator {answer.margin:.4f}")
    print(f"   held by {len(widest.support_)} support vectors; without the others it is the same")
    alone = LinearSVC(C=np.inf).fit(X[widest.support_], y[widest.support_])
    assert np.allclose(alone.coef_, widest.coef_, rtol=1e-5)
    assert verify(widest, X, y, exact=True).certified
    assert plane.margin(X, y) >= answer.margin
    ball = bounds.minimum_enclosing_ball(X)
    few = bounds.margin_dimension(X.shape[1], radius=ball.radius, margin=plane.margin(X, y))
    print(
        f"   smallest ball around the rows: radius {ball.radius:.2f}; 1 + min(d, R^2/m^2) = {few}"
    )
    return widest


def one_row_moves(X, y):
    """At most d + 2 rows whose hulls meet prove that no line exists; each class has half of the weight."""
    moved = X.copy()
    moved[0] = X[y != y[0]].mean(axis=0)
    witness = separate(moved, y)
    print(f"\n4. One row moves into the other class:\n   {witness}")
    rows = ", ".join(
        f"{weight:.2f} of row {row}"
        for row, weight in zip(witness.rows, witness.weights, strict=True)
    )
    print(f"   the common point {np.round(witness.point, 3)}: {rows}")
    assert witness.check(moved, y, exact=True)


def main(folder):
    """Print every step and save a figure and the perceptron at work."""
    X, y = datasets.blobs_margin(n=80, margin=0.4)
    answer = is_there_a_line(X, y)
    how_many_mistakes(X, y)
    widest = which_line_is_best(X, y, answer)
    one_row_moves(X, y)

    figure, axes = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained")
    plot.separators(X, y, ax=axes[0])
    plot.boundary(widest, X, y, ax=axes[1])
    axes[1].set_title("the widest, with its support vectors")
    figure.savefig(folder / "realizable.svg")
    page = folder / "perceptron.html"
    plot.perceptron_animation(X, y, path=page)
    print(f"\nsaved realizable.svg and {page.name}")


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "build/realizable")
    target.mkdir(parents=True, exist_ok=True)
    main(target)
