"""
A rare class: choose the threshold by cost
==========================================

One row in fifty is positive, and a missed positive costs twenty times as much as a false alarm. The probabilities
of a logistic regression turn that cost into a threshold; no resampling is needed.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from linsep import LogisticRegression

X, y = make_classification(
    20_000, 12, n_informative=6, weights=[0.98], class_sep=0.8, random_state=3
)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
model = LogisticRegression().fit(X, y)
p = model.predict_proba(X_test)[:, 1]

thresholds = np.geomspace(2e-3, 0.9, 200)
missed = np.array([(y_test[p <= c] == 1).sum() for c in thresholds])
alarms = np.array([(y_test[p > c] == 0).sum() for c in thresholds])
cost = 20 * missed + alarms

# %%
# The expected cost is least where the cost of an alarm equals that of a miss: at p = 1/(1 + 20). The best
# threshold on the test rows is close to it.

theory, best = 1 / 21, thresholds[cost.argmin()]
print(f"threshold from the costs {theory:.3f}, cheapest on the test rows {best:.3f}")
for c in (0.5, theory):
    at = np.abs(thresholds - c).argmin()
    print(f"threshold {c:.3f}: {missed[at]} missed, {alarms[at]} alarms, cost {cost[at]}")

figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
ax.semilogx(thresholds, cost, color="#0072B2", linewidth=2)
ax.axvline(0.5, color="#D55E00", linestyle="--", label="default threshold 0.5")
ax.axvline(theory, color="#009E73", linestyle="-.", label="threshold from the costs, 1/21")
ax.set(
    xlabel="predict the rare class if its probability exceeds", ylabel="cost on 10,000 test rows"
)
ax.set_title("The default threshold is expensive")
ax.set_ylim(0)
ax.legend(frameon=False)
plt.show()
