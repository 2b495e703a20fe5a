"""Laws that every loss obeys, and the two questions users may ask about one."""

import decimal
import itertools
import math
import pickle
import warnings

import numpy as np
import pytest
from catalogue import Quartic
from hypothesis import assume, given
from hypothesis import strategies as st

from linsep import losses
from linsep.data import Memory
from linsep.errors import BadInput, Refused
from linsep.losses import (
    EpsilonInsensitive,
    Huber,
    HuberisedHinge,
    Multinomial,
    Pinball,
    Scaled,
    SquaredEpsilonInsensitive,
    ZeroOne,
)
from linsep.penalties import ElasticNet
from linsep.train import Recipe, train

ALL = [losses.get(name) for name in losses.NAMES] + [
    ZeroOne("error"),
    HuberisedHinge(0.25),
    HuberisedHinge(3.0),
    Huber(0.01),
    Pinball(0.1),
    EpsilonInsensitive(0.5),
    SquaredEpsilonInsensitive(2.5),
    losses.LOGISTIC_BASE_2,
    Scaled(losses.get("hinge"), 0.25),
]
CONVEX = [loss for loss in ALL if loss.convex]
SMOOTH = [loss for loss in CONVEX if loss.smooth]
KINKS = np.array([0.0, 1.0])


def naming(loss):
    shape = "".join(
        f"-{getattr(loss, n)}" for n in ("ties", "quantile", "epsilon") if hasattr(loss, n)
    )
    return f"{loss.name}{''.join(f'-{p:g}' for p in loss.params)}{shape}"


def each(catalogue):
    return pytest.mark.parametrize("loss", catalogue, ids=naming)


margins = st.floats(-30.0, 30.0).map(lambda x: np.array([x]))
shares = st.floats(0.0, 1.0)


def far_from_breaks(loss, m, h):
    """Whether no piece of the loss ends within h of m."""
    width = getattr(loss, "width", getattr(loss, "epsilon", 0.0))
    breaks = np.array([0.0, 1.0, 1.0 - width, 1.0 + width])
    return np.abs(breaks - m).min() > h


@each(SMOOTH)
@given(m=margins)
def test_slope_is_the_derivative_of_value(loss, m):
    h = 1e-5
    numeric = (loss.value(m + h) - loss.value(m - h)) / (2 * h)
    error = 1e-9 * (1 + np.abs(loss.value(m))) + h * h * np.abs(loss.value(m)) + h * h
    if far_from_breaks(loss, m, h):
        assert np.abs(numeric - loss.slope(m)) <= 10 * error
    else:
        assert np.abs(numeric - loss.slope(m)) <= 10 * error + h * loss.curvature_bound


@each(SMOOTH)
@given(m=margins)
def test_curvature_is_the_derivative_of_slope(loss, m):
    h = 1e-5
    assume(far_from_breaks(loss, m, h))
    numeric = (loss.slope(m + h) - loss.slope(m - h)) / (2 * h)
    size = 1 + np.abs(loss.slope(m))
    assert np.abs(numeric - loss.curvature(m)) <= 1e-8 * size


@each(CONVEX)
@given(a=margins, b=margins)
def test_every_slope_supports_the_loss(loss, a, b):
    """The subgradient inequality: true at kinks too, and false for a wrong sign or scale."""
    below = loss.value(a) + loss.slope(a) * (b - a)
    size = 1 + np.abs(loss.value(a)) + np.abs(loss.slope(a)) * (np.abs(a) + np.abs(b))
    assert loss.value(b) >= below - 1e-12 * size


@each(CONVEX)
@given(m=margins, other=margins)
def test_fenchel_young(loss, m, other):
    q = loss.slope(other)
    size = 1 + np.abs(q * m) + np.abs(q * other) + loss.value(m) + loss.value(other)
    assert loss.value(m) + loss.conjugate(q) >= q * m - 1e-12 * size
    slack = loss.value(other) + loss.conjugate(q) - q * other
    assert np.abs(slack) <= 1e-12 * size


@each(CONVEX)
@given(m=margins, share=shares)
def test_shrinking_a_dual_point_is_never_dear(loss, m, share):
    """l*(kappa q) <= kappa l*(q): what balances the intercept in a certificate."""
    q = loss.slope(m)
    full, shrunk = loss.conjugate(q), loss.conjugate(share * q)
    assert shrunk <= share * full + 1e-12 * (1 + np.abs(q) + np.abs(full))


@each(ALL)
def test_minimum_is_zero(loss):
    m = np.arange(-20, 1000, 0.25)
    assert loss.value(m).min() >= 0
    assert loss.value(m).min() < 1e-8
    assert loss.conjugate(np.array([0.0])) == 0.0


@each(ALL)
def test_domain_is_where_the_conjugate_is_finite(loss):
    low, high = loss.domain
    assert low <= 0 <= high
    ends = np.array([-10.0 if math.isinf(low) else low, 10.0 if math.isinf(high) else high])
    assert np.isfinite(loss.conjugate(-ends)).all()
    for end, away in ((low, -math.inf), (high, math.inf)):
        if math.isfinite(end):
            assert loss.conjugate(-np.array([math.nextafter(end, away)])) == math.inf
    assert np.isnan(loss.conjugate(np.array([math.nan])))


@each(SMOOTH)
@given(m=margins, t=st.floats(0.0, 5.0), where=st.floats(-1.0, 1.0))
def test_curvature_floor_bounds_the_interval(loss, m, t, where):
    floor = loss.curvature_floor(m, np.array([t]))
    assert floor >= 0
    inside = loss.curvature(m + where * t)
    # Rounding of m + where * t may cross the end of a piece by one unit in the last place.
    assert floor <= inside * (1 + 1e-12) or not far_from_breaks(loss, m + where * t, 1e-12)
    assert floor <= loss.curvature_bound * (1 + 1e-15)  # p (1 - p) may round above 1/4


@pytest.mark.parametrize("name", ["logistic", "exponential", "squared", "huber", "squared_hinge"])
def test_curvature_floor_is_not_vacuous(name):
    loss = losses.get(name)
    m = np.array([0.3])
    assert loss.curvature_floor(m, np.array([0.0])) == pytest.approx(loss.curvature(m))
    assert loss.curvature_floor(m, np.array([0.1])) > 0


class TestFacts:
    """Each fact that a loss declares, against its four functions."""

    # Every kink of the catalogue is a point, or lies between two.
    WIDE = np.linspace(-40.0, 40.0, 3201)

    @each(ALL)
    def test_a_receding_loss_falls_at_every_margin(self, loss):
        m = np.array([-50.0, -3.0, 0.0, 1.0, 5.0, 50.0, 300.0, 700.0])
        assert loss.recedes == bool((loss.slope(m) < 0.0).all())

    @each(ALL)
    def test_the_conjugate_is_the_parabola_that_is_declared(self, loss):
        q, (low, high) = loss.conjugate_quadratic, loss.domain
        u = np.linspace(max(low, -7.0), min(high, 7.0), 101)
        conjugate, centre = loss.conjugate(-u), losses.zero_margin(loss)
        if q is not None:
            assert q >= 0.0
            assert conjugate == pytest.approx(q * u * u - centre * u, rel=1e-14, abs=1e-14)
        elif low < high:  # no parabola passes through these points
            fitted = np.polynomial.Polynomial.fit(u[1:-1], conjugate[1:-1], 2)
            assert np.abs(fitted(u[1:-1]) - conjugate[1:-1]).max() > 1e-6

    @each([loss for loss in ALL if loss.conjugate_quadratic is not None])
    def test_parabola_and_domain_define_the_loss(self, loss):
        q, (low, high) = loss.conjugate_quadratic, loss.domain
        r = losses.zero_margin(loss) - self.WIDE
        with np.errstate(divide="ignore", invalid="ignore"):
            best = np.clip(np.where(r == 0.0, 0.0, r / (2.0 * q)), low, high)
        assert loss.value(self.WIDE) == pytest.approx(best * r - q * best**2, rel=1e-13, abs=1e-13)

    @each([loss for loss in ALL if loss.dead_zone is not None])
    def test_dead_zone_and_domain_define_the_loss(self, loss):
        (q, epsilon), (low, high) = loss.dead_zone, loss.domain
        r = losses.zero_margin(loss) - self.WIDE
        r = np.sign(r) * np.maximum(np.abs(r) - epsilon, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            best = np.clip(np.where(r == 0.0, 0.0, r / (2.0 * q)), low, high)
        assert loss.value(self.WIDE) == pytest.approx(best * r - q * best**2, rel=1e-13, abs=1e-13)
        u = np.linspace(max(low, -7.0), min(high, 7.0), 101)
        declared = q * u * u + epsilon * np.abs(u) - losses.zero_margin(loss) * u
        assert loss.conjugate(-u) == pytest.approx(declared, rel=1e-14, abs=1e-14)

    @each(CONVEX)
    def test_absolute_terms_make_up_the_loss(self, loss):
        found = loss.absolute_terms
        # Straight lines.
        assert (found is not None) == (loss.curvature_bound != loss.curvature_bound)
        if found is None:
            return
        terms, slope = found
        r = losses.zero_margin(loss) - self.WIDE
        value = slope * r + sum(a * (np.abs(r - c) - abs(c)) for a, c in terms)
        assert loss.value(self.WIDE) == pytest.approx(value, rel=1e-13, abs=1e-13)
        ends = [slope - sum(a for a, _ in terms), slope + sum(a for a, _ in terms)]
        assert loss.domain == pytest.approx(ends)

    @each(CONVEX)
    def test_slope_and_curvature_jump_at_the_breakpoints_alone(self, loss):
        near = 1e-9
        for at in loss.breakpoints:
            sides = np.array([at - near, at + near])
            jump = (
                np.ptp(loss.slope(sides)) > 0.1 * np.ptp(loss.domain) if not loss.smooth else False
            )
            assert jump == (at in loss.kinks)
            assert jump or np.ptp(loss.curvature(sides)) > 0.0
        if loss.conjugate_quadratic is not None:
            cuts = np.array([-np.inf, *sorted(loss.breakpoints), np.inf])
            for lo, hi in itertools.pairwise(cuts):
                m = self.WIDE[(self.WIDE > lo) & (self.WIDE < hi)]
                assert np.ptp(loss.curvature(m)) == 0.0
        assert loss.smooth == (not loss.kinks)

    @each(CONVEX)
    def test_straight_tails_slope_without_curvature(self, loss):
        m = self.WIDE[np.abs(self.WIDE) < 30.0]
        straight = (loss.slope(m) != 0.0) & (loss.curvature(m) == 0.0)
        assert loss.straight_tails == bool(straight.any())

    @each(ALL)
    def test_constant_curvature(self, loss):
        found = loss.curvature(self.WIDE)
        assert loss.constant_curvature == bool(np.ptp(found) == 0.0 < found[0])

    @each(ALL)
    def test_flat_beyond_the_margin(self, loss):
        m = losses.zero_margin(loss) + np.array([0.0, 1e-9, 1.0, 1e3, 1e300])
        assert loss.flat_beyond_margin == bool((loss.value(m) == 0.0).all())

    @each(CONVEX)
    def test_soft_margins_and_losses_without_any(self, loss):
        m = np.array([-2.0, 0.0, 0.5, 1.0, 2.0])
        hinge = np.maximum(1.0 - m, 0.0)
        like = bool(np.allclose(loss.value(m), loss.value(np.zeros(1)) * hinge, atol=1e-12))
        assert loss.soft_margin == (like and bool(loss.value(np.zeros(1)) > 0.0))
        assert loss.zero_at_origin == bool((loss.value(np.array([0.0, 1.0, 9.0])) == 0.0).all())

    @each(CONVEX)
    def test_the_best_constant_has_no_better_neighbour(self, loss):
        for plus, minus in ((3.0, 1.0), (1.0, 40.0), (2.0, 2.0)):
            b = loss.best_constant(plus, minus)
            if b is not None:
                at = b + np.array([-1e-3, 0.0, 1e-3])
                risk = plus * loss.value(at) + minus * loss.value(-at)
                assert risk.argmin() == 1
        assert loss.best_constant(2.0, 2.0) in (None, 0.0)

    @each([loss for loss in CONVEX if loss.native is not None])
    def test_compiled_ascent_proves_its_answer_for_the_losses_it_covers(self, loss):
        rng = np.random.default_rng(1)
        X, sign = rng.normal(size=(40, 3)), rng.choice([-1.0, 1.0], size=40)
        data = Memory(X, sign)
        recipe = Recipe(loss, ElasticNet(0.3), solver="dual-cd", tol=1e-8)
        if loss.native_ascent:
            assert train(recipe, data).certificate.certified
        else:
            with pytest.raises(Refused, match="one of the losses"):
                train(recipe, data)

    @each(ALL)
    def test_degree_is_how_values_follow_the_unit_of_the_residual(self, loss):
        about_zero, r = loss.for_targets(), np.linspace(-5.0, 5.0, 41)
        p = about_zero.degree
        assert (p is not None) == loss.regression
        for k in (-3, 4) if p is not None else ():
            smaller = about_zero.in_units(k)
            np.testing.assert_array_equal(
                about_zero.value(-(2.0**k) * r), 2.0 ** (p * k) * smaller.value(-r)
            )
        if loss.regression:
            assert loss.degree is None  # about centre 1 the unit of the residual is fixed

    @each(ALL)
    def test_a_loss_is_a_multiple_of_its_plain_loss(self, loss):
        m = np.linspace(-3.0, 3.0, 25)
        factor = loss.factor if isinstance(loss, Scaled) else 1.0
        assert loss.plain.plain is loss.plain
        np.testing.assert_array_equal(loss.value(m), factor * loss.plain.value(m))

    def test_names_with_a_fact(self):
        assert losses.names_with("piecewise_linear") == (
            "absolute",
            "hinge",
            "perceptron",
            "pinball",
        )
        assert losses.names_with("recedes") == ("logistic", "exponential")


EXTREME = np.array(
    [0.0, -0.0, 5e-324, -5e-324, 1e-300, 745.0, -745.0, 710.0, -710.0, 1e16, -1e16, 1e308, -1e308]
)


@each(ALL)
def test_extreme_margins_are_finite_or_correctly_infinite(loss):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, slope, curvature = loss.value(EXTREME), loss.slope(EXTREME), loss.curvature(EXTREME)
        conjugate = loss.conjugate(EXTREME)
        floor = loss.curvature_floor(EXTREME, np.full(len(EXTREME), 1.0))
    for result in (value, slope, curvature, conjugate, floor):
        assert not np.isnan(result).any()
    assert (value >= 0).all()
    assert (curvature >= 0).all()
    grows = {"squared", "squared_hinge", "exponential", "squared_epsilon_insensitive"}
    finite = np.isfinite(value)
    if loss.name in grows:
        assert finite[np.abs(EXTREME) <= 700].all()
        assert np.isinf(value[EXTREME == -1e308]).all()
    else:
        assert finite.all()
        assert np.isfinite(slope).all()


def test_logistic_keeps_its_digits_in_both_tails():
    decimal.getcontext().prec = 60
    loss = losses.get("logistic")
    for m in (-700.0, -40.0, -1e-3, 0.0, 1e-9, 1.0, 36.7, 40.0, 300.0, 700.0):
        e = decimal.Decimal(-m).exp()
        value = float((1 + e).ln()) if e > decimal.Decimal("1e-25") else float(e)
        assert loss.value(np.array([m]))[0] == pytest.approx(value, rel=4e-15)
        assert loss.slope(np.array([m]))[0] == pytest.approx(float(-e / (1 + e)), rel=4e-15)
        assert loss.curvature(np.array([m]))[0] == pytest.approx(float(e / (1 + e) ** 2), rel=4e-15)
    for u in (1e-300, 1e-17, 0.3, 0.5, 0.75, math.nextafter(1.0, 0.0)):
        v = decimal.Decimal(u)
        exact = float(v * v.ln() + (1 - v) * (1 - v).ln())
        assert loss.conjugate(np.array([-u]))[0] == pytest.approx(exact, rel=4e-15)


@pytest.mark.parametrize(
    ("name", "at"),
    [
        ("squared", [4.0, 1.0, 0.0, 1.0]),
        ("absolute", [2.0, 1.0, 0.0, 1.0]),
        ("hinge", [2.0, 1.0, 0.0, 0.0]),
        ("perceptron", [1.0, 0.0, 0.0, 0.0]),
        ("squared_hinge", [4.0, 1.0, 0.0, 0.0]),
        ("exponential", [math.e, 1.0, math.exp(-1), math.exp(-2)]),
        (
            "logistic",
            [math.log1p(math.e), math.log(2), math.log1p(math.exp(-1)), math.log1p(math.exp(-2))],
        ),
        ("huberised_hinge", [1.5, 0.5, 0.0, 0.0]),
        ("huber", [1.345 * (2 - 1.345 / 2), 0.5, 0.0, 0.5]),
        ("zero_one", [1.0, 0.0, 0.0, 0.0]),
        ("pinball", [1.0, 0.5, 0.0, 0.5]),
        ("epsilon_insensitive", [1.9, 0.9, 0.0, 0.9]),
        ("squared_epsilon_insensitive", [3.61, 0.81, 0.0, 0.81]),
    ],
)
def test_values_written_down_by_hand(name, at):
    assert losses.get(name).value(np.array([-1.0, 0.0, 1.0, 2.0])) == pytest.approx(at, rel=1e-14)


def test_regression_losses_see_the_residual():
    target, z = np.array([3.0, -2.0]), np.array([1.0, 5.0])
    m = z + (1 - target)
    assert losses.get("squared").value(m) == pytest.approx((target - z) ** 2)
    assert losses.get("absolute").value(m) == pytest.approx(np.abs(target - z))
    assert losses.get("pinball").value(m) == pytest.approx([1.0, 3.5])
    assert Pinball(0.9).value(m) == pytest.approx([1.8, 0.7])
    assert EpsilonInsensitive(0.5).value(m) == pytest.approx([1.5, 6.5])
    assert SquaredEpsilonInsensitive(0.5).value(m) == pytest.approx([2.25, 42.25])
    names = {"squared", "absolute", "huber", "pinball", "epsilon_insensitive"}
    assert {loss.name for loss in ALL if loss.regression} == {
        *names,
        "squared_epsilon_insensitive",
    }


def test_zero_one_names_both_conventions():
    at = np.array([-1.0, 0.0, 1.0])
    assert ZeroOne("correct").value(at).tolist() == [1, 0, 0]
    assert ZeroOne("error").value(at).tolist() == [1, 1, 0]
    with pytest.raises(BadInput, match="ties"):
        ZeroOne("maybe")


def test_names_instances_and_refusals():
    hinge = losses.get("hinge")
    assert losses.get(hinge) is hinge
    assert losses.get("huber") == Huber()
    with pytest.raises(BadInput, match="squared_hinge"):  # the list is computed
        losses.get("hinge loss")
    with pytest.raises(BadInput, match="width"):
        Huber(0.0)
    with pytest.raises(BadInput, match="width"):
        HuberisedHinge(math.nan)
    for quantile in (0.0, 1.0, math.nan):
        with pytest.raises(BadInput, match="quantile must lie in"):
            Pinball(quantile)
    for kind in (EpsilonInsensitive, SquaredEpsilonInsensitive):
        with pytest.raises(BadInput, match="epsilon must be"):
            kind(-0.1)
    with pytest.raises(Refused, match="logistic"):
        hinge.proba(np.zeros(1))
    assert Huber(2.0).params == (2.0,)
    assert hinge.params == ()
    assert all(pickle.loads(pickle.dumps(loss)) == loss for loss in ALL)


@pytest.mark.parametrize("name", ["logistic", "exponential"])
def test_probability_is_the_minimiser_of_the_expected_loss(name):
    """p l'(z) - (1-p) l'(-z) = 0 at the score z whose probability is p."""
    loss, z = losses.get(name), np.linspace(-4, 4, 17)
    p = loss.proba(z)
    assert p * loss.slope(z) == pytest.approx((1 - p) * loss.slope(-z), rel=1e-10)


class TestChecks:
    @each(ALL)
    def test_is_convex_agrees_with_the_fact(self, loss):
        check = losses.is_convex(loss)
        assert bool(check) == loss.convex
        if not check:
            a, b, t = check.witness
            above = loss.value(np.array([t * a + (1 - t) * b]))[0]
            chord = t * loss.value(np.array([a]))[0] + (1 - t) * loss.value(np.array([b]))[0]
            assert above - chord == pytest.approx(check.excess)
            assert "not convex" in str(check)

    def test_is_convex_sees_small_dents_and_large_ones(self):
        assert not losses.is_convex(lambda m: m**2 - 1e-2 * np.cos(40 * m))
        assert not losses.is_convex(lambda m: np.sqrt(np.abs(m)))
        assert not losses.is_convex(lambda m: np.where(m > 0, np.nan, -m))
        assert losses.is_convex(lambda m: np.maximum(-m, 0.0) ** 1.5)

    def test_domination_is_honest(self):
        yes = {"squared", "absolute", "hinge", "exponential", "squared_hinge"}
        for name in losses.NAMES:
            assert bool(losses.dominates_zero_one(losses.get(name))) == (name in yes), name
        check = losses.dominates_zero_one(losses.get("logistic"))
        assert check.margin == 0.0
        assert check.shortfall == pytest.approx(1 - math.log(2))
        assert "0.306853" in str(check)
        assert not losses.dominates_zero_one(losses.get("logistic"), ties="correct")

    def test_logistic_in_base_two_dominates(self):
        base_two = lambda m: np.logaddexp(0.0, -m) / np.log(2)  # noqa: E731
        for loss in (base_two, losses.LOGISTIC_BASE_2):
            assert losses.dominates_zero_one(loss)
            assert losses.dominates_zero_one(loss, ties="correct")
            assert losses.is_convex(loss)
        m = np.linspace(-9, 9, 50)
        np.testing.assert_allclose(losses.LOGISTIC_BASE_2.value(m), base_two(m), rtol=1e-14)

    def test_ties_decide_for_zero_one_itself(self):
        assert losses.dominates_zero_one(ZeroOne("correct"), ties="correct")
        assert losses.dominates_zero_one(ZeroOne("error"), ties="correct")
        assert not losses.dominates_zero_one(ZeroOne("correct"), ties="error")


class TestScaled:
    def test_facts_and_copies(self):
        loss = losses.LOGISTIC_BASE_2
        assert loss.name == "1.4427 logistic"
        assert loss.probabilistic
        assert not Scaled(losses.get("hinge"), 2.0).smooth
        assert pickle.loads(pickle.dumps(loss)) == loss
        assert pickle.loads(pickle.dumps(loss)).name == loss.name

    @pytest.mark.parametrize("factor", [0.0, -1.0, math.inf, math.nan])
    def test_bad_factors(self, factor):
        with pytest.raises(BadInput, match="factor must be positive and finite"):
            Scaled(losses.get("hinge"), factor)


def test_your_own_loss_is_a_few_lines():
    loss = losses.get(Quartic())
    m = np.linspace(-2, 3, 11)
    assert loss.conjugate(loss.slope(m)) == pytest.approx(loss.slope(m) * m - loss.value(m))
    assert losses.is_convex(loss)
    assert loss.native is None
    assert loss.params == ()
    assert (loss.curvature_floor(m, np.ones(11)) == 0).all()


class TestMultinomial:
    scores = st.lists(st.floats(-20, 20), min_size=3, max_size=3).map(lambda z: np.array([z]))

    @given(Z=scores, label=st.integers(0, 2))
    def test_slope_is_the_gradient(self, Z, label):
        loss, y, h = Multinomial(3), np.array([label]), 1e-5
        for c in range(3):
            step = h * np.eye(3)[c]
            numeric = (loss.value(Z + step, y) - loss.value(Z - step, y)) / (2 * h)
            assert numeric == pytest.approx(loss.slope(Z, y)[:, c], abs=1e-8)
        assert loss.slope(Z, y).sum() == pytest.approx(0, abs=1e-15)

    @given(Z=scores, other=scores, label=st.integers(0, 2))
    def test_fenchel_young(self, Z, other, label):
        loss, y = Multinomial(3), np.array([label])
        Q = loss.slope(other, y)
        assert loss.value(Z, y) + loss.conjugate(Q, y) >= (Q * Z).sum() - 1e-12 * (
            1 + np.abs(Z).sum()
        )
        at_slope = loss.value(other, y) + loss.conjugate(Q, y)
        assert at_slope == pytest.approx((Q * other).sum(), abs=1e-12)

    @given(z=st.floats(-800, 800), label=st.integers(0, 1))
    def test_two_classes_are_the_logistic_loss(self, z, label):
        y, m = np.array([label]), np.array([z if label else -z])
        Z = np.array([[0.0, z]])
        two, one = Multinomial(2), losses.get("logistic")
        assert two.value(Z, y) == pytest.approx(one.value(m), rel=1e-14, abs=0)
        assert two.slope(Z, y)[0, label] == pytest.approx(one.slope(m)[0], rel=1e-13, abs=0)
        assert two.proba(Z)[0, 1] == pytest.approx(one.proba(np.array([z]))[0], rel=1e-13, abs=0)

    def test_outside_the_simplex_the_conjugate_is_infinite(self):
        loss, y = Multinomial(3), np.array([0])
        ok = np.array([[-0.5, 0.25, 0.25]])
        assert loss.conjugate(ok, y) == pytest.approx(-loss.entropy(ok + np.eye(3)[:1])[0])
        assert loss.conjugate(np.zeros((1, 3)), y) == 0
        for bad in ([[-0.5, 0.6, -0.1]], [[-1.5, 0.75, 0.75]], [[-0.5, 0.25, 0.2]], [[np.nan] * 3]):
            assert loss.conjugate(np.array(bad), y) == math.inf

    def test_extreme_scores(self):
        loss = Multinomial(3)
        Z = np.array([[1e308, -1e308, 0.0], [800.0, 0.0, 0.0]])
        assert loss.value(Z, np.array([0, 0])) == pytest.approx([0.0, 0.0], abs=1e-300)
        assert loss.value(Z, np.array([1, 1])).tolist() == [math.inf, 800.0]
        assert np.isfinite(loss.proba(Z)).all()
        assert loss.value(np.array([[40.0, 0.0, 0.0]]), np.array([0])) == pytest.approx(
            2 * math.exp(-40.0), rel=1e-12
        )

    def test_one_class_is_refused(self):
        with pytest.raises(BadInput, match="2 classes"):
            Multinomial(1)


def test_names_of_scikit_learn_mean_the_same_losses():
    m = np.linspace(-3.0, 3.0, 7)
    assert losses.get("log_loss") is losses.get("logistic")
    assert losses.get("quantile") is losses.get("pinball")
    assert losses.get("huberized_hinge") is losses.get("huberised_hinge")
    expected = np.where(m >= -1.0, np.maximum(0.0, 1.0 - m) ** 2, -4.0 * m)
    np.testing.assert_allclose(losses.get("modified_huber").value(m), expected)
    np.testing.assert_allclose(losses.get("squared_error").value(m), 0.5 * (1.0 - m) ** 2)
    np.testing.assert_allclose(losses.get("log_loss").value(m), np.log1p(np.exp(-m)))
    np.testing.assert_allclose(losses.get("absolute_error").value(m), np.abs(1.0 - m))
