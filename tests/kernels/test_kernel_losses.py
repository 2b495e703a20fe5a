"""The compiled losses: a few units in the last place from the truth, and equal to the numpy text."""

import numpy as np
import pytest
from catalogue import NATIVE, naming

from linsep import _kernels as K  # noqa: N812
from linsep.losses import zero_margin

EPS = np.finfo(float).eps
#: exp is cut off at e^-708: what is smaller counts as that, which no sum can see.
FLOOR = 4e-308
#: and at e^709, beyond which the true value is +inf or nearly so.
CEILING = 8.2e307
NAMES = ("value", "slope", "curvature")

pytestmark = pytest.mark.usefixtures("instructions")
each_loss = pytest.mark.parametrize("loss", NATIVE, ids=naming)


def margins():
    rng = np.random.default_rng(0)
    sizes = np.concatenate([np.logspace(-320, 3, 3000), [700.0, 707.9, 708.5, 745.0, 1e10, 1e154]])
    near_one = 1.0 + np.concatenate([-np.logspace(-16, 0, 200), np.logspace(-16, 0, 200)])
    parts = [np.linspace(-50, 50, 8001), rng.normal(size=5000), sizes, -sizes, near_one]
    special = [0.0, -0.0, 1.0, 1e308, -1e308, 5e-324, -5e-324, 0.5, 0.75, -0.345, 2.345]
    return np.concatenate([*parts, special])


def duals(loss):
    """Points of the domain of the conjugate, dense at its ends."""
    low, high = np.clip(loss.domain, -1e150, 1e150)
    small = np.concatenate([[0.0], np.logspace(-320, -0.4, 4000)])
    middle = np.linspace(max(low, -50.0), min(high, 50.0), 5001)
    far = np.logspace(0, 150, 500)
    u = np.concatenate([small, -small, 1 - small, small - 1, middle, far, -far, [low, high]])
    return u[(u >= low) & (u <= high)]


def pointwise(loss, at):
    """Value, slope and curvature at the margins, and the conjugate at minus them."""
    out = [np.full(len(at), np.nan) for _ in range(4)]
    K.pointwise(K.Loss(loss.native, *loss.params), at, *out)
    return out


def truth(loss, m):
    """Value, slope and curvature with the digits of long double; a kink lies where centre - m rounds to it."""
    centre = loss.centre if loss.regression else 1.0
    r, m = (centre - m).astype(np.longdouble), m.astype(np.longdouble)
    one, zero = np.longdouble(1), np.zeros_like(m)
    width = np.longdouble(loss.params[0]) if loss.params else one
    e = np.exp(-np.abs(m))
    left = np.maximum(r, 0)
    bent = np.minimum(left, width)
    core = np.clip(r, -width, width)
    name = loss.name
    if name == "logistic":
        slope = -np.where(m >= 0, e, one) / (1 + e)
        return np.maximum(-m, 0) + np.log1p(e), slope, e / (1 + e) ** 2
    if name == "exponential":
        return np.exp(-m), -np.exp(-m), np.exp(-m)
    return {
        "squared": (r * r, -2 * r, zero + 2),
        "squared_hinge": (left * left, -2 * left, np.where(m < 1, 2 * one, 0)),
        "huberised_hinge": (
            bent * (left - bent / 2) / width,
            -bent / width,
            np.where((m < 1) & (left <= width), 1 / width, 0),
        ),
        "huber": (core * (r - core / 2), -core, np.where(np.abs(r) <= width, one, 0)),
        "hinge": (left, -np.where(m < 1, one, 0), zero),
        "absolute": (np.abs(r), -np.sign(r), zero),
        "perceptron": (np.maximum(-m, 0), -np.where(m < 0, one, 0), zero),
    }[name]


def conjugate_terms(loss, u):
    """The two terms whose sum is l*(-u)."""
    u = u.astype(np.longdouble)
    width = np.longdouble(loss.params[0]) if loss.params else np.longdouble(1)
    log = np.log(np.where(u > 0, u, 1))
    rest = np.log1p(-np.where(u < 1, u, 0))
    at_centre = -zero_margin(loss) * u
    return {
        "logistic": (u * log, (1 - u) * rest),
        "exponential": (u * log, -u),
        "squared": (u * u / 4, at_centre),
        "squared_hinge": (u * u / 4, -u),
        "huberised_hinge": (width * u * u / 2, -u),
        "huber": (u * u / 2, at_centre),
        "hinge": (-u, 0 * u),
        "absolute": (at_centre, 0 * u),
        "perceptron": (0 * u, 0 * u),
    }[loss.name]


def assert_close(got, want, size, at, what):
    """Within a few units in the last place of ``size``; huge values need only be huge."""
    huge = np.abs(want) > CEILING
    error = np.abs(got - want.astype(float))
    bad = ~np.where(huge, np.abs(got) >= CEILING, error <= 6 * EPS * np.abs(size) + FLOOR)
    worst = np.flatnonzero(bad)[:5]
    assert not bad.any(), f"{what} at {at[worst]}: {got[worst]}, not {want[worst]}"


@each_loss
def test_accuracy_in_the_margin(loss):
    m = margins()
    with np.errstate(all="ignore"):
        found = zip(NAMES, pointwise(loss, m)[:3], truth(loss, m), strict=True)
        for what, got, exact in found:
            assert_close(got, exact, exact, m, what)


@each_loss
def test_accuracy_of_the_conjugate(loss):
    """The certificate allows for a few roundings of each term, so that is what must be kept."""
    u = duals(loss)
    first, second = conjugate_terms(loss, u)
    assert_close(pointwise(loss, u)[3], first + second, np.abs(first) + np.abs(second), u, "l*(-u)")


@each_loss
def test_equal_to_the_numpy_text(loss):
    m, u = margins(), duals(loss)
    with np.errstate(all="ignore"):
        texts = (loss.value(m), loss.slope(m), loss.curvature(m))
        for what, got, text in zip(NAMES, pointwise(loss, m)[:3], texts, strict=True):
            assert_close(got, text, text, m, what)
        first, second = conjugate_terms(loss, u)
    size = np.abs(first) + np.abs(second)
    assert_close(pointwise(loss, u)[3], loss.conjugate(-u), size, u, "l*(-u)")


@each_loss
def test_outside_its_domain_the_conjugate_is_infinite(loss):
    low, high = loss.domain
    ends = np.array([end for end in (low, high) if np.isfinite(end)])
    beyond = np.concatenate([np.nextafter(ends, ends + np.where(ends > low, 1, -1)), ends * 2 - 1])
    beyond = beyond[(beyond < low) | (beyond > high)]
    assert (pointwise(loss, beyond)[3] == np.inf).all()
    assert np.isfinite(pointwise(loss, ends)[3]).all()


@each_loss
def test_infinite_margins(loss):
    at = np.array([np.inf, -np.inf])
    with np.errstate(all="ignore"):
        value, slope = pointwise(loss, at)[:2]
        assert_close(value, loss.value(at), loss.value(at), at, "value")
        assert_close(slope, loss.slope(at), loss.slope(at), at, "slope")


@each_loss
def test_nan_is_not_a_loss(loss):
    """A NaN in the data must reach the objective: a row that seems to cost nothing would hide it."""
    at = np.array([np.nan, 0.5])
    with np.errstate(invalid="ignore"):
        assert np.isnan(loss.value(at)[0])
    assert np.isnan(pointwise(loss, at)[0][0])
