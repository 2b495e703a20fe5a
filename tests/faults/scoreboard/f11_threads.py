"""F11: threads, forks and copies. The same bits, or an error; never a crash, never a wait for ever."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

import linsep
from scoreboard.f04_arrays import T, X, Y
from scoreboard.harness import Case, check, same

KINDS = (
    "LogisticRegression",
    "LinearSVC",
    "LinearClassifier",
    "LinearRegressor",
    "Perceptron",
    "SGDClassifier",
)
BIG = np.random.default_rng(3).normal(size=(3000, 40))
SIDE = (BIG[:, 0] + BIG[:, 1] ** 2 > 1).astype(int)


def fitted(kind: str) -> Any:
    return getattr(linsep, kind)().fit(X, T if kind == "LinearRegressor" else Y)


def copies() -> Iterator[Case]:
    for kind in KINDS:
        for name, make in {
            "pickled": lambda m: pickle.loads(pickle.dumps(m)),
            "copied": copy.copy,
            "copied deeply": copy.deepcopy,
        }.items():
            yield Case(f"{kind} {name}", partial(_same_copy, kind, make))
        yield Case(f"{kind} cloned", partial(_same_clone, kind))
    for count in (1, 2, 3, 8, 64):
        yield Case(f"{count} threads, the same bits", partial(_same_bits, count))


def _same_copy(kind: str, make: Any, library: Any) -> None:
    model = fitted(kind)
    again = make(model)
    same(again.predict(X), model.predict(X))
    same(again.coef_, model.coef_)
    if hasattr(model, "classes_"):
        same(again.score(X, Y), model.score(X, Y))


def _same_clone(kind: str, library: Any) -> None:
    model = fitted(kind)
    again = clone(model)
    check(not hasattr(again, "coef_"), "a clone is fitted")
    same(again.fit(X, T if kind == "LinearRegressor" else Y).coef_, model.coef_)


def _same_bits(count: int, library: Any) -> None:
    one = linsep.LogisticRegression(n_threads=1).fit(BIG, SIDE)
    same(linsep.LogisticRegression(n_threads=count).fit(BIG, SIDE).coef_, one.coef_)


def together() -> Iterator[Case]:
    yield Case("32 threads predict", _many_predict, apart=True)
    yield Case("8 threads fit models of their own", _many_fit, apart=True)
    yield Case("8 threads fit one model", _one_model, apart=True)
    yield Case("fit in a thread", _in_a_thread, apart=True)
    yield Case("a fit, a fork, a fit in both", _after_fork, apart=True, limit=60)
    yield Case("a process pool by fork", partial(_pool, "fork"), apart=True, limit=60)
    yield Case("a process pool by spawn", partial(_pool, "spawn"), slow=True, limit=120)
    yield Case("joblib", _joblib, slow=True, limit=120)
    for value in ("0", "-1", "nonsense", "1000000", ""):
        yield Case(
            f"OMP_NUM_THREADS={value!r}",
            partial(_environment, "OMP_NUM_THREADS", value),
            slow=True,
            limit=60,
        )
    yield Case(
        "LINSEP_INSTRUCTION_SET=nonsense",
        partial(_environment, "LINSEP_INSTRUCTION_SET", "nonsense"),
        ("LINSEP_INSTRUCTION_SET",),
        slow=True,
    )


def _many_predict(library: Any) -> None:
    model = fitted("LogisticRegression")
    rows = BIG[:, :3].copy()
    truth = model.decision_function(rows)
    with ThreadPoolExecutor(32) as pool:
        for found in pool.map(lambda _: model.decision_function(rows.copy()), range(200)):
            same(found, truth)


def _many_fit(library: Any) -> None:
    truth = linsep.LogisticRegression().fit(BIG, SIDE).coef_
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(
            lambda _: linsep.LogisticRegression().fit(BIG, SIDE).coef_, range(16)
        ):
            same(found, truth)


def _one_model(library: Any) -> None:
    """Attributes are set at once: whoever ends last wins, and nothing is mixed."""
    model = linsep.LogisticRegression()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: model.fit(BIG, SIDE), range(16)))
    same(model.coef_, linsep.LogisticRegression().fit(BIG, SIDE).coef_)


def _in_a_thread(library: Any) -> None:
    found: list[Any] = []
    thread = threading.Thread(
        target=lambda: found.append(linsep.LogisticRegression().fit(BIG, SIDE).coef_)
    )
    thread.start()
    thread.join()
    same(found[0], linsep.LogisticRegression().fit(BIG, SIDE).coef_)


def _after_fork(library: Any) -> None:
    truth = linsep.LogisticRegression(n_threads=4).fit(BIG, SIDE).coef_
    child = os.fork()
    if child == 0:
        found = linsep.LogisticRegression(n_threads=4).fit(BIG, SIDE).coef_
        os._exit(0 if np.array_equal(found, truth) else 1)
    same(linsep.LogisticRegression(n_threads=4).fit(BIG, SIDE).coef_, truth)
    check(os.waitpid(child, 0)[1] == 0, "the child has other coefficients")


def _coefficients(seed: int) -> Any:
    return linsep.LogisticRegression(random_state=seed).fit(BIG, SIDE).coef_


def _pool(method: str, library: Any) -> None:
    truth = _coefficients(0)
    with multiprocessing.get_context(method).Pool(2) as pool:
        for found in pool.map(_coefficients, range(4)):
            same(found, truth)


def _joblib(library: Any) -> None:
    from joblib import Parallel, delayed

    for found in Parallel(2)(delayed(_coefficients)(seed) for seed in range(4)):
        same(found, _coefficients(0))


def _environment(name: str, value: str, library: Any) -> None:
    fit = "linsep.LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])"
    code = f"import linsep; print({fit}.certificate_.certified)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, name: value},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise OSError(done.stderr)
    same(done.stdout.strip(), "True")


def cases() -> Iterator[Case]:
    yield from copies()
    yield from together()
