"""The compiled perceptron passes and stochastic steps against a few lines of numpy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from catalogue import NATIVE, STORAGES, naming

from linsep import _kernels
from linsep.data import Memory

ROWS, COLUMNS = 43, 11


def whole_numbers(seed=0, n=ROWS, d=COLUMNS):
    """Rows of small integers: every storage holds them, and every sum of theirs, exactly."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, size=(n, d)).astype(float)
    return X, np.where(X @ rng.integers(-3, 4, size=d) + 1 > 0, 1.0, -1.0)


def kernel_rows(X):
    return Memory(X).whole.rows


class Text:
    """The perceptron as it is written in books."""

    def __init__(self, X, sign, normalised, intercept, online=False):
        self.A = np.column_stack([X, np.full(len(X), float(intercept))])
        self.sign, self.normalised, self.online = sign, normalised, online
        self.w = np.zeros(self.A.shape[1])
        self.rows, self.norms, self.sum, self.visited = [], [], np.zeros_like(self.w), 0

    def mistaken(self, i):
        margin = self.sign[i] * (self.A[i] @ self.w)
        if self.online and self.sign[i] > 0:
            return margin < 0
        return margin <= 0 and self.A[i].any()

    def update(self, i):
        length = np.linalg.norm(self.A[i]) if self.normalised else 1.0
        self.w = self.w + self.sign[i] * self.A[i] / length
        self.rows.append(i)
        self.norms.append(np.linalg.norm(self.w))

    def look(self, i):
        """Whether the row was right."""
        self.visited += 1
        wrong = self.mistaken(i)
        if wrong:
            self.update(i)
        self.sum += self.w
        return not wrong


def run(X, sign, select, *, normalised=False, intercept=True, online=False, order=None, **limits):
    rows = kernel_rows(X)
    theta, counts, numbers = np.zeros(rows.d + 1), np.array([0, 0, 0, 0, -1]), np.zeros(2)
    lengths = np.empty(rows.n)
    _kernels.row_norms(rows, 0, rows.n, lengths)
    updated, norms, total = np.full(500, -1), np.full(500, np.nan), np.zeros(rows.d + 1)
    most, most_visits = limits.get("max_updates", 500), limits.get("visits", 10**6)
    while counts[1] < rows.n and counts[2] < most and counts[3] < most_visits:
        _kernels.perceptron(
            rows,
            sign,
            lengths + intercept,
            select,
            normalised,
            intercept,
            online,
            most,
            min(limits.get("budget", 7), most_visits - counts[3]),
            order,
            theta,
            counts,
            numbers,
            updated,
            norms,
            total,
        )
        if (online or order is not None) and counts[0] >= rows.n:
            break
    return theta, updated[: counts[2]], norms[: counts[2]], counts, total


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_cyclic_is_the_book(instructions, storage, normalised, intercept):
    X, sign = whole_numbers()
    text = Text(X, sign, normalised, intercept)
    clean, cycle = 0, itertools.cycle(range(len(X)))
    while clean < len(X) and len(text.rows) < 60:
        clean = clean + 1 if text.look(next(cycle)) else 0
    theta, updated, norms, counts, total = run(
        STORAGES[storage](X),
        sign,
        "cyclic",
        normalised=normalised,
        intercept=intercept,
        max_updates=60,
    )
    assert updated.tolist() == text.rows
    assert theta == pytest.approx(text.w, abs=1e-12)
    assert norms == pytest.approx(text.norms, rel=1e-10)
    assert counts[3] == text.visited
    mean = theta - total / counts[3]
    assert mean == pytest.approx(text.sum / text.visited, abs=1e-10)


@pytest.mark.parametrize("storage", STORAGES)
def test_perceptron_rows_of_every_width(instructions, storage):
    """Short rows keep w in registers, whole vectors and a part of one; long ones do not."""
    for d in (1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65):
        X, sign = whole_numbers(seed=d, d=d)
        theta, updated, *_ = run(STORAGES[storage](X), sign, "cyclic", visits=150)
        text, cycle = Text(X, sign, False, True), itertools.cycle(range(len(X)))
        while len(text.rows) < len(updated) and text.visited < 10_000:
            text.look(next(cycle))
        assert updated.tolist() == text.rows
        assert theta.tolist() == text.w.tolist()


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("normalised", [False, True])
def test_first_and_worst_are_the_book(instructions, storage, normalised):
    X, sign = whole_numbers(3)
    for select in ("first", "worst"):
        text = Text(X, sign, normalised, True)
        size = np.linalg.norm(text.A, axis=1) if normalised else 1.0
        while len(text.rows) < 40:
            margins = sign * (text.A @ text.w) / size
            if margins.min() > 0:
                break
            worst = int(np.argmin(np.round(margins, 12)))
            text.update(int(np.argmax(margins <= 1e-12)) if select == "first" else worst)
        found = run(STORAGES[storage](X), sign, select, normalised=normalised, max_updates=40)
        assert len(found[1]) == len(text.rows)
        if not normalised:  # ties of rounded numbers are broken by rounding
            assert found[1].tolist() == text.rows
            assert found[0].tolist() == text.w.tolist()


@pytest.mark.parametrize("storage", STORAGES)
def test_listed_order_and_online_rule(instructions, storage):
    X, sign = whole_numbers(4)
    order = np.random.default_rng(0).permutation(len(X))
    text = Text(X, sign, False, True)
    for i in order:
        text.look(i)
    found = run(STORAGES[storage](X), sign, "listed", order=order)
    assert found[1].tolist() == text.rows
    online = Text(X, sign, False, True, online=True)
    for i in range(len(X)):
        online.look(i)
    found = run(STORAGES[storage](X), sign, "cyclic", online=True)
    assert found[1].tolist() == online.rows
    assert found[0].tolist() == online.w.tolist()


@pytest.mark.parametrize("budget", [1, 5, 16, 1000])
def test_calls_may_be_cut_anywhere(budget):
    X, sign = whole_numbers(5, n=200, d=4)
    for select in ("cyclic", "first", "worst"):
        whole = run(X, sign, select, budget=10**6, max_updates=300)
        cut = run(X, sign, select, budget=budget, max_updates=300)
        assert cut[1].tolist() == whole[1].tolist()
        assert cut[0].tolist() == whole[0].tolist()


def test_rows_of_length_zero_are_left_alone():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0]])
    theta, updated, _, counts, _ = run(X, np.array([-1.0, 1.0, -1.0]), "cyclic", intercept=False)
    assert 0 not in updated
    assert counts[1] == 3
    assert theta.tolist() == [1.0, 0.0, 0.0]


def numpy_steps(loss, X, labels, k, draws, eta, *, lam, batch, total, weight, intercept):
    """Plain sub-gradient steps; at a kink the falling side."""
    columns = [1] if k == 2 else list(range(k))
    W, sums = np.zeros((len(columns), X.shape[1] + 1)), np.zeros((len(columns), X.shape[1] + 1))
    s = np.ones(len(X)) if weight is None else weight
    for t, rows in enumerate(draws.reshape(-1, batch)):
        for c, positive in enumerate(columns):
            sign = np.where(labels[rows] == positive, 1.0, -1.0)
            m = sign * (X[rows] @ W[c, :-1] + W[c, -1])
            slope = loss.slope(
                np.nextafter(m, -np.inf) if loss.name in ("hinge", "perceptron") else m
            )
            a = eta[t] * s[rows] * sign * slope / total
            W[c, :-1] = (1 - eta[t] * lam) * W[c, :-1] - a @ X[rows]
            W[c, -1] -= intercept * a.sum()
        sums += (t + 1) * W
    return W, sums


@pytest.mark.parametrize("loss", NATIVE, ids=naming)
@pytest.mark.parametrize("k", [2, 4])
def test_steps_are_plain_sub_gradient_steps(instructions, loss, k):
    rng = np.random.default_rng(1)
    X, labels = rng.normal(size=(30, 9)), rng.integers(0, k, size=30)
    weight, lam = rng.choice([0.0, 0.5, 2.0], size=30), 0.7
    for batch, use, schedule in (
        (1, None, "inverse"),
        (4, weight, "inverse_sqrt"),
        (2, None, "constant"),
    ):
        draws = rng.integers(0, 30, size=80)
        t = np.arange(80 // batch)
        power = {"constant": 0.0, "inverse": 1.0, "inverse_sqrt": 0.5}[schedule]
        eta = 0.05 / (1 + 0.3 * t) ** power
        options = {"lam": lam, "batch": batch, "total": 1.5 * batch, "intercept": True}
        W, sums = numpy_steps(loss, X, labels, k, draws, eta, weight=use, **options)
        columns = len(W)
        named = np.full(columns, 0.05), np.full(columns, 0.3)
        for name, eta0, decay in ((schedule, *named), ("listed", eta, named[1])):
            for storage in ("dense64", "csr64-int32"):
                rows = kernel_rows(STORAGES[storage](X))
                V, total = np.zeros_like(W), np.zeros_like(W)
                half = len(t) // 2 * batch
                for first, part in ((0, draws[:half]), (half // batch, draws[half:])):
                    steps = eta0[first : first + len(part) // batch] if name == "listed" else eta0
                    _kernels.sgd(
                        rows,
                        _kernels.Classes(labels, use, k),
                        _kernels.Loss(loss.native, *loss.params),
                        name,
                        np.ascontiguousarray(steps),
                        decay,
                        lam,
                        1.5 * batch,
                        batch,
                        first,
                        True,
                        part,
                        V,
                        total,
                    )
                assert V == pytest.approx(W, rel=1e-9, abs=1e-12)
                assert total == pytest.approx(sums, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("storage", STORAGES)
def test_rows_of_every_width(instructions, storage):
    """Whole vectors, four of them at once, and what is left over; the next row is scored while one is added."""
    loss = next(loss for loss in NATIVE if loss.name == "logistic")
    for d in (1, 2, 3, 5, 7, 8, 12, 15, 16, 31, 33, 47, 64, 70):
        rng = np.random.default_rng(d)
        X = rng.normal(size=(12, d)).astype(np.float32).astype(np.float64)
        labels, draws = rng.integers(0, 2, size=12), rng.integers(0, 12, size=40)
        options = {"lam": 0.1, "batch": 1, "total": 1.0, "intercept": True, "weight": None}
        W, sums = numpy_steps(loss, X, labels, 2, draws, np.full(40, 0.1), **options)
        V, total = np.zeros_like(W), np.zeros_like(W)
        _kernels.sgd(
            *(kernel_rows(STORAGES[storage](X)), _kernels.Classes(labels, None, 2)),
            *(_kernels.Loss("logistic"), "constant", np.array([0.1]), np.array([0.0])),
            *(0.1, 1.0, 1, 0, True, draws, V, total),
        )
        assert V == pytest.approx(W, rel=1e-9, abs=1e-12)
        assert total == pytest.approx(sums, rel=1e-9, abs=1e-9)


def test_strong_shrinking_does_not_underflow():
    """eta lam near and beyond 1: the factor is folded into v before it vanishes."""
    X, labels = np.eye(3), np.array([0, 1, 1])
    draws = np.tile([0, 1, 2], 40)
    for lam in (0.5, 0.999, 1.0, 1.5):
        W, sums = np.zeros((1, 4)), np.zeros((1, 4))
        one = np.ones(1)
        _kernels.sgd(
            kernel_rows(X), _kernels.Classes(labels, None, 2), _kernels.Loss("hinge"), "constant",
            one, one, lam, 1.0, 1, 0, False, draws, W, sums,
        )  # fmt: skip
        w, total = np.zeros(4), np.zeros(4)
        for t, i in enumerate(draws):
            sign = 2.0 * labels[i] - 1.0
            push = sign * (sign * w[i] <= 1)
            w *= 1 - lam
            w[i] += push
            total += (t + 1) * w
        assert W[0] == pytest.approx(w, rel=1e-9, abs=1e-12)
        assert sums[0] == pytest.approx(total, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("loss", NATIVE, ids=naming)
@pytest.mark.parametrize("storage", STORAGES)
def test_losses_of_several_points(instructions, loss, storage):
    rng = np.random.default_rng(2)
    X, labels = rng.integers(-2, 3, size=(37, 6)).astype(float), rng.integers(0, 3, size=37)
    weight, W = rng.uniform(size=37), rng.normal(size=(7, 16))
    of = rng.integers(0, 3, size=16)
    out = np.zeros(16)
    classes = _kernels.Classes(labels, weight, 3)
    for lo, hi in ((0, 20), (20, 37)):
        _kernels.losses_k(
            kernel_rows(STORAGES[storage](X)),
            classes,
            _kernels.Loss(loss.native, *loss.params),
            lo,
            hi,
            W,
            of,
            out,
        )
    sign = np.where(labels[:, None] == of, 1.0, -1.0)
    assert out == pytest.approx(weight @ loss.value(sign * (X @ W[:-1] + W[-1])), rel=1e-10)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"select": "best"}, "no such order"),
        ({"sign": np.ones(2)}, "sign has n entries"),
        ({"budget": 0}, "budget"),
        ({"order": np.arange(3)}, "if and only if"),
        ({"select": "listed", "order": np.array([0, 1, 3])}, "does not exist"),
        ({"norms": np.empty(3)}, "differ in length"),
    ],
)
def test_perceptron_refuses_wrong_shapes(change, message):
    job = {
        "sign": np.ones(3),
        "lengths": np.ones(3),
        "select": "cyclic",
        "normalised": False,
        "intercept": True,
        "online": False,
        "max_updates": 5,
        "budget": 5,
        "order": None,
        "theta": np.zeros(3),
        "counts": np.zeros(5, dtype=np.int64),
        "numbers": np.zeros(2),
        "updated": np.zeros(2, dtype=np.int64),
        "norms": np.zeros(2),
        "sum": None,
    }
    with pytest.raises(ValueError, match=message):
        _kernels.perceptron(kernel_rows(np.eye(3, 2)), **{**job, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schedule": "cosine"}, "no such schedule"),
        ({"draws": np.array([0, 3])}, "does not exist"),
        ({"draws": np.array([-1, 0])}, "does not exist"),
        ({"batch": 3}, "whole batches"),
        ({"eta0": np.ones(2)}, "eta0"),
        ({"W": np.zeros((1, 2))}, "columns, d"),
        ({"sums": np.zeros((2, 3))}, "columns, d"),
    ],
)
def test_steps_refuse_wrong_shapes(change, message):
    job = {
        "classes": _kernels.Classes(np.array([0, 1, 1]), None, 2),
        "loss": _kernels.Loss("hinge"),
        "schedule": "constant",
        "eta0": np.ones(1),
        "decay": np.ones(1),
        "lam": 0.1,
        "total": 1.0,
        "batch": 1,
        "first": 0,
        "intercept": True,
        "draws": np.array([0, 1]),
        "W": np.zeros((1, 3)),
        "sums": None,
    }
    with pytest.raises(ValueError, match=message):
        _kernels.sgd(kernel_rows(np.eye(3, 2)), **{**job, **change})
