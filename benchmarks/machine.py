"""The machine, the versions and the moment of a run; and how fast the machine reads memory."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits


def processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def load_average() -> float:
    """Runnable processes over the last minute: above the number of cores, timings are not to be trusted."""
    try:
        return os.getloadavg()[0]
    except OSError:
        return float("nan")


def memory_gib() -> float:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    except (ValueError, OSError):
        return float("nan")


def revision() -> str:
    """The commit the race was run at, "+" if files had changed since."""
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    try:
        done = subprocess.run(
            command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
        )
    except OSError:
        return "unknown"
    return done.stdout.strip() or "unknown"


def facts(threads: int) -> dict[str, str]:
    """What a table of times means nothing without."""
    from linsep import _kernels

    names = ("linsep", "numpy", "scipy")
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": processor(),
        "cores": str(os.cpu_count()),
        "memory": f"{memory_gib():.0f} GiB",
        "instruction set": _kernels.instruction_set(),
        "threads": str(threads),
        "load average at start": f"{load_average():.2f}",
        "revision": revision(),
        "python": platform.python_version(),
        **{name: version(name) for name in names},
    }


def _arrays(X: Any) -> list[np.ndarray]:
    return [X.data, X.indices] if sp.issparse(X) else [X.reshape(-1)]


def _touch(part: np.ndarray) -> float:
    """Read every byte once: a dot product for floats, a sum for indices."""
    return float(part @ part) if part.dtype.kind == "f" else float(part.view(np.int64).sum())


def read_seconds(X: Any, threads: int, repeats: int = 5) -> float:
    """Least time in which up to ``threads`` threads read all of X once: no pass can take less."""
    parts = []
    for array in _arrays(X):
        even = array[: len(array) // 2 * 2]
        size = max(2, len(even) // (8 * threads) // 2 * 2)
        parts += [even[k : k + size] for k in range(0, len(even), size)]
    best = float("inf")
    with threadpool_limits(1), ThreadPoolExecutor(threads) as pool:
        for _ in range(repeats):
            for walk in (map, pool.map):
                began = time.perf_counter()
                sum(walk(_touch, parts))
                best = min(best, time.perf_counter() - began)
    return best
