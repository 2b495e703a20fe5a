"""Peak memory of ``linsep fit`` on a mixed table many times larger than its memory limit.

    python benchmarks/any_size.py --limit 64 --times 8

writes a CSV file with numbers, gaps, strings, dates and texts of ``times`` the limit, fits it in a process of its own
with ``--memory-limit``, and prints the peak memory of that process, the seconds and the facts of the fit. Peak memory
must stay within the limit and 300 MB, of which the imports take about 185, and 220 once figures are drawn. The texts
of this table are hashed to 524,288 columns, whose vectors take 4 MB each.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc

_ROWS = 20_000  # written together
_WORDS = np.array(
    "red green blue fast slow big small cold warm new old left right near far".split()
)
_FIT = """
import sys
from linsep.cli import command
from linsep.cli.pandas_import import hide_pandas
hide_pandas()
from linsep.cli import storage
from linsep.tables import batches
limit = int(sys.argv.pop(1))
storage.IN_MEMORY = batches.KEPT = min(64 << 20, limit)
command()
"""


def rows(n: int, first: int, rng: np.random.Generator) -> Any:
    """Some rows of a mixed table: 8 numbers, two of them with gaps, 3 strings, a date, a text and the target."""
    X = rng.normal(size=(n, 8)).round(6)
    gaps = rng.random((n, 2)) < 0.1
    columns: dict[str, Any] = {f"x{j}": X[:, j] for j in range(6)}
    columns |= {f"g{j}": pa.array(X[:, 6 + j], mask=gaps[:, j]) for j in range(2)}
    city = rng.integers(0, 40, n)
    columns["city"] = pa.array([f"city {c}" for c in city], mask=rng.random(n) < 0.02)
    columns["kind"] = rng.choice(["a", "b", "c"], n)
    columns["user"] = [f"u{u}" for u in rng.integers(0, 50_000, n)]
    days = (np.arange(first, first + n) // 500).astype("timedelta64[D]")
    columns["day"] = np.datetime64("2015-01-01") + days
    words = _WORDS[rng.integers(0, len(_WORDS), (n, 6))]
    columns["note"] = [" ".join(line) + f" {first + i}" for i, line in enumerate(words.tolist())]
    score = X[:, 0] - X[:, 1] + (city % 5 == 0) + (words[:, 0] == "red") + rng.logistic(size=n)
    columns["y"] = np.where(score > 0, "up", "down")
    return pa.table(columns)


#: Runs a command and says the peak of its memory in KiB and its processor seconds. The peak counts what forks, too, so
#: this process must be small.
_MEASURED = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_maxrss, used.ru_utime, file=sys.stderr)
sys.exit(code)
"""


def write(path: Path, size: float) -> int:
    """Write a table of about ``size`` bytes; the number of rows."""
    rng, n = np.random.default_rng(0), 0
    first = rows(_ROWS, 0, rng)
    with path.open("wb") as file, pc.CSVWriter(file, first.schema) as writer:
        writer.write_table(first)
        n = _ROWS
        while file.tell() < size:
            writer.write_table(rows(_ROWS, n, rng))
            n += _ROWS
    return n


def fit(path: Path, limit: int, *options: str) -> dict[str, Any]:
    """Facts of the command ``linsep fit`` with that limit, with its ``peak`` memory and processor seconds, ``cpu``."""
    words = ["fit", str(path), "-t", "y", "--memory-limit", str(limit), "--json", *options]
    command = [sys.executable, "-c", _MEASURED, sys.executable, "-c", _FIT, str(limit), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr[-3000:]}")
    peak, cpu = done.stderr.split()[-2:]
    return {**json.loads(done.stdout), "peak": int(peak) * 1024, "cpu": float(cpu)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, default=64, help="memory limit in MB")
    parser.add_argument("--times", type=float, default=8.0, help="size of the file in limits")
    parser.add_argument("--C", type=float, help="default: chosen by cross-validation")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path, limit = Path(folder) / "table.csv", given.limit << 20
        n = write(path, given.times * limit)
        began = time.perf_counter()
        facts = fit(path, limit, *([] if given.C is None else ["--C", str(given.C)]))
        print(f"{n:,} rows, {path.stat().st_size / 1e6:.0f} MB, limit {limit / 1e6:.0f} MB")
        print(f"peak memory {facts['peak'] / 1e6:.0f} MB, {time.perf_counter() - began:.0f} s")
        print({key: facts[key] for key in ("features", "C", "test", "certificate", "reads")})


if __name__ == "__main__":
    main()
