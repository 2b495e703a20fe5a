"""One cell of the race: a data set, a loss, a strength C; linsep against everybody.

linsep is timed at tol 1e-3 and 1e-6 and must certify its answer. A rival is swept over its knob from loose to tight and
credited with its least time among the settings that reach the target: an oracle that no user has. The best rivals
are then timed again in alternation with linsep, and the least times are kept on both sides.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rivals import contestants
from rivals.contest import Contestant

HERE = Path(__file__).resolve().parent
TARGETS = (1e-3, 1e-6)
_LEAST = 0.1  # seconds that every rival is given
_GRACE = 3.0  # seconds for judging a fit
_FINALISTS = 3
_CLOSE = 2.0  # times slower than the fastest


@dataclass(frozen=True)
class Pace:
    """How long the race may take."""

    cap: float  # seconds for one fit of a rival
    factor: float  # a rival this many times slower than linsep is not followed further
    rounds: int  # of the final, in alternation
    at_most: float  # seconds of repetition inside a round
    halvings: int  # of the bracket around the best setting of a rival
    follow: float  # a rival this many times slower than the best rival is not followed further
    repeats: int = 20


QUICK = Pace(cap=1.0, factor=10.0, rounds=3, at_most=0.05, halvings=1, follow=2.0)
FULL = Pace(cap=20.0, factor=100.0, rounds=5, at_most=0.2, halvings=2, follow=1e9)


class Remote:
    """The worker process, started again whenever it had to be ended."""

    def __init__(self, threads: int, clock: str = "wall") -> None:
        self.threads, self.clock = threads, clock
        self.process: subprocess.Popen[str] | None = None
        self.started = 0
        self.data = ""
        self.made = tempfile.TemporaryDirectory(prefix="linsep-bench-")

    def _start(self) -> subprocess.Popen[str]:
        env = dict(os.environ, PYTHONHASHSEED="0", LINSEP_BENCH_MADE=self.made.name)
        for name in ("OMP", "OPENBLAS", "MKL", "NUMBA", "NUMEXPR"):
            env[f"{name}_NUM_THREADS"] = str(self.threads)
        return subprocess.Popen(
            [sys.executable, str(HERE / "worker.py"), str(self.threads), self.clock],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=env,
            text=True,
        )

    def ask(self, job: dict[str, Any], patience: float) -> dict[str, Any]:
        """The answer to a job, or {"capped": True} after that many seconds."""
        if self.process is None:
            self.process = self._start()
            self.started += 1
            if self.data and job["op"] != "load":
                self.ask({"op": "load", "data": self.data}, 600.0)
        process = self.process
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(job) + "\n")
            process.stdin.flush()
            ready, _, _ = select.select([process.stdout], [], [], patience)
            line = process.stdout.readline() if ready else ""
        except BrokenPipeError:
            ready, line = [process.stdout], ""
        if line:
            if job["op"] == "load":
                self.data = job["data"]
            return json.loads(line)
        self.close()
        return {"error": "the process ended"} if ready else {"capped": True}

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@dataclass
class Best:
    """The least time to one target, and how it was had."""

    seconds: float = float("inf")
    bare: float = float("inf")  # without the conversion of the data, where there is one
    cpu: float = float("nan")
    setting: float = float("nan")
    suboptimality: float = float("inf")

    def offer(self, reply: dict[str, Any], setting: float, target: float) -> None:
        if "seconds" not in reply or reply["suboptimality"] > target:
            return
        if reply["seconds"] < self.seconds:
            self.seconds, self.cpu = reply["seconds"], reply["cpu"]
            self.bare = reply["bare"]
            self.setting, self.suboptimality = setting, reply["suboptimality"]


@dataclass
class Runner:
    """What one contestant did in a cell."""

    name: str
    rival: Contestant
    best: dict[float, Best] = field(default_factory=lambda: {t: Best() for t in TARGETS})
    # Setting, s, suboptimality.
    tried: list[tuple[float, float, float]] = field(default_factory=list)
    status: str = ""
    prepared: int = 0  # which start of the worker has its data ready


class Cell:
    def __init__(self, remote: Remote, pace: Pace, data: str, loss: str, C: float) -> None:
        self.remote, self.pace = remote, pace
        self.data, self.loss, self.C = data, loss, C
        self.references: dict[str, dict[str, float]] = {}
        self.ours: dict[float, dict[str, Any]] = {}
        self.runners: list[Runner] = []
        self.cap = pace.cap

    def _ask(self, patience: float, **job: Any) -> dict[str, Any]:
        return self.remote.ask({"loss": self.loss, "C": self.C, **job}, patience)

    def reference(self, intercept: str) -> dict[str, float]:
        if intercept not in self.references:
            found = self._ask(900.0, op="reference", intercept=intercept)
            if "upper" not in found:
                found = {"upper": float("nan"), "lower": float("nan"), **found}
            self.references[intercept] = found
        return self.references[intercept]

    def run_ours(self) -> None:
        bounds = {key: self.reference("free")[key] for key in ("upper", "lower")}
        for tol in TARGETS:
            reply = self._ask(
                900.0,
                op="ours",
                tol=tol,
                repeats=self.pace.repeats,
                at_most=self.pace.at_most,
                **bounds,
            )
            before = self.ours.get(tol)
            if before is None or reply.get("seconds", 1e9) < before.get("seconds", 1e9):
                self.ours[tol] = reply

    def limit(self, runner: Runner) -> float:
        """Seconds after which a fit of this rival can no longer matter."""
        ahead = [
            other.best[TARGETS[-1]].seconds
            for other in self.runners
            if runner.rival.intercept != "free" or other.rival.intercept == "free"
        ]
        return min(self.cap, max(_LEAST, self.pace.follow * min(ahead, default=float("inf"))))

    def run_rival(self, runner: Runner, setting: float, repeats: int = 1) -> dict[str, Any]:
        bounds = self.reference(runner.rival.intercept)
        if runner.prepared != self.remote.started or self.remote.process is None:
            ready = self._ask(300.0, op="prepare", name=runner.name, cap=self.cap)
            if ready:
                return ready
            runner.prepared = self.remote.started
        cap = self.limit(runner)
        reply = self._ask(
            2.0 * cap + _GRACE,
            op="rival",
            name=runner.name,
            setting=setting,
            repeats=repeats,
            at_most=self.pace.at_most,
            cap=cap,
            upper=bounds["upper"],
            lower=bounds["lower"],
        )
        for target, best in runner.best.items():
            best.offer(reply, setting, target)
        if "seconds" in reply:
            runner.tried.append((setting, reply["seconds"], reply["suboptimality"]))
        return reply

    def sweep(self, runner: Runner) -> None:
        """From loose to tight until the last target is reached, the cap is passed, or nothing more is gained."""
        warm = self.run_rival(runner, runner.rival.sweep[0])  # caches and compilers warm up
        if "capped" in warm:
            runner.status = f"not within {self.limit(runner):.3g} s"
            return
        runner.tried.clear()
        for setting in runner.rival.sweep:
            reply = self.run_rival(runner, setting)
            if "error" in reply:
                runner.status = reply["error"]
                return
            if "capped" in reply or reply["bare"] > self.limit(runner):
                runner.status = f"not within {self.limit(runner):.3g} s"
                return
            if reply["suboptimality"] <= TARGETS[-1]:
                runner.status = "reached"
                return
            last = [tried[2] for tried in runner.tried[-4:]]
            if runner.rival.knob == "epochs" and len(last) == 4 and last[-1] > 0.9 * last[0]:
                break  # eight times the work for nothing
        runner.status = f"stays at {min(t[2] for t in runner.tried):.1e}"

    def refine(self, runner: Runner, target: float) -> None:
        """Halve the bracket between the setting that reaches the target and the looser one before it."""
        good = runner.best[target].setting
        looser = [s for s in runner.rival.sweep if (s > good) == (runner.rival.knob != "epochs")]
        looser = [s for s in looser if s != good]
        if not looser:
            return
        bad = looser[-1]
        for _ in range(self.pace.halvings):
            middle = (good * bad) ** 0.5
            if runner.rival.knob == "epochs":
                middle = float(round(middle))
            if middle in (good, bad):
                return
            reply = self.run_rival(runner, middle)
            if reply.get("suboptimality", 1.0) <= target:
                good = middle
            else:
                bad = middle

    def finalists(self, target: float) -> list[Runner]:
        """The fastest and those close behind, and the fastest on linsep's own objective."""
        reached = [r for r in self.runners if r.best[target].seconds < float("inf")]
        reached.sort(key=lambda r: r.best[target].seconds)
        same = [r for r in reached if r.rival.intercept == "free"]
        chosen = [
            r
            for r in reached[:_FINALISTS]
            if r.best[target].seconds <= _CLOSE * reached[0].best[target].seconds
        ]
        return chosen + [r for r in same[:1] if r not in chosen]

    def run(self, wanted: list[str]) -> None:
        self.run_ours()
        slowest = self.ours[TARGETS[-1]].get("seconds", self.pace.cap)
        self.cap = min(self.pace.cap, max(_LEAST, self.pace.factor * slowest))
        entered = contestants(self.remote.threads)
        names = self._ask(60.0, op="entrants").get("names", [])
        for name in names:
            if any(word in name for word in wanted) or not wanted:
                runner = Runner(name, entered[name])
                self.runners.append(runner)
                self.sweep(runner)
        for target in TARGETS:
            for runner in self.finalists(target):
                self.refine(runner, target)
        for _ in range(self.pace.rounds):
            self.run_ours()
            for target in TARGETS:
                for runner in self.finalists(target):
                    self.run_rival(runner, runner.best[target].setting, self.pace.repeats)
