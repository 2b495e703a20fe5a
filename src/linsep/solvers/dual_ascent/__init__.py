"""Dual coordinate ascent with an exact, unpenalised intercept, and what finishes a slow one."""
