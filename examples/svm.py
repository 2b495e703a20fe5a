"""The support vector machine, from its margin to a tuned model.

Usage: python examples/svm.py [folder for the pictures, default build/svm]
"""

import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt

from linsep import LinearSVC, datasets, plot, tune, verify

STRENGTHS = (0.01, 0.1, 10.0)


def main(folder):
    """Print every step and save two figures."""
    X, y = datasets.overlapping(n=150, distance=3.0)
    model = LinearSVC(C=1.0).fit(X, y)
    print(model.certificate_)
    print(verify(model, X, y, exact=True))
    print(model.kkt(X, y))
    print(
        f"{len(model.support_)} support vectors: {len(model.free_support_)} on the margin, "
        f"{len(model.bounded_support_)} inside or beyond"
    )
    sign = (y == model.classes_[1]) * 2 - 1
    assert abs((sign * model.alpha_) @ X - model.coef_[0]).max() < 1e-4

    print("\nthe smaller C, the wider the margin:")
    models = [LinearSVC(C=C).fit(X, y) for C in STRENGTHS]
    for machine in models:
        print(
            f"  C = {machine.C:<5g} width {machine.margin_width_:.3f}, {len(machine.support_)} support vectors"
        )
    widths = [machine.margin_width_ for machine in models]
    assert widths == sorted(widths, reverse=True)

    data, label = datasets.breast_cancer()
    data = (data - data.mean(axis=0)) / data.std(axis=0)
    tuning = tune(
        LinearSVC(),
        data,
        label,
        Cs=[1e-3, 1e-2, 1e-1, 1.0],
        validation=0.25,
        test=0.25,
        random_state=0,
    )
    print(f"\n{tuning}")
    print(
        f"test error {tuning.test_score:.3f}, below {tuning.test_bound:.3f} with probability 0.95"
    )
    assert tuning.certified

    plot.effect_of_strength(models, X, y)
    plt.gcf().savefig(folder / "effect_of_C.svg")
    _, ax = plt.subplots()
    tuning.curve.plot(ax=ax)
    ax.figure.savefig(folder / "validation.svg")
    print("\nsaved effect_of_C.svg and validation.svg")


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "build/svm")
    target.mkdir(parents=True, exist_ok=True)
    main(target)
