"""
The margin of a support vector machine, and its slacks
======================================================

A small ``C`` buys a wide margin with slacks: rows inside the margin or on the wrong side. Every row with a positive
dual coefficient is a support vector; ``LinearSVC`` has them all.
"""

import matplotlib.pyplot as plt
import numpy as np

from linsep import LinearSVC, datasets, plot

X, y = datasets.overlapping(n=60, distance=3.0, seed=4)

figure, axes = plt.subplots(1, 3, figsize=(10.5, 4), sharey=True, layout="constrained")
for ax, C in zip(axes, (0.01, 0.1, 10.0)):
    model = LinearSVC(C=C).fit(X, y)
    plot.boundary(model, X, y, ax=ax, legend=False)
    # a line from each row with slack to its margin
    w, score = model.coef_[0], model.decision_function(X)
    for i in np.flatnonzero(y * score < 1 - 1e-6):
        foot = X[i] + (y[i] - score[i]) * w / (w @ w)
        ax.plot(*np.transpose([X[i], foot]), color="0.5", linewidth=0.8, zorder=1)
    ax.set_title(
        f"C = {C:g}: width {model.margin_width_:.2f},\n{len(model.support_)} support vectors"
    )
plt.show()

# %%
# Complementarity: a row outside the margin has no multiplier, a row with slack has the multiplier C, and only rows on
# the margin lie between. :meth:`linsep.LinearSVC.kkt` measures how well that holds.

print(model.kkt(X, y))
