"""Numerical check of the formulas and facts of a user-defined loss.

A certificate is only as good as the conjugate it is computed with. The Fenchel-Young inequality at all pairs of margins
and slopes, with equality at the slope of each margin, relates value, slope and conjugate; the facts are compared with
the formulas. The check evaluates finitely many margins, and tolerates rounding errors.
"""

from __future__ import annotations

import math

import numpy as np

from linsep.arrays import FloatArray
from linsep.errors import BadInput, Refused
from linsep.losses.loss import Loss, zero_margin

_MARGINS = np.concatenate([np.linspace(-8.0, 8.0, 65), np.linspace(-0.96, 1.96, 32)])
#: Relative errors of the user's formulas that are attributed to rounding.
_FORGIVEN = 1e-6
#: What the compiled kernel of a loss computes.
_FORMULAS = ("value", "slope", "curvature", "conjugate", "domain", "params")


def check_laws(loss: Loss) -> None:
    """Raise if formulas or facts of a user-defined convex loss contradict each other; built-in losses are skipped."""
    loss = loss.plain
    if type(loss).__module__.startswith("linsep.") or not loss.convex:
        return
    _check_kernel(loss)
    m = _MARGINS + (zero_margin(loss) - 1.0)
    with np.errstate(all="ignore"):
        value, slope = _evaluate(loss, "value", m), _evaluate(loss, "slope", m)
        kept = np.isfinite(value) & np.isfinite(slope)
        m, value, slope = m[kept], value[kept], slope[kept]
        if len(m) == 0:
            raise _contradiction(loss, "value or slope is infinite at every margin from -8 to 8")
        _check_conjugate(loss, m, value, slope)
        _check_curvature(loss, m, slope)
        _check_facts(loss, m, value, slope)


def _check_kernel(loss: Loss) -> None:
    """Refuse a subclass that changes the formulas of a loss of linsep, but is computed by its compiled kernel."""
    if loss.native is None:
        return
    kind = type(loss)
    ours = next((base for base in kind.__mro__ if base.__module__.startswith("linsep.")), Loss)
    changed = [name for name in _FORMULAS if getattr(kind, name) is not getattr(ours, name)]
    if changed:
        raise BadInput(
            f"The loss {kind.__name__} changes {' and '.join(changed)} of {ours.__name__}, but its native = "
            f"{loss.native!r} names the compiled kernel of that loss. Write native = None in the class."
        )


def _evaluate(loss: Loss, formula: str, at: FloatArray) -> FloatArray:
    found = np.asarray(getattr(loss, formula)(at), np.float64)
    if found.shape != at.shape:
        raise BadInput(
            f"{formula} of the loss {loss.name!r} must return one number for each that it is given: {len(at)} gave an "
            f"array of shape {found.shape}."
        )
    if np.isnan(found).any():
        where = at[np.flatnonzero(np.isnan(found))[0]]
        raise BadInput(f"{formula} of the loss {loss.name!r} is NaN at {where:g}.")
    return found


def _check_conjugate(loss: Loss, m: FloatArray, value: FloatArray, slope: FloatArray) -> None:
    low, high = loss.domain
    q = np.clip(slope, -high, -low)
    outside = int(np.argmax(np.abs(slope - q)))
    if abs(slope[outside] - q[outside]) > _FORGIVEN * (1.0 + abs(slope[outside])):
        raise _contradiction(
            loss,
            f"-slope({m[outside]:g}) = {-slope[outside]:g} lies outside of domain = ({low:g}, {high:g})",
        )
    conjugate = _evaluate(loss, "conjugate", q)
    # l(m) + l*(q) >= q m for every margin (rows) and slope (columns), with equality at the slope of the margin
    size = (
        1.0 + np.abs(value)[:, None] + np.abs(np.multiply.outer(m, q)) + np.abs(value + slope * m)
    )
    excess = (value[:, None] + conjugate - np.multiply.outer(m, q)) / size
    i, j = np.unravel_index(int(np.argmin(excess)), excess.shape)
    if excess[i, j] < -_FORGIVEN:
        raise _contradiction(
            loss,
            f"value({m[i]:g}) + conjugate({q[j]:g}) = {value[i] + conjugate[j]:.6g} must be at least the product "
            f"{q[j] * m[i]:.6g}",
        )
    k = int(np.argmax(np.diag(excess)))
    if excess[k, k] > _FORGIVEN:
        raise _contradiction(
            loss,
            f"value({m[k]:g}) + conjugate({q[k]:g}) = {value[k] + conjugate[k]:.6g} must equal the product "
            f"{q[k] * m[k]:.6g}, because {q[k]:g} is the slope there",
        )
    if (
        low <= 0.0 <= high
        and not abs(float(_evaluate(loss, "conjugate", np.zeros(1))[0])) <= _FORGIVEN
    ):
        raise _contradiction(
            loss, "conjugate(0) must be 0, because the infimum of a loss must be 0"
        )


def _check_curvature(loss: Loss, m: FloatArray, slope: FloatArray) -> None:
    order = np.argsort(m)
    m, slope = m[order], slope[order]
    for gap in (1, 5, 25):
        length, rise = m[gap:] - m[:-gap], slope[gap:] - slope[:-gap]
        floor = loss.curvature_floor(0.5 * (m[gap:] + m[:-gap]), 0.5 * length)
        error = _FORGIVEN * (1.0 + np.abs(slope[gap:]) + np.abs(slope[:-gap]))
        short = np.flatnonzero(~(rise >= floor * length - error))
        if len(short):
            i = short[0]
            raise _contradiction(
                loss,
                f"curvature_floor exceeds the mean curvature {rise[i] / length[i]:g} between the margins {m[i]:g} and "
                f"{m[i + gap]:g}",
            )
        bound = loss.curvature_bound
        if loss.smooth and math.isfinite(bound) and (rise > bound * length + error).any():
            raise _contradiction(loss, f"the curvature exceeds curvature_bound = {bound:g}")


def _check_facts(loss: Loss, m: FloatArray, value: FloatArray, slope: FloatArray) -> None:
    low, high = loss.domain
    u = np.linspace(max(low, -4.0), min(high, 4.0), 17)
    conjugate, centre = _evaluate(loss, "conjugate", -u), zero_margin(loss)
    q, epsilon = loss.conjugate_quadratic, 0.0
    if loss.dead_zone is not None:
        q, epsilon = loss.dead_zone
    if q is not None:
        declared = q * u * u + epsilon * np.abs(u) - centre * u
        wrong = np.flatnonzero(
            ~(np.abs(conjugate - declared) <= _FORGIVEN * (1.0 + np.abs(declared)))
        )
        if len(wrong):
            i = wrong[0]
            fact = "conjugate_quadratic" if loss.dead_zone is None else "dead_zone"
            raise _contradiction(
                loss,
                f"by {fact} and the zero margin {centre:g}, conjugate({-u[i]:g}) must be {declared[i]:.6g}, but it is "
                f"{conjugate[i]:.6g}",
            )
    if loss.recedes and (slope > 0.0).any():
        raise _contradiction(loss, f"recedes is True, but slope({m[slope > 0.0][0]:g}) is positive")
    beyond = m >= centre
    if loss.flat_beyond_margin and (np.abs(value[beyond]) > _FORGIVEN).any():
        raise _contradiction(
            loss, f"flat_beyond_margin is True, but value is not 0 beyond {centre:g}"
        )


def _contradiction(loss: Loss, what: str) -> BadInput:
    return BadInput(
        f"The loss {loss.name!r} contradicts itself, so no certificate could be trusted: {what}. Correct its formulas "
        "or facts; the page 'Adding a loss' lists them."
    )


def require_convex(loss: Loss) -> Loss:
    """Return the loss, or raise if it is not convex, because duality then proves nothing about its minimum."""
    if not loss.convex:
        raise Refused(
            f"the loss {loss.name!r} is not convex, so its minimum cannot be certified; use "
            "linsep.ZeroOneClassifier, which minimises the number of errors, with a proof."
        )
    return loss
