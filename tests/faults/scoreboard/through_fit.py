"""Files as people have them, through ``linsep fit``: a certified model, or one line that says what is wrong and where.

Each case is a file, the exit code it must lead to, and words that must be said.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from linsep.cli.commands import BAD_DATA, DONE, LIMIT, USAGE
from scoreboard import command
from scoreboard.harness import Case

_FAST = 5  # one of so many cases runs with the fast tests

ROWS = b"".join(
    b"%+d 1:%d 2:%d 3:%d\n" % (1 if i % 3 else -1, i * 7 % 5, i * 3 % 7, i % 2) for i in range(20)
)

# Twenty good rows and what is added to them, or a whole file: content, exit code, what is said.
LIBSVM = {
    "good": (ROWS, DONE, ""),
    "denormal value": (ROWS + b"1 1:1e-320\n", DONE, ""),
    "descending indices": (ROWS + b"1 3:1 2:1 1:1\n", DONE, ""),
    "index 0 in the middle": (ROWS + b"1 0:1 2:3\n" + ROWS, DONE, ""),
    "queries": (b"".join(b"1 qid:%d 1:1\n-1 qid:%d 1:2\n" % (i, i) for i in range(9)), DONE, ""),
    "three classes": (ROWS + b"2 1:1\n2 2:1\n", DONE, ""),
    "class of one row": (ROWS + b"7 1:1\n", DONE, ""),
    "constant column": (b"1 1:1\n-1 1:1\n" * 9, DONE, ""),
    "labels of 1e15": (b"1e15 1:1\n-1e15 1:2\n1e15 1:3\n-1e15 1:0\n" * 3, DONE, ""),
    "labels between whole numbers": (b"0.25 1:1\n0.75 1:2\n0.5 1:0\n" * 5, DONE, ""),
    "two rows": (b"1 1:1\n-1 1:2\n", DONE, ""),
    "one label": (b"1 1:1\n1 2:2\n" * 5, BAD_DATA, "one class only, 1"),
    "one row": (b"1 1:1\n", BAD_DATA, "one class only"),
    "rows without entries": (b"1\n-1\n" * 5, BAD_DATA, "0 feature(s)"),
    "values of 1e200": (ROWS + b"1 1:1e200 2:-1e200\n", BAD_DATA, "too large to square"),
    "values of 1e308": (ROWS + b"1 1:1e308\n-1 1:-1e308\n", BAD_DATA, "too large to square"),
    "index 2^31 - 2": (ROWS + b"1 2147483646:1\n", LIMIT, "not enough memory: Unable to allocate 32.0 GiB"),
    "index 2^31 - 1": (ROWS + b"1 2147483647:1\n", BAD_DATA, "2,147,483,647 columns"),
    "index 2^32 + 2": (ROWS + b"1 4294967298:1\n", BAD_DATA, "data.svm:21:3: the index"),
    "NaN": (ROWS + b"1 1:nan\n", BAD_DATA, "data.svm:21:5: the value 'nan'"),
    "infinity": (ROWS + b"1 1:inf\n", BAD_DATA, "data.svm:21:5: the value 'inf'"),
    "label NaN": (ROWS + b"nan 1:1\n", BAD_DATA, "data.svm:21:1: the label 'nan'"),
    "1e400": (ROWS + b"1 1:1e400\n", BAD_DATA, "data.svm:21:5: the value '1e400'"),
    "duplicate index": (ROWS + b"1 1:1 1:2\n", BAD_DATA, "data.svm:21:7: the index 1 occurs twice"),
    "row cut at the colon": (ROWS + b"1 2:", BAD_DATA, "data.svm:21:5: the value"),
    "NUL": (ROWS + b"1 1:1\x00 2:2\n", BAD_DATA, "data.svm:21:5: "),
    "garbage": (ROWS + bytes(range(128, 256)), BAD_DATA, "data.svm:21:1: "),
    "empty": (b"", BAD_DATA, "data.svm: the file holds no rows"),
    "UTF-8 mark": (b"\xef\xbb\xbf" + ROWS, DONE, ""),
    "UTF-16": (ROWS.decode().encode("utf-16"), BAD_DATA, "data.svm:1:1: the text is UTF-16"),
    "gzip under a plain name": (gzip.compress(ROWS, mtime=0), DONE, ""),
    "bzip2 under a plain name": (bz2.compress(ROWS), DONE, ""),
    "xz under a plain name": (lzma.compress(ROWS), DONE, ""),
    "gzip cut short": (gzip.compress(ROWS, mtime=0)[:-9], BAD_DATA, "damaged or cut short"),
    "Zstandard": (b"\x28\xb5\x2f\xfd" + bytes(9), BAD_DATA, "unzstd"),
    "a pickle": (b"\x80\x04\x95" + bytes(30), BAD_DATA, "data.svm:1:1: "),
}  # fmt: skip


def column(head: str, cell: Any, n: int = 12) -> bytes:
    """A table of n rows: a column of numbers, one made by ``cell(i)``, and the target."""
    lines = [f"a,{head},y", *(f"{i * i % 7},{cell(i)},{'ny'[i // 3 % 2]}" for i in range(n))]
    return ("\n".join(lines) + "\n").encode()


PLAIN = column("b", lambda i: i % 5)


def labelled(no: bytes, yes: bytes) -> bytes:
    """The same with other labels."""
    head, rows = PLAIN.split(b"\n", 1)
    return head + b"\n" + rows.replace(b",n\n", b",%b\n" % no).replace(b",y\n", b",%b\n" % yes)


FRACTIONS = b"a,y\n" + b"".join(b"%d,%d.25\n" % (i % 5, i) for i in range(12))
NAMES = b"a,y\n" + b"".join(b"%d,u%d\n" % (i % 5, i) for i in range(12))
CAFE = column("b", lambda i: "xy"[i % 2]).replace(b"x", b"caf\xe9")

# Content, further words of the command, exit code, what is said.
CSV = {
    "good": (PLAIN, [], DONE, "b       number"),
    "constant number": (column("b", lambda i: 5), [], DONE, "constant: every value is 5"),
    "constant text": (column("b", lambda i: "x"), [], DONE, "constant: every value is 'x'"),
    "all missing": (column("b", lambda i: ""), [], DONE, "every value is missing"),
    "some missing": (column("b", lambda i: i % 5 or "NA"), [], DONE, "b       number"),
    "missing words": (column("b", lambda i: ["?", "-", "null", 1, 2][i % 5]), [], DONE, "number"),
    "own missing word": (column("b", lambda i: i or "none of us"), ["--missing", "none of us"], DONE, "number"),
    "identifier": (column("b", lambda i: f"user-{i}", 24), [], DONE, "an identifier"),
    "running number": (column("b", lambda i: 1000 + i, 24), [], DONE, "a row number"),
    "dates": (column("b", lambda i: f"2024-01-{i + 1:02}"), [], DONE, "b       time"),
    "dates of another order": (column("b", lambda i: f"{i % 3 + 1:02}.01.2024"), [], DONE, "category"),
    "booleans": (column("b", lambda i: ["true", "false"][i % 2]), [], DONE, "boolean"),
    "codes": (column("b", lambda i: ["01234", "99999"][i % 2]), [], DONE, "category"),
    "versions": (column("b", lambda i: f"1.2.{i % 3}"), [], DONE, "category"),
    "emoji": (column("💧", lambda i: "😀😁🙃"[i % 3]), [], DONE, "category"),
    "quoted numbers": (column("b", lambda i: f'"{i % 5}"'), [], DONE, "number"),
    "blanks around": (column(" b ", lambda i: f" {i % 5} "), [], DONE, "number"),
    "newline in a name": (column('"b\nc"', lambda i: i % 5), [], DONE, "b\\nc"),
    "name of 100,000 letters": (column("b" * 100_000, lambda i: i % 5), [], DONE, "bbb..."),
    "cell of 100,000 letters": (column("b", lambda i: "x" * 100_000), [], DONE, "every value is 'xxx"),
    "empty name": (column("", lambda i: i % 5), [], DONE, "column_2"),
    "carriage returns alone": (PLAIN.replace(b"\n", b"\r"), [], DONE, "12 rows"),
    "Windows line ends": (PLAIN.replace(b"\n", b"\r\n"), [], DONE, "12 rows"),
    "no line end at the end": (PLAIN.rstrip(), [], DONE, "12 rows"),
    "UTF-8 mark": (b"\xef\xbb\xbf" + PLAIN, [], DONE, "a       number"),
    "semicolons": (PLAIN.replace(b",", b";"), [], DONE, "12 rows"),
    "tabs": (PLAIN.replace(b",", b"\t"), [], DONE, "12 rows"),
    "a delimiter of its own": (PLAIN.replace(b",", b"~"), ["--delimiter", "~"], DONE, "12 rows"),
    "decimal comma": (column("b", lambda i: f"{i},5").replace(b",", b";", 2), [], BAD_DATA, ""),
    "quotes without meaning": (column("b", lambda i: f"{i % 3}''\""), ["--no-quotes"], DONE, "category"),
    "target first": (b"y,a\n" + b"".join(b"%c,%d\n" % (b"ny"[i // 3 % 2], i % 5) for i in range(12)), [], DONE, ""),
    "target 01 and 1": (labelled(b"01", b"1"), [], DONE, ""),
    "target of booleans": (labelled(b"true", b"false"), [], DONE, ""),
    "target of one class": (b"a,y\n1,x\n2,x\n", [], BAD_DATA, "data.csv: the target holds one class only, x"),
    "target of fractions": (labelled(b"0.25", b"1.5"), [], DONE, "b       number"),
    "target different in every row, of fractions": (FRACTIONS, [], DONE, "a       number"),
    "target of fractions, nothing left": (FRACTIONS, ["--ignore", "a"], BAD_DATA, "there is only the target"),
    "target inf": (labelled(b"1.5", b"inf"), [], BAD_DATA, "data.csv:5:5: the target 'y' is infinite"),
    "target 1e400": (labelled(b"1.5", b"1e400"), [], BAD_DATA, "data.csv:5:5: the target 'y' is infinite"),
    "no target": (PLAIN, [None], BAD_DATA, "--target NAME; its columns are 'a', 'b', 'y'"),
    "no target, times": (column("b", lambda i: f"2024-01-{i + 1:02}"), [None], BAD_DATA, "--target NAME"),
    "no target, numbers alone": (labelled(b"0.25", b"1.5"), [None], BAD_DATA, "--target NAME"),
    "target missing in a row": (labelled(b"n", b""), [], BAD_DATA, "data.csv:5:5: the target 'y'"),
    "target alone": (b"y\nn\ny\nn\ny\n", [], BAD_DATA, "there is only the target"),
    "target different in every row": (NAMES, ["--test", "0.25"], BAD_DATA, "identify the rows, or give --task regress"),
    "target not there": (PLAIN, ["--target", "z"], BAD_DATA, "data.csv has no column 'z'"),
    "nothing left": (column("b", lambda i: "x"), ["--ignore", "a"], BAD_DATA, "no column is left"),
    "currency": (column("b", lambda i: f"${i}.50"), [], BAD_DATA, "data.csv:2:3: '$0.50' in column 'b'"),
    "percent": (column("b", lambda i: f"{i} %"), [], BAD_DATA, "--type 'b=category'"),
    "a minus that is none": (column("b", lambda i: f"\u2212{i}"), [], BAD_DATA, "U+2212; write them with a hyphen"),
    "thousands with a comma": (column("b", lambda i: f'"1,{i:03}"'), [], BAD_DATA, "--decimal ','"),
    "thousands with a blank": (column("b", lambda i: f"1 {i:03} 000"), [], BAD_DATA, "grouped digits"),
    "blanks that cannot be seen": (column("b", lambda i: f"\u00a0{i}"), [], BAD_DATA, "data.csv:2:3: "),
    "infinity": (column("b", lambda i: "inf" if i == 3 else i), [], BAD_DATA, "data.csv:5:3: "),
    "a word among numbers": (column("b", lambda i: "oops" if i == 11 else i), [], BAD_DATA, "data.csv:13:3: 'oops'"),
    "two names alike": (column("a", lambda i: i), [], BAD_DATA, "data.csv:1:3: two columns are called 'a'"),
    "row too long": (PLAIN + b"1,2,y,4\n", [], BAD_DATA, "data.csv:14:1: 4 cells where 3"),
    "row too short": (PLAIN + b"1,2\n", [], BAD_DATA, "data.csv:14:1: 2 cells where 3"),
    "cut in the last line": (PLAIN[:-2], [], BAD_DATA, "data.csv:13:"),
    "no header": (labelled(b"0", b"1").split(b"\n", 1)[1], [], BAD_DATA, "--no-header"),
    "words above the header": (b"# made by hand\n" + PLAIN, [], BAD_DATA, "has no column 'y'"),
    "another program's mark": (b"sep=;\n" + PLAIN.replace(b",", b";"), [], BAD_DATA, "has no column 'y'"),
    "blanks between columns": (PLAIN.replace(b",", b" "), [], BAD_DATA, "has no column 'y'"),
    "quote left open": (PLAIN + b'1,"2,y\n', [], BAD_DATA, "data.csv:14:"),
    "NUL": (PLAIN + b"1,\0,y\n", [], BAD_DATA, "data.csv:14: a NUL byte"),
    "latin-1": (CAFE, [], BAD_DATA, "--encoding latin-1"),
    "latin-1 said": (CAFE, ["--encoding", "latin-1"], DONE, "café"),
    "empty": (b"", [], BAD_DATA, "data.csv: the file is empty"),
    "header alone": (b"a,y\n", [], BAD_DATA, "data.csv: the table has no rows"),
    "one row": (b"a,y\n1,n\n", [], BAD_DATA, "one class only"),
    "gzip": (gzip.compress(PLAIN, mtime=0), [], DONE, "12 rows"),
    "unknown format": (PLAIN, ["--format", "xls"], USAGE, "--format: there is no 'xls'"),
}  # fmt: skip

# Parquet: table, exit code, what is said.
N = 12
A = pa.array([float(i * i % 7) for i in range(N)])
Y = pa.array(["ny"[i // 3 % 2] for i in range(N)])
PARQUET = {
    "good": ({"a": A, "y": Y}, DONE, "number"),
    "nulls": ({"a": A, "b": pa.array([None, 1.5] * 6), "y": Y}, DONE, "number"),
    "all null": ({"a": A, "b": pa.nulls(N), "y": Y}, DONE, "every value is missing"),
    "NaN": ({"a": A, "b": pa.array([float("nan"), 1.0, 3.0] * 4), "y": Y}, DONE, "number"),
    "dictionary": ({"a": A, "b": pa.array(["u", "v"] * 6).dictionary_encode(), "y": Y}, DONE, "category"),
    "decimal": ({"a": A.cast(pa.int32()).cast(pa.decimal128(12, 2)), "y": Y}, DONE, "number"),
    "timestamps": ({"a": A, "b": pa.array([10**15 * i for i in range(N)], pa.timestamp("ns")), "y": Y}, DONE, "time"),
    "dates": ({"a": A, "b": pa.array(range(N), pa.date32()), "y": Y}, DONE, "time"),
    "half": ({"a": pa.array(np.arange(N, dtype=np.float16) % 5), "y": Y}, DONE, "number"),
    "int8": ({"a": pa.array(np.arange(N, dtype=np.int8) % 5), "y": Y}, DONE, "number"),
    "uint64": ({"a": pa.array(np.arange(N, dtype=np.uint64) % 5), "y": Y}, DONE, "number"),
    "large strings": ({"a": A, "b": pa.array(["u", "v"] * 6, pa.large_string()), "y": Y}, DONE, "category"),
    "booleans": ({"a": A, "b": pa.array([True, None, False] * 4), "y": Y}, DONE, "boolean"),
    "target of numbers": ({"a": A, "y": pa.array([i // 3 % 2 for i in range(N)])}, DONE, ""),
    "target of booleans": ({"a": A, "y": pa.array([i // 3 % 2 > 0 for i in range(N)])}, DONE, ""),
    "target in a dictionary": ({"a": A, "y": Y.dictionary_encode()}, DONE, ""),
    "target null": ({"a": A, "y": pa.array([None, *Y.to_pylist()[1:]])}, BAD_DATA, "missing in data row 1"),
    "lists": ({"a": pa.array([[1]] * N), "y": Y}, BAD_DATA, "--ignore 'a'"),
    "structs": ({"a": pa.array([{"x": 1}] * N), "y": Y}, BAD_DATA, "no numeric form"),
    "bytes": ({"a": pa.array([b"x"] * N), "y": Y}, BAD_DATA, "no numeric form"),
    "durations": ({"a": pa.array(range(N), pa.duration("s")), "y": Y}, BAD_DATA, "no numeric form"),
    "times of day": ({"a": pa.array(range(N), pa.time32("s")), "y": Y}, BAD_DATA, "no numeric form"),
    "whole numbers beyond 2^53": ({"a": pa.array([2**60 + i for i in range(N)]), "y": Y}, BAD_DATA, "beyond 2^53"),
    "infinity": ({"a": pa.array([1.0, float("-inf")] * 6), "y": Y}, BAD_DATA, "infinite"),
    "no rows": ({"a": A[:0], "y": Y[:0]}, BAD_DATA, "no rows"),
    "no row groups": (None, BAD_DATA, "no rows"),
    "target alone": ({"y": Y}, BAD_DATA, "there is only the target"),
    "many row groups": ("groups", DONE, "12 rows"),
    "chunks": ({"a": pa.chunked_array([A[:5], A[5:]]), "y": Y}, DONE, "12 rows"),
    "slices": ({"a": pa.array([9.0, *A.to_pylist()])[1:], "y": Y}, DONE, "12 rows"),
    "footer cut off": ("cut", BAD_DATA, "damaged, cut short or of another format"),
    "a page altered": ("page", BAD_DATA, "damaged"),
    "a length altered": ("length", BAD_DATA, "damaged"),
    "encrypted": ("PARE", BAD_DATA, "another format"),
    "text under its name": ("text", BAD_DATA, "another format"),
}  # fmt: skip


def case(number: int, name: str, act: Any, code: int, words: str, **more: Any) -> Case:
    said = None if code == DONE else (f"exit code {code}", words)
    act = partial(_fit, act, says=words if code == DONE else "")
    return Case(name, act, said, slow=number % _FAST != 0, **more)


def _fit(act: Any, library: Any, says: str) -> None:
    act(says=says)


def cases() -> Iterator[Case]:
    for at, (name, (content, code, words)) in enumerate(LIBSVM.items()):
        act = partial(command.fit, "data.svm", content)
        yield case(at, f"fit LIBSVM, {name}", act, code, words, apart=name == "index 2^31 - 2")
    for at, (name, (content, more, code, words)) in enumerate(CSV.items()):
        target = [] if "--target" in more else ["--target", "y"]
        act = partial(command.fit, "data.csv", content, *([] if more == [None] else target + more))
        yield case(at, f"fit CSV, {name}", act, code, words)
    for at, (name, (columns, code, words)) in enumerate(PARQUET.items()):
        yield case(at, f"fit Parquet, {name}", partial(_parquet, columns), code, words)


def _parquet(columns: Any, says: str) -> None:
    path = "data.parquet"
    if isinstance(columns, dict):
        pq.write_table(pa.table(columns), path)
    elif columns is None:
        pq.ParquetWriter(path, pa.schema([("a", pa.float64()), ("y", pa.string())])).close()
    else:
        good = pa.table({"a": A, "y": Y})
        pq.write_table(good, path, row_group_size=5, compression="none", write_page_checksum=True)
        with open(path, "rb") as file:
            raw = bytearray(file.read())
        damage = {
            "groups": lambda: raw,
            "cut": lambda: raw[:-15],
            "page": lambda: _turned(raw),
            "length": lambda: raw[:-8] + b"\xff\xff\xff\x7fPAR1",
            "PARE": lambda: b"PARE" + raw[4:-4] + b"PARE",
            "text": lambda: PLAIN,
        }
        with open(path, "wb") as file:
            file.write(bytes(damage[columns]()))
    command.fit(path, None, "--target", "y", says=says)


def _turned(raw: bytearray) -> bytearray:
    """The values of the first page, every bit of one byte turned."""
    at = raw.index(np.array([0.0, 1.0, 4.0]).tobytes())
    raw[at + 9] ^= 255
    return raw
