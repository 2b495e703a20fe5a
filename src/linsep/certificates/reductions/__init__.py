"""Problems that are solved in place of the user's, and what their certificates prove about the user's problem.

``loss_factor`` replaces c l with C by l with c C, and ``target_units`` divides extreme targets by a power of two: the
reduced problem is equivalent, up to the rounding of c C. ``relaxed`` omits a negligible term, for a lower bound.
"""
