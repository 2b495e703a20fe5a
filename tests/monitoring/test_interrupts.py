"""Ctrl-C and limits end a computation wherever it is: native loops poll, threads follow, LAPACK is waited for.

No test here measures time. With ``poll_every(0)`` every poll of a native loop calls ``linsep.interrupts.check``, which
the tests replace: they count the polls of a fit, and raise at any one of them.
"""

from __future__ import annotations

import signal
import threading
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from linsep import (
    ConvergenceWarning,
    LinearRegressor,
    LinearSVC,
    LinearSVCCV,
    LogisticRegression,
    LogisticRegressionCV,
    ZeroOneClassifier,
    _kernels,
    interrupts,
)
from linsep.data.memory import Memory
from linsep.problem import Problem
from linsep.separability.search import witness_or_separator
from linsep.solvers.linalg.factor import Factor
from linsep.tuning import path, tune


class Polls:
    """Stands in for ``linsep.interrupts.check`` as native loops call it."""

    def __init__(self, raising=None, error=KeyboardInterrupt):
        self.count, self.raising, self.error = 0, raising, error

    def __call__(self):
        self.count += 1
        if self.count == self.raising:
            raise self.error


@pytest.fixture
def polled(monkeypatch):
    """Call a function, every poll of which goes to a Polls; returns it."""
    _kernels.poll_every(0.0)

    def run(call, raising=None, error=KeyboardInterrupt):
        polls = Polls(raising, error)
        monkeypatch.setattr(interrupts, "check", polls)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            if raising is None:
                call()
            else:
                with pytest.raises(error):
                    call()
        return polls

    yield run
    _kernels.poll_every(interrupts.EVERY)


def draw(n, d, k=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    Z = X @ rng.standard_normal((d, k)) / np.sqrt(d) + rng.gumbel(size=(n, k))
    return X, Z.argmax(axis=1)


def numbers(n, d):
    X, y = draw(n, d)
    return X, X[:, 0] + y


def sparse(n, d):
    X, y = draw(n, d)
    X[np.abs(X) < 1.0] = 0.0
    return sp.csr_matrix(X), y


FITS = {
    "small": (LogisticRegression(1e4, solver="small", tol=1e-9), draw(300, 8)),
    "small on two threads": (LogisticRegression(1e4, n_threads=2), draw(3000, 60)),
    "newton": (LogisticRegression(solver="newton"), draw(300, 300)),
    "newton, no penalty": (LogisticRegression(np.inf, solver="newton"), draw(600, 8)),
    "newton-cg": (LogisticRegression(solver="newton-cg"), draw(4000, 100)),
    "newton-pilot": (LogisticRegression(solver="newton-pilot"), draw(4000, 20)),
    "newton-rounds": (LogisticRegression(solver="newton-rounds"), draw(4000, 20)),
    "dual-cd": (LogisticRegression(10.0, solver="dual-cd"), sparse(400, 60)),
    "dual-cd, hinge": (LinearSVC(10.0, solver="dual-cd"), sparse(400, 60)),
    "small-l1": (LogisticRegression(100.0, l1_ratio=1.0, solver="small-l1"), draw(400, 20)),
    "working-set": (LogisticRegression(l1_ratio=1.0, solver="working-set"), draw(200, 500)),
    "working-set, sparse": (
        LogisticRegression(l1_ratio=0.9, solver="working-set"),
        sparse(300, 600),
    ),
    "interior": (LinearSVC(10.0, solver="interior"), draw(300, 8)),
    "interior, absolute": (LinearRegressor("absolute", solver="interior"), numbers(300, 8)),
    "sifting": (LinearSVC(solver="sifting"), draw(4000, 8)),
    "softmax": (LogisticRegression(), draw(300, 5, 3)),
    "softmax by products": (LogisticRegression(n_threads=1), draw(3000, 60, 6)),
    "softmax, l1": (LogisticRegression(l1_ratio=1.0), draw(300, 20, 3)),
    "hard-margin": (LinearSVC(np.inf), (draw(60, 80)[0], draw(60, 80)[1])),
}
# These poll while they wait for another thread, too, which no two runs do equally often.
_WAITING = ("small on two threads", "newton-rounds")
_SILENT = ("newton-cg",)  # Python between any two passes over a block: no native loop is long


@pytest.mark.parametrize("name", FITS)
def test_native_loops_poll_and_an_interrupt_ends_the_fit(name, polled):
    model, (X, y) = FITS[name]
    total = polled(lambda: model.fit(X, y)).count
    if name in _SILENT:
        return
    assert total > 0
    before = {k: v for k, v in vars(model).items() if k.endswith("_")}
    if name in _WAITING:
        total = 5
    for at in sorted({1, total // 2, total} - {0}):
        stopped = polled(lambda: model.fit(X, y), raising=at)
        assert stopped.count == at
        after = {k: v for k, v in vars(model).items() if k.endswith("_")}
        assert after.keys() == before.keys() and all(after[k] is before[k] for k in before)
    again = type(model)(**model.get_params())
    polled(lambda: again.fit(X, y), raising=1)
    with pytest.raises(NotFittedError):
        again.predict(X)
    polled(lambda: again.fit(X, y))
    assert (again.coef_ == model.coef_).all()  # neither polls nor interrupts change the bits


@pytest.mark.parametrize("error", [RuntimeError, MemoryError])
def test_whatever_a_signal_handler_raises_comes_through(polled, error):
    model, (X, y) = FITS["small"]
    polled(lambda: model.fit(X, y), raising=2, error=error)


def test_the_handlers_of_signals_run_inside_native_calls(polled):
    model, (X, y) = FITS["small"]
    served = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: served.append(number))
    try:
        call = []

        class Raise(Polls):
            def __call__(self):
                super().__call__()
                call.append(len(served))
                if self.count == 1:
                    signal.raise_signal(signal.SIGTERM)

        polls = Raise()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(interrupts, "check", polls)
            model.fit(X, y)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert served == [signal.SIGTERM] and call[-1] == 1


def kernels(n):
    """Long native calls by themselves, with a size that their work grows with."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, n))
    G = A @ A.T + np.eye(n)
    U, scale = np.empty((n, n)), np.empty(n)
    wide = np.ascontiguousarray(rng.standard_normal((2 * n, n)))
    return {
        "gram": lambda: _kernels.gram(
            _kernels.Rows(np.tile(wide, (8, 1))),
            0,
            16 * n,
            np.ones(16 * n),
            np.zeros(n),
            np.zeros((n + 1) ** 2),
        ),
        "spd_factor": lambda: _kernels.spd_factor(G, False, U, scale),
        "nnls": lambda: witness_or_separator(wide),
        "quadratic_cd": lambda: _kernels.quadratic_cd(
            G, 0.1, 0.0, n, rng.standard_normal(n), np.ones(n)
        ),
    }


@pytest.mark.parametrize("name", kernels(8))
@pytest.mark.sampled(2)
def test_polls_grow_with_the_work(name, polled):
    few, many = (polled(kernels(n)[name]).count for n in (300, 900))
    assert few > 0 and many >= 2 * few


def test_polls_cost_a_look_at_the_clock(monkeypatch):
    """Between two calls of Python there are 50 ms, whatever the number of polls."""
    polls = Polls()
    monkeypatch.setattr(interrupts, "check", polls)
    model, (X, y) = FITS["small"]
    began = time.perf_counter()
    for _ in range(20):
        model.fit(X, y)
    assert polls.count <= 1 + (time.perf_counter() - began) / interrupts.EVERY


def test_poll_every_refuses_nonsense():
    for wrong in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="seconds"):
            _kernels.poll_every(wrong)


def test_lapack_is_waited_for(tuned):
    tuned(long_call=0.0)
    A = np.array([[2.0, 1.0], [1.0, 3.0]])
    values, vectors = interrupts.lapack(np.linalg.eigh, A)
    assert np.allclose(vectors * values @ vectors.T, A)
    assert (interrupts.dense_product(A, A) == A @ A).all()
    with pytest.raises(np.linalg.LinAlgError):
        interrupts.lapack(np.linalg.cholesky, -A)
    with pytest.raises(TimeoutError, match="its own"):
        interrupts.wait_for(lambda: (_ for _ in ()).throw(TimeoutError("its own")), 1.0)


def test_an_interrupt_does_not_wait_for_lapack():
    release, ended = threading.Event(), threading.Event()

    def slow():
        release.wait(60)
        ended.set()

    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), interrupts.checking(stop):
        interrupts.wait_for(slow, interrupts.LONG)
    assert not ended.is_set()
    release.set()
    assert ended.wait(60)  # the thread ends by itself


def test_large_factors_are_waited_for(monkeypatch):
    waited = []
    whole = interrupts.wait_for

    def wait_for(call, work):
        waited.append(work)
        return whole(call, work)

    monkeypatch.setattr(interrupts, "wait_for", wait_for)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((1001, 40))
    H = A @ A.T + np.eye(1001)
    r = rng.standard_normal(1001)
    assert np.allclose(H @ Factor(H, definite=True).solve(r), r)
    assert max(waited) >= interrupts.LONG


def test_tasks_end_with_their_caller():
    begun, rounds = threading.Barrier(3), [0, 0]

    def task(k):
        begun.wait(60)
        while True:
            rounds[k] += 1
            interrupts.check()
            time.sleep(0.001)

    with pytest.raises(KeyboardInterrupt), interrupts.Workers(2) as pool:
        tasks = [pool.submit(task, k) for k in range(2)]
        waiting = pool.submit(task, 0)
        begun.wait(60)
        raise KeyboardInterrupt
    assert waiting.cancelled()
    assert all(isinstance(task.exception(), interrupts.Cancelled) for task in tasks)
    interrupts.check()  # nothing is left behind


def test_tasks_check_what_their_caller_does():
    class Over(Exception):
        pass

    def over():
        raise Over

    with interrupts.checking(over), interrupts.Workers(1) as pool:
        assert isinstance(pool.submit(interrupts.check).exception(), Over)


def test_a_pass_is_cut_short():
    data = Memory(np.ones((200_000, 20)), n_threads=1)
    visited = []

    def stop():
        if len(visited) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), interrupts.checking(stop):
        data.sum(lambda block, out: visited.append(block.lo), 1)
    assert len(visited) == 3
    data.close()


@pytest.mark.parametrize(
    "model",
    [LogisticRegression(l1_ratio=1.0, n_threads=2), LinearSVC(n_threads=2)],
    ids=["one by one", "grid"],
)
def test_an_interrupt_ends_tuning_and_its_threads(model, polled):
    X, y = draw(3000, 40)
    running = {thread.name for thread in threading.enumerate()}
    polled(lambda: tune(model, X, y, Cs=3, cv=3), raising=3)
    left = {thread.name for thread in threading.enumerate()} - running
    assert not [name for name in left if name.startswith("linsep-fold")]
    assert not hasattr(model, "coef_")


def dependent(n, d):
    X, y = draw(n, d)
    return np.hstack([X, X[:, :2]]), y


def unlike(n, d):
    """Columns of very different size, which float64 leaves short of tol: solved again in decimals."""
    X, t = numbers(n, d)
    return X * 10.0 ** np.arange(0, 4 * d, 4), t


LIMITED = FITS | {
    "no penalty, dependent columns": (LogisticRegression(np.inf), dependent(300, 8)),
    "no penalty, softmax": (LogisticRegression(np.inf), draw(300, 5, 3)),
    "no penalty, absolute": (LinearRegressor("absolute", C=np.inf), numbers(200, 6)),
    "no penalty, more features than rows": (LinearRegressor(), numbers(30, 60)),
    "groups": (
        LogisticRegression(0.1, l1_ratio=0.5, feature_groups=[[0, 1, 2], [3, 4, 5]]),
        draw(300, 6),
    ),
    "a feature without a penalty": (
        LogisticRegression(penalty_factor=[0.0, 1.0, 1.0, 2.0]),
        draw(300, 4),
    ),
    "Crammer-Singer": (LinearSVC(multiclass="crammer_singer"), draw(200, 5, 3)),
    "in decimals": (LinearRegressor("huber", C=1e6), unlike(40, 4)),
}


def test_what_may_be_left_out_ends_with_the_time():
    def long():
        while True:
            interrupts.check()

    now = time.perf_counter()
    assert interrupts.if_in_time(lambda: "made", lambda: "left out") == "made"
    with interrupts.until(now - interrupts.GRACE):
        assert interrupts.if_in_time(lambda: "made", lambda: "left out") == "made"  # no check
        assert interrupts.if_in_time(long, lambda: "left out") == "left out"

        def inner():
            interrupts.if_in_time(long, lambda: "left out")
            interrupts.check()

        assert interrupts.if_in_time(inner, lambda: "both left out") == "both left out"
        with interrupts.until(now + 1e6):  # does not begin anew
            assert interrupts.if_in_time(long, lambda: "left out") == "left out"
    interrupts.check()


@pytest.mark.parametrize("name", LIMITED)
@pytest.mark.parametrize("after", [0, 1, 3, 10])
def test_a_limit_in_the_middle_leaves_a_true_certificate(name, after, monkeypatch):
    """The clock runs out between two checks, wherever these are: what was proven so far is the answer."""
    model, (X, y) = LIMITED[name]
    limited = type(model)(**{**model.get_params(), "time_limit": 1e6})
    exact = type(model)(**model.get_params()).fit(X, y).certificate_
    checks = 0
    whole = time.perf_counter

    def clock():
        return whole() + (1e7 if checks > after else 0.0)

    def count():
        nonlocal checks
        checks += 1

    monkeypatch.setattr("linsep.solvers.run.time.perf_counter", clock)
    _kernels.poll_every(0.0)
    try:
        with warnings.catch_warnings(), interrupts.checking(count):
            warnings.simplefilter("ignore", ConvergenceWarning)
            limited.fit(X, y)
    finally:
        _kernels.poll_every(interrupts.EVERY)
    found = limited.certificate_
    slack = 1e-9 * abs(exact.primal)
    assert found.dual <= exact.primal + slack and exact.dual <= found.primal + slack
    assert found.primal - found.dual >= -slack


SLOW = {
    "hard margin": (LinearSVC(np.inf), draw(60, 80)),
    "one against the rest": (LinearSVC(multiclass="ovr", time_limit=60.0), draw(300, 5, 4)),
    "cross-validation, smooth grid": (
        LogisticRegressionCV(Cs=3, cv=3, time_limit=60.0),
        draw(600, 5),
    ),
    "cross-validation, hinge grid": (LinearSVCCV(Cs=3, cv=3, time_limit=60.0), draw(300, 5)),
    "fewest errors": (ZeroOneClassifier(), draw(300, 5)),
}


@pytest.mark.parametrize("name", SLOW)
def test_a_limit_of_what_a_fit_is_part_of_holds_for_the_fit(name):
    """The time was over long ago: what is left to do is to prove what there is."""
    model, (X, y) = SLOW[name]
    with interrupts.until(time.perf_counter() - 60.0), pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    assert np.isfinite(model.coef_).all()


def test_a_grid_whose_time_is_over_is_proven_by_one_pass_for_each_fold(monkeypatch):
    """Sums of a closing pass do not depend on C: ten models of a fold share theirs."""
    calls = []
    whole = Problem.closing
    monkeypatch.setattr(Problem, "closing", lambda *args: calls.append(1) or whole(*args))
    X, y = draw(600, 5)
    with interrupts.until(time.perf_counter() - 60.0), pytest.warns(ConvergenceWarning):
        model = LogisticRegressionCV(Cs=10, cv=3, time_limit=60.0).fit(X, y)
    assert len(calls) <= 3 + 4  # and the last fit
    for certificate in model.tuning_.certificates.ravel():
        assert 0.0 <= certificate.dual <= certificate.primal < np.inf


@pytest.mark.parametrize(
    "call",
    [
        lambda model, X, y: tune(model, X, y, 3, cv=3),
        lambda model, X, y: tune(estimator=model, X=X, y=y, Cs=3, cv=2, l1_ratios=[0.1, 0.9]),
        lambda model, X, y: path(model, X, y, 3),
    ],
    ids=["tune", "tune with l1_ratios", "path"],
)
def test_the_limit_of_an_estimator_is_one_for_its_whole_grid(call):
    ends = []

    def note(X):
        left = interrupts.seconds_left()
        ends.append(np.inf if left is None else time.perf_counter() + left)
        return X

    steps = make_pipeline(FunctionTransformer(note), LogisticRegression(time_limit=1000.0))
    began = time.perf_counter()
    call(steps, *draw(300, 5))
    assert len(ends) > 0
    assert max(ends) - min(ends) < 1e-3  # the same end, up to the time between two clocks
    assert began + 1000.0 <= max(ends) <= time.perf_counter() + 1000.0


def test_time_left_is_that_of_the_nearest_limit_in_every_thread():
    assert interrupts.seconds_left() is None
    with interrupts.time_limit(1000.0), interrupts.time_limit(None), interrupts.Workers(1) as pool:
        here, there = interrupts.seconds_left(), pool.submit(interrupts.seconds_left).result()
        with interrupts.time_limit(1.0):
            assert interrupts.seconds_left() <= 1.0
    assert 900.0 < there <= here <= 1000.0


def test_helpers_of_a_sum_end_at_their_next_check():
    """A long native call of a second thread ends with the sum, not with its block."""
    data = Memory(np.ones((200_000, 20)), np.ones(200_000), n_threads=2)
    main, helping, ended = threading.current_thread(), threading.Event(), []

    def add(block, out):
        if threading.current_thread() is main:
            assert helping.wait(60.0)
            raise KeyboardInterrupt
        helping.set()
        try:
            while True:
                interrupts.check()
        except interrupts.Cancelled:
            ended.append(True)
            raise

    with pytest.raises(KeyboardInterrupt):
        data.sum(add, 1)
    assert ended
