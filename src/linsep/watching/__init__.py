"""What long computations tell whoever is watching."""

from linsep.watching.bars import progress
from linsep.watching.jobs import Job, advance, current, note, watched

__all__ = ["Job", "advance", "current", "note", "progress", "watched"]
