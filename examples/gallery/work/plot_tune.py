"""
Choose C, and know that every model of the grid converged
=========================================================

:func:`linsep.tune` fits all folds and all values of ``C`` together. The curve below comes from 105 certified
models.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from linsep import LogisticRegression, tune

X, y = load_breast_cancer(return_X_y=True)
found = tune(LogisticRegression(), X, y, np.logspace(-5, 5, 21), scoring="log_loss", random_state=0)
print(found)
print(f"{found.seconds:.2f} s")

# %%
# The dotted line is the best mean score. The one-standard-error rule takes the strongest penalty that is
# statistically as good.

figure, ax = plt.subplots(figsize=(6.8, 4), layout="constrained")
found.curve.plot(ax)
ax.set_title("Log loss on held-out folds, raw breast cancer data")
ax.set_ylim(0, 0.7)
plt.show()

# %%
# To report an honest error, hold out rows that no model of the grid has seen.

tested = tune(LogisticRegression(), X, y, scoring="error", test=0.25, random_state=0)
print(tested)
