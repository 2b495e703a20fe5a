"""Vectors with a number for each row: in files whose pages go back, and row starts in about one byte per row."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from tuned import tuning

from linsep import LogisticRegression, verify
from linsep.certificates.parts import Part, chunks
from linsep.data import mapped_vectors, ordered_sum
from linsep.data.disk import Disk
from linsep.data.entrance import labels
from linsep.data.layout import sparse_edges
from linsep.data.memory import Memory
from linsep.data.ordered_sum import add_up
from linsep.data.row_starts import RowStarts
from linsep.data.scanning import stored_rows
from linsep.tables import from_frame

LONG = 300_000  # numbers that are not short


def resident():
    """Bytes of nameless files that are in memory, whatever else this process does."""
    total, ours = 0, False
    with open("/proc/self/smaps") as file:
        for line in file:
            words = line.split()
            if "-" in words[0] and not words[0].endswith(":"):
                ours = words[-1] == "(deleted)"
            elif ours and words[0] == "Rss:":
                total += int(words[1]) * 1024
    return total


def test_numbers_survive_the_release_of_their_pages():
    values = np.random.default_rng(0).normal(size=(2, LONG))
    kept = mapped_vectors.moved(values)
    assert kept is not values and mapped_vectors.moved(kept) is kept
    kept[1, 5:9] = 7.0
    mapped_vectors.release(kept[:, 3:2000])  # rows that are not contiguous
    mapped_vectors.release(kept[0])
    values[1, 5:9] = 7.0
    assert (kept == values).all()
    back = mapped_vectors.in_memory(kept)
    kept[0, 0] = 1e9
    assert (back == values).all()


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps"), reason="reads /proc")
def test_vectors_are_moved_in_pieces(monkeypatch):
    values, most, before = np.arange(4_000_000.0), [], resident()
    release = mapped_vectors.release
    monkeypatch.setattr(
        mapped_vectors,
        "release",
        lambda some: (most.append(resident() - before), release(some)),
    )
    assert (mapped_vectors.moved(values) == values).all()
    assert max(most) < values.nbytes / 8


def test_short_vectors_stay_in_memory():
    values = np.ones(10)
    assert mapped_vectors.moved(values) is values
    mapped_vectors.release(values)
    assert (values == 1.0).all() and (mapped_vectors.zeros((10,)) == 0.0).all()


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps"), reason="reads /proc")
def test_released_pages_are_not_resident():
    kept = mapped_vectors.zeros((8_000_000,))
    kept += 1.0
    full = resident()
    mapped_vectors.release(kept)
    assert resident() <= full - 0.9 * kept.nbytes
    assert kept[12345] == 1.0


@given(st.lists(st.integers(0, 400), min_size=1, max_size=15), st.integers(1, 7))
def test_row_starts_answer_as_the_cumulated_lengths(lengths, step):
    plain = np.cumsum([0, *lengths])
    with tuning(starts_step=step):
        starts = RowStarts(np.array(lengths))
        assert starts.n == len(lengths) and starts.total == plain[-1]
        for lo in range(starts.n + 1):
            for hi in range(lo, starts.n + 1):
                assert starts.between(lo, hi).tolist() == plain[lo : hi + 1].tolist()
        values = np.arange(plain[-1] + 1)
        found = starts.searchsorted(values)
    assert found.tolist() == np.searchsorted(plain, values).tolist()


def test_row_lengths_take_few_bytes():
    assert RowStarts(np.full(1000, 255))._lengths.nbytes == 1000
    assert RowStarts(np.full(1000, 256))._lengths.nbytes == 2000


def test_blocks_of_sparse_rows_begin_where_they_do_in_memory():
    rng = np.random.default_rng(0)
    starts = np.cumsum([0, *rng.integers(0, 120, 40_000)])
    columns = rng.integers(0, 3000, starts[-1])
    X = sp.csr_matrix((rng.normal(size=starts[-1]), columns, starts), (40_000, 3000))
    with stored_rows([X[:7000], X[7000:]], X.shape[1], None) as scan:
        assert scan.rows.edges == Memory(X).edges and len(scan.rows.edges) > 5
        assert sparse_edges(X.shape[0], X.nnz, X.indptr) == scan.rows.edges
        some = scan.rows.read(123, 30_000)
        assert (some != X[123:30_000]).nnz == 0


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps"), reason="reads /proc")
def test_a_pass_over_rows_on_disk_gives_back_what_belongs_to_their_blocks():
    n = 4_000_000
    X = sp.csr_matrix((np.ones(n, np.float32), np.zeros(n, np.int32), np.arange(n + 1)), (n, 3))
    sign = np.where(np.arange(n) % 3, 1.0, -1.0)
    with stored_rows([X], 3, None) as scan:
        data = Disk(scan.rows, sign, n_threads=1)
        del X
        most = 0

        def add(block, out):
            nonlocal most
            state = block.row_state("seen")
            state[:] = block.sign
            out[0] += state.sum()
            most = max(most, resident())

        before = resident()
        assert data.sum(add, 1)[0] == sign.sum()
        assert most - before < 0.5 * sign.nbytes  # of the signs and the state, 64 MB in all
        assert (data.row_state("seen") == sign).all()
        data.close()


def test_a_thread_does_not_run_ahead_with_long_sums():
    """While the first span waits, another thread makes one more span, and no accumulator beyond it."""
    begun, free, lock = [], threading.Event(), threading.Lock()

    def add(block, out):
        with lock:
            begun.append(block)
        if block == 0:
            free.wait(0.5)
        out[0] += block + 1

    with ThreadPoolExecutor(1) as pool:
        late = threading.Timer(0.4, lambda: seen.extend(begun) or free.set())
        seen = []
        late.start()
        openers = [lambda k: k] * 2
        total = add_up([(add, 200_000)], 8, 10**9, openers, lambda: pool, 4e6)[0]
    assert total[0] == 36 and total[1:].sum() == 0
    assert sorted(seen) == [0, 1]


def test_one_thread_adds_the_same_bits_without_locks(monkeypatch):
    values = np.random.default_rng(0).standard_normal((64, 5))

    def add(block, out):
        out += values[block]

    def total(threads):
        with ThreadPoolExecutor(3) as pool:
            return add_up([(add, 5)], 64, 10**9, [lambda k: k] * threads, lambda: pool)[0]

    several = total(4)
    monkeypatch.setattr(ordered_sum, "_Total", None)
    np.testing.assert_array_equal(total(1), several)
    np.testing.assert_allclose(several, values.sum(axis=0))


def test_a_failing_thread_stops_the_others():
    def add(block, out):
        if block == 1:
            raise ValueError("block 1")
        out[0] += 1

    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="block 1"):
        add_up([(add, 200_000)], 8, 10**9, [lambda k: k] * 2, lambda: pool, 4e6)


@pytest.mark.parametrize("columns", [3000, 60_000])
def test_solvers_find_the_same_bits_with_their_vectors_in_files(columns, tuned):
    """Quasi-Newton steps with few columns, conjugate gradients with many."""
    rng = np.random.default_rng(0)
    n, k = 30_000, 40
    places = np.sort(rng.integers(0, columns, (n, k)), axis=1).ravel()
    X = sp.csr_matrix((rng.normal(size=n * k), places, np.arange(n + 1) * k), (n, columns))
    X.sum_duplicates()
    y = X[:, :50].sum(axis=1).A1 + rng.logistic(size=n) > 0.0
    in_memory = LogisticRegression(C=0.1, solver="newton-cg").fit(X, y)
    tuned(short_vectors=0)
    with stored_rows([X[:9000], X[9000:]], columns, None) as scan:
        on_disk = LogisticRegression(C=0.1, solver="newton-cg").fit(scan, y)
        assert scan.reads > 2
    assert (on_disk.coef_ == in_memory.coef_).all() and in_memory.certificate_.certified
    assert on_disk.certificate_ == in_memory.certificate_
    assert on_disk.n_passes_ == in_memory.n_passes_
    assert verify(on_disk, X, y).certified


@pytest.mark.parametrize("names", [["a", "b"], ["a", "b", "c"]])
def test_labels_are_encoded_some_at_a_time(names):
    n = 150_000
    y = np.array(names, object)[np.random.default_rng(0).integers(0, len(names) - 1, n)]
    y[-1] = names[-1]
    found = labels.encode_any(y, n, "fit")
    assert found.classes.tolist() == names
    assert (found.classes[found.codes.astype(int)] == y).all()


def test_some_rows_of_a_table_are_numbered_in_two_bytes():
    table = from_frame(pa.table({"x": np.arange(1000.0), "s": [f"v{k % 7}" for k in range(1000)]}))
    rows = np.flatnonzero(np.arange(1000) % 3 == 0)
    some = table.take(rows)
    assert all(part.rows.itemsize <= 2 for part in some.batches)
    assert some.values("x").tolist() == rows.tolist()
    again = some.take(np.array([1, 5, 300]))
    assert again.values("x").tolist() == [3.0, 15.0, 900.0]
    assert [again.levels["s"][k] for k in again.values("s")] == ["v3", "v1", "v4"]


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps"), reason="reads /proc")
def test_vectors_of_the_verifier_are_on_disk_with_the_rows():
    """Signs of many rows are mapped for rows on disk, and their pages are released chunk by chunk."""
    n = 400_000
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 2)), rng.random(n) < 0.5
    with tuning(few_on_disk=0):
        rows = stored_rows([X], 2)
        model = LogisticRegression().fit(rows, y)
        (part,) = (Part(*fields) for fields in model._verification_parts(rows, y, None))
        assert mapped_vectors.moved(part.sigma) is part.sigma  # it is in a file already
        (plain,) = (Part(*fields) for fields in model._verification_parts(X, y, None))
        before, most = resident(), 0
        for at, _ in chunks(part.X, part.sigma):
            assert np.array_equal(part.sigma[at], plain.sigma[at])
            most = max(most, resident() - before)
        assert most < part.sigma.nbytes / 2
        assert verify(model, rows, y).certified
