"""Files behind a URL are read as local ones are: the same rows, less traffic, clear errors, and no stale cache."""

import errno
import gzip
import io
import json
import sys
import tempfile
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather as pf
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import dump_svmlight_file
from web_server import serving

from linsep import LogisticRegression, load, read_libsvm, read_table, scan
from linsep.cli import main
from linsep.data.files.remote import shown
from linsep.errors import BadFile, BadInput, Refused

fsspec = pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")

RNG = np.random.default_rng(5)
X = RNG.normal(size=(400, 3)).round(3)
Y = np.where(X[:, 0] + RNG.logistic(size=400) > 0.0, "up", "down")


@pytest.fixture(scope="module")
def site():
    with serving() as one:
        yield one


@pytest.fixture(autouse=True)
def _well(request):
    """Every test finds the server as it was."""
    if "site" in request.fixturenames:
        site = request.getfixturevalue("site")
        site.sent, site.ranges, site.etag, site.lost_after = 0, True, True, None
        site.after_body = None
        site.denied.clear()


@pytest.fixture
def folder():
    """A directory of the file system in memory."""
    return f"memory://{uuid.uuid4().hex}"


def put(url, content):
    with fsspec.open(url, "wb") as stream:
        stream.write(content)
    return url


def table(extra=None):
    return pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], **(extra or {}), "y": Y.tolist()})


def parquet(extra=None, **how):
    sink = io.BytesIO()
    pq.write_table(table(extra), sink, **how)
    return sink.getvalue()


def csv():
    lines = (f"{a},{b},{c},{y}" for (a, b, c), y in zip(X.tolist(), Y, strict=True))
    return "\n".join(["a,b,c,y", *lines, ""]).encode()


def libsvm():
    sink = io.BytesIO()
    dump_svmlight_file(X, (Y == "up").astype(int), sink, zero_based=False)
    return sink.getvalue()


def saved(write, *args, **named):
    sink = io.BytesIO()
    write(sink, *args, **named)
    return sink.getvalue()


def feather():
    sink = io.BytesIO()
    pf.write_feather(table(), sink, compression="uncompressed")
    return sink.getvalue()


CONTENT = {
    "rows.csv": csv,
    "rows.csv.gz": lambda: gzip.compress(csv()),
    "rows.parquet": lambda: parquet(row_group_size=150),
    "rows.feather": feather,
    "rows.svm": libsvm,
    "rows.svm.gz": lambda: gzip.compress(libsvm()),
    "rows.npz": lambda: saved(np.savez, X=X, y=Y),
    "rows.npy": lambda: saved(np.save, X),
}


def found(source, **how):
    """Rows, target and names of a scan."""
    name = shown(source)
    how = {"target": None if name.endswith(("svm", "svm.gz", "npy")) else "y", **how}
    with scan(source, **how) as rows:
        values = rows.rows[: len(rows)]
        values = values.toarray() if hasattr(values, "toarray") else values
        names = None if rows.feature_names is None else list(rows.feature_names)
        return values.tolist(), None if rows.y is None else rows.y.tolist(), names


@pytest.mark.parametrize("name", CONTENT)
@pytest.mark.parametrize("place", ["memory", "file", "http", "http without ranges"])
def test_rows_of_every_format_and_place(name, place, site, folder, tmp_path):
    content = CONTENT[name]()
    (tmp_path / name).write_bytes(content)
    url = f"file://{tmp_path / name}"
    if place == "memory":
        url = put(f"{folder}/{name}", content)
    elif place.startswith("http"):
        site.files[name], site.ranges = content, place == "http"
        url = f"{site.url}/{name}"
    assert found(url) == found(str(tmp_path / name))
    if not name.endswith("npy"):
        target = None if ".svm" in name or ".npz" in name else "y"
        here, there = read_table(tmp_path / name, target), read_table(url, target)
        assert there.kinds == here.kinds and there.y.tolist() == here.y.tolist()
    if ".svm" in name:
        assert (read_libsvm(url).X != read_libsvm(tmp_path / name).X).nnz == 0


def test_only_the_wanted_columns_are_fetched(site):
    """A column that is left out costs no byte, and the rest is fetched once."""
    wide = RNG.normal(size=(400, 400))
    noise = pa.FixedSizeListArray.from_arrays(wide.ravel(), 400)  # not even a type that can be read
    site.files["wide.parquet"] = parquet({"noise": noise}, row_group_size=100)
    site.files["narrow.parquet"] = parquet(row_group_size=100)
    whole, need = (len(site.files[f"{name}.parquet"]) for name in ("wide", "narrow"))
    assert whole > 1_000_000 > 20 * need
    url = f"{site.url}/wide.parquet"
    values = found(url, ignore=["noise"])
    # the footer is guessed to be in the last 64 kB, and read a second time if these hold it
    assert need < site.sent < 2 * (1 << 16) + 2 * need
    assert values == found(f"{site.url}/narrow.parquet")


def test_a_filter_skips_row_groups(folder):
    rows = pa.table({"day": np.arange(80_000), "x": RNG.normal(size=80_000)})
    content = saved(lambda sink: pq.write_table(rows, sink, row_group_size=20_000))
    url, read = put(f"{folder}/days.parquet", content), []

    class Counting(fsspec.get_filesystem_class("memory")):
        cachable = False

        def open(self, *args, **named):
            stream = io.BytesIO(super().open(*args, **named).getvalue())
            plain = stream.read
            stream.read = lambda *size: read.append(plain(*size)) or read[-1]
            return stream

    dataset = ds.dataset(url.removeprefix("memory:/"), filesystem=Counting(), format="parquet")
    with scan(dataset.filter(ds.field("day") >= 79_900)) as late:
        assert late.shape == (100, 2) and late.rows[0:1][0, 0] == 79_900
    assert sum(map(len, read)) < 0.6 * len(content)


def hive(root, write):
    """A table in directories by year and side; the rows in the order of the names."""
    for year in (2019, 2020):
        for side in ("left%20side", "__HIVE_DEFAULT_PARTITION__"):
            some = slice(*{"l": (0, 30), "_": (30, 60)}[side[0]])
            sink = io.BytesIO()
            pq.write_table(table().slice(some.start, 30), sink)
            write(f"{root}/year={year}/side={side}/part-0.parquet", sink.getvalue())
    write(f"{root}/_SUCCESS", b"")


def test_hive_partitions_are_columns(folder, tmp_path, client):
    def local(path, content):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(content)

    hive(folder, put)
    hive(tmp_path / "t", local)
    for root in (folder, str(tmp_path / "t"), str(tmp_path / "t" / "year=*" / "*" / "*.parquet")):
        found = read_table(root, "y")
        assert found.kinds == {
            "a": "number",
            "b": "number",
            "c": "number",
            "year": "number",
            "side": "string",
        }
        years, sides = found.values("year"), found.values("side")
        assert years.tolist() == [2019.0] * 60 + [2020.0] * 60
        assert found.levels["side"] == ["left side"]
        assert sides.tolist() == ([-1] * 30 + [0] * 30) * 2  # in the order of the names
    with scan(folder, target="year", ignore=["side", "y"]) as rows:
        assert rows.y.dtype.kind == "i" and rows.y.tolist() == years.tolist()
        model = LogisticRegression(solver="newton").fit(rows)
    lazy = scan(str(tmp_path / "t"), target="year", ignore=["side", "y"], client=client)
    far = LogisticRegression(solver="newton").fit(lazy)
    np.testing.assert_allclose(far.coef_, model.coef_, rtol=1e-6, atol=1e-9)
    with pytest.raises(BadFile, match="column 'side' holds values of kind string"):
        scan(folder, target="y")
    put(f"{folder}/more.parquet", parquet())
    with pytest.raises(BadInput, match="are in directories with different columns"):
        scan(folder, target="year")


def test_a_delta_table_is_refused(tmp_path):
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "part-0.parquet").write_bytes(parquet())
    with pytest.raises(BadInput, match=r"Delta Lake table.*to_pyarrow_dataset"):
        scan(str(tmp_path), target="y")


def test_patterns_directories_and_lists(folder):
    for k in range(3):
        put(f"{folder}/part-{k}.parquet", parquet())
    put(f"{folder}/_metadata", b"x")
    for source in (
        f"{folder}/part-*.parquet",
        folder,
        [f"{folder}/part-{k}.parquet" for k in range(3)],
    ):
        with scan(source, target="y") as rows:
            assert rows.shape == (1200, 3) and rows.rows[800:1200].tolist() == X.tolist()
    with pytest.raises(BadInput, match="No file matches"):
        scan(f"{folder}/none-*.parquet", target="y")


def test_datasets_of_pyarrow(tmp_path):
    (tmp_path / "year=1").mkdir()
    (tmp_path / "year=1" / "a.parquet").write_bytes(parquet())
    dataset = ds.dataset(tmp_path, partitioning="hive")
    assert read_table(dataset, "y").kinds["year"] == "number"
    for part, n in ((dataset, 400), (dataset.filter(ds.field("a") > 0), int((X[:, 0] > 0).sum()))):
        with scan(part, target="y", cache=tmp_path / "cache") as rows:
            assert rows.shape == (n, 4)
            assert rows.cache.parent == tmp_path / "cache"
    assert len(list((tmp_path / "cache").iterdir())) == 2
    with scan(ds.dataset(table()), target="y", cache=tmp_path / "cache") as rows:
        assert rows.shape == (400, 3)
    assert len(list((tmp_path / "cache").iterdir())) == 2  # rows in memory have no state
    with pytest.raises(BadInput, match="no column 'z'"):
        scan(dataset, target="z")


class TestCache:
    def test_found_again_and_built_anew_after_a_change(self, site, tmp_path):
        site.files["rows.csv"] = csv()
        url, how = f"{site.url}/rows.csv", {"target": "y", "cache": tmp_path}
        first = scan(url, **how).cache
        site.sent = 0
        assert scan(url, **how).cache == first
        assert site.sent < 100  # a look at the first bytes, for the format
        site.files["rows.csv"] = csv().replace(b"0", b"1")  # of the same size
        changed = scan(url, **how)
        assert changed.cache != first and (changed.rows[:400] != X).any()

    def test_memory_files_are_told_apart_by_time(self, folder, tmp_path):
        url = put(f"{folder}/rows.csv", csv())
        first = scan(url, target="y", cache=tmp_path).cache
        assert scan(url, target="y", cache=tmp_path).cache == first
        put(url, csv().replace(b"0", b"1"))
        assert scan(url, target="y", cache=tmp_path).cache != first

    def test_without_evidence_files_are_read_again(self, site, tmp_path):
        site.files["rows.csv"], site.etag = csv(), False
        url = f"{site.url}/rows.csv"
        for _ in range(2):
            site.sent = 0
            with scan(url, target="y", cache=tmp_path) as rows:
                assert rows.rows[:400].tolist() == X.tolist()
            assert site.sent > len(csv()) and not any(tmp_path.iterdir())

    def test_a_change_while_it_is_read(self, site, tmp_path):
        site.files["rows.csv"] = csv()
        site.after_body = lambda: site.files.update(
            {"rows.csv": csv().replace(b"0", b"1") if site.sent > 1000 else csv()}
        )
        with pytest.raises(BadFile, match=r"rows\.csv: the file has changed while it was read"):
            scan(f"{site.url}/rows.csv", target="y", cache=tmp_path)
        assert not any(tmp_path.iterdir())
        site.files["rows.csv"], site.sent = csv(), 0
        with pytest.raises(BadFile, match="has changed while it was read"):
            read_table(f"{site.url}/rows.csv", "y")


class Strict(fsspec.AbstractFileSystem):
    """A file system without options."""

    def __init__(self):
        super().__init__()


class TestErrors:
    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("name", ["rows.csv", "rows.parquet", "rows.svm", "rows.csv.gz"])
    def test_a_lost_connection(self, name, site, tmp_path):
        rng = np.random.default_rng(0)
        long = {
            "rows.csv": b"a,y\n" + b"".join(b"%d,up\n" % k for k in range(400_000)),
            "rows.parquet": saved(
                lambda sink, t: pq.write_table(t, sink),
                pa.table({"a": rng.normal(size=300_000), "y": rng.integers(0, 2, 300_000)}),
            ),
            "rows.svm": b"1 1:2\n0 2:1\n" * 300_000,
        }
        long["rows.csv.gz"] = gzip.compress(
            b"a,y\n" + b"".join(b"%d,up\n" % k for k in rng.integers(0, 1 << 40, 300_000)), 1
        )
        site.files[name], site.lost_after = long[name], 1_500_000
        target = None if name == "rows.svm" else "y"
        with pytest.raises(BadFile, match=rf"{name}.*(connection was lost|damaged)"):
            scan(f"{site.url}/{name}", target=target, cache=tmp_path)
        assert not any(tmp_path.iterdir())

    def test_missing_and_denied(self, site, folder):
        site.files["secret.csv"] = csv()
        site.denied.add("secret.csv")
        with pytest.raises(BadFile, match=r"none\.csv: there is no such file"):
            scan(f"{site.url}/none.csv", target="y")
        with pytest.raises(BadFile, match=r"secret\.csv: access is denied .*403.*storage_options"):
            read_table(f"{site.url}/secret.csv", "y")
        with pytest.raises(BadFile, match="there is no such file"):
            scan(f"{folder}/none.csv", target="y")
        with pytest.raises(BadFile, match="connection was lost"):
            scan("http://127.0.0.1:9/none.csv", target="y")  # nobody listens there

    def test_missing_packages_name_the_command(self, monkeypatch):
        with pytest.raises(BadInput, match="fsspec knows no protocol nope://"):
            scan("nope://x.csv")
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, "s3fs", None)
            with pytest.raises(Refused, match=r"s3://bucket/x\.csv.*pip install s3fs\."):
                scan("s3://bucket/x.csv")
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, "fsspec.core", None)
            with pytest.raises(Refused, match=r"fsspec: pip install 'fsspec\[http\]'"):
                scan("memory://x.csv")

    def test_options(self):
        fsspec.register_implementation("strict", Strict, clobber=True)
        with pytest.raises(BadInput, match="storage_options must be a dict"):
            scan("memory://x.csv", storage_options="anon")
        with pytest.raises(BadInput, match="does not take these storage_options, nonsense"):
            scan("strict://x.csv", storage_options={"nonsense": 1})

    def test_secrets_are_not_shown(self, site):
        assert shown("https://me:pw@host/a.csv?sig=abc") == "https://host/a.csv"
        with pytest.raises(BadFile) as caught:
            scan(f"{site.url}/none.csv?signature=abc", target="y")
        assert "abc" not in str(caught.value)


def test_workers_read_urls(site, client):
    site.files["part-0.csv"] = site.files["part-1.csv"] = csv()
    urls = [f"{site.url}/part-{k}.csv" for k in range(2)]
    model = LogisticRegression(solver="newton").fit(scan(urls, target="y", client=client))
    same = LogisticRegression(solver="newton").fit(np.vstack([X, X]), np.append(Y, Y))
    np.testing.assert_allclose(model.coef_, same.coef_, rtol=1e-6)
    with pytest.raises(BadInput, match="read by one process"):
        scan(ds.dataset(table()), target="y", client=client)


def test_the_command_line(site, folder, tmp_path, monkeypatch, capsys, client, without_figures):
    monkeypatch.chdir(tmp_path)
    site.files["table.csv"] = csv()
    url = f"{site.url}/table.csv?signature=abc"
    how = ["-t", "y", "--C", "1", "--json"]
    assert main(["fit", url, *how, "--storage-option", "simple_links=true"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["model_file"] == "table.linsep" and facts["report"] == "table.html"
    assert "abc" not in Path("table.html").read_text()
    Path("table.csv").write_bytes(csv())
    assert main(["fit", "table.csv", *how, "--no-report", "-o", "here.linsep"]) == 0
    capsys.readouterr()
    far, here = load("table.linsep")[-1], load("here.linsep")[-1]
    assert (far.coef_ == here.coef_).all() and far.data_digest_ == here.data_digest_
    assert main(["predict", "here.linsep", url]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 401
    assert main(["score", "here.linsep", url, "-t", "y", "--quiet"]) == 0
    put(f"{folder}/table.parquet", parquet())
    words = [f"{folder}/table.parquet", *how, "--no-report", "-o", "there.linsep"]
    assert main(["fit", *words, "--cluster", client.scheduler.address]) == 0
    assert (load("there.linsep")[-1].coef_ == here.coef_).all()
    capsys.readouterr()
    assert main(["fit", f"{site.url}/none.csv", *how]) == 4
    assert "there is no such file" in capsys.readouterr().err
    assert main(["fit", url, *how, "--storage-option", "anon"]) == 4
    assert "write KEY=VALUE" in capsys.readouterr().err
    assert main(["fit", url, *how, "--storage-option", "a={1"]) == 4
    assert "not JSON" in capsys.readouterr().err


class TestFaults:
    """What goes wrong on this side leaves nothing behind either."""

    def test_a_full_disk(self, site, tmp_path, monkeypatch):
        site.files["rows.csv"], site.files["rows.npz"] = csv(), CONTENT["rows.npz"]()

        def full(*args):
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("linsep.data.cache.PieceWriter.write", full)
            with pytest.raises(Refused, match=r"no room to write in .* a directory with more room"):
                scan(f"{site.url}/rows.csv", target="y", cache=tmp_path)
        assert not any(tmp_path.iterdir())
        monkeypatch.setattr(tempfile._TemporaryFileWrapper, "write", full, raising=False)
        with pytest.raises(Refused, match=r"rows\.npz: there is no room for a copy .* set TMPDIR"):
            scan(f"{site.url}/rows.npz", target="y", cache=tmp_path)
        assert not any(tmp_path.iterdir())

    def test_two_readers_build_one_cache(self, site, tmp_path):
        site.files["rows.csv"] = csv()
        with ThreadPoolExecutor(4) as pool:
            futures = [
                pool.submit(scan, f"{site.url}/rows.csv", target="y", cache=tmp_path)
                for _ in range(4)
            ]
            found = [future.result() for future in futures]
        assert len({one.cache for one in found}) == 1 and len(list(tmp_path.iterdir())) == 1
        assert all(one.rows[:400].tolist() == X.tolist() for one in found)

    @pytest.mark.parametrize("name", ["rows.parquet", "rows.feather", "rows.csv.gz", "rows.npz"])
    def test_a_truncated_file(self, name, site, tmp_path):
        site.files[name] = CONTENT[name]()[:-200]
        with pytest.raises(BadFile, match=rf"{name}.*(damaged|cut short)"):
            scan(f"{site.url}/{name}", target="y", cache=tmp_path)
        assert not any(tmp_path.iterdir())
