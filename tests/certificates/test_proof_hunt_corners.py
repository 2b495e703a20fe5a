"""A few problems of benchmarks/proof_hunt_corners.py: nothing false, nothing untouched rejected."""

import importlib.util
import sys
from pathlib import Path

import pytest

from linsep.solvers.group import block_newton

HUNT = Path(__file__).parents[2] / "benchmarks" / "proof_hunt_corners.py"
spec = importlib.util.spec_from_file_location("proof_hunt_corners", HUNT)
hunt = importlib.util.module_from_spec(spec)
sys.modules["proof_hunt_corners"] = hunt
spec.loader.exec_module(hunt)


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore::linsep.errors.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(0, 24, 6))
def test_nothing_false_is_found(seed):
    assert [hunt.examine(number)[1] for number in range(seed, seed + 6)] == [[]] * 6


def test_rounding_of_a_badly_scaled_hessian_does_not_decide_hundreds_of_steps(monkeypatch):
    """Group lasso with factors of 0 on shifted columns: each fit on the working set takes at most a few dozen steps."""
    case = hunt.draw(6897)
    steps, plain = [], block_newton._Part.step

    def step(part, *given):
        steps.append(1)
        return plain(part, *given)

    monkeypatch.setattr(block_newton._Part, "step", step)
    model = case.estimator.fit(case.stored, case.y, case.weight, offset=case.offset)
    assert model.certificate_.certified
    assert len(steps) < 100  # four fits, of 200 steps each before


def test_epochs_that_read_no_rows_do_not_go_on_for_ever():
    """Dual ascent whose rows are nearly all at a bound spends nothing on an epoch: the number of epochs is limited."""
    case = hunt.draw(900901)
    case.estimator.set_params(time_limit=30.0)
    model = case.estimator.fit(case.stored, case.y, case.weight, offset=case.offset)
    assert model.certificate_.certified


def test_the_judge_refutes_false_claims():
    case = hunt.draw(0)
    model = case.estimator.fit(case.stored, case.y, case.weight, offset=case.offset)
    assert not hunt._judged(case, model)
    model.coef_ = model.coef_ + 1.0
    assert any("objective" in finding for finding in hunt._judged(case, model))
