"""Files become tables, or are refused with their place and a way out."""

import bz2
import gzip
import io
import lzma
import math
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

import linsep
from linsep import Encoder, read_table
from linsep.data.files import columnar
from linsep.errors import BadFile, BadInput, Refused
from linsep.tables import batches
from linsep.tables.table_files import stream_table


def table(text, target=None, **options):
    return read_table(io.BytesIO(text), target, format="csv", **options)


def contents(found):
    """Columns as plain lists: levels for strings, None for missing."""
    out = {}
    for name, kind in found.kinds.items():
        values = found.values(name).tolist()
        if kind == "string":
            values = [None if code < 0 else found.levels[name][code] for code in values]
        elif kind != "time":
            values = [None if math.isnan(value) else value for value in values]
        out[name] = values
    return out


LINES = b"".join(b"%d,u\n" % i for i in range(12))
# Content, options, line, column and words of the refusal.
REFUSED = {
    "empty": (b"", {}, None, None, "is empty"),
    "blank": (b"\n \n", {}, None, None, "is empty"),
    "header alone": (b"a,b\n", {}, None, None, "no rows"),
    "header alone without a line end": (b"\r\na,b", {}, None, None, "no rows"),
    "row too short": (b"a,b\n1,2\n3\n", {}, 3, 1, "1 cells where 2 are expected"),
    "row too long": (b"a,b\n1,2\n3,4,5\n", {}, 3, 1, "3 cells where 2"),
    "row too short behind blank lines": (b"\n\na,b\n\n1,2\n\n3\n", {}, 7, 1, "1 cells"),
    "row too long behind a newline in quotes": (b'a,b\n"x\ny",2\n1,2,3\n', {}, 4, 1, "3 cells"),
    "cut in the last line": (b"a,b,c\n1,2,3\n4,5", {}, 3, 1, "cut short"),
    "wrong delimiter": (
        b"a;b\n1;2\n",
        {"delimiter": ",", "target": "b"},
        None,
        None,
        "no column 'b'",
    ),
    "quote left open": (b'a,b\n1,"2\n3,4\n', {}, 2, 3, "not closed"),
    "quote left open at the end": (b'a,b\n1,2\n3,"4', {}, 3, 3, "not closed"),
    "two columns of one name": (b"a,b,a\n1,2,3\n", {}, 1, 5, "two columns are called 'a'"),
    "two columns of one name in quotes": (b'"x,y","x,y"\n1,2\n', {}, 1, 7, "'x,y'"),
    "no header": (b"1,2\n3,4\n", {}, 1, 1, "header=False"),
    "not UTF-8": (b"a,b\n1,caf\xe9\n", {}, 2, 6, "encoding='latin-1'"),
    "UTF-16": ("a,b\n1,2\n".encode("utf-16"), {}, 1, 1, "UTF-16"),
    "UTF-16 without mark": ("a,b\n1,2\n".encode("utf-16-le"), {}, 1, None, "NUL"),
    "NUL": (b"a,b\n1,x\0y\n", {}, 2, None, "NUL"),
    "decimal comma": (b"a;b\n1;2,5\n3;4\n", {}, 2, 3, "decimal=','"),
    "grouped digits and a decimal comma": (
        b"a;b\n1;3.000\n2;1.234,50\n",
        {},
        3,
        3,
        "decimal=',' and thousands='.'",
    ),
    "grouped digits": (b'a,b\n1,"1,234,567"\n2,"3,000"\n', {}, 2, 3, "grouped digits"),
    "text among numbers": (b"a,b\n" + LINES + b"oops,v\n", {}, 14, 1, "numbers otherwise"),
    "infinity": (b"a,b\n1,2\n2,-inf\n", {}, 3, 3, "infinite"),
    "overflow": (b"a,b\n1,1e999\n", {}, 2, 3, "too large"),
    "unknown target": (
        b"age,b\n1,2\n",
        {"target": "agee"},
        None,
        None,
        "did you mean 'age'?",
    ),
    "unknown ignored": (b"a,b\n1,2\n", {"ignore": ["c"]}, None, None, "no column 'c'"),
    "unknown in types": (b"a,b\n1,2\n", {"types": {"c": "number"}}, None, None, "no column 'c'"),
    "type unknown": (b"a,b\n1,2\n", {"types": {"a": "float"}}, None, None, "must be one of number"),
    "target missing": (b"a,y\n1,0\n2,\n3,NA\n", {"target": "y"}, 3, 3, "data rows 2, 3"),
    "number by decree": (b"a,b\nx,2\n", {"types": {"a": "number"}}, 2, 1, "'x' in column 'a'"),
    "time by decree": (b"a,b\n1,2024-02-30\n", {"types": {"b": "time"}}, 2, 3, "'2024-02-30'"),
    "boolean by decree": (b"a,b\n1,yes\n", {"types": {"b": "boolean"}}, 2, 3, "'yes'"),
    "encoding unknown": (b"a,b\n1,2\n", {"encoding": "klingon"}, None, None, "unknown encoding"),
    "format unknown": (b"a,b\n1,2\n", {"format": "xls"}, None, None, "format must be one of csv"),
    "Zstandard": (b"\x28\xb5\x2f\xfd1234", {}, None, None, "unzstd"),
    "gzip cut short": (
        gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:-9],
        {},
        None,
        None,
        "gzip data are damaged",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    content, options, line, column, words = REFUSED[case]
    options = {"format": "csv", **options}
    with pytest.raises(BadInput) as caught:
        read_table(io.BytesIO(content), **options)
    assert words in str(caught.value)
    found = getattr(caught.value, "line", None), getattr(caught.value, "column", None)
    assert found == (line, column), caught.value


ACCEPTED = {
    "plain": (b"a,b\n1,x\n2.5,y\n", {}, {"a": [1, 2.5], "b": ["x", "y"]}),
    "no line end at the end": (b"a,b\n1,x", {}, {"a": [1], "b": ["x"]}),
    "Windows line ends": (b"a,b\r\n1,x\r\n", {}, {"a": [1], "b": ["x"]}),
    "UTF-8 mark": (b"\xef\xbb\xbfa,b\n1,x\n", {}, {"a": [1], "b": ["x"]}),
    "semicolons": (b"a;b\n1;x\n", {}, {"a": [1], "b": ["x"]}),
    "tabs": (b"a\tb\n1\tx y\n", {}, {"a": [1], "b": ["x y"]}),
    "bars": (b"a|b\n1|x\n", {}, {"a": [1], "b": ["x"]}),
    "one column": (b"a\n1\n2\n", {}, {"a": [1, 2]}),
    "quotes": (b'"a","b"\n"1","x, ""y"""\n', {}, {"a": [1], "b": ['x, "y"']}),
    "newline in quotes": (b'a,b\n1,"x\ny"\n', {}, {"a": [1], "b": ["x\ny"]}),
    "quotes that mean nothing": (b'a,b\n1,5"\n', {"quote": None}, {"a": [1], "b": ['5"']}),
    "decimal comma": (b"a;b\n1,5;x\n-2;y\n", {"decimal": ","}, {"a": [1.5, -2], "b": ["x", "y"]}),
    "latin-1": (b"a,b\n1,caf\xe9\n", {"encoding": "latin-1"}, {"a": [1], "b": ["café"]}),
    "names in any script": ("größe,名\n1,x\n".encode(), {}, {"größe": [1], "名": ["x"]}),
    "empty name": (b",b\n1,x\n", {}, {"column_1": [1], "b": ["x"]}),
    "no header": (b"1,x\n2,y\n", {"header": False}, {"column_1": [1, 2], "column_2": ["x", "y"]}),
    "missing values": (
        b"a,b\n1,NA\n?,x\n-,null\nNaN,N/A\n ,-\n",
        {},
        {"a": [1, None, None, None, None], "b": [None, "x", None, None, None]},
    ),
    "own missing values": (
        b"a,b\n1,NA\n-999,x\n",
        {"missing": ["-999"]},
        {"a": [1, None], "b": ["NA", "x"]},
    ),
    "all missing": (b"a,b\n1,\n2,NA\n", {}, {"a": [1, 2], "b": [None, None]}),
    "blanks around": (b"a , b\n 1 , x \n2,x\n", {}, {"a": [1, 2], "b": ["x", "x"]}),
    "blank lines": (b"\na,b\n\n1,x\n\n", {}, {"a": [1], "b": ["x"]}),
    "returns alone": (b"\r\ra,b\r\rx,y\r", {}, {"a": ["x"], "b": ["y"]}),
    "blank lines that end in any way": (b"\n\r\r\na,b\nx,y\n", {}, {"a": ["x"], "b": ["y"]}),
    "booleans": (b"a,b\n1,true\n2,FALSE\n3,\n", {}, {"a": [1, 2, 3], "b": [1, 0, None]}),
    "words are no booleans": (b"a,b\n1,yes\n2,no\n", {}, {"a": [1, 2], "b": ["yes", "no"]}),
    "codes with zeros in front": (b"a,b\n1,007\n2,12\n", {}, {"a": [1, 2], "b": ["007", "12"]}),
    "long whole numbers": (
        b"a,b\n1,12345678901234567\n",
        {},
        {"a": [1], "b": ["12345678901234567"]},
    ),
    "leading hash": (b"#a,b\n1,x\n#2,y\n", {}, {"#a": ["1", "#2"], "b": ["x", "y"]}),
    "exponents and signs": (b"a,b\n+1e3,x\n-.5,y\n", {}, {"a": [1000, -0.5], "b": ["x", "y"]}),
    "types by decree": (
        b"a,b\n1,2\n",
        {"types": {"a": "category", "b": "number"}},
        {"a": ["1"], "b": [2]},
    ),
    "left out": (b"a,b,c\n1,x,3\n", {"ignore": ["b"], "types": {"c": "drop"}}, {"a": [1]}),
    "numbers with text by decree": (
        b"a,b\n" + LINES + b"oops,v\n",
        {"types": {"a": "category"}, "ignore": ["b"]},
        {"a": [*map(str, range(12)), "oops"]},
    ),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_accepted(case):
    content, options, expected = ACCEPTED[case]
    assert contents(table(content, **options)) == expected


@pytest.mark.parametrize(
    ("values", "expected", "kind"),
    [
        (["0", "1"], [0, 1], "i"),
        (["-1", "+1"], [-1, 1], "i"),
        (["1", "2"], [1, 2], "i"),
        (["01", "1"], ["01", "1"], "O"),
        (["0.5", "2"], [0.5, 2], "f"),
        (["yes", " no "], ["yes", "no"], "O"),
        (["true", "false"], ["true", "false"], "O"),
        (["12345678901234567890", "1"], [12345678901234567890.0, 1.0], "f"),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_targets(values, expected, kind, first):
    rows = [f"{v},7" if first else f"7,{v}" for v in values]
    found = table("\n".join(["y,a" if first else "a,y", *rows]).encode(), "y")
    assert found.y.tolist() == expected and found.y.dtype.kind == kind
    assert found.columns == ["a"]


def test_times():
    found = table(b"a,b\n2024-01-31,2024-01-01T00:00:00Z\n,2024-05-01 12:00:00+02:00\n")
    assert found.kinds == {"a": "time", "b": "time"}
    expected = np.array(["2024-01-01T00:00", "2024-05-01T10:00"], "datetime64[us]")
    assert (found.values("b") == expected).all()
    assert np.isnat(found.values("a")).tolist() == [False, True]


def test_what_contradicts_the_head_is_refused_far_below(tuned):
    tuned(delimited_head=64, delimited_block=64)
    rows = b"1,x\n" * 500
    with pytest.raises(
        BadFile, match="'1O' in column 'a', which holds numbers otherwise"
    ) as caught:
        table(b"a,b\n" + rows + b'"1O",y\n' + rows)
    assert (caught.value.line, caught.value.column) == (502, 1)
    with pytest.raises(BadFile, match="2 cells where 3"):
        table(b"a,b,c\n" + b"1,x,3\n" * 500 + b"1,x\n")
    with pytest.raises(BadFile, match="encoding") as caught:
        table(b"a,b\n" + rows + b"1,\xff\n")
    assert (caught.value.line, caught.value.column) == (502, 3)
    with pytest.raises(BadFile, match="NUL") as caught:
        table(b"a,b\n" + rows + b"1,\0\n")
    assert caught.value.line == 502
    with pytest.raises(BadFile, match=r"quote may be left open|not closed"):
        table(b"a,b\n" + rows + b'1,"x\n' + rows)
    found = table(b"a,b\n" + rows + b"2.5,z\n")
    assert len(found.batches) > 1 and contents(found)["a"][-1] == 2.5


def test_compressed_and_by_name(tmp_path):
    text = b"a\tb\n1,5\tx\n"
    for pack, suffix in ((gzip.compress, ".gz"), (bz2.compress, ".bz2"), (lzma.compress, ".xz")):
        path = tmp_path / f"t.tsv{suffix}"
        path.write_bytes(pack(text))
        assert contents(read_table(path, decimal=",")) == {"a": [1.5], "b": ["x"]}


def test_the_format_is_found_out(tmp_path):
    for name in ("data.svm", "data.txt", "data"):
        (tmp_path / name).write_bytes(b"1 1:2 3:4\n-1 2:1\n")
        found = read_table(tmp_path / name)
        assert found.matrix.toarray().tolist() == [[2, 0, 4], [0, 1, 0]]
        assert found.y.tolist() == [1, -1] and found.y.dtype.kind == "i"
    (tmp_path / "words.txt").write_bytes(b"a,b\n1,2\n")
    assert read_table(tmp_path / "words.txt").columns == ["a", "b"]
    (tmp_path / "bad.svm").write_bytes(b"1 1:2\nx\n")
    with pytest.raises(BadFile, match=r"bad\.svm:2:1: the label 'x'"):
        read_table(tmp_path / "bad.svm")
    with pytest.raises(BadInput, match="no column names"):
        read_table(tmp_path / "data.svm", "y")
    with pytest.raises(FileNotFoundError, match=r"no such file: '/"):
        read_table(tmp_path / "missing.csv")
    with pytest.raises(FileNotFoundError, match=r"no such file \(relative to"):
        read_table("missing.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(IsADirectoryError, match="without files"):
        read_table(tmp_path / "empty")


@pytest.mark.slow
def test_standard_input():
    code = "import linsep; t = linsep.read_table('-', 'y'); print(t.y.tolist())"
    text = b"a,y\n1,no\n2,yes\n"
    done = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, check=True)
    assert done.stdout.decode().strip() == "['no', 'yes']"


def test_npz(tmp_path):
    path = tmp_path / "data.npz"
    X, y = np.arange(6.0).reshape(3, 2), np.array([0, 1, 1])
    np.savez(path, X=X, y=y)
    found = read_table(path)
    np.testing.assert_array_equal(found.matrix, X)
    np.testing.assert_array_equal(found.y, y)
    sp.save_npz(path, sp.csr_array(X))
    np.testing.assert_array_equal(read_table(path).matrix.toarray(), X)
    damaged = {"data": [1.0], "indices": [7], "indptr": [0, 1], "shape": [1, 2]}
    for arrays, words in (
        ({"X": np.array([None, 1])}, "Python objects"),
        ({"Z": X}, "holds Z; an array X"),
        ({"X": X, "y": y[:2]}, "y has shape"),
        ({"X": X[0]}, "matrix of numbers"),
        ({"X": np.array([["a"]])}, "matrix of numbers"),
        (damaged, "sparse matrix is damaged"),
    ):
        np.savez(path, **arrays)
        with pytest.raises(BadFile, match=words):
            read_table(path)
    path.write_bytes(b"PK\x03\x04 rubbish")
    with pytest.raises(BadFile, match="damaged"):
        read_table(path)


ARROW = {
    "float": (pa.array([1.5, None]), "number", [1.5, None]),
    "half": (pa.array(np.array([1.5, 2], np.float16)), "number", [1.5, 2]),
    "int8": (pa.array([1, None], pa.int8()), "number", [1, None]),
    "uint64": (pa.array([1, 2**53], pa.uint64()), "number", [1, 2**53]),
    "decimal": (pa.array([1, 2], pa.int32()).cast(pa.decimal128(20, 2)), "number", [1, 2]),
    "bool": (pa.array([True, None]), "boolean", [1, None]),
    "string": (pa.array(["x", None]), "string", ["x", None]),
    "large string": (pa.array(["x", "y"], pa.large_string()), "string", ["x", "y"]),
    "dictionary": (pa.array(["x", None]).dictionary_encode(), "string", ["x", None]),
    "dictionary of numbers": (pa.array([5, 6]).dictionary_encode(), "number", [5, 6]),
    "nothing": (pa.nulls(2), "string", [None, None]),
    "sliced": (pa.array([9.0, 1.0, 2.0])[1:], "number", [1, 2]),
}
if hasattr(pa, "string_view"):  # since pyarrow 16
    ARROW["string view"] = (pa.array(["x", "y"], pa.string_view()), "string", ["x", "y"])


@pytest.mark.parametrize("case", ARROW)
@pytest.mark.parametrize("write", ["parquet", "arrow", "stream"])
def test_columnar_files(tmp_path, case, write):
    values, kind, expected = ARROW[case]
    data = pa.table({"a": values, "y": [0, 1]})
    path = tmp_path / f"t.{'parquet' if write == 'parquet' else 'arrow'}"
    if write == "parquet":
        if case in ("string view",):
            data = pa.table({"a": values.cast(pa.string()), "y": [0, 1]})
        pq.write_table(data, path)
    elif write == "arrow":
        pyarrow.feather.write_feather(data, path, compression="uncompressed")
    else:
        with pa.ipc.new_stream(path, data.schema) as stream:
            stream.write_table(data)
    found = read_table(path, "y")
    assert found.kinds == {"a": kind}
    assert contents(found)["a"] == expected
    assert found.y.tolist() == [0, 1]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_arrow_times(tmp_path, unit):
    moments = pa.array([0, None], pa.timestamp(unit, "Europe/Oslo"))
    pq.write_table(
        pa.table({"t": moments, "d": pa.array([1, 2], pa.date32())}), tmp_path / "t.parquet"
    )
    found = read_table(tmp_path / "t.parquet")
    assert found.kinds == {"t": "time", "d": "time"}
    assert found.values("t")[0] == np.datetime64("1970-01-01") and np.isnat(found.values("t")[1])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (pa.array([[1], [2]]), "no numeric form; leave it out with ignore"),
        (pa.array([{"x": 1}, {"x": 2}]), "no numeric form"),
        (pa.array([b"x", b"y"]), "no numeric form"),
        (pa.array([1, 2], pa.duration("s")), "no numeric form"),
        (pa.array([1, 2**60], pa.int64()), "beyond 2^53"),
        (pa.array([1.0, np.inf]), "infinite or too large for float64 in data row 2"),
    ],
)
def test_columns_without_numeric_form(tmp_path, values, words):
    pq.write_table(pa.table({"a": values, "b": [1, 2]}), tmp_path / "t.parquet")
    with pytest.raises(BadFile) as caught:
        read_table(tmp_path / "t.parquet")
    assert words in str(caught.value)
    assert read_table(tmp_path / "t.parquet", ignore=["a"]).columns == ["b"]


def test_damaged_columnar_files(tmp_path):
    good = tmp_path / "good.parquet"
    pq.write_table(pa.table({"a": np.arange(10_000.0), "y": np.arange(10_000)}), good)
    content = good.read_bytes()
    for name, damaged in (
        ("footer", content[:-20]),
        ("half", content[: len(content) // 2]),
        ("head", content[:4]),
        ("length", content[:-8] + b"\xff\xff\xff\x7f" + b"PAR1"),
    ):
        path = tmp_path / f"{name}.parquet"
        path.write_bytes(damaged)
        with pytest.raises(BadFile, match="damaged, cut short or of another format"):
            read_table(path)
    (tmp_path / "text.parquet").write_bytes(b"a,b\n1,2\n")
    with pytest.raises(BadFile, match="another format"):
        read_table(tmp_path / "text.parquet")
    pq.write_table(pa.table({"a": pa.array([], pa.float64())}), good)
    with pytest.raises(BadFile, match="no rows"):
        read_table(good)
    pq.write_table(pa.table({"a": [1.0, 2.0], "y": pa.array([1, None])}), good)
    with pytest.raises(BadFile, match="target 'y' is missing in data row 2"):
        read_table(good, "y")
    with pytest.raises(BadInput, match="did you mean"):
        read_table(good, "yy")


def test_rows_without_a_target_can_be_left_out(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n1,u,no\n2,v,\n3,w,yes\n4,u,NA\n")
    with pytest.raises(BadFile, match=r"missing in data rows 2, 4 \(.*unlabelled='drop'"):
        read_table(path, "y")
    (tmp_path / "many.csv").write_text("a,y\n1,no\n2,yes\n" + "3,\n" * 12)
    with pytest.raises(BadFile, match=r"data rows 3, 4, .*, 12, \.\.\. \(counting from 1\)"):
        read_table(tmp_path / "many.csv", "y")
    found = read_table(path, "y", unlabelled="drop")
    assert found.y.tolist() == ["no", "yes"] and found.unlabelled == 2 and len(found) == 2
    assert found.batches[0].numbers[:, 0].tolist() == [1.0, 3.0]
    batch = found.batches[0]
    assert [batch.levels(0)[code] for code in batch.codes[:, 0]] == ["u", "w"]
    path.write_text("a,y\n1,2.5\n2,\n")
    assert read_table([path, path], "y", unlabelled="drop").y.tolist() == [2.5, 2.5]
    path.write_text("a,y\n1,\n2,\n")
    with pytest.raises(BadFile, match="no row has a target 'y'"):
        read_table(path, "y", unlabelled="drop")
    with pytest.raises(BadInput, match="unlabelled must be 'error' or 'drop'"):
        read_table(path, "y", unlabelled="ignore")


def test_a_decimal_comma_in_a_column_of_numbers_is_recognised():
    text = b"a;b\n5659,66;1\n"
    with pytest.raises(BadFile, match="which holds numbers with a decimal comma; give decimal=','"):
        table(text, types={"a": "number"})


def test_many_columns():
    d = 5_000
    names = ",".join(f"c{j}" for j in range(d))
    row = ",".join(map(str, range(d)))
    found = table(f"{names}\n{row}\n{row}\n".encode())
    assert len(found.kinds) == d and found.batches[0].numbers.shape == (2, d)


def test_without_pyarrow(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(Refused, match="pip install pyarrow"):
        columnar.arrow()


def test_the_front_page_knows_the_names():
    assert linsep.read_table is read_table
    assert repr(table(b"a\n1\n")) == "<Table <stream>: 1 rows, 1 columns>"


@pytest.mark.parametrize("rows", [[0, 3, 4, 5], [5, 0, 0], []])
def test_taking_rows_across_batches(rows, tuned):
    tuned(delimited_block=64)
    text = b"a,b,y\n" + b"".join(b"%d,%c,%d\n" % (i, b"xyz"[i % 3], i % 2) for i in range(60))
    whole = table(text, "y")
    assert len(whole.batches) > 1
    some = whole.take(np.array(rows, dtype=np.int64))
    assert contents(some)["a"] == rows and some.y.tolist() == [i % 2 for i in rows]
    assert contents(some)["b"] == ["xyz"[i % 3] for i in rows]


# many rows wait in a file


@pytest.fixture
def shelved(tuned):
    """Everything goes to the file, in pieces of a few rows."""
    tuned(batches_kept=0, batches_piece=64, batches_region=1 << 13)


def mixed_text(n):
    lines = [
        f"{'' if i % 7 == 0 else i / 8},{i % 2 == 0},{'abc'[i % 3]},2024-01-{1 + i % 28:02},{i % 2}"
        for i in range(n)
    ]
    return ("x,flag,letter,day,y\n" + "\n".join(lines) + "\n").encode()


def test_a_table_in_a_file_is_the_same_table(shelved, tuned):
    text = mixed_text(5000)
    tuned(delimited_block=2000)
    there = read_table(io.BytesIO(text), "y")
    assert len(there.batches) > 3 and all(b.place is not None for b in there.batches)
    tuned(batches_kept=1 << 30)
    here = read_table(io.BytesIO(text), "y")
    assert all(b.place is None for b in here.batches)
    rows = np.flatnonzero(np.arange(5000) % 3 == 1)
    shuffled = np.random.default_rng(0).permutation(5000)[:50]
    for _ in range(2):  # the second time the pages come from the file again
        for name in here.columns:
            for of in (lambda t: t, lambda t: t.take(rows), lambda t: t.take(rows).take(rows[:90]),
                       lambda t: t.take(shuffled)):  # fmt: skip
                assert np.array_equal(
                    of(there).values(name),
                    of(here).values(name),
                    equal_nan=here.kinds[name] != "string",
                )
        there.release()
    both = Encoder().fit(here).transform(here), Encoder().fit(there).transform(there, consume=True)
    assert np.array_equal(*both) and not there.batches


def test_without_room_in_the_file_rows_stay_in_memory(shelved, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(batches.os, "posix_fallocate", full, raising=False)
    table = read_table(io.BytesIO(mixed_text(300)), "y")
    assert len(table) == 300 and all(b.place is None for b in table.batches)
    assert np.isnan(table.values("x")).sum() == 43


def test_a_stream_of_tables_has_all_rows(tuned, tmp_path):
    tuned(delimited_block=2000)
    (tmp_path / "t.csv").write_bytes(mixed_text(1000))
    whole = read_table(tmp_path / "t.csv")
    parts = list(stream_table(tmp_path / "t.csv"))
    assert len(parts) > 5
    assert np.concatenate([part.y is None and part.values("x") for part in parts]).tolist() == (
        pytest.approx(whole.values("x").tolist(), nan_ok=True)
    )
    letters = [part.levels["letter"][code] for part in parts for code in part.values("letter")]
    assert letters == [whole.levels["letter"][code] for code in whole.values("letter")]
    (tmp_path / "none.csv").write_text("x,y\n")
    with pytest.raises(BadFile, match="no rows"):
        list(stream_table(tmp_path / "none.csv"))


def test_missing_values_of_a_wide_table_are_padded_as_in_its_head():
    head = ",".join(f"c{j}" for j in range(400))
    rows = [",".join(["1", cell, "   ", *["2"] * 397]) for cell in ("3", "  NA", "NA", "4")]
    found = table("\n".join([head, *rows]).encode())
    assert contents(found)["c1"] == [3.0, None, None, 4.0]
    assert contents(found)["c2"] == [None] * 4 and contents(found)["c399"] == [2.0] * 4


@pytest.mark.parametrize(
    ("text", "how"),
    [
        (b'a,b,y\n"1,234.5",u,"2,000"\n"12,345,678",v,-3.5\nNA,u," 7 "\n', {"thousands": ","}),
        (b"a;b;y\n1.234,5;u;2.000\n12.345.678;v;-3,5\n;u;7\n", {"thousands": ".", "decimal": ","}),
        (b"a;b;y\n1'234.5;u;2'000\n12'345'678;v;-3.5\n;u;7\n", {"thousands": "'"}),
        (
            "a;b;y\n1\u202f234,5;u;2\u202f000\n12\u202f345\u202f678;v;-3,5\n;u;7\n".encode(),
            {"thousands": "\u202f", "decimal": ","},
        ),
    ],
)
def test_separators_of_thousands(text, how):
    table = read_table(io.BytesIO(text), "y", **how)
    assert table.kinds == {"a": "number", "b": "string"}
    np.testing.assert_array_equal(table.values("a"), [1234.5, 12345678.0, np.nan])
    np.testing.assert_array_equal(table.y, [2000.0, -3.5, 7.0])


def test_groups_of_other_than_three_digits_are_refused_wherever_they_are():
    late = b"a,y\n" + b'"1,234",u\n' * 200_000 + b'"1,23",v\n'
    with pytest.raises(BadFile, match=r":200002:1: '1,23' in column 'a'"):
        read_table(io.BytesIO(late), "y", thousands=",")
    with pytest.raises(BadInput, match="neither a digit, a sign, nor the decimal separator"):
        read_table(io.BytesIO(late), "y", thousands=".")


def test_a_point_is_no_decimal_separator_beside_a_decimal_comma():
    text = b"a;y\n1.234,5;u\n7970.27;v\n"
    with pytest.raises(BadFile, match=r":3:1: '7970.27' in column 'a'"):
        read_table(io.BytesIO(text), "y", thousands=".", decimal=",")


def test_a_decimal_comma_holds_for_the_target_too():
    table = read_table(io.BytesIO(b"a;y\n1,5;3,5\n2;-4,25e3\n1;,5\n"), "y", decimal=",")
    np.testing.assert_array_equal(table.y, [3.5, -4250.0, 0.5])
    labels = read_table(io.BytesIO(b"a;y\n1,5;no, thanks\n2;yes\n"), "y", decimal=",").y
    assert labels.tolist() == ["no, thanks", "yes"]


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="reads /proc")
def test_columns_of_text_in_a_file_leave_memory_when_they_have_been_read(tuned):
    """The levels of a text are as long as the file: their pages are released batch by batch, like the codes."""
    tuned(batches_kept=0)
    lines = (f"{i},{i:0400d}" for i in range(60_000))
    found = table(b"n,note\n" + "\n".join(lines).encode())

    def pages():
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("RssFile"))

    before = pages()
    codes, seen = found.values("note"), []
    seen.append(pages())
    found.values("n")
    seen.append(pages())
    assert len(np.unique(codes)) == 60_000
    assert max(seen) - before < 4000  # KiB, of 24,000 in the file
