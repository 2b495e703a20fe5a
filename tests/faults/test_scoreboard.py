"""Every case of the scoreboard ends as it says; ``make faults`` runs each in a process of its own and counts."""

import pytest
from scoreboard import GROUPS
from scoreboard.harness import GOOD, run
from scoreboard.libraries import Linsep

CASES = [
    pytest.param(case, id=f"{group}-{ascii(case.name)[1:-1]}", marks=[pytest.mark.slow] * case.slow)
    for group, module in GROUPS.items()
    for case in module.cases()
]


@pytest.mark.parametrize("case", CASES)
def test_case(case):
    kind, text = run(case, Linsep())
    assert kind == GOOD, f"{kind}: {text}"
