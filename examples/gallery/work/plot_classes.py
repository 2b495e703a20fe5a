"""
Several classes: three ways to draw the boundaries
==================================================

Multinomial logistic regression, one-vs-rest, and the multiclass support vector machine of Crammer and Singer on the
same rows. One-vs-rest often loses rows of a class in the middle, because no line separates it from the rest.
"""

import matplotlib.pyplot as plt
import numpy as np

from linsep import LinearSVC, LogisticRegression

rng = np.random.default_rng(0)
centres = np.array([[-3.0, 0.0], [0.0, 0.2], [3.0, 0.0]])
y = np.repeat([0, 1, 2], [80, 35, 80])
X = centres[y] + rng.normal(scale=(0.9, 1.2), size=(195, 2))

models = {
    "multinomial": LogisticRegression(),
    "one-vs-rest": LogisticRegression(multiclass="ovr"),
    "Crammer-Singer": LinearSVC(multiclass="crammer_singer"),
}
grid = np.stack(np.meshgrid(np.linspace(-6, 6, 300), np.linspace(-4.5, 4.5, 200)), axis=-1)
colours = ["#0072B2", "#E69F00", "#D55E00"]

figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.4), sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items()):
    model.fit(X, y)
    region = model.predict(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    levels = [-0.5, 0.5, 1.5, 2.5]
    ax.contourf(grid[..., 0], grid[..., 1], region, levels=levels, colors=colours, alpha=0.15)
    for k, marker in enumerate("os^"):
        ax.plot(*X[y == k].T, marker, color=colours[k], markersize=4, label=f"class {k}")
    recall = np.mean(model.predict(X[y == 1]) == 1)
    ax.set_title(f"{name}\nmiddle class found: {recall:.0%}")
    print(f"{name}: {model.certificate_}")
axes[0].legend(frameon=False, fontsize=8)
plt.show()
