"""Work of two threads and more, small enough for ThreadSanitizer: same bits as in one thread."""

import io
import threading

import numpy as np
import pytest

import linsep
from linsep import _kernels as K  # noqa: N812

RNG = np.random.default_rng(0)
N, D = 700, 50
X = RNG.normal(size=(N, D))
SIGN = np.where(X[:, 0] + RNG.normal(size=N) > 0, 1.0, -1.0)


def newton(two):
    theta, base, step, sums = np.zeros(D + 1), np.zeros(D + 1), np.zeros(D + 1), np.zeros(8 + 2 * D)
    rows, targets, loss = K.Rows(X), K.Targets(SIGN), K.Loss("logistic")
    K.newton(rows, targets, loss, 1.0, 1e-8, 50, True, True, two, theta, base, step, sums)
    return theta


def ascent(two):
    theta, u = np.zeros(D + 1), np.zeros(N)
    rows, targets, loss = K.Rows(X), K.Targets(SIGN), K.Loss("squared_hinge")
    run = K.Ascent(rows, targets, loss, theta, 1.0, 1e-6, True, two, 0, 0.0, 1.0)
    for _ in range(4):
        run.epoch()
        run.improve()
    run.point(theta, u)
    return theta


@pytest.mark.parametrize("fit", [newton, ascent])
def test_a_second_thread_changes_no_bit(fit):
    np.testing.assert_array_equal(fit(True), fit(False))


@pytest.mark.parametrize(
    "model",
    [
        linsep.LogisticRegression(),
        linsep.LinearSVC(),
        linsep.LogisticRegression(l1_ratio=1.0, C=0.05),
        linsep.LinearClassifier("squared_hinge", solver="dual-cd"),
        linsep.LogisticRegressionCV([0.1, 1.0], cv=3),
    ],
    ids=["newton", "interior", "L1", "dual ascent", "grid"],
)
def test_thread_counts_change_no_bit(model, tuned):
    tuned(block_bytes=40_000)
    fits = [
        type(model)(**{**model.get_params(), "n_threads": count}).fit(X, SIGN) for count in (1, 3)
    ]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)


def test_many_threads_use_one_model():
    model = linsep.LogisticRegression().fit(X, SIGN)
    expected, found = model.predict_proba(X), []

    def use():
        for _ in range(3):
            found.append(model.predict_proba(X))
            linsep.LogisticRegression().fit(X[:100], SIGN[:100])

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 12
    for one in found:
        np.testing.assert_array_equal(one, expected)


def test_text_is_parsed_by_several_threads(tuned):
    tuned(libsvm_chunk=100)
    text = b"".join(b"%d 1:%d 7:0.5\n" % (i % 2, i) for i in range(300))
    one, three = (linsep.read_libsvm(io.BytesIO(text), n_threads=count) for count in (1, 3))
    np.testing.assert_array_equal(one.X.toarray(), three.X.toarray())


def test_a_fit_that_is_interrupted_stops_its_second_thread():
    from linsep.interrupts import checking

    class Stop(Exception):
        pass

    def stop():
        raise Stop

    K.poll_every(0.0)
    try:
        for fit in (newton, ascent):
            with pytest.raises(Stop), checking(stop):
                fit(True)
            fit(True)
    finally:
        K.poll_every(0.05)
