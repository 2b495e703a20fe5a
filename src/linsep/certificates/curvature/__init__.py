"""Certificates by the curvature of the objective around the solution, which need no penalty and no dual point.

``certificate`` states the argument and applies it to one column of coefficients; ``softmax`` to the multinomial loss,
and ``cluster`` to rows that stay on their workers. They share the norm in which the Hessian is close to the identity
(``metric``), the rows with rounding errors in numpy (``rows``) or by kernels (``kernel_rows``), and the proof that
columns are exact combinations of others (``dependence``). ``quadratic`` is a cheaper proof for a loss of constant
curvature. Where a loss without a penalty has no curvature, ``repaired_dual`` makes a dual point feasible instead.
"""
