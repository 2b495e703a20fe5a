"""Estimate of the memory that this process may still allocate."""

from __future__ import annotations

import os
from pathlib import Path


def available_memory() -> float:
    """Return the bytes that this process may still allocate: the minimum over machine, container and ``ulimit``."""
    try:
        lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        free = 1024.0 * int(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        try:
            free = float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
        except (AttributeError, ValueError, OSError):
            return float("inf")
    return min(free, _container(), _limits())


def _limits() -> float:
    """Return the bytes left under ``ulimit``, for the address space and the data segment."""
    try:
        import resource  # noqa: PLC0415 - not on every platform

        bounds = {
            "VmSize": resource.getrlimit(resource.RLIMIT_AS)[0],
            "VmData": resource.getrlimit(resource.RLIMIT_DATA)[0],
        }
        if all(bound == resource.RLIM_INFINITY for bound in bounds.values()):
            return float("inf")
        lines = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    except (ImportError, OSError, ValueError):
        return float("inf")
    left = [
        bound - 1024.0 * int(lines[name].split()[0])
        for name, bound in bounds.items()
        if bound != resource.RLIM_INFINITY and name in lines
    ]
    return max(0.0, min(left))


def _container() -> float:
    try:
        limit = float(Path("/sys/fs/cgroup/memory.max").read_text())
        used = float(Path("/sys/fs/cgroup/memory.current").read_text())
    except (OSError, ValueError):  # no container, or no limit ("max")
        return float("inf")
    return max(0.0, limit - used)
