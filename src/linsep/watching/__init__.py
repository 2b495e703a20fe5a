"""What long computations tell whoever is watching."""

from linsep.watching.bars import progress
from linsep.watching.jobs import Job, advance, current, note

__all__ = ["Job", "advance", "current", "note", "progress"]
