"""Run programs written for scikit-learn with the classes of ``linsep.sklearn``, without changing a line.

``python -m linsep.accel script.py`` runs a script, ``python -m linsep.accel -m module`` a module. In a program::

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
    """Replace scikit-learn's classes by linsep's, for all subsequent imports.

    Modules of your own that have already imported a class keep scikit-learn's; ``report.too_early`` names them.

    Parameters
    ----------
    audit : bool, default False
        Also fit scikit-learn's own class wherever linsep fits, and prove how far above the optimum its result is. Every
        fit then takes the time of both.

    Returns
    -------
    Report
        Counts all subsequent fits, by line of your program.
    """
    global _current  # noqa: PLW0603
    if _current is not None:
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
    """Restore scikit-learn's classes; return the report, or None if they were not replaced.

    Objects created in the meantime keep their class.
    """
    global _current
    report, _current = _current, None
    if report is not None:
        pairs = substitution.pairs()
        recording.stop(pairs)
        substitution.restore(pairs)
    return report


def load_ipython_extension(shell: Any) -> None:
    """Install on ``%load_ext linsep.accel`` in IPython."""
    report = install()
    print(f"linsep.accel: {', '.join(report.replaced)} of scikit-learn now run in linsep.")
    if report.too_early:
        print(report.warning(), file=sys.stderr)


def unload_ipython_extension(shell: Any) -> None:
    """Uninstall on ``%unload_ext linsep.accel`` in IPython and print the report."""
    report = uninstall()
    if report is not None:
        print(report)
