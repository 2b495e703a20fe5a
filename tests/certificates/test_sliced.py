"""Products in doubled precision, against rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from linsep.exact.sliced import scaled_product, transpose


@pytest.mark.sampled(30)
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("seed", range(60))
def test_products_are_within_their_error_bounds(seed, storage):
    """Columns of very different size that cancel: the error is that of twice the working precision."""
    rng = np.random.default_rng(seed)
    n, d = (int(k) for k in rng.integers(1, 40, size=2))
    units = 10.0 ** rng.uniform(-12, 12, size=d)
    A, y = rng.normal(size=(n, d)) * units, rng.normal(size=d) / units
    A[:, : d // 2] *= rng.random((n, d // 2)) < 0.5
    # To the last bit of a float the row is orthogonal to y.
    A[:, -1] = -(A[:, :-1] @ y[:-1]) / y[-1]
    rows = storage(A)
    for found, matrix, vector in (
        (scaled_product(rows, y[:, None]).column(0), A, y),
        (scaled_product(transpose(rows), A[:, :1]).column(0), A.T, A[:, 0]),
    ):
        for hi, lo, error, row in zip(found.hi, found.lo, found.error, matrix, strict=True):
            terms = [
                Fraction(a) * Fraction(b)
                for a, b in zip(row.tolist(), vector.tolist(), strict=True)
            ]
            size = float(sum(map(abs, terms)))
            assert abs(Fraction(hi) + Fraction(lo) - sum(terms)) <= Fraction(error)
            assert error <= 2.0**-70 * size + 1e-300
            assert abs(lo) <= 2.0**-52 * abs(hi)


def test_what_overflows_is_not_a_number():
    found = scaled_product(np.array([[1e300, 1.0]]), np.array([[1e300], [1.0]]))
    assert not np.isfinite(found.hi[0, 0])
