"""Ordinary tables of ordinary sizes end certified, whatever solver is chosen."""

from __future__ import annotations

import ordinary
import pytest

# 522 ended without a certificate before the interior point method took the Huberised hinge; 550 took 20 s before the
# multinomial loss had its whole Hessian for a preconditioner.
FAST, SLOW = range(12), (*range(12, 72), 522, 550)


@pytest.mark.parametrize("seed", [*FAST, *(pytest.param(s, marks=pytest.mark.slow) for s in SLOW)])
def test_certified(seed):
    case = ordinary.draw(seed)
    model = case.model.fit(case.X, case.y)
    assert model.certificate_.certified, case.describe()
