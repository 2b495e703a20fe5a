"""Dual coordinate ascent with an exact, unpenalised intercept."""
