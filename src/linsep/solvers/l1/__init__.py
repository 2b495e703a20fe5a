"""Absolute penalties: working sets, prox-Newton, coordinate descent."""
