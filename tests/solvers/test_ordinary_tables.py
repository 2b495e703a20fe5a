"""Ordinary tables of ordinary sizes end certified, whatever solver is chosen."""

from __future__ import annotations

import ordinary
import pytest

# The last one ended without a certificate before the interior point method took the Huberised hinge.
FAST, SLOW = range(12), (*range(12, 72), 522)


@pytest.mark.parametrize("seed", [*FAST, *(pytest.param(s, marks=pytest.mark.slow) for s in SLOW)])
def test_certified(seed):
    case = ordinary.draw(seed)
    model = case.model.fit(case.X, case.y)
    assert model.certificate_.certified, case.describe()
