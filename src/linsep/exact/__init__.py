"""Exact arithmetic: dyadic numbers and rationals."""
