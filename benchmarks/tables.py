"""Small tables: what the scripts beside the race print and write."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import machine
import report

HERE = Path(__file__).resolve().parent


def options(doc: str, **switches: str) -> argparse.Namespace:
    """--threads, --output and the given switches."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2, help="for everybody")
    parser.add_argument("--output", type=Path, help="CSV file")
    for name, text in switches.items():
        parser.add_argument(f"--{name}", action="store_true", help=text)
    return parser.parse_args()


def best(
    run: Callable[..., Any], *arguments: Any, at_least: int = 3, at_most: float = 0.5
) -> float:
    """Least seconds of several calls."""
    least, deadline, done = float("inf"), time.perf_counter() + at_most, 0
    while done < at_least or time.perf_counter() < deadline:
        began = time.perf_counter()
        run(*arguments)
        least = min(least, time.perf_counter() - began)
        done += 1
    return least


_WIDE = ("data", "who", "what", "unit")


def _cell(column: str, text: str) -> str:
    return f"{text:<{32 if column in _WIDE else 15}}"


class Table:
    """Rows printed as they come, and written with the facts of the machine at the end."""

    def __init__(self, name: str, columns: tuple[str, ...], asked: argparse.Namespace) -> None:
        self.columns, self.rows = columns, list[report.Row]()
        self.path = asked.output or HERE / "results" / f"{name}.csv"
        self.facts = machine.facts(asked.threads)
        for key, value in self.facts.items():
            print(f"{key}: {value}")
        print("".join(_cell(column, column) for column in columns), flush=True)

    def add(self, *values: Any) -> None:
        row = dict(zip(self.columns, values, strict=True))
        self.rows.append(row)
        shown = (f"{v:.4g}" if isinstance(v, float) else str(v) for v in values)
        print("".join(map(_cell, self.columns, shown)), flush=True)

    def save(self) -> None:
        """What there is so far, to the file."""
        self.facts["load average at end"] = f"{machine.load_average():.2f}"
        report.write(self.path, self.facts, self.rows, self.columns)

    def write(self) -> None:
        self.save()
        print(f"load average at end: {self.facts['load average at end']}; written to {self.path}")
