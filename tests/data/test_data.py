"""Blocks, their ordered sum, and the threads that make it."""

import itertools
import multiprocessing
import os
import pickle
import threading
import time
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from catalogue import KINDS, LAYOUTS, STORAGES, dense, plain

from linsep import _kernels
from linsep.data import Memory, layout, threads
from linsep.data.cluster.partition import Partition
from linsep.losses import get
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.train import Recipe, train

N, D = 3000, 6
each_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def small_blocks(tuned):
    """Blocks of a few hundred rows."""
    tuned(block_bytes=4_000)


@pytest.fixture
def convert_by_block(tuned):
    tuned(converted_bytes=0)


def binary(n=N, d=D, seed=0):
    """Zeros and ones: every kind of storage holds them exactly."""
    return (np.random.default_rng(seed).random((n, d)) < 0.4).astype(float)


def targets(n=N, seed=1):
    rng = np.random.default_rng(seed)
    return (
        rng.choice([-1.0, 1.0], n),
        rng.normal(size=n),
        rng.choice([0.0, 0.5, 1.0, 3.0], n),
    )


def moments(block, out):
    _kernels.moments(block.rows, block.lo, block.hi, None, out)


def count(block, out):
    out[0] += block.hi - block.lo


def blocks_of(data):
    """First and last row of each block, in order of their place."""
    seen = []
    data.sum(lambda b, out: seen.append((b.first + b.lo, b.first + b.hi)), 1)
    return sorted(seen)


@each_kind
def test_blocks_cover_every_row_once(kind, small_blocks, convert_by_block):
    data = Memory(KINDS[kind](binary()), n_threads=1)
    blocks = blocks_of(data)
    assert len(blocks) >= 5
    assert blocks[0][0] == 0 and blocks[-1][1] == N
    assert all(a[1] == b[0] for a, b in itertools.pairwise(blocks))
    assert data.sum(count, 1)[0] == N


@each_kind
def test_blocks_depend_on_the_data_alone(kind, small_blocks, convert_by_block):
    X = KINDS[kind](binary())
    expected = blocks_of(Memory(X, n_threads=1))
    for n_threads in (2, 8):
        data = Memory(X, n_threads=n_threads)
        assert blocks_of(data) == expected
        data.close()


def test_columns_first_with_more_columns_than_rows(small_blocks, convert_by_block):
    rng = np.random.default_rng(4)
    X = (rng.random((40, 900)) < 0.3) * rng.normal(size=(40, 900))
    data = Memory(sp.csc_matrix(X), n_threads=2)
    blocks = blocks_of(data)
    assert blocks[0][0] == 0 and blocks[-1][1] == 40
    np.testing.assert_allclose(data.sum(moments, 1801)[900:-1], X.sum(axis=0), atol=1e-12)
    data.close()


@pytest.mark.parametrize("size", [1, 7, 49, 5000])
@pytest.mark.parametrize("kind", ["dense64", "dense32", "csr64-int32", "fortran64", "int8"])
def test_a_sum_has_the_same_bits_for_any_number_of_threads(
    kind, size, small_blocks, convert_by_block
):
    rng = np.random.default_rng(2)
    X = KINDS[kind](binary())
    numbers = rng.normal(size=N) * 10.0 ** rng.integers(-8, 8, N)

    def add(block, out):
        time.sleep(0.002 * rng.random())  # threads take turns in an order of their own
        part = numbers[block.first + block.lo : block.first + block.hi]
        out[:] += part.sum() + np.arange(size) * part[0]

    sums = []
    for n_threads in (1, 2, 8):
        data = Memory(X, n_threads=n_threads)
        sums.append(data.sum(add, size))
        data.close()
    assert (sums[0] == sums[1]).all() and (sums[0] == sums[2]).all()
    np.testing.assert_allclose(sums[0][0], numbers.sum(), rtol=1e-9)


@pytest.mark.parametrize("kind", STORAGES)
def test_passes_have_the_same_bits_for_any_number_of_threads(kind, small_blocks):
    rng = np.random.default_rng(3)
    X = STORAGES[kind](rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.7))
    sign, offset, weight = targets()
    theta = rng.normal(size=D + 1)
    found = []
    for n_threads in (1, 2, 8):
        data = Memory(X, sign, offset, weight, n_threads=n_threads)
        problem = Problem(get("logistic"), ElasticNet(2.0), data)
        value, g = problem.value_gradient(theta)
        H = problem.hessian(np.zeros(D))
        found.append(np.concatenate([[value], g, H.ravel(), problem.hess_vec(theta)]))
        data.close()
    assert (found[0] == found[1]).all() and (found[0] == found[2]).all()


@each_kind
@pytest.mark.parametrize("by_block", [False, True])
def test_every_storage_gives_the_same_sums(kind, by_block, small_blocks, tuned):
    if by_block:
        tuned(converted_bytes=0)
    X, (sign, offset, weight) = binary(), targets()
    theta = np.linspace(-1.0, 1.0, D + 1)
    data = Memory(KINDS[kind](X), sign, offset, weight, n_threads=2)
    problem = Problem(get("logistic"), ElasticNet(2.0), data)
    value, g = problem.value_gradient(theta)
    H = problem.hessian(np.zeros(D))
    A = np.column_stack([X, np.ones(N)])
    m = sign * (A @ theta) + offset
    loss, lam = get("logistic"), np.append(np.full(D, 0.5), 0.0)
    np.testing.assert_allclose(value, weight @ loss.value(m) + 0.5 * lam @ theta**2, rtol=1e-13)
    want = A.T @ (weight * sign * loss.slope(m)) + lam * theta
    np.testing.assert_allclose(g, want, rtol=1e-11, atol=1e-11)
    want = A.T @ ((weight * loss.curvature(m))[:, None] * A) + np.diag(lam)
    np.testing.assert_allclose(H, want, rtol=1e-12)
    assert data.n_entries == (np.count_nonzero(X) if data.sparse else X.size)
    read_as_it_is = kind in STORAGES or kind in ("csc64", "csr-array")
    assert (data.whole is None) == (by_block and not read_as_it_is)
    data.close()


@pytest.mark.parametrize("kind", STORAGES)
def test_native_storage_is_not_copied(kind):
    X = STORAGES[kind](binary(20_000, 20))
    size = X.data.nbytes
    sign = targets(20_000)[0]
    tracemalloc.start()
    try:
        data = Memory(X, sign, n_threads=2)
        assert data.X is X
        data.sum(moments, 41)
        train(Recipe(get("logistic"), ElasticNet(1.0), solver="newton-cg"), data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        data.close()
    by_row = 8 * 20_000  # one number per row is kept: the curvatures
    assert peak < by_row + size / 4 + 200_000
    assert np.shares_memory(data.sign, sign)


@pytest.mark.parametrize("kind", ["fortran64", "int8", "between"])
def test_other_layouts_are_converted_by_block(kind, small_blocks, convert_by_block):
    X = LAYOUTS[kind](binary(20_000, 20))
    data = Memory(X, n_threads=1)
    tracemalloc.start()
    try:
        data.sum(moments, 41)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert data.X is X
    assert peak < 8 * X.size / 10


def test_kept_numbers_survive_between_passes(small_blocks, convert_by_block):
    for kind in ("dense64", "csr64-int32", "fortran64", "csc64"):
        data = Memory(KINDS[kind](binary()), n_threads=2)

        def write(block, out):
            rows = np.arange(block.first + block.lo, block.first + block.hi)
            block.row_state("number")[block.lo : block.hi] = rows

        def read(block, out):
            out[block.first + block.lo : block.first + block.hi] = block.row_state("number")[
                block.lo : block.hi
            ]

        data.sum(write, 1)
        assert (data.sum(read, N) == np.arange(N)).all()
        data.close()


@pytest.mark.parametrize("thread", ["main", "worker"])
def test_an_exception_in_a_block_reaches_the_caller(thread, small_blocks):
    data = Memory(binary(), n_threads=3)
    failed = threading.Event()

    def fail(block, out):
        main = threading.current_thread() is threading.main_thread()
        if main == (thread == "main"):
            failed.set()
            raise ZeroDivisionError("in a block")
        failed.wait(60)  # leave a block for the other side, however busy the machine

    with pytest.raises(ZeroDivisionError, match="in a block"):
        data.sum(fail, 1)
    assert data.sum(count, 1)[0] == N  # the pool survives
    data.close()


def test_an_interrupt_stops_the_other_threads(small_blocks):
    data = Memory(binary(30_000, D), n_threads=2)
    assert len(blocks_of(data)) > 50
    visited, begun = [], threading.Event()

    def interrupted(block, out):
        if threading.current_thread() is threading.main_thread():
            begun.wait(10)
            raise KeyboardInterrupt
        visited.append(block.lo)
        begun.set()
        time.sleep(0.02)

    with pytest.raises(KeyboardInterrupt):
        data.sum(interrupted, 1)
    after = len(visited)
    time.sleep(0.1)
    assert len(visited) <= after + 1 and after < 10
    assert data.sum(count, 1)[0] == 30_000
    data.close()
    assert data.sum(count, 1)[0] == 30_000  # a closed data set opens its threads again
    data.close()


@each_kind
def test_sample_holds_the_rows_and_shares_their_weight(kind):
    X, (sign, offset, weight) = binary(), targets()
    data = Memory(KINDS[kind](X), sign, offset, weight)
    rows = np.array([0, 5, 6, 7, 1500, N - 1])
    share = np.linspace(1.0, 3.0, len(rows))
    part = data.sample(rows, share)
    assert (part.n, part.d) == (len(rows), D)
    assert (dense(part.X) == X[rows]).all()
    assert (part.sign == sign[rows]).all() and (part.offset == offset[rows]).all()
    assert (part.weight == weight[rows] * share).all()
    assert (data.sample(rows).weight == weight[rows]).all()
    assert (Memory(data.X, sign).sample(rows, share).weight == share).all()
    assert Memory(data.X, sign).sample(rows).weight is None


def test_defaults():
    data = Memory(binary())
    assert (data.sign == 1).all() and data.weight is None and data.offset is None
    assert data.n_threads == threads.default_threads()
    assert Memory(binary(), n_threads=5).n_threads == 5
    assert (data.n, data.d, data.n_entries, data.sparse) == (N, D, N * D, False)


def test_longest_sum_bounds_the_chain_of_additions(small_blocks):
    """A sum of n numbers errs by at most that many roundings."""
    for kind in ("dense64", "csr64-int32"):
        data = Memory(KINDS[kind](binary(30_000)), n_threads=1)
        for size in (1, 50, 100_000):
            spans = layout.spans(len(data.edges) - 1, data.n_entries, size)
            rows = [data.edges[s.stop] - data.edges[s.start] for s in spans]
            assert data.longest_sum(size) >= max(rows) + len(spans) - 1
            assert data.longest_sum(size) < 30_000
            assert [k for s in spans for k in s] == list(range(len(data.edges) - 1))


def test_rows_without_entries_and_empty_columns(small_blocks):
    X = sp.csr_matrix((5000, 3))
    assert Memory(X, n_threads=2).sum(count, 1)[0] == 5000
    X = sp.csr_matrix(([1.0] * 4000, ([17] * 4000, [0, 1] * 2000)), shape=(50, 2))
    assert Memory(X, n_threads=2).sum(count, 1)[0] == 50


@pytest.mark.parametrize(
    ("asked", "cores", "quota", "expected"),
    [
        ("", 6, np.inf, 6),
        ("3", 6, np.inf, 3),
        ("12", 6, np.inf, 6),
        ("2,1", 6, np.inf, 2),
        ("0", 6, np.inf, 6),
        ("many", 6, np.inf, 6),
        ("", 6, 2.5, 2),
        ("", 6, 0.5, 1),
        ("1", 6, 4.0, 1),
    ],
)
def test_how_many_threads(monkeypatch, asked, cores, quota, expected):
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(cores)), raising=False)
    monkeypatch.setattr(threads, "_cgroup_limit", lambda: quota)
    assert threads.default_threads() == expected


def test_threads_without_affinity_and_quota(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert threads.default_threads() == 1
    assert threads._cgroup_limit() > 0


def awaken(data):
    """Make every thread of the pool run, and let it come to rest."""
    together = threading.Barrier(data.n_threads)
    met = set()

    def meet(block, out):
        if threading.get_ident() not in met:
            met.add(threading.get_ident())
            together.wait(10)

    data.sum(meet, 1)
    time.sleep(0.05)


def _train_in_child(data, answers):
    answers.put(train(Recipe(get("logistic"), ElasticNet(1.0), solver="newton"), data).W)


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this platform does not fork"
)
@pytest.mark.parametrize("reused", [False, True], ids=["new data set", "same data set"])
def test_a_forked_process_can_go_on(reused, small_blocks):
    """Threads do not survive a fork: the child must start its own, not wait for the parent's."""
    sample = plain(N, D)
    data = Memory(sample.X, sample.sign, n_threads=3)
    awaken(data)
    expected = train(Recipe(get("logistic"), ElasticNet(1.0), solver="newton"), data).W
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    used = data if reused else Memory(sample.X, sample.sign, n_threads=3)
    child = context.Process(target=_train_in_child, args=(used, answers))
    with warnings.catch_warnings():
        # Forking beside threads, the very point.
        warnings.simplefilter("ignore", DeprecationWarning)
        child.start()
    child.join(10)
    alive = child.is_alive()
    if alive:
        child.kill()
        child.join()
    data.close()
    assert not alive, "the child waits for threads that it does not have"
    assert (answers.get() == expected).all()


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "CSR"])
def test_rows_at_any_address(sparse):
    """What arrives in a message may begin behind a header of any length."""
    X = np.random.default_rng(0).normal(size=(30, 4))
    sign = np.where(X[:, 0] > 0, 1.0, -1.0)

    def shifted(a):
        moved = np.frombuffer(b"h" + a.tobytes(), a.dtype, a.size, 1).reshape(a.shape)
        assert not moved.flags.aligned
        return moved

    given, odd = X, shifted(X)
    if sparse:
        given = sp.csr_array(X)
        odd = sp.csr_array(given)
        odd.data, odd.indices = shifted(given.data), shifted(given.indices)
    one, other = (
        Problem(get("logistic"), ElasticNet(1.0), Memory(rows, sign)).value_gradient(np.ones(5))
        for rows in (given, odd)
    )
    assert one[0] == other[0] and (one[1] == other[1]).all()
    buffers = []
    message = pickle.dumps(
        Partition(given, None, None, None, None), protocol=5, buffer_callback=buffers.append
    )
    moved = [memoryview(b"h" + buffer.raw())[1:] for buffer in buffers]
    here = pickle.loads(message, buffers=moved)
    parts = (here.X.data, here.X.indices) if sparse else (here.X,)
    assert buffers and all(part.flags.aligned for part in parts)
    assert (sp.csr_array(here.X) != sp.csr_array(given)).nnz == 0
