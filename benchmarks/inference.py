"""Standard errors: an unpenalised fit and its summary against statsmodels, which proves nothing about its optimum.

python benchmarks/inference.py
"""

from __future__ import annotations

import warnings

import generators
import numpy as np
import tables
from threadpoolctl import threadpool_limits

COLUMNS = ("data", "who", "seconds", "largest difference of the standard errors", "ratio")
MADE = {
    "tall 10,000 x 10": (10_000, 10),
    "tall 100,000 x 28": (100_000, 28),
    "tall 300,000 x 50": (300_000, 50),
}


def race(table: tables.Table, name: str, n: int, d: int) -> None:
    import statsmodels.api as sm

    from linsep import LogisticRegression, summary

    X, y = generators.tall(n, d)

    def ours() -> np.ndarray:
        found = summary(LogisticRegression(C=np.inf, n_threads=1).fit(X, y), X, y)
        (part,) = found.coefficients.values()
        return np.sort([line.standard_error for line in part])

    def theirs() -> np.ndarray:
        return np.sort(sm.Logit((y > 0).astype(float), sm.add_constant(X)).fit(disp=0).bse)

    mine, seconds = tables.best(ours), tables.best(theirs)
    apart = float(np.abs(theirs() / ours() - 1.0).max())
    table.add(name, "linsep", mine, 0.0, 1.0)
    table.add(name, "statsmodels", seconds, apart, seconds / mine)


def main() -> None:
    asked = tables.options(__doc__)
    asked.threads = 1
    warnings.simplefilter("ignore")
    table = tables.Table("inference", COLUMNS, asked)
    with threadpool_limits(1):
        for name, (n, d) in MADE.items():
            race(table, name, n, d)
    table.write()


if __name__ == "__main__":
    main()
