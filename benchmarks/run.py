"""The race: time to certified suboptimality 1e-3 and 1e-6, linsep against every rival that is installed.

python benchmarks/run.py                         quick: under ten minutes
python benchmarks/run.py --full                  everything, hours
python benchmarks/run.py --data a9a,sms --loss logistic --C 1 --rival glum,lbfgs --threads 1
python benchmarks/run.py --report results/full.csv        print a recorded run again
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import replace
from pathlib import Path

import datasets
import machine
import report
import rivals
from objective import LOSSES
from race import FULL, HERE, QUICK, Cell, Remote

CS = (0.01, 1.0, 100.0)
USUAL = ("logistic", "squared_hinge")  # the hinge has a race of its own: --loss hinge
_MISSING = float("nan")
_QUICK_SECONDS = 540.0


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="all data sets, every C, long caps")
    parser.add_argument("--quick", action="store_true", help="the default")
    parser.add_argument("--data", type=_words, default=[], help="names, comma separated")
    parser.add_argument("--loss", type=_words, default=[], help=", ".join(LOSSES))
    parser.add_argument("--C", type=lambda t: [float(c) for c in _words(t)], default=[])
    parser.add_argument("--rival", type=_words, default=[], help="parts of names, such as glum")
    parser.add_argument("--threads", type=int, default=2, help="for everybody")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="cpu: if shared")
    parser.add_argument("--cap", type=float, help="seconds for one fit of a rival")
    parser.add_argument("--output", type=Path, help="CSV file")
    parser.add_argument("--report", type=Path, help="print this CSV and do nothing else")
    return parser.parse_args()


def cells(options: argparse.Namespace) -> list[tuple[datasets.Entry, str, float]]:
    known = datasets.catalogue()
    for name in options.data:
        if name not in known:
            raise SystemExit(f"no data set {name!r} here; there are {', '.join(known)}")
    chosen = []
    for entry in known.values():
        if options.data:
            wanted = entry.name in options.data
        else:
            wanted = entry.full if options.full else entry.quick
        if not wanted:
            continue
        short = not (options.full or options.data)
        strengths = options.C or (entry.quick_strengths if short else CS)
        for loss in options.loss or USUAL:
            chosen += [(entry, loss, C) for C in strengths]
    return chosen


def rows_of(cell: Cell, entry: datasets.Entry, size: dict[str, float]) -> list[report.Row]:
    """What goes into the CSV: for each target one row for linsep and one for each contestant."""
    common = {
        "data": cell.data,
        "kind": "sparse" if entry.sparse else "dense",
        "n": size["n"],
        "d": size["d"],
        "entries": size["entries"],
        "read": size["read"],
        "loss": cell.loss,
        "C": cell.C,
        "load": machine.load_average(),
    }
    rows = []
    for target, ours in cell.ours.items():
        state = "certified" if ours.get("reached") else ours.get("error", "not certified")
        row = {"knob": "tol", "setting": target, "status": state, "intercept": "free"}
        rows.append({**common, **ours, **row, "who": report.US, "target": target})
        for runner in cell.runners:
            best = runner.best[target]
            arrived = math.isfinite(best.seconds)
            rows.append(
                {
                    **common,
                    "target": target,
                    "who": runner.name,
                    "intercept": runner.rival.intercept,
                    "knob": runner.rival.knob,
                    "setting": best.setting,
                    "seconds": best.seconds if arrived else _MISSING,
                    "bare": best.bare if arrived else _MISSING,
                    "cpu": best.cpu,
                    "suboptimality": best.suboptimality if arrived else _MISSING,
                    "status": "reached" if arrived else runner.status,
                }
            )
    return rows


def show(rows: list[report.Row]) -> None:
    for key, by in report.duels(rows).items():
        for target, duel in by.items():
            print(report.line(key, target, duel), flush=True)


def race(options: argparse.Namespace) -> tuple[dict[str, str], list[report.Row]]:
    pace = FULL if options.full else QUICK
    if options.cap:
        pace = replace(pace, cap=options.cap)
    facts = {**machine.facts(options.threads), **rivals.versions()}
    facts["clock"] = options.clock
    facts["cap"] = f"{pace.cap:g} s, and {pace.factor:g} times linsep's own time"
    if pace.follow < 1e6:
        facts["cap"] += f", and {pace.follow:g} times the best rival's"
    for name, value in facts.items():
        print(f"{name}: {value}")
    print(report.HEADER, flush=True)
    rows: list[report.Row] = []
    output = options.output or HERE / "results" / ("full.csv" if options.full else "quick.csv")
    remote = Remote(options.threads, options.clock)
    size: dict[str, float] = {}
    left_out = []
    deadline = time.monotonic() + (float("inf") if options.full or options.data else _QUICK_SECONDS)
    try:
        for entry, loss, C in cells(options):
            if time.monotonic() > deadline:
                left_out.append(f"{entry.name} {loss} {C:g}")
                continue
            if remote.data != entry.name:
                size = remote.ask({"op": "load", "data": entry.name}, 900.0)
            cell = Cell(remote, pace, entry.name, loss, C)
            cell.run(options.rival)
            found = rows_of(cell, entry, size)
            show(found)
            rows += found
            facts["load average at end"] = f"{machine.load_average():.2f}"
            report.write(output, facts, rows)
    finally:
        remote.close()
    if left_out:
        print(f"left out, the ten minutes being over: {', '.join(left_out)}")
    print(f"written to {output}")
    return facts, rows


def main() -> None:
    options = arguments()
    began = time.monotonic()
    if options.report:
        facts, rows = report.read(options.report)
        for name, value in facts.items():
            print(f"{name}: {value}")
        print(report.HEADER)
        show(rows)
    else:
        facts, rows = race(options)
        print(f"the race took {time.monotonic() - began:.0f} s")
    print(
        f"load average: {facts['load average at start']} at start, {facts['load average at end']} at end"
    )
    print("\n".join(report.summary(rows)))


if __name__ == "__main__":
    main()
