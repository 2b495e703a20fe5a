"""The short road of small tables: the bits of the long one, and the same proof."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linsep import LinearRegressor, LogisticRegression, _kernels, losses, verify
from linsep.certificates import ClosingSums, from_sums
from linsep.certificates.optimality import enclose
from linsep.data import Memory
from linsep.losses import (
    Absolute,
    Hinge,
    Huber,
    HuberisedHinge,
    Logistic,
    Loss,
    Multinomial,
    Squared,
    SquaredHinge,
)
from linsep.penalties import ElasticNet
from linsep.small_dense import fit_small
from linsep.train import Recipe, train

LOSSES = [Logistic(), Squared(), SquaredHinge(), HuberisedHinge(0.5), Huber(1.0), Hinge()]


def table(n=60, d=5, kind=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(kind)
    return X, np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0), rng.uniform(0.0, 2.0, n)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_same_bits_and_proof_as_the_long_road(loss, C, kind, weighted, intercept):
    X, sigma, weight = table(kind=kind)
    weight = weight if weighted else None
    recipe = Recipe(loss, ElasticNet(C), intercept)
    quick = fit_small(recipe, X, sigma, None, weight)
    slow = train(recipe, Memory(X, sigma, None, weight))
    assert quick is not None
    np.testing.assert_array_equal(quick.W, slow.W)
    for part in vars(slow.dual):  # base and step, or u
        np.testing.assert_array_equal(getattr(quick.dual, part), getattr(slow.dual, part))
    assert (quick.solver, quick.n_passes, quick.status) == (slow.solver, slow.n_passes, slow.status)
    assert len(quick.trace) == len(slow.trace) == 1
    ours, theirs = quick.certificate, slow.certificate
    assert ours.certified and theirs.certified and ours.kind == theirs.kind
    assert ours.primal == pytest.approx(theirs.primal, rel=1e-14)
    assert ours.dual == pytest.approx(theirs.dual, rel=1e-14)
    assert ours.rounding == pytest.approx(theirs.rounding, rel=1e-3)
    assert ours.coef_error == pytest.approx(theirs.coef_error, rel=1e-2)


@pytest.mark.parametrize(
    "loss", [Squared(), Huber(1.0), Absolute(centre=0.0)], ids=lambda loss: loss.name
)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("C", [1e-3, 10.0, 1e4])
def test_same_bits_for_numbers(loss, weighted, intercept, C):
    X, _, noise = table()
    offset, weight = 1.0 - X @ np.arange(5.0) + noise, noise if weighted else None
    recipe = Recipe(loss, ElasticNet(C), intercept)
    quick = fit_small(recipe, X, None, offset, weight)
    slow = train(recipe, Memory(X, None, offset, weight))
    np.testing.assert_array_equal(quick.W, slow.W)
    assert (quick.solver, quick.n_passes, quick.status) == (slow.solver, slow.n_passes, slow.status)
    assert quick.certificate.certified
    assert quick.certificate.primal == pytest.approx(slow.certificate.primal, rel=1e-14)
    assert quick.certificate.dual == pytest.approx(slow.certificate.dual, rel=1e-14)


@pytest.mark.parametrize("weighted", [False, True])
def test_targets_that_an_intercept_fits_go_the_long_road(weighted):
    X, _, weight = table()
    weight[0] = 0.0
    offset = np.full(len(X), -3.0)
    if weighted:
        offset[0] = 7.0  # a row without weight
    given = weight if weighted else None
    assert fit_small(Recipe(Absolute(centre=0.0), ElasticNet(1.0)), X, None, offset, given) is None


@pytest.mark.parametrize("weighted", [False, True])
def test_small_fits_of_the_median_are_verified(weighted):
    X, _, noise = table(n=120, d=6)
    t, weight = X @ np.arange(6.0) + noise, noise if weighted else None
    model = LinearRegressor("absolute", C=0.7).fit(X, t, weight)
    assert verify(model, X, t, sample_weight=weight).certified
    assert verify(model, X, t, sample_weight=weight, exact=True).certified
    twice = LinearRegressor("absolute", C=0.7).fit(np.vstack([X, X[:9]]), np.append(t, t[:9]))
    double = LinearRegressor("absolute", C=0.7).fit(X, t, np.where(np.arange(120) < 9, 2.0, 1.0))
    np.testing.assert_allclose(twice.coef_, double.coef_, rtol=1e-7)


@settings(max_examples=200, deadline=None)
@given(
    d=st.integers(1, 6),
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(-150, 150),
    lam=st.integers(-307, 100),  # of subnormal numbers 1/lam overflows
    intercept=st.booleans(),
    empty=st.sampled_from([None, 1, 3, 4, 5]),
)
def test_the_two_texts_of_the_enclosure_agree(d, seed, size, lam, intercept, empty):
    rng = np.random.default_rng(seed)
    sums = np.abs(rng.normal(size=8 + 2 * d))
    sums[1:3] = -sums[1:3]
    sums[8:] = rng.normal(size=2 * d) * 10.0**size
    if empty is not None:
        sums[empty] = 0.0
    theta, penalty = rng.normal(size=d + 1), ElasticNet(10.0**-lam)
    native = enclose(
        *_kernels.enclose(sums, theta, penalty.l2, intercept, 100.0),
        scale=penalty.scale,
        tol=1.0,
        distance=1.0,
        kind="dual",
    )
    text = from_sums(
        ClosingSums.from_flat(sums, d),
        theta[:-1],
        penalty,
        fit_intercept=intercept,
        tol=1.0,
        rows_per_sum=100,
    )
    assert native.primal == pytest.approx(text.primal, rel=1e-13)
    assert native.rounding == pytest.approx(text.rounding, rel=1e-12)
    assert native.dual == pytest.approx(
        text.dual, abs=1e-12 * (penalty.scale * (sums[:3] @ [1, -1, -1]) + native.primal)
    )


def test_what_goes_the_long_road():
    X, sigma, _ = table()
    plain = Recipe(Logistic(), ElasticNet(1.0))

    def quick(X=X, **changes):
        return fit_small(Recipe(**{**vars(plain), **changes}), X, sigma, None, None)

    assert quick() is not None
    assert quick(loss=Hinge()) is not None
    assert quick(loss=Hinge(), X=np.hstack(20 * [X])) is None  # more features than rows
    assert quick(solver="newton") is None
    assert quick(penalty=ElasticNet(np.inf)) is None
    assert quick(penalty=ElasticNet(1.0, 0.5)) is None
    assert quick(time_limit=10.0) is None
    assert quick(max_passes=100.0) is None
    assert quick(loss=losses.get("absolute")) is None
    assert quick(loss=losses.get("perceptron")) is None
    assert quick(loss=Multinomial(3)) is None
    assert quick(X=np.asfortranarray(X)) is None
    assert quick(X=X.astype(">f8")) is None
    assert quick(X=X.astype(int)) is None
    assert quick(tol=1e-300) is None  # a gap that rounding never closes


def test_a_loss_that_cannot_be_hashed():
    class Listed(Loss):
        name = "listed"
        __hash__ = None

        def value(self, m):
            return (1 - m) ** 2

        def slope(self, m):
            return -2 * (1 - m)

        def curvature(self, m):
            return np.full_like(m, 2.0)

        def conjugate(self, q):
            return q + q * q / 4

    X, sigma, _ = table()
    assert fit_small(Recipe(Listed(), ElasticNet(1.0)), X, sigma, None, None) is None


def test_numbers_that_overflow_are_told_as_on_the_long_road():
    X, sigma, _ = table()
    for far in (1e150, 1e200):
        assert fit_small(Recipe(Logistic(), ElasticNet(1.0)), far * X, sigma, None, None) is None


def test_the_certificate_holds_for_an_independent_check():
    X, y, weight = table(n=150, d=4)
    for C in (0.01, 1.0, 100.0):
        model = LogisticRegression(C=C).fit(X, y, weight)
        again = verify(model, X, y, sample_weight=weight)
        assert again.certified
        assert again.primal == pytest.approx(model.certificate_.primal, rel=1e-12)


def test_ascent_is_left_to_the_long_road():
    for n, d, C, name in ((6000, 60, 1e-3, "dual-cd"), (600, 30, 1.0, "interior")):
        X, sigma, _ = table(n=n, d=d)
        recipe = Recipe(Hinge(), ElasticNet(C))
        quick = fit_small(recipe, X, sigma, None, None)
        assert (quick is None) == (name == "dual-cd")
        assert train(recipe, Memory(X, sigma)).solver == name
