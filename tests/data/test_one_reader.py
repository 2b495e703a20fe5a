"""``read_table`` and ``scan`` read a file by the same rules: the same columns and numbers, or the same error."""

import bz2
import gzip
import lzma

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as pf
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from linsep import read_table, scan
from linsep.data.files.datafile import DataFile
from linsep.data.files.formats import Reading, open_records
from linsep.errors import BadFile, BadInput

PLAIN = b"a,b,y\n1,2.5,no\n3,-4e1,yes\n5,.5,no\n"

#: Content of a CSV file whose features are complete numbers.
NUMBERS = {
    "plain": PLAIN,
    "quotes": b'"a","b","y"\n"1","2.5","no"\n3,"-4e1","yes"\n5,.5,"n,o"\n',
    "blanks around numbers": b"a,b,y\n 1, 2.5 ,no\n3 ,-4e1, yes \n5,.5,no\n",
    "byte order mark": b"\xef\xbb\xbf" + PLAIN,
    "carriage returns": PLAIN.replace(b"\n", b"\r\n"),
    "no end of the last line": PLAIN.rstrip(),
    "semicolons": PLAIN.replace(b",", b";"),
    "bars": PLAIN.replace(b",", b"|"),
    "gzip": gzip.compress(PLAIN, mtime=0),
    "bzip2": bz2.compress(PLAIN),
    "xz": lzma.compress(PLAIN),
    "index column without a name": b",a,b,y\n0,1,2,no\n1,3,4,yes\n2,5,6,no\n",
    "booleans": b"a,flag,y\n1,true,no\n2,False,yes\n3,TRUE,no\n",
    "booleans alone": b"p,q,y\ntrue,false,no\nfalse,false,yes\n",
    "targets of whole numbers": b"a,y\n1,3\n2,4\n5,3\n",
    "targets of numbers": b"a,y\n1,3.5\n2,4\n5,3\n",
    "targets of truth values": b"a,y\n1,true\n2,false\n5,true\n",
    "targets with leading zeros": b"a,y\n1,007\n2,7\n5,007\n",
    "targets with blanks": b"a,y\n1, no\n2,no \n5,yes\n",
    "blank lines": b"\n\na,b,y\n1,2,no\n3,4,yes\n\n",
    "a name of digits": b"a,2020,y\n1,2,no\n3,4,yes\n",
    "non-breaking names": "größe,b,y\n1,2,no\n3,4,yes\n".encode(),
}

#: Content that has a text, a time or a missing value among its features, and what ``scan`` says of it.
NEEDS_AN_ENCODER = {
    "category": (b"a,city,y\n1,Oslo,no\n2,Bergen,yes\n", r":2:3: column 'city' .* kind string"),
    "codes": (b"a,zip,y\n1,00123,no\n2,00456,yes\n", r":2:3: column 'zip' .* kind string"),
    "dates": (b"a,day,y\n1,2020-01-31,no\n2,2021-02-01,yes\n", r":2:3: column 'day' .* kind time"),
    "empty cell": (b"a,b,y\n1,2,no\n,4,yes\n", r":3:1: column 'a' is missing in data row 2"),
    "NA": (b"a,b,y\n1,2,no\n3,NA,yes\n", r":3:3: column 'b' is missing in data row 2"),
    "nan": (b"a,b,y\n1,2,no\n3, nan ,yes\n", r":3:3: column 'b' is missing in data row 2"),
    "question mark": (b"a,b,y\n1,?,no\n3,4,yes\n", r":2:3: column 'b' is missing in data row 1"),
    "trailing delimiter": (b"a,b,y,\n1,2,no,\n3,4,yes,\n", r"column 'column_4' .* kind string"),
}

#: Content that neither accepts.
REFUSED = {
    "empty": b"",
    "ragged": b"a,b,y\n1,2,no\n3,4\n",
    "thousands separators": b'a,b,y\n1,"1,234",no\n2,"5,678,901",yes\n',
    "decimal commas": b"a;b;y\n1;2,5;no\n2;3,75;yes\n",
    "units": b"a,b,y\n1,$5,no\n2,$7,yes\n",
    "infinity": b"a,b,y\n1,2,no\n3,inf,yes\n",
    "no header": b"1,2,3\n4,5,6\n",
    "names twice": b"a,a,y\n1,2,no\n3,4,yes\n",
    "open quote": b'a,b,y\n1,2,"no\n3,4,yes\n',
    "NUL": b"a,b,y\n1,2,no\n3,\x004,yes\n",
    "UTF-16": "a,b,y\n1,2,no\n".encode("utf-16"),
    "latin-1": "a,b,y\n1,2,früh\n3,4,spät\n".encode("latin-1"),
    "missing target": b"a,b,y\n1,2,no\n3,4,\n",
    "text far below numbers": b"a,y\n" + b"1,no\n2,yes\n" * 120_000 + b"x,no\n",
    "gzip cut short": gzip.compress(PLAIN, mtime=0)[:-9],
}


def written(tmp_path, content, name="rows.csv"):
    path = tmp_path / name
    path.write_bytes(content)
    return path


def agree(path, target="y", **how):
    """Columns, numbers and targets of both readings."""
    table = read_table(path, target, **how)
    with scan(path, target=target, **how) as rows:
        assert list(rows.feature_names) == table.columns
        X = np.column_stack([table.values(name) for name in table.columns])
        np.testing.assert_array_equal(rows.rows[:], X)
        assert rows.y.tolist() == table.y.tolist()
        return rows.rows.dtype


@pytest.mark.parametrize("case", NUMBERS)
def test_numbers(case, tmp_path):
    agree(written(tmp_path, NUMBERS[case]))


@pytest.mark.parametrize("case", NEEDS_AN_ENCODER)
def test_what_needs_an_encoder(case, tmp_path):
    content, words = NEEDS_AN_ENCODER[case]
    path = written(tmp_path, content)
    assert len(read_table(path, "y")) == 2
    with pytest.raises(BadFile, match=words):
        scan(path, target="y")


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case, tmp_path):
    path = written(tmp_path, REFUSED[case])
    with pytest.raises(BadInput) as of_table:
        read_table(path, "y")
    with pytest.raises(BadInput) as of_scan:
        scan(path, target="y")
    assert str(of_scan.value) == str(of_table.value) and type(of_scan.value) is type(of_table.value)


def test_dialects(tmp_path):
    path = written(tmp_path, b"1,5;x;no\n2,25;3;yes\n")
    agree(path, "column_3", delimiter=";", header=False, decimal=",", ignore=["column_2"])
    with pytest.raises(BadFile, match=r":1:5: column 'column_2' is missing in data row 1"):
        scan(path, target="column_3", delimiter=";", header=False, decimal=",", missing=["x"])
    agree(written(tmp_path, PLAIN.replace(b",", b"\t"), "rows.tsv"))
    agree(written(tmp_path, PLAIN, "rows.txt"))
    agree(written(tmp_path, PLAIN, "rows.dat"), format="csv")


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_columnar_types(ending, tmp_path):
    single = {"f": pa.array([1.5, 2.5], pa.float32()), "i": pa.array([1, 2], pa.int16())}
    double = {"i": pa.array([1, 2**40]), "d": pa.array([True, False])}
    text = {"c": pa.array(["u", "v"]).dictionary_encode(), "t": pa.array(["NA", "u"])}
    for columns, kind in ((single, np.float32), (double, np.float64)):
        for y in (["no", "yes"], [1, 2], [1.5, 2.0], [True, False], ["NA", "007"]):
            path = tmp_path / f"rows.{ending}"
            _write(pa.table({**columns, "y": y}), path)
            assert agree(path) == kind
    _write(pa.table({**single, **text, "y": [1, 2]}), path)
    agree(path, ignore=["c", "t"])
    for wrong in ({"t": text["t"]}, {"i": pa.array([1, None])}, {"i": pa.array([1, 2**53 + 1])}):
        _write(pa.table({**wrong, "y": [1, 2]}), path)
        with pytest.raises(BadFile, match=r"column '[it]' "):
            scan(path, target="y")


@pytest.mark.parametrize("kind", ["parquet", "file", "stream"])
def test_ignored_columns_are_not_read(kind, tmp_path):
    """The batches hold the features and the target alone, in file order, whatever the order of the settings."""
    path = tmp_path / ("rows.parquet" if kind == "parquet" else "rows.arrow")
    table = pa.table({"a": [1.0, 2.0], "text": ["u" * 999, "v"], "y": [0, 1], "b": [3, 4]})
    if kind == "parquet":
        pq.write_table(table, path)
    else:
        new = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
        with new(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=1)
    how = Reading(ignore=("text",))
    form = "parquet" if kind == "parquet" else "arrow"
    with open_records(DataFile(str(path)), form, "y", how) as records:
        found = pa.Table.from_batches(records.batches)
    assert found.equals(table.drop_columns(["text"]))


def _write(table, path):
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        pf.write_feather(table, path)


def test_several_files_share_one_target(tmp_path):
    """A label is a number only if it is one in every file."""
    for k, labels in enumerate((["1", "2"], ["2", "other"])):
        pd.DataFrame({"a": [k, k + 1.5], "y": labels}).to_csv(tmp_path / f"{k}.csv", index=False)
    with scan(tmp_path, target="y") as rows:
        assert rows.y.tolist() == ["1", "2", "2", "other"]


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_libsvm(compress, tmp_path):
    text = b"# two classes\n+1 qid:1 3:1 1:.5\r\n-1 qid:1 2:1e-3 # the second\n\n+1 qid:2\n"
    path = written(tmp_path, compress(text), "rows.svm")
    table = read_table(path)
    with scan(path) as rows:
        assert (rows.rows[:] != table.matrix).nnz == 0 and rows.shape == table.matrix.shape
        assert rows.y.tolist() == table.y.tolist() and rows.y.dtype == table.y.dtype
    for wrong in (b"1 1:2\n1 1:x\n", b"1 2:1 2:2\n", b"1 qid:1 1:1\n1 1:1\n", b"", b"1 1:nan\n"):
        path.write_bytes(wrong)
        with pytest.raises(BadFile) as of_table:
            read_table(path)
        with pytest.raises(BadFile) as of_scan:
            scan(path)
        assert str(of_scan.value) == str(of_table.value)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_npz(kind, tmp_path, tuned):

    tuned(file_entries=50)  # several blocks
    X = sp.random_array((40, 9), density=0.3, format="csr", random_state=0)
    path, y = tmp_path / "rows.npz", np.arange(40) % 3
    if kind == "dense":
        np.savez_compressed(path, X=X.toarray(), y=y)
    else:
        np.savez(path, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, y=y)
    table = read_table(path)
    with scan(path, target="y") as rows:
        found = rows.rows[:]
        assert abs(found - table.matrix).sum() == 0 and rows.y.tolist() == table.y.tolist()
    np.savez(path, X=np.zeros((3, 2)), y=y)
    for read in (read_table, lambda path: scan(path, target="y")):
        with pytest.raises(BadFile, match=r"shape \(40,\)"):
            read(path)
