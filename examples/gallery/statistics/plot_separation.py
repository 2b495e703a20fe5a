"""
Perfect separation in logistic regression
=========================================

If some hyperplane separates the classes, maximum likelihood has no solution: the coefficients grow without limit.
Most libraries return large numbers and perhaps a warning. linsep raises
:class:`linsep.errors.SeparableData`, which holds the separating direction.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from linsep import LogisticRegression, path, separate
from linsep.errors import SeparableData

# %%
# A dose and a marker for twelve patients. Nobody with a positive marker stayed ill.

patients = pd.DataFrame(
    {
        "dose": [1.0, 2.0, 3.0, 4.0, 2.5, 3.5, 1.5, 4.5, 2.0, 3.0, 5.0, 1.0],
        "marker": [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1],
    }
)
recovered = np.array([0, 0, 1, 1, 0, 1, 1, 0, 1, 1, 1, 1])

try:
    LogisticRegression(C=np.inf).fit(patients, recovered)
except SeparableData as error:
    print(error)

# %%
# :func:`linsep.separate` shows the reason: the classes are quasi-separable, and only the coefficient of ``marker``
# diverges.

answer = separate(patients, recovered)
print(answer)
print("diverges:", patients.columns[answer.diverging].tolist())

# %%
# The path of penalised models shows the same thing: as the penalty vanishes (C grows), one coefficient
# converges and the other does not.

models = path(LogisticRegression(), patients, recovered, np.logspace(-2, 8, 21))
figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for j, (name, style) in enumerate(zip(patients.columns, ("-o", "--s"))):
    ax.semilogx(models.Cs, models.coefs[:, 0, j], style, markersize=4, label=name)
ax.set(xlabel="C (a large C means a weak penalty)", ylabel="coefficient")
ax.set_title("Only the separating feature diverges")
ax.legend(frameon=False)
plt.show()
