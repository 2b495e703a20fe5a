"""What a careful colleague would say about a table before a model is fitted to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.arrays import FloatArray
from linsep.data.files.inference import STRING, TIME
from linsep.tables.table import Table

ROWS, _COLUMNS = 20_000, 2_000  # that are looked at
_FEW = 0.001  # share of rows that a suspicious column gets wrong
_RARE = 0.02  # share of the other classes below which every column would look clever

Codes = npt.NDArray[np.int64]


def notices(table: Table, regression: bool, target: str, dropped: frozenset[str]) -> list[str]:
    """Columns that predict the target on their own: as a rule they were recorded after it (leakage).

    Columns that the encoder has ``dropped`` can do no harm.
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
    """Message that a column predicts the class in so many rows; empty if in too few."""
    k, n = int(y.max()) + 1, len(y)
    if n - int(np.bincount(y).max()) < max(_RARE * n, 5):
        return ""
    values = table.values(name)
    if table.kinds[name] == STRING:
        groups = values.astype(np.int64) + 1
    else:
        numbers = values.astype(np.float64) if table.kinds[name] != TIME else values.astype("i8")
        groups = _between_changes(np.nan_to_num(numbers, nan=-np.inf), y, k)
    if int(groups.max()) + 1 > n // 5:  # nearly a name for each row
        return ""
    counts = np.bincount(groups * k + y, minlength=(int(groups.max()) + 1) * k).reshape(-1, k)
    right = int(counts.max(axis=1).sum())
    if right < (1 - _FEW) * n:
        return ""
    return "in every row" if right == n else f"in {100 * right / n:.2f} % of the rows"


def _between_changes(x: FloatArray, y: Codes, k: int) -> Codes:
    """Groups of neighbouring numbers of one class, if a few cuts make them; else one group of all."""
    order = np.argsort(x, kind="stable")
    x, labels = x[order], y[order]
    cuts = np.flatnonzero((labels[1:] != labels[:-1]) & (x[1:] > x[:-1])) + 1
    groups = np.zeros(len(x), dtype=np.int64)
    if len(cuts) <= 2 * k:
        groups[order] = np.searchsorted(cuts, np.arange(len(x)), side="right")
    return groups


def _target_leak(table: Table, name: str, y: FloatArray) -> str:
    """Whether a column of numbers is the target in another unit."""
    if table.kinds[name] in (STRING, TIME):
        return ""
    x = table.values(name)
    known = np.isfinite(x)
    if known.sum() < 20 or not np.ptp(x[known]) or not np.ptp(y[known]):
        return ""
    correlation = abs(float(np.corrcoef(x[known], y[known])[0, 1]))
    return f"(correlation {correlation:.6f})" if correlation > 0.9999 else ""
