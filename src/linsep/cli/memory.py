"""Return freed memory to the operating system, so that a large table occupies memory only once.

The allocator of glibc keeps freed arrays of up to 32 MB, up to 64 MB in total, for later use, in one heap per thread.
Arrow's own allocator keeps the memory in which a file was parsed.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from typing import Any

_PAGES_OF_THEIR_OWN = 1 << 18  # bytes from which an array is returned as soon as it is freed
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8


def _allocator(name: str) -> Any:
    """Return a function of glibc, or on other systems one that does nothing."""
    found = getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
    return found or (lambda *arguments: 0)


def return_at_once() -> None:
    """Return large arrays to the system when they are freed, and let all threads share one heap."""
    _allocator("mallopt")(_M_MMAP_THRESHOLD, _PAGES_OF_THEIR_OWN)
    _allocator("mallopt")(_M_ARENA_MAX, 1)
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # read when pyarrow is imported


def release_memory() -> None:
    """Collect the cycles that a fit leaves behind, and return free memory to the system."""
    gc.collect()
    _allocator("malloc_trim")(0)
