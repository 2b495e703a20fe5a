"""LIBSVM text: every file is read right, or refused with its line, its column and a way out."""

import bz2
import gzip
import io
import lzma
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.svm import LinearSVC

from linsep import LogisticRegression, read_libsvm
from linsep import _kernels as K  # noqa: N812
from linsep.errors import BadFile, BadInput

GOOD = b"+1 1:0.5 3:2\n-1 2:1\n+1 1:-3 2:.25\n"
DENSE = [[0.5, 0, 2], [0, 1, 0], [-3, 0.25, 0]]


def rows(text: bytes, **options):
    return read_libsvm(io.BytesIO(text), **options)


# A fourth line is added to three good ones: line, column and words of the refusal.
REFUSED = {
    "label is text": (b"yes 1:1\n", 4, 1, "'yes' is not a number"),
    "label is nan": (b"nan 1:1\n", 4, 1, "NaN, infinite"),
    "label is inf": (b"-inf 1:1\n", 4, 1, "NaN, infinite"),
    "label too large": (b"1e400 1:1\n", 4, 1, "too large"),
    "no label": (b"1:1 2:2\n", 4, 1, "no label"),
    "several labels": (b"1,2 1:1\n", 4, 1, "several labels"),
    "label with weight": (b"1:0.5 1:1\n", 4, 1, "no label"),
    "label cut": (b"1e 1:1\n", 4, 1, "not a number"),
    "label hexadecimal": (b"0x10 1:1\n", 4, 1, "not a number"),
    "value nan": (b"1 1:1 2:nan\n", 4, 9, "NaN, infinite"),
    "value NaN capital": (b"1 1:NaN\n", 4, 5, "NaN, infinite"),
    "value inf": (b"1 1:inf\n", 4, 5, "NaN, infinite"),
    "value minus infinity": (b"1 1:-Infinity\n", 4, 5, "NaN, infinite"),
    "value 1e400": (b"1 1:1e400\n", 4, 5, "too large for float64"),
    "value with 400 digits": (b"1 1:" + b"9" * 400 + b"\n", 4, 5, "too large"),
    "value is text": (b"1 1:a\n", 4, 5, "'a' is not a number"),
    "value is missing": (b"1 1: 2:1\n", 4, 5, "not a number"),
    "row cut at the colon": (b"1 1:1 2:", 4, 9, "cut short"),
    "row cut at the index": (b"1 1:1 2", 4, 7, "no value"),
    "value with exponent cut": (b"1 1:1e\n", 4, 5, "not a number"),
    "value with exponent sign only": (b"1 1:1e-\n", 4, 5, "not a number"),
    "value is a sign": (b"1 1:-\n", 4, 5, "not a number"),
    "value is a point": (b"1 1:.\n", 4, 5, "not a number"),
    "value with two points": (b"1 1:1.2.3\n", 4, 5, "not a number"),
    "value with two colons": (b"1 1:1:1\n", 4, 5, "not a number"),
    "value with decimal comma": (b"1 1:1,5\n", 4, 5, "not a number"),
    "value hexadecimal": (b"1 1:0x1p3\n", 4, 5, "not a number"),
    "value with underscore": (b"1 1:1_0\n", 4, 5, "not a number"),
    "blank after the colon": (b"1 1: 5\n", 4, 5, "not a number"),
    "blank before the colon": (b"1 1 :5\n", 4, 3, "no value"),
    "index negative": (b"1 -1:1\n", 4, 3, "column index"),
    "index with plus": (b"1 +1:1\n", 4, 3, "column index"),
    "index fractional": (b"1 1.5:1\n", 4, 3, "column index"),
    "index empty": (b"1 :1\n", 4, 3, "column index"),
    "index is text": (b"1 x:1\n", 4, 3, "unexpected 'x:1'"),
    "index above 2^32": (b"1 4294967298:1\n", 4, 3, "max_features"),
    "index above 2^63": (b"1 9999999999999999999999:1\n", 4, 3, "max_features"),
    "index twice": (b"1 1:1 2:2 1:3\n", 4, 11, "1 occurs twice"),
    "index twice in a row": (b"1 2:2 2:2\n", 4, 7, "2 occurs twice"),
    "index twice with zeros in front": (b"1 2:2 02:2\n", 4, 7, "2 occurs twice"),
    "qid is text": (b"1 qid:a 1:1\n", 4, 3, "query number"),
    "qid negative": (b"1 qid:-1 1:1\n", 4, 3, "query number"),
    "qid in third place": (b"1 1:1 qid:3\n", 4, 7, "query number"),
    "qid in one row only": (b"1 qid:3 1:1\n", None, None, "1 of 4 rows have a qid"),
    "NUL in a row": (b"1 1:1\x00 2:2\n", 4, 5, "not a number"),
    "NUL between entries": (b"1 1:1 \x00\n", 4, 7, r"unexpected '\\x00'"),
    "lone carriage return": (b"1 1:1\r-1 2:2\n", 4, 6, "carriage return"),
    "binary garbage": (bytes(range(128, 256)), 4, 1, "not a number"),
    "non-breaking space": ("1\u00a01:1\n".encode(), 4, 1, "not a number"),
    "semicolon": (b"1;1:1\n", 4, 1, "not a number"),
    "a CSV line": (b"1,2.0,3.0\n", 4, 1, "several labels"),
    "a header": (b"label a b\n", 4, 1, "not a number"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    line, at, column, words = REFUSED[case]
    with pytest.raises(BadFile) as caught:
        rows(GOOD + line)
    error = caught.value
    assert (error.line, error.column) == (at, column), error
    assert words.replace("\\\\", "\\") in str(error)
    if at:
        assert str(error).startswith(f"<stream>:{at}:{column}: ")


# The whole file, and what it means.
ACCEPTED = {
    "plain": (GOOD, DENSE, [1, -1, 1]),
    "Windows line ends": (GOOD.replace(b"\n", b"\r\n"), DENSE, [1, -1, 1]),
    "mixed line ends": (b"1 1:1\r\n2 2:1\n3\r\n", [[1, 0], [0, 1], [0, 0]], [1, 2, 3]),
    "no line end at the end": (GOOD.rstrip(), DENSE, [1, -1, 1]),
    "blank lines": (b"\n\n1 1:1\n  \n\t\n2 2:2\n\n", [[1, 0], [0, 2]], [1, 2]),
    "comments": (
        b"# 1:1 head\n1 1:1 # 5:5\n2 2:2# 7:7\n3 #\n",
        [[1, 0], [0, 2], [0, 0]],
        [1, 2, 3],
    ),
    "tabs and trailing blanks": (b"1\t1:1  2:2 \t\n 2 \t 2:1\n", [[1, 2], [0, 1]], [1, 2]),
    "UTF-8 mark": (b"\xef\xbb\xbf1 1:1\n", [[1]], [1]),
    "index in any order": (b"1 3:3 1:1 2:2\n", [[1, 2, 3]], [1]),
    "zeros in front": (b"01 0001:1 02:002\n", [[1, 2]], [1]),
    "signs": (b"+1 1:+.5 2:-.5\n-0 1:+5. 2:-5.e-1\n", [[0.5, -0.5], [5, -0.5]], [1, 0]),
    "index 0 somewhere": (b"1 1:1\n2 0:7\n", [[0, 1], [7, 0]], [1, 2]),
    "stored zero": (b"1 1:0 2:-0.0\n", [[0, 0]], [1]),
    "denormal": (b"1 1:1e-320\n", [[1e-320]], [1]),
    "below every denormal": (b"1 1:1e-400 2:-0.0000001e-399\n", [[0, 0]], [1]),
    "fractional labels": (b"0.25 1:1\n0.75 1:2\n", [[1], [2]], [0.25, 0.75]),
    "rows without entries": (b"1\n2 1:1\n3\n", [[0], [1], [0]], [1, 2, 3]),
    "long numbers": (b"1 1:0.1000000000000000055511151231257827\n", [[0.1]], [1]),
    "huge and tiny exponents": (b"1 1:1e308 2:1e-308 3:0e999999\n", [[1e308, 1e-308, 0]], [1]),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_accepted(case):
    text, dense, labels = ACCEPTED[case]
    X, y, qid, zero_based = rows(text)
    np.testing.assert_array_equal(X.toarray(), dense)
    np.testing.assert_array_equal(y, labels)
    assert qid is None
    assert zero_based is (case == "index 0 somewhere")
    assert X.indices.dtype == X.indptr.dtype == np.int32


@pytest.mark.parametrize("text", [b"", b"\n\n", b"# nothing but words\n", b"\xef\xbb\xbf"])
def test_a_file_without_rows_is_refused(text):
    with pytest.raises(BadFile, match="holds no rows"):
        rows(text)


def test_queries():
    X, _, qid, _ = rows(b"2 qid:1 1:1\n1 qid:1\n0 qid:22 2:1 # doc:7\n")
    assert qid.tolist() == [1, 1, 22]
    assert X.toarray().tolist() == [[1, 0], [0, 0], [0, 1]]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("name", ["data.svm", "data.svm.gz"])
def test_compression_is_known_by_content(tmp_path, pack, name):
    path = tmp_path / name
    path.write_bytes(pack(GOOD))
    np.testing.assert_array_equal(read_libsvm(path).X.toarray(), DENSE)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (gzip.compress(GOOD * 1000, mtime=0)[:-20], "gzip data are damaged or cut short"),
        (gzip.compress(GOOD * 1000, mtime=0)[:60] + b"x" * 30, "gzip data are damaged"),
        (bz2.compress(GOOD)[:-5], "bzip2 data are damaged"),
        (lzma.compress(GOOD)[:-5], "xz data are damaged"),
        (b"\x28\xb5\x2f\xfd" + b"0" * 20, "unzstd"),
        (b"PK\x03\x04" + b"0" * 20, "zip archive"),
        (GOOD.decode().encode("utf-16"), "UTF-16"),
    ],
    ids=["cut gzip", "altered gzip", "bzip2", "xz", "zstd", "zip", "utf-16"],
)
def test_damaged_or_foreign_files(tmp_path, content, words):
    path = tmp_path / "data.svm"
    path.write_bytes(content)
    with pytest.raises(BadFile, match=words) as caught:
        read_libsvm(path)
    assert caught.value.path == str(path)


def test_what_the_system_refuses(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_libsvm(tmp_path / "missing.svm")
    with pytest.raises(IsADirectoryError):
        read_libsvm(tmp_path)
    with pytest.raises(BadFile, match="mode 'rb'"):
        read_libsvm(io.StringIO("1 1:1"))


def test_a_pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(GOOD,))
    writer.start()
    np.testing.assert_array_equal(read_libsvm(path).X.toarray(), DENSE)
    writer.join()


@pytest.mark.slow
def test_standard_input():
    code = "import linsep; print(linsep.read_libsvm('-').X.shape)"
    done = subprocess.run([sys.executable, "-c", code], input=GOOD, capture_output=True, check=True)
    assert done.stdout.split() == [b"(3,", b"3)"]


def test_a_file_that_is_cut_while_it_is_read(tmp_path, tuned):
    path = tmp_path / "data.svm"
    path.write_bytes(GOOD * 10)
    tuned(libsvm_chunk=40)
    with open(path, "rb", buffering=0) as stream:

        class Shrinking(io.RawIOBase):
            def readable(self):
                return True

            def readinto(self, room):
                os.truncate(path, len(GOOD) * 4)
                return stream.readinto(room)

        assert read_libsvm(io.BufferedReader(Shrinking(), 64)).X.shape == (12, 3)


def test_where_columns_begin():
    assert rows(b"1 1:1\n", zero_based=True).X.toarray().tolist() == [[0, 1]]
    with pytest.raises(BadFile, match="begin with 1") as caught:
        rows(GOOD + b"1 2:1 0:5 # 0:0\n", zero_based=False)
    assert (caught.value.line, caught.value.column) == (4, 7)


def test_the_number_of_columns():
    assert rows(GOOD, n_features=7).X.shape == (3, 7)
    with pytest.raises(BadFile, match="largest index is 3, so there are 3 columns, but 2"):
        rows(GOOD, n_features=2)
    assert rows(b"1 2147483648:1\n").X.shape == (1, 2**31)
    assert rows(b"1 2147483649:1\n", max_features=2**40).X.indices.dtype == np.int64
    with pytest.raises(BadFile, match="above the limit of 10"):
        rows(b"1 11:1\n", max_features=10)


@pytest.mark.parametrize("options", [{"zero_based": "yes"}, {"dtype": np.int64}])
def test_wrong_options(options):
    with pytest.raises(BadInput, match="must be"):
        rows(GOOD, **options)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_every_double_survives(values):
    text = " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(values))
    assert rows(f"1 {text}\n".encode()).X.toarray()[0].tolist() == values


@given(st.from_regex(r"\A[+-]?([0-9]{1,25}\.?[0-9]{0,25}|\.[0-9]{1,25})([eE][+-]?[0-9]{1,3})?\Z"))
def test_decimals_are_rounded_as_python_rounds_them(text):
    expected = float(text)
    if abs(expected) == np.inf:
        with pytest.raises(BadFile, match="too large"):
            rows(f"1 1:{text}\n".encode())
    else:
        found = rows(f"1 1:{text}\n".encode()).X.data
        assert found[0] == expected and np.signbit(found[0]) == np.signbit(expected)


def test_float32_is_rounded_once():
    # Halfway between two float32 after rounding to float64, but not before.
    text = "1.00000017881393432617187499"
    assert rows(f"1 1:{text}\n".encode(), dtype=np.float32).X.data[0] == np.float32(1.0000001)
    assert np.float32(float(text)) != np.float32(1.0000001)
    with pytest.raises(BadFile, match="too large for float32"):
        rows(b"1 1:1e39\n", dtype=np.float32)


def test_chunks_and_threads_change_nothing(tuned):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 30)) * (rng.random((500, 30)) < 0.2)
    file = io.BytesIO()
    dump_svmlight_file(X, rng.integers(0, 3, 500), file, zero_based=False)
    text = file.getvalue()
    whole = rows(text)
    peer, labels = load_svmlight_file(io.BytesIO(text), n_features=30)
    np.testing.assert_array_equal(whole.X.toarray(), peer.toarray())
    np.testing.assert_array_equal(whole.y, labels)
    tuned(libsvm_chunk=100)
    for n_threads in (1, 3):
        cut = rows(text, n_threads=n_threads)
        np.testing.assert_array_equal(cut.X.toarray(), whole.X.toarray())
        np.testing.assert_array_equal(cut.y, whole.y)
    with pytest.raises(BadFile) as caught:
        rows(text + b"1 1:x\n" + text)
    assert (caught.value.line, caught.value.column) == (501, 5)


def test_long_lines():
    many = np.arange(1, 1_000_001)
    text = b"1 " + " ".join(f"{j}:1" for j in many).encode() + b"\n-1 7:1\n"
    assert rows(text).X.shape == (2, 1_000_000)
    turned = b"1 " + " ".join(f"{j}:{j}" for j in many[::-7]).encode()
    X = rows(turned).X
    assert (np.diff(X.indices) > 0).all() and (X.data == X.indices + 1).all()
    with pytest.raises(BadFile) as caught:
        rows(b"1 1:" + b"1" * (1 << 24) + b"\n")
    assert (caught.value.line, caught.value.column) == (1, 5)


def test_estimators_take_the_rows():
    X, y, _, _ = rows(GOOD * 5)
    assert LogisticRegression().fit(X, y).certificate_.certified
    assert LinearSVC().fit(X, y).score(X, y) == 1.0


def test_the_kernel_wants_room():
    text = np.frombuffer(GOOD, np.uint8)
    lines, colons = K.libsvm_count(text)
    assert (lines, colons) == (3, 5)
    y, q, s = np.empty(4), np.empty(4, np.int64), np.empty(5, np.int64)
    i, v = np.empty(5, np.int32), np.empty(5)
    assert K.libsvm_read(text, 9, y, q, s, i, v)[3:5] == (3, 5)
    for short in (
        (y[:3], q, s, i, v),
        (y, q[:3], s, i, v),
        (y, q, s[:4], i, v),
        (y, q, s, i[:4], v),
    ):
        with pytest.raises(ValueError, match="need room"):
            K.libsvm_read(text, 9, *short)


@given(st.binary(max_size=60))
def test_any_bytes(tail):
    """Whatever comes, there are rows or a refusal."""
    try:
        X = rows(GOOD + b"1 1:1 " + tail).X
    except BadFile:
        return
    assert np.isfinite(X.data).all() and X.shape[0] >= 4
