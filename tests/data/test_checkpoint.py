"""A fit that is killed goes on from its checkpoint, to the same bits."""

import json
import signal
import sys
import time

import numpy as np
import pytest
from started import output, start

from linsep import (
    LinearClassifier,
    LinearRegressor,
    LinearSVC,
    LogisticRegression,
    LogisticRegressionCV,
    checkpoint,
    scan,
)
from linsep.data import Disk
from linsep.data.journal import Journal
from linsep.data.recorded import Recorded
from linsep.errors import BadInput

N, D = 22_000, 24  # enough for sifting
MODELS = {
    "newton": LogisticRegression(),
    "newton-cg": LogisticRegression(solver="newton-cg"),
    "newton-pilot": LogisticRegression(solver="newton-pilot"),
    "sifting": LinearSVC(),
    "multinomial": LogisticRegression(),
    "ovr": LogisticRegression(multiclass="ovr"),
    "unpenalised": LogisticRegression(C=np.inf),
    "l1": LogisticRegression(0.001, l1_ratio=1.0),
    "squared": LinearClassifier("squared_hinge"),
    "absolute": LinearRegressor("absolute", C=1.0),
    "grid": LogisticRegressionCV([0.01, 1.0], cv=3),
}


class Killed(BaseException):
    pass


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    path = tmp_path_factory.mktemp("rows") / "X.npy"
    np.save(path, X)
    z = X @ rng.normal(size=D) + 3 * rng.normal(size=N)
    several = np.argmax(X[:, :3] + rng.gumbel(size=(N, 3)), axis=1)
    return path, {"absolute": z, "multinomial": several, "ovr": several}, z > 0


def fitted(name, rows, **options):
    path, targets, usual = rows
    model = MODELS[name]
    model = type(model)(**{**model.get_params(), **options})
    with scan(path, target=targets.get(name, usual)) as X:
        model.fit(X)
        return model, X.reads


def killed_after(passes, name, rows, where, monkeypatch):
    """A fit whose process would have died while it wrote that record."""
    record, made = Journal.record, [0]

    def stops(self, arrays):
        if made[0] == passes:
            raise Killed
        made[0] += 1
        record(self, arrays)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "record", stops)
        with pytest.raises(Killed), checkpoint(where):
            fitted(name, rows)


def records_of(name, rows, where, monkeypatch):
    """How many passes a whole fit records."""
    record, made = Journal.record, []
    with monkeypatch.context() as patch:
        patch.setattr(
            Journal, "record", lambda self, arrays: made.append(1) or record(self, arrays)
        )
        with checkpoint(where):
            fitted(name, rows)
    return len(made)


def assert_same(a, b):
    assert np.array_equal(a.coef_, b.coef_) and np.array_equal(a.intercept_, b.intercept_)
    assert a.certificate_ == b.certificate_ and a.n_passes_ == b.n_passes_
    assert a.certificate_.certified


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", MODELS)
def test_goes_on_to_the_same_bits(name, rows, tmp_path, monkeypatch):
    alone, whole = fitted(name, rows)
    last = whole + 1
    records = records_of(name, rows, tmp_path / "state", monkeypatch)
    few = records <= 3  # passes of bands: what one has left for each row is made again
    for passes in (1, records - 1):
        killed_after(passes, name, rows, tmp_path / "state", monkeypatch)
        with checkpoint(tmp_path / "state"):
            again, reads = fitted(name, rows, n_threads=3)
        assert_same(alone, again)
        assert reads < last or (few and reads <= whole)
        assert not (tmp_path / "state").exists()
        last = reads
    assert last < whole or few


def test_any_part_of_the_file_will_do(rows, tmp_path, monkeypatch):
    alone, _ = fitted("newton", rows)
    killed_after(4, "newton", rows, tmp_path / "state", monkeypatch)
    data = (tmp_path / "state").read_bytes()
    for share in (0.0, 0.001, 0.3, 0.77, 1.0):
        (tmp_path / "state").write_bytes(data[: int(share * len(data))])
        with checkpoint(tmp_path / "state"):
            assert_same(alone, fitted("newton", rows)[0])
    damaged = bytearray(data)
    damaged[len(data) // 2] ^= 1  # the record is dropped with all that follow
    (tmp_path / "state").write_bytes(damaged)
    with checkpoint(tmp_path / "state"):
        assert_same(alone, fitted("newton", rows)[0])


def test_a_record_that_was_repeated_or_claims_more_than_the_file_is_dropped(tmp_path):
    path = tmp_path / "state"
    journal = Journal(path, resume=True)
    for number in (1.0, 2.0):
        journal.record([np.array([number])])
    journal.close()
    data = path.read_bytes()
    one = (len(data) - 20) // 2  # bytes of a record, behind the name of the format
    assert len(data) == 20 + 2 * one
    huge = data[: 20 + one + 1] + b"\xff" * 8 + data[20 + one + 9 :]
    for content, passes in ((data[:20] + data[20 : 20 + one] * 2, 1), (huge, 1), (data, 2)):
        path.write_bytes(content)
        journal = Journal(path, resume=True)
        assert journal.passes == passes and journal.recorded()[0] == 1.0
        journal.close()


def test_other_fits_and_other_files_are_refused(rows, tmp_path, monkeypatch):
    state = tmp_path / "state"
    killed_after(2, "newton", rows, state, monkeypatch)
    data = state.read_bytes()
    for name, options in (("newton", {"C": 2.0}), ("newton", {"tol": 1e-9}), ("ovr", {})):
        with pytest.raises(BadInput, match="made by another fit"), checkpoint(state):
            fitted(name, rows, **options)
    assert state.read_bytes() == data
    path, targets, usual = rows
    copy = tmp_path / "X.npy"
    copy.write_bytes(path.read_bytes())
    with pytest.raises(BadInput, match="made by another fit"), checkpoint(state):
        fitted("newton", (copy, targets, usual))
    with checkpoint(state, resume=False):
        assert fitted("newton", rows, C=2.0)[0].certificate_.certified
    state.write_text("a letter")
    with pytest.raises(BadInput, match="is not a checkpoint"), checkpoint(state):
        pass
    with pytest.raises(BadInput, match="cannot be opened"), checkpoint(tmp_path / "no" / "state"):
        pass
    state.unlink()
    with checkpoint(state), pytest.raises(BadInput, match="nested"), checkpoint(state):
        pass


def chained(data):
    """Passes that build on what earlier ones keep, and a visit that looks at it."""

    def first(b, out):
        b.row_state("u")[b.lo : b.hi] = 2.0
        out[0] += b.hi - b.lo

    def second(b, out):
        b.row_state("v")[b.lo : b.hi] = b.row_state("u")[b.lo : b.hi] + 1.0
        out[0] += b.row_state("v")[b.lo : b.hi].sum()

    def third(b, out):
        b.row_state("u")[b.lo : b.hi] = b.scores(np.ones(D + 1))
        out[0] += np.abs(b.row_state("u")[b.lo : b.hi]).sum()

    def look(b, out):
        u, v = b.row_state("u")[b.lo : b.hi], b.row_state("v")[b.lo : b.hi]
        few = np.flatnonzero(u > 9.0)
        out += u.sum(), v.sum()
        return b.first + b.lo + few, u[few]

    one, two = data.sums([(first, 1), (second, 1)], writes=("u", "v"))
    again = data.sum(second, 1, writes=("v",), reads=("u",))
    last = data.sum(third, 1, writes=("u",))
    total, found = data.visit(look, 2, reads=("u", "v"))
    return [one, two, again, last, total], found


@pytest.mark.parametrize("passes", range(5))
def test_what_is_owed_is_made_up_for_in_order(passes, rows, tmp_path):
    with scan(rows[0], target=rows[2]) as X:
        alone = Disk(X.rows)
        sums, found = chained(alone)
        assert len(found) > 1 and sum(len(few) for few, _ in found) > 0
        journal = Journal(tmp_path / "state", resume=False)
        chained(Recorded(Disk(X.rows), journal))
        assert journal.passes == 4
        journal._known, journal._next = journal._known[:passes], 0
        data, before = Recorded(Disk(X.rows), journal), X.reads
        others, more = chained(data)
        for a, b in zip(
            [*sums, *(p for few in found for p in few)],
            [*others, *(p for few in more for p in few)],
            strict=True,
        ):
            assert a.dtype == b.dtype and np.array_equal(a, b)
        assert passes < 4 or X.reads == before
        for name in "uv":
            assert np.array_equal(data.row_state(name), alone.row_state(name))
        data.set_row_state("u", np.zeros(N))
        assert not data.row_state("u").any() and (data.row_state("v") == 3.0).all()
        data.close()
        alone.close()
        journal.close()


def test_rows_in_memory_are_not_recorded(tmp_path):
    X = np.random.default_rng(0).normal(size=(50, 2))
    with checkpoint(tmp_path / "state"):
        LogisticRegression().fit(X, X[:, 0] > 0)
        assert (tmp_path / "state").stat().st_size < 100


#: A fit in a process of its own: rows, checkpoint, largest file, cache.
FIT = """
import json, resource, sys
import numpy as np
from linsep import LogisticRegression, checkpoint, scan
from linsep.errors import Refused

path, state, largest, cache = sys.argv[1:]
if largest != "none":
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(largest), int(largest)))
try:
    # Small files stay on disk, as large ones do.
    with checkpoint(state), scan(path, target=0, cache=cache, memory_limit=0) as rows:
        model = LogisticRegression(solver="newton-cg", n_threads=1, tol=1e-9).fit(rows)
        print(json.dumps([x.hex() for x in model.coef_[0].tolist()]))
except Refused as error:
    print(error)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="has no file size limit")
def test_a_full_disk_says_what_is_kept(rows, tmp_path):
    table = np.column_stack([rows[2], np.load(rows[0])])
    np.save(tmp_path / "all.npy", table)
    state, cache = tmp_path / "state", tmp_path / "cache"
    refused = output(start(FIT, tmp_path / "all.npy", state, 2_000_000, cache))
    assert "no room to write" in refused and "nothing was kept" in refused
    assert list(cache.iterdir()) == []
    whole = json.loads(output(start(FIT, tmp_path / "all.npy", state, "none", cache)))
    small = output(start(FIT, tmp_path / "all.npy", state, 1500, cache))
    assert "no room for the checkpoint" in small and "passes are kept" in small
    assert 0 < state.stat().st_size <= 1500
    assert json.loads(output(start(FIT, tmp_path / "all.npy", state, "none", cache))) == whole


@pytest.mark.slow
def test_kill_9_at_several_moments(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100_000, 60))
    np.save(tmp_path / "all.npy", np.column_stack([X[:, 0] + rng.normal(size=100_000) > 0, X]))
    state, cache = tmp_path / "state", tmp_path / "cache"
    whole = output(start(FIT, tmp_path / "all.npy", state, "none", cache))
    kills, size = 0, 0
    for more in (1, 1500, 3000, 2000):
        process = start(FIT, tmp_path / "all.npy", state, "none", cache)
        while process.poll() is None:
            if state.exists() and state.stat().st_size >= size + more:
                process.send_signal(signal.SIGKILL)
                break
            time.sleep(0.002)
        process.communicate()
        if process.returncode == 0:
            break
        kills += 1
        size = state.stat().st_size
    assert kills >= 3
    assert output(start(FIT, tmp_path / "all.npy", state, "none", cache)) == whole
    assert not state.exists()
