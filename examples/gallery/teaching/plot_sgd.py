"""
How good is stochastic gradient descent?
========================================

:class:`linsep.SGDClassifier` has a certificate too: after the last step, one pass over the rows proves how far from
the optimum it ended. Three step size schedules on the same problem, against the proven optimum.
"""

import matplotlib.pyplot as plt

from linsep import LinearClassifier, SGDClassifier, check_schedule, datasets

X, y = datasets.breast_cancer()
X = (X - X.mean(axis=0)) / X.std(axis=0)
minimum = LinearClassifier("logistic", C=0.1).fit(X, y).certificate_.dual

figure, ax = plt.subplots(figsize=(6.6, 4), layout="constrained")
for schedule, style in (("constant", ":"), ("inverse_sqrt", "--"), ("inverse", "-")):
    model = SGDClassifier("logistic", C=0.1, schedule=schedule, epochs=40).fit(X, y)
    history = model.history_
    ax.semilogy(history.steps / len(X), history.last / minimum - 1, style, label=schedule)
    print(
        f"{schedule:<13} proven gap {model.certificate_.relative_gap:.1e}; {check_schedule(schedule)}"
    )
ax.set(xlabel="epochs", ylabel="objective above the minimum, relative")
ax.set_title("The last iterate of stochastic gradient descent")
ax.legend(frameon=False, title="step sizes")
plt.show()
