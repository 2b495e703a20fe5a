"""How the cost of a certified fit grows with the rows and with the columns."""

from __future__ import annotations

import math

import generators
import machine
import tables

COLUMNS = ("series", "loss", "n", "d", "seconds", "passes", "read X s", "ns per entry", "exponent")


def series(full: bool) -> dict[str, list[tuple[int, int]]]:
    rows = [10_000, 30_000, 100_000, 300_000, 1_000_000]
    columns = [10, 30, 100, 300]
    if full:
        rows += [3_000_000, 10_000_000]
        columns += [1_000]
    return {"rows": [(n, 28) for n in rows], "columns": [(100_000, d) for d in columns]}


def main() -> None:
    asked = tables.options(__doc__, full="up to 10,000,000 rows and 1,000 columns")
    from linsep import LinearClassifier

    table = tables.Table("growth", COLUMNS, asked)
    for name, sizes in series(asked.full).items():
        before: dict[str, tuple[float, float]] = {}
        for n, d in sizes:
            X, y = generators.tall(n, d)
            reading = machine.read_seconds(X, asked.threads)
            for loss in ("logistic", "squared_hinge"):
                model = LinearClassifier(loss, tol=1e-6, n_threads=asked.threads)
                seconds = tables.best(model.fit, X, y)
                size = float(n if name == "rows" else d)
                exponent = math.nan
                if loss in before:  # time ~ size^exponent since the size before
                    last_size, last = before[loss]
                    exponent = math.log(seconds / last) / math.log(size / last_size)
                before[loss] = (size, seconds)
                passes = float(model.n_passes_)
                entry = 1e9 * seconds / (n * d)
                table.add(name, loss, n, d, seconds, passes, reading, entry, exponent)
    table.write()


if __name__ == "__main__":
    main()
