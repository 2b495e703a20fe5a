"""Verify the certificate of a fitted model on its data (``verify``).

Everything is recomputed from the coefficients, the dual point and the rows, in numpy or in exact arithmetic, without
any solver or compiled kernel.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np
from sklearn.pipeline import Pipeline

from linsep.arguments import flag
from linsep.certificates.attained import is_above_attained
from linsep.certificates.claims import (
    ANOTHER_OBJECTIVE,
    another_objective,
    contradiction,
    find_alteration,
    follows_from_gap,
    inconsistency,
    is_another_value,
)
from linsep.certificates.closing import from_sums
from linsep.certificates.curvature.certificate import LARGEST, local_certificate
from linsep.certificates.curvature.softmax import softmax_local_certificate
from linsep.certificates.exact import ANY, Goal, exact_certificate
from linsep.certificates.group import group_certificate, repair_dual
from linsep.certificates.margin import margin_certificate
from linsep.certificates.optimality import (
    Optimality,
    combine,
    exact_zero,
    nothing_proven,
    preference,
)
from linsep.certificates.parts import (
    Part,
    add_sums,
    closing_sums_numpy,
    in_memory,
    longest_sum,
    nothing_to_fit,
    partition_sums,
)
from linsep.certificates.precise import precise_certificate
from linsep.certificates.reductions.loss_factor import loss_factor
from linsep.certificates.reductions.relaxed import relaxations
from linsep.certificates.reductions.target_units import target_units
from linsep.certificates.softmax import from_softmax_sums, softmax_sums_numpy
from linsep.certificates.softmax_precise import precise_coupled_certificate
from linsep.data import Location, location_of
from linsep.errors import BadInput, CertificateError, Refused
from linsep.losses import CoupledLoss, Loss
from linsep.monitoring import Job
from linsep.pipelines import require_parts
from linsep.problem import hard_margin

#: Work up to which the local bound is tried even if duality suffices.
_SECOND_BOUND_WORK = 2e8
#: Largest number of entries of X for which a failed floating-point check is repeated in exact arithmetic.
EXACT_SIZE = 100_000
#: Relative gap, as a fraction of tol, below which no relaxed problem is tried for a better bound.
_SHARP = 1e-3


class Verifiable(Protocol):
    """A fitted model that exposes its subproblems."""

    certificate_: Optimality

    def _verification_parts(
        self, X: Any, y: Any, sample_weight: Any, offset: Any = None
    ) -> Iterable[Any]: ...


def verify(
    model: Verifiable | Pipeline,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    exact: bool = False,
    *,
    offset: Any = None,
) -> Optimality:
    """Recompute the certificate of a fitted model, independently of the solver.

    The sums of the certificate are recomputed from the data, in numpy and with the formulas of ``linsep.losses``;
    neither a solver nor compiled code is called.

    Parameters
    ----------
    model : fitted estimator, or Pipeline that ends in one
        A model of linsep; :func:`audit` takes models of other libraries. For a pipeline, the certificate is that of its
        last step on the transformed rows.
    X, y : array-likes
        The rows that the model was fitted to. X may be a scan (``linsep.scan``), which may include y and the weights.
    sample_weight : array (n,), optional
        The weights of the fit.
    exact : bool, default False
        Compute in rational and ball arithmetic, so that no rounding bound is needed, except where only a simpler
        problem proves the claim. The logistic, exponential and multinomial losses need python-flint.
    offset : array (n,), optional
        The offset of the fit.

    Returns
    -------
    Optimality
        The recomputed certificate.

    Raises
    ------
    CertificateError
        If the certificate does not reach the model's ``tol``, or contradicts ``model.certificate_``.

    See Also
    --------
    audit : How far is a model of another library from its optimum?
    screen : Which coefficients are proven to be zero?

    Notes
    -----
    With P the objective and D(u) the dual function at the stored dual point u, D(u) <= minimum <= P(w, b), rounding
    included. The relative gap is the gap divided by the larger of |P| and |D|.

    References
    ----------
    Boyd and Vandenberghe, Convex Optimization, 2004, chapter 5.

    Higham, Accuracy and Stability of Numerical Algorithms, 2002, chapter 3.

    Examples
    --------
    >>> from linsep import LogisticRegression, datasets, verify
    >>> X, y = datasets.overlapping(100)
    >>> model = LogisticRegression().fit(X, y)
    >>> verify(model, X, y).certified
    True
    >>> verify(model, X, -y)                                    # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    linsep.errors.CertificateError: ...
    """
    flag("exact", exact)
    opened = require_parts(model, "verify")
    model, X = opened.model, opened.transform(X)
    if hasattr(model, "_verify"):  # models that are not certified by duality check themselves
        found_by_itself: Optimality = model._verify(X, y, sample_weight, exact)
        return found_by_itself
    if hasattr(model, "separated_"):
        raise BadInput(
            f"a {type(model).__name__} minimises nothing, so there is no optimum to verify; certificate_ proves "
            "whether the classes are separable, and certificate_.check(X, y) checks that (with several classes: each "
            "entry of certificate_, for y == classes_[c])."
        )
    if not hasattr(model, "_verification_parts"):
        raise BadInput(
            f"this {type(model).__name__} (of {type(model).__module__}) keeps its certificate, but no dual point to "
            "recompute it from; use linsep.audit(model, X, y), which proves how far it is from its optimum."
        )
    if "coef_" in vars(model) and not vars(model).get("_fits"):
        raise BadInput(
            f"this {type(model).__name__} has coefficients, but the fit they come from is missing: it was altered. "
            "Fit it again."
        )
    with Job("verify"), np.errstate(over="ignore", invalid="ignore"):
        given = (X, y, sample_weight) if offset is None else (X, y, sample_weight, offset)
        parts = [Part(*part) for part in model._verification_parts(*given)]
        claimed = model.certificate_
        claims = claimed.parts or (claimed,) * len(parts)
        complaint = find_alteration(model, parts)
        each = [  # an altered model is rejected anyway, so no better proof is sought
            recheck_part(part, exact=exact) if complaint else _recheck_claim(part, claim, exact)
            for part, claim in zip(parts, claims, strict=False)
        ]
        found = combine(each)
        if not complaint:
            curved = [
                _as_claimed(part, claim, proof)
                for part, claim, proof in zip(parts, claims, each, strict=False)
            ]
            complaint = contradiction(claimed, parts, each, curved) or _refutation(
                claims, parts, each
            )
    if complaint:
        raise CertificateError(
            f"The certificate of the model does not hold for these data. Claimed: {claimed}. "
            f"Found: {found.describe(advice=False)}. {complaint} Pass verify the same rows, order, targets and weights "
            "as fit; if they are the same, the model or its certificate was altered: fit again.",
            found,
        )
    if not found.certified:
        raise CertificateError(
            f"The model is not proven optimal to tol={found.tol:g} on these data. Claimed: {claimed}. "
            f"Found: {found}.",
            found,
        )
    return found


def _refutation(
    claims: Iterable[Optimality], parts: Iterable[Part], found: Iterable[Optimality]
) -> str | None:
    """What exact objectives contradict: that of the coefficients, or one near them that is below the bound claimed."""
    for claim, part, proof in zip(claims, parts, found, strict=False):
        if proof.kind != "exact":
            continue
        rows = in_memory(part)
        if is_another_value(claim, rows, proof):
            return ANOTHER_OBJECTIVE
        if claim.dual > proof.dual and is_above_attained(claim.dual, rows):
            return "The lower bound claimed lies above an objective that is attained."
    return None


def _as_claimed(part: Part, claim: Optimality, found: Optimality) -> Optimality:
    """Proof of the claimed kind where ``found``, obtained otherwise, proves less; else ``found``."""
    weaker = claim.gap < found.gap or claim.coef_error < found.coef_error
    if not weaker or follows_from_gap(claim, part):
        return found
    return recheck_part(part, curvature=claim.kind == "local")


def recheck_part(
    part: Part, *, exact: bool = False, goal: Goal = ANY, curvature: bool = False
) -> Optimality:
    """Certify one subproblem with numpy only; exact proofs are improved until they reach the goal.

    ``curvature`` requests the local bound wherever there is one, even if it is expensive.
    """
    if exact:  # rows are read into memory, and weights are multiplied by the factor of the loss
        part = in_memory(part)
    else:
        factor = loss_factor(part.loss, part.penalty)
        if not factor.plain:
            plain = recheck_part(factor.part(part), curvature=curvature)
            return factor.certificate(plain, part.tol)
    units = target_units(part.loss, part.penalty, part.offset)
    if not units.plain:
        goal = goal.times_power_of_two(-units.objective)
        part = units.part(part)
        return units.certificate(recheck_part(part, exact=exact, goal=goal, curvature=curvature))
    if not part.loss.convex:
        raise Refused(f"The {part.loss.name} loss is not convex: duality proves nothing about it.")
    if not np.isfinite(part.W).all():
        raise CertificateError(
            "The coefficients of the model are not all finite.", nothing_proven(part.tol)
        )
    if not part.fit_intercept and part.W[-1].any():
        raise CertificateError(
            "The model has an intercept although it was fitted without one.",
            nothing_proven(part.tol),
        )
    if hard_margin(part.loss, part.penalty):
        return margin_certificate(part, exact=exact)
    if isinstance(part.loss, Loss) and nothing_to_fit(part.loss, part.sigma, part.offset, part.W):
        return exact_zero(part.tol)
    if exact:
        proven = exact_certificate(repair_dual(part), goal)
        # If no exact dual point is found, a relaxed problem may still prove the claim, with its rounding bounded.
        return proven if proven.certified else min([proven, *_by_relaxation(part)], key=preference)
    found = _recheck(part, curvature, goal)
    if found.relative_gap <= _SHARP * part.tol or _reaches(found, goal):
        return found
    return min([found, *_by_relaxation(part)], key=preference)


def _recheck_claim(part: Part, claim: Optimality, exact: bool) -> Optimality:
    """Best certificate of a subproblem that has a claim.

    If no floating-point dual point proves the claim, exact arithmetic may find one. Exact arithmetic also decides where
    rounding could hide that the rows are different ones.
    """
    found = recheck_part(part, exact=exact, goal=Goal.of(claim))
    reached = found.certified and found.gap <= claim.gap
    # rounding bounds are rarely used up to a half, so a larger difference may have another cause
    reached = reached and abs(found.primal - claim.primal) <= claim.rounding / 2.0
    if exact or reached or not claim.certified:
        return found
    if math.prod(part.X.shape) > EXACT_SIZE or inconsistency(claim, part):
        return found
    if another_objective(claim, part, found):
        return found
    with contextlib.suppress(Refused):
        best = recheck_part(part, exact=True, goal=Goal.of(claim))
        return best if best.certified else min(found, best, key=preference)
    return found


def _reaches(found: Optimality, goal: Goal) -> bool:
    """Return whether a proof reaches the gap of a claim, up to its rounding."""
    return found.certified and goal is not ANY and found.gap - found.rounding <= goal.gap


def _falls_short(found: Optimality, goal: Goal) -> bool:
    """Return whether a proof misses tol, or is much weaker than the claim, which may be based on doubled precision."""
    sharp = found.relative_gap <= _SHARP * found.tol
    return not found.certified or (found.gap > 2 * goal.gap and not sharp)


def _recheck(part: Part, curvature: bool = False, goal: Goal = ANY) -> Optimality:
    """Certify by duality, and by curvature where that may be better or is requested."""
    if not part.penalty.uniform:
        return group_certificate(part)
    lam, l1 = part.penalty.l2, part.penalty.l1
    local_only = lam == 0.0 and l1 == 0.0
    best = None if local_only else _by_duality(part)
    pointwise = not isinstance(part.loss, CoupledLoss)
    if best is not None and _falls_short(best, goal):
        precise = precise_certificate if pointwise else precise_coupled_certificate
        best = min(best, precise(part), key=preference)
    if local_only or (best is not None and _second_bound_pays(part, best, curvature)):
        local = (
            local_certificate(part, finest=curvature)
            if pointwise
            else softmax_local_certificate(part)
        )
        if best is None or curvature:
            return local
        best = min(best, local, key=preference)
    assert best is not None
    return best


def _by_relaxation(part: Part) -> Iterator[Optimality]:
    """Certificates from relaxed problems, without the negligible terms."""
    if isinstance(part.loss, CoupledLoss) or location_of(part.X) is Location.CLUSTER:
        return
    mass = float(part.X.shape[0]) if part.weight is None else float(np.sum(part.weight))
    for simple in relaxations(part.loss, part.penalty):
        dual = simple.dual(part.dual)
        if dual is not None:
            found = _recheck(part._replace(loss=simple.loss, penalty=simple.penalty, dual=dual))
            yield simple.certificate(found, part.W, mass)


def _second_bound_pays(part: Part, dual: Optimality, asked: bool) -> bool:
    """Return whether to try the local bound: if requested, if duality falls short, or if it is cheap."""
    n, d = part.X.shape
    size = (d + 1) * part.W.shape[1]
    if part.penalty.l1 > 0.0 or not part.loss.smooth or size > LARGEST:
        return False
    return asked or not dual.certified or (n + size) * size**2 <= _SECOND_BOUND_WORK


def _by_duality(part: Part) -> Optimality:
    settings: dict[str, Any] = {"fit_intercept": part.fit_intercept, "tol": part.tol}
    settings["rows_per_sum"] = longest_sum(part.X)
    if isinstance(part.loss, CoupledLoss):
        coupled = add_sums(partition_sums(part, softmax_sums_numpy))
        return from_softmax_sums(coupled, part.W[:-1], part.loss, part.penalty, **settings)
    sums = add_sums(partition_sums(part, closing_sums_numpy))
    return from_sums(sums, part.W[:-1, 0], part.penalty, **settings)
