"""Progress of long computations, for bars, notebooks and logs."""

from linsep.monitoring.bars import progress
from linsep.monitoring.jobs import Job, advance, current, is_watched, note

__all__ = ["Job", "advance", "current", "is_watched", "note", "progress"]
