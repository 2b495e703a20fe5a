"""Saving and loading of models in files that contain data and checksums, but no code."""

from linsep.model_files.container import is_model_file
from linsep.model_files.models import LARGEST_DIGEST, digest, from_bytes, load, save, to_bytes

__all__ = ["LARGEST_DIGEST", "digest", "from_bytes", "is_model_file", "load", "save", "to_bytes"]
