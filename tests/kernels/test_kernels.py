"""Every compiled loop against a few lines of numpy, for every storage, instruction set and awkward size."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from catalogue import (
    FALLING,
    NATIVE,
    SMOOTH,
    STORAGES,
    Sample,
    dense,
    naming,
    objective,
    plain,
)

from linsep import _kernels as K  # noqa: N812
from linsep.losses import get, zero_margin
from linsep.problem.closing_rows import close_rows, feasible

WIDTHS = (1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 28, 31, 33, 64, 100, 260)
HEIGHTS = (1, 7, 8, 9, 63, 64, 65, 255, 256, 257, 1000)
#: (n, d): every width, every height, and rows so wide that a chunk holds eight of them.
SIZES = sorted(
    {(n, d) for d in WIDTHS for n in (9, 65)}
    | {(n, d) for n in HEIGHTS for d in (3, 28)}
    | {(1000, 260), (257, 100), (17, 2100)}
)

each_storage = pytest.mark.parametrize("storage", STORAGES)
each_loss = pytest.mark.parametrize("loss", NATIVE, ids=naming)


def guarded(values):
    """A copy of a vector or matrix amid NaN (or zeros, for integers), so that a read beyond it shows."""
    margin = 16
    room = np.zeros(values.size + 2 * margin, values.dtype)
    if values.dtype.kind == "f":
        room[:] = np.nan
    inside = room[margin : margin + values.size].reshape(values.shape)
    inside[...] = values
    return inside


def rows_of(X):
    if sp.issparse(X):
        return K.Rows(guarded(X.data), guarded(X.indices), guarded(X.indptr), X.shape[1])
    return K.Rows(guarded(X))


@dataclass(frozen=True, eq=False)
class Case:
    """Rows lo .. hi of n are good, all others poisoned; A holds the good ones as (x, 1) in float64."""

    name: str
    lo: int
    hi: int
    rows: Any
    A: Any
    sign: Any
    offset: Any
    weight: Any
    h: Any
    theta: Any
    delta: Any

    @property
    def part(self):
        return slice(self.lo, self.hi)

    def targets(self, offset=True, weight=True):
        return K.Targets(
            self.sign, self.offset if offset else None, self.weight if weight else None
        )

    def margins(self, theta, offset=True):
        return self.sign[self.part] * (self.A @ theta) + (self.offset[self.part] if offset else 0.0)


@cache
def case(storage, n, d, whole=False):
    rng = np.random.default_rng(1000 * n + d)
    lo, hi = (0, n) if whole or n < 7 else (n // 5, n - n // 7)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    X[:lo] = X[hi:] = np.nan
    X = STORAGES[storage](X)
    out = np.full(n, np.nan)

    def vector(values):
        full = out.copy()
        full[lo:hi] = values
        return guarded(full)

    m = hi - lo
    return Case(
        name=f"{storage} n={n} d={d}",
        lo=lo,
        hi=hi,
        rows=rows_of(X),
        A=np.column_stack([dense(X)[lo:hi], np.ones(m)]),
        sign=vector(rng.choice([-1.0, 1.0], m)),
        offset=vector(rng.normal(size=m)),
        weight=vector(rng.choice([0.0, 0.5, 3.0], m)),
        h=vector(rng.choice([0.0, 0.0, 0.1, 2.0], m)),
        theta=guarded(rng.normal(size=d + 1) / np.sqrt(d)),
        delta=guarded(rng.normal(size=d + 1) / np.sqrt(d)),
    )


def cases(storage):
    for n, d in SIZES:
        yield case(storage, n, d)


def called(kernel, size, *before, after=()):
    """What the kernel adds to ``size`` outputs; it must add, and write nothing beyond them."""
    out = np.full(size + 8, 0.5)
    kernel(*before, out, *after)
    assert (out[size:] == 0.5).all(), "written beyond the end"
    return out[:size] - 0.5


def near(got, want, size, where):
    """Equal up to the rounding of sums whose terms have absolute values that add up to ``size``."""
    got, want, size = np.asarray(got), np.asarray(want), np.asarray(size)
    bad = ~(np.abs(got - want) <= 2e-13 * (np.abs(size) + 1.0))
    assert not bad.any(), (
        f"{where}: at {np.flatnonzero(bad)[:8]} got {got[bad][:4]} not {want[bad][:4]}"
    )


def weights_of(c, weight):
    return c.weight[c.part] if weight else np.ones(c.hi - c.lo)


def check_sweep(c, loss, offset=True, weight=True):
    d, s, sign = c.A.shape[1] - 1, weights_of(c, weight), c.sign[c.part]
    m, reach = c.margins(c.theta, offset), np.abs(c.A) @ np.abs(c.theta)
    a = s * sign * loss.slope(m)
    curvature = np.full(c.rows.n, -1.0)
    native = K.Loss(loss.native, *loss.params)
    args = (c.rows, c.targets(offset, weight), native, c.lo, c.hi, c.theta)
    where = f"{c.name} {naming(loss)} offset={offset} weight={weight}"
    got = called(K.sweep, d + 2, *args, after=(curvature,))
    size = np.abs(a) @ reach + s @ np.abs(loss.value(m))
    near(got[0], s @ loss.value(m), size, f"{where} value")
    near(got[1:], c.A.T @ a, np.abs(c.A).T @ (s * (1 + np.abs(loss.slope(m)))), f"{where} gradient")
    near(curvature[c.part], s * loss.curvature(m), s * (1 + reach), f"{where} curvature")
    assert (curvature[: c.lo] == -1).all() and (curvature[c.hi :] == -1).all()
    plain_value = called(K.sweep, 1, *args, after=(None, False))
    near(plain_value, got[:1], size, f"{where} value alone")


@each_storage
def test_sweep_at_every_size(instructions, storage):
    for c in cases(storage):
        check_sweep(c, get("logistic"))
        check_sweep(c, get("squared_hinge"))  # slopes of 0: rows that are left out


@each_storage
@each_loss
def test_sweep_of_every_loss(instructions, storage, loss):
    for offset in (False, True):
        for weight in (False, True):
            check_sweep(case(storage, 65, 9), loss, offset, weight)


@each_storage
@each_loss
def test_secant_curvatures(instructions, storage, loss):
    """Where blend * -l'/(kink - m) exceeds l'', it takes its place in the curvatures."""
    c = case(storage, 65, 9)
    s, m, native = c.weight[c.part], c.margins(c.theta), K.Loss(loss.native, *loss.params)
    args = (c.rows, c.targets(), native, c.lo, c.hi, c.theta)
    for blend in (0.5, 1.0):
        curvature = np.full(c.rows.n, -1.0)
        got = called(K.sweep, 11, *args, after=(curvature, True, blend))
        r = zero_margin(loss) - m
        want = s * np.maximum(loss.curvature(m), blend * -loss.slope(m) / r)
        near(curvature[c.part], want, want + s / np.abs(r), c.name)
        assert (got == called(K.sweep, 11, *args)).all()


def closing_by_numpy(c, loss, base, step, theta, dual):
    s, sign, o = c.weight[c.part], c.sign[c.part], c.offset[c.part]
    m = c.margins(theta)
    u = -(loss.slope(c.margins(base)) + loss.curvature(c.margins(base)) * sign * (c.A @ step))
    if dual is not None:
        u = dual[c.part].copy()
    u = feasible(loss, u, m, s)
    unit = dual is None and np.array_equal(base + step, theta)
    reach = np.abs(c.A) @ (np.abs(base) + np.abs(step) if unit else np.abs(theta))
    X = c.A[:, :-1]
    header, mass = close_rows(
        loss, (s, sign, o), m, u, (reach, np.linalg.norm(X, axis=1)), X.shape[1]
    )
    plus = np.maximum(mass, 0.0)
    sums = np.concatenate([header, X.T @ plus, X.T @ (mass - plus)])
    scale = header[6] + header[5] + s @ (1 + np.abs(u)) * (1 + reach.max(initial=0.0))
    return sums, np.full(len(sums), scale * (1 + np.abs(X).max(initial=0.0))), u


def check_closing(c, loss, dual, stretch=1.0):
    d = c.A.shape[1] - 1
    base, step, theta = c.theta, stretch * c.delta, c.theta + 0.1 * c.delta
    native = K.Loss(loss.native, *loss.params)
    args = (c.rows, c.targets(), native, c.lo, c.hi, base, step, theta, dual)
    found = np.full(c.rows.n, np.nan)
    got = called(K.closing, 8 + 2 * d, *args, after=(found,))
    want, size, u = closing_by_numpy(c, loss, base, step, theta, dual)
    near(got, want, size, f"{c.name} {naming(loss)}")
    near(found[c.part], u, size[0], f"{c.name} {naming(loss)} dual point")
    assert np.isnan(np.delete(found, np.arange(c.lo, c.hi))).all()


@each_storage
def test_closing_at_every_size(instructions, storage):
    for c in cases(storage):
        check_closing(c, get("logistic"), None)
        check_closing(c, get("logistic"), None, 0.1)  # theta is where the step ends


@each_storage
@each_loss
def test_closing_of_every_loss(instructions, storage, loss):
    c = case(storage, 65, 9)
    low, high = np.clip(loss.domain, -3.0, 3.0)
    rng = np.random.default_rng(0)
    check_closing(c, loss, None, 0.1)
    check_closing(c, loss, None, 10.0)  # many rows leave the domain and fall back
    check_closing(c, loss, rng.uniform(low, high, c.rows.n))
    check_closing(c, loss, rng.uniform(low - 1, high + 1, c.rows.n))


@each_storage
def test_gram(instructions, storage):
    for c in cases(storage):
        if c.rows.d > 1000:
            continue
        order = c.rows.d + 1
        mu = np.zeros(c.rows.d)
        if "dense" in storage:
            mu = np.linspace(-1.0, 2.0, c.rows.d)
        B = c.A - np.append(mu, 0.0)
        h = c.h[c.part]
        H = called(K.gram, order * order, c.rows, c.lo, c.hi, c.h, mu).reshape(order, order)
        upper = np.triu(H, 1)
        if "csr" in storage:
            upper += np.tril(H, -1).T
        want = B.T @ (h[:, None] * B)
        size = np.abs(B).T @ (h[:, None] * np.abs(B))
        near(upper, np.triu(want, 1), size, c.name)
        near(np.diag(H), np.diag(want), np.diag(size), c.name)


@each_storage
def test_gram_in_single_precision(instructions, storage):
    """Each entry errs by a small multiple of the precision of float32, relative to its sum of absolute values."""
    for c in cases(storage):
        if c.rows.d > 1000:
            continue
        order, h = c.rows.d + 1, c.h[c.part]
        mu = np.linspace(-1.0, 2.0, c.rows.d) if "dense" in storage else np.zeros(c.rows.d)
        B = c.A - np.append(mu, 0.0)
        H = called(K.gram, order * order, c.rows, c.lo, c.hi, c.h, mu, after=(True,))
        H = H.reshape(order, order)
        upper = np.triu(H) + (np.tril(H, -1).T if "csr" in storage else 0.0)
        size = np.abs(B).T @ (h[:, None] * np.abs(B))
        error = np.abs(upper - np.triu(B.T @ (h[:, None] * B)))
        assert (error <= 2e-5 * size + 1e-30).all(), c.name
        if "csr" in storage:
            same = called(K.gram, order * order, c.rows, c.lo, c.hi, c.h, mu)
            np.testing.assert_array_equal(H.ravel(), same)


def test_newton_sees_through_single_precision(instructions):
    """Columns of any size, dependent ones, a huge C: the gap is closed all the same, by Grams in double."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 20))
    X[:, 5] = X[:, 4] + 1e-4 * X[:, 6]
    X *= np.logspace(-6, 6, 20)
    X[:, 7] = 3.0
    sample = Sample(X, np.sign(rng.normal(size=400) + X[:, 0] * 1e6))
    for name in ("logistic", "squared_hinge"):
        for lam in (1e-7, 1.0, 1e3):
            report, theta, *_ = fit_natively(sample, get(name), lam, tol=1e-9)
            assert report[0] == 1 and np.isfinite(theta).all()
            assert report[4] - report[5] <= 1e-9 * report[4]


@each_storage
def test_hess_vec_and_combine(instructions, storage):
    for c in cases(storage):
        order, h = c.rows.d + 1, c.h[c.part]
        got = called(K.hess_vec, order, c.rows, c.lo, c.hi, c.h, c.theta)
        size = np.abs(c.A).T @ (h * (np.abs(c.A) @ np.abs(c.theta)))
        near(got, c.A.T @ (h * (c.A @ c.theta)), size, c.name)
        a = c.h * c.sign
        got = called(K.combine, order, c.rows, c.lo, c.hi, a)
        near(got, c.A.T @ a[c.part], np.abs(c.A).T @ h, c.name)


@each_storage
def test_moments_and_row_norms(instructions, storage):
    for c in cases(storage):
        d, X = c.rows.d, c.A[:, :-1]
        for h in (c.h, None):
            g = np.ones(len(X)) if h is None else h[c.part]
            want = np.concatenate([(X * X).T @ g, X.T @ g, [g.sum()]])
            size = np.concatenate([(X * X).T @ g, np.abs(X).T @ g, [g.sum()]])
            near(called(K.moments, 2 * d + 1, c.rows, c.lo, c.hi, h), want, size, c.name)
        norms = np.full(c.rows.n + 3, 0.5)
        K.row_norms(c.rows, c.lo, c.hi, norms)
        want = np.full(c.rows.n + 3, 0.5)
        want[c.part] = (X * X).sum(axis=1)
        near(norms, want, want, c.name)


@each_storage
def test_scores(instructions, storage):
    for c in cases(storage):
        z = np.full(c.hi - c.lo + 3, 7.0)
        K.scores(c.rows, c.lo, c.hi, c.theta, z)
        assert (z[-3:] == 7.0).all()
        near(z[:-3], c.A @ c.theta, np.abs(c.A) @ np.abs(c.theta), c.name)


@each_storage
def test_ray(instructions, storage):
    steps = np.array([0.0, 0.25, 1.0, -2.0])
    for loss in (get("logistic"), get("squared_hinge"), get("huber")):
        native = K.Loss(loss.native, *loss.params)
        for c in cases(storage):
            s, sign = c.weight[c.part], c.sign[c.part]
            want, size = [], []
            for step in steps:
                m, dz = c.margins(c.theta + step * c.delta), c.A @ c.delta
                reach = np.abs(c.A) @ (np.abs(c.theta) + np.abs(step * c.delta))
                want += [s @ loss.value(m), (s * sign * loss.slope(m)) @ dz]
                size += 2 * [s @ (loss.value(m) + (1 + reach) * (1 + reach))]
            args = (c.rows, c.targets(), native, c.lo, c.hi, c.theta, c.delta, steps)
            near(called(K.ray, 2 * len(steps), *args), want, size, c.name)


def test_empty_ranges_add_nothing(instructions):
    c, d = case("dense64", 9, 3), 3
    loss, targets = K.Loss("logistic"), c.targets()
    assert not called(K.sweep, d + 2, c.rows, targets, loss, 4, 4, c.theta).any()
    assert not called(K.gram, 16, c.rows, 4, 4, c.h, np.zeros(d)).any()
    assert not called(K.moments, 2 * d + 1, c.rows, 9, 9, None).any()
    nothing = K.Rows(np.zeros((0, 3)))
    assert not called(K.combine, d + 1, nothing, 0, 0, np.zeros(0)).any()


def fit_natively(
    sample, loss, lam, *, tol=1e-7, steps=100, intercept=True, polish=False, start=None
):
    d = sample.X.shape[1]
    theta = np.zeros(d + 1) if start is None else start.copy()
    base, step, sums = np.zeros(d + 1), np.zeros(d + 1), np.zeros(8 + 2 * d)
    targets = K.Targets(sample.sign, sample.offset, sample.weight)
    native = K.Loss(loss.native, *loss.params)
    report = K.newton(
        rows_of(sample.X),
        targets,
        native,
        lam,
        tol,
        steps,
        intercept,
        polish,
        True,
        theta,
        base,
        step,
        sums,
    )
    return report, theta, base, step, sums


@each_storage
@pytest.mark.parametrize("loss", [loss for loss in SMOOTH if loss.native], ids=naming)
@pytest.mark.parametrize("intercept", [True, False])
def test_newton_finds_the_stationary_point(instructions, storage, loss, intercept):
    for n, d in ((50, 1), (60, 3), (90, 17)):
        rng = np.random.default_rng(d)
        data = plain(n, d, seed=d)
        sample = Sample(
            STORAGES[storage](data.X),
            data.sign,
            0.2 * rng.normal(size=n),
            rng.choice([0.0, 1, 2], n),
        )
        found = fit_natively(sample, loss, 0.1, polish=True, intercept=intercept)
        (status, steps, sweeps, grams, primal, dual), theta, base, step, sums = found
        assert status == 1 and steps < grams <= 2 * steps + 2 and steps < sweeps
        assert dual <= primal * (1 + 1e-12) and primal - dual <= 1e-7 * primal
        value, g, H = objective(loss, 10.0, sample, theta, intercept)  # reported: C = 1/lam times P
        np.testing.assert_allclose(10 * primal, value, rtol=1e-12)
        if not intercept:
            assert theta[-1] == 0.0
            H[-1, -1] = 1.0
        assert g @ np.linalg.solve(H, g) <= 1e-16 * value
        again = np.zeros_like(sums)
        targets = K.Targets(sample.sign, sample.offset, sample.weight)
        native = K.Loss(loss.native, *loss.params)
        K.closing(rows_of(sample.X), targets, native, 0, n, base, step, theta, None, again)
        np.testing.assert_array_equal(sums, again)


@pytest.mark.parametrize("loss", [loss for loss in SMOOTH if loss.native], ids=naming)
@pytest.mark.parametrize("intercept", [True, False])
def test_newton_stops_on_a_true_gap(instructions, loss, intercept):
    """The sums prove the tolerance: a dual point, made feasible for the intercept, as near as claimed."""
    for seed, tol in enumerate([1e-1, 1e-2, 1e-3, 1e-5, 1e-8]):
        sample, lam = plain(80, 3, seed=seed), 0.1
        found = fit_natively(sample, loss, lam, tol=tol, intercept=intercept)
        (status, *_), theta, _, _, sums = found
        plus, minus = sums[3], sums[4]
        k = min(1.0, minus / plus), min(1.0, plus / minus)
        if not intercept:
            k = 1.0, 1.0
        v = k[0] * sums[8:11] + k[1] * sums[11:14]
        bound = -k[0] * sums[1] - k[1] * sums[2] - v @ v / (2 * lam)
        value = lam * objective(loss, 1 / lam, sample, theta, intercept)[0]
        assert status == 1 and value - bound <= 1.001 * tol * value


def test_newton_says_how_it_ended(instructions):
    sample = plain(60, 3)
    assert fit_natively(sample, get("logistic"), 0.1, steps=1, tol=1e-12)[0][0] == 0
    assert fit_natively(sample, get("logistic"), 0.1)[0][0] == 1
    assert fit_natively(sample, get("logistic"), 0.0)[0][0] == 2  # no penalty: working precision
    apart = Sample(sample.X, np.sign(sample.X[:, 0]))
    for loss in FALLING:
        report, theta, *_ = fit_natively(apart, loss, 0.0)
        assert report[0] == 3
        assert (apart.sign * (apart.X @ theta[:-1] + theta[-1]) > 0).all()
    poisoned = Sample(np.where(sample.X == sample.X[3, 1], np.nan, sample.X), sample.sign)
    assert fit_natively(poisoned, get("logistic"), 0.1)[0][0] == 4


def test_newton_continues_from_its_answer(instructions):
    sample, loss = plain(60, 3), get("logistic")
    report, theta, *_ = fit_natively(sample, loss, 0.1, tol=1e-10, polish=True)
    again, same, *_ = fit_natively(sample, loss, 0.1, tol=1e-10, start=theta)
    assert again[1] == 0 and report[1] > 2
    np.testing.assert_allclose(same, theta, rtol=1e-9)


def test_denormal_numbers_survive(instructions):
    """No kernel may leave the processor in a mode where tiny numbers become 0."""
    for c in (case("dense64", 65, 9), case("csr64-int32", 65, 9)):
        check_sweep(c, get("logistic"))
        check_closing(c, get("exponential"), None)
    fit_natively(plain(60, 3), get("logistic"), 0.1)
    tiny = np.array([np.finfo(float).tiny])
    assert (tiny / 4 > 0).all() and (tiny / 4 * 4 == tiny).all()
    z = np.zeros(1)
    K.scores(K.Rows(np.full((1, 9), 1e-310)), 0, 1, np.append(np.ones(9), 0.0), z)
    np.testing.assert_allclose(z, 9e-310, rtol=1e-9)


@pytest.mark.parametrize("kind", [np.float64, np.int64, np.int32, np.int8, np.bool_])
def test_two_classes(kind):
    rng = np.random.default_rng(1)
    for low, high in ((0, 1), (-1, 1), (3, 7)):
        for n in (2, 9, 100):
            y = np.where(rng.random(n) < 0.4, low, high)
            y[:2] = (high, low) if n % 2 else (low, high)
            y = y.astype(kind)
            if y.min() == y.max():  # 3 and 7 as booleans
                continue
            sign = np.empty(n)
            at = K.two_classes(y, sign)
            assert at == (int(np.argmin(y)), int(np.argmax(y)))
            np.testing.assert_array_equal(sign, np.where(y == y.max(), 1.0, -1.0))


def test_two_classes_are_neither_one_nor_three():
    sign = np.empty(4)
    for y in (
        [1.0, 1, 1, 1],
        [1.0, 2, 3, 1],
        [1.0, 2, np.nan, 1],
        [np.nan, 1, 2, 1],
        [0.0, 1, 0, np.inf],
    ):
        assert K.two_classes(np.array(y), sign) == (-1, -1)
    assert K.two_classes(np.ones(4, dtype=np.uint16), sign) == (-1, -1)
    assert K.two_classes(np.zeros(0), np.zeros(0)) == (-1, -1)
    with pytest.raises(ValueError, match="entry per label"):
        K.two_classes(np.array([0.0, 1.0]), np.empty(1))


@each_storage
def test_all_finite(instructions, storage):
    for n, d in ((1, 1), (7, 3), (40, 17)):
        X = STORAGES[storage](np.random.default_rng(n).normal(size=(n, d)))
        assert K.all_finite(rows_of(X))
        values = X.data if "csr" in storage else X
        for bad in (np.nan, np.inf, -np.inf):
            for at in (0, values.size // 2, values.size - 1):
                kept = values.flat[at]
                values.flat[at] = bad
                assert not K.all_finite(rows_of(X))
                values.flat[at] = kept


@each_storage
def test_sigmoids_and_softmaxes(instructions, storage):
    """Probabilities from scores, to a few units in the last place of each, and never beyond [lo, hi)."""
    for c in cases(storage):
        z = c.A @ c.theta
        P = np.full((c.hi - c.lo, 2), np.nan)
        assert K.sigmoids(c.rows, c.lo, c.hi, c.theta, P)
        slack = 1e-14 * (1 + np.abs(c.A) @ np.abs(c.theta))[:, None]
        want = np.exp(-np.logaddexp(0, np.column_stack([z, -z])))
        assert (np.abs(P - want) <= slack * want).all()
        for k in (3, 8, 9):
            rng = np.random.default_rng(k)
            W = np.zeros((c.rows.d + 1, -(-k // 8) * 8))
            W[:, :k] = 0.1 * rng.normal(size=(c.rows.d + 1, k))
            P = np.full((c.hi - c.lo, k), np.nan)
            assert K.softmaxes(c.rows, c.lo, c.hi, W, P)
            Z = c.A @ W[:, :k]
            want = np.exp(Z - np.logaddexp.reduce(Z, axis=1, keepdims=True))
            slack = 1e-13 * (1 + (np.abs(c.A) @ np.abs(W[:, :k])).max(axis=1))[:, None]
            assert (np.abs(P - want) <= slack).all()


def test_scores_say_whether_they_are_finite(instructions):
    X = np.random.default_rng(0).normal(size=(20, 5))
    theta, W = np.ones(6), np.ones((6, 8))
    for at in (0, 7, 19):
        for bad in (np.nan, np.inf):
            Y = X.copy()
            Y[at, 2] = bad
            for Z, good in ((X, True), (Y, False)):
                rows = K.Rows(Z)
                assert K.scores(rows, 0, 20, theta, np.empty(20)) is good
                assert K.sigmoids(rows, 0, 20, theta, np.empty((20, 2))) is good
                assert K.softmaxes(rows, 0, 20, W, np.empty((20, 3))) is good
    with pytest.raises(ValueError, match="row of two"):
        K.sigmoids(K.Rows(X), 0, 20, theta, np.empty((20, 3)))
    with pytest.raises(ValueError, match="multiple of 8"):
        K.softmaxes(K.Rows(X), 0, 20, np.ones((6, 3)), np.empty((20, 3)))
