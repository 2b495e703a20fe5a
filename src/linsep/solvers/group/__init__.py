"""Solvers for penalties that differ from feature to feature."""
