"""
Quantile regression: a band instead of a line
=============================================

Least squares predicts the mean. The pinball loss predicts a quantile, so three fits give a median and a band that
holds about 80 % of the rows, even where the spread changes.
"""

import matplotlib.pyplot as plt
import numpy as np

from linsep import LinearRegressor, losses

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 10, 300))
t = 2 + 0.5 * x + (0.2 + 0.25 * x) * rng.standard_normal(300)
X = x[:, None]

quantiles = (0.1, 0.5, 0.9)
lines = {q: LinearRegressor(losses.Pinball(q)).fit(X, t) for q in quantiles}
for q, model in lines.items():
    below = np.mean(t <= model.predict(X) + 1e-9)
    print(
        f"quantile {q}: {below:.1%} of the rows at or below the line; {model.certificate_.certified=}"
    )

# %%
# At the optimum a quantile line passes exactly through as many rows as it has coefficients: two, here.

print({q: int((abs(t - model.predict(X)) < 1e-9).sum()) for q, model in lines.items()})

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
ax.plot(x, t, ".", color="0.6", markersize=4)
ax.fill_between(
    x,
    lines[0.1].predict(X),
    lines[0.9].predict(X),
    color="#56B4E9",
    alpha=0.3,
    label="10 % to 90 %",
)
ax.plot(x, lines[0.5].predict(X), color="#0072B2", label="median")
ax.plot(
    x, LinearRegressor().fit(X, t).predict(X), "--", color="#D55E00", label="mean (least squares)"
)
ax.set(xlabel="x", ylabel="target", title="Linear quantile regression")
ax.legend(frameon=False)
plt.show()
