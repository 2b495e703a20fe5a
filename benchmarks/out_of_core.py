"""Files larger than memory: linsep from disk against linsep in memory, scikit-learn's SGD and Vowpal Wabbit.

    python benchmarks/out_of_core.py [--rows 300000] [--features 28] [--folder DIR]

One table of normal numbers with noisy labels, C = 1; logistic loss unless it says otherwise. linsep stops at its
certificate, in memory, from a file that is read in place, and from a warm cache, whose checksums are verified in each
fit; the three in alternation. SGDClassifier (``partial_fit``, chunks of 10,000 rows) and Vowpal Wabbit have no
certificate: their objective is computed outside the clock and compared with the lower bound that linsep has proven.
Times are CPU seconds of the process, so that other work on the machine does not count, and of the wall; "passes"
are readings of the whole file. The table goes to results/out_of_core.csv.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import machine
import numpy as np

from linsep import LinearClassifier, LinearSVC, LogisticRegression, scan

RESULTS = Path(__file__).parent / "results" / "out_of_core.csv"
LINES: list[dict[str, str]] = []
CHUNK = 10_000
TARGETS = (1e-3, 1e-6)


def table(folder: Path, n: int, d: int) -> tuple[Path, np.ndarray]:
    """The rows in a file, and their scores with noise."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=d)
    path = folder / f"rows-{n}-{d}.npy"
    X = np.lib.format.open_memmap(path, "w+", np.float64, (n, d))
    z = np.empty(n)
    for lo in range(0, n, CHUNK):
        part = rng.normal(size=(min(CHUNK, n - lo), d))
        X[lo : lo + CHUNK] = part
        z[lo : lo + CHUNK] = part @ truth + 3.0 * rng.normal(size=len(part))
    X.flush()
    return path, z


def chunks(path: Path) -> Iterator[tuple[int, np.ndarray]]:
    """The rows of the file, some at a time."""
    X = np.load(path, mmap_mode="r")
    for lo in range(0, len(X), CHUNK):
        yield lo, np.asarray(X[lo : lo + CHUNK])


def objective(path: Path, y: np.ndarray, w: np.ndarray, b: float) -> float:
    """1/2 |w|^2 + sum log(1 + e^-m)."""
    total = 0.5 * float(w @ w)
    for lo, X in chunks(path):
        m = np.where(y[lo : lo + CHUNK], 1.0, -1.0) * (X @ w + b)
        total += float(np.logaddexp(0.0, -m).sum())
    return total


def line(name: str, used: float, passes: float, reached: str, wall: float = np.nan) -> None:
    """One line of the table."""
    shown = {"who": name, "cpu": f"{used:.3f}", "wall": "" if np.isnan(wall) else f"{wall:.3f}"}
    shown |= {"passes": f"{passes:.1f}", "reached": reached}
    LINES.append(shown)
    print(f"| {' | '.join(shown.values())} |", flush=True)


def linsep_runs(folder: Path, path: Path, y: np.ndarray, z: np.ndarray, repeats: int) -> float:
    """In memory, from the file and from a warm cache; the proven lower bound of the logistic loss."""
    X, several, lower = np.load(path), np.digitize(z, np.quantile(z, [0.3, 0.7])), 0.0
    np.save(folder / "all.npy", np.column_stack([y, several, X]))
    kinds: list[tuple[str, Any, np.ndarray]] = [
        ("LogisticRegression", LogisticRegression(solver="newton"), y),
        ("squared hinge", LinearClassifier("squared_hinge", solver="newton"), y),
        ("LinearSVC", LinearSVC(solver="sifting"), y),
        ("three classes", LogisticRegression(), several),
    ]
    for name, model, target in kinds:
        best: dict[str, tuple[float, float, float]] = {}
        own = 1 if name == "three classes" else 0
        for _ in range(repeats):
            with (
                scan(path, target=target) as plain,
                scan(
                    folder / "all.npy", target=own, ignore=[1 - own], cache=folder / "cache"
                ) as warm,
            ):
                for where, rows in (("memory", X), ("file", plain), ("warm cache", warm)):
                    began, at = time.process_time(), time.perf_counter()
                    model.fit(rows, target) if rows is X else model.fit(rows)
                    used, wall = time.process_time() - began, time.perf_counter() - at
                    passes = float(model.n_passes_) if rows is X else rows.reads
                    old = best.get(where, (np.inf, np.inf, 0.0))
                    best[where] = min(old[0], used), min(old[1], wall), passes
        gap = f"certified {model.certificate_.relative_gap:.1e}"
        for where, (used, wall, passes) in best.items():
            line(f"linsep {name}, {where}", used, passes, gap, wall)
        if name == "LogisticRegression":
            lower = model.certificate_.dual
    return lower


def judged(name: str, passes: int, step: Any, point: Any, path: Path, y: Any, lower: float) -> None:
    """Passes until each target is met, or all of them; only ``step`` is on the clock."""
    seconds, open_targets, gap = 0.0, list(TARGETS), np.inf
    for k in range(1, passes + 1):
        began = time.process_time()
        step()
        seconds += time.process_time() - began
        value = objective(path, y, *point())
        gap = (value - lower) / value
        while open_targets and gap <= open_targets[0]:
            line(name, seconds, k, f"{open_targets.pop(0):.0e}")
    if open_targets:
        line(name, seconds, passes, f"never {open_targets[0]:.0e}: {gap:.1e}")


def sgd_runs(path: Path, y: np.ndarray, lower: float, passes: int) -> None:
    """scikit-learn's SGDClassifier, pass by pass."""
    from sklearn.linear_model import SGDClassifier

    settings: dict[str, dict[str, Any]] = {
        "default": {},
        "invscaling 0.1": {"learning_rate": "invscaling", "eta0": 0.1, "power_t": 0.5},
        "averaged": {"learning_rate": "constant", "eta0": 1e-3, "average": True},
    }
    for name, options in settings.items():
        model = SGDClassifier(loss="log_loss", alpha=1.0 / len(y), random_state=0, **options)

        def step(model: Any = model) -> None:
            for lo, X in chunks(path):
                model.partial_fit(X, y[lo : lo + CHUNK], classes=[False, True])

        def point(model: Any = model) -> tuple[np.ndarray, float]:
            return model.coef_[0], float(model.intercept_[0])

        judged(f"scikit-learn SGD, {name}", passes, step, point, path, y, lower)


def wabbit_runs(folder: Path, path: Path, y: np.ndarray, lower: float, passes: int) -> None:
    """Vowpal Wabbit from its own text format and cache, with more and more passes; writing the text is not timed."""
    try:
        from vowpalwabbit import pyvw
    except ImportError:
        print("| Vowpal Wabbit | absent | | |")
        return
    text, d = folder / "rows.vw", np.load(path, mmap_mode="r").shape[1]
    form = " ".join(f"{j}:%.9g" for j in range(d))
    with text.open("w") as out:
        for lo, X in chunks(path):
            labels = np.where(y[lo : lo + CHUNK], 1, -1).tolist()
            rows = zip(labels, X.tolist(), strict=True)
            out.writelines(f"{label} | {form % tuple(row)}\n" for label, row in rows)
    # Without its --l2, which it applies to predictions and not to the weights: on so many rows the penalty moves the
    # optimum by far less than any target here.
    common = f"-d {text} --loss_function logistic -b 18 --holdout_off --quiet"
    for name, extra in (("default", ""), ("bfgs", "--bfgs")):
        for count in [c for c in (1, 3, 6, 12, 25, 50) if c <= passes] if not extra else [passes]:
            cache = folder / f"rows-{name}.cache"
            cache.unlink(missing_ok=True)
            began = time.process_time()
            learner = pyvw.Workspace(f"{common} --passes {count} --cache_file {cache} {extra}")
            learner.run_parser()
            used = time.process_time() - began
            w = np.array([learner.get_weight(j) for j in range(d)])
            b = float(learner.get_weight(116060))  # where it keeps the constant
            learner.finish()
            value = objective(path, y, w, b)
            gap = (value - lower) / value
            line(f"Vowpal Wabbit, {name}", used, count, f"{gap:.1e}")


def main() -> None:
    """Run everything and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--features", type=int, default=28)
    parser.add_argument("--passes", type=int, default=12)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = options.folder or Path(made)
        facts = machine.facts(2)
        path, z = table(folder, options.rows, options.features)
        y = z > 0.0
        print(f"{options.rows:,} x {options.features}, {path.stat().st_size / 1e6:.0f} MB\n")
        print("| | CPU s | wall s | passes | suboptimality |\n|---|---|---|---|---|")
        lower = linsep_runs(folder, path, y, z, options.repeats)
        sgd_runs(path, y, lower, options.passes)
        wabbit_runs(folder, path, y, lower, options.passes)
    facts["load average at the end"] = f"{machine.load_average():.2f}"
    facts["data"] = f"{options.rows} x {options.features}, C = 1"
    with RESULTS.open("w", newline="") as out:
        out.writelines(f"# {name}: {fact}\n" for name, fact in facts.items())
        writer = csv.DictWriter(out, list(LINES[0]))
        writer.writeheader()
        writer.writerows(LINES)


if __name__ == "__main__":
    main()
