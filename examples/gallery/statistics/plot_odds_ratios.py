"""
Odds ratios with confidence intervals
=====================================

Without a penalty (``C=inf``) logistic regression is maximum likelihood, and :func:`linsep.summary` prints the table
that statisticians expect. The certificate covers the part other packages leave open: that the likelihood was maximised.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer

from linsep import LogisticRegression, summary

data = load_breast_cancer(as_frame=True)
columns = ["mean texture", "mean smoothness", "mean symmetry", "texture error", "smoothness error"]
X = pd.DataFrame(
    {name: (data.data[name] - data.data[name].mean()) / data.data[name].std() for name in columns}
)
malignant = data.target == 0

model = LogisticRegression(C=np.inf).fit(X, malignant)
table = summary(model, X, malignant)
print(table)

# %%
# The same as a forest plot. An interval that does not cross 1 means p < 0.05.

lines = [line for line in table.coefficients[""] if line.name in columns]
ratio = np.array([line.odds_ratio for line in lines])
low, high = (np.array([getattr(line, end) for line in lines]) for end in ("odds_low", "odds_high"))

figure, ax = plt.subplots(figsize=(6.4, 3), layout="constrained")
ax.errorbar(
    ratio, range(len(lines)), xerr=[ratio - low, high - ratio], fmt="o", color="#0072B2", capsize=3
)
ax.axvline(1, color="0.5", linestyle="--")
ax.set_yticks(range(len(lines)), [line.name for line in lines])
ax.set(xscale="log", xlabel="odds ratio per standard deviation, 95 % interval")
ax.set_xticks([0.5, 1, 2, 4, 8], ["0.5", "1", "2", "4", "8"])
ax.minorticks_off()
ax.set_title("Which measurements go with malignancy?")
ax.invert_yaxis()
plt.show()
