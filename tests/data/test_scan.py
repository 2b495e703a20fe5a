"""Rows on disk: the same bits as in memory, in little memory, and no damaged byte is used."""

import os
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file

from linsep import (
    LinearClassifier,
    LinearRegressor,
    LinearSVC,
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    path,
    scan,
    separate,
    summary,
    tune,
    verify,
)
from linsep.data import Disk, Memory, strided_sample
from linsep.errors import BadInput, CertificateError, Refused

N, D = 30_000, 24  # two blocks of float64 and more
STREAMED = ("newton", "newton-pilot", "newton-cg")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)) + 0.5
    y = X @ rng.normal(size=D) + 3 * rng.normal(size=N) > 1.0
    return X, y, rng.integers(0, 3, N).astype(float)


@pytest.fixture(scope="module")
def npy(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "X.npy"
    np.save(path, table[0])
    return path


def same(a, b):
    """All bits of two models and of their certificates."""
    return (
        np.array_equal(a.coef_, b.coef_)
        and np.array_equal(a.intercept_, b.intercept_)
        and a.certificate_ == b.certificate_
        and a.n_passes_ == b.n_passes_
    )


@pytest.mark.parametrize("solver", STREAMED)
@pytest.mark.parametrize("threads", [1, 3])
def test_bits_of_memory(solver, threads, table, npy):
    X, y, s = table
    kept = LogisticRegression(solver=solver).fit(X, y, s)
    with scan(npy, target=y, weight=s) as rows:
        read = LogisticRegression(solver=solver, n_threads=threads).fit(rows)
        assert same(kept, read) and read.certificate_.certified
        assert rows.reads >= 1


@pytest.mark.parametrize(
    "model",
    [
        LinearClassifier("squared_hinge"),
        LinearClassifier("huberised_hinge", class_weight="balanced"),
        LinearRegressor("squared"),
        LinearRegressor("huber", C=2.0, fit_intercept=False),
        LogisticRegression(C=np.inf),
        LinearSVC(loss="squared_hinge"),
    ],
    ids=str,
)
def test_bits_of_other_losses(model, table, npy):
    X, y, _ = table
    model.set_params(solver="newton")
    kept = model.fit(X, y)
    with scan(npy, target=y) as rows:
        read = type(model)(**model.get_params()).fit(rows)
        assert same(kept, read) and read.certificate_.certified
        assert verify(read, rows).certified


@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(),
        LinearClassifier("hinge", fit_intercept=False),
        LinearRegressor("absolute", C=1.0),
    ],
    ids=str,
)
def test_bits_of_losses_with_a_kink(model, table, npy):
    X, y, s = table
    model.set_params(solver="sifting")
    kept = model.fit(X, y, s)
    with scan(npy, target=y, weight=s) as rows:
        read = type(model)(**model.get_params()).set_params(solver="auto").fit(rows)
        assert read._fits[0].solver == "sifting"
        assert same(kept, read) and read.certificate_.certified
        assert verify(read, rows).certified


def test_fewer_rows_than_features_with_a_kink(tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 30))
    np.save(tmp_path / "X.npy", X)
    with scan(tmp_path / "X.npy", target=X[:, 0] > 0) as rows:
        with pytest.raises(Refused, match="at least as many as features"):
            LinearSVC().fit(rows)
        assert LogisticRegression().fit(rows).certificate_.certified


@pytest.mark.parametrize("multiclass", ["multinomial", "ovr"])
def test_several_classes(multiclass, table, npy):
    X, _, s = table
    names = np.array(["low", "middle", "top"])
    y = names[np.argmax(X[:, :3] + np.random.default_rng(1).gumbel(size=(N, 3)), axis=1)]
    model = LogisticRegression(multiclass=multiclass, class_weight={"low": 2.0}, solver="newton")
    kept = model.fit(X, y, s)
    with scan(npy, target=y, weight=s) as rows:
        read = LogisticRegression(**model.get_params()).fit(rows)
        assert same(kept, read)
        assert np.array_equal(read.predict(rows), kept.predict(X))
        assert np.abs(read.predict_proba(rows) - kept.predict_proba(X)).max() < 1e-15
        assert verify(read, rows).certified


def test_float32_files_in_parts(table, tmp_path):
    X, y, _ = table
    X = X.astype(np.float32)
    for k, cut in enumerate(np.array_split(np.arange(N), 7)):  # files end amid blocks
        np.save(tmp_path / f"part-{k}.npy", X[cut])
    kept = LogisticRegression(solver="newton").fit(X, y)
    with scan(tmp_path, target=y) as rows:
        assert same(kept, LogisticRegression(solver="newton").fit(rows))
        some = np.array([0, 5, 4290, 29_999])
        assert np.array_equal(rows.rows[some], X[some])
        assert np.array_equal(rows.rows[4000:9000], X[4000:9000])
    with scan(str(tmp_path / "part-*.npy"), target=y) as rows:
        assert rows.shape == X.shape


def sparse_rows():
    rng = np.random.default_rng(2)
    X = sp.random(6000, 300, 0.08, "lil", random_state=rng)
    X[0, 0] = X[0, 299] = 1.0  # the first and the last column are seen
    X = X.tocsr()
    X.data = np.round(X.data, 3)
    return X, X @ rng.normal(size=300) > 0.1


@pytest.mark.parametrize("zero_based", [False, True])
def test_libsvm_is_csr(zero_based, tmp_path):
    X, y = sparse_rows()
    dump_svmlight_file(X, np.where(y, 1, -1), str(tmp_path / "rows.libsvm"), zero_based=zero_based)
    with scan(tmp_path / "rows.libsvm") as rows:
        assert rows.shape == X.shape and rows.rows.sparse
        assert (rows.rows[100:200] != X[100:200]).nnz == 0
        assert (rows.rows[np.array([3, 77, 5999])] != X[[3, 77, 5999]]).nnz == 0
        for solver in ("newton", "newton-cg"):
            kept = LogisticRegression(solver=solver).fit(X, y)
            read = LogisticRegression(solver=solver).fit(rows)
            assert np.array_equal(kept.coef_, read.coef_) and kept.certificate_ == read.certificate_
        assert verify(read, rows).certified
        assert LogisticRegression().fit(rows)._fits[0].solver in ("newton", "newton-cg")


def frame(table):
    import pandas as pd

    X, y, s = table
    columns = {f"x{j}": X[:2000, j] for j in range(5)}
    label = np.where(y[:2000], "yes", "no")
    return pd.DataFrame({**columns, "label": label, "times": s[:2000], "who": label})


@pytest.mark.parametrize("ending", ["csv", "parquet", "feather"])
def test_columnar_files(ending, table, tmp_path):
    data = frame(table)
    path = tmp_path / f"rows.{ending}"
    if ending == "csv":
        data.to_csv(path, index=False)
    else:
        getattr(data, f"to_{ending}")(path)
    features = data[[f"x{j}" for j in range(5)]]
    kept = LogisticRegression(solver="newton").fit(features, data["label"], data["times"])
    with scan(path, target="label", weight="times", ignore=["who"]) as rows:
        read = LogisticRegression(solver="newton").fit(rows)
        assert same(kept, read)
        assert list(read.feature_names_in_) == list(features.columns)
        assert list(read.predict(rows)) == list(kept.predict(features))
        assert os.path.isdir(rows.cache)
    assert not os.path.exists(rows.cache)  # it was a temporary one


def test_npz_and_odd_layouts(table, tmp_path):
    X, y, s = table[0][:3000], table[1][:3000], table[2][:3000]
    kept = LogisticRegression(solver="newton").fit(X, y, s)
    np.savez_compressed(tmp_path / "rows.npz", X=X, y=y, s=s)
    with scan(tmp_path / "rows.npz", target="y", weight="s") as rows:
        assert same(kept, LogisticRegression(solver="newton").fit(rows))
    np.save(tmp_path / "all.npy", np.asfortranarray(np.column_stack([y, X, s])))
    with scan(tmp_path / "all.npy", target=0, weight=-1) as rows:
        assert np.array_equal(LogisticRegression(solver="newton").fit(rows).coef_, kept.coef_)


def test_cache_is_kept_and_found_again(table, tmp_path):
    frame(table).to_parquet(tmp_path / "rows.parquet")
    options = {"target": "label", "ignore": ["who"], "cache": tmp_path / "cache"}
    with scan(tmp_path / "rows.parquet", **options) as first:
        made = os.stat(first.cache / "manifest.json").st_mtime_ns
    with scan(tmp_path / "rows.parquet", **options) as again:
        assert again.cache == first.cache
        assert os.stat(again.cache / "manifest.json").st_mtime_ns == made
    frame(table)[:1000].to_parquet(tmp_path / "rows.parquet")  # other rows: another cache
    with scan(tmp_path / "rows.parquet", **options) as other:
        assert other.cache != first.cache and len(other) == 1000
        other.remove()
    assert [p.name for p in (tmp_path / "cache").iterdir()] == [first.cache.name]


@pytest.mark.parametrize("damage", ["cut", "vector", "manifest", "a name"])
def test_a_truncated_cache_is_rebuilt(damage, table, tmp_path):
    frame(table).to_parquet(tmp_path / "rows.parquet")
    options = {"target": "label", "ignore": ["who"], "cache": tmp_path / "cache"}
    with scan(tmp_path / "rows.parquet", **options) as rows:
        kept = LogisticRegression().fit(rows)
    name = {"cut": "rows", "vector": "y.npy"}.get(damage, "manifest.json")
    data = (rows.cache / name).read_bytes()
    column = rows.feature_names[0].encode()
    less = (
        data.replace(column, b"?" * len(column)) if damage == "a name" else data[: len(data) // 2]
    )
    assert less != data
    (rows.cache / name).write_bytes(less)
    with scan(tmp_path / "rows.parquet", **options) as rows:
        assert same(kept, LogisticRegression().fit(rows))
        assert rows.feature_names[0].encode() == column


def test_an_altered_byte_is_refused(table, tmp_path):
    frame(table).to_parquet(tmp_path / "rows.parquet")
    with scan(tmp_path / "rows.parquet", target="label", ignore=["who"]) as rows:
        with open(rows.cache / "rows", "r+b") as file:
            file.seek(12_345)
            old = file.read(1)
            file.seek(12_345)
            file.write(bytes([old[0] ^ 1]))
        with pytest.raises(BadInput, match=r"damaged: piece 0 .* checksum"):
            LogisticRegression().fit(rows)


def test_a_piece_is_verified_once_and_again_after_a_change(table, tmp_path, monkeypatch):
    from linsep.data import pieces

    frame(table).to_parquet(tmp_path / "rows.parquet")
    seen, crc = [], pieces.zlib.crc32
    with scan(tmp_path / "rows.parquet", target="label", ignore=["who"]) as rows:
        monkeypatch.setattr(pieces.zlib, "crc32", lambda part: seen.append(1) or crc(part))
        first = LogisticRegression(solver="newton").fit(rows)
        count = len(seen)
        assert same(first, LogisticRegression(solver="newton").fit(rows)) and len(seen) == count
        os.utime(rows.cache / "rows", ns=(1, 1))
        LogisticRegression(solver="newton").fit(rows)
        assert len(seen) == 2 * count
        with open(rows.cache / "rows", "r+b") as file:
            file.seek(12_345)
            file.write(b"x")
        with pytest.raises(BadInput, match=r"damaged: piece 0 .* checksum"):
            LogisticRegression().fit(rows)


def test_a_step_reads_the_rows_once(table, npy):
    with scan(npy, target=table[1]) as rows:
        model = LogisticRegression(solver="newton").fit(rows)
        # A sweep and its Hessian are two passes and one reading.
        assert rows.reads < model.n_passes_
        before = rows.reads
        np.testing.assert_array_equal(rows.rows[[3, 70, 20_000]], table[0][[3, 70, 20_000]])
        assert rows.reads - before < 0.001


def test_a_shelf_has_one_row_of_eight_whatever_the_portions():
    whole = strided_sample.between(0, 10_003)
    assert (np.diff(whole // 8) == 1).all() and len(set(whole[:64] % 8)) == 8
    cuts = [0, 1, 7, 8, 8, 23, 4000, 10_003]
    assert np.array_equal(
        whole, np.concatenate([strided_sample.between(*cut) for cut in pairwise(cuts)])
    )
    assert np.array_equal(strided_sample.positions(whole), np.arange(len(whole)))
    assert strided_sample.positions(whole + 1) is None


@pytest.mark.parametrize("several", [False, True])
def test_pilots_are_set_aside_by_the_first_reading(several, table, npy, tmp_path, tuned):
    tuned(softmax_pilot_work=0)
    X, y, _ = table
    y = np.digitize(X[:, 0] + X[:, 1] + y, [0.3, 1.2]) if several else y
    model = LogisticRegression() if several else LogisticRegression(solver="newton")
    np.save(tmp_path / "all.npy", np.column_stack([X, y]))
    with scan(npy, target=y) as rows:
        model.fit(rows)
        in_place = rows.reads
    with scan(tmp_path / "all.npy", target=X.shape[1]) as rows:
        first = clone(model).fit(rows)
        assert same(first, model) and rows.reads <= in_place - 0.8


def test_rows_of_the_shelf_are_those_of_the_table(table, tmp_path):
    X = np.where(np.abs(table[0]) < 1.0, 0.0, table[0])[:5001]
    np.save(tmp_path / "all.npy", np.column_stack([table[1][:5001], X]))
    dump_svmlight_file(sp.csr_matrix(X), table[1][:5001], str(tmp_path / "rows.svm"))
    some = strided_sample.between(0, 5001)[3::2]
    for name, target in (("all.npy", 0), ("rows.svm", None)):
        with scan(tmp_path / name, target=target, cache=tmp_path / "cache") as rows:
            found = rows.rows[some]
            assert 0.0 < rows.reads < 0.2
            np.testing.assert_allclose(found.toarray() if sp.issparse(found) else found, X[some])
            damaged = next(rows.cache.glob("shelf*"))
            damaged.write_bytes(bytes(damaged.stat().st_size))
            with pytest.raises(BadInput, match="damaged"):
                rows.rows.refuse_change()
                rows.rows[some]


def test_several_sums_in_one_reading_have_the_bits_of_each(npy, table):
    def column(k):
        def add(block, out):
            out += block.scores(np.eye(table[0].shape[1] + 1)[k])[: len(out)].sum()

        return add

    with scan(npy) as rows:
        data = Disk(rows.rows, n_threads=3)
        wanted = [(column(0), 1), (column(1), 5000), (column(2), 300_000)]
        for (fn, size), total in zip(wanted, data.sums(wanted), strict=True):
            assert (total == Memory(table[0]).sum(fn, size)).all()
        data.close()


def test_a_failed_build_leaves_nothing(table, tmp_path):
    data = frame(table)
    data.loc[1500, "x3"] = np.inf
    data.to_parquet(tmp_path / "rows.parquet")
    options = {"target": "label", "ignore": ["who"], "cache": tmp_path / "cache"}
    with pytest.raises(BadInput, match=r"column 'x3' is infinite .* in data row 1501"):
        scan(tmp_path / "rows.parquet", **options)
    frame(table).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(Refused, match="cache_limit is 1,000"):
        scan(tmp_path / "rows.parquet", **options, cache_limit=1000)
    assert list((tmp_path / "cache").iterdir()) == []


def test_files_that_change_or_end_early_are_refused(table, tmp_path):
    X, y, _ = table
    path = tmp_path / "X.npy"
    np.save(path, X)
    with scan(path, target=y) as rows:
        np.save(path, X + 1)
        os.utime(path, ns=(1, 1))
        with pytest.raises(BadInput, match="has changed since it was scanned"):
            LogisticRegression().fit(rows)
        path.unlink()
        with pytest.raises(BadInput, match="cannot be read any more"):
            LogisticRegression().fit(rows)
    path.write_bytes(b"\x93NUMPY")
    with pytest.raises(BadInput, match=r"not a \.npy file of numbers, or is cut short"):
        scan(path)


def test_nonfinite_numbers_are_named(table, tmp_path):
    X = table[0].copy()
    X[29_000, 7] = np.nan
    np.save(tmp_path / "X.npy", X)
    with scan(tmp_path / "X.npy", target=table[1]) as rows:
        with pytest.raises(BadInput, match="row 29000, column 7"):
            LogisticRegression().fit(rows)
        model = LogisticRegression().fit(table[0], table[1])
        with pytest.raises(BadInput, match="row 29000, column 7"):
            model.predict(rows)


def test_lines_of_a_csv_file_may_be_long(tmp_path):
    text = "x" * 700_000
    lines = ["a,note,y", *(f"{k},{text}{k},{k % 2}" for k in range(4))]
    (tmp_path / "long.csv").write_text("\n".join(lines))
    with scan(tmp_path / "long.csv", target="y", ignore=["note"]) as rows:
        assert rows.rows[:].ravel().tolist() == [0.0, 1.0, 2.0, 3.0]


def test_rows_where_classes_compete_must_fit_into_memory(table, npy, tuned):
    tuned(memory_entries=1000)
    with scan(npy, target=np.arange(N) % 3) as rows:
        with pytest.raises(Refused, match=r"of 30,000 rows two classes .* in memory"):
            LinearSVC(multiclass="crammer_singer").fit(rows)


def test_what_needs_memory_is_refused(table, npy):
    X, y, _ = table
    with scan(npy, target=y) as rows:
        for model, what in [
            (LogisticRegression(solver="small"), "one block in memory"),
            (LogisticRegression(solver="dual-cd"), "rows in memory"),
            (LinearSVC(solver="interior"), "rows in memory"),
        ]:
            with pytest.raises(Refused, match=what):
                model.fit(rows)
        with pytest.raises(BadInput, match="needs the rows in memory"):
            Perceptron().fit(rows, y)
        with pytest.raises(BadInput, match="target already"):
            LogisticRegression().fit(rows, y)
        fitted = LogisticRegression().fit(rows)
        other = LogisticRegression().fit(X[:, :5], y)
        with pytest.raises(BadInput, match="expecting 5 features"):
            other.predict(rows)
        rows.y = ~y
        with pytest.raises(CertificateError):
            verify(fitted, rows)
    with scan(npy) as rows, pytest.raises(BadInput, match="needs a target"):
        LogisticRegression().fit(rows)


def test_bad_scans_say_what_to_do(table, npy, tmp_path):
    with pytest.raises(BadInput, match="No file is called"):
        scan(tmp_path / "nothing.npy")
    with pytest.raises(BadInput, match="There are no files"):
        scan(tmp_path)
    (tmp_path / "rows.xls").write_bytes(b"\xd0\xcf\x11\xe0\x00\x00")
    with pytest.raises(BadInput, match="not text"):
        scan(tmp_path / "rows.xls")
    with pytest.raises(BadInput, match="30000 rows, the target has 5"):
        scan(npy, target=np.zeros(5))
    with pytest.raises(BadInput, match="by its number, 0 to 23"):
        scan(npy, target="label")
    frame(table).to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(BadInput, match="no column 'y'"):
        scan(tmp_path / "rows.csv", target="y")
    with pytest.raises(BadInput, match=r"column 'who' holds .* string, .*ignore=\['who'\]"):
        scan(tmp_path / "rows.csv", target="label")
    with pytest.raises(BadInput, match="different kinds"):
        scan([npy, tmp_path / "rows.csv"])
    (tmp_path / "rows.svm").write_text("1 1:2 2:3\n1 1:x\n")
    with pytest.raises(BadInput, match=r"rows.svm:2:5: the value 'x'"):
        scan(tmp_path / "rows.svm")
    gap = frame(table)
    gap.loc[7, "x1"] = None
    gap.to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(BadInput, match=r"rows.csv:9:[0-9]+: column 'x1' is missing in data row 8"):
        scan(tmp_path / "rows.csv", target="label", ignore=["who"])


def test_sums_stop_at_the_first_error(npy, table):
    with scan(npy, target=table[1]) as rows:
        data = Disk(rows.rows, n_threads=2)

        def fails(block, out):
            raise RuntimeError("no")

        for _ in range(3):
            with pytest.raises(RuntimeError, match="no"):
                data.sum(fails, 4)
        assert data.sum(lambda b, o: o.__iadd__(b.hi - b.lo), 1)[0] == N
        data.close()


def test_a_pass_over_the_targets_reads_no_rows(npy, table):
    def add(block, out):
        out[0] += block.sign[block.lo : block.hi].sum()

    sign = np.where(table[1], 1.0, -1.0)
    with scan(npy) as rows:
        data = Disk(rows.rows, sign, n_threads=2)
        assert data.sum(add, 1, features=False) == Memory(table[0], sign).sum(add, 1) == sign.sum()
        assert rows.reads == 0.0
        data.close()


def test_layout_is_that_of_memory(npy, table):
    with scan(npy) as rows:
        kept, read = Memory(table[0]), Disk(rows.rows, n_threads=1)
        for size in (1, 50, 5000):
            assert kept.longest_sum(size) == read.longest_sum(size)
        read.close()


@pytest.mark.parametrize("d", [D, 200])  # all features at once, and working sets of some
def test_an_l1_penalty(d, tmp_path, tuned):
    tuned(native_l1_entries=0)  # in memory so few rows would be one native call
    rng = np.random.default_rng(3)
    X = rng.normal(size=(4000, d))
    y = X[:, :5] @ np.ones(5) + rng.normal(size=4000) > 0
    np.save(tmp_path / "X.npy", X)
    model = LogisticRegression(0.02, l1_ratio=1.0)
    kept = model.fit(X, y)
    with scan(tmp_path / "X.npy", target=y) as rows:
        read = LogisticRegression(**model.get_params()).fit(rows)
        assert read._fits[0].solver == "working-set" and (read.coef_ == 0).any()
        assert verify(read, rows).certified
        if d == D:
            assert same(kept, read)
        else:  # sets of columns: by column in memory, by row from disk
            assert ((kept.coef_ == 0) == (read.coef_ == 0)).all()
            assert np.allclose(kept.coef_, read.coef_, atol=1e-3)


def test_working_sets_of_sparse_rows(tmp_path, tuned):
    tuned(native_l1_entries=0)  # in memory so few rows would be one native call
    X, y = sparse_rows()
    dump_svmlight_file(X, np.where(y, 1, -1), str(tmp_path / "rows.svm"))
    model = LogisticRegression(0.05, l1_ratio=0.9)
    kept = model.fit(X, y)
    with scan(tmp_path / "rows.svm") as rows:
        read = LogisticRegression(**model.get_params()).fit(rows)
        assert np.array_equal(kept.coef_, read.coef_) and kept.certificate_ == read.certificate_


@pytest.mark.parametrize("gap", [0.0, 0.2])
def test_separability_and_hard_margin(gap, table, tmp_path):
    X = table[0][:8000].copy()
    z = X[:, 0] - X[:, 1]
    y = np.where(z > 0, "above", "below")
    X[:, 0] += np.where(z > 0, gap, -gap)
    np.save(tmp_path / "X.npy", X)
    kept = separate(X, y)
    with scan(tmp_path / "X.npy", target=y) as rows:
        read = separate(rows)
        assert str(read) == str(kept) and read.separable and read.check(rows)
        assert np.array_equal(read.hyperplane.w, kept.hyperplane.w)
        if gap:
            hard = LinearSVC(C=np.inf).fit(rows)
            assert same(LinearSVC(C=np.inf).fit(X, y), hard) and verify(hard, rows).certified
    X[0], y[0] = X[y == "above"].mean(axis=0), "below"
    np.save(tmp_path / "X.npy", X)
    kept = separate(X, y)
    with scan(tmp_path / "X.npy", target=y) as rows:
        read = separate(rows)
        assert str(read) == str(kept) and not read.separable and read.check(rows)
        assert np.array_equal(read.rows, kept.rows) and np.array_equal(read.weights, kept.weights)


def test_separability_of_many_features(tmp_path):
    X = np.random.default_rng(4).normal(size=(300, 1600))
    np.save(tmp_path / "X.npy", X)
    with scan(tmp_path / "X.npy", target=X[:, 0] > 0) as rows:
        assert separate(rows).check(rows)


def test_tuning_and_paths(table, npy):
    X, y, s = table
    Cs = [0.001, 0.1, 10.0]
    kept = tune(LogisticRegression(), X, y, Cs, cv=3, sample_weight=s, scoring="log_loss")
    with scan(npy, target=y, weight=s) as rows:
        read = tune(LogisticRegression(), rows, Cs=Cs, cv=3, scoring="log_loss")
        assert np.array_equal(read.curve.scores, kept.curve.scores) and read.certified
        assert read.best_C == kept.best_C
        itself = LogisticRegressionCV(Cs, cv=3, scoring="log_loss").fit(rows)
        assert itself.C_ == kept.best_C
        followed = path(LogisticRegression(), rows, Cs=Cs)
        known = path(LogisticRegression(), X, y, Cs, sample_weight=s)
        assert np.array_equal(followed.coefs, known.coefs)
        with pytest.raises(BadInput, match="one of error, log_loss"):
            tune(LogisticRegression(), rows, Cs=Cs, cv=3, scoring="f1", test=0.2)


def test_tuning_one_model_after_another(table, tmp_path):
    X, y = table[0][:3000], table[1][:3000]
    np.save(tmp_path / "X.npy", X)
    options = {"Cs": [0.01, 1.0], "cv": 3, "test": 0.2}
    for model in (LinearSVC(), LogisticRegression(l1_ratio=0.5)):
        kept = tune(model, X, y, **options)
        with scan(tmp_path / "X.npy", target=y) as rows:
            read = tune(model, rows, **options)
        # a row of weight 0 is a row left out, but sums are grouped otherwise: certified, not equal bits
        assert np.allclose(read.curve.scores, kept.curve.scores, atol=2e-3) and read.certified
        assert read.best_C == kept.best_C and abs(read.test_score - kept.test_score) < 4e-3


def test_scores_and_summaries(table, npy):
    X, y, s = table
    t = X @ np.arange(D) + np.random.default_rng(0).normal(size=N)
    for model, target in ((LogisticRegression(C=np.inf), y), (LinearRegressor(), t)):
        model.fit(X, target, s)
        with scan(npy, target=target, weight=s) as rows:
            assert np.isclose(model.score(rows), model.score(X, target, s), rtol=1e-14)
            assert str(summary(model, rows)) == str(summary(model, X, target, s))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "model",
    [LinearSVC(), LogisticRegression(), LogisticRegression(float("inf")), LinearRegressor("huber")],
    ids=lambda model: f"{type(model).__name__}, C={model.C}",
)
def test_small_files_are_verified_exactly(model, sparse, tmp_path):
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(40, 3)), 1)
    y = (X[:, 0] + rng.normal(size=40) > 0).astype(int)
    if sparse:
        dump_svmlight_file(X, y, str(tmp_path / "rows.svm"))
    else:
        np.save(tmp_path / "rows.npy", X)
    rows = scan(tmp_path / "rows.svm") if sparse else scan(tmp_path / "rows.npy", target=y)
    with rows:
        fitted = clone(model).fit(rows)
        assert verify(fitted, rows).certified
        assert verify(fitted, rows, exact=True).kind in ("exact", "dual", "local")
