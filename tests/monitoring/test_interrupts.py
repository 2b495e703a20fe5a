"""Signals are served during long fits: no native call may keep Python from them for long."""

from __future__ import annotations

import signal
import time
import warnings

import numpy as np
import pytest

from linsep import ConvergenceWarning, LinearSVC, LogisticRegression

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not hasattr(signal, "setitimer"), reason="no interval timers on this system"
    ),
]

_EVERY = 0.02  # seconds between two signals
_LONGEST = 5.0  # seconds without one: a second on an idle machine, and room for busy ones
_ENOUGH = 15.0  # seconds of a fit that are watched


class _Enough(Exception):
    pass


def longest_silence(fit):
    """Longest time in which the handler of a repeated signal was not called."""
    began = last = time.perf_counter()
    longest = 0.0

    def served(number, frame):
        nonlocal last, longest
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
        if now - began > _ENOUGH:
            raise _Enough

    before = signal.signal(signal.SIGALRM, served)
    signal.setitimer(signal.ITIMER_REAL, _EVERY, _EVERY)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fit()
    except _Enough:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    return max(longest, time.perf_counter() - last)


def draw(n, d, k, spread=1.0):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    if spread != 1.0:
        X = np.exp(spread * X)
    return X, rng.integers(k, size=n)


FITS = {
    "projections that used to cycle": (
        LinearSVC(1e8, multiclass="crammer_singer"),
        *draw(30, 60, 6, spread=2.0),
    ),
    "dual ascent on many classes": (
        LinearSVC(1e4, multiclass="crammer_singer"),
        *draw(2000, 500, 10),
    ),
    "separability of many features": (LogisticRegression(np.inf), *draw(2000, 700, 2)),
    "softmax in one native call": (LogisticRegression(1e6), *draw(2000, 60, 3)),
    "hinge on wide rows": (LinearSVC(1.0), *draw(800, 3000, 2)),
}


@pytest.mark.parametrize("name", FITS)
def test_a_signal_is_served_in_time(name):
    model, X, y = FITS[name]
    assert longest_silence(lambda: model.fit(X, y)) < _LONGEST


def test_the_time_limit_is_kept():
    model = LinearSVC(1e4, multiclass="crammer_singer", time_limit=1.0)
    X, y = draw(2000, 500, 10)
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    assert time.perf_counter() - began < 1.0 + _LONGEST
