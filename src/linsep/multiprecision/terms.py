"""Terms of an objective as the interior point method sees them: losses of rows, absolute penalties, coupled classes.

A loss made of parabolas and lines has, in the residual r = centre - m, the conjugate l*(-u) = q u^2 - centre u on an
interval [low, high]. At an optimum

    r = 2 q u + a - c,    a (high - u) = 0,    c (u - low) = 0,    a, c >= 0,

and the interior point method sets s times the two products to mu > 0 (``Boxes``). An absolute penalty l1 |w_j| is such
a term with r = -w_j, q = 0 and [low, high] = [-1, 1]. The logistic and exponential losses (``Curved``) need no a, c:
u = -l'(m). The hinge of Crammer and Singer (``Simplices``) has p >= 0 with sum 1 for the k classes of a row and slacks
t_c = top - (1[c != y] + z_c - z_y) >= 0, p_c t_c = 0; the multinomial loss (``Softmax``) p = softmax(z).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from decimal import Decimal
from math import isfinite
from typing import Any, Protocol

import numpy as np

from linsep.exact.decimals import (
    ONE,
    ZERO,
    Decimals,
    FloatArray,
    decimals,
    floats,
    gram,
    only,
    zeros,
)

Slopes = Callable[[Decimals], tuple[Decimals, Decimals]]
Aims = Any
Moved = tuple[Decimals, ...]


def logistic_slopes(r: Decimals) -> tuple[Decimals, Decimals]:
    """u = -l'(-r) = 1/(1 + e^-r) of the logistic loss, and 1/l''."""
    e = np.array([(-x).exp() for x in r], dtype=object)
    return ONE / (ONE + e), (ONE + e) * (ONE + e) / e


def exponential_slopes(r: Decimals) -> tuple[Decimals, Decimals]:
    """u = -l'(-r) = e^r of the exponential loss, and 1/l''."""
    e = np.array([x.exp() for x in r], dtype=object)
    return e, ONE / e


def probabilities(z: Decimals) -> Decimals:
    """softmax(z), row by row."""
    top = z.max(axis=1)
    e = np.array([[(x - y).exp() for x in row] for row, y in zip(z, top, strict=True)])
    return e / e.sum(axis=1)[:, None]


def damping(change: Decimal) -> Decimal:
    """log(1 + t)/t: the step that surely decreases a loss with |l'''| <= l'' if margins change by t (Bach 2010)."""
    return (ONE + change).ln() / change if change > Decimal("1e-3") else ONE


def longest_step(least: Decimal, bend: Decimal, grown: Callable[[Decimal], Decimal]) -> Decimal:
    """1, 1/2, 1/4, ... or ``least``: the first t on which the slope grows by at most 1.5 t bend."""
    t = ONE
    while t > least and grown(t) > Decimal("1.5") * t * bend:
        t /= 2
    return max(t, least)


class Map(Protocol):
    """The linear map theta -> scores of a term."""

    def apply(self, theta: Decimals) -> Decimals:
        """B theta."""
        ...

    def adjoint(self, values: Decimals) -> Decimals:
        """B'values."""
        ...

    def gram(self, h: Decimals) -> Decimals:
        """B' diag(h) B."""
        ...


class Matrix:
    """A map given by its rows."""

    def __init__(self, B: Decimals) -> None:
        self.B = B

    def apply(self, theta: Decimals) -> Decimals:
        """B theta."""
        return self.B @ theta

    def adjoint(self, values: Decimals) -> Decimals:
        """B'values."""
        return self.B.T @ values

    def gram(self, h: Decimals) -> Decimals:
        """B' diag(h) B."""
        return gram(self.B, h)


class Coordinates:
    """Some coefficients, each in the units of the user."""

    def __init__(self, places: Any, units: Decimals, order: int) -> None:
        self.places, self.units, self.order = places, units, order

    def apply(self, theta: Decimals) -> Decimals:
        """The coefficients."""
        return theta[self.places] * self.units

    def adjoint(self, values: Decimals) -> Decimals:
        """The vector with the values in these places."""
        out = zeros(self.order)
        out[self.places] = values * self.units
        return out

    def gram(self, h: Decimals) -> Decimals:
        """A diagonal matrix."""
        H = zeros(self.order, self.order)
        H[self.places, self.places] = h * self.units * self.units
        return H


class Term(ABC):
    """A part of the objective with its dual variables; the methods are those of a primal-dual step."""

    count: int = 0  #: products that are set to mu
    penalised: Any = ()  #: places of the coefficients that are a penalty's
    scale: Decimal = ONE  #: of the residuals
    s: Decimals

    @abstractmethod
    def hessian(self) -> Decimals:
        """Second derivatives in theta once all else is eliminated."""

    @abstractmethod
    def gradient(self) -> Decimals:
        """First derivatives in theta at the dual variables."""

    @abstractmethod
    def pull(self, aims: Aims) -> Decimals:
        """What products that miss their aims add to minus the gradient."""

    @abstractmethod
    def move(self, step: Decimals, aims: Aims) -> Moved:
        """Changes of the variables of this term along a step of theta."""

    @abstractmethod
    def reach(self, moved: Moved, share: Decimal) -> Decimal:
        """Largest step, at most 1, that keeps to this share of the way to the boundary."""

    @abstractmethod
    def advance(self, moved: Moved, t: Decimal) -> None:
        """Take the step."""

    @abstractmethod
    def value(self) -> Decimal:
        """The losses, to float64 at least."""

    @abstractmethod
    def excess(self, step: Decimals) -> Decimal:
        """Losses after a step of theta minus losses now."""

    @property
    def affine(self) -> Aims:
        """Aims of the predictor: products of 0."""
        return None

    def corrected(self, moved: Moved, mu: Decimal) -> Aims:
        """Aims of the corrector: products of mu, and what the predictor leaves out."""
        return None

    def centred(self, mu: Decimal) -> Aims:
        """Aims without the second order."""
        return None

    def gap(self, moved: Moved | None = None, t: Decimal = ZERO) -> Decimal:
        """s times the products, after a step."""
        return ZERO

    def miss(self) -> Decimal:
        """What the linear conditions miss, in units of the objective."""
        return ZERO


class Boxes(Term):
    """Losses of parabolas and lines."""

    def __init__(
        self,
        rows: Map,
        shift: Decimals,
        s: Decimals,
        quadratic: float,
        low: float,
        high: float,
    ) -> None:
        self.map, self.s, self.r = rows, s, shift.copy()
        n = len(shift)
        self.q = Decimal(quadratic)
        self.above, self.below = np.full(n, isfinite(high)), np.full(n, isfinite(low))
        self.high, self.low = (Decimal(x if isfinite(x) else 0.0) for x in (high, low))
        self.count = int(self.above.sum() + self.below.sum())
        self._start()

    def _start(self) -> None:
        """u in the middle of the interval, a and c that make up for the residual."""
        n = len(self.r)
        size = max(sum((abs(x) for x in self.r), ZERO) / max(n, 1), Decimal("1e-300"))
        size = self.scale = size if any(self.r) else ONE
        if self.above.all() and self.below.all():
            self.u = np.full(n, (self.high + self.low) / 2, dtype=object)
        elif self.q > 0:
            u = self.r / (2 * self.q)
            if self.below.all():
                u = np.array([self.low + max(abs(x), size / (2 * self.q)) for x in u], dtype=object)
            self.u = u
        else:
            self.u = np.full(n, self.low + 1, dtype=object)
        rest = self.r - 2 * self.q * self.u
        reach = np.array([(x * x + 4 * size * size).sqrt() for x in rest], dtype=object)
        self.a, self.c = only(self.above, (reach + rest) / 2), only(self.below, (reach - rest) / 2)

    def _distances(self) -> tuple[Decimals, Decimals]:
        up = np.where(self.above, self.high - self.u, np.full(len(self.u), ONE, dtype=object))
        down = np.where(self.below, self.u - self.low, np.full(len(self.u), ONE, dtype=object))
        return up, down

    def hessian(self) -> Decimals:
        """B' diag(s h) B with 1/h = 2 q + a/(high - u) + c/(u - low)."""
        self.up, self.down = self._distances()
        self.h = ONE / (2 * self.q + self.a / self.up + self.c / self.down)
        return self.map.gram(self.s * self.h)

    def gradient(self) -> Decimals:
        """-B'(s u)."""
        return -self.map.adjoint(self.s * self.u)

    @property
    def affine(self) -> Aims:
        """Products of 0."""
        return zeros(len(self.u)), zeros(len(self.u))

    def corrected(self, moved: Moved, mu: Decimal) -> Aims:
        """Products of mu/s, and the second order."""
        _, du, da, dc = moved
        return only(self.above, mu / self.s + da * du), only(self.below, mu / self.s - dc * du)

    def centred(self, mu: Decimal) -> Aims:
        """Products of mu/s."""
        return only(self.above, mu / self.s), only(self.below, mu / self.s)

    def _errors(self, aims: Aims) -> tuple[Decimals, Decimals, Decimals]:
        first, second = aims[0] - self.a * self.up, aims[1] - self.c * self.down
        first, second = only(self.above, first), only(self.below, second)
        rho = self.r - 2 * self.q * self.u - self.a + self.c
        return first, second, rho - first / self.up + second / self.down

    def pull(self, aims: Aims) -> Decimals:
        """B'(s h push)."""
        return self.map.adjoint(self.s * self.h * self._errors(aims)[2])

    def move(self, step: Decimals, aims: Aims) -> Moved:
        """Changes of r, u, a and c."""
        first, second, push = self._errors(aims)
        dr = -self.map.apply(step)
        du = (dr + push) * self.h
        da = only(self.above, (first + self.a * du) / self.up)
        dc = only(self.below, (second - self.c * du) / self.down)
        return dr, du, da, dc

    def reach(self, moved: Moved, share: Decimal) -> Decimal:
        """To the ends of the intervals, and to a, c >= 0."""
        _, du, da, dc = moved
        up, down = self._distances()
        t = ONE
        pairs = ((self.a, da, self.above), (up, -du, self.above))
        for value, change, mask in (*pairs, (self.c, dc, self.below), (down, du, self.below)):
            for x, y in zip(value[mask], change[mask], strict=True):
                if y < 0:
                    t = min(t, -x / y * share)
        return t

    def advance(self, moved: Moved, t: Decimal) -> None:
        """Take the step."""
        dr, du, da, dc = moved
        self.r, self.u = self.r + t * dr, self.u + t * du
        self.a, self.c = self.a + t * da, self.c + t * dc

    def gap(self, moved: Moved | None = None, t: Decimal = ZERO) -> Decimal:
        """s times the products."""
        a, c, (up, down) = self.a, self.c, self._distances()
        if moved is not None:
            _, du, da, dc = moved
            a, c, up, down = a + t * da, c + t * dc, up - t * du, down + t * du
        total: Decimal = (self.s * (only(self.above, a * up) + only(self.below, c * down))).sum()
        return total

    def miss(self) -> Decimal:
        """s |u rho|."""
        rho = self.r - 2 * self.q * self.u - self.a + self.c
        return sum((abs(x) for x in self.s * self.u * rho), ZERO)

    def _losses(self, r: Decimals) -> Decimal:
        """max over the interval of u r - q u^2."""
        total = ZERO
        for x, s, above, below in zip(r, self.s, self.above, self.below, strict=True):
            if self.q > 0:
                u = x / (2 * self.q)
            else:
                u = self.high if x > 0 and above else self.low
            u = min(u, self.high) if above else u
            u = max(u, self.low) if below else u
            total += s * u * (x - self.q * u)
        return total

    def value(self) -> Decimal:
        """The losses."""
        return self._losses(self.r)

    def excess(self, step: Decimals) -> Decimal:
        """Losses after a step of theta minus losses now."""
        return self._losses(self.r - self.map.apply(step)) - self._losses(self.r)


class Absolute(Boxes):
    """l1 times the absolute values of some coefficients."""

    def __init__(self, places: Any, units: Decimals, order: int, l1: float) -> None:
        self.penalised = places
        none, strength = zeros(len(places)), np.full(len(places), Decimal(l1), dtype=object)
        super().__init__(Coordinates(places, units, order), none, strength, 0.0, -1.0, 1.0)


class Curved(Term):
    """Losses that are curved everywhere, their dual variables slaved to the margins."""

    def __init__(self, rows: Map, shift: Decimals, s: Decimals, slopes: Slopes) -> None:
        self.map, self.s, self.r, self.slopes = rows, s, shift.copy(), slopes
        self.u, self.inverse = slopes(self.r)

    def hessian(self) -> Decimals:
        """B' diag(s l'') B."""
        return self.map.gram(self.s / self.inverse)

    def gradient(self) -> Decimals:
        """-B'(s u)."""
        return -self.map.adjoint(self.s * self.u)

    def pull(self, aims: Aims) -> Decimals:
        """Nothing."""
        return ZERO

    def move(self, step: Decimals, aims: Aims) -> Moved:
        """The change of r."""
        return (-self.map.apply(step),)

    def reach(self, moved: Moved, share: Decimal) -> Decimal:
        """A step on which the slope grows little faster than the curvature predicts."""
        dr = moved[0]
        least = damping(max((abs(x) for x in dr), default=ZERO))
        bend = (self.s * dr * dr / self.inverse).sum()
        return longest_step(least, bend, lambda t: self._slope(dr, t) - self._slope(dr, ZERO))

    def _slope(self, dr: Decimals, t: Decimal) -> Decimal:
        """Derivative of the losses along the step."""
        total: Decimal = (self.s * dr * self.slopes(self.r + t * dr)[0]).sum()
        return total

    def advance(self, moved: Moved, t: Decimal) -> None:
        """Take the step."""
        self.r = self.r + t * moved[0]
        self.u, self.inverse = self.slopes(self.r)

    def value(self) -> Decimal:
        """The sum of s u, which is at most the losses: -l' <= l for the logistic and the exponential loss."""
        total: Decimal = (self.s * self.u).sum()
        return total

    def excess(self, step: Decimals) -> Decimal:
        """First and second order."""
        dr = -self.map.apply(step)
        total: Decimal = (self.s * dr * (self.u + dr / self.inverse / 2)).sum()
        return total


class _Coupled(Term):
    """Losses of k scores and a label; theta holds the coefficients of one class after those of another."""

    def __init__(self, A: Decimals, labels: Any, s: Decimals, k: int) -> None:
        self.A, self.s, self.k = A, s, k
        self.n, self.p = A.shape
        self.own = zeros(self.n, k)
        self.own[np.arange(self.n), labels] = ONE
        self.labels = labels
        self.z = zeros(self.n, k)
        self.P: Decimals = np.full((self.n, k), ONE / k, dtype=object)

    def scores(self, step: Decimals) -> Decimals:
        """Changes of the scores."""
        return self.A @ step.reshape(self.k, self.p).T

    def _adjoint(self, values: Decimals) -> Decimals:
        return (self.A.T @ (self.s[:, None] * values)).T.ravel()

    @abstractmethod
    def _weights(self) -> Decimals:
        """D of the Hessians diag(D) - D D'/sum D of the rows."""

    def hessian(self) -> Decimals:
        """Second derivatives, block by block."""
        D = self.D = self._weights()
        self.total = D.sum(axis=1)
        p, k = self.p, self.k
        H = np.empty((k * p, k * p), dtype=object)
        for c in range(k):
            for e in range(c, k):
                h = (D[:, c] if c == e else ZERO) - D[:, c] * D[:, e] / self.total
                block = gram(self.A, self.s * h)
                H[c * p : (c + 1) * p, e * p : (e + 1) * p] = block
                H[e * p : (e + 1) * p, c * p : (c + 1) * p] = block
        return H

    def gradient(self) -> Decimals:
        """A'(s (P - onehot))."""
        return self._adjoint(self.P - self.own)

    def _curved(self, dz: Decimals) -> Decimals:
        """(diag D - D D'/sum D) dz, row by row."""
        mean = (self.D * dz).sum(axis=1) / self.total
        return self.D * (dz - mean[:, None])


class Softmax(_Coupled):
    """The multinomial loss."""

    def _weights(self) -> Decimals:
        return self.P

    def pull(self, aims: Aims) -> Decimals:
        """Nothing."""
        return ZERO

    def move(self, step: Decimals, aims: Aims) -> Moved:
        """The change of the scores."""
        return (self.scores(step),)

    def reach(self, moved: Moved, share: Decimal) -> Decimal:
        """A step on which the slope grows little faster than the curvature predicts."""
        dz = moved[0]
        least = damping(max(dz.max(axis=1) - dz.min(axis=1)))
        mean = (self.P * dz).sum(axis=1)
        bend = (self.s * ((self.P * dz * dz).sum(axis=1) - mean * mean)).sum()
        return longest_step(least, bend, lambda t: self._grown(dz, t))

    def _grown(self, dz: Decimals, t: Decimal) -> Decimal:
        """Change of the derivative of the losses along the step."""
        change = probabilities(self.z + t * dz) - self.P
        total: Decimal = (self.s * (change * dz).sum(axis=1)).sum()
        return total

    def advance(self, moved: Moved, t: Decimal) -> None:
        """Take the step."""
        self.z = self.z + t * moved[0]
        self.P = probabilities(self.z)

    def value(self) -> Decimal:
        """The losses to float64."""
        P = floats(self.P[np.arange(self.n), self.labels])
        with np.errstate(divide="ignore"):
            lost = np.minimum(-np.log(P), 1e6)
        total: Decimal = (self.s * decimals(lost)).sum()
        return total

    def excess(self, step: Decimals) -> Decimal:
        """First and second order."""
        dz = self.scores(step)
        inner = (self.P * dz).sum(axis=1)
        spread = (self.P * dz * dz).sum(axis=1) - inner * inner
        total: Decimal = (self.s * (((self.P - self.own) * dz).sum(axis=1) + spread / 2)).sum()
        return total


class Simplices(_Coupled):
    """The hinge of Crammer and Singer."""

    def __init__(self, A: Decimals, labels: Any, s: Decimals, k: int) -> None:
        super().__init__(A, labels, s, k)
        self.count = self.n * k
        self.t = 2 * ONE - (ONE - self.own)  # top = 2

    def _weights(self) -> Decimals:
        return self.P / self.t

    @property
    def affine(self) -> Aims:
        """Products of 0."""
        return zeros(self.n, self.k)

    def corrected(self, moved: Moved, mu: Decimal) -> Aims:
        """Products of mu/s, and the second order."""
        dP, dt = moved
        return (mu / self.s)[:, None] - dP * dt

    def centred(self, mu: Decimal) -> Aims:
        """Products of mu/s."""
        return (mu / self.s)[:, None] + zeros(self.n, self.k)

    def _push(self, aims: Aims) -> tuple[Decimals, Decimals]:
        kappa = (aims - self.P * self.t) / self.t
        return kappa, kappa - self.D * (kappa.sum(axis=1) / self.total)[:, None]

    def pull(self, aims: Aims) -> Decimals:
        """-A'(s push)."""
        return -self._adjoint(self._push(aims)[1])

    def move(self, step: Decimals, aims: Aims) -> Moved:
        """Changes of p and t."""
        dz = self.scores(step)
        kappa, push = self._push(aims)
        dP = self._curved(dz) + push
        lead = dz - dz[np.arange(self.n), self.labels][:, None]
        top = (kappa.sum(axis=1) + (self.D * lead).sum(axis=1)) / self.total
        return dP, top[:, None] - lead

    def reach(self, moved: Moved, share: Decimal) -> Decimal:
        """To p, t >= 0."""
        t = ONE
        for value, change in zip((self.P, self.t), moved, strict=True):
            for x, y in zip(value.ravel(), change.ravel(), strict=True):
                if y < 0:
                    t = min(t, -x / y * share)
        return t

    def advance(self, moved: Moved, t: Decimal) -> None:
        """Take the step."""
        self.P, self.t = self.P + t * moved[0], self.t + t * moved[1]

    def gap(self, moved: Moved | None = None, t: Decimal = ZERO) -> Decimal:
        """s times the products."""
        P, slack = self.P, self.t
        if moved is not None:
            P, slack = P + t * moved[0], slack + t * moved[1]
        total: Decimal = (self.s[:, None] * P * slack).sum()
        return total

    def _leads(self) -> Decimals:
        """1[c != y] + z_c - z_y."""
        own = self.t[np.arange(self.n), self.labels]
        return own[:, None] - self.t

    def value(self) -> Decimal:
        """The losses."""
        total: Decimal = (self.s * self._leads().max(axis=1)).sum()
        return total

    def excess(self, step: Decimals) -> Decimal:
        """Losses after a step of theta minus losses now."""
        dz, leads = self.scores(step), self._leads()
        after = leads + dz - dz[np.arange(self.n), self.labels][:, None]
        total: Decimal = (self.s * (after.max(axis=1) - leads.max(axis=1))).sum()
        return total


def scaled_rows(A: FloatArray, units: Decimals, sigma: FloatArray | None = None) -> Decimals:
    """The rows in units of the columns, times sigma."""
    B = decimals(A) * units
    return B if sigma is None else B * decimals(sigma)[:, None]
