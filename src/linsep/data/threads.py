"""How many threads, and how they share the work."""

from __future__ import annotations

import os
from pathlib import Path


def _cgroup_limit() -> float:
    """CPU quota of the container, if there is one."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return float(quota) / float(period)
    except (OSError, ValueError):
        return float("inf")


def default_threads() -> int:
    """Cores this process may use, bounded by OMP_NUM_THREADS and by the container's quota.

    joblib sets OMP_NUM_THREADS in its workers, so nested parallelism does not multiply.
    """
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every platform
        cores = os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if asked.isdigit() and int(asked) > 0:
        cores = min(cores, int(asked))
    return max(1, int(min(cores, max(1.0, _cgroup_limit()))))
