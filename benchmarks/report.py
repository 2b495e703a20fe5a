"""Rows of a race as CSV and as a table, and what they add up to."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Row = dict[str, Any]
COLUMNS = (
    "data",
    "kind",
    "n",
    "d",
    "entries",
    "loss",
    "C",
    "target",
    "who",
    "intercept",
    "knob",
    "setting",
    "seconds",
    "bare",
    "cpu",
    "suboptimality",
    "passes",
    "gap",
    "status",
    "read",
    "load",
)
_NUMBERS = (
    "n",
    "d",
    "entries",
    "C",
    "target",
    "setting",
    "seconds",
    "bare",
    "cpu",
    "suboptimality",
    "passes",
    "gap",
    "read",
    "load",
)
US = "linsep"


def _text(value: Any) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return str(value)


def write(
    path: Path, facts: dict[str, str], rows: Iterable[Row], columns: tuple[str, ...] = COLUMNS
) -> None:
    """Facts about the run as comment lines, then the rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as out:
        for key, value in facts.items():
            out.write(f"# {key}: {value}\n")
        table = csv.DictWriter(out, columns, lineterminator="\n")
        table.writeheader()
        for row in rows:
            table.writerow({name: _text(row.get(name, "")) for name in columns})


def read(path: Path) -> tuple[dict[str, str], list[Row]]:
    lines = path.read_text().splitlines()
    facts = dict(line[2:].split(": ", 1) for line in lines if line.startswith("# "))
    rows: list[Row] = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    for row in rows:
        for name in _NUMBERS:
            row[name] = float(row[name]) if row[name] else math.nan
    return facts, rows


def seconds(value: float) -> str:
    if not math.isfinite(value):
        return "-"
    if value < 1e-3:
        return f"{1e6 * value:.0f} us"
    return f"{1e3 * value:.3g} ms" if value < 1 else f"{value:.3g} s"


class Duel:
    """One cell at one target: linsep, the best rival, and the best rival on the same objective."""

    def __init__(self, rows: list[Row]) -> None:
        self.ours = next((r for r in rows if r["who"] == US), None)
        reached = [r for r in rows if r["who"] != US and math.isfinite(r["seconds"])]
        reached.sort(key=lambda r: r["seconds"])
        self.reached = reached
        self.best = reached[0] if reached else None
        self.barest = min(reached, key=lambda r: r["bare"], default=None)
        self.same = next((r for r in reached if r["intercept"] == "free"), None)

    @property
    def time(self) -> float:
        """linsep's time, infinite if it was not certified."""
        if self.ours is None or self.ours["status"] != "certified":
            return math.inf
        return float(self.ours["seconds"])

    def ratio(self, rival: Row | None) -> float:
        """How many times faster linsep is; nan where nobody arrived, inf where it alone did."""
        if rival is None:
            return math.inf if math.isfinite(self.time) else math.nan
        return rival["seconds"] / self.time


Key = tuple[str, str, float]


def duels(rows: list[Row]) -> dict[Key, dict[float, Duel]]:
    cells: dict[Key, dict[float, list[Row]]] = {}
    for row in rows:
        key = (row["data"], row["loss"], row["C"])
        cells.setdefault(key, {}).setdefault(row["target"], []).append(row)
    return {
        key: {target: Duel(found) for target, found in sorted(by.items(), reverse=True)}
        for key, by in cells.items()
    }


HEADER = (
    f"{'data':<15}{'loss':<14}{'C':>5}  {'target':>6}  {'linsep':>8}{'passes':>7}{'read X':>8}  "
    f"{'best rival':>10}  {'which':<36}{'ratio':>6}  {'same objective':>14}{'ratio':>7}"
)


def _ratio(value: float) -> str:
    if math.isnan(value):
        return "-"
    if math.isinf(value):
        return "alone"
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def line(key: Key, target: float, duel: Duel) -> str:
    """One line of the table; `*` where linsep did not certify its answer."""
    data, loss, C = key
    ours = duel.ours or {}
    mark = "" if ours.get("status") == "certified" else "*"
    which = duel.best["who"] if duel.best else "none within the cap"
    if duel.best and duel.best["intercept"] != "free":
        which += f" ({duel.best['intercept']} b)"
    rival = seconds(duel.best["seconds"]) if duel.best else "-"
    same = seconds(duel.same["seconds"]) if duel.same else "-"
    passes = ours.get("passes", math.nan)
    return (
        f"{data:<15}{loss:<14}{C:>5g}  {target:>6.0e}  {seconds(ours.get('seconds', math.nan)):>8}{mark}"
        f"{passes:>{7 - len(mark)}.1f}{seconds(ours.get('read', math.nan)):>8}  "
        f"{rival:>10}  {which:<36}{_ratio(duel.ratio(duel.best)):>6}  {same:>14}{_ratio(duel.ratio(duel.same)):>7}"
    )


def geometric_mean(values: list[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values)) if values else math.nan


def _mean_line(title: str, ratios: list[float]) -> str:
    finite = [r for r in ratios if 0.0 < r < math.inf]
    alone = sum(math.isinf(r) for r in ratios)
    lost_here = sum(r < 1.0 for r in ratios)
    return (
        f"{title}: geometric mean of the ratio {geometric_mean(finite):.2f} over {len(finite)} cells, "
        f"{lost_here} of them lost; {alone} more that linsep alone reaches within the cap"
    )


def summary(rows: list[Row]) -> list[str]:
    """Geometric means of the ratio best rival / linsep, and the cells that are lost."""
    found = duels(rows)
    kinds = {(r["data"], r["loss"], r["C"]): r["kind"] for r in rows}
    lines = []
    for kind in ("dense", "sparse"):
        for target in (1e-3, 1e-6):
            here = [by[target] for key, by in found.items() if kinds[key] == kind and target in by]
            if here:
                title = f"{kind:<7}{target:.0e}"
                lines.append(
                    _mean_line(f"{title}, any objective ", [d.ratio(d.best) for d in here])
                )
                lines.append(
                    _mean_line(f"{title}, same objective", [d.ratio(d.same) for d in here])
                )
    return lines + lost(found)


def _losses(found: dict[Key, dict[float, Duel]]) -> list[str]:
    lines = []
    for (data, loss, C), by in found.items():
        for target, duel in by.items():
            where = f"- {data}, {loss}, C={C:g}, {target:.0e}"
            if not math.isfinite(duel.time):
                gap = duel.ours["gap"] if duel.ours else math.nan
                lines.append(f"{where}: linsep not certified (gap {gap:.1e})")
            elif duel.best and duel.ratio(duel.best) < 1.0:
                lines.append(
                    f"{where}: linsep {seconds(duel.time)}, {duel.best['who']} "
                    f"{seconds(duel.best['seconds'])} ({duel.best['intercept']} intercept)"
                )
    return lines


def _bare_losses(found: dict[Key, dict[float, Duel]]) -> list[str]:
    """Cells won only because a rival must convert the data first."""
    lines = []
    for (data, loss, C), by in found.items():
        for target, duel in by.items():
            rival = duel.barest
            if rival and rival["bare"] < duel.time <= min(r["seconds"] for r in duel.reached):
                lines.append(
                    f"- {data}, {loss}, C={C:g}, {target:.0e}: linsep {seconds(duel.time)}, {rival['who']} "
                    f"{seconds(rival['bare'])} and {seconds(rival['seconds'] - rival['bare'])} to convert"
                )
    return lines


def lost(found: dict[Key, dict[float, Duel]]) -> list[str]:
    lines, bare = _losses(found), _bare_losses(found)
    return [
        f"cells lost: {len(lines) or 'none'}",
        *lines,
        f"cells that would be lost to a rival whose conversion of the data were free: {len(bare) or 'none'}",
        *bare,
    ]
