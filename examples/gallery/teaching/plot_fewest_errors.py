"""
The fewest errors a line can make
=================================

Learners minimise a convex surrogate because the number of errors is hard to minimise. For small problems
:class:`linsep.ZeroOneClassifier` minimises it all the same and proves the result, so the price of the surrogate can
be seen.
"""

import matplotlib.pyplot as plt
import numpy as np

from linsep import LogisticRegression, ZeroOneClassifier, datasets, plot

X, y = datasets.overlapping(n=120, distance=2.5)
X[np.flatnonzero(y < 0)[:6]] = [7.0, -3.0] + 0.5 * X[:6]  # six rows far off
fewest = ZeroOneClassifier().fit(X, y)
print(fewest.certificate_)
print(fewest.price(X, y))

# %%
# Six distant rows turn the line of the logistic regression. The number of errors does not depend on their distance.

logistic = LogisticRegression().fit(X, y)
figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True, layout="constrained")
for ax, model, name in zip(axes, (fewest, logistic), ("fewest errors", "logistic regression")):
    plot.boundary(model, X, y, ax=ax, margins=False, legend=model is logistic)
    ax.set_title(f"{name}: {np.sum(model.predict(X) != y)} errors of {len(y)}")
plt.show()
