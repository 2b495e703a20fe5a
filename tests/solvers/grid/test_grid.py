"""Many models at once: the sums of the grid kernels, the steps, the certificates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from catalogue import KINDS, NATIVE, SMOOTH, dense, naming, plain, weighted

from linsep import losses
from linsep.certificates import Part, closing_sums_numpy, recheck_part
from linsep.data import Memory
from linsep.errors import NonFinite
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.solution import Linearised, Stop
from linsep.solvers.grid import kinks as grid_kinks
from linsep.solvers.grid import newton as grid
from linsep.solvers.grid import pilot as grid_pilot
from linsep.solvers.grid import walk as grid_walk
from linsep.solvers.run import linearised

STORED = ["dense64", "dense32", "csr64-int32", "csr32-int64"]
CS = [1e-3, 0.1, 1.0, 100.0]


def parted(n, parts=3, seed=0, some_without=True):
    part = np.random.default_rng(seed).integers(-1 if some_without else 0, parts, n)
    part[:parts] = np.arange(parts)
    return part.astype(np.int64)


def grid_of(sample, loss, part, Cs=CS, C=1.0, **options):
    return grid.Grid(Problem(loss, ElasticNet(C), sample.memory(**options)), part, Cs)


#: The grid engines need a compiled loss; others are fitted one by one.
COMPILED = [loss for loss in SMOOTH if loss.native]


@pytest.mark.parametrize("kind", STORED)
@pytest.mark.parametrize("loss", NATIVE, ids=naming)
def test_the_sums_of_each_part_are_those_of_its_rows(loss, kind):
    sample = weighted().in_storage(kind)
    if loss.regression:
        sample = replace(sample, offset=np.linspace(-1.0, 1.0, len(sample.sign)))
    part = parted(len(sample.sign))
    theta = np.linspace(-0.4, 0.5, sample.X.shape[1] + 1)
    base = grid_of(sample, loss, part).base_at(theta)
    X = dense(sample.X)
    A = np.column_stack([X, np.ones(len(X))])
    offset = 0.0 if sample.offset is None else sample.offset
    m = sample.sign * (A @ theta) + offset
    mu = grid_of(sample, loss, part).mu
    centred = np.column_stack([X - mu, np.ones(len(X))])
    for f in range(-1, 3):
        s = sample.weight * (part == f)
        assert np.isclose(base.value[f + 1], s @ loss.value(m), rtol=1e-11)
        g = A.T @ (s * sample.sign * loss.slope(m))
        assert np.allclose(base.gradient[f + 1], g, rtol=1e-11, atol=1e-11)
        H = centred.T @ ((s * loss.curvature(m))[:, None] * centred)
        assert np.allclose(base.hessian[f + 1], H, rtol=1e-10, atol=1e-10)
    order = X.shape[1] + 1
    nothing = np.zeros((order, order))
    again = grid_pilot.predict_base(grid_of(sample, loss, part), base, theta, nothing, nothing)
    assert np.allclose(again.value, base.value, rtol=1e-12)
    assert np.allclose(again.gradient, base.gradient, rtol=1e-11, atol=1e-11)
    # The last column is new.
    assert np.allclose(again.hessian, base.hessian, rtol=1e-10, atol=1e-10)


@pytest.mark.sampled(28)
@pytest.mark.parametrize("stepping", [True, False], ids=["steps", "no-steps"])
@pytest.mark.parametrize("kind", STORED)
@pytest.mark.parametrize("loss", NATIVE, ids=naming)
def test_the_closing_sums_of_all_models_are_those_of_each(loss, kind, instructions, stepping):
    sample = weighted().in_storage(kind)
    if loss.regression:
        sample = replace(sample, offset=np.linspace(-1.0, 1.0, len(sample.sign)))
    n, d = sample.X.shape
    part = parted(n)
    rng = np.random.default_rng(3)
    bases = [0.3 * rng.normal(size=d + 1) for _ in range(2)]
    size = 0.05 if stepping else 0.0
    plans = [
        grid.Plan(c, f, bases[c % 2], size * rng.normal(size=d + 1))
        for c in range(4)
        for f in range(-1, 3)
    ]
    held = np.full((n, 4), np.nan)
    models = grid_of(sample, loss, part).close(plans, 1e-6, held)
    for plan, model in zip(plans, models, strict=True):
        outside = part != plan.part if plan.part >= 0 else np.ones(n, dtype=bool)
        W = (plan.base + plan.step).reshape(-1, 1)
        expected = closing_sums_numpy(
            loss,
            sample.X,
            sample.sign,
            sample.offset,
            sample.weight * outside,
            W,
            linearised(plan.base, plan.step),
        )
        head = model.sums[:5]
        wanted = [
            expected.loss,
            expected.conj_plus,
            expected.conj_minus,
            expected.mass_plus,
            expected.mass_minus,
        ]
        assert np.allclose(head, wanted, rtol=1e-10, atol=1e-12)
        assert model.sums[5] >= expected.magnitude * (1 - 1e-12)  # a bound on the exact one
        # at most what the series near a base add up beside the terms themselves
        assert (1 - 1e-12) * expected.absolute <= model.sums[6] <= 5 * expected.absolute
        assert np.allclose(model.sums[8 : 8 + d], expected.v_plus, rtol=1e-9, atol=1e-11)
        assert np.allclose(model.sums[8 + d :], expected.v_minus, rtol=1e-9, atol=1e-11)
        if plan.part >= 0:
            z = dense(sample.X)[~outside] @ W[:-1, 0] + W[-1, 0]
            assert np.allclose(held[~outside, plan.c], z, rtol=1e-11, atol=1e-12)
            assert model.errors == ((z >= 0) != (sample.sign[~outside] > 0)).sum()
    assert np.isnan(held[part == -1]).all()


def test_the_series_near_a_base_hold_for_margins_of_any_size(instructions):
    loss = losses.get("logistic")
    sample = plain(n=200, d=3, seed=1)
    part = parted(200)
    for size in (1e-3, 1.0, 30.0, 200.0):
        base = size * np.array([1.0, -0.7, 0.4, 0.2])
        step = np.array([0.02, 0.01, -0.03, 0.004])  # margins move by less than 1/8
        (model,) = grid_of(sample, loss, part).close([grid.Plan(0, 1, base, step)], 1e-6, None)
        W = (base + step).reshape(-1, 1)
        outside = (part != 1).astype(float)
        wanted = closing_sums_numpy(
            loss, sample.X, sample.sign, None, outside, W, linearised(base, step)
        )
        assert np.isclose(model.sums[0], wanted.loss, rtol=1e-13)
        # terms of the conjugate are differences of numbers as large as the losses
        assert np.allclose(
            model.sums[1:3], [wanted.conj_plus, wanted.conj_minus], atol=1e-14 * wanted.absolute
        )
        assert np.allclose(model.sums[3:5], [wanted.mass_plus, wanted.mass_minus], rtol=1e-12)


def test_single_precision_is_used_where_it_cannot_be_seen():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(4000, 15))
    sign = np.where(X[:, 0] + rng.normal(size=4000) > 0, 1.0, -1.0)
    part = parted(4000, 3, some_without=False)
    problem = Problem(losses.get("logistic"), ElasticNet(1.0), Memory(X, sign))
    models = grid.Grid(problem, part, [1.0])
    theta = 0.1 * rng.normal(size=16)
    rough, exact = models.base_at(theta), models.base_at(theta, exact=True)
    assert rough.single and not exact.single
    scale = np.sqrt(np.einsum("pii->pi", exact.hessian))[1:]
    error = np.abs(rough.hessian - exact.hessian)[1:] / (scale[:, :, None] * scale[:, None, :])
    assert 0.0 < error.max() <= 1e-6
    move = models.step(rough, 1.0, 0)
    assert not models.is_blurred(rough, 1.0, move, 1e-6)
    assert models.is_blurred(rough, 1e12, move, 1e-6)
    assert not models.is_blurred(exact, 1e12, move, 1e-6)


def test_numbers_beyond_single_precision_are_summed_in_double():
    rng = np.random.default_rng(2)
    X = 1e25 * rng.normal(size=(400, 13))
    sign = np.where(rng.normal(size=400) > 0, 1.0, -1.0)
    problem = Problem(losses.get("logistic"), ElasticNet(1.0), Memory(X, sign))
    base = grid.Grid(problem, parted(400), [1.0]).base_at(np.zeros(14))
    assert not base.single and np.isfinite(base.hessian).all()


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", COMPILED, ids=naming)
def test_every_model_is_proven_by_code_that_shares_nothing_with_the_grid(loss, fit_intercept):
    sample = plain(n=400, d=3, seed=5)
    if loss.regression and not loss.classification:
        target = sample.X @ np.array([1.0, 2.0, -1.0]) + np.random.default_rng(0).normal(size=400)
        sample = replace(sample, sign=np.ones(400), offset=1.0 - target)
    part = parted(400, 4, some_without=False)
    problem = Problem(loss, ElasticNet(1.0), sample.memory(), fit_intercept)
    found = grid_walk.solve(grid.Grid(problem, part, CS), Stop(1e-6))
    assert len(found) == 16
    closed = [model for model in found.values() if model.closed]
    # bent losses may leave some for a fit of their own
    assert len(closed) == 16 or (len(closed) >= 8 and loss.name != "logistic")
    for model in closed:
        outside = (part != model.part).astype(float)
        proof = recheck_part(
            Part(
                loss,
                ElasticNet(CS[model.c]),
                fit_intercept,
                sample.X,
                sample.sign,
                sample.offset,
                outside,
                None,
                model.theta.reshape(-1, 1),
                model.dual,
                1e-6,
            )
        )
        assert proof.certified, proof


def test_the_newton_step_of_a_model_solves_its_own_system():
    sample = plain(n=200, d=3)
    part = parted(200, 3)
    models = grid_of(sample, losses.get("logistic"), part)
    base = models.base_at(np.array([0.2, -0.1, 0.3, 0.1]))
    C, f = 0.3, 1
    delta, half, _, value = models.step(base, C, f)
    outside = part != f
    A = np.column_stack([sample.X, np.ones(200)])[outside]
    m = sample.sign[outside] * (A @ base.theta)
    loss = losses.get("logistic")
    ridge = np.diag([1 / C, 1 / C, 1 / C, 0.0])
    H = A.T @ (loss.curvature(m)[:, None] * A) + ridge
    g = A.T @ (sample.sign[outside] * loss.slope(m)) + ridge @ base.theta
    assert np.allclose(H @ delta, -g, rtol=1e-9, atol=1e-9)
    assert np.isclose(half, -0.5 * g @ delta)
    assert np.isclose(value, loss.value(m).sum() + 0.5 * base.theta @ ridge @ base.theta)


BENT = [loss for loss in COMPILED if grid_kinks.kinks_of(loss)]


def test_the_error_of_a_foretold_hessian_is_foretold():
    rng = np.random.default_rng(2)
    n, d = 40_000, 8
    X = rng.normal(size=(n, d)) + 1.0
    y = np.where(X @ rng.normal(size=d) + 2 * rng.logistic(size=n) > 0.0, 1.0, -1.0)
    data = Memory(X, y, n_threads=1)
    problem = Problem(losses.get("logistic"), ElasticNet(1.0), data)
    models = grid.Grid(problem, np.arange(n) % 5, [1e-4, 1.0])
    ratios = []
    for seed in range(8):
        pilot = grid_pilot.Pilot(problem, seed)
        known = pilot.first_base(models, 1.0, 1e-4)
        found = pilot.next_base(models, known, 1e-4, 1e-4, 1.0)
        assert known.noise is None and found.noise is not None
        true = models.base_at(found.theta, exact=True)
        assert np.allclose(found.gradient, true.gradient, rtol=1e-10, atol=1e-9)
        assert models.step(true, 1e-4, -1).half < 1e-4 * models.step(known, 1e-4, -1).half
        assert np.allclose(found.hessian[:, -1], true.hessian[:, -1], rtol=1e-9, atol=1e-9)
        step = models.step(true, 1e-4, 2).delta
        e = np.append(step[:-1], step[-1] + models.mu @ step[:-1])
        error = (found.hessian - true.hessian).sum(0) @ e
        r = error[:-1] + models.mu * error[-1]
        ratios.append(r @ r / (e @ found.noise @ e))
        assert grid_pilot.noisy(models, found, 1e-4, models.step(found, 1e-4, 2), 1e-12)
    assert 0.2 < np.mean(ratios) < 2.0  # an expectation, over eight draws of the pilot


@pytest.mark.parametrize("name", ["exponential", "logistic", "squared_hinge"])
def test_a_pilot_that_goes_too_far_is_not_followed(name):
    rng = np.random.default_rng(4)
    X = rng.standard_t(1.6, size=(4000, 3))
    sign = np.where(X @ [1.0, -1.0, 0.5] + 3 * rng.standard_t(2, size=4000) > 0.0, 1.0, -1.0)
    problem = Problem(losses.get(name), ElasticNet(1.0), Memory(X, sign, n_threads=1))
    found = grid_walk.solve(
        grid.Grid(problem, np.arange(4000) % 3, [1e-8, 1e-3, 100.0]), Stop(1e-6)
    )
    assert len(found) == 9
    assert sum(model.closed for model in found.values()) >= 6


def tall_bent(loss, n=6000, d=5, seed=0):
    """Many rows with weights and an uneven column, posed for a grid; and its parts."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.array([1.0, 1.0, 30.0, 0.1, 1.0]) + 2.0
    z = X @ np.array([0.5, -0.5, 0.03, 5.0, 0.2])
    z += rng.normal(size=n) - z.mean()
    weight = rng.choice([0.5, 1.0, 2.0], n)
    if loss.classification:
        data = Memory(X, np.where(z > 0, 1.0, -1.0), None, weight)
    else:
        data = Memory(X, np.ones(n), 1.0 - z, weight)
    return Problem(loss, ElasticNet(1.0), data), parted(n, 3, some_without=False)


@pytest.mark.parametrize("loss", BENT, ids=naming)
def test_a_model_made_of_parabolas_is_at_its_optimum_from_one_base(loss):
    problem, part = tall_bent(loss)
    data = problem.data
    found = grid_walk.solve(grid.Grid(problem, part, CS), Stop(1e-9))
    assert all(model.closed for model in found.values())
    for (c, f), model in found.items():
        outside = data.weight * (part != f)
        own = Problem(loss, ElasticNet(CS[c]), Memory(data.X, data.sign, data.offset, outside))
        value, g = own.value_gradient(model.theta)
        assert 0.5 * CS[c] * g[:-1] @ g[:-1] <= 1e-9 * value
        assert abs(g[-1]) <= 1e-7 * value


def test_rows_that_cross_a_kink_are_all_in_the_band():
    loss = losses.get("squared_hinge")
    problem, part = tall_bent(loss)
    models = grid.Grid(problem, part, [1.0])
    base = models.base_at(0.9 * grid_walk.solve(models, Stop(1e-6))[0, 0].theta, exact=True)
    plans = [grid.Plan(0, f, base.theta, models.step(base, 1.0, f).delta) for f in range(3)]
    for plan, end in zip(plans, grid_kinks.exact_optima(models, base, plans, 1e-9), strict=True):
        outside = problem.data.weight * (part != plan.part)
        own = Problem(
            loss, ElasticNet(1.0), Memory(problem.data.X, problem.data.sign, None, outside)
        )
        assert not end.step.any()
        near, far = (np.abs(own.value_gradient(t)[1]).max() for t in (end.base, base.theta))
        assert near <= 1e-6 * far
        first = np.abs(own.value_gradient(base.theta + plan.step)[1]).max()
        assert near < 1e-3 * first  # one step from the base is not the optimum


def test_no_row_near_a_kink_or_too_many():
    loss = losses.get("squared_hinge")
    problem, part = tall_bent(loss)
    models = grid.Grid(problem, part, [1e-12])
    start = models.base_at(np.zeros(6), exact=True)
    (end,) = grid_kinks.exact_optima(
        models, start, [grid.Plan(0, 0, start.theta, np.zeros(6))], 1e-6
    )
    assert np.array_equal(end.base, start.theta)
    far = grid.Plan(0, 0, start.theta, np.array([0.0, 0.0, 0.0, 0.0, 0.0, 5.0]))
    assert grid_kinks.exact_optima(models, start, [far], 1e-6) is None


@pytest.mark.parametrize("name", ["logistic", "squared_hinge"])
def test_any_number_of_threads_gives_the_same_bits(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 20))
    sign = np.where(X @ rng.normal(size=20) + rng.normal(size=60_000) > 0, 1.0, -1.0)
    part = parted(60_000, 5, some_without=False)
    answers = []
    for threads in (1, 2, 5):
        data = Memory(X, sign, n_threads=threads)
        held = np.zeros((60_000, 2))
        problem = Problem(losses.get(name), ElasticNet(1.0), data)
        found = grid_walk.solve(grid.Grid(problem, part, [0.01, 1.0]), Stop(1e-6), held)
        data.close()
        answers.append((held, *(found[key].theta for key in sorted(found))))
    for other in answers[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(answers[0], other, strict=True))


def test_no_parts_is_the_path_of_all_rows():
    sample = plain(n=300, d=3)
    nowhere = np.full(300, -1, dtype=np.int64)
    found = grid_walk.solve(grid_of(sample, losses.get("logistic"), nowhere), Stop(1e-6))
    assert sorted(found) == [(c, -1) for c in range(4)]
    for (c, _), model in found.items():
        assert model.closed and isinstance(model.dual, Linearised)
        problem = sample.problem(losses.get("logistic"), CS[c])
        _, g = problem.value_gradient(model.theta)
        assert np.abs(g).max() <= 1e-2 / CS[c]


def test_a_limit_ends_the_grid_early_with_what_is_closed():
    sample = plain(n=300, d=3)
    found = grid_walk.solve(
        grid_of(sample, losses.get("logistic"), parted(300)), Stop(max_passes=3.0)
    )
    assert found == {}


def test_numbers_that_are_not_finite_are_refused():
    sample = plain(n=100, d=3)
    X = sample.X.copy()
    X[17, 1] = np.inf
    with pytest.raises(NonFinite, match="not finite"):
        grid_walk.solve(
            grid_of(replace(sample, X=X), losses.get("logistic"), parted(100)), Stop(1e-6)
        )


def test_every_native_storage_is_covered():
    assert set(STORED) <= set(KINDS)
