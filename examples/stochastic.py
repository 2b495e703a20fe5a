"""Stochastic descent: what the steps do, which iterate is kept, and how far from the optimum it ends.

Usage: python examples/stochastic.py [folder for the pictures, default build/stochastic]
"""

import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt

from linsep import LinearClassifier, SGDClassifier, check_schedule, datasets, plot


def main(folder):
    """Print every step and save two figures."""
    X, y = datasets.breast_cancer()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    optimum = LinearClassifier("logistic", C=0.1).fit(X, y).certificate_
    print(f"by Newton's method: {optimum}")

    print("\nschedules, after 20 epochs:")
    for schedule in ("constant", "inverse_sqrt", "inverse"):
        model = SGDClassifier("logistic", C=0.1, schedule=schedule).fit(X, y)
        excess = model.certificate_.primal / optimum.primal - 1
        assert model.certificate_.dual <= optimum.primal <= model.certificate_.primal * (1 + 1e-12)
        print(
            f"  {schedule:<13} excess {excess:.1e}, proven gap {model.certificate_.relative_gap:.1e}"
        )
        print(f"  {'':<13} {check_schedule(schedule)}")

    print("\nfirst steps, last iterate:")
    for eta0 in (1e-5, 3.0, "auto"):
        model = SGDClassifier("logistic", C=0.1, eta0=eta0, keep="last").fit(X, y)
        print(
            f"  eta0 = {eta0!s:<6} objective {model.certificate_.primal:.4g} (optimum {optimum.primal:.4g})"
        )

    noisy = SGDClassifier("hinge", C=0.1, schedule="constant", eta0=0.05).fit(X, y)
    history = noisy.history_
    assert (history.best <= history.last).all()
    print(f"\nconstant steps: best iterate {history.best[-1]:.4g}, last one {history.last[-1]:.4g}")

    plot.risks(history.last, history.best)
    plt.gcf().savefig(folder / "risks.svg")
    plot.step_sizes()
    plt.gcf().savefig(folder / "step_sizes.svg")
    print("\nsaved risks.svg and step_sizes.svg")


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "build/stochastic")
    target.mkdir(parents=True, exist_ok=True)
    main(target)
