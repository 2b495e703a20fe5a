"""Read inputs that were changed at random: python tests/fuzz/fuzz.py TARGET [--count N] [--seed S] [--first K].

Each target (fuzz_targets.py) says what is acceptable. Everything else, a hang of more than ten seconds and a
MemoryError included, is a failure: its input is written to build/fuzz/, and belongs into the corpus once it is mended.
A crash of the process leaves the number of the case in build/fuzz/TARGET-PID.case.
"""

from __future__ import annotations

import argparse
import faulthandler
import mmap
import os
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from mutation import numbered

LIMIT = 10.0  # seconds for a case
MEMORY = 8 << 30  # bytes of addresses
OUT = Path(__file__).resolve().parents[2] / "build" / "fuzz"


class Hang(Exception):
    """A case has taken too long."""


@dataclass
class Outcome:
    """Counts of what happened, the failures with the input that led there, and the longest case in seconds."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, bytes, str]] = field(default_factory=list)
    longest: float = 0.0


def fuzz(
    target: object, count: int, seed: int = 0, first: int = 0, progress: Path | None = None
) -> Outcome:
    """Run cases ``first`` to ``first + count - 1`` of a target."""
    outcome = Outcome()
    note = _Note(progress)

    def hang(_signal: int, _frame: FrameType | None) -> None:
        raise Hang(f"no result after {LIMIT:g} s")

    before = signal.signal(signal.SIGALRM, hang)
    try:
        for number in range(first, first + count):
            note.write(number)
            data = target.make(numbered(seed, number))
            run_case(target, data, number, outcome)
    finally:
        signal.signal(signal.SIGALRM, before)
        faulthandler.cancel_dump_traceback_later()
    return outcome


def run_case(target: object, data: bytes, number: int, outcome: Outcome) -> None:
    """Judge one input."""
    if number % 1000 == 0:  # native code that never returns
        faulthandler.dump_traceback_later(300.0, exit=True)
    begun = time.perf_counter()
    signal.setitimer(signal.ITIMER_REAL, LIMIT)
    try:
        outcome.counts[target.judge(data)] += 1
    except Exception:
        outcome.counts["failed"] += 1
        outcome.failures.append((number, data, traceback.format_exc()))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    outcome.longest = max(outcome.longest, time.perf_counter() - begun)


class _Note:
    """The number of the present case, in a file that outlives a crash."""

    def __init__(self, path: Path | None) -> None:
        self._map = None
        if path is not None:
            path.write_bytes(bytes(8))
            with path.open("r+b") as file:
                self._map = mmap.mmap(file.fileno(), 8)

    def write(self, number: int) -> None:
        if self._map is not None:
            struct.pack_into("<Q", self._map, 0, number)


def main() -> int:
    """Fuzz one target, and say what came of it."""
    from fuzz_targets import TARGETS

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", choices=[*TARGETS])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    options = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    faulthandler.enable()
    begun, used = time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory(prefix="linsep-fuzz-") as folder:
        target = TARGETS[options.target](Path(folder))
        note = OUT / f"{options.target}-{os.getpid()}.case"
        outcome = fuzz(target, options.count, options.seed, options.first, note)
    for number, data, trace in outcome.failures[:20]:
        path = OUT / f"{options.target}-{options.seed}-{number}"
        path.write_bytes(data)
        print(f"case {number} failed, see {path}\n{trace}", file=sys.stderr)
    counts = ", ".join(f"{outcome.counts[kind]:,} {kind}" for kind in sorted(outcome.counts))
    print(
        f"{options.target}: {options.count:,} cases from seed {options.seed}: {counts}; "
        f"{time.perf_counter() - begun:.0f} s, processor {time.process_time() - used:.0f} s, "
        f"longest case {1e3 * outcome.longest:.0f} ms, "
        f"memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB"
    )
    return 1 if outcome.failures else 0


if __name__ == "__main__":
    sys.exit(main())
