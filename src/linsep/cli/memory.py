"""Memory that was freed goes back to the system, so that a large table counts once and not what was made of it before.

The allocator of glibc keeps freed arrays up to 32 MB, and up to 64 MB of them, for later use, in one heap for each
thread. Arrow's own allocator keeps what a file was parsed in.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from typing import Any

_PAGES_OF_THEIR_OWN = 1 << 18  # bytes from which on an array goes back as soon as it is freed
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8


def _allocator(name: str) -> Any:
    """A function of glibc, or one that does nothing elsewhere."""
    found = getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
    return found or (lambda *arguments: 0)


def return_at_once() -> None:
    """Return large arrays to the system when they are freed, and let all threads share one heap."""
    _allocator("mallopt")(_M_MMAP_THRESHOLD, _PAGES_OF_THEIR_OWN)
    _allocator("mallopt")(_M_ARENA_MAX, 1)
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # read when pyarrow is imported


def give_back() -> None:
    """Collect the cycles that a fit leaves behind, and return free memory to the system."""
    gc.collect()
    _allocator("malloc_trim")(0)
