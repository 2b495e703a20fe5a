"""Record which fits ran in linsep and which were left to scikit-learn, by line of the calling program."""

from __future__ import annotations

import copy
import functools
import logging
import math
import os
import sys
import sysconfig
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import joblib
import sklearn

from linsep.accel.substitution import Pairs
from linsep.auditing import Audit, audit
from linsep.auditing.verdict import in_words
from linsep.certificates import Optimality
from linsep.errors import LinsepError

log = logging.getLogger("linsep.accel")

#: Files in these directories are not part of the user's program.
_LIBRARIES = tuple(
    os.path.join(place, "")
    for place in (
        str(Path(__file__).resolve().parents[1]),
        os.path.dirname(sklearn.__file__),
        os.path.dirname(joblib.__file__),
        sysconfig.get_paths()["stdlib"],
    )
)
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


@dataclass
class Entry:
    """Fits of one class on one line.

    Attributes
    ----------
    file, line : str, int
        Line of the program that called ``fit``, possibly through a pipeline or a search.
    name : str
        Name of the class.
    fits : int
        Number of fits that ran in linsep.
    certified : int
        Number of these that are certified at the requested tolerance.
    gap : float
        Largest proven relative gap of the fits that ran in linsep.
    left : dict
        Number of fits left to scikit-learn, by reason.
    excess : float
        With ``audit``: largest proven lower bound, over all fits, on the relative excess of scikit-learn's own result
        above the optimum.
    audited : int
        Number of scikit-learn's fits that were compared.
    """

    file: str
    line: int
    name: str
    fits: int = 0
    certified: int = 0
    gap: float = 0.0
    left: dict[str, int] = field(default_factory=dict)
    excess: float = 0.0
    audited: int = 0

    @property
    def place(self) -> str:
        """Location as file:line."""
        return f"{self.file}:{self.line}" if self.line else self.file

    def sentences(self) -> list[str]:
        """Return sentences that describe the fits on this line."""
        said = []
        if self.fits:
            stated = math.isfinite(self.gap) and (self.certified or self.gap > 0)
            gap = f", relative gap at most {self.gap:.1e}" if stated else ""
            short = self.fits - self.certified
            said.append(
                f"{_fits(self.fits)} in linsep{gap}"
                + (f", {short} without a certificate of optimality" if short else "")
            )
        said += [f"{_fits(count)} left to scikit-learn: {why}" for why, count in self.left.items()]
        if self.audited:
            said.append(self._comparison())
        return said

    def _comparison(self) -> str:
        where = f" on line {self.line}" if self.line else ""
        if self.audited == 1:
            start = f"scikit-learn's fit{where} was "
        else:
            start = f"the worst of scikit-learn's {self.audited} fits{where} was "
        if self.excess <= 1e-6:
            return start + "at the optimum, to a relative 1e-6"
        return start + in_words(self.excess, "optimum")


@dataclass
class Report:
    """All fits since ``install``.

    Attributes
    ----------
    replaced : tuple of str
        Names of scikit-learn's classes that were replaced.
    audit : bool
        Whether scikit-learn's own class is fitted as well.
    entries : list of Entry
        One entry for each line and class, in the order of their first fit.
    too_early : dict
        Classes imported from scikit-learn before ``install``, by module.
    """

    replaced: tuple[str, ...]
    audit: bool = False
    entries: list[Entry] = field(default_factory=list)
    too_early: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __str__(self) -> str:
        fits = sum(entry.fits for entry in self.entries)
        certified = sum(entry.certified for entry in self.entries)
        left = sum(sum(entry.left.values()) for entry in self.entries)
        head = f"linsep.accel: {_fits(fits)} in linsep"
        if fits:
            head += ", all certified" if certified == fits else f", {certified:,} certified"
        lines = [head + (f"; {left:,} left to scikit-learn" if left else "")]
        for entry in self.entries:
            first, *others = entry.sentences()
            lines += [
                f"  {entry.place}  {entry.name}: {first}",
                *(f"      {each}" for each in others),
            ]
        if self.too_early:
            lines.append(self.warning())
        return "\n".join(lines)

    def warning(self) -> str:
        """Text that names the modules which had already imported scikit-learn's classes."""
        known = "; ".join(f"{name} ({', '.join(held)})" for name, held in self.too_early.items())
        return f"linsep.accel: imported from scikit-learn before install, and kept: {known}"

    def entry(self, file: str, line: int, name: str) -> Entry:
        """Return the entry of a line and class, created on first use."""
        with self._lock:
            for known in self.entries:
                if (known.file, known.line, known.name) == (file, line, name):
                    return known
            self.entries.append(Entry(file, line, name))
            return self.entries[-1]


class _Reasons(logging.Filter):
    """Filter that reads from the log of linsep.sklearn why a fit was left to scikit-learn."""

    def __init__(self) -> None:
        super().__init__()
        self.local = threading.local()
        self.level = logging.NOTSET

    def filter(self, record: logging.LogRecord) -> bool:
        """Store the reason; let through what would have been logged anyway."""
        self.local.why = record.getMessage().partition(": ")[2]
        parent = logging.getLogger("linsep.sklearn").parent
        level = self.level or (parent.getEffectiveLevel() if parent else logging.WARNING)
        return record.levelno >= level


_reasons = _Reasons()
_inside = threading.local()


def start(found: Pairs, report: Report) -> None:
    """Record every ``fit`` of linsep's classes."""
    logger = logging.getLogger("linsep.sklearn")
    _reasons.level = logger.level
    logger.addFilter(_reasons)
    logger.setLevel(logging.INFO)
    for theirs, ours in found.values():
        plain = ours.fit  # type: ignore[attr-defined]
        recorded = _record(plain, theirs, ours, report)
        recorded._own = "fit" in vars(ours)  # type: ignore[attr-defined]
        ours.fit = recorded  # type: ignore[attr-defined]


def stop(found: Pairs) -> None:
    """Undo ``start``."""
    logger = logging.getLogger("linsep.sklearn")
    logger.removeFilter(_reasons)
    logger.setLevel(_reasons.level)
    for _, ours in found.values():
        recorded = vars(ours)["fit"]
        if recorded._own:
            ours.fit = recorded.__wrapped__  # type: ignore[attr-defined]
        else:
            del ours.fit  # type: ignore[attr-defined]


def _record(
    plain: Callable[..., Any], theirs: type, ours: type, report: Report
) -> Callable[..., Any]:
    """Return a ``fit`` that records itself in the report."""

    @functools.wraps(plain)
    def fit(self: Any, *args: Any, **given: Any) -> Any:
        if getattr(_inside, "fit", False):  # nested fit
            return plain(self, *args, **given)
        _inside.fit, _reasons.local.why = True, None
        try:
            params = copy.deepcopy(self.get_params(deep=False)) if report.audit else {}
            result = plain(self, *args, **given)
        finally:
            _inside.fit = False
        entry = report.entry(*_caller(), ours.__name__)
        why = _reasons.local.why
        _note(entry, self, why)
        if report.audit and type(self) is ours and why is None:
            _compare(entry, theirs, params, args, given)
        return result

    return fit


def _note(entry: Entry, model: Any, why: str | None) -> None:
    certificate = vars(model).get("certificate_")
    if certificate is None and why is not None:
        new = why not in entry.left
        entry.left[why] = entry.left.get(why, 0) + 1
        if new:
            log.info("%s: %s is left to scikit-learn: %s", entry.place, entry.name, why)
        return
    if entry.fits == 0:
        log.info("%s: %s runs in linsep", entry.place, entry.name)
    entry.fits += 1
    if not isinstance(certificate, Optimality):  # cross-validation without a refit, or a perceptron
        return
    entry.certified += bool(certificate.certified)
    entry.gap = max(entry.gap, float(certificate.relative_gap))


def _compare(entry: Entry, theirs: type, params: dict[str, Any], args: Any, given: Any) -> None:
    """Fit scikit-learn's own class to the same rows and audit it."""
    _inside.fit = True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = theirs(**params).fit(*args, **given)
        verdict: Audit = audit(model, *args, **given)
    except (LinsepError, ValueError, TypeError) as error:
        log.info("%s: scikit-learn's fit was not audited: %s", entry.place, error)
        return
    finally:
        _inside.fit = False
    excess = verdict.relative_excess[0]
    if verdict.separable or not math.isfinite(excess):
        log.info("%s: scikit-learn's fit has no minimum to compare with", entry.place)
        return
    entry.audited += 1
    if excess > entry.excess or entry.audited == 1:
        entry.excess = max(entry.excess, excess)
        log.info("%s: %s", entry.place, entry._comparison())


def _caller() -> tuple[str, int]:
    """File and line of the innermost frame outside all libraries."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        library = name.startswith(("<frozen", *_LIBRARIES)) or any(p in name for p in _INSTALLED)
        if not library:
            return _relative_path(name), frame.f_lineno
        frame = frame.f_back
    return "a library", 0


def _relative_path(name: str) -> str:
    """Path relative to the working directory, if it lies inside."""
    if name.startswith("<"):
        return name
    path = os.path.relpath(name) if os.path.isabs(name) else name
    return name if path.startswith("..") else path


def _fits(count: int) -> str:
    return f"{count:,} fit" if count == 1 else f"{count:,} fits"
