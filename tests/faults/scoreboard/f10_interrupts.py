"""F10: interrupts and limits. Ctrl-C and time_limit end whatever lasts long, and the estimator is as it was before."""

from __future__ import annotations

import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import linsep
from linsep.errors import ConvergenceWarning
from scoreboard.harness import Case, check
from scoreboard.libraries import fitted_state

LATE = (
    5.0  # seconds that a busy machine may take: docs/reliability.md has measurements of a quiet one
)
LONG: dict[str, Callable[[], Any]] = {
    "logistic": lambda: linsep.LogisticRegression(C=1e6, tol=1e-14),
    "L1": lambda: linsep.LogisticRegression(l1_ratio=1.0, C=100.0, tol=1e-14),
    "hinge": lambda: linsep.LinearSVC(C=1e4, tol=1e-14),
    "dual ascent": lambda: linsep.LinearClassifier(
        "squared_hinge", C=1e6, solver="dual-cd", tol=1e-14
    ),
    "perceptron": lambda: linsep.Perceptron(max_updates=10**12),
    "SGD": lambda: linsep.SGDClassifier(epochs=10**6),
    "fewest errors": lambda: linsep.ZeroOneClassifier(time_limit=None),
    "cross-validation": lambda: linsep.LogisticRegressionCV(Cs=200, cv=20, tol=1e-12),
}


def rows(model: Any = None) -> tuple[Any, Any]:
    """Rows that keep a model busy for long; one step of the search for the fewest errors is long on few."""
    rng = np.random.default_rng(0)
    n = 5_000 if isinstance(model, linsep.ZeroOneClassifier) else 100_000
    X = rng.normal(size=(n, 60))
    return X, (X @ rng.normal(size=60) + 6 * rng.normal(size=n) > 0).astype(int)


def _interrupted(make: Callable[[], Any], delay: float, library: Any) -> None:
    model = make()
    X, y = rows(model)
    before = fitted_state(model)
    sent: list[float] = []

    def send() -> None:
        time.sleep(delay)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    ended = False
    try:
        model.fit(X, y)
        ended = True
        thread.join()
    except KeyboardInterrupt:
        if ended:
            return
        late = time.monotonic() - sent[0]
        check(late < LATE, f"{late:.1f} s")
        check(fitted_state(model).keys() == before.keys(), "the estimator changed")


def _limited(make: Callable[[], Any], library: Any) -> None:
    model = make().set_params(time_limit=0.3)
    X, y = rows(model)
    begun = time.monotonic()
    try:
        model.fit(X, y)
    except ConvergenceWarning:
        pass
    check(time.monotonic() - begun < 0.3 + LATE, f"{time.monotonic() - begun:.1f} s")
    check(np.isfinite(model.coef_).all(), "coefficients that are not finite")


def _little_memory(library: Any) -> None:
    X, y = rows()
    with open("/proc/self/statm") as now:
        used = int(now.read().split()[0]) * os.sysconf("SC_PAGESIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + (8 << 20),) * 2)
    linsep.LogisticRegression().fit(np.asfortranarray(X), y)


def cases() -> Iterator[Case]:
    for name, make in LONG.items():
        for delay in (0.3, 1.0):
            yield Case(
                f"Ctrl-C after {delay:g} s, {name}",
                partial(_interrupted, make, delay),
                apart=True,
                slow=True,
                limit=60,
            )
        if "time_limit" in make().get_params() and name != "cross-validation":
            yield Case(
                f"time limit, {name}", partial(_limited, make), apart=True, slow=True, limit=60
            )
    yield Case(
        "little memory", _little_memory, ("llocate",), either=True, apart=True, slow=True, limit=60
    )
