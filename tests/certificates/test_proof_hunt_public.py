"""A few problems of benchmarks/proof_hunt_public.py: nothing false, nothing untouched rejected."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from linsep import LinearClassifier

HUNT = Path(__file__).parents[2] / "benchmarks" / "proof_hunt_public.py"
spec = importlib.util.spec_from_file_location("proof_hunt_public", HUNT)
hunt = importlib.util.module_from_spec(spec)
sys.modules["proof_hunt_public"] = hunt
spec.loader.exec_module(hunt)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(0, 36, 6))
def test_nothing_false_is_found(seed):
    records = [hunt.examine(number) for number in range(seed, seed + 6)]
    assert [record.get("findings", []) for record in records] == [[]] * 6, hunt.summarise(records)


def test_ties_beside_weights_of_1e_300_are_verified_exactly():
    """Absolute loss without a penalty: rows on the kink, of which only those that count may balance the others."""
    facts, fit = hunt._draw(5109)
    case = hunt.Case(facts)
    fit(case)
    assert hunt._verified(case.model, case.data, exact=True) == "passed"


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared_hinge"])
def test_the_judge_refutes_false_claims(loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    y = np.where(X[:, 0] + rng.normal(size=20) > 0, 1.0, -1.0)
    model = LinearClassifier(loss).fit(X, y)
    problem = hunt.Objective(loss, X, y, np.ones(20), 1.0)
    W, claim = np.append(model.coef_, model.intercept_), model.certificate_
    assert hunt.judge(problem, W, claim) == []
    assert hunt.judge(problem, 1.01 * W, claim)
    assert hunt.judge(problem, W, hunt.replace(claim, dual=1.0001 * claim.primal))
