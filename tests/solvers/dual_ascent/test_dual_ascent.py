"""Dual coordinate ascent: the kernel against a plain text of the same loop, the solver against its promises."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from ascent import LOSSES, epoch, many, move, text
from catalogue import (
    MAKERS,
    STORAGES,
    Sample,
    dense,
    fit,
    makers,
    naming,
    plain,
    reference,
)
from scipy.optimize import brentq

from linsep import _kernels as K  # noqa: N812
from linsep.certificates import certify
from linsep.errors import NonFinite
from linsep.losses import get
from linsep.solution import Explicit, Status, Stop
from linsep.solvers.cost.shape import shape_of
from linsep.solvers.dual_ascent import native as ascent_module
from linsep.solvers.dual_ascent import solve as dual_cd

each_loss = pytest.mark.parametrize("loss", LOSSES, ids=naming)


def native(  # noqa: PLR0917
    sample,
    loss,
    lam,
    stiffness,
    order,
    bucket,
    u,
    theta,
    state,
    cuts=(),
    listed=None,
    far=math.inf,
    two=False,
):
    data = sample.memory().whole
    norms, z, seen = np.zeros(len(u)), np.zeros(len(u)), np.zeros(len(u))
    K.row_norms(data.rows, 0, len(u), norms)
    edges = [0, *cuts, len(order)]
    kernel = K.Loss(loss.native, *loss.params)
    for a, b in itertools.pairwise(edges):
        K.dual_cd(
            data.rows,
            data.targets,
            kernel,
            a,
            b,
            order,
            bucket,
            listed,
            far,
            lam,
            stiffness,
            norms,
            u,
            z,
            seen,
            theta,
            state,
            None,
            0.0,
            two,
        )
    return z, seen


@pytest.mark.parametrize("kind", STORAGES)
@each_loss
def test_the_kernel_is_the_plain_loop(loss, kind, instructions):
    sample = many()
    n, d = sample.X.shape
    for lam, stiffness, bucket in ((1.0, 0.2, 4), (0.003, 0.0, 1), (50.0, 0.01, 16)):
        order = np.arange(-(-n // bucket), dtype=np.int64)
        K.shuffle(order, 7)
        rows = [i for k in order for i in range(k * bucket, min(n, (k + 1) * bucket))]
        u, theta, state = np.zeros(n), np.zeros(d + 1), np.zeros(4)
        theta[-1] = -0.4
        want_u, want_theta, e = u.copy(), theta.copy(), 0.0
        for _ in range(2):
            z, seen = native(
                sample.in_storage(kind), loss, lam, stiffness, order, bucket, u, theta, state, (3,)
            )
            e = epoch(sample, loss, lam, stiffness, rows, want_u, want_theta, e)
        size = max(1.0, np.abs(want_u).max())
        assert np.abs(u - want_u).max() <= 1e-12 * size
        assert np.abs(theta - want_theta).max() <= 1e-11 * np.abs(want_theta).max()
        mass = sample.weight * sample.sign * u
        v = sample.X.T @ mass
        assert np.abs(lam * theta[:-1] - v).max() <= 1e-12 * np.abs(mass).sum()
        assert abs(state[0] - mass.sum()) <= 1e-12 * np.abs(mass).sum()
        last = [i for i in rows if sample.weight[i] > 0][-1]
        assert abs(z[last] - sample.X[last] @ theta[:-1]) <= 1e-10 * max(1.0, abs(z[last]))
        assert seen[last] == pytest.approx(theta[-1] + stiffness * state[0], abs=1e-10)
        m = sample.sign * (z + seen) + sample.offset
        if loss.smooth:
            close = 1e-3 if loss.name == "logistic" else 1e-9
            off = np.abs(-loss.slope(m) - u)
        else:  # u is at the end of its interval that the margin asks for, or the margin is at the kink
            close, (low, high) = 1e-8, loss.domain
            off = np.where(m < 1.0, high - u, u - low) * np.abs(1.0 - m)
        assert off[sample.weight > 0].max() <= close * size, "u is the slope there"
        assert theta[-1] == -0.4 and not u[sample.weight == 0.0].any()


@pytest.mark.parametrize("d", [399, 401, 2051])  # one row at a time, four, four by two threads
@each_loss
def test_long_rows_are_the_plain_loop(loss, d, instructions):
    """Four rows at a time move as they would one after another, also where an order repeats itself."""
    sample = many(n=30, d=d)
    order = np.arange(30, dtype=np.int64)
    K.shuffle(order, 5)
    order = np.concatenate([order, order[[7, 7, 7, 3, 7]]])
    lam, stiffness = 20.0, 0.1
    want_u, want_theta = np.zeros(30), np.zeros(d + 1)
    e = epoch(sample, loss, lam, stiffness, order, want_u, want_theta, 0.0)
    answers = []
    for kind in (np.float64, np.float32):
        part = Sample(sample.X.astype(kind), sample.sign, sample.offset, sample.weight)
        for two in (False, True):
            u, theta, state = np.zeros(30), np.zeros(d + 1), np.zeros(4)
            native(part, loss, lam, stiffness, order, 1, u, theta, state, (9,), two=two)
            answers.append((u, theta, state))
    for u, theta, state in answers:
        assert np.abs(u - want_u).max() <= 1e-12 * max(1.0, np.abs(want_u).max())
        assert np.abs(theta - want_theta).max() <= 1e-11 * np.abs(want_theta).max()
        assert state[0] == pytest.approx(e, abs=1e-11)
    for one, two in (answers[:2], answers[2:]):  # whoever made the second half
        for x, y in zip(one, two, strict=True):
            np.testing.assert_array_equal(x, y)


@each_loss
def test_rows_at_rest_leave_the_list(loss):
    """Those that did not move and whose slope points farther than ``far`` beyond the end: the others stay."""
    sample, lam, b0 = many(), 0.5, 0.2
    n, d = sample.X.shape
    rows = np.flatnonzero(np.arange(n) % 3 > 0)
    order = np.arange(-(-len(rows) // 2), dtype=np.int64)
    u, theta, state = np.zeros(n), np.zeros(d + 1), np.zeros(4)
    theta[-1] = b0
    for _ in range(40):
        native(sample, loss, lam, 0.1, order, 2, u, theta, state, (), rows.copy())
    assert not u[np.arange(n) % 3 == 0].any(), "rows that are not listed are not visited"
    listed, before, state[2] = rows.copy(), u.copy(), 0.0
    native(sample, loss, lam, 0.1, order, 2, u, theta, state, (), listed, 0.05)
    bend = 1.0 / loss.curvature_bound if loss.smooth else 0.0
    left = np.where(listed < 0, ~listed, 0)[listed < 0]
    for i in left:  # nothing moves much any more: the slopes now are about those of the visit
        m = sample.sign[i] * (sample.X[i] @ theta[:-1] + b0 + 0.1 * state[0]) + sample.offset[i]
        assert u[i] == before[i] and u[i] in loss.domain
        assert (1.0 - m - bend * u[i]) * (1.0 if u[i] == loss.domain[1] else -1.0) > 0.04
    assert (len(left) > 0) is (loss.name not in ("logistic", "squared"))
    kept = K.remaining(listed)
    assert kept + len(left) == len(rows)
    assert np.array_equal(listed[:kept], np.setdiff1d(rows, left)), "in their order"
    gone = np.full(3, -1)
    native(sample, loss, lam, 0.1, np.arange(3), 1, u, theta, state, (), gone)
    assert K.remaining(gone) == K.remaining(np.zeros(0, np.int64)) == 0


@pytest.mark.parametrize("factor", [0.0, 0.25, 1e9])
@pytest.mark.parametrize("name", ["hinge", "squared_hinge", "absolute", "huberised_hinge"])
def test_who_leaves_decides_about_time_alone(name, factor, monkeypatch, tuned):
    """Let every row at rest leave, or none: the gap closes all the same, since they are asked again."""
    sample, loss = text(), get(name)
    tuned(ascent_leave=factor, ascent_entries_per_call=2 * sample.X.nnz)
    counts = []
    real = ascent_module.Ascent.advance
    monkeypatch.setattr(
        ascent_module.Ascent,
        "advance",
        lambda a, r: (counts.append(a.native.listed), real(a, r))[1],
    )
    for C in (0.05, 1.0):
        assert fit(sample, loss, C, "dual-cd", tol=1e-7).certificate.certified
    assert (min(counts) < len(sample.sign)) is (factor < 1e9)


@each_loss
def test_a_move_ends_at_the_maximiser(loss):
    """Repeated visits to a single row reach the root of u = -l'(c + q u), whatever the start."""
    rng = np.random.default_rng(0)
    for q in (0.0, 1e-3, 1.0, 30.0, 1e4):
        for m in (-30.0, -2.0, 0.0, 0.7, 3.0, 40.0, 600.0):
            sample = Sample(np.array([[math.sqrt(q)]]), np.ones(1), np.array([m]))
            u = np.clip(rng.random(1), *loss.domain)
            theta, state = np.array([math.sqrt(q) * u[0], 0.0]), u.copy()
            state = np.array([u[0], 0.0, 0.0, 0.0])
            start = u[0]
            for visit in range(6):
                native(sample, loss, 1.0, 0.0, np.zeros(1, np.int64), 1, u, theta, state)
                if visit == 0:
                    first = u[0]
            if loss.name == "logistic":
                f = lambda x: m + q / (1.0 + math.exp(min(x, 700.0))) - x  # noqa: B023, E731
                root = -get("logistic").slope(brentq(f, m - 1.0, m + q + 1.0, xtol=1e-15))
            else:
                root = move(loss, m, 0.0, q)
            assert abs(u[0] - root) <= 1e-12 * max(1.0, abs(root))
            assert abs(first - root) <= 1e-3 * abs(start - root) + 1e-13, (
                "one visit nearly gets there"
            )
            assert loss.domain[0] <= u[0] <= loss.domain[1]


@each_loss
def test_every_visit_ascends(loss):
    """The augmented dual never falls while the multiplier stays."""
    sample, lam, stiffness, b0 = many(), 0.05, 0.7, 0.3
    n, d = sample.X.shape
    u, theta, state = np.zeros(n), np.zeros(d + 1), np.zeros(4)
    theta[-1] = b0

    def dual():
        mass = sample.weight * sample.sign * u
        v, e = sample.X.T @ mass, mass.sum()
        return (
            -sample.weight @ (loss.conjugate(-u) + u * sample.offset)
            - 0.5 * v @ v / lam
            - b0 * e
            - 0.5 * stiffness * e**2
        )

    value = dual()
    for k in range(3 * n):
        native(sample, loss, lam, stiffness, np.array([k % n]), 1, u, theta, state)
        new = dual()
        assert new >= value - 1e-12 * abs(value)
        value = new


def test_the_slacks_are_those_of_fenchel_and_young():
    sample = many()
    n, d = sample.X.shape
    for loss in LOSSES:
        u, theta, state = np.zeros(n), np.zeros(d + 1), np.zeros(4)
        order = np.arange(n, dtype=np.int64)
        for _ in range(30):
            native(sample, loss, 20.0, 0.1, order, 1, u, theta, state)
        i, state[1] = 0, 0.0
        while sample.weight[i] == 0.0:
            i += 1
        u[i] = 0.8 * u[i] + 0.2 * (0.1 if loss.name == "huber" else 0.4)
        mass = sample.weight * sample.sign * u
        theta[:-1], state[0] = sample.X.T @ mass / 20.0, mass.sum()
        m = sample.sign[i] * (sample.X[i] @ theta[:-1] + 0.1 * state[0]) + sample.offset[i]
        want = sample.weight[i] * float(loss.value(m) + loss.conjugate(-u[i]) + u[i] * m)
        native(sample, loss, 20.0, 0.1, np.array([i]), 1, u, theta, state)
        assert state[1] == pytest.approx(want, rel=0.3 if loss.name == "logistic" else 1e-9)


def easy(loss, maker, C, fit_intercept):
    """Whether the problem is the business of ascent: few features with far from orthogonal rows are not."""
    problem = MAKERS[maker]().problem(loss, C, fit_intercept)
    return shape_of(problem).hardness <= 10.0


EASY = [
    case
    for loss in LOSSES
    for case in itertools.product([loss], makers(loss), (1e-3, 0.1), (True, False))
    if easy(*case)
]


@pytest.mark.sampled(40)
@pytest.mark.parametrize(("loss", "maker", "C", "fit_intercept"), EASY, ids=naming)
def test_the_gap_closes_on_small_problems(loss, maker, C, fit_intercept):
    problem = MAKERS[maker]().problem(loss, C, fit_intercept)
    start = np.zeros(problem.order)
    found = dual_cd.solve(problem, start, Stop(1e-6), epochs=400)
    proof = certify(problem, found, 1e-6)
    assert found.status is Status.CERTIFIED and proof.certified, str(proof)
    assert isinstance(found.dual, Explicit)
    assert found.trace and found.trace[-1].passes == found.passes == problem.passes
    if fit_intercept:
        want = reference(loss, maker, C)
        assert proof.dual <= want * (1 + 1e-9) and proof.primal <= want * (1 + 2e-6)
    else:
        assert found.W[-1, 0] == 0.0


@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
@each_loss
def test_text_is_certified_in_a_few_passes(loss, C):
    problem = text().problem(loss, C)
    found = dual_cd.solve(problem, np.zeros(problem.order), Stop(1e-6))
    proof = certify(problem, found, 1e-6)
    assert proof.certified, str(proof)
    assert found.sums is not None, "the closing pass is not made twice"
    if loss.smooth:
        assert problem.passes <= (16 if loss.curvature_bound * C <= 1.0 else 300)
    else:  # at C=30 the absolute loss is 0 on most rows
        assert problem.passes <= (100 if C <= 1.0 else 600)


@each_loss
def test_weight_two_is_the_row_twice(loss):
    base = text(120, 60)
    X, rng = dense(base.X), np.random.default_rng(5)
    count = rng.integers(0, 3, size=len(base.sign))
    once = Sample(X, base.sign, weight=count.astype(float)).problem(loss, 2.0)
    twice = Sample(np.repeat(X, count, axis=0), np.repeat(base.sign, count)).problem(loss, 2.0)
    answers = []
    for problem in (once, twice):
        found = dual_cd.solve(problem, np.zeros(problem.order), Stop(1e-11), epochs=2000)
        proof = certify(problem, found, 1e-11)
        answers.append((found.W[:-1, 0], proof.coef_error, proof.primal))
    (w, e, p), (w2, e2, p2) = answers
    assert np.linalg.norm(w - w2) <= e + e2 <= 1e-2
    assert p == pytest.approx(p2, rel=1e-10)


def test_same_seed_same_bits_however_it_is_cut(tuned):
    sample, loss = text(), get("logistic")

    def answer(seed, n_threads, entries):
        tuned(ascent_entries_per_call=entries)
        problem = sample.problem(loss)
        problem.data.n_threads = n_threads
        found = dual_cd.solve(problem, np.zeros(problem.order), Stop(1e-6), seed=seed)
        return found.W, found.dual.u

    W, u = answer(3, 1, 10**9)
    for seed, threads, entries, same in (
        (3, 1, 10**9, True),
        (3, 2, 100, True),
        (4, 1, 10**9, False),
    ):
        W2, u2 = answer(seed, threads, entries)
        assert (np.array_equal(W, W2) and np.array_equal(u, u2)) is same
        assert np.abs(W - W2).max() <= 1e-2


def test_the_order_is_a_fixed_permutation():
    order = np.arange(1000, dtype=np.int64)
    K.shuffle(order, 1)
    assert np.array_equal(np.sort(order), np.arange(1000))
    small = np.arange(8, dtype=np.int64)
    K.shuffle(small, 2**64 - 1)
    seed, want = 2**64 - 1, list(range(8))
    for k in range(7, 0, -1):
        seed = (seed + 0x9E3779B97F4A7C15) % 2**64
        x = ((seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) % 2**64
        j = (((x ^ (x >> 31)) >> 32) * (k + 1)) >> 32
        want[k], want[j] = want[j], want[k]
    assert small.tolist() == want


@each_loss
def test_sums_at_shifted_scores(loss):
    sample = many()
    z, out = np.linspace(-3, 4, len(sample.sign)), np.zeros(3)
    data = sample.memory().whole
    K.shifted_sums(data.targets, K.Loss(loss.native, *loss.params), 2, 80, z, 0.4, out)
    m = (sample.sign * (z + 0.4) + sample.offset)[2:80]
    s, sign = sample.weight[2:80], sample.sign[2:80]
    want = [s @ loss.value(m), (s * sign) @ loss.slope(m), s @ loss.curvature(m)]
    assert out == pytest.approx(want, rel=1e-12)


def test_a_start_near_the_answer_is_kept():
    sample, loss = text(), get("logistic")
    problem = sample.problem(loss, 5.0)
    far = dual_cd.solve(problem, np.zeros(problem.order), Stop(1e-9))
    again = sample.problem(loss, 5.0)
    near = dual_cd.solve(again, far.W[:, 0], Stop(1e-6))
    assert near.status is Status.CERTIFIED and again.passes <= 7 < problem.passes
    assert np.abs(near.W - far.W).max() <= 1e-2 and np.abs(near.dual.u - far.dual.u).max() <= 1e-2


def test_limits_are_kept():
    sample, loss = text(noise=2.0), get("squared_hinge")
    for stop, status in (
        (Stop(1e-9, max_passes=6), Status.PASS_LIMIT),
        (Stop(1e-9, 0.0), Status.TIME_LIMIT),
    ):
        problem = sample.problem(loss, 100.0)
        found = dual_cd.solve(problem, np.zeros(problem.order), stop)
        assert found.status is status and problem.passes <= 7
        assert np.isfinite(found.W).all() and certify(problem, found, 1e-9).dual >= 0.0
    problem = sample.problem(loss, 100.0)
    found = dual_cd.solve(problem, np.zeros(problem.order), Stop(1e-12), epochs=3)
    assert found.status is Status.WORKING_PRECISION and 4.0 < problem.passes <= 6.0


def test_it_knows_when_it_is_slow():
    """Noisy labels, many rows per feature, a weak penalty: the gap is in the trace, for who takes over."""
    sample = plain(n=3000, d=10)
    problem = sample.problem(get("logistic"), 1e4)
    found = dual_cd.solve(problem, np.zeros(problem.order), Stop(1e-8), budget=30.0)
    assert found.status is Status.WORKING_PRECISION and problem.passes < 100
    assert np.isfinite(found.W).all() and found.trace[-1].primal > found.trace[-1].dual >= 0.0


@pytest.mark.parametrize("seed", [2, 3])
def test_it_is_not_ended_early_for_a_method_that_costs_thousands_of_epochs(seed):
    """Short texts, hinge, weak penalty: slacks vary so much that a rate measured over few epochs says little."""
    rng, n, d = np.random.default_rng(seed), 2000, 4000
    share = 1.0 / (np.arange(d) + 3.0)
    words = [rng.choice(d, 1 + rng.integers(4), p=share / share.sum()) for _ in range(n)]
    row = np.repeat(np.arange(n), [len(w) for w in words])
    X = sp.csr_matrix((np.ones(len(row)), (row, np.concatenate(words))), (n, d))
    X.sum_duplicates()
    X.data = 1.0 / np.sqrt(np.repeat(np.diff(X.indptr), np.diff(X.indptr)))
    y = np.where(X @ rng.standard_normal(d) + rng.standard_normal(n) > 0, 1.0, -1.0)
    problem = Sample(X, y).problem(get("hinge"), 100.0)
    found = dual_cd.solve(problem, np.zeros(problem.order), Stop(1e-6), budget=60_000.0)
    assert found.status is Status.CERTIFIED and problem.passes < 6_000


def test_a_penalty_of_almost_nothing_is_handed_back():
    for C in (1e200, 1e307):
        problem = text().problem(get("logistic"), C)
        found = dual_cd.solve(problem, np.zeros(problem.order), Stop(1e-6))
        assert found.status is Status.WORKING_PRECISION and np.isfinite(found.W).all()


def test_rows_and_weights_of_zero():
    for X in (np.zeros((6, 2)), np.zeros((6, 0))):
        sample = Sample(X, np.array([1.0, 1, 1, 1, -1, -1]), weight=np.array([1.0, 1, 1, 0, 1, 2]))
        problem = sample.problem(get("squared"))
        found = dual_cd.solve(problem, np.zeros(problem.order), Stop(1e-9))
        assert found.status is Status.CERTIFIED and abs(found.W[-1, 0]) <= 1e-6
    nothing = Sample(np.ones((3, 1)), np.array([1.0, -1, 1]), weight=np.zeros(3)).problem(
        get("logistic")
    )
    assert not dual_cd.solve(nothing, np.zeros(2), Stop(1e-6), epochs=3).W.any()


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_numbers_that_are_not_finite(bad):
    X = np.ones((4, 2))
    X[2, 1] = bad
    problem = Sample(X, np.array([1.0, -1, 1, -1])).problem(get("logistic"))
    with pytest.raises(NonFinite):
        dual_cd.solve(problem, np.zeros(3), Stop(1e-6))


def test_which_problems_it_takes():
    sample = text()
    assert dual_cd.applies(sample.problem(get("logistic")))
    for loss, C in (("exponential", 1.0), ("perceptron", 1.0), ("hinge", math.inf)):
        problem = sample.problem(get(loss), C)
        assert not dual_cd.applies(problem)


def test_the_kernel_checks_what_it_is_given():
    data = many().memory().whole
    n, d = data.rows.n, data.rows.d
    order = np.arange(n, dtype=np.int64)

    def call(**changed):
        given = {
            "rows": data.rows,
            "targets": data.targets,
            "loss": K.Loss("squared"),
            "k0": 0,
            "k1": n,
            "order": order,
            "bucket": 1,
            "list": None,
            "far": math.inf,
            "lam": 1.0,
            "stiffness": 0.0,
            "norms": np.ones(n),
            "u": np.zeros(n),
            "z": np.zeros(n),
            "b": np.zeros(n),
            "theta": np.zeros(d + 1),
            "state": np.zeros(4),
        }
        K.dual_cd(**{**given, **changed})

    call()
    wrong = [
        {"loss": K.Loss("exponential")},
        {"k1": n + 1},
        {"k0": -1},
        {"order": order + 1},
        {"order": order - 1},
        {"bucket": 2},
        {"bucket": 0},
        {"lam": 0.0},
        {"stiffness": -1.0},
        {"norms": np.ones(n - 1)},
        {"u": np.zeros(n - 1)},
        {"z": np.zeros(n - 1)},
        {"b": np.zeros(n - 1)},
        {"theta": np.zeros(d)},
        {"state": np.zeros(3)},
        {"list": np.array([0, n])},
        {"list": np.arange(n - 1)},
        {"targets": K.Targets(np.ones(n + 1))},
    ]
    for changed in wrong:
        with pytest.raises(ValueError, match=r"has|have|range|beyond|positive|step|differ"):
            call(**changed)
    for name in ("u", "z", "b", "theta", "state"):  # a result must not vanish in a converted copy
        with pytest.raises(TypeError):
            call(**{name: np.zeros(2 * n, np.float32)})
    z, short = np.zeros(n), np.zeros(n - 1)
    with pytest.raises(ValueError, match="n entries"):
        K.best_intercept(data.targets, K.Loss("hinge"), True, short, 0.0, 1.0, 1.0)
    for wrong_sizes in ((short, z, z), (z, short, z), (z, z, short)):
        with pytest.raises(ValueError, match="n entries"):
            K.balance(data.targets, K.Loss("hinge"), *wrong_sizes)
    with pytest.raises(ValueError, match="n entries"):
        K.shifted_sums(data.targets, K.Loss("squared"), 0, n, np.zeros(n + 1), 0.0, np.zeros(3))


@pytest.mark.parametrize("name", ["logistic", "squared_hinge", "hinge", "absolute"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_best_intercept_alone_is_that_of_rows_without_features(name, weighted):
    sample = plain(80, 3)
    weight = np.random.default_rng(0).uniform(0.0, 2.0, 80) if weighted else None
    sample = replace(sample, weight=weight)
    problem = replace(sample, X=np.zeros((80, 3))).problem(get(name))
    begun = ascent_module.Ascent(problem, np.zeros(problem.order), 0).native
    b, value = begun.theta[-1], begun.primal
    s = np.ones(80) if weight is None else weight
    if name == "hinge":  # sets out from another one, off the kink
        b = min((-1.0, 1.0), key=lambda at: s @ get(name).value(sample.sign * at))
    grid = b + np.array([-1e-3, 0.0, 1e-3])
    values = [s @ get(name).value(sample.sign * at) for at in grid]
    assert np.argmin(values) == 1 or np.isclose(values[1], min(values), rtol=1e-12)
    assert np.isclose(value, values[1], rtol=1e-9)
