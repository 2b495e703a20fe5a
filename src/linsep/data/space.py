"""How much memory is free."""

from __future__ import annotations

import os
from pathlib import Path


def available_memory() -> float:
    """Bytes that this process may still take: of the machine, and of its container."""
    try:
        lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        free = 1024.0 * int(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        try:
            free = float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
        except (AttributeError, ValueError, OSError):
            return float("inf")
    return min(free, _container())


def _container() -> float:
    try:
        limit = float(Path("/sys/fs/cgroup/memory.max").read_text())
        used = float(Path("/sys/fs/cgroup/memory.current").read_text())
    except (OSError, ValueError):  # no container, or no limit ("max")
        return float("inf")
    return max(0.0, limit - used)
