"""The duality gap in exact arithmetic, for losses made of parabolas and straight lines.

Floats are dyadic rationals, and so are then margins, losses, conjugates and all their sums. In the units
that users read, with r = l1_ratio,

    P = (1 - r)/2 |w|^2 + r |w|_1 + C sum s l(m)
    D = -C sum s (l*(-u) + u offset) - sum_j max(C |v_j| - r, 0)^2 / (2 (1 - r)),

where v = sum s sigma u x, no division occurs before the last step; there ``fractions.Fraction`` takes
over, as the balance of the intercept (see ``closing``) is a quotient. The dual point is the float one: any
u inside the domain of the conjugate proves a bound, however it was found. No rounding is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from linsep.certificates.optimality import Optimality
from linsep.certificates.recheck import Dual, dual_point, given, score
from linsep.dyadic import Dyadic, DyadicRows
from linsep.errors import Refused
from linsep.losses import (
    Absolute,
    CoupledLoss,
    Hinge,
    Huber,
    HuberisedHinge,
    Loss,
    Perceptron,
    Squared,
    SquaredHinge,
    zero_margin,
)
from linsep.penalties import ElasticNet

FloatArray = npt.NDArray[np.float64]

#: Numbers of X turned into integers at a time.
_CHUNK = 1 << 16


class _Formula(NamedTuple):
    """l(m) = value(r, width) / divisor(width) and l*(-u) + centre u, on dyadic numbers; r = centre - m."""

    value: Callable[[Dyadic, Dyadic], Dyadic]
    conjugate: Callable[[Dyadic, Dyadic], Dyadic]
    divided_by_width: bool = False


def _bend(r: Dyadic, width: Dyadic) -> Dyadic:
    """r^2/2 up to the width, straight beyond; r >= 0."""
    bent = r.at_most(width)
    return bent * (r - bent.halved())


def _parabola(u: Dyadic, _: Dyadic) -> Dyadic:
    return (u * u).halved(2)


_FORMULAS: dict[type[Loss], _Formula] = {
    Squared: _Formula(lambda r, _: r * r, _parabola),
    SquaredHinge: _Formula(lambda r, _: r.positive() * r.positive(), _parabola),
    HuberisedHinge: _Formula(
        lambda r, width: _bend(r.positive(), width),
        lambda u, width: (width * u * u).halved(),
        divided_by_width=True,
    ),
    Huber: _Formula(lambda r, width: _bend(abs(r), width), lambda u, _: (u * u).halved()),
    Hinge: _Formula(lambda r, _: r.positive(), lambda u, _: u - u),
    Absolute: _Formula(lambda r, _: abs(r), lambda u, _: u - u),
    Perceptron: _Formula(lambda r, _: r.positive(), lambda u, _: u - u),
}


@dataclass(eq=False)
class _Sums:
    """The sums of the closing pass, exactly; index 0 is the plus side, 1 the minus side."""

    loss: Fraction
    conj: list[Fraction]
    mass: list[Fraction]
    v: list[list[Fraction]]

    def balance(self) -> None:
        """Shrink the heavier side so that the dual point suits a free intercept."""
        heavy = int(self.mass[1] > self.mass[0])
        if self.mass[heavy]:
            kappa = self.mass[1 - heavy] / self.mass[heavy]
            self.conj[heavy] *= kappa
            self.v[heavy] = [kappa * x for x in self.v[heavy]]


def exact_certificate(  # noqa: PLR0913
    loss: Loss | CoupledLoss,
    X: Any,
    sigma: FloatArray,
    offset: FloatArray | None,
    weight: FloatArray | None,
    W: FloatArray,
    dual: Dual,
    *,
    penalty: ElasticNet,
    fit_intercept: bool,
    tol: float,
) -> Optimality:
    """Primal, dual and gap as rational numbers, compared with tol exactly; W is (d+1, 1)."""
    formula = _FORMULAS.get(type(loss))  # type: ignore[arg-type]
    if formula is None or isinstance(loss, CoupledLoss):
        known = ", ".join(kind.name for kind in _FORMULAS)
        why = (
            "takes values that are not rational numbers, so exact arithmetic cannot hold them"
            if loss.smooth
            else "couples the classes, which exact arithmetic does not cover"
        )
        raise Refused(
            f"exact=True: the {loss.name} loss {why}. It is offered for {known}. Use "
            "verify(model, X, y): its gap includes a guaranteed allowance for rounding."
        )
    sums = _sum_up(loss, formula, X, (sigma, offset, weight), W, dual)
    if fit_intercept:
        sums.balance()
    w = [Fraction(x) for x in np.asarray(W, dtype=np.float64)[:-1, 0].tolist()]
    if math.isinf(penalty.C):
        return _without_penalty(sums, tol)
    C, r = Fraction(penalty.C), Fraction(penalty.l1_ratio)
    flat = r * Fraction(getattr(penalty, "l1_scale", 1.0))  # weight of |w|_1
    primal = (1 - r) / 2 * sum(x * x for x in w) + flat * sum(map(abs, w)) + C * sums.loss
    conj = sums.conj[0] + sums.conj[1]
    v = [C * abs(a + b) for a, b in zip(*sums.v, strict=True)]
    if r < 1:
        gain, cost = -C * conj, sum(max(x - flat, Fraction(0)) ** 2 for x in v) / (1 - r)
        # A dual point that is too long is shrunk to the best multiple of itself, as in closing.shrinkage.
        shorter = r == 0 and 0 < gain < cost
        bound = gain * gain / (2 * cost) if shorter else gain - cost / 2
    else:
        bound = -C * conj / max([*v, Fraction(1)])
    return _conclude(primal, bound, tol, strength=1 - r)


def _without_penalty(sums: _Sums, tol: float) -> Optimality:
    residual = any(a + b != 0 for a, b in zip(*sums.v, strict=True))
    if residual and sums.loss > 0:
        raise Refused(
            "exact=True with C=inf: without a penalty a dual point proves a bound only if "
            "sum s sigma u x is exactly zero, which no rounded dual point reaches. Use "
            "verify(model, X, y), or fit with a large finite C."
        )
    bound = Fraction(0) if residual else -(sums.conj[0] + sums.conj[1])
    return _conclude(sums.loss, bound, tol, strength=Fraction(0))


def _conclude(primal: Fraction, bound: Fraction, tol: float, *, strength: Fraction) -> Optimality:
    bound = max(bound, Fraction(0))  # every loss has minimum 0
    gap = primal - bound
    coef_error = math.inf
    if strength > 0:
        coef_error = math.nextafter(math.sqrt(_above(2 * gap / strength)), math.inf)
    return Optimality(
        primal=float(primal),
        dual=-_above(-bound),
        gap=_above(gap),
        relative_gap=_above(gap / primal) if gap else 0.0,
        coef_error=coef_error if gap else 0.0 if strength > 0 else math.inf,
        tol=tol,
        certified=gap <= Fraction(tol) * primal,
        kind="exact",
    )


def _above(x: Fraction) -> float:
    """The smallest float that is not below x, or the next one."""
    nearest = float(x)
    return nearest if Fraction(nearest) >= x else math.nextafter(nearest, math.inf)


def _blocks(X: Any) -> Iterator[tuple[slice, FloatArray, Any]]:
    """Yield (rows, dense block, its columns); a sparse block keeps the columns it uses."""
    n, d = X.shape
    sparse = sp.issparse(X)
    height = max(1, min(_CHUNK // max(d, 1), 256) if sparse else _CHUNK // max(d, 1))
    for start in range(0, n, height):
        rows = slice(start, min(start + height, n))
        block = X[rows].astype(np.float64)
        columns = np.unique(block.indices) if sparse else np.arange(d)
        yield rows, block[:, columns].toarray() if sparse else block, columns


def _sum_up(
    loss: Loss,
    formula: _Formula,
    X: Any,
    vectors: tuple[Any, Any, Any],
    W: FloatArray,
    dual: Dual,
) -> _Sums:
    d = X.shape[1]
    width, centre = Dyadic.of(getattr(loss, "width", 1.0)), Dyadic.of(zero_margin(loss))
    theta = np.asarray(W, dtype=np.float64)[:, 0]
    total = Fraction(0)
    conj, mass = [Fraction(0)] * 2, [Fraction(0)] * 2
    v = [[Fraction(0)] * d for _ in range(2)]
    for rows, block, columns in _blocks(X):
        floats = [
            given(a, rows, default) for a, default in zip(vectors, (1.0, 0.0, 1.0), strict=True)
        ]
        sign, o, s = map(Dyadic.of, floats)
        matrix = DyadicRows.of(block)
        m = sign * (matrix.dot(Dyadic.of(theta[columns])) + Dyadic.of(theta[-1])) + o
        total += (s * formula.value(centre - m, width)).sum()
        all_columns = X[rows].astype(np.float64)
        at = floats[0] * score(all_columns, theta[:, None])[:, 0] + floats[1]
        u = Dyadic.of(dual_point(loss, dual, rows, all_columns, floats[0], floats[1], at))
        push, terms = s * sign * u, s * (formula.conjugate(u, width) + u * (o - centre))
        for side, mask in enumerate((push.num >= 0, push.num < 0)):
            part = Dyadic(np.where(mask, push.num, 0), push.exp)
            conj[side] += terms.take(mask.astype(bool)).sum()
            mass[side] += abs(part).sum()
            sums = matrix.transposed_dot(part).fractions()
            for j, x in zip(columns.tolist(), sums, strict=True):
                v[side][j] += x
    if formula.divided_by_width:
        total /= Fraction(float(getattr(loss, "width", 1.0)))
    return _Sums(total, conj, mass, v)
