"""Guarantees: the certificate, verified again for the report, and bounds on the error."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linsep import bounds
from linsep.bounds import Bound
from linsep.certificates import Optimality, verify
from linsep.errors import CertificateError, LinsepError
from linsep.report import formatting as words
from linsep.report.evaluation import Content, Evaluation, scores
from linsep.report.subject import Subject
from linsep.zero_one import ZeroOne

_VERIFY_WORK = 2e9  # multiplications up to which the certificate is recomputed for the report
_PAC_BAYES_SIZE = 2e7  # entries of X up to which the PAC-Bayes bound is computed


@dataclass
class Proof:
    """The certificate in words."""

    state: str  # "proven", "open", "broken", "none"
    headline: str
    sentences: list[str] = field(default_factory=list)
    facts: list[tuple[str, str]] = field(default_factory=list)


def proof_facts(content: Content) -> dict[str, Any]:
    """Return the values of the section on the proof of optimality."""
    return {"proof": proof(content.subject)}


def proof(subject: Subject) -> Proof:
    """Describe the certificate in words, after verifying it independently."""
    c = getattr(subject.model, "certificate_", None)
    if isinstance(c, ZeroOne):
        return _fewest_errors(subject, c)
    if not isinstance(c, Optimality):
        return Proof(
            "none",
            "No optimality is claimed",
            [f"A {type(subject.model).__name__} comes without a certificate of optimality."],
        )
    checked, complaint = _check(subject)
    facts = [
        ("Objective at these coefficients", f"{c.primal:.12g}"),
        ("Proven lower bound for all coefficients", f"{c.dual:.12g}"),
        ("Gap, rounding included", words.tiny(c.gap)),
        ("Relative gap", words.tiny(c.relative_gap)),
        ("Tolerance (tol)", f"{c.tol:g}"),
        (
            "Largest possible error of the coefficients",
            words.tiny(c.coef_error) if np.isfinite(c.coef_error) else "no bound",
        ),
        ("Kind of proof", _KINDS[c.kind]),
        *(
            [("Passes over the data", words.number(float(subject.model.n_passes_)))]
            if hasattr(subject.model, "n_passes_")
            else []
        ),
        ("Checked again for this page", checked),
    ]
    if complaint:
        return Proof("broken", "The certificate does not hold for these rows", [complaint], facts)
    sentences = [
        f"The objective, penalty plus loss, is {c.primal:.9g} at the coefficients of this model. It is proven that no "
        f"coefficients can bring it more than {words.tiny(c.gap)} below that."
    ]
    if np.isfinite(c.coef_error):
        sentences.append(
            f"The vector of coefficients is within {words.tiny(c.coef_error)} of the optimal one (Euclidean distance)."
        )
    if c.parts:
        held = sum(part.certified for part in c.parts)
        sentences.append(
            f"One problem for each class: {held} of {len(c.parts)} are proven optimal."
        )
    if not c.certified:
        return Proof(
            "open",
            f"Not proven optimal to {c.tol:g}: the gap is {words.tiny(c.relative_gap)}",
            [*sentences, str(c).split("; ")[-1].capitalize() + "."],
            facts,
        )
    near = f"within {words.tiny(c.gap)} of its minimum (a relative {words.tiny(c.relative_gap)})"
    headline = f"Proven optimal: the objective is {near if c.gap else 'exactly its minimum'}"
    return Proof("proven", headline, sentences, facts)


def _fewest_errors(subject: Subject, c: ZeroOne) -> Proof:
    """Describe the proof of a model whose objective is the number of errors."""
    checked, complaint = _check(subject)
    facts = [
        ("Errors on the training rows", words.number(c.errors)),
        ("No hyperplane makes fewer than", words.number(c.lower_bound)),
        ("Kind of proof", _METHODS[c.method]),
        ("Witnesses of inseparability", words.count(len(c.witnesses))),
        ("Checked again for this page", checked),
    ]
    if complaint:
        return Proof("broken", "The certificate does not hold for these rows", [complaint], facts)
    text = (
        f"The hyperplane gets rows of total weight {words.number(c.errors)} wrong, and it is proven that every "
        f"hyperplane gets at least {words.number(c.lower_bound)} wrong."
    )
    if c.proven:
        return Proof("proven", "Proven: no hyperplane makes fewer errors", [text], facts)
    return Proof("open", "Not proven that no hyperplane makes fewer errors", [text], facts)


_METHODS = {
    "separable": "no error is needed",
    "thresholds": "all thresholds of the one feature were tried",
    "sweep": "all lines through two points were tried",
    "cover": "witnesses of inseparability, and the fewest rows that meet all of them",
}
_KINDS = {
    "dual": "duality: a feasible dual point bounds the objective from below",
    "local": "curvature of the loss around the solution",
    "exact": "duality in exact rational arithmetic",
}


def _check(subject: Subject) -> tuple[str, str]:
    """Return the result of ``verify``, and its message if it fails."""
    model, train = subject.model, subject.train
    if not (hasattr(model, "_verification_parts") or hasattr(model, "_verify")):
        return "no", ""
    size = train.entries
    width = (subject.coef.shape[1] + 1) if subject.regularisation == np.inf else 1
    if size * len(subject.coef) * width > _VERIFY_WORK:
        return "no, it would take long: call linsep.verify", ""
    try:
        verify(model, train.seen, train.y, train.weight)
    except CertificateError as error:
        if _says_so_itself(model, error):
            return "yes: the gap is as stated", ""
        return "yes, and it failed", str(error)
    except LinsepError as error:
        return f"no: {error}", ""
    return "yes, by linsep.verify, which uses no solver", ""


def _says_so_itself(model: Any, error: CertificateError) -> bool:
    """Return whether ``verify`` failed only because the gap is too large, which the model reports itself."""
    found, claimed = error.certificate, model.certificate_
    if isinstance(claimed, ZeroOne):
        return not claimed.proven and found is claimed
    return (
        not claimed.certified
        and found is not None
        and bool(np.isclose(found.primal, model.certificate_.primal, rtol=1e-9))
    )


def bound_facts(content: Content) -> dict[str, Any]:
    """Return the values of the section on bounds."""
    found, notes = error_bounds(content.subject, content.evaluated)
    return {"bounds": found, "bound_notes": notes}


def error_bounds(subject: Subject, evaluated: Evaluation) -> tuple[list[Bound], list[str]]:
    """Compute bounds on the error on new rows, and notes on those that do not apply."""
    found: list[Bound] = []
    notes: list[str] = []
    if subject.classes is None:
        return [], ["Bounds on errors of classification do not apply to a regression."]
    n, d = subject.train.X.shape
    share = np.bincount(subject.train.labels[1]) / n
    minority = float(1.0 - share.max())
    if evaluated.held_out:
        wrong, count = int(evaluated.wrong.sum()), len(evaluated.wrong)
        found.append(bounds.clopper_pearson(wrong, count, minority=minority))
        found.append(bounds.clopper_pearson(wrong, count, side="lower"))
    else:
        notes.append(
            "No held-out rows were given, so there is no Clopper-Pearson bound, which would be the sharpest."
        )
    if subject.several:
        notes.append("Bounds from the training rows alone are for two classes.")
        return found, notes
    if not (subject.train.weight is None and getattr(subject.model, "class_weight", None) is None):
        notes.append("Rows are weighted: bounds from the training rows alone are left out.")
        return found, notes
    return found + _from_training(subject, n, d, minority, notes), notes


def _from_training(
    subject: Subject, n: int, d: int, minority: float, notes: list[str]
) -> list[Bound]:
    """Compute PAC-Bayes, VC and compression bounds, which need no held-out rows."""
    assert subject.classes is not None
    rows = subject.train
    found: list[Bound] = []
    second = subject.classes[1]
    wrong = sum(
        int(
            np.count_nonzero(
                (scores(subject, rows, here)[:, 0] >= 0) != (np.asarray(rows.y[here]) == second)
            )
        )
        for here in rows.places()
    )
    if subject.steps is not None:
        notes.append(
            "The columns were computed by a step fitted to the training rows, so the PAC-Bayes bound does not apply."
        )
    elif rows.sparse or rows.entries > _PAC_BAYES_SIZE:
        notes.append("The PAC-Bayes bound is computed for dense rows up to 20 million numbers.")
    elif len(subject.train.labels[0]) == 2 and np.any(subject.coef):
        b = float(subject.intercept[0]) if getattr(subject.model, "fit_intercept", True) else None
        X = rows.X[:]
        y = np.asarray(rows.y)
        found.append(bounds.pac_bayes_margin(subject.coef[0], b, X, y, minority=minority))
    homogeneous = not getattr(subject.model, "fit_intercept", True)
    dimension = bounds.vc_dimension(d, homogeneous)
    found.append(bounds.vc_bound(wrong / n, n, dimension, constants="proven", minority=minority))
    kept = getattr(subject.model, "support_", None)
    if kept is not None and len(kept) < n and subject.regularisation == np.inf:
        found.append(bounds.sample_compression(len(kept), 0, n, minority=minority))
    return found
