"""The default number of threads, and a parallel loop over pieces of work."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from itertools import count
from pathlib import Path

from linsep.interrupts import Workers, check


def _cgroup_limit() -> float:
    """Return the CPU quota of the container in cores, or infinity."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return float(quota) / float(period)
    except (OSError, ValueError):
        return float("inf")


def in_parallel(work: Callable[[int], bool], pieces: int, n_threads: int | None = None) -> bool:
    """Call ``work(k)`` for all k < pieces in parallel and return whether all were true.

    Each thread takes the next unprocessed piece, which balances the load.
    """
    workers = min(pieces, usable_threads() if n_threads is None else n_threads)
    take = count().__next__

    def walk() -> bool:
        good = True
        while (k := take()) < pieces:
            check()
            good = work(k) and good
        return good

    if workers <= 1:
        return walk()
    with Workers(workers - 1) as pool:
        others = [pool.submit(walk) for _ in range(1, workers)]
        mine = walk()
        return all([task.cancel() or task.result() for task in others]) and mine


@lru_cache(maxsize=1)
def usable_threads() -> int:
    """Return ``default_threads()``, computed once."""
    return default_threads()


def default_threads() -> int:
    """Return the number of cores this process may use, bounded by OMP_NUM_THREADS and by the container's quota.

    joblib sets OMP_NUM_THREADS in its workers, so nested parallelism does not oversubscribe the cores.
    """
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not available on every platform
        cores = os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if asked.isdigit() and int(asked) > 0:
        cores = min(cores, int(asked))
    return max(1, int(min(cores, max(1.0, _cgroup_limit()))))
