"""Fit ordinary tables of ordinary sizes and list those that are not certified, not verified, or slow.

    python benchmarks/ordinary_hunt.py --problems 500 --seed 0
    python benchmarks/ordinary_hunt.py --problems 500 --seed 0 --everyday

The hostile problems of proof_hunt.py are small; these reach the solvers of larger tables (tests/support/ordinary.py).
``--everyday`` draws texts, one-hot columns, wide tables, unscaled columns, duplicates, rare classes, weights and every
estimator (tests/support/everyday.py), without those that prove nothing about an optimum.
A fit is slow if it takes more than a second and 0.3 microseconds of processor time per number of the table, 2 if it is
sparse, times the classes.
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

import everyday
import machine
import numpy as np
import ordinary
import scipy.sparse as sp

from linsep import verify
from linsep.errors import LinsepError

LIMIT, SLOW, PER_NUMBER, PER_SPARSE = 60.0, 1.0, 3e-7, 2e-6
OTHERS = ("tune", "cv", "sgd", "perceptron", "zero-one")  # several fits, or no proof of an optimum


def _budget(case: ordinary.Ordinary | everyday.Everyday) -> float:
    """Processor time [s] beyond which a fit is slow."""
    sparse = sp.issparse(case.X)
    entries = case.X.nnz if sparse else case.X.shape[0] * case.X.shape[1]
    y = np.asarray(case.y)
    k = len(np.unique(y)) if y.dtype.kind in "iu" else 1
    return SLOW + (PER_SPARSE if sparse else PER_NUMBER) * entries * (k if k > 2 else 1)


def _outcome(case: ordinary.Ordinary | everyday.Everyday) -> tuple[str, float]:
    """What became of the fit, and its processor time [s]."""
    weight = getattr(case, "weight", None)
    if "time_limit" in case.model.get_params():
        case.model.set_params(time_limit=LIMIT)
    began = time.process_time()
    try:
        model = case.model.fit(case.X, case.y, sample_weight=weight)
    except LinsepError as error:
        return type(error).__name__, time.process_time() - began
    took, ended = time.process_time() - began, getattr(model, "certificate_", None)
    if ended is None:
        return "no certificate", took
    peer = getattr(case, "peer", None) is not None
    if not ended.certified and not (peer and ended.relative_gap <= 1e-6):
        return f"gap {ended.relative_gap:.1e}", took
    if not np.isfinite(model.coef_).all():
        return "not finite", took
    if not peer:
        try:
            verify(model, case.X, case.y, weight)
        except LinsepError as error:
            return f"verify: {type(error).__name__}", took
    return "certified", took


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--everyday", action="store_true", help="tables as users bring them")
    options = parser.parse_args()
    count: Counter[str] = Counter()
    total = 0.0
    for seed in range(options.seed, options.seed + options.problems):
        case = everyday.draw(seed) if options.everyday else ordinary.draw(seed)
        if getattr(case, "task", None) in OTHERS:
            count["left out"] += 1
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome, took = _outcome(case)
        total += took
        slow = took > _budget(case)
        refused = outcome in ("SeparableData", "InseparableData", "BadInput", "Refused")
        known = outcome == "certified" or refused
        count[outcome if outcome == "certified" else "error" if refused else "not certified"] += 1
        count["slow"] += slow
        if slow or not known or outcome == "Refused":
            print(f"{case.describe()}: {outcome}, {took:.2f} s", flush=True)
    facts = machine.facts(1)
    print(
        f"{options.problems} problems from seed {options.seed}, revision {facts['revision']}, {facts['date']}"
    )
    print(
        f"certified {count['certified']}, not certified {count['not certified']}, errors {count['error']}, "
        f"slow {count['slow']}, left out {count['left out']}, {total:.0f} s of processor time"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
