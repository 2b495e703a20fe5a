"""How long Ctrl-C takes: for every solver and every long call, milliseconds from the signal until control returns.

Three measurements of each case:

* **stall**: a timer interrupts the whole uninterrupted run every 2 ms, and the longest stretch of processor time in
  which the interpreter did not answer is what Ctrl-C waits for at the worst moment;
* **signals**: SIGINT at several fractions of the run, from another process, and the time until ``KeyboardInterrupt``
  reaches the caller. The estimator must be unfitted then;
* **limit**: the time by which a fit with ``time_limit`` set to two fifths of the run ends later than that.

A signal or a limit that takes longer than 100 ms is measured again, and the shorter time counts: another program may
have had the core. ``python benchmarks/interrupts.py`` measures all cases and writes benchmarks/results/interrupts.csv;
with names, only those. ``--stalls`` leaves the signals out and says where the longest stretches are.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import generators
import numpy as np

import linsep
import linsep.solvers

Case = Callable[[], tuple[Callable[[], Any], Any]]
CASES: dict[str, Case] = {}
FRACTIONS = (0.05, 0.3, 0.5, 0.7, 0.95)
_TICK = 0.002
_LONG = 0.1  # seconds after which a measurement is repeated
RESULTS = Path(__file__).parent / "results" / "interrupts.csv"


def case(name: str) -> Callable[[Case], Case]:
    """Register a case: a function that prepares data and returns what to run and the estimator it changes."""

    def register(function: Case) -> Case:
        CASES[name] = function
        return function

    return register


def _fit(model: Any, X: Any, y: Any) -> tuple[Callable[[], Any], Any]:
    return lambda: model.fit(X, y), model


def _text(n: int = 40_000, d: int = 40_000) -> tuple[Any, Any]:
    return generators.text(n, d)


def _separable(n: int, d: int) -> tuple[Any, Any]:
    X = np.random.default_rng(0).standard_normal((n, d))
    return X, np.where(X @ np.linspace(-1.0, 1.0, d) > 0.0, 1, -1)


def _several(n: int, d: int, k: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    Z = X @ rng.standard_normal((d, k)) / np.sqrt(d) + rng.gumbel(size=(n, k))
    return X, Z.argmax(axis=1)


@case("small: 1,600 x 300, C = 1e6")
def _() -> Any:
    X, y = generators.tall(1_600, 300)
    return _fit(linsep.LogisticRegression(C=1e6, solver="small", tol=1e-9), X, y)


@case("newton: 40,000 x 300")
def _() -> Any:
    return _fit(linsep.LogisticRegression(solver="newton"), *generators.tall(40_000, 300))


@case("newton: 4,000 x 2,000")
def _() -> Any:
    return _fit(linsep.LogisticRegression(solver="newton"), *generators.tall(4_000, 2_000))


@case("newton, C = inf: 10,000 x 400")
def _() -> Any:
    return _fit(linsep.LogisticRegression(C=np.inf, solver="newton"), *generators.tall(10_000, 400))


@case("newton, C = inf, dependent columns: 4,000 x 700")
def _() -> Any:
    X, y = generators.tall(4_000, 650)
    return _fit(linsep.LogisticRegression(C=np.inf), np.hstack([X, X[:, :50]]), y)


@case("newton, squared hinge: 3,000 x 1,000")
def _() -> Any:
    X, y = generators.tall(3_000, 1_000)
    return _fit(linsep.LinearSVC(1e4, loss="squared_hinge", solver="newton"), X, y)


@case("newton-pilot: 20,000 x 1,000")
def _() -> Any:
    return _fit(linsep.LogisticRegression(solver="newton-pilot"), *generators.tall(20_000, 1_000))


@case("newton-rounds: 20,000 x 500")
def _() -> Any:
    return _fit(linsep.LogisticRegression(solver="newton-rounds"), *generators.tall(20_000, 500))


@case("newton-cg: sparse 40,000 x 40,000, C = 100")
def _() -> Any:
    return _fit(linsep.LogisticRegression(C=100.0, solver="newton-cg"), *_text())


@case("dual-cd, logistic: sparse 40,000 x 40,000, C = 100")
def _() -> Any:
    return _fit(linsep.LogisticRegression(C=100.0, solver="dual-cd"), *_text())


@case("dual-cd, hinge: sparse 40,000 x 40,000, C = 10")
def _() -> Any:
    return _fit(linsep.LinearSVC(10.0, solver="dual-cd"), *_text())


@case("dual-cd, hinge: 100,000 x 50, C = 1")
def _() -> Any:
    return _fit(linsep.LinearSVC(1.0, solver="dual-cd"), *generators.tall(100_000, 50))


@case("dual-cd, then Newton on the rows: 2,000 x 20,000, C = 1e4")
def _() -> Any:
    return _fit(linsep.LogisticRegression(C=1e4, solver="dual-cd"), *generators.wide())


@case("small-l1: 6,000 x 150, C = 1e6")
def _() -> Any:
    X, y = generators.tall(6_000, 150)
    return _fit(linsep.LogisticRegression(C=1e6, l1_ratio=1.0, solver="small-l1"), X, y)


@case("working-set: 1,000 x 10,000")
def _() -> Any:
    X, y = generators.wide(1_000, 10_000)
    return _fit(linsep.LogisticRegression(C=10.0, l1_ratio=1.0, solver="working-set"), X, y)


@case("working-set: sparse 40,000 x 40,000, C = 10")
def _() -> Any:
    return _fit(linsep.LogisticRegression(C=10.0, l1_ratio=1.0, solver="working-set"), *_text())


@case("working-set, elastic net: 10,000 x 200, C = 10")
def _() -> Any:
    X, y = generators.tall(10_000, 200)
    return _fit(linsep.LogisticRegression(C=10.0, l1_ratio=0.5, solver="working-set"), X, y)


@case("groups: 5,000 x 300")
def _() -> Any:
    X, y = generators.tall(5_000, 300)
    groups = [list(range(a, a + 10)) for a in range(0, 300, 10)]
    model = linsep.LogisticRegression(C=0.1, l1_ratio=0.5, feature_groups=groups)
    return _fit(model, X, y)


@case("interior, hinge: 5,000 x 600, C = 100")
def _() -> Any:
    X, y = generators.tall(5_000, 600)
    return _fit(linsep.LinearSVC(100.0, solver="interior"), X, y)


@case("interior, hinge: 2,000 x 6,000, C = 1")
def _() -> Any:
    X, y = generators.wide(2_000, 6_000)
    return _fit(linsep.LinearSVC(1.0, solver="interior"), X, y)


@case("interior, absolute: 4,000 x 300, C = inf")
def _() -> Any:
    X, y = generators.tall(4_000, 300)
    t = X[:, 0] + y
    return _fit(linsep.LinearRegressor(loss="absolute", C=np.inf, solver="interior"), X[:, 1:], t)


@case("absolute-rows, absolute loss with L1: 2,000 x 300")
def _() -> Any:
    X, y = generators.tall(2_000, 300)
    t = X[:, 0] + y
    model = linsep.LinearRegressor("absolute", C=1.0, l1_ratio=1.0, solver="absolute-rows")
    return _fit(model, X[:, 1:], t)


@case("working-set, lasso: 1,000 x 6,000")
def _() -> Any:
    X, y = generators.wide(1_000, 6_000)
    return _fit(linsep.LinearRegressor(C=1.0, l1_ratio=1.0), X, X[:, 0] + y)


@case("least squares, C = inf: 3,000 x 1,500")
def _() -> Any:
    X, y = generators.tall(3_000, 1_500)
    return _fit(linsep.LinearRegressor(), X, X[:, 0] + y)


@case("least squares, C = inf: 1,500 x 6,000")
def _() -> Any:
    X, y = generators.wide(1_500, 6_000)
    return _fit(linsep.LinearRegressor(), X, X[:, 0] + y)


@case("decimal arithmetic: 150 x 10, columns far from zero, C = inf")
def _() -> Any:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 10)) * 10.0 ** rng.integers(-8, 8, 10) + 1e9
    return _fit(linsep.LogisticRegression(C=np.inf), X, rng.integers(0, 2, 150))


@case("sifting: 600,000 x 60")
def _() -> Any:
    return _fit(linsep.LinearSVC(solver="sifting"), *generators.tall(600_000, 60))


@case("hard-margin: 3,000 x 300")
def _() -> Any:
    X, y = _separable(3_000, 300)
    return _fit(linsep.LinearSVC(np.inf), X, y)


@case("softmax: 40,000 x 200, 10 classes")
def _() -> Any:
    return _fit(linsep.LogisticRegression(C=10.0), *_several(40_000, 200, 10))


@case("softmax, C = inf: 4,000 x 60, 6 classes")
def _() -> Any:
    return _fit(linsep.LogisticRegression(C=np.inf), *_several(4_000, 60, 6))


@case("softmax, wide: 500 x 4,000, 5 classes, C = 1e4")
def _() -> Any:
    return _fit(linsep.LogisticRegression(C=1e4), *_several(500, 4_000, 5))


@case("softmax, l1: 10,000 x 150, 6 classes")
def _() -> Any:
    return _fit(linsep.LogisticRegression(l1_ratio=1.0), *_several(10_000, 150, 6))


@case("proximal-newton (Crammer-Singer): 8,000 x 60, 6 classes")
def _() -> Any:
    X, y = _several(8_000, 60, 6)
    return _fit(linsep.LinearSVC(multiclass="crammer_singer", C=10.0), X, y)


@case("one against the rest: sparse 40,000 x 40,000, 4 classes")
def _() -> Any:
    X, y = _text()
    y = 2 * (y > 0) + (np.arange(len(y)) % 2)
    return _fit(linsep.LinearSVC(multiclass="ovr", n_threads=2), X, y)


@case("one against the rest, C = inf: 20,000 x 100, 30 classes")
def _() -> Any:
    model = linsep.LogisticRegression(C=np.inf, multiclass="ovr")
    return _fit(model, *_several(20_000, 100, 30))


@case("large means: 40,000 x 200")
def _() -> Any:
    X, y = generators.tall(40_000, 200)
    return _fit(linsep.LogisticRegression(C=1e6), X * 1e3 + 1e5, y)


@case("Perceptron: 100,000 x 100")
def _() -> Any:
    X, y = generators.tall(100_000, 100)
    return _fit(linsep.Perceptron(max_passes=2_000), X, y)


@case("SGDClassifier: 200,000 x 100")
def _() -> Any:
    return _fit(linsep.SGDClassifier(epochs=100), *generators.tall(200_000, 100))


@case("ZeroOneClassifier: 400 x 5")
def _() -> Any:
    return _fit(linsep.ZeroOneClassifier(time_limit=4.0), *generators.tall(400, 5))


@case("ZeroOneClassifier: 100,000 x 60")
def _() -> Any:
    return _fit(linsep.ZeroOneClassifier(time_limit=4.0), *generators.tall(100_000, 60))


@case("LogisticRegressionCV: 40,000 x 200")
def _() -> Any:
    return _fit(linsep.LogisticRegressionCV(), *generators.tall(40_000, 200))


@case("LinearSVCCV: 20,000 x 100")
def _() -> Any:
    return _fit(linsep.LinearSVCCV(), *generators.tall(20_000, 100))


@case("separate: 4,000 x 500, separable")
def _() -> Any:
    X, y = _separable(4_000, 500)
    return lambda: linsep.separate(X, y), None


@case("separate: 40,000 x 600, not separable")
def _() -> Any:
    X, y = generators.tall(40_000, 600)
    return lambda: linsep.separate(X, y), None


@case("tune: 40,000 x 150, 40 C, 5 folds")
def _() -> Any:
    X, y = generators.tall(40_000, 150)
    return lambda: linsep.tune(linsep.LogisticRegression(), X, y, Cs=40), None


@case("tune: sparse 20,000 x 40,000, 6 C, 5 folds, 2 threads")
def _() -> Any:
    X, y = _text(20_000)
    model = linsep.LogisticRegression(n_threads=2)
    return lambda: linsep.tune(model, X, y, Cs=6), None


@case("tune, hinge: 6,000 x 100, 12 C, 5 folds, 2 threads")
def _() -> Any:
    X, y = generators.tall(6_000, 100)
    model = linsep.LinearSVC(n_threads=2)
    return lambda: linsep.tune(model, X, y, Cs=12), None


@case("tune, l1: 6,000 x 100, 6 C, 5 folds, 2 threads")
def _() -> Any:
    X, y = generators.tall(6_000, 100)
    model = linsep.LogisticRegression(l1_ratio=1.0, n_threads=2)
    return lambda: linsep.tune(model, X, y, Cs=6), None


@case("tune: 1,500 x 8,000, 6 C, 5 folds")
def _() -> Any:
    X, y = generators.wide(1_500, 8_000)
    return lambda: linsep.tune(linsep.LogisticRegression(), X, y, Cs=6), None


@case("path, l1: 6,000 x 150, 30 C")
def _() -> Any:
    X, y = generators.tall(6_000, 150)
    model = linsep.LogisticRegression(l1_ratio=1.0)
    return lambda: linsep.path(model, X, y, Cs=30), None


def _home() -> Path:
    home = Path(tempfile.gettempdir()) / "linsep-interrupts"
    home.mkdir(exist_ok=True)
    return home


def _csv_file() -> Path:
    file = _home() / "table.csv"
    if not file.exists():
        X, y = generators.tall(200_000, 20)
        header = ",".join([*(f"x{j}" for j in range(20)), "y"])
        np.savetxt(file, np.column_stack([X, y]), "%.6g", ",", header=header, comments="")
    return file


def _libsvm_file() -> Path:
    file = _home() / "text.svm"
    if not file.exists():
        X, y = _text(100_000)
        with file.open("w") as out:
            for i in range(X.shape[0]):
                a, b = X.indptr[i : i + 2]
                order = np.argsort(X.indices[a:b])
                pairs = zip(X.indices[a:b][order] + 1, X.data[a:b][order], strict=True)
                out.write(f"{int(y[i])} " + " ".join(f"{j}:{v:.6g}" for j, v in pairs) + "\n")
    return file


@case("read_table: CSV of 200,000 x 21")
def _() -> Any:
    file = _csv_file()
    return lambda: linsep.read_table(file, "y"), None


@case("read_libsvm: 100,000 rows")
def _() -> Any:
    file = _libsvm_file()
    return lambda: linsep.read_libsvm(file), None


@case("scan and fit: CSV of 200,000 x 21")
def _() -> Any:
    file, model = _csv_file(), linsep.LogisticRegression()
    return lambda: model.fit(linsep.scan(file, target="y")), model


@case("write_report: 60,000 x 100")
def _() -> Any:
    X, y = generators.tall(60_000, 100)
    model = linsep.LogisticRegression().fit(X, y)
    return lambda: linsep.write_report(model, X, y, _home() / "report.html"), None


@case("summary: 100,000 x 300, C = inf")
def _() -> Any:
    X, y = generators.tall(100_000, 300)
    model = linsep.LogisticRegression(C=np.inf).fit(X, y)
    return lambda: linsep.summary(model, X, y), None


@case("predict_proba: 400,000 x 300, five times")
def _() -> Any:
    X, y = generators.tall(5_000, 300)
    model = linsep.LogisticRegression().fit(X, y)
    many = np.tile(X, (80, 1))
    return lambda: [model.predict_proba(many) for _ in range(5)], None


@case("verify: 300,000 x 300")
def _() -> Any:
    X, y = generators.tall(300_000, 300)
    model = linsep.LogisticRegression().fit(X, y)
    return lambda: linsep.verify(model, X, y), None


@case("verify(exact=True): 20,000 x 60")
def _() -> Any:
    X, y = generators.tall(20_000, 60)
    model = linsep.LogisticRegression().fit(X, y)
    return lambda: linsep.verify(model, X, y, exact=True), None


@case("verify(exact=True), hinge: 20,000 x 60")
def _() -> Any:
    X, y = generators.tall(20_000, 60)
    model = linsep.LinearSVC().fit(X, y)
    return lambda: linsep.verify(model, X, y, exact=True), None


@case("audit: 20,000 x 100")
def _() -> Any:
    from sklearn.linear_model import LogisticRegression

    X, y = generators.tall(20_000, 100)
    model = LogisticRegression(max_iter=200).fit(X, y)
    return lambda: linsep.audit(model, X, y), None


def stall(run: Callable[[], Any]) -> tuple[float, float, list[tuple[float, str]]]:
    """Seconds of the run, its longest stretch without an answer [s of processor time], and where the longest are."""
    gaps: list[tuple[float, str]] = []
    last = time.thread_time()

    def answer(_: int, frame: Any) -> None:
        nonlocal last
        now = time.thread_time()
        if now - last > 0.02 and frame is not None:
            gaps.append((now - last, _where(frame)))
        last = time.thread_time()

    before = signal.signal(signal.SIGALRM, answer)
    began = time.perf_counter()
    signal.setitimer(signal.ITIMER_REAL, _TICK, _TICK)
    try:
        run()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    gaps.sort(reverse=True)
    return time.perf_counter() - began, gaps[0][0] if gaps else 0.02, gaps


def _where(frame: Any) -> str:
    places = []
    while frame is not None and len(places) < 4:
        file = frame.f_code.co_filename
        if "linsep" in file and "benchmarks" not in file:
            places.append(f"{file.split('linsep/')[-1]}:{frame.f_lineno}")
        elif not places:
            places.append(f"({Path(file).name}:{frame.f_lineno})")
        frame = frame.f_back
    return " < ".join(places)


class Sender:
    """Another process that sends SIGINT to this one after a delay and says when it did."""

    def __init__(self) -> None:
        text = (
            "import os, signal, sys, time\n"
            "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
            "for line in sys.stdin:\n"
            "    time.sleep(float(line)); sent = time.perf_counter()\n"
            "    os.kill(os.getppid(), signal.SIGINT); print(sent, flush=True)\n"
        )
        self._child = subprocess.Popen(
            [sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def send_after(self, delay: float) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(f"{delay}\n")
        self._child.stdin.flush()

    def sent(self) -> float:
        assert self._child.stdout is not None
        return float(self._child.stdout.readline())

    def close(self) -> None:
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait()


def latency(run: Callable[[], Any], delay: float, sender: Sender) -> float | None:
    """Seconds from SIGINT, sent after ``delay`` seconds, until the caller has control; None if the run ended first."""
    ended = False
    try:
        sender.send_after(delay)
        run()
        ended = True
        time.sleep(60.0 + delay)  # the signal is on its way
    except KeyboardInterrupt:
        came = time.perf_counter()
    sent = sender.sent()
    return None if ended else came - sent


def _fitted(model: Any) -> list[str]:
    return [] if model is None else [k for k in vars(model) if k.endswith("_") and k[0] != "_"]


def measure(name: str, sender: Sender | None, repeat: int) -> dict[str, Any]:
    """One line of the table."""
    run, model = CASES[name]()
    seconds, longest, gaps = stall(run)
    line: dict[str, Any] = {
        "case [ms]": name,
        "whole run [s]": round(seconds, 2),
        "longest stretch": _ms(longest) if gaps else "< 20",
    }
    if sender is None:
        for gap, where in gaps[:4]:
            print(f"      {_ms(gap):>7} ms  {where}")
        return line
    for key in _fitted(model):
        delattr(model, key)
    for fraction in FRACTIONS:
        found = _best(
            lambda at=fraction: _interrupted(name, run, model, at * seconds, sender), repeat
        )
        line[f"at {fraction:.0%}"] = "-" if found is None else _ms(found)
    limited = hasattr(model, "time_limit")
    line["over time_limit"] = (
        _ms(_best(lambda: _over(model, run, seconds), repeat) or 0.0) if limited else "-"
    )
    return line


def _interrupted(
    name: str, run: Callable[[], Any], model: Any, delay: float, sender: Sender
) -> float | None:
    """Latency of one signal; the estimator must be unfitted after it, and is made so if the run ended first."""
    found = latency(run, delay, sender)
    left = _fitted(model)
    if found is not None and left:
        raise AssertionError(f"{name}: after an interrupt the estimator has {left}")
    for key in left:
        delattr(model, key)
    return found


def _best(once: Callable[[], float | None], repeat: int) -> float | None:
    """Shortest of up to ``repeat`` measurements, of which the first below 0.1 s is the last."""
    times: list[float] = []
    for _ in range(repeat):
        found = once()
        if found is not None:
            times.append(found)
        if found is None or found <= _LONG:
            break
    return min(times, default=None)


def _over(model: Any, run: Callable[[], Any], seconds: float) -> float:
    """Seconds by which a fit overruns its time limit."""
    before, limit = model.time_limit, 0.4 * seconds
    model.set_params(time_limit=limit)
    began = time.perf_counter()
    run()
    took = time.perf_counter() - began
    model.set_params(time_limit=before)
    return max(0.0, took - limit)


def _ms(seconds: float) -> int:
    return math.ceil(1e3 * seconds)


def main() -> None:
    """Measure the cases that were named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("names", nargs="*", help="beginnings of names of cases")
    parser.add_argument(
        "--stalls", action="store_true", help="one run of each, and where it stalls"
    )
    parser.add_argument(
        "--repeat", type=int, default=3, help="signals at each fraction if they take long"
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    missing = [
        name for name in linsep.solvers.SOLVERS if not any(c.startswith(name) for c in CASES)
    ]
    assert not missing, f"no case for the solvers {missing}"
    chosen = [n for n in CASES if not options.names or n.startswith(tuple(options.names))]
    sender = None if options.stalls else Sender()
    lines = []
    for name in chosen:
        try:
            line = measure(name, sender, options.repeat)
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}", flush=True)
            continue
        lines.append(line)
        print(*line.values(), sep="\t", flush=True)
    if sender is not None:
        sender.close()
        if not options.names:
            with RESULTS.open("w", newline="") as file:
                table = csv.DictWriter(file, lines[0].keys())
                table.writeheader()
                table.writerows(lines)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONHASHSEED", "0")
    main()
