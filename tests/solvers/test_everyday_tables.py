"""Tables as users bring them end certified, at an objective that no constant model has, and are verified."""

from __future__ import annotations

import everyday
import pytest
from sklearn.base import clone

from linsep import verify

# Seeds that failed once: 48 and 159 were refused; 104, 133 and 171 took verify seconds to
# a minute; 145 was rejected; 161 took 12 s; 98, 257, 342 and 356 were not certified; 400 was worse than a constant
# model. 78 and 368, group lasso on texts, ended with gap 1.
FAILED = (48, 78, 98, 104, 133, 145, 159, 161, 171, 257, 342, 356, 368, 400)

# Losses that couple the classes: 189, 248 and 442, Crammer-Singer on columns in their own units, were not certified;
# 2012 and 2373, softmax with L1, ended at a saturated point and where the model was not definite.
FAILED_COUPLED = (189, 248, 442, 2012, 2373)


@pytest.mark.parametrize("seed", (*FAILED, *FAILED_COUPLED))
def test_certified_and_verified(seed):
    case = everyday.draw(seed)
    model = clone(case.model).fit(case.X, case.y, sample_weight=case.weight)
    assert model.certificate_.certified, case.describe()
    if case.peer is None:
        assert verify(model, case.X, case.y, case.weight).certified
        zero = clone(case.model)
        if "feature_groups" in zero.get_params():
            zero.set_params(feature_groups=None, penalty_factor=None)
        zero.fit(0.0 * case.X[:, :1], case.y, sample_weight=case.weight)
        assert model.certificate_.primal <= zero.certificate_.primal * (1.0 + 2e-6)
