"""Progress of long computations: jobs record it, and ``progress`` shows it as a bar or as lines of text."""

from linsep.monitoring.bars import progress
from linsep.monitoring.jobs import Job, advance, current, is_watched, note

__all__ = ["Job", "advance", "current", "is_watched", "note", "progress"]
