"""Rows on a Dask cluster: the same bits as in memory, whatever way the rows come; refusals that name the partition.

The cluster of these tests lives in this process, which starts at once; test_cluster_processes.py has real ones.
"""

from __future__ import annotations

import importlib
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from partitioned import Partitioned
from sklearn.base import clone

import linsep
from linsep import LinearClassifier, LinearRegressor, LinearSVC, LogisticRegression, separate
from linsep.data import Location, Memory, location_of
from linsep.data.cluster import Cluster
from linsep.data.cluster.engines.dask_engine import DaskEngine
from linsep.data.entrance import partitions
from linsep.data.layout import longest_ordered, ordered
from linsep.errors import BadInput, CertificateError, ClusterError, Refused
from linsep.losses import Huber, Multinomial, get
from linsep.penalties import ElasticNet
from linsep.train import Recipe, train

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

N, D = 24_000, 21
CUTS = (3000, 1, 8000, 2999, 10_000)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)) * np.arange(1, D + 1)
    z = X @ rng.normal(size=D) / 3
    return X, z, rng


def names_of(z, rng):
    return np.where(z + rng.logistic(size=len(z)) > 0, "yes", "no")


def cut(a):
    return da.from_array(a, chunks=(CUTS, *a.shape[1:]))


def pieces(X):
    from dask.delayed import delayed

    starts = np.cumsum([0, *CUTS])
    return [delayed(X[a:b]) for a, b in pairwise(starts)]


LATER = [
    ("logistic", "newton-cg", True),
    ("squared", "auto", False),
    ("squared_hinge", "auto", False),
    ("huberised_hinge", "auto", False),
    ("logistic", "newton-pilot", False),
    ("squared_hinge", "newton-cg", False),
    ("squared_hinge", "newton", True),
]
NAMED = [
    ("logistic", "auto", False),
    ("hinge", "auto", False),
    *(pytest.param(*case, marks=pytest.mark.slow) for case in LATER),
]


@pytest.mark.parametrize("loss, solver, sparse", NAMED)
def test_two_classes_have_the_bits_of_the_same_partitions_in_memory(
    client, rows, loss, solver, sparse
):
    X, z, _ = rows
    y = names_of(z, np.random.default_rng(1))
    weight = np.random.default_rng(2).integers(0, 3, N) / 2.0
    A = sp.csr_matrix(np.where(np.abs(X) > 1, X, 0.0)) if sparse else X
    opened = partitions.open_partitions(pieces(A), y, weight, "test", numbers=False)
    known = partitions.encode(opened, "test")
    data = Cluster(opened, known.signs(), weight=partitions.weights(opened))
    text = Partitioned(A, CUTS, np.where(y == "yes", 1.0, -1.0), weight=weight)
    recipe = Recipe(get(loss), ElasticNet(0.5), solver=solver, tol=1e-6)
    here, there = train(recipe, text, warn=False), train(recipe, data, warn=False)
    assert there.certificate.certified
    assert (there.W == here.W).all()
    assert there.n_passes == here.n_passes
    assert there.certificate.primal == here.certificate.primal


def test_several_classes_have_the_bits_of_the_same_partitions_in_memory(client, rows):
    X, z, _ = rows
    y = np.digitize(z + np.random.default_rng(3).logistic(size=N), [-1.0, 1.0])
    opened = partitions.open_partitions(cut(X), cut(y), None, "test", numbers=False)
    known = partitions.encode(opened, "test")
    data = Cluster(opened, labels=known.codes)
    text = Partitioned(X, CUTS, labels=y.astype(np.int64))
    recipe = Recipe(Multinomial(3), ElasticNet(1.0))
    here, there = train(recipe, text), train(recipe, data)
    assert there.certificate.certified
    assert (there.W == here.W).all()


def test_numbers_have_the_bits_of_the_same_partitions_in_memory(client, rows):
    X, z, _ = rows
    t = z + np.random.default_rng(4).standard_t(2, N)
    opened = partitions.open_partitions(cut(X), cut(t), None, "test", numbers=True)
    data = Cluster(opened, offset=opened.offsets(0.0))
    text = Partitioned(X, CUTS, offset=-t)
    recipe = Recipe(Huber(centre=0.0), ElasticNet(10.0))
    here, there = train(recipe, text), train(recipe, data)
    assert there.certificate.certified
    assert (there.W == here.W).all()


def test_targets_of_any_scale_on_a_cluster(client, rows):
    X, z, _ = rows
    t = np.ldexp(z + np.random.default_rng(4).standard_t(2, N), 400)
    there, here = (LinearRegressor(C=1.0).fit(*data) for data in ((cut(X), cut(t)), (X, t)))
    assert there.certificate_.certified
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-9)
    assert linsep.verify(there, cut(X), cut(t)).certified


def test_threads_of_the_workers_do_not_matter(client, rows):
    X, z, _ = rows
    y = names_of(z, np.random.default_rng(1))
    fits = [LogisticRegression(n_threads=k).fit(cut(X), cut(y)) for k in (1, 3)]
    assert (fits[0].coef_ == fits[1].coef_).all()


@pytest.mark.slow
def test_verify_visits_the_partitions(client, rows):
    X, z, _ = rows
    y = names_of(z, np.random.default_rng(1))
    weight = np.random.default_rng(2).integers(0, 3, N) / 2.0
    for model in (LogisticRegression(), LinearSVC(C=0.05)):
        model.fit(cut(X), cut(y), cut(weight))
        there = linsep.verify(model, cut(X), cut(y), cut(weight))
        here = linsep.verify(model, X, y, weight)
        np.testing.assert_allclose(there.primal, here.primal, rtol=1e-13)
        np.testing.assert_allclose(there.dual, here.dual, rtol=1e-9)
        model.coef_ = model.coef_ * 1.01
        with pytest.raises(linsep.errors.CertificateError):
            linsep.verify(model, cut(X), cut(y), cut(weight))


def test_dataframes_bring_names_and_need_no_sizes(client, rows):
    import dask.dataframe as dd
    import pandas as pd

    X, z, _ = rows
    frame = pd.DataFrame(X[:4000, :6], columns=list("abcdef"))
    frame["y"] = names_of(z[:4000], np.random.default_rng(1))
    frame["w"] = np.random.default_rng(2).random(4000)
    lazy = dd.from_pandas(frame, npartitions=3)
    model = LogisticRegression().fit(lazy[list("abcdef")], lazy["y"], lazy["w"])
    assert list(model.feature_names_in_) == list("abcdef") and list(model.classes_) == ["no", "yes"]
    linsep.verify(model, frame[list("abcdef")], frame["y"], frame["w"])
    answers = model.predict(lazy[list("abcdef")])
    assert isinstance(answers, da.Array)
    assert (answers.compute() == model.predict(frame[list("abcdef")])).all()
    array = lazy[list("abcdef")].to_dask_array()  # of unknown sizes
    plain = LogisticRegression().fit(array, frame["y"].to_numpy())
    assert plain.certificate_.certified and not hasattr(plain, "feature_names_in_")


def test_predictions_are_lazy_and_the_same(client, rows):
    X, z, _ = rows
    y = np.digitize(z, [-1.0, 1.0])
    model = LogisticRegression().fit(X[:2000], y[:2000])
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        lazy = getattr(model, method)(cut(X))
        assert isinstance(lazy, da.Array)
        here = getattr(model, method)(X)
        assert lazy.shape == here.shape and lazy.dtype == here.dtype
        if method == "predict":
            assert (lazy.compute() == here).all()
        else:  # a product of matrices may depend on how many rows there are
            np.testing.assert_allclose(lazy.compute(), here, rtol=1e-12, atol=1e-13)
    line = LinearRegressor().fit(X[:2000], z[:2000])
    np.testing.assert_allclose(line.predict(cut(X)).compute(), line.predict(X), rtol=1e-12)


def test_a_class_may_be_missing_and_a_partition_empty(client, rows):
    X = rows[0]
    y = np.array(["b"] * 3000 + ["a"] * 1 + ["c"] * 8000 + ["b"] * 2999 + ["a"] * 10_000)
    parts, labels = pieces(X), pieces(y)
    from dask.delayed import delayed

    parts.insert(2, delayed(X[:0]))
    labels.insert(2, delayed(y[:0]))
    model = LogisticRegression(C=0.1).fit(parts, labels)
    assert list(model.classes_) == ["a", "b", "c"] and model.certificate_.certified
    linsep.verify(model, X, y)
    with pytest.raises(BadInput, match="no rows"):
        LogisticRegression().fit([delayed(X[:0])], [delayed(y[:0])])


def test_chunks_of_y_need_not_be_those_of_x(client, rows):
    X, z, _ = rows
    y = names_of(z, np.random.default_rng(1))
    same = LogisticRegression().fit(cut(X), cut(y))
    other = LogisticRegression().fit(cut(X), da.from_array(y, chunks=5000))
    columns = LogisticRegression().fit(cut(X).rechunk((CUTS, 3)), y)
    assert (same.coef_ == other.coef_).all() and (same.coef_ == columns.coef_).all()
    with pytest.raises(BadInput, match="24000 rows, y has 23999"):
        LogisticRegression().fit(cut(X), da.from_array(y[1:], chunks=5000))
    with pytest.raises(BadInput, match="5 partitions and y has 4"):
        LogisticRegression().fit(pieces(X), pieces(y)[:4])
    with pytest.raises(BadInput, match=r"Partition 0 .*X has 3000 rows, y has 2999"):
        LogisticRegression().fit(pieces(X), [*pieces_of(y[:2999]), *pieces(y)[1:]])


def test_what_a_partition_is_refused_for_says_which(client, rows):
    X, z, _ = rows
    y = names_of(z, np.random.default_rng(1))
    bad = X.copy()
    bad[11_500, 3] = np.nan
    with pytest.raises(BadInput, match=r"Partition 3 \(counting from 0\).*NaN"):
        LogisticRegression().fit(cut(bad), cut(y))
    with pytest.raises(BadInput, match=r"Partition 2 .*must not be negative"):
        LogisticRegression().fit(cut(X), cut(y), cut(np.where(np.arange(N) == 3500, -1.0, 1.0)))
    with pytest.raises(BadInput, match="one class only"):
        LogisticRegression().fit(cut(X), cut(np.zeros(N, int)))
    with pytest.raises(BadInput, match="Partition 1 of X has 5 columns"):
        LogisticRegression().fit(pieces_of(X[:9], X[:9, :5]), y[:18])
    with pytest.raises(BadInput, match="different kinds"):
        LogisticRegression().fit(pieces_of(X[:9], X[:9]), pieces_of(y[:9], np.arange(9) % 2))
    with pytest.raises(BadInput, match="requires y"):
        LogisticRegression().fit(cut(X))


def pieces_of(*parts):
    from dask.delayed import delayed

    return [delayed(part) for part in parts]


@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_workers_read_files_themselves(client, rows, tmp_path, kind):
    import pyarrow as pa
    import pyarrow.parquet as pq

    X, z, _ = rows
    X, y = X[:3000, :4], names_of(z[:3000], np.random.default_rng(1))
    for k in range(3):
        part = slice(1000 * k, 1000 * (k + 1))
        if kind == "npy":
            np.save(tmp_path / f"part-{k}.npy", X[part])
        else:
            columns = {name: X[part, j] for j, name in enumerate("abcd")}
            pq.write_table(pa.table({**columns, "y": y[part]}), tmp_path / f"part-{k}.parquet")
    found = linsep.scan(tmp_path, target=y if kind == "npy" else "y", client=client)
    model = LogisticRegression().fit(found)
    linsep.verify(model, found)
    assert (model.predict(found).compute() == LogisticRegression().fit(X, y).predict(X)).all()
    if kind == "parquet":
        assert list(model.feature_names_in_) == list("abcd")
    with pytest.raises(BadInput, match="not to both"):
        model.fit(found, y)
    with pytest.raises(BadInput, match="no target"):
        model.fit(linsep.scan(tmp_path, client=client, ignore=["y"] if kind == "parquet" else ()))
    with pytest.raises(BadInput, match="for rows on disk"):
        linsep.scan(tmp_path, client=client, cache=tmp_path)


def test_separability(client, rows):
    X, z, _ = rows
    for y in (z > 0, names_of(z, np.random.default_rng(1)) == "yes"):
        there, here = separate(cut(X), cut(y)), separate(X, y)
        assert there.separable == here.separable
        assert there.check(X, y, exact=True)
        if here.separable:
            assert (there.hyperplane.w == here.hyperplane.w).all()
        else:
            assert (there.rows == here.rows).all() and (there.weights == here.weights).all()


def test_what_is_not_made_of_sums_comes_to_the_client_or_is_refused(client, rows, tuned):
    X, z, _ = rows
    y = names_of(z, np.random.default_rng(1))
    for model in (
        LogisticRegression(l1_ratio=1.0, C=0.01),
        LogisticRegression(C=np.inf),
        LinearClassifier("hinge", solver="interior"),
    ):
        there = model.fit(cut(X), cut(y))
        assert there.certificate_.certified
        here = type(model)(**model.get_params()).fit(X, y)
        assert (there.coef_ == here.coef_).all()
    tuned(memory_entries=1000)
    with pytest.raises(Refused, match=r"504,000 entries are too many .* 4,536,000 bytes"):
        LinearClassifier("hinge", l1_ratio=1.0).fit(cut(X), cut(y))


def test_rows_of_weight_0_are_left_out_of_separability(client, tmp_path):
    for k, lines in enumerate((["0,a,1", "1,a,2", "5,a,0"], ["2,b,1", "3,b,0.5"])):
        (tmp_path / f"part-{k}.csv").write_text("\n".join(["x,y,w", *lines]))
    weighed = linsep.scan(tmp_path, target="y", weight="w", client=client)
    assert separate(weighed).separable
    assert not separate(linsep.scan(tmp_path, target="y", ignore=["w"], client=client)).separable


ROUNDS = [
    (LogisticRegression(), 20, 4),
    (LogisticRegression(C=100.0), 60, 4),
    (LinearSVC(), 20, 5),
    (LinearSVC(C=100.0), 8, 6),
    ("multinomial", 20, 5),
    ("separable", 20, 10),
    ("inseparable", 20, 6),
]


def test_a_forged_objective_is_found_where_the_rows_lie(client):
    """All fields a thousandth too large agree with one another; the rows do not agree with them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4))
    y = X[:, 0] + rng.normal(size=150) > 0
    rows = da.from_array(X, chunks=(50, 4)), da.from_array(y, chunks=50)
    model = LogisticRegression().fit(*rows)
    assert linsep.verify(model, *rows).certified
    claim = model.certificate_
    grown = {name: 1.001 * getattr(claim, name) for name in ("primal", "dual", "gap", "rounding")}
    model.certificate_ = replace(claim, coef_error=1.001**0.5 * claim.coef_error, **grown)
    model._fits = [replace(model._fits[0], certificate=model.certificate_)]
    with pytest.raises(CertificateError, match="not the one claimed"):
        linsep.verify(model, *rows)


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore:Sending large graph")
@pytest.mark.parametrize("what, d, most", ROUNDS, ids=repr)
def test_rounds_are_few_and_traffic_is_little(client, monkeypatch, what, d, most):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, d))
    z = X.sum(axis=1)
    y = z + rng.logistic(size=len(z))
    rows, cut = da.from_array(X, chunks=(12_000, d)), lambda y: da.from_array(y, chunks=12_000)
    if isinstance(what, str) and "separable" in what:
        opened = []
        open_rows = partitions.open_rows
        monkeypatch.setattr(
            partitions, "open_rows", lambda *a, **k: opened.append(open_rows(*a, **k)) or opened[0]
        )
        answer = separate(rows, cut((z if what == "separable" else y) > 0))
        assert answer.separable == (what == "separable")
        traffic = opened[0].traffic
    else:
        model = LogisticRegression() if what == "multinomial" else what
        model.fit(
            rows, cut(np.digitize(y, [-6.0, -2.0, 2.0, 6.0]) if what == "multinomial" else y > 0)
        )
        assert model.certificate_.certified
        traffic = model.traffic_
        small = model.fit(X[:100], z[:100] > 0)
        assert not hasattr(small, "traffic_")
    assert 3 <= traffic.rounds <= most
    assert 0 < traffic.received < 2 * X.nbytes and 0 < traffic.sent < X.nbytes / 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Sending large graph")
@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC, "three classes", "numbers"])
def test_the_pilot_comes_when_the_partitions_are_opened(client, kind):
    rng = np.random.default_rng(1)
    X, s = rng.normal(size=(60_000, 10)), rng.uniform(0.5, 2.0, 60_000)
    t = X.sum(axis=1) + rng.logistic(size=60_000)
    y = {"three classes": np.digitize(t, [-2.0, 2.0]), "numbers": t}.get(kind, t > 0)
    model = LogisticRegression if kind == "three classes" else kind
    model = LinearRegressor("huber", C=1.0) if kind == "numbers" else model()
    chunks = (5000, 0, 30_000, 25_000)
    known = clone(model).fit(*(da.from_array(a, chunks=(chunks, -1)[: a.ndim]) for a in (X, y, s)))
    delayed = importlib.import_module("dask.delayed").delayed
    parts = [[delayed(part) for part in np.split(a, np.cumsum(chunks[:-1]))] for a in (X, y, s)]
    unknown = clone(model).fit(*parts)  # sizes that nobody knows: the pilot is asked for apart
    assert (unknown.coef_ == known.coef_).all() and known.certificate_.certified
    assert unknown.traffic_.rounds == known.traffic_.rounds + 1


@pytest.mark.filterwarnings("ignore:Sending large graph")
@pytest.mark.parametrize("tails, most", [("normal", 6), ("heavy", 8)])
def test_columns_of_any_scale_take_few_rounds_of_the_hinge(client, tails, most):
    rng = np.random.default_rng(0)
    X = rng.standard_cauchy((60_000, 20)) if tails == "heavy" else rng.normal(size=(60_000, 20))
    y = np.clip(X, -5, 5).sum(axis=1) / 5 + rng.logistic(size=len(X)) > 0
    X = X * 10.0 ** rng.uniform(-3, 3, 20) + 10.0 ** rng.uniform(-3, 3, 20)
    rows, labels = da.from_array(X, chunks=(12_000, 20)), da.from_array(y, chunks=12_000)
    model = LinearSVC().fit(rows, labels)
    assert model.certificate_.certified and model.traffic_.rounds <= most


def test_rows_come_to_the_client_when_bands_fail(client, rows, tuned):
    tuned(sifting_few_rounds=0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 20)) * 10.0 ** rng.uniform(-3, 3, 20)
    X += 10.0 ** rng.uniform(-3, 3, 20) * 5
    z = ((X - X.mean(0)) / X.std(0)).sum(axis=1) + rng.logistic(size=len(X))
    model = LinearSVC().fit(
        da.from_array(X, chunks=(10_000, 20)), da.from_array(z > 0, chunks=10_000)
    )
    assert model.certificate_.certified


@pytest.mark.filterwarnings("error")
def test_long_vectors_are_sent_without_a_warning(client):
    """Dask warns of 10 MB; the coefficients of a million features have 8, and of several classes more."""
    engine = DaskEngine(client, 1)
    long = np.zeros(1_500_000)
    shared, sent = engine.share("function", long), engine.send("state", [long])
    sizes = engine.map("size", lambda *some: sum(map(len, some)), shared, sent, [long])
    assert engine.collect(sizes) == [4_500_000]


def test_totals_are_added_in_a_tree_of_fixed_shape():
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=3) * 10.0 ** rng.integers(-8, 8) for _ in range(40)]
    text = [np.add.accumulate(parts[a : a + 16])[-1] for a in (0, 16, 32)]
    assert (ordered(parts) == np.add.accumulate(text)[-1]).all()
    assert (ordered(parts[:1]) == parts[0]).all()
    assert longest_ordered(100, 1) == 100 and longest_ordered(100, 40) == 100 + 16 + 3


@pytest.mark.parametrize("collected", [0, 1 << 22])
def test_the_client_and_the_workers_add_totals_to_the_same_bits(client, collected):
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=5) * 10.0 ** rng.integers(-8, 8) for _ in range(19)]
    engine = DaskEngine(client, len(parts))
    engine.collected_bytes = collected
    pairs = engine.map("pair", lambda v, i: (v, [i]), parts, list(range(19)), persist=True)
    total, rest = engine.total_and_rest(pairs, 5)
    assert (total == ordered(parts)).all() and rest == [[i] for i in range(19)]
    assert (engine.total(engine.send("x", parts), 5) == total).all()


@pytest.mark.filterwarnings("ignore:Sending large graph")
@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC])
def test_a_round_is_one_task_for_each_partition(client, rows, monkeypatch, kind):
    """Rounds of the hinge that sort the rows store their state, which takes a second task."""
    tasks, keys = Counter(), DaskEngine._keys

    def counted(self, what, numbers):
        tasks[what] += len(numbers)
        return keys(self, what, numbers)

    monkeypatch.setattr(DaskEngine, "_keys", counted)
    X, z, _ = rows
    model = kind().fit(cut(X), cut(names_of(z, np.random.default_rng(1))))
    rounds, support = model.traffic_.rounds - 1, bool(tasks["take"])
    assert tasks["open"] == tasks["facts"] == tasks["targets"] == len(CUTS)
    assert tasks["sum"] == (rounds - support) * len(CUTS)
    assert tasks["pick0"] < tasks["sum"] if kind is LinearSVC else not tasks["pick0"]
    assert set(tasks) <= {"open", "facts", "targets", "sum", "pick0", "function", "take"}


@pytest.mark.parametrize("rarely", [False, True])
def test_state_that_is_rarely_read_is_computed_again(client, rows, rarely):
    X, z, _ = rows
    opened = partitions.open_partitions(cut(X), cut(z > 0), None, "test", numbers=False)
    data = Cluster(opened, partitions.encode(opened, "test").signs())

    def first(block, out):
        block.row_state("a")[block.lo : block.hi] = 2.0 * block.sign[block.lo : block.hi]
        out[0] += block.hi - block.lo

    def second(block, out):
        out[0] += block.row_state("a")[block.lo : block.hi].sum()

    assert data.sum(first, 1, writes=("a",), rarely_read=rarely) == N
    assert data.sum(second, 1, reads=("a",)) == 2.0 * np.where(z > 0, 1.0, -1.0).sum()
    assert data.X.traffic.rounds == 3
    assert (data.row_state("a") == np.where(z > 0, 2.0, -2.0)).all()
    data.set_row_state("a", np.ones(N))
    assert data.sum(second, 1, reads=("a",)) == N
    assert sum(data.apply(lambda *v: v[-1].sum(), ["a"])) == N


def test_without_a_client_there_is_a_way_out(monkeypatch):
    def nobody():
        raise ValueError("No global client found and no address provided")

    monkeypatch.setattr(distributed, "get_client", nobody)
    X = da.zeros((4, 2))
    assert location_of(X) is location_of(pieces_of(1, 2)) is Location.CLUSTER
    assert location_of([1, 2]) is Location.MEMORY
    with pytest.raises(ClusterError, match="Client"):
        LogisticRegression().fit(X, np.array([0, 1, 0, 1]))


@pytest.mark.parametrize(
    "kind", [linsep.Perceptron, linsep.SGDClassifier, linsep.ZeroOneClassifier]
)
def test_learners_that_read_single_rows_refuse_a_cluster(client, rows, kind):
    X, z, _ = rows
    for there in (cut(X), pieces(X)):
        with pytest.raises(BadInput, match=r"on a cluster.*single rows.*\.compute\(\)") as error:
            kind().fit(there, cut(z > 0))
        assert kind.__name__ in str(error.value)


def test_a_cluster_is_not_sent_to_itself(client, rows):
    X, z, _ = rows
    opened = partitions.open_partitions(cut(X), cut(z), None, "test", numbers=True)
    data = Cluster(opened)
    with pytest.raises(TypeError, match="must not hold them"):
        data.sum(lambda b, o: data.n, 1)
    assert isinstance(data.sample(np.array([0, 5])), Memory)
    np.testing.assert_array_equal(opened[[5, 3, 23_000]], X[[5, 3, 23_000]])
    np.testing.assert_array_equal(opened[2990:3010], X[2990:3010])


def test_the_command_fits_on_a_cluster(client, tmp_path, tuned, capsys):
    import json

    from linsep.cli import main

    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    lines = [",".join(map(repr, row.tolist())) for row in X]
    for k in range(2):
        body = [
            f"{line},{'up' if x[0] > 0.3 else 'down'}" for line, x in zip(lines, X, strict=True)
        ]
        (tmp_path / f"part-{k}.csv").write_text(
            "\n".join(["a,b,c,y", *body[200 * k : 200 * k + 200]])
        )
    address = client.scheduler.address
    tuned(stored_in_memory=0)  # the rows stay on the workers
    command = ["fit", str(tmp_path / "part-*.csv"), "--target", "y", "--cluster", address]
    command += ["--memory-limit", "1K", "--no-report", "--test", "0", "--no-standardise"]
    saved = tmp_path / "model.linsep"
    assert main([*command, "--C", "1", "--output", str(saved), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["certificate"]["certified"] and facts["rounds"] > 0
    labels = np.where(X[:, 0] > 0.3, "up", "down")
    here = LogisticRegression().fit(X, labels)
    np.testing.assert_allclose(linsep.load(saved)[-1].coef_, here.coef_, atol=1e-2)
    fewer = ["--ignore", "c", "--output", str(tmp_path / "two.linsep"), "--json"]
    assert main([*command, "--C", "1", *fewer]) == 0
    assert json.loads(capsys.readouterr().out)["features"] == 2
    state = tmp_path / "state"
    assert main([*command, "--C", "1", "--resume", str(state), *fewer]) == 0
    assert json.loads(capsys.readouterr().out)["features"] == 2 and not state.exists()
    state.write_text("something else")
    assert main([*command, "--C", "1", "--resume", str(state), *fewer]) != 0
    assert "is not a checkpoint" in capsys.readouterr().err
    assert main([*command, "--C", "1", "--cache", "here"]) != 0
    assert "where --cache has no effect" in capsys.readouterr().err


@pytest.mark.parametrize("loss", ["absolute", "huber"])
def test_regressions_are_verified_exactly(loss, client):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) + 1e9
    t = X[:, 0] - 1e9 + rng.normal(size=60)
    rows, targets = da.from_array(X, chunks=(30, 2)), da.from_array(t, chunks=30)
    model = linsep.LinearRegressor(loss, C=10.0).fit(rows, targets)
    assert model.certificate_.certified
    for exact in (False, True):
        assert linsep.verify(model, rows, targets, exact=exact).certified
