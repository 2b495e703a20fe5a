"""Memory that was freed goes back to the system, so that a large table counts once and not what was made of it before.

The allocator of glibc keeps freed arrays up to 32 MB, and up to 64 MB of them, for later use.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from typing import Any

_PAGES_OF_THEIR_OWN = 1 << 20  # bytes from which on an array goes back as soon as it is freed
_M_MMAP_THRESHOLD = -3


def _allocator(name: str) -> Any:
    """A function of glibc, or one that does nothing elsewhere."""
    found = getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
    return found or (lambda *arguments: 0)


def return_at_once() -> None:
    """From now on large arrays go back when they are freed."""
    _allocator("mallopt")(_M_MMAP_THRESHOLD, _PAGES_OF_THEIR_OWN)


def give_back() -> None:
    """What is free goes back now; a fit leaves cycles behind, which are freed first."""
    gc.collect()
    _allocator("malloc_trim")(0)
