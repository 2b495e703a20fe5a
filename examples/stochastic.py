"""Stochastic descent: what the steps do, which iterate is kept, and how far from the optimum it ends.

Usage: python examples/stochastic.py [folder for the pictures, default build/stochastic]
"""

import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from linsep import LinearClassifier, SGDClassifier, check_schedule, datasets, losses, plot

C = 0.1


def one_row_speaks_for_all(X, y):
    """The slope at a random row is, on average, the slope of the mean loss: that is why descent works."""
    print("1. The stochastic gradient is unbiased. At a point w, over all rows:")
    rng = np.random.default_rng(0)
    w, sign = 0.1 * rng.normal(size=X.shape[1]), np.where(y == np.max(y), 1.0, -1.0)
    each = (sign * losses.Logistic().slope(sign * (X @ w)))[:, None] * X
    mean = each.mean(axis=0)
    drawn = each[rng.integers(len(X), size=(400, 100))].mean(axis=1)  # 400 times 100 rows
    print(f"   |gradient| {np.linalg.norm(mean):.3f}")
    print(f"   |mean of 40,000 draws - gradient| {np.linalg.norm(drawn.mean(axis=0) - mean):.3f}")
    print(
        f"   one draw is off by {np.sqrt(((each - mean) ** 2).sum(axis=1).mean()):.3f} on average"
    )


def schedules(X, y, optimum):
    """Constant steps stop at a distance of their own size, falling ones come closer."""
    print("\n2. Schedules, after 20 epochs:")
    for schedule in ("constant", "inverse_sqrt", "inverse"):
        model = SGDClassifier("logistic", C=C, schedule=schedule).fit(X, y)
        excess = model.certificate_.primal / optimum.primal - 1
        assert model.certificate_.dual <= optimum.primal <= model.certificate_.primal * (1 + 1e-12)
        print(
            f"   {schedule:<13} excess {excess:.1e}, proven gap {model.certificate_.relative_gap:.1e};"
            f" {check_schedule(schedule)}"
        )


def first_steps(X, y, optimum):
    """Too small: still on the way. Too large: thrown about."""
    print("\n3. The first step, by the objective of the last iterate:")
    for eta0 in (1e-5, 3.0, "auto"):
        model = SGDClassifier("logistic", C=C, eta0=eta0, keep="last").fit(X, y)
        print(
            f"   eta0 = {eta0!s:<6} {model.certificate_.primal:>8.4g} (optimum {optimum.primal:.4g})"
        )


def which_iterate(X, y):
    """Iterates fall and jump. The best by the full objective is kept; the mean of all is as quiet."""
    print("\n4. Constant steps: which iterate?")
    keeps = {
        keep: SGDClassifier("hinge", C=C, schedule="constant", eta0=0.02, keep=keep).fit(X, y)
        for keep in ("last", "best", "average")
    }
    for keep, model in keeps.items():
        print(f"   {keep:<8} objective {model.certificate_.primal:.4f}")
    history = keeps["best"].history_
    assert (history.best <= history.last).all()
    return history


def raw_columns(X, y):
    """One step for all columns is too large for some and too small for the others."""
    print("\n5. The same data, not standardised:")
    optimum = LinearClassifier("logistic", C=C).fit(X, y).certificate_.primal
    for standardise in (False, True):
        model = SGDClassifier("logistic", C=C, standardise=standardise).fit(X, y)
        excess = model.certificate_.primal / optimum - 1
        print(f"   standardise={standardise!s:<6} excess {excess:.2f} over {optimum:.4g}")


def main(folder):
    """Print every step and save two figures."""
    raw, y = datasets.breast_cancer()
    X = (raw - raw.mean(axis=0)) / raw.std(axis=0)
    optimum = LinearClassifier("logistic", C=C).fit(X, y).certificate_
    print(f"By Newton's method: {optimum}\n")
    one_row_speaks_for_all(X, y)
    schedules(X, y, optimum)
    first_steps(X, y, optimum)
    history = which_iterate(X, y)
    raw_columns(raw, y)

    plot.risks(history.last, history.best, epochs=history.steps / len(X))
    plt.gca().set(ylabel="objective")
    plt.gcf().savefig(folder / "risks.svg")
    plot.step_sizes()
    plt.gcf().savefig(folder / "step_sizes.svg")
    print("\nsaved risks.svg and step_sizes.svg")


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "build/stochastic")
    target.mkdir(parents=True, exist_ok=True)
    main(target)
