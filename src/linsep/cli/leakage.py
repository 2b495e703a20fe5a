"""Detection of target leakage: columns that predict the target on their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from linsep.arrays import FloatArray, IntArray
from linsep.data.files.inference import STRING, TIME
from linsep.tables.table import Table

ROWS, _COLUMNS = 20_000, 2_000  # sample size
_FEW = 0.001  # fraction of errors up to which a column is suspicious
_RARE = 0.02  # fraction of the other classes below which every column would be suspicious

Codes = IntArray


def notices(table: Table, regression: bool, target: str, dropped: frozenset[str]) -> list[str]:
    """Return warnings about columns that predict the target on their own; most were recorded after it (leakage).

    Columns that the encoder has ``dropped`` are ignored.
    """
    n = len(table)
    if table.matrix is not None or table.y is None or n < 20:
        return []
    assert table.y is not None
    found = []
    y: Any = table.y if regression else np.unique(table.y, return_inverse=True)[1]
    for name in [name for name in table.columns if name not in dropped][:_COLUMNS]:
        leak = _target_leak(table, name, y) if regression else _class_leak(table, name, y)
        if leak:
            found.append(
                f"column {name!r} alone predicts {target!r} {leak}. If its value becomes known only after {target!r}, "
                f"this is leakage, and the model will fail on new rows: leave it out with --ignore '{name}'"
            )
    table.release()
    return found


def _class_leak(table: Table, name: str, y: Codes) -> str:
    """Return a message if a column predicts the class in nearly all rows, otherwise an empty string."""
    k, n = int(y.max()) + 1, len(y)
    if n - int(np.bincount(y).max()) < max(_RARE * n, 5):
        return ""
    values = table.values(name)
    if table.kinds[name] == STRING:
        groups = values.astype(np.int64) + 1
    else:
        numbers = values.astype(np.float64) if table.kinds[name] != TIME else values.astype("i8")
        groups = _between_changes(np.nan_to_num(numbers, nan=-np.inf), y, k)
    if int(groups.max()) + 1 > n // 5:  # almost an identifier of each row
        return ""
    counts = np.bincount(groups * k + y, minlength=(int(groups.max()) + 1) * k).reshape(-1, k)
    right = int(counts.max(axis=1).sum())
    if right < (1 - _FEW) * n:
        return ""
    return "in every row" if right == n else f"in {100 * right / n:.2f} % of the rows"


def _between_changes(x: FloatArray, y: Codes, k: int) -> Codes:
    """Group sorted numbers by runs of one class, if at most 2 k cuts suffice; otherwise return a single group."""
    order = np.argsort(x, kind="stable")
    x, labels = x[order], y[order]
    cuts = np.flatnonzero((labels[1:] != labels[:-1]) & (x[1:] > x[:-1])) + 1
    groups = np.zeros(len(x), dtype=np.int64)
    if len(cuts) <= 2 * k:
        groups[order] = np.searchsorted(cuts, np.arange(len(x)), side="right")
    return groups


def _target_leak(table: Table, name: str, y: FloatArray) -> str:
    """Return a message if a numeric column is a linear function of the target, otherwise an empty string."""
    if table.kinds[name] in (STRING, TIME):
        return ""
    x = table.values(name)
    known = np.isfinite(x)
    if known.sum() < 20 or not np.ptp(x[known]) or not np.ptp(y[known]):
        return ""
    correlation = abs(float(np.corrcoef(x[known], y[known])[0, 1]))
    return f"(correlation {correlation:.6f})" if correlation > 0.9999 else ""
