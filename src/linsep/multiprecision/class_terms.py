"""Objective terms of losses with one score per class.

The hinge loss of Crammer and Singer (``CrammerSinger``) has variables p >= 0 with sum 1 over the k classes of a row and
slacks t_c = top - (1[c != y] + z_c - z_y) >= 0, with p_c t_c = 0 at an optimum; the multinomial loss (``Multinomial``)
has p = softmax(z).
"""

from __future__ import annotations

from abc import abstractmethod
from decimal import Decimal, getcontext
from typing import Any

import numpy as np

from linsep.arrays import FloatArray
from linsep.exact.decimals import (
    DIGITS,
    ONE,
    ZERO,
    Decimals,
    count_work,
    decimals,
    floats,
    gram,
    zeros,
)
from linsep.multiprecision.terms import Change, Targets, Term, damping, longest_step

#: Cost of an exponential of 70 digits in multiply-adds.
_EXP = 20


def probabilities(z: Decimals) -> Decimals:
    """softmax(z) of each row."""
    count_work(_EXP * z.size * getcontext().prec / DIGITS)  # cost is quadratic in the digits
    top = z.max(axis=1)
    e = np.array([[(x - y).exp() for x in row] for row, y in zip(z, top, strict=True)])
    return e / e.sum(axis=1)[:, None]


def _float_probabilities(z: FloatArray) -> FloatArray:
    """softmax(z) of each row, in float64."""
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


class _Coupled(Term):
    """Loss of k scores and a label; theta stacks the coefficients of the classes."""

    def __init__(self, A: Decimals, labels: Any, s: Decimals, k: int) -> None:
        self.A, self.s, self.k = A, s, k
        self.n, self.p = A.shape
        self.own = zeros(self.n, k)
        self.own[np.arange(self.n), labels] = ONE
        self.labels = labels
        self.z = zeros(self.n, k)
        self.P: Decimals = np.full((self.n, k), ONE / k, dtype=object)

    def scores(self, step: Decimals) -> Decimals:
        """Changes of the scores along a step of theta."""
        count_work(self.A.size * self.k)
        return self.A @ step.reshape(self.k, self.p).T

    def _adjoint(self, values: Decimals) -> Decimals:
        return (self.A.T @ (self.s[:, None] * values)).T.ravel()

    @abstractmethod
    def _weights(self) -> Decimals:
        """D in the Hessians diag(D) - D D'/sum D of the rows."""

    def hessian(self) -> Decimals:
        """Second derivatives in theta, assembled from blocks of pairs of classes."""
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

    def _times_hessian(self, dz: Decimals) -> Decimals:
        """(diag D - D D'/sum D) dz for each row."""
        mean = (self.D * dz).sum(axis=1) / self.total
        return self.D * (dz - mean[:, None])


class Multinomial(_Coupled):
    """Multinomial loss."""

    def _weights(self) -> Decimals:
        return self.P

    def right_hand_side(self, targets: Targets) -> Decimals:
        """Return 0: there are no complementarity products."""
        return ZERO

    def change(self, step: Decimals, targets: Targets) -> Change:
        """Changes of the scores."""
        return (self.scores(step),)

    def max_step(self, change: Change, fraction: Decimal) -> Decimal:
        """Largest tried step on which the slope grows little faster than the curvature predicts."""
        dz = change[0]
        least = damping(max(dz.max(axis=1) - dz.min(axis=1)))
        own = np.arange(self.n), self.labels
        z, lead = floats(self.z - self.z[own][:, None]), floats(dz - dz[own][:, None])
        P, s = _float_probabilities(z), floats(self.s / max(self.s))[:, None]
        mean = (P * lead).sum(axis=1, keepdims=True)
        curvature = float((s * P * (lead - mean) * lead).sum())

        def increase(t: float) -> float:
            return float((s * (_float_probabilities(z + t * lead) - P) * lead).sum())

        return longest_step(least, curvature, increase)

    def advance(self, change: Change, t: Decimal) -> None:
        """Take a step of length t."""
        self.z = self.z + t * change[0]
        self.P = probabilities(self.z)

    def value(self) -> Decimal:
        """Sum of the losses, to float64 accuracy."""
        P = floats(self.P[np.arange(self.n), self.labels])
        with np.errstate(divide="ignore"):
            lost = np.minimum(-np.log(P), 1e6)
        total: Decimal = (self.s * decimals(lost)).sum()
        return total

    def excess(self, step: Decimals) -> Decimal:
        """Increase of the losses after a step of theta, to second order."""
        dz = self.scores(step)
        inner = (self.P * dz).sum(axis=1)
        spread = (self.P * dz * dz).sum(axis=1) - inner * inner
        total: Decimal = (self.s * (((self.P - self.own) * dz).sum(axis=1) + spread / 2)).sum()
        return total


class CrammerSinger(_Coupled):
    """Hinge loss of Crammer and Singer."""

    def __init__(self, A: Decimals, labels: Any, s: Decimals, k: int) -> None:
        super().__init__(A, labels, s, k)
        self.count = self.n * k
        self.t = 2 * ONE - (ONE - self.own)  # top = 2

    def _weights(self) -> Decimals:
        return self.P / self.t

    @property
    def affine(self) -> Targets:
        """Targets of the predictor: products of 0."""
        return zeros(self.n, self.k)

    def corrector_targets(self, change: Change, mu: Decimal) -> Targets:
        """Targets of the corrector: products of mu/s, with the second-order term."""
        dP, dt = change
        return (mu / self.s)[:, None] - dP * dt

    def centring_targets(self, mu: Decimal) -> Targets:
        """Targets for centring: products of mu/s."""
        return (mu / self.s)[:, None] + zeros(self.n, self.k)

    def _push(self, targets: Targets) -> tuple[Decimals, Decimals]:
        kappa = (targets - self.P * self.t) / self.t
        return kappa, kappa - self.D * (kappa.sum(axis=1) / self.total)[:, None]

    def right_hand_side(self, targets: Targets) -> Decimals:
        """-A'(s push)."""
        return -self._adjoint(self._push(targets)[1])

    def change(self, step: Decimals, targets: Targets) -> Change:
        """Changes of p and t."""
        dz = self.scores(step)
        kappa, push = self._push(targets)
        dP = self._times_hessian(dz) + push
        lead = dz - dz[np.arange(self.n), self.labels][:, None]
        top = (kappa.sum(axis=1) + (self.D * lead).sum(axis=1)) / self.total
        return dP, top[:, None] - lead

    def max_step(self, change: Change, fraction: Decimal) -> Decimal:
        """Largest step that keeps p and t nonnegative."""
        t = ONE
        for value, slope in zip((self.P, self.t), change, strict=True):
            for x, y in zip(value.ravel(), slope.ravel(), strict=True):
                if y < 0:
                    t = min(t, -x / y * fraction)
        return t

    def advance(self, change: Change, t: Decimal) -> None:
        """Take a step of length t."""
        self.P, self.t = self.P + t * change[0], self.t + t * change[1]

    def gap(self, change: Change | None = None, t: Decimal = ZERO) -> Decimal:
        """Sum of s times the complementarity products."""
        P, slack = self.P, self.t
        if change is not None:
            P, slack = P + t * change[0], slack + t * change[1]
        total: Decimal = (self.s[:, None] * P * slack).sum()
        return total

    def _leads(self) -> Decimals:
        """1[c != y] + z_c - z_y."""
        own = self.t[np.arange(self.n), self.labels]
        return own[:, None] - self.t

    def value(self) -> Decimal:
        """Sum of the losses."""
        total: Decimal = (self.s * self._leads().max(axis=1)).sum()
        return total

    def excess(self, step: Decimals) -> Decimal:
        """Losses after a step of theta minus current losses."""
        dz, leads = self.scores(step), self._leads()
        after = leads + dz - dz[np.arange(self.n), self.labels][:, None]
        total: Decimal = (self.s * (after.max(axis=1) - leads.max(axis=1))).sum()
        return total
