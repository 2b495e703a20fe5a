"""A loss that a user has written is checked before a certificate is computed with it."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from catalogue import CONVEX, Quartic, in_python, naming

from linsep import LinearClassifier, LinearRegressor, audit, losses
from linsep.errors import BadInput
from linsep.losses import (
    EpsilonInsensitive,
    Huber,
    Loss,
    Pinball,
    Scaled,
    SquaredEpsilonInsensitive,
)
from linsep.losses.laws import check_laws

TRUE = [*CONVEX, Huber(0.01), Pinball(0.1), EpsilonInsensitive(0.3), SquaredEpsilonInsensitive(2.0)]
X = np.array([[0.0], [1.0], [2.0], [3.0]])
Y = [0, 1, 0, 1]


@pytest.mark.parametrize("loss", TRUE, ids=naming)
def test_true_formulas_pass(loss):
    check_laws(in_python(loss))


@dataclass(frozen=True)
class SquaredPerceptron(Loss):
    """max(0, -m)^2, with a conjugate_quadratic that belongs to max(0, 1 - m)^2: it forgets ``centre = 0``."""

    @property
    def domain(self):
        return (0.0, math.inf)

    @property
    def conjugate_quadratic(self):
        return 0.25

    def value(self, m):
        return np.maximum(0, -m) ** 2

    def slope(self, m):
        return -2 * np.maximum(0, -m)

    def curvature(self, m):
        return 2.0 * (m < 0)

    def conjugate(self, q):
        return np.where(q <= 0, q**2 / 4, math.inf)


def altered(loss, **members):
    return type("Altered", (type(loss),), {**members, "native": None})()


SQUARED, LOGISTIC, HINGE = losses.get("squared"), losses.get("logistic"), losses.get("hinge")
FALSE = {
    "conjugate too small": (altered(Quartic(), conjugate=lambda self, q: q), "must be at least"),
    "conjugate too large": (
        altered(Quartic(), conjugate=lambda self, q: Quartic().conjugate(q) + q * q),
        "must equal",
    ),
    "slope of another loss": (altered(Quartic(), slope=lambda self, m: 2 * (m - 1)), "must"),
    "domain too small": (altered(LOGISTIC, domain=(0.0, 0.5)), "outside of domain"),
    "minimum above 0": (
        altered(
            SQUARED,
            value=lambda self, m: SQUARED.value(m) + 1,
            conjugate=lambda self, q: SQUARED.conjugate(q) - 1,
        ),
        "infimum",
    ),
    "conjugate_quadratic of another margin": (SquaredPerceptron(), "by conjugate_quadratic"),
    "dead zone": (
        altered(
            EpsilonInsensitive(),
            dead_zone=(0.0, 0.4),
            classification=True,
            conjugate=lambda self, q: EpsilonInsensitive().conjugate(q),
        ),
        "by dead_zone",
    ),
    "curvature floor": (
        altered(LOGISTIC, curvature_floor=lambda self, m, t: np.full(np.shape(m), 0.25)),
        "curvature_floor",
    ),
    "curvature bound": (altered(LOGISTIC, curvature_bound=0.1), "curvature_bound"),
    "recedes": (altered(SQUARED, recedes=True), "recedes"),
    "flat": (altered(LOGISTIC, flat_beyond_margin=True), "flat_beyond_margin"),
    "one number": (altered(LOGISTIC, value=lambda self, m: 1.0), "one number for each"),
    "NaN": (altered(LOGISTIC, slope=lambda self, m: np.sqrt(-1.0 - m * m)), "NaN"),
    "infinite": (altered(LOGISTIC, value=lambda self, m: m + math.inf), "infinite at every"),
}


@pytest.mark.parametrize("case", FALSE)
def test_false_formulas_and_facts_are_refused(case):
    loss, words = FALSE[case]
    with pytest.raises(BadInput, match=words):
        check_laws(loss)
    with pytest.raises(BadInput, match=words):
        LinearClassifier(loss=Scaled(loss, 3.0)).fit(X, Y)


def test_regression_and_audit_check_too():
    loss = altered(Quartic(), conjugate=lambda self, q: q)
    with pytest.raises(BadInput, match="must be at least"):
        LinearRegressor(loss=loss).fit(X, Y)
    with pytest.raises(BadInput, match="must be at least"):
        audit(([1.0], 0.0), X, Y, loss=loss, C=1.0)


class TwiceLogistic(losses.Logistic):
    """2 log(1 + exp(-m)), with the compiled kernel of the loss that it is made of."""

    domain = (0.0, 2.0)
    curvature_bound = 0.5

    def value(self, m):
        return 2.0 * super().value(m)

    def slope(self, m):
        return 2.0 * super().slope(m)

    def curvature(self, m):
        return 2.0 * super().curvature(m)

    def conjugate(self, q):
        return 2.0 * super().conjugate(q / 2.0)


def test_a_changed_loss_may_not_keep_the_compiled_kernel():
    with pytest.raises(BadInput, match="native = None"):
        LinearClassifier(TwiceLogistic()).fit(X, Y)

    class InPython(TwiceLogistic):
        native = None

    class Renamed(losses.Logistic):
        name = "mine"

    model = LinearClassifier(InPython(), C=0.5).fit(X, Y)
    same = LinearClassifier(Renamed(), C=1.0).fit(X, Y)
    assert model.certificate_.certified
    assert model.certificate_.primal == pytest.approx(same.certificate_.primal, rel=1e-5)
