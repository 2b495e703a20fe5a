"""Fit ordinary tables of ordinary sizes and list those that are not certified, or slow.

    python benchmarks/ordinary_hunt.py --problems 500 --seed 0

The hostile problems of proof_hunt.py are small; these reach the solvers of larger tables (tests/support/ordinary.py).
A fit is slow if it takes more than a second and 0.3 microseconds of processor time per number of the table.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import machine
import ordinary

from linsep.errors import LinsepError

LIMIT, SLOW, PER_NUMBER = 60.0, 1.0, 3e-7


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    count: Counter[str] = Counter()
    total = 0.0
    for seed in range(options.seed, options.seed + options.problems):
        case = ordinary.draw(seed)
        case.model.set_params(time_limit=LIMIT)
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                ended = case.model.fit(case.X, case.y).certificate_
                outcome = "certified" if ended.certified else f"gap {ended.relative_gap:.1e}"
            except LinsepError as error:
                outcome = type(error).__name__
        took = time.process_time() - began
        total += took
        slow = took > SLOW + PER_NUMBER * case.X.shape[0] * case.X.shape[1]
        count["certified" if outcome == "certified" else "not certified"] += 1
        count["slow"] += slow
        if slow or outcome != "certified":
            print(f"{case.describe()}: {outcome}, {took:.2f} s", flush=True)
    facts = machine.facts(1)
    print(
        f"{options.problems} problems from seed {options.seed}, revision {facts['revision']}, {facts['date']}"
    )
    print(f"certified {count['certified']}, slow {count['slow']}, {total:.0f} s of processor time")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
