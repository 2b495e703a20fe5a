"""
Which features enter first? The lasso path
==========================================

:func:`linsep.path` fits a model for every ``C`` and certifies each of them. With ``l1_ratio=1`` most coefficients
are exactly zero, and features enter one after another as ``C`` grows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from linsep import LogisticRegression, path, screen

data = load_breast_cancer(as_frame=True)
X = (data.data - data.data.mean()) / data.data.std()
y = data.target

models = path(LogisticRegression(l1_ratio=1.0), X, y, np.geomspace(3e-3, 0.3, 25))
print(models)

# %%
# Each curve is a coefficient; those that are largest at the end are labelled.

W = models.coefs[:, 0]
largest = np.argsort(-np.abs(W[-1]))[:4]
figure, ax = plt.subplots(figsize=(7.4, 4.2), layout="constrained")
ax.semilogx(models.Cs, W, color="0.8", linewidth=1)
for j in largest:
    ax.semilogx(models.Cs, W[:, j], linewidth=2, label=X.columns[j])
ax.set(xlabel="C", ylabel="coefficient of the standardised feature")
ax.set_title("Nonzero coefficients along the path")
ax.legend(frameon=False, loc="lower left")
plt.show()

# %%
# Is a zero really zero? :func:`linsep.screen` proves which coefficients are zero in every optimal model.

model = LogisticRegression(l1_ratio=1.0, C=0.02).fit(X, y)
print(screen(model, X, y))
