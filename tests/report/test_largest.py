"""The largest of many numbers are those that sorting all of them would give."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tuned import tuning

from linsep.report.largest import largest


@given(st.lists(st.integers(-3, 3), max_size=40), st.integers(0, 9), st.integers(1, 8))
def test_largest_is_the_head_of_a_stable_sort(values, most, together):
    x = np.array(values, dtype=float)
    x[x == -3] = -np.inf
    with tuning(looked_at_together=together):
        found = largest(lambda some: x[some], len(x), most)
    wanted = [at for at in np.argsort(-x, kind="stable")[:most].tolist() if x[at] > -np.inf]
    assert found.tolist() == wanted
