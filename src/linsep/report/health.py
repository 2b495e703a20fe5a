"""Facts about the data that do not depend on the model: sizes, useless columns, class balance, repeated rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from linsep.data import Location, location_of
from linsep.errors import BadInput
from linsep.report import formatting as words
from linsep.report.columns import MOST_PAIRS, Columns
from linsep.report.evaluation import Content
from linsep.report.repeats import LARGEST, repeats
from linsep.report.subject import MOST_CLASSES, Rows, Subject
from linsep.tables import Encoder, from_frame
from linsep.tables.planning import count_gaps

SHOWN = 12  # maximum number of names in a list


@dataclass
class Health:
    """Facts as (name, value) pairs, findings as sentences."""

    facts: list[tuple[str, str]] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    classes: list[tuple[str, str, str]] = field(default_factory=list)  # label, rows, share
    classes_left_out: int = 0


def facts(content: Content) -> dict[str, Any]:
    """Return the values of the section on the data."""
    return {"health": health(content), "schema": _schema(content.subject)}


def health(content: Content) -> Health:
    """Collect the facts and findings about the data."""
    subject, evaluated, found = content.subject, content.evaluated, content.columns
    rows, d = subject.train, len(subject.names)
    out = Health()
    out.facts.append(("Rows the model was fitted to", words.count(len(rows))))
    if rows.weight is not None:
        out.facts.append(("Sum of their weights", words.number(rows.total, 6)))
    if subject.test is not None:
        out.facts.append(("Held-out rows", words.count(len(subject.test))))
    out.facts.append(("Features of the model", words.count(d)))
    out.facts.append(("Nonzero entries", words.percent(found.filled)))
    out.facts.append(("Stored as", _storage(rows)))
    _missing(subject, out)
    _useless(subject, found, out)
    _scales(subject, found, out)
    if len(rows) <= d:
        out.findings.append(
            f"There are {words.count(d)} columns and {words.plural(len(rows), 'row')}: without a penalty such rows "
            "can be fitted by chance, so only held-out rows tell how good the model is."
        )
    _repeats(subject, out)
    if subject.classes is not None:
        _balance(subject, out)
    if evaluated.unknown:
        out.findings.append(
            f"{words.plural(evaluated.unknown, 'held-out row')} with a label that the model does not know: counted as "
            "errors, left out of curves and tables."
        )
    return out


def _storage(rows: Rows) -> str:
    kind = "sparse matrix (CSR)" if rows.sparse else "dense array"
    return f"{kind} of {rows.X.dtype}"


def _missing(subject: Subject, out: Health) -> None:
    """Report missing values in the original rows, before an encoder or an imputer filled them."""
    if subject.steps is None:
        out.facts.append(("Missing values", "none (rows with missing values are not accepted)"))
        return
    gone = _gaps_by_column(subject)
    if gone is None:
        out.facts.append(("Missing values", "unknown: the rows were already encoded"))
        return
    total = sum(gone.values())
    share = total / max(1, len(subject.train) * len(gone))
    out.facts.append(
        ("Missing values", f"{words.count(total)} ({words.percent(share)} of the table)")
    )
    worst = sorted(gone, key=lambda name: -gone[name])[:5]
    listed = [f"{words.name(c)} ({words.count(gone[c])})" for c in worst if gone[c]]
    if listed:
        out.findings.append("Columns with most missing values: " + ", ".join(listed) + ".")


def _gaps_by_column(subject: Subject) -> dict[str, int] | None:
    """Return column -> number of missing values; None if the original rows are not available."""
    raw = subject.train.raw
    if isinstance(raw, list | tuple):
        raw = np.asarray(raw)
    stored = location_of(raw) is Location.DISK
    if isinstance(raw, np.ndarray) or sp.issparse(raw) or stored:
        if isinstance(subject.steps, Encoder):
            return _training_gaps(subject.steps, len(subject.train))
        if stored:
            return None
        if sp.issparse(raw):
            raw = sp.csc_array(raw)
            gone = np.add.reduceat(np.append(np.isnan(raw.data), 0), raw.indptr[:-1])
            gone[np.diff(raw.indptr) == 0] = 0
        else:
            gone = np.not_equal(raw, raw).sum(axis=0)  # only NaN differs from itself
        return {f"x{j}": int(count) for j, count in enumerate(np.atleast_1d(gone))}
    try:
        table = from_frame(raw)
    except BadInput:
        return None
    if not table.batches:
        return None
    return {name: count_gaps(table.values(name)) for name in table.columns}


def _training_gaps(encoder: Encoder, n: int) -> dict[str, int] | None:
    """Return the missing values counted when the encoder was fitted, if it was fitted to n rows."""
    gaps: dict[str, int] | None = getattr(encoder, "gaps_", None)
    return gaps if getattr(encoder, "n_samples_seen_", None) == n else None


def _useless(subject: Subject, found: Columns, out: Health) -> None:
    constant = np.flatnonzero(found.constant)
    pairs = found.duplicates
    out.facts.append(("Constant columns", words.count(len(constant))))
    more = "at least " if len(pairs) >= MOST_PAIRS else ""
    out.facts.append(("Duplicate columns", more + words.count(len(pairs))))
    if len(constant):
        out.findings.append(
            f"Constant, so of no use: {_list_names([subject.names[j] for j in constant[:SHOWN]], len(constant))}."
        )
    if pairs:
        listed = [
            f"{words.name(subject.names[j])} = {words.name(subject.names[i])}"
            for i, j in pairs[:SHOWN]
        ]
        out.findings.append(
            "Equal in every row, so only the sum of their coefficients matters: "
            + _list_names(listed, len(pairs))
            + "."
        )


def _scales(subject: Subject, found: Columns, out: Health) -> None:
    spread = found.std[found.std > 0]
    if not len(spread):
        return
    low, high = float(spread.min()), float(spread.max())
    out.facts.append(
        ("Standard deviations of the columns", f"{words.number(low, 3)} to {words.number(high, 3)}")
    )
    penalised = subject.regularisation is not None and math.isfinite(subject.regularisation)
    if penalised and high > 1e3 * low:
        out.findings.append(
            f"Scales differ by a factor of {words.number(high / low, 2)}. The fit is optimal all the same, "
            "but the penalty shrinks the coefficients of columns with small values most: standardise the columns if "
            "their units are arbitrary."
        )


def _repeats(subject: Subject, out: Health) -> None:
    """Report equal rows, equal rows with different targets, and held-out rows that are also training rows."""
    rows, test = subject.train, subject.test
    if rows.entries > LARGEST:
        out.facts.append(("Repeated rows", "not counted: too many rows"))
        return
    found = repeats(rows, test)
    out.facts.append(("Repeated rows", words.count(found.repeated)))
    if found.contradictory and subject.classes is not None:
        out.findings.append(
            f"{words.plural(found.contradictory, 'row')} with the same numbers as an earlier row and another label: no "
            "classifier gets all of them right."
        )
    if test is not None and found.leaked is not None:
        leaked = words.count(found.leaked)
        out.facts.append(("Held-out rows that are also training rows", leaked))
        if found.leaked:
            out.findings.append(
                f"{leaked} of {words.count(len(test))} held-out rows are also among the training rows, so "
                "the held-out error may be too optimistic."
            )


def _balance(subject: Subject, out: Health) -> None:
    assert subject.classes is not None
    labels, inverse = subject.train.labels
    counts = dict(zip(labels, np.bincount(inverse, subject.train.weight).tolist(), strict=True))
    total = subject.train.total
    sizes = [(label, float(counts.get(label, 0.0))) for label in subject.classes.tolist()]
    if len(sizes) > MOST_CLASSES:
        sizes = sorted(sizes, key=lambda pair: -pair[1])
    out.classes = [
        (words.name(label), words.count(size), words.percent(size / total))
        for label, size in sizes[:MOST_CLASSES]
    ]
    out.classes_left_out = len(sizes) - len(out.classes)
    rarest, size = min(sizes, key=lambda pair: pair[1])
    if size < 0.05 * total / (len(sizes) / 2):
        out.findings.append(
            f"Class {words.name(rarest)} is rare ({words.percent(size / total)} of the rows): the error alone says "
            "little about it; look at precision and recall."
        )


def _list_names(names: list[Any], total: int) -> str:
    shown = ", ".join(words.name(name, 100) for name in names[:SHOWN])
    return shown + (f" and {words.count(total - SHOWN)} more" if total > SHOWN else "")


def _schema(subject: Subject) -> list[tuple[str, str, int]]:
    """Return the columns of the table, their inferred types, and the number of model columns of each."""
    steps = subject.steps
    if hasattr(steps, "steps"):
        steps = next((step for _, step in steps.steps if isinstance(step, Encoder)), None)
    if not isinstance(steps, Encoder):
        return []
    return [(words.name(e.name), e.type, e.width) for e in steps.encodings_]
