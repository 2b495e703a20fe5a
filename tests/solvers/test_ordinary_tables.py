"""Ordinary tables of ordinary sizes end certified, whatever solver is chosen."""

from __future__ import annotations

import ordinary
import pytest

# Seeds that ended without a certificate, or after more than ten seconds, when they were drawn first, and some others.
FAST, SLOW = range(12), range(12, 72)


@pytest.mark.parametrize("seed", [*FAST, *(pytest.param(s, marks=pytest.mark.slow) for s in SLOW)])
def test_certified(seed):
    case = ordinary.draw(seed)
    model = case.model.fit(case.X, case.y)
    assert model.certificate_.certified, case.describe()
