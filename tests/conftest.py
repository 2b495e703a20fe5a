"""Settings shared by all tests."""

import os

from hypothesis import settings

os.environ.setdefault("MPLBACKEND", "Agg")

# Timing is not a law, and a failure must be found again by whoever runs the suite next.
settings.register_profile("linsep", deadline=None, derandomize=True, max_examples=50, database=None)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "linsep"))
