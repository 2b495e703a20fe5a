"""Compare each field of a claimed certificate with the values recomputed from the data.

The fields of a certificate depend on one another, so a claim can contradict itself; and each field can be compared with
a value recomputed from the rows. Only differences that rounding can explain are accepted, and that bound is computed
here, not read from the claim.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from fractions import Fraction
from typing import Any

import numpy as np

from linsep.certificates.curvature.certificate import fits_without_penalty
from linsep.certificates.exact import exact_objective
from linsep.certificates.optimality import Optimality, combine, relative
from linsep.certificates.parts import Part, chunks, score, vector_or_default, weigh
from linsep.certificates.reductions.relaxed import relaxations
from linsep.certificates.reductions.target_units import target_units
from linsep.data import Location, location_of
from linsep.errors import LinsepError
from linsep.losses import CoupledLoss, Loss
from linsep.penalties import ElasticNet, resolve
from linsep.problem import hard_margin
from linsep.problem.closing_rows import ROUNDOFF, score_share, steepest_slope
from linsep.solution import Explicit

#: Relative difference accepted between two numbers that follow from one another by a few operations.
_CLOSE = 1e-9
#: A few times the largest underflow error, in reported units.
_UNDERFLOW = 2.0**-1068
#: Accepted shortfall of a claimed error of w, relative to the recomputed one; if rounding is more than this share of
#: the gap, the claimed error may be as small as ``_ROUNDED`` times the recomputed one.
_PART, _ROUNDED = 0.01, 0.5
#: Largest shortfall of a recomputed bound against the claimed one: relative to tol, and relative to the objective.
_SHORT, _SHORTEST = 0.1, 1e-7
ANOTHER_OBJECTIVE = "The objective at the coefficients of the model is not the one claimed."
#: Shortfall of an exact dual point against a nearby floating-point one, in units of roundoff of the objective.
_EXACT_SHORT = 1024


def find_alteration(model: Any, parts: Sequence[Part]) -> str | None:
    """Return which parameter or fitted attribute of the estimator was changed after its fit, or None."""
    fits = getattr(model, "_fits", None)
    if fits is None:
        return None
    if len(fits) != len(parts):
        return f"The model has {len(fits)} fits for {len(parts)} subproblems."
    for fit, part in zip(fits, parts, strict=True):
        complaint = _altered_parameter(model, fit.recipe)
        if complaint:
            return complaint
        if part.tol != fit.recipe.tol:
            return f"The tolerance of the fit is {fit.recipe.tol!r}, but {part.tol!r} is to be checked."
        if not np.array_equal(part.W, fit.W):
            return "The coefficients of the model are not those of its fit."
        if isinstance(part.dual, Explicit) and len(part.dual.u) != part.X.shape[0]:
            return (
                f"The model was fitted to {len(part.dual.u)} rows, but {part.X.shape[0]} are given."
            )
    if not _alike(model.certificate_, combine([fit.certificate for fit in fits])):
        return "certificate_ is not the certificate of the fit."
    return None


def _altered_parameter(model: Any, recipe: Any) -> str | None:
    """Return which parameter differs from the one used in the fit, or None."""
    fitted = recipe.penalty
    asked = {
        "C": fitted.C,
        "l1_ratio": fitted.l1_ratio,
        "fit_intercept": recipe.fit_intercept,
        "tol": recipe.tol,
        "class_weight": getattr(model, "_class_weight", None),
    }
    for name, value in asked.items():
        # estimators that choose C and l1_ratio keep them in C_ and l1_ratio_
        now = getattr(model, f"{name}_", getattr(model, name, value))
        truth = isinstance(now, bool) and not isinstance(
            value, bool
        )  # True == 1.0, but no fit takes it
        if truth or now != value:
            return f"{name} is {now!r} now, but the model was fitted with {value!r}."
    if resolved_penalty(model, fitted) != fitted:
        return "penalty_factor or feature_groups are not those that the model was fitted with."
    if _current_loss(model, recipe.loss) != recipe.loss:
        return f"The parameters ask for another loss than {recipe.loss!r}, which was fitted."
    return None


def _current_loss(model: Any, fitted: Loss | CoupledLoss) -> Loss | CoupledLoss | None:
    """Loss defined by the current parameters of the model; None if they are invalid."""
    with suppress(LinsepError):
        return model._current_loss() if hasattr(model, "_current_loss") else fitted
    return None


def _alike(one: Optimality, other: Optimality) -> bool:
    """Return whether two certificates have identical fields, treating NaN as equal to NaN."""
    return type(one) is type(other) and repr(asdict(one)) == repr(asdict(other))


def resolved_penalty(model: Any, fitted: ElasticNet) -> ElasticNet | None:
    """Penalty defined by the model's current parameters, with C and l1_ratio of the fit; None if invalid."""
    plain = ElasticNet(fitted.C, fitted.l1_ratio)
    factor, groups = (getattr(model, name, None) for name in ("penalty_factor", "feature_groups"))
    names = getattr(model, "feature_names_in_", None)
    with suppress(LinsepError):
        return resolve(plain, factor, groups, model.n_features_in_, names)
    return None


def contradiction(
    claimed: Optimality,
    parts: Sequence[Part],
    found: Sequence[Optimality],
    curved: Sequence[Optimality],
) -> str | None:
    """Return the first statement of a claim that the data or the claim itself contradict, or None.

    ``curved`` holds proofs by curvature where the claim is one and that proves more, otherwise those of ``found``.
    """
    claims = claimed.parts if claimed.parts else (claimed,)
    if len(claims) != len(parts):
        return f"The claim has {len(claims)} parts, the model {len(parts)}."
    if claimed.parts:
        whole = combine(claims)
        for name in ("primal", "dual", "gap", "relative_gap", "coef_error", "rounding", "tol"):
            if not _is_close(getattr(claimed, name), getattr(whole, name)):
                return f"The claim contradicts itself: {name} does not follow from its parts."
        if claimed.certified != whole.certified or claimed.kind != whole.kind:
            return "The claim contradicts itself: it does not follow from its parts."
    for claim, part, proof, also in zip(claims, parts, found, curved, strict=True):
        complaint = inconsistency(claim, part) or _contradiction_with_rows(claim, part, proof, also)
        if complaint:
            return complaint
    return None


def _is_close(a: float, b: float) -> bool:
    if math.isinf(a) or math.isinf(b):
        return a == b
    return abs(a - b) <= _CLOSE * max(abs(a), abs(b))


def inconsistency(claim: Optimality, part: Part) -> str | None:
    """Describe how the fields of a claim contradict one another, or return None."""
    numbers = (claim.primal, claim.dual, claim.gap, claim.relative_gap, claim.coef_error)
    if any(math.isnan(x) for x in (*numbers, claim.rounding, claim.tol)):
        return "The claim contains NaN."
    if claim.tol != part.tol:
        return f"The claim is about tol={claim.tol!r}, the fit about tol={part.tol!r}."
    penalty = part.penalty
    penalised = penalty.kinked or (not penalty.absent and not part.loss.smooth)
    kinds = ("dual",) if penalised and not _may_be_relaxed(part) else ("dual", "local")
    exact = claim.kind == "exact" and claim.rounding == 0.0
    if claim.kind not in kinds and not exact:
        return f"No fit of this kind is proven by {claim.kind!r}."
    if claim.relative_gap < 0.0 or claim.coef_error < 0.0 or not claim.rounding >= 0.0:
        return "The claim contradicts itself: a bound is negative."
    if claim.certified != (claim.relative_gap <= claim.tol):
        return "The claim contradicts itself: certified must mean relative_gap <= tol."
    if not all(map(math.isfinite, (claim.primal, claim.dual, claim.gap, claim.rounding))):
        return "The claim contradicts itself: it is not finite." if claim.certified else None
    return _broken_identity(claim, part)


def _broken_identity(claim: Optimality, part: Part) -> str | None:
    """Describe which field of a finite claim does not follow from the others, or return None."""
    lam, unpenalised = part.penalty.modulus, fits_without_penalty(part.penalty, part.W)
    slack = _CLOSE * max(abs(claim.gap), claim.rounding) + 64 * ROUNDOFF * abs(claim.primal)
    slack += _UNDERFLOW
    excess = claim.gap - (claim.primal - claim.dual)
    most = math.inf if hard_margin(part.loss, part.penalty) else claim.rounding + slack
    if excess < -slack or excess > most:  # hard-margin solutions may need scaling up
        return "The claim contradicts itself: its gap is not primal minus dual."
    bounded = claim.rounding <= claim.gap + slack or hard_margin(part.loss, part.penalty)
    if claim.dual < 0.0 or not bounded:
        return "The claim contradicts itself: rounding is part of the gap."
    free = (unpenalised and claim.relative_gap == 0.0) or math.isinf(claim.relative_gap)
    scale = max(abs(claim.primal), abs(claim.dual))
    lost = _UNDERFLOW / scale if scale > 0.0 else 0.0  # relative error of a subnormal gap
    share = relative(claim.gap, claim.primal, claim.dual)
    if not free and not (
        _is_close(claim.relative_gap, share) or abs(claim.relative_gap - share) <= lost
    ):
        return "The claim contradicts itself: relative_gap is not gap over objective."
    if math.isfinite(claim.coef_error) and follows_from_gap(claim, part):
        ends = (claim.gap - 16 * ROUNDOFF * abs(claim.primal), claim.gap)
        strength = lam * part.penalty.scale  # equals 1 - l1_ratio, so nothing underflows
        low, high = (math.sqrt(2.0 * max(gap, 0.0) / strength) for gap in ends)
        if not (1.0 - 1e-6) * low <= claim.coef_error <= (1.0 + 1e-6) * high:
            return "The claim contradicts itself: coef_error does not follow from the gap."
    rounded = claim.rounding > 0.0 or claim.kind == "exact"
    if claim.gap > 0.0 and not (rounded and claim.coef_error > 0.0):
        return "The claim contradicts itself: a gap comes with rounding and an error of w."
    return None


def follows_from_gap(claim: Optimality, part: Part) -> bool:
    """Return whether the bound on the error of w is sqrt(2 gap/lam), as for dual bounds; others are recomputed."""
    return (
        claim.kind != "local"
        and part.penalty.modulus > 0.0
        and not hard_margin(part.loss, part.penalty)
    )


def _contradiction_with_rows(
    claim: Optimality, part: Part, found: Optimality, also: Optimality
) -> str | None:
    """Return the first statement of a claim that the rows contradict, or None. Either proof may support its bounds."""
    if not math.isfinite(claim.gap) or not math.isfinite(found.primal):
        return None
    scale = max(abs(claim.primal), abs(found.primal))
    slack = _slack(claim, part, found)
    if math.isnan(slack):  # the rounding bound overflows
        slack = math.inf
    unknown = math.isinf(claim.coef_error) and math.isfinite(found.coef_error)
    if unknown and claim.kind == "dual" and not _may_be_relaxed(part):
        return "The claim knows no bound on the error of w, but there is one."
    near, attained = slack, found.primal + slack
    if hard_margin(part.loss, part.penalty):
        attained += found.gap  # rounding may leave margins slightly below 1
    elif claim.certified:  # rounding is part of its gap
        near = min(slack, claim.rounding + found.rounding + 64 * ROUNDOFF * scale)
    if abs(claim.primal - found.primal) > near:
        return ANOTHER_OBJECTIVE
    if claim.dual > attained:
        return "The lower bound claimed lies above an objective that is attained."
    if all(claim.dual > each.dual + _shortfall(claim, part, each, slack) for each in (found, also)):
        return "The gap claimed is smaller than the one that can be proven."
    if claim.relative_gap == 0.0 < claim.gap and found.relative_gap != 0.0:
        return "The objective is not zero to working precision."
    if not follows_from_gap(claim, part) and claim.gap > 0.0:
        share = _ROUNDED if also.rounding > _PART * also.gap else 1.0 - _PART
        if claim.coef_error < share * min(found.coef_error, also.coef_error):
            return "The error of w claimed is smaller than the one that can be proven."
    return None


def is_another_value(claim: Optimality, part: Part, found: Optimality) -> bool:
    """Return whether the exact objective differs from the claimed one by more than the rounding that the claim states.

    Beside that rounding, a claim is rounded once to float64, and twice for a scaled loss. ``found`` is an exact proof;
    its objective, rounded too, decides unless the difference is close to that limit.
    """
    if not (claim.certified and math.isfinite(found.primal)) or hard_margin(
        part.loss, part.penalty
    ):
        return False
    apart, unit = abs(claim.primal - found.primal), ROUNDOFF * max(claim.primal, found.primal)
    if apart <= claim.rounding - 2.0 * unit or claim.primal == found.primal:
        return False
    roundings = 1 if part.loss.plain is part.loss else 2
    allowed = Fraction(claim.rounding) + roundings * Fraction(ROUNDOFF) * Fraction(claim.primal)
    return abs(Fraction(claim.primal) - exact_objective(part)) > allowed + Fraction(_UNDERFLOW)


def _shortfall(claim: Optimality, part: Part, found: Optimality, slack: float) -> float:
    """Largest amount by which the recomputed lower bound may fall short of the claimed one.

    Exact arithmetic improves its dual point until it reaches the claim. In floating point the bound differs by
    rounding, and by differences in the last bits of the unfolded dual point.
    """
    scale = max(abs(claim.primal), abs(found.primal))
    if found.kind == "exact":
        return 0.0 if claim.kind == "exact" else _EXACT_SHORT * ROUNDOFF * scale
    return slack + 2.0 * found.rounding + min(_SHORT * part.tol, _SHORTEST) * scale


def another_objective(claim: Optimality, part: Part, found: Optimality) -> bool:
    """Return whether the objective found is too far from the claimed one for better arithmetic to reconcile them."""
    scale = max(abs(claim.primal), abs(found.primal))
    return abs(claim.primal - found.primal) > 1e3 * _slack(claim, part, found) + 1e-3 * scale


def _slack(claim: Optimality, part: Part, found: Optimality) -> float:
    """Largest difference that rounding can explain between the claimed and the recomputed numbers."""
    slack = 64 * ROUNDOFF * max(abs(claim.primal), abs(found.primal))
    if not claim.kind == found.kind == "exact":
        slack += _allowance(part, found) + found.rounding
    if _may_be_relaxed(part):  # the reported objective may be that of a relaxed problem
        slack += min(claim.rounding, claim.gap)
    return slack


def _may_be_relaxed(part: Part) -> bool:
    """Return whether the bound may come from a relaxed problem, whose coefficients do not bound the error of w."""
    return isinstance(part.loss, Loss) and bool(relaxations(part.loss, part.penalty))


def _allowance(part: Part, found: Optimality) -> float:
    """Bound on the rounding errors of an objective and its lower bound in one plain pass, in reported units.

    Derived as in ``closing``, for sequential sums over all rows. Rows on a cluster are not read again; a multiple of
    the rounding bound found there is used instead.
    """
    if location_of(part.X) is Location.CLUSTER:
        return 64.0 * found.rounding
    units = target_units(part.loss, part.penalty, part.offset)
    if not units.plain:
        with np.errstate(over="ignore", under="ignore"):
            return float(np.ldexp(_allowance(units.part(part), found), units.objective))
    n, d = part.X.shape
    W = np.asarray(part.W, dtype=np.float64)
    sizes = np.abs(W)
    total = 0.0
    share, chain = 2.0 * score_share(d * W.shape[1]), (n + 64 + 16 * W.shape[1]) * ROUNDOFF
    with np.errstate(over="ignore", invalid="ignore"):
        for rows, block in chunks(part.X, part.sigma, part.offset, part.labels):
            s = vector_or_default(part.weight, rows, 1.0)
            reach = score(abs(block), sizes)
            if isinstance(part.loss, CoupledLoss):
                q = reach.max(axis=1)
                steep, value = (
                    np.full(len(s), 2.0),
                    part.loss.value(score(block, W), part.labels[rows]),
                )
            else:
                q, value, steep = _pointwise(part, rows, block, reach[:, 0], share)
            total += float(weigh(s, (share + chain) * steep * q + 4 * chain * value).sum())
        w = W[:-1]
        penalty = part.penalty.value(w if part.penalty.uniform else w[:, 0])
    return part.penalty.scale * (total + (w.size + 64) * ROUNDOFF * penalty)


def _pointwise(
    part: Part, rows: slice, block: Any, reach: Any, share: float
) -> tuple[Any, Any, Any]:
    """Return the sizes of the margins, the losses, and the steepest slopes (or dual variables) of some rows."""
    assert isinstance(part.loss, Loss)
    o, sign = (
        vector_or_default(part.offset, rows, 0.0),
        np.asarray(part.sigma[rows], dtype=np.float64),
    )
    m = sign * score(block, part.W)[:, 0] + o
    q = reach + np.abs(o)
    steep = steepest_slope(part.loss, m, share * q)
    if isinstance(part.dual, Explicit):
        u = np.abs(np.asarray(part.dual.u[rows], dtype=np.float64).reshape(-1))
        steep = np.maximum(steep, np.where(np.isfinite(u), u, 0.0))
    return q, part.loss.value(m), steep
