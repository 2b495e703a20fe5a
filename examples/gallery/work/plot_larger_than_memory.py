"""
Fit a file that does not fit into memory
========================================

:func:`linsep.scan` opens files; ``fit`` reads them in blocks, as often as the solver needs. The model is bit-identical
to the fit in memory, and its certificate is for the rows in the files.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from linsep import LogisticRegression, scan

rng = np.random.default_rng(0)
folder = Path(tempfile.mkdtemp())
truth = rng.standard_normal(8)
for part in range(4):  # four files, as a data warehouse would write them
    X = rng.standard_normal((10_000, 8))
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(8)])
    frame["clicked"] = (X @ truth + rng.logistic(size=10_000) > 1.0).astype(int)
    frame.to_parquet(folder / f"part-{part}.parquet")

rows = scan(str(folder / "part-*.parquet"), target="clicked")
model = LogisticRegression(solver="newton").fit(rows)
print(model.certificate_)
print(f"{model.n_passes_:g} passes over the files")

# %%
# The same rows in memory give the same coefficients, bit for bit.

table = pd.concat(pd.read_parquet(path) for path in sorted(folder.glob("*.parquet")))
columns = [name for name in table if name != "clicked"]
in_memory = LogisticRegression(solver="newton").fit(table[columns], table["clicked"])
print("same bits:", np.array_equal(model.coef_, in_memory.coef_))

figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
place = np.arange(8)
ax.bar(place - 0.2, truth, 0.4, color="0.75", label="used to generate the rows")
ax.bar(place + 0.2, model.coef_[0], 0.4, color="#0072B2", label="fitted from the files")
ax.axhline(0, color="0.3", linewidth=0.8)
ax.set_xticks(place, columns)
ax.set(ylabel="coefficient", title="40,000 rows in four Parquet files")
ax.legend(frameon=False)
plt.show()
