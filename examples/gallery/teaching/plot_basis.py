"""
Curved boundaries from linear models
====================================

A linear model of products is a curved model of the features. No line separates the exclusive or; with interactions it
is easy, and the certificate holds as before.
"""

import matplotlib.pyplot as plt
from sklearn.pipeline import make_pipeline

from linsep import LogisticRegression, datasets, plot
from linsep.basis import Interactions, RadialBasis

figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
problems = (
    ("exclusive or, products", datasets.exclusive_or(120, spread=0.35), Interactions()),
    ("moons, radial functions", datasets.moons(120, noise=0.15), RadialBasis(n_centres=12)),
)
for ax, (name, (X, y), basis) in zip(axes, problems):
    model = make_pipeline(basis, LogisticRegression(C=10.0)).fit(X, y)
    plot.boundary(model, X, y, ax=ax, margins=False, legend=False)
    line = LogisticRegression().fit(X, y).score(X, y)
    ax.set_title(f"{name}: accuracy {model.score(X, y):.2f} (a line: {line:.2f})")
    print(f"{name}: {model[-1].certificate_}")
plt.show()
