"""Exact and multiple-precision arithmetic: dyadic numbers, rationals, decimals, and matrix products in slices."""
