"""Models in files: data, checksums, and no code."""

from linsep.model_files.models import digest, from_bytes, load, save, to_bytes

__all__ = ["digest", "from_bytes", "load", "save", "to_bytes"]
