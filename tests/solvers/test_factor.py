"""Factors of symmetric matrices solve for several right-hand sides as for one."""

import numpy as np
import pytest

from linsep.solvers.linalg.factor import NATIVE_ORDER, Factor


@pytest.mark.parametrize("order", [30, NATIVE_ORDER + 1])
@pytest.mark.parametrize("rank", [1.0, 0.5])
def test_columns_are_solved_like_vectors(order, rank):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(order, int(rank * order)))
    H = A @ A.T + 1e-3 * np.eye(order)
    R = rng.normal(size=(order, 3))
    factor = Factor(H, definite=True)
    found = factor.solve_columns(R)
    expected = np.column_stack([factor.solve(np.ascontiguousarray(r)) for r in R.T])
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_allclose(H @ found, R, atol=1e-6)
