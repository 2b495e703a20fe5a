"""What long computations tell whoever is watching."""

from linsep.monitoring.bars import progress
from linsep.monitoring.jobs import Job, advance, current, note, watched

__all__ = ["Job", "advance", "current", "note", "progress", "watched"]
