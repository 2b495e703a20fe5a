"""Centred rows and their inner products are those of numpy, and can be interrupted."""

import numpy as np
import pytest
import scipy.sparse as sp

from linsep.interrupts import Cancelled, checking
from linsep.solvers.linalg.row_products import centred_rows, row_products

RNG = np.random.default_rng(0)
X = RNG.integers(-9, 9, size=(7, 5))
CENTRE = RNG.normal(size=5)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int8])
def test_dense_rows(kind):
    rows = centred_rows(X.astype(kind), CENTRE)
    assert rows.dtype == np.float64 and np.array_equal(rows, X - CENTRE)
    np.testing.assert_allclose(row_products(rows), (X - CENTRE) @ (X - CENTRE).T, rtol=1e-14)


def test_sparse_rows_stay_sparse():
    rows = centred_rows(sp.csr_matrix(X, dtype=np.float32), np.zeros(5))
    assert sp.issparse(rows) and rows.dtype == np.float64
    assert np.array_equal(row_products(rows), X @ X.T)


def test_an_interrupt_ends_the_copy():
    def interrupt():
        raise Cancelled

    with checking(interrupt), pytest.raises(Cancelled):
        centred_rows(X, CENTRE)
