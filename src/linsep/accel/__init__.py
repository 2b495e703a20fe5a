"""Run programs that are written for scikit-learn with the classes of ``linsep.sklearn``, without a changed line.

``python -m linsep.accel script.py`` runs a script so; ``python -m linsep.accel -m module`` a module. In a program::

    import linsep.accel
    report = linsep.accel.install()      # before the imports from sklearn
    ...
    print(report)                        # what ran in linsep, what was left to scikit-learn, line by line

In IPython and Jupyter, ``%load_ext linsep.accel`` does the same.
"""

from __future__ import annotations

import sys
from typing import Any

from linsep.accel import recording, substitution
from linsep.accel.recording import Entry, Report

__all__ = ["Entry", "Report", "install", "load_ipython_extension", "uninstall"]

_current: Report | None = None


def install(*, audit: bool = False) -> Report:
    """Put linsep's classes in the place of scikit-learn's, for all imports from now on.

    Modules of your own that have imported a class before keep scikit-learn's; ``report.too_early`` names them.

    Parameters
    ----------
    audit : bool, default False
        Also fit scikit-learn's own class wherever linsep fits, and prove how far above the optimum its result is. Every
        fit then takes its time as well.

    Returns
    -------
    Report
        Counts every fit from now on, by line of your program.
    """
    global _current  # noqa: PLW0603
    if _current is not None:
        if _current.audit != audit:
            _current.audit = audit
        return _current
    pairs = substitution.pairs()
    report = Report(audit=audit, replaced=tuple(sorted(pairs)))
    report.too_early = substitution.holders(pairs)
    substitution.substitute(pairs)
    recording.start(pairs, report)
    _current = report
    return report


def uninstall() -> Report | None:
    """Give scikit-learn its classes back; None if they were not replaced.

    Objects that were created in between keep the class that they have.
    """
    global _current
    report, _current = _current, None
    if report is not None:
        pairs = substitution.pairs()
        recording.stop(pairs)
        substitution.restore(pairs)
    return report


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext linsep.accel``."""
    report = install()
    print(f"linsep.accel: {', '.join(report.replaced)} of scikit-learn now run in linsep.")
    if report.too_early:
        print(report.warning(), file=sys.stderr)


def unload_ipython_extension(shell: Any) -> None:
    """``%unload_ext linsep.accel``."""
    report = uninstall()
    if report is not None:
        print(report)
