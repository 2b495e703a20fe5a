"""A guard that does not depend on the clock: instructions executed by a few kernels and fits, counted by callgrind.

    python benchmarks/counts.py              compare with counts.json; exit 1 if anything grew beyond the margin
    python benchmarks/counts.py --record     write counts.json

Counts repeat to a fraction of a percent on any machine with the same compiler and instruction set, busy or not.
They are kept per instruction set (valgrind shows programs AVX2 at most, whatever the machine has) and, because fits
run Python too, per Python version. Without valgrind, its headers or a C compiler the comparison is skipped and says so.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
RECORD = HERE / "counts.json"
MARGIN = 0.15
WARM = 20  # runs before counting: the interpreter specialises its bytecode, pages are mapped
REPEATS = 5


def cases() -> dict[str, Callable[[], object]]:
    """What is counted. The kernels through the passes of a problem, so that their argument lists may change."""
    import numpy as np
    import scipy.sparse as sp
    from sklearn.datasets import load_breast_cancer, load_digits, load_iris

    from linsep import (
        LinearClassifier,
        LogisticRegression,
        LogisticRegressionCV,
        SGDClassifier,
        losses,
    )
    from linsep.data import Memory
    from linsep.penalties import ElasticNet
    from linsep.problem import Problem
    from linsep.solution import Linearised

    rng = np.random.default_rng(0)
    X = rng.standard_normal((16_000, 28))
    S = sp.random(16_000, 2_000, 0.01, format="csr", random_state=0)
    sign = np.where(rng.random(len(X)) < 0.5, 1.0, -1.0)

    def problem(rows: object) -> Problem:
        data = Memory(rows, sign, n_threads=1)
        return Problem(losses.get("logistic"), ElasticNet(C=1.0), data)

    dense, sparse = problem(X), problem(S)
    theta, tall = 0.1 * rng.standard_normal(29), 0.1 * rng.standard_normal(2_001)
    dual = Linearised(theta[:, None], 0.01 * theta[:, None])
    centre = np.zeros(28)
    iris, species = load_iris(return_X_y=True)
    cancer, benign = load_breast_cancer(return_X_y=True)
    digits, digit = load_digits(return_X_y=True)
    even = digit % 2 == 0
    model = LogisticRegression().fit(cancer, benign)
    scaled = (cancer - cancer.mean(axis=0)) / cancer.std(axis=0)
    text, topic = S[:600], sign[:600] > 0
    return {
        "sweep 16000 x 28": lambda: dense.value_gradient(theta),
        "gram 16000 x 28": lambda: dense.hessian(centre),
        "single gram 16000 x 28": lambda: dense.hessian(centre, single=True),
        "closing 16000 x 28": lambda: dense.closing(theta, dual),
        "sparse sweep 16000 x 2000": lambda: sparse.value_gradient(tall),
        "squared hinge fit 150 x 4": lambda: LinearClassifier("squared_hinge").fit(
            iris, species == 2
        ),
        "logistic fit 569 x 30": lambda: LogisticRegression().fit(cancer, benign),
        "logistic fit 1797 x 64": lambda: LogisticRegression().fit(digits, even),
        "ascent, hinge fit 600 x 2000 sparse": lambda: LinearClassifier(
            "hinge", solver="dual-cd"
        ).fit(text, topic),
        "interior, hinge fit 569 x 30": lambda: LinearClassifier("hinge", solver="interior").fit(
            scaled, benign
        ),
        "softmax fit 150 x 4 x 3": lambda: LogisticRegression().fit(iris, species),
        "grid of 5 C and 3 folds 569 x 30": lambda: LogisticRegressionCV(Cs=5, cv=3).fit(
            scaled, benign
        ),
        "stochastic descent 569 x 30": lambda: SGDClassifier().partial_fit(
            scaled, benign, classes=[0, 1]
        ),
        "predict one row": lambda: model.predict(cancer[:1]),
        "probabilities 569 x 30": lambda: model.predict_proba(cancer),
    }


def run_cases(library: str) -> None:
    """Inside valgrind: each case between a begin and an end."""
    client = ctypes.CDLL(library)
    gc.disable()
    for name, run in cases().items():
        for _ in range(WARM):
            run()
        client.count_begin()
        for _ in range(REPEATS):
            run()
        client.count_end(name.encode())
    from linsep import _kernels

    print(_kernels.instruction_set())


def _client(folder: Path) -> Path | None:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    library = folder / "client.so"
    command = [compiler, "-O1", "-shared", "-fPIC", str(HERE / "callgrind_client.c"), "-o"]
    done = subprocess.run([*command, str(library)], capture_output=True, check=False)
    return library if done.returncode == 0 else None


def measure() -> tuple[str, dict[str, int]] | str:
    """Instruction set and counts, or the reason why there are none."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        return "valgrind is not installed"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        library = _client(folder)
        if library is None:
            return "no C compiler, or valgrind's headers are missing"
        env = dict(os.environ, PYTHONHASHSEED="0", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
        output = ["--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder}/out"]
        command = [valgrind, *output, sys.executable, __file__, "--inside", str(library)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"the run under valgrind failed:\n{done.stderr[-3000:]}")
        counts = {}
        for dump in folder.glob("out.*"):
            text = dump.read_text()
            case = re.search(r"^desc: Trigger: Client Request: (.+)$", text, re.MULTILINE)
            total = re.search(r"^(?:summary|totals): (\d+)", text, re.MULTILINE)
            if case and total:
                counts[case[1]] = int(total[1]) // REPEATS
    return done.stdout.split()[-1], counts


def compare(counts: dict[str, int], recorded: dict[str, int]) -> bool:
    """Print the table; whether nothing grew beyond the margin."""
    good = True
    print(f"{'instructions per run':<36}{'recorded':>14}{'now':>14}{'change':>9}")
    for name, now in sorted(counts.items()):
        before = recorded.get(name)
        if before is None:
            print(f"{name:<36}{'-':>14}{now:>14,}      new: make it known with --record")
            continue
        change = now / before - 1.0
        word = ""
        if change > MARGIN:
            good, word = False, "  TOO MANY"
        elif change < -MARGIN:
            word = "  better: make it the record with --record"
        print(f"{name:<36}{before:>14,}{now:>14,}{change:>+9.1%}{word}")
    for name in recorded.keys() - counts.keys():
        print(f"{name}: recorded, but not counted now")
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", action="store_true", help="write counts.json")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        run_cases(options.inside)
        return 0
    found = measure()
    if isinstance(found, str):
        print(f"instruction counts not compared: {found}")
        return 0
    instructions, counts = found
    version = ".".join(platform.python_version_tuple()[:2])
    key = f"{platform.machine()} {instructions}, Python {version}"
    recorded = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    if options.record:
        recorded[key] = dict(sorted(counts.items()))
        RECORD.write_text(json.dumps(recorded, indent=2) + "\n")
        print(f"recorded for {key}")
        return 0
    if key not in recorded:
        print(f"nothing recorded for {key}: run with --record")
        return 0
    return 0 if compare(counts, recorded[key]) else 1


if __name__ == "__main__":
    sys.exit(main())
