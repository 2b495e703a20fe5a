"""A short run of every fuzz target: all members of its corpus, and some hundred changes of them."""

import pytest
from fuzz import Outcome, fuzz, run_case
from fuzz_targets import TARGETS, Libsvm, corpus
from mutation import Mutator, change_json, numbered

COUNTS = {"libsvm": 1500, "csv": 100, "model": 150, "cache": 60, "checkpoint": 30, "config": 200}


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_but_right_answers_and_refusals(name, tmp_path):
    target = TARGETS[name](tmp_path)
    outcome = Outcome()
    for number, member in enumerate(target.members):
        run_case(target, member, number, outcome)
    found = fuzz(target, COUNTS[name])
    failures = outcome.failures + found.failures
    assert not failures, f"{len(failures)} failed, the first of them: {failures[0]}"
    assert found.counts["refused"] and sum(found.counts.values()) == COUNTS[name]
    assert found.counts["accepted"] or found.counts["loaded"]


def test_cases_depend_on_their_number_alone():
    mutate = Mutator(corpus("libsvm"), Libsvm.words)
    cases = [mutate(numbered(3, number)) for number in range(50)]
    assert cases[20:] == [mutate(numbered(3, number)) for number in range(20, 50)]
    assert len(set(cases)) > 40
    assert cases != [mutate(numbered(4, number)) for number in range(50)]


def test_what_is_not_acceptable_is_told():
    class Careless:
        def judge(self, data):
            if data == b"hang":
                raise TimeoutError
            return "accepted"

    outcome = Outcome()
    for number, data in enumerate([b"fine", b"hang"]):
        run_case(Careless(), data, number, outcome)
    assert outcome.counts == {"accepted": 1, "failed": 1}
    assert [(number, data) for number, data, _ in outcome.failures] == [(1, b"hang")]


def test_json_is_changed_somewhere():
    def tree():
        return {"a": [1, 2.5, {"b": "x"}], "c": None}

    found = [change_json(tree(), numbered(0, number)) for number in range(200)]
    assert sum(one != tree() for one in found) > 150
    assert change_json(7, numbered(0, 1)) != 7
