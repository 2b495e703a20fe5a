"""The objective: value, derivatives and closing sums against numpy and against each other."""

import numpy as np
import pytest
from catalogue import (
    CONVEX,
    MAKERS,
    NATIVE,
    SMOOTH,
    Sample,
    in_python,
    makers,
    naming,
    objective,
    plain,
    regression,
    weighted,
)

from linsep import _kernels
from linsep.certificates import ClosingSums, closing_sums_numpy
from linsep.errors import NonFinite
from linsep.losses import get
from linsep.solution import Explicit, Linearised

each_loss = pytest.mark.parametrize("loss", NATIVE, ids=naming)
each_smooth = pytest.mark.parametrize("loss", SMOOTH, ids=naming)
each_intercept = pytest.mark.parametrize("fit_intercept", [True, False])
C = 4.0


@pytest.fixture(autouse=True)
def small_blocks(tuned):
    """Several blocks even for these small problems."""
    tuned(block_bytes=1_000)


def point(sample, seed=0, size=0.3):
    rng = np.random.default_rng(seed)
    scale = np.abs(sample.X).max(axis=0, initial=0.0)
    w = size * rng.normal(size=sample.X.shape[1]) / np.where(scale > 0, scale, 1.0)
    return np.append(w, 0.1)


def with_all(n=700, d=5):
    """Weights with zeros, offsets, several blocks."""
    rng = np.random.default_rng(5)
    sample = plain(n, d, seed=5)
    return Sample(sample.X, sample.sign, 0.3 * rng.normal(size=n), rng.choice([0.0, 1, 2.5], n))


@pytest.mark.parametrize(
    ("loss", "maker"), [(loss, maker) for loss in NATIVE for maker in makers(loss)], ids=naming
)
@each_intercept
def test_value_and_derivatives_equal_numpy(loss, fit_intercept, maker):
    sample = MAKERS[maker]()
    theta = point(sample)
    if not fit_intercept:
        theta[-1] = 0.0
    problem = sample.problem(loss, C, fit_intercept)
    value, g = problem.value_gradient(theta)
    H = problem.hessian(np.zeros(sample.X.shape[1]))
    want, want_g, want_H = (part / C for part in objective(loss, C, sample, theta, fit_intercept))
    np.testing.assert_allclose(value, want, rtol=1e-12)
    size = np.sqrt(np.diag(want_H)) + np.abs(sample.X).max(initial=1.0)
    np.testing.assert_allclose(g, want_g, rtol=1e-9, atol=1e-10 * size.max() * len(sample.X))
    np.testing.assert_allclose(H, want_H, rtol=1e-10, atol=1e-10 * np.outer(size, size).max())


@each_smooth
@each_intercept
def test_the_gradient_is_the_derivative_of_the_value(loss, fit_intercept):
    problem, step = with_all().problem(loss, C, fit_intercept), 1e-5
    theta = point(with_all())
    if not fit_intercept:
        theta[-1] = 0.0
    _, g = problem.value_gradient(theta)
    for j in range(len(theta) - (not fit_intercept)):
        e = np.zeros_like(theta)
        e[j] = step
        up, down = problem.value_gradient(theta + e)[0], problem.value_gradient(theta - e)[0]
        assert abs((up - down) / (2 * step) - g[j]) <= 2e-6 * (1 + np.abs(g).max())
    assert fit_intercept or g[-1] == 0.0


@each_smooth
@each_intercept
def test_the_hessian_is_the_derivative_of_the_gradient(loss, fit_intercept):
    """On average over a segment for losses with bends, where l'' jumps: hence the loose tolerance."""
    problem, step = with_all().problem(loss, C, fit_intercept), 1e-4
    theta = point(with_all())
    problem.value_gradient(theta)
    H = problem.hessian(np.zeros(5))
    assert (H == H.T).all()
    for j in range(6 if fit_intercept else 5):
        e = np.zeros_like(theta)
        e[j] = step
        up, down = problem.value_gradient(theta + e)[1], problem.value_gradient(theta - e)[1]
        bends = loss.name not in ("logistic", "exponential", "squared")
        allowed = (0.02 if bends else 1e-6) * np.abs(H).max()
        assert np.abs((up - down) / (2 * step) - H[j]).max() <= allowed


@each_smooth
@each_intercept
@pytest.mark.parametrize("storage", ["dense64", "csr64-int32", "csr64-unsorted"])
def test_hess_vec_is_the_hessian_times_a_vector(loss, fit_intercept, storage):
    sample = with_all().in_storage(storage)
    problem = sample.problem(loss, C, fit_intercept)
    problem.value_gradient(point(with_all()))
    H = problem.hessian(np.zeros(5))
    v = np.random.default_rng(1).normal(size=6)
    if not fit_intercept:
        v[-1] = 0.0
    np.testing.assert_allclose(problem.hess_vec(v), H @ v, rtol=1e-11, atol=1e-9)


@each_intercept
@pytest.mark.parametrize("maker", ["plain", "far_away", "unscaled"])
def test_a_centre_is_a_change_of_coordinates(maker, fit_intercept):
    """With c = b + mu.w the Hessian is T'H T, T = [[1, 0], [-mu', 1]]."""
    sample = MAKERS[maker]()
    problem = sample.problem(get("logistic"), C, fit_intercept)
    problem.value_gradient(point(sample))
    mu = problem.centre()
    if not fit_intercept:
        assert not mu.any()
        return
    np.testing.assert_allclose(mu, np.median(sample.X, axis=0), rtol=1e-12)
    d = len(mu)
    T = np.eye(d + 1)
    T[d, :d] = -mu
    plain_H, H = problem.hessian(np.zeros(d)), problem.hessian(mu)
    size = np.sqrt(np.diag(plain_H))
    np.testing.assert_allclose(H, T.T @ plain_H @ T, atol=1e-11 * np.outer(size, size).max())
    assert not sample.in_storage("csr64-int32").problem(get("logistic"), C).centre().any()


@each_loss
@each_intercept
def test_moments_are_the_diagonal_of_the_hessian(loss, fit_intercept):
    sample = with_all()
    problem = sample.problem(loss, C, fit_intercept)
    problem.value_gradient(point(sample))
    H = problem.hessian(np.zeros(5))
    squares, means, total = problem.moments()
    np.testing.assert_allclose(squares + 1 / C, np.diag(H)[:-1], rtol=1e-11)
    if fit_intercept:
        np.testing.assert_allclose(np.append(means, total), H[-1], rtol=1e-9, atol=1e-9)
    squares, means, total = problem.moments(weighted=False)
    np.testing.assert_allclose(squares, (sample.X**2).sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(means, sample.X.sum(axis=0), rtol=1e-9, atol=1e-11)
    assert total == len(sample.X)


@each_loss
def test_along_is_the_objective_on_the_ray(loss):
    sample = with_all()
    problem = sample.problem(loss, C)
    theta, delta = point(sample), point(sample, seed=1, size=2.0)
    steps = np.array([0.0, 1e-3, 0.5, 1.0, -2.0])
    values, slopes = problem.along(theta, delta, steps)
    for step, value, slope in zip(steps, values, slopes, strict=True):
        want, g = problem.value_gradient(theta + step * delta)
        np.testing.assert_allclose(value, want, rtol=1e-12)
        np.testing.assert_allclose(slope, g @ delta, rtol=1e-9, atol=1e-9)


def both_duals(sample, loss, seed=0):
    rng = np.random.default_rng(seed)
    low, high = np.clip(loss.domain, -2.0, 2.0)
    base, step = point(sample)[:, None], point(sample, 1)[:, None]
    return [
        Linearised(base, 0.2 * step),
        Linearised(base, 20.0 * step),  # leaves the domain in many rows
        Explicit(rng.uniform(low, high, len(sample.sign))),
        Explicit(rng.uniform(low - 0.5, high + 0.5, len(sample.sign))),
    ]


@pytest.mark.sampled(28)
@pytest.mark.parametrize("storage", ["dense64", "csr32-int64", "fortran64"])
@pytest.mark.parametrize("python", [False, True])
@each_loss
def test_closing_sums_equal_those_of_the_independent_checker(loss, python, storage, tuned):
    tuned(converted_bytes=0)  # so that blocks have rows of their own
    sample = with_all().in_storage(storage)
    W = point(with_all(), seed=2)[:, None]
    problem = sample.problem(in_python(loss) if python else loss, C)
    d = problem.data.d
    for dual in both_duals(with_all(), loss):
        got = ClosingSums.from_flat(problem.closing(np.ascontiguousarray(W[:, 0]), dual), d)
        want = closing_sums_numpy(
            loss, sample.X, sample.sign, sample.offset, sample.weight, W, dual
        )
        names = "loss conj_plus conj_minus mass_plus mass_minus absolute".split()
        for name in names:
            got_one, want_one = getattr(got, name), getattr(want, name)
            assert abs(got_one - want_one) <= 1e-12 * (1 + want.absolute), name
        assert got.spread == pytest.approx(want.spread, rel=1e-12)
        np.testing.assert_allclose(got.v_plus, want.v_plus, atol=1e-9)
        np.testing.assert_allclose(got.v_minus, want.v_minus, atol=1e-9)
        assert got.magnitude >= (1 - 1e-9) * want.magnitude


@each_loss
@each_intercept
@pytest.mark.parametrize("make", [with_all, weighted, regression], ids=lambda f: f.__name__)
def test_a_loss_in_python_gives_the_numbers_of_its_kernel(loss, fit_intercept, make):
    sample = make()
    twin = in_python(loss)
    assert twin.native is None and twin.name == loss.name
    native, composed = (sample.problem(one, C, fit_intercept) for one in (loss, twin))
    theta, delta = point(sample), point(sample, 1)
    for a, b in (
        (native.value_gradient(theta), composed.value_gradient(theta)),
        ((native.hess_vec(delta),), (composed.hess_vec(delta),)),
        (native.along(theta, delta, np.ones(2)), composed.along(theta, delta, np.ones(2))),
    ):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-10)
    for dual in both_duals(sample, loss):
        x, y = native.closing(theta, dual), composed.closing(theta, dual)
        assert y[5] >= (1 - 1e-12) * x[5]  # Cauchy-Schwarz may only exceed |x|.|w|
        x[5] = y[5]
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-10)


def test_passes_are_counted():
    sample = with_all()
    problem = sample.problem(get("logistic"))
    theta = point(sample)
    problem.value_gradient(theta)
    problem.hessian(np.zeros(5))
    problem.hess_vec(theta)
    problem.moments()
    problem.along(theta, theta, np.ones(3))
    problem.closing(theta, Linearised(theta[:, None], theta[:, None]))
    assert problem.passes == 6
    assert problem.penalty_value(theta) == pytest.approx(0.5 * theta[:-1] @ theta[:-1])
    assert problem.order == 6 and problem.passes == 6


def test_no_penalty():
    sample = with_all()
    problem = sample.problem(get("logistic"), np.inf)
    theta = point(sample)
    value, g = problem.value_gradient(theta)
    want, want_g, _ = objective(get("logistic"), np.inf, sample, theta)
    assert problem.lam == 0.0 and problem.penalty_value(theta) == 0.0
    np.testing.assert_allclose(value, want, rtol=1e-13)
    np.testing.assert_allclose(g, want_g, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
@pytest.mark.parametrize("storage", ["dense64", "csr64-int32"])
@pytest.mark.parametrize("loss", [loss for loss in CONVEX if loss.native], ids=naming)
def test_numbers_that_are_not_finite_are_the_fault_of_the_data(loss, storage, bad):
    """One bad number anywhere makes the first pass not finite, whichever loss is asked."""
    sample = plain(700, 5)
    X = sample.X.copy()
    X[311, 2] = bad
    problem = Sample(X, sample.sign).in_storage(storage).problem(loss)
    if bad == 1e200:  # finite, and so is the objective at 0
        assert np.isfinite(problem.start(np.zeros(6))[1])
        return
    with pytest.raises(NonFinite, match="NaN"):
        problem.start(np.zeros(6))


def test_a_start_that_is_worse_than_zero_is_left():
    problem = plain().problem(get("exponential"))
    for size in (10.0, 1e4):
        theta, value, g = problem.start(np.full(5, size))
        assert not theta.any() and value == 60.0
        assert (g == problem.value_gradient(np.zeros(5))[1]).all()
    better = problem.start(np.array([0.1, 0.0, 0.0, -0.1, 0.0]))
    assert better[0].any() and better[1] < 60.0


def test_native_names_are_kernels():
    compiled = [loss for loss in CONVEX if loss.native]
    assert len(compiled) > 5
    for loss in compiled:
        _kernels.Loss(loss.native, *loss.params)
