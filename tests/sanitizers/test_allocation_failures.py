"""Without memory a native call is a MemoryError, or does with less: no crash, no leak, and the next call is right.

Every allocation of every case fails once, one after the other (kernels/bindings/allocation_faults.cpp).
"""

import gc

import numpy as np
import pytest
from native_calls import CASES, gram

from linsep import _kernels as K  # noqa: N812

MOST = 400  # allocations of a case that fail: of longer ones, this many from first to last


def live():
    """Allocations of the kernels that have not been freed."""
    gc.collect()
    return K.allocations()[1]


@pytest.mark.parametrize("name", CASES)
def test_every_allocation_may_fail(name):
    call = CASES[name]
    expected = call()
    before = live()
    made = K.allocations()[0]
    np.testing.assert_array_equal(call(), expected)
    count = K.allocations()[0] - made
    assert live() == before
    refused = 0
    for after in sorted({round(k * (count - 1) / MOST) for k in range(MOST + 1)}) if count else ():
        K.fail_allocation(after)
        try:
            found = call()
        except MemoryError:
            refused += 1
        else:  # the kernel does with less: without a last step, say, after which the gap is within tol all the same
            np.testing.assert_allclose(found, expected, rtol=1e-2, atol=1e-6)
        finally:
            K.fail_allocation(-1)
        assert live() <= before, f"allocation {after} of {count} failed, and memory was lost"
    np.testing.assert_array_equal(call(), expected)
    assert refused or count == 0 or name == "csr_repeats"


def test_failures_are_told_with_the_memory_that_was_asked_for():
    K.fail_allocation(0)
    with pytest.raises(MemoryError, match=r"Unable to allocate .* GiB of working memory"):
        gram()
    K.fail_allocation(-1)
