"""The native non-negative least squares, against its optimality conditions and scipy's."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from catalogue import STORAGES

from linsep import _kernels


def run(A, f, start=None):
    x = np.zeros(len(A)) if start is None else start.copy()
    r = np.zeros(A.shape[1])
    status, steps = _kernels.nnls(np.ascontiguousarray(A), f, 1e-14, 10_000, x, r)
    return status, steps, x, r


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (3, 5), (200, 7), (40, 40), (60, 13)])
def test_optimality_conditions(instructions, shape):
    rng = np.random.default_rng(0)
    for rank in (shape[1], max(1, shape[1] // 2)):
        for _ in range(10):
            A = rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1]))
            f = rng.normal(size=shape[1])
            status, _, x, r = run(A, f)
            size = np.abs(A).max() * np.linalg.norm(f)
            assert status in (0, 1) and (x >= 0).all()
            np.testing.assert_allclose(f - x @ A, r, atol=1e-11 * size)
            assert (A @ r).max() <= 1e-10 * size  # no weight wants to grow
            np.testing.assert_allclose((A @ r)[x > 0], 0, atol=1e-10 * size)
            _, best = scipy.optimize.nnls(A.T, f)
            assert np.linalg.norm(r) == pytest.approx(best, rel=1e-9, abs=1e-11 * size)


def test_a_start_is_taken_up():
    rng = np.random.default_rng(1)
    A, f = rng.normal(size=(100, 9)), rng.normal(size=9)
    _, steps, x, r = run(A, f)
    _, again, same, rest = run(A, f, start=x)
    assert again == 0 < steps
    np.testing.assert_allclose(same, x, atol=1e-12)
    _, _, _, rest = run(A, f, start=rng.random(100))
    assert np.linalg.norm(rest) == pytest.approx(np.linalg.norm(r), rel=1e-9, abs=1e-13)


def test_duplicates_and_zero_rows():
    A = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [-1.0, 1.0]])
    status, _, x, r = run(A, np.array([0.0, 1.0]))
    assert status == 1 and np.abs(r).max() < 1e-14
    np.testing.assert_allclose(x @ A, [0.0, 1.0], atol=1e-14)


def test_limits_and_contract():
    rng = np.random.default_rng(2)
    A, f = rng.normal(size=(50, 9)), rng.normal(size=9)
    x, r = np.zeros(50), np.zeros(9)
    assert _kernels.nnls(A, f, 0.0, 2, x, r) == (2, 2)
    for wrong in ((A, f[:5], x, r), (A, f, x[:5], r), (A, f, x, r[:5])):
        with pytest.raises(ValueError, match="an entry per"):
            _kernels.nnls(wrong[0], wrong[1], 0.0, 2, wrong[2], wrong[3])


@pytest.mark.parametrize("storage", STORAGES)
def test_reaches(instructions, storage):
    rng = np.random.default_rng(3)
    X = STORAGES[storage](rng.normal(size=(30, 11)) * (rng.random((30, 11)) < 0.6))
    theta, z = rng.normal(size=12), np.empty(20)
    rows = _kernels.Rows(X.data, X.indices, X.indptr, 11) if sp.issparse(X) else _kernels.Rows(X)
    _kernels.reaches(rows, 5, 25, theta, z)
    dense = np.abs(X.toarray() if sp.issparse(X) else X).astype(float)
    np.testing.assert_allclose(z, (dense @ np.abs(theta[:-1]) + abs(theta[-1]))[5:25], rtol=1e-13)
