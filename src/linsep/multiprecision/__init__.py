"""Solve small problems in 70-digit decimal arithmetic, for any convex loss and penalty and any conditioning.

If columns have very different scales, large offsets or nearly equal directions, float64 has too few digits for any
solver. Tables of a few hundred rows are solved here by a primal-dual interior point method (``interior``) on the terms
of the objective (``terms``, ``row_terms``, ``class_terms``), and the solution is rounded to the float64 point with the
smallest objective, which is often not the nearest one (``rounding``).
"""
