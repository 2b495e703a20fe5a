"""
How far is a scikit-learn model from its optimum?
=================================================

``ConvergenceWarning: lbfgs failed to converge`` does not say how much is missing. :func:`linsep.audit` does: it
encloses the minimum of the model's own objective and compares.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from linsep import audit

X, y = load_breast_cancer(return_X_y=True)
warnings.simplefilter("ignore")  # scikit-learn warns that it has not converged
print(audit(LogisticRegression().fit(X, y), X, y))

# %%
# The same question for a range of ``C``, with raw and with standardised columns. Scaling helps scikit-learn, and it
# changes the problem: the penalty then acts on other coefficients. linsep does not need it.

Cs = np.logspace(-3, 4, 8)
scaled = StandardScaler().fit_transform(X)
excess = {
    "raw columns": [audit(LogisticRegression(C=C).fit(X, y), X, y) for C in Cs],
    "standardised columns": [audit(LogisticRegression(C=C).fit(scaled, y), scaled, y) for C in Cs],
}

figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for (name, audits), marker, colour in zip(excess.items(), "so", ("#D55E00", "#0072B2")):
    percent = [100 * found.relative_excess[0] for found in audits]
    ax.loglog(Cs, percent, marker, linestyle="-", color=colour, label=name)
ax.set(xlabel="C", ylabel="objective above the minimum, proven [%]")
ax.set_title("scikit-learn's LogisticRegression with default settings")
ax.legend(frameon=False)
plt.show()

# %%
# A pipeline is audited as a whole, and ``optimum`` holds the coefficients it should have had.

pipeline = make_pipeline(StandardScaler(), LogisticRegression(C=100.0)).fit(X, y)
print(audit(pipeline, X, y))
