"""Train two linear classifiers on real measurements, print the proof that they are optimal, draw it.

The data are scikit-learn's breast cancer set: 569 tumours, 30 features, in raw units (column means 0.004 to 880).
Usage: python examples/demo.py [folder for the picture, default build/demo]
"""

import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from linsep import LinearClassifier, LogisticRegression, verify

STRENGTHS = [1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3, 1e4]


def report(title, model, X, y, X_test, y_test):
    """Print the certificate, its independent recomputation, and the held-out error."""
    wrong = int((model.predict(X_test) != y_test).sum())
    print(f"\n{title}")
    print(f"  from the fit     {model.certificate_}")
    print(f"  by verify()      {verify(model, X, y)}")
    print(
        f"  held-out part    {wrong} errors in {len(y_test)} rows, accuracy {1 - wrong / len(y_test):.3f}"
    )


def sweep(X, y, X_test, y_test):
    """Fit one model per strength and print a line about each."""
    print("\nEvery strength C ends with a proof, without scaling the features:")
    print(
        f"  {'C':>7}  {'objective':>14}  {'lower bound':>14}  {'rel. gap':>8}  {'|w-w*| <=':>9}  "
        f"{'passes':>6}  accuracy"
    )
    models = []
    for C in STRENGTHS:
        model = LogisticRegression(C=C).fit(X, y)
        c = model.certificate_
        print(
            f"  {C:7g}  {c.primal:14.8f}  {c.dual:14.8f}  {c.relative_gap:8.1e}  {c.coef_error:9.1e}  "
            f"{model.n_passes_:6g}  {model.score(X_test, y_test):.3f}"
        )
        models.append(model)
    return models


def draw(models, names, path):
    """Coefficients of the strongest features along the path, and the certified gap of each fit."""
    W = np.array([model.coef_[0] for model in models])
    gaps = [model.certificate_.relative_gap for model in models]
    top = np.argsort(-np.abs(W[-1]))[:6]
    colours = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"]  # Okabe and Ito
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for j, colour, marker in zip(top, colours, "osD^vP", strict=True):
        left.plot(STRENGTHS, W[:, j], marker=marker, color=colour, label=names[j], markersize=5)
    left.axhline(0, color="0.6", linewidth=0.8, zorder=0)
    left.set(
        xscale="log",
        yscale="symlog",
        xlabel="strength C",
        ylabel="coefficient",
        title="The six largest coefficients",
    )
    left.legend(fontsize=8, frameon=False)
    right.plot(STRENGTHS, gaps, "o", color="#0072B2", label="proven at the end of the fit")
    right.axhline(
        models[0].certificate_.tol, color="#D55E00", linestyle="--", label="asked for (tol)"
    )
    right.set(
        xscale="log",
        yscale="log",
        xlabel="strength C",
        ylabel="relative duality gap",
        title="How optimal each fit is",
    )
    right.legend(fontsize=8, frameon=False)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def main(folder):
    data = load_breast_cancer()
    X, X_test, y, y_test = train_test_split(
        data.data, data.target, test_size=0.3, random_state=0, stratify=data.target
    )
    print(
        f"breast cancer: {len(y)} rows to learn from, {len(y_test)} held out, {X.shape[1]} raw features"
    )
    report("Logistic regression, C = 1", LogisticRegression(C=1.0).fit(X, y), X, y, X_test, y_test)
    svm = LinearClassifier(loss="squared_hinge", C=1.0).fit(X, y)
    report("Squared hinge (support vector machine), C = 1", svm, X, y, X_test, y_test)
    models = sweep(X, y, X_test, y_test)
    path = folder / "certified-path.png"
    draw(models, data.feature_names, path)
    print(f"\nwrote {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/demo"))
