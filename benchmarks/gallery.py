"""Run scikit-learn's example gallery under ``linsep.accel``: every example that uses one of the replaced classes.

    python benchmarks/gallery.py EXAMPLES [--timeout SECONDS] [--only TEXT] > benchmarks/results/gallery.txt

EXAMPLES is the folder ``examples`` of scikit-learn's source distribution. An example that does not end without accel
either (a data set that has to be downloaded, a missing package) says nothing about accel; its reason is in the table.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import sklearn

import linsep.sklearn


class Outcome(NamedTuple):
    """How a run ended."""

    text: str  #: "ran", "over N s", or the error
    seconds: float
    summary: str  #: first line of the report of accel


def examples(folder: Path) -> list[Path]:
    """Examples that construct one of the classes."""
    names = "|".join(linsep.sklearn.__all__)
    used = re.compile(rf"\b({names})\(")
    return [path for path in sorted(folder.rglob("*.py")) if used.search(path.read_text())]


def run(path: Path, accel: bool, timeout: float) -> Outcome:
    """Run one example in a folder of its own, without a display."""
    how = ["-m", "linsep.accel"] if accel else []
    where = {**os.environ, "MPLBACKEND": "Agg", "OPENBLAS_NUM_THREADS": "1"}
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        try:
            done = subprocess.run(
                [sys.executable, "-W", "ignore", *how, str(path)],
                cwd=place,
                env=where,
                capture_output=True,
                text=True,
                check=False,
                timeout=timeout,
            )
        except subprocess.TimeoutExpired:
            return Outcome(f"over {timeout:.0f} s", timeout, "")
    seconds = time.perf_counter() - began
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    summary = next((line for line in lines if line.startswith("linsep.accel: ")), "")
    if done.returncode == 0:
        return Outcome("ran", seconds, summary.removeprefix("linsep.accel: "))
    own = [line for line in lines if not line.startswith(("linsep.accel", " "))]
    return Outcome(own[-1][:90] if own else f"exit code {done.returncode}", seconds, summary)


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("examples", type=lambda given: Path(given).resolve())
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for each run")
    parser.add_argument("--only", default="", help="part of the path")
    options = parser.parse_args()
    found = [path for path in examples(options.examples) if options.only in str(path)]
    print(f"scikit-learn {sklearn.__version__}, {len(found)} examples that use one of")
    print(f"{', '.join(linsep.sklearn.__all__)}\n")
    ended: dict[str, list[str]] = {"run": [], "fail": [], "neither": [], "slow": []}
    for path in found:
        name = str(path.relative_to(options.examples))
        under = run(path, True, options.timeout)
        if under.text == "ran":
            ended["run"].append(name)
            print(f"ran      {name}  {under.seconds:.0f} s; {under.summary}", flush=True)
            continue
        alone = run(path, False, options.timeout)
        kind = "fail" if alone.text == "ran" else "neither"
        if under.text.startswith("over") and alone.text.startswith("over"):
            kind = "slow"
        ended[kind].append(name)
        word = {"fail": "FAILED", "neither": "neither", "slow": "slow"}[kind]
        print(f"{word:8} {name}  {under.text}; without accel: {alone.text}", flush=True)
    print(
        f"\n{len(ended['run'])} run to the end under linsep.accel; {len(ended['fail'])} only without it; "
        f"{len(ended['neither'])} run neither way; {len(ended['slow'])} take longer than "
        f"{options.timeout:.0f} s both ways."
    )


if __name__ == "__main__":
    main()
