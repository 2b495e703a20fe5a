"""Are two classes separable? linsep's ``separate`` against the linear programme  A theta >= 1  by HiGHS.

Each answer must be the right one: linsep's is checked (``check``), the programme's is compared with it. linsep also
brings a separator of proven margin, or at most d + 2 rows with convex weights; an infeasible programme only says so.
Processor time of one thread, least of several runs: the machine may be shared.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import datasets
import generators
import numpy as np
import scipy.sparse as sp
import tables
from deviations import least_cpu
from threadpoolctl import threadpool_limits

COLUMNS = ("data", "answer", "who", "cpu", "right", "passes", "ratio")
CAP = 20.0  # seconds on the wall, as HiGHS counts them
NAMED = ("iris", "cancer_raw", "digits", "gen_text_small")
STORED = ("german", "spambase_raw", "phishing", "mushrooms", "a9a", "sms", "news20_5k")


def parted(n: int, d: int, margin: float) -> tuple[np.ndarray, np.ndarray]:
    """Normal rows pushed away from a hyperplane: separable with that margin."""
    rng = np.random.default_rng(n + d)
    X, w = rng.standard_normal((n, d)), rng.standard_normal(d)
    w /= np.linalg.norm(w)
    y = np.where(X @ w >= 0.0, 1.0, -1.0)
    return X + margin * np.outer(y, w), y


def sets(full: bool) -> Iterator[tuple[str, Any, np.ndarray]]:
    known = datasets.catalogue()
    for name in (*NAMED, *(n for n in STORED if n in known)):
        yield name, *datasets.load(name)
    n = 500_000 if full else 50_000
    yield f"{n:,} x 50, margin 0.01", *parted(n, 50, 0.01)
    yield f"{n:,} x 28, overlapping", *generators.tall(n, 28)


def programme(method: str) -> Callable[[Any, np.ndarray], bool | None]:
    """Whether some theta has y_i (x_i.w + b) >= 1 for every row; None if HiGHS does not say."""

    def solve(X: Any, y: np.ndarray) -> bool | None:
        from scipy.optimize import linprog

        n, d = X.shape
        ones = np.ones((n, 1))
        A = sp.hstack([X, ones], format="csr") if sp.issparse(X) else np.hstack([X, ones])
        A = sp.diags_array(-y) @ A if sp.issparse(X) else -y[:, None] * A
        limit = {"time_limit": CAP}
        costs, ends = np.zeros(d + 1), (None, None)
        found = linprog(costs, A, -np.ones(n), bounds=ends, method=method, options=limit)
        return {0: True, 2: False}.get(found.status)

    return solve


def main() -> None:
    asked = tables.options(__doc__, full="500,000 rows")
    from linsep import separate

    warnings.simplefilter("ignore")
    threadpool_limits(1)
    asked.threads = 1
    table = tables.Table("separation", COLUMNS, asked)
    table.facts["cap"] = (
        f"{CAP:g} seconds on the wall for a programme; right: undecided if it was not enough"
    )
    for name, X, y in sets(asked.full):
        ours, seconds = least_cpu(lambda X=X, y=y: separate(X, y, n_threads=1))
        answer = "separable" if ours.separable else "inseparable"
        checked = str(ours.check(X, y))
        table.add(name, answer, "linsep separate", seconds, checked, ours.passes, 1.0)
        for method in ("highs-ds", "highs-ipm"):
            run = programme(method)
            theirs, cpu = least_cpu(lambda X=X, y=y, run=run: run(X, y))
            right = "undecided" if theirs is None else str(theirs == ours.separable)
            table.add(name, answer, f"scipy {method}", cpu, right, float("nan"), cpu / seconds)
    table.write()


if __name__ == "__main__":
    main()
