"""Linear algebra that several methods share."""
