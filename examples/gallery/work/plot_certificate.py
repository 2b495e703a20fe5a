"""
Watch a fit prove that it has converged
=======================================

Every fit of linsep ends with a certificate: the objective that was reached, and a lower bound that no coefficients
can beat. A fit that is stopped early has one too. So we stop the same fit after 1, 3, 5, ... passes over the data
and look at what is proven by then.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from linsep import LogisticRegression, datasets
from linsep.errors import ConvergenceWarning

X, y = datasets.breast_cancer()
X = (X - X.mean(axis=0)) / X.std(axis=0)

warnings.simplefilter("ignore", ConvergenceWarning)  # stopped on purpose
fits = [LogisticRegression(solver="newton", max_passes=k).fit(X, y) for k in range(1, 20, 2)]
print("stopped:  ", fits[3].certificate_)
print("converged:", fits[-1].certificate_)

# %%
# The minimum always lies between the two curves.

passes = [fit.n_passes_ for fit in fits]
objective = np.array([fit.certificate_.primal for fit in fits])
bound = np.array([fit.certificate_.dual for fit in fits])
gap = [fit.certificate_.relative_gap for fit in fits]

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.plot(passes, objective, "-s", color="#D55E00", markersize=4, label="objective")
left.plot(passes, bound, "-o", color="#0072B2", markersize=4, label="proven lower bound")
left.fill_between(passes, bound, objective, color="0.9", label="the minimum lies here")
left.set(ylim=(-3, 145), xlabel="passes over the data", ylabel="objective")
left.set_title("Two bounds enclose the minimum")
left.legend(frameon=False)
right.semilogy(passes, gap, "-o", color="#0072B2", markersize=4)
right.axhline(fits[0].tol, color="0.4", linestyle="--", label="tol: small enough, stop")
right.set(xlabel="passes over the data", ylabel="proven relative gap")
right.set_title("How far from the minimum, at most")
right.legend(frameon=False)
plt.show()
