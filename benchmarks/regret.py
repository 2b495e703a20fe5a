"""Regret of ``solver="auto"``: its processor time over that of the quickest solver, on tables it has not seen.

    python benchmarks/regret.py                     measure the held-out tables, then print and record the table
    python benchmarks/regret.py --recorded          judge the present choice by the recorded times of all solvers
    python benchmarks/regret.py --recorded --ablate the same with each solver masked in turn

The quickest solver of a cell is known only afterwards, so 1 is out of reach for a choice made beforehand. With
``--recorded`` nothing is fitted: the rows are made, the solver is chosen, and its recorded time is looked up.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import calibrate
import forced
import machine
import tables_for_choice

from linsep.data import Memory
from linsep.losses import get
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.solution import Stop
from linsep.solvers import choose

HERE = Path(__file__).resolve().parent
RECORD = HERE / "results" / "regret.csv"
SUMMARY = HERE / "results" / "regret.json"
SHOWN = 12

Cells = dict[calibrate.Cell, dict[str, tuple[float, bool, str]]]


def _same(choice: str, took: dict[str, float]) -> str:
    """Solver whose recorded time stands for the choice: sifting of few rows is the interior point method."""
    return "interior" if choice == "sifting" and choice not in took else choice


def recorded_regrets(cells: Cells) -> dict[calibrate.Cell, tuple[float, str, str]]:
    """Regret, choice and best solver of each cell, by recorded times; tables that are not here are left out."""
    out = {}
    here = tables_for_choice.calibration() | tables_for_choice.held_out()
    for table in sorted({cell[0] for cell in cells} & here.keys()):
        X, y = tables_for_choice.load(table)
        data = Memory(X, y, n_threads=1)
        for cell in (c for c in cells if c[0] == table):
            _, loss, C, tol = cell
            took = calibrate.times(cells[cell])
            if len(took) < 2:
                continue
            problem = Problem(get(loss), ElasticNet(C), data, True)
            choice = _same(choose(problem, "auto", Stop(tol)).name, took)
            best = min(took, key=took.__getitem__)
            if choice in took:
                out[cell] = (took[choice] / took[best], choice, best)
    return out


def measured_regrets(cells: Cells) -> dict[calibrate.Cell, tuple[float, str, str]]:
    """Regret, choice and best solver of each cell, by the time of ``auto`` itself."""
    out = {}
    for cell, methods in cells.items():
        took = calibrate.times(methods)
        if "auto" not in methods or len(took) < 2:
            continue
        seconds, _, choice = methods["auto"]
        best = min(took, key=took.__getitem__)
        out[cell] = (seconds / took[best], choice, best)
    return out


def ablation(cells: Cells) -> dict[str, dict[str, Any]]:
    """For each solver: the cells that it wins, and how much the best of the others takes there."""
    out: dict[str, dict[str, Any]] = {}
    for method in sorted({m for methods in cells.values() for m in methods} - {"auto"}):
        loss = {}
        for cell, methods in cells.items():
            took = calibrate.times(methods)
            others = [s for m, s in took.items() if m != method]
            if method in took and others:
                loss[cell] = min(others) / min(took.values())
        wins = [x for x in loss.values() if x > 1.0]
        worst = max(loss, key=loss.__getitem__)
        out[method] = {
            **{"cells": len(loss), "wins": len(wins), "by more than a third": sum(x > 4 / 3 for x in wins)},
            **{"largest": round(loss[worst], 2), "there": " ".join(map(str, worst))},
        }  # fmt: skip
    return out


def main() -> int:
    parser = forced.arguments(__doc__.splitlines()[0])
    parser.add_argument("--recorded", action="store_true", help="use recorded times")
    parser.add_argument("--ablate", action="store_true", help="what each solver is worth")
    parser.add_argument("--record", type=Path, default=RECORD, help="file of times")
    options = parser.parse_args()
    if not options.recorded:
        options.record.unlink(missing_ok=True)
        forced.measure(
            options.tables or list(tables_for_choice.held_out()), options.record, options
        )
    cells = calibrate.read(options.record)
    if options.ablate:
        print(json.dumps(ablation(cells), indent=1))
        return 0
    found = (recorded_regrets if options.recorded else measured_regrets)(cells)
    report = {
        "all": calibrate.summary(x for x, _, _ in found.values()),
        **{
            loss: calibrate.summary(x for cell, (x, _, _) in found.items() if cell[1] == loss)
            for loss in sorted({cell[1] for cell in found})
        },
    }
    for cell, (regret, choice, best) in sorted(found.items(), key=lambda f: -f[1][0])[:SHOWN]:
        print(f"{regret:6.2f}  {' '.join(map(str, cell))}: {choice}, best {best}")
    SUMMARY.write_text(json.dumps({"machine": machine.facts(1), **report}, indent=1) + "\n")
    print(json.dumps(report, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
