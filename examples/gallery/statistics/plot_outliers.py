"""
Regression that outliers cannot move
====================================

One wrong decimal point moves least squares. The absolute loss and Huber's loss limit the pull of a single row.
"""

import matplotlib.pyplot as plt
import numpy as np

from linsep import LinearRegressor, losses

rng = np.random.default_rng(1)
x = np.linspace(0, 10, 40)
t = 1 + 0.8 * x + 0.5 * rng.standard_normal(40)
t[[33, 36, 38]] += (-14, -16, -15)  # three rows with the wrong sign
X = x[:, None]

models = {
    "squared": LinearRegressor(),
    "absolute": LinearRegressor("absolute"),
    "Huber": LinearRegressor(losses.Huber(1.0)),
}
figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
ax.plot(x, t, "o", color="0.5", markersize=4)
for (name, model), style in zip(models.items(), ("--", "-", ":")):
    slope = model.fit(X, t).coef_[0]
    print(f"{name:<9} slope {slope:.3f} (true 0.8); certified: {model.certificate_.certified}")
    ax.plot(x, model.predict(X), style, linewidth=2, label=f"{name}: slope {slope:.2f}")
ax.set(xlabel="x", ylabel="target", title="Three outliers, three losses (true slope 0.8)")
ax.legend(frameon=False)
plt.show()
