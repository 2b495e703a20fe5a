"""Every case of the scoreboard ends as it says; ``make faults`` runs each in a process of its own and counts."""

import time
from collections import defaultdict

import pytest
from scoreboard import GROUPS
from scoreboard.harness import GOOD, HANG, Case, run
from scoreboard.libraries import Linsep

MANY = "F16"  # thousands of quick cases: those of one estimator or function are one test


def _cases():
    for group in GROUPS.keys() - {MANY}:
        for case in GROUPS[group].cases():
            name = f"{group}-{ascii(case.name)[1:-1]}"
            yield pytest.param(case, id=name, marks=[pytest.mark.slow] * case.slow)


@pytest.mark.sampled(700)
@pytest.mark.parametrize("case", sorted(_cases(), key=lambda one: one.id))
def test_case(case):
    kind, text = run(case, Linsep())
    assert kind == GOOD, f"{kind}: {text}"


def _families(slow):
    families = defaultdict(list)
    for case in GROUPS[MANY].cases():
        if case.slow == slow:
            families[case.name.partition("(")[0]].append(case)
    return [pytest.param(cases, id=name) for name, cases in families.items()]


def _all_good(cases):
    outcomes = {case.name: run(case, Linsep()) for case in cases}
    assert not {name: outcome for name, outcome in outcomes.items() if outcome[0] != GOOD}


@pytest.mark.parametrize("cases", _families(slow=False))
def test_parameters(cases):
    _all_good(cases)


@pytest.mark.slow
@pytest.mark.parametrize("cases", _families(slow=True))
def test_slow_parameters(cases):
    _all_good(cases)


def test_a_case_without_an_answer_hangs_if_it_does_so_twice(tmp_path):
    def sleeps(_):
        time.sleep(60.0)

    def sleeps_once(_):
        begun = tmp_path / "begun"
        if not begun.exists():
            begun.touch()
            time.sleep(60.0)

    assert run(Case("sleeps", sleeps, apart=True, limit=0.5), Linsep())[0] == HANG
    assert run(Case("sleeps once", sleeps_once, apart=True, limit=5.0), Linsep())[0] == GOOD
