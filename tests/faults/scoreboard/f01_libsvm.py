"""F1: LIBSVM text, through the reader of each library."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from scoreboard.harness import Case, check, close

ROWS = b"+1 1:0.5 3:2\n-1 2:1 3:-4\n"
X = np.array([[0.5, 0.0, 2.0], [0.0, 1.0, -4.0]])
Y = np.array([1.0, -1.0])


def reads(content: bytes, X: Any, y: Any, library: Any, name: str = "rows.svm") -> None:
    """The reader finds these rows."""
    with open(name, "wb") as file:
        file.write(content)
    found, labels = library.read(name)
    close(labels, y, 0, 0)
    dense = np.zeros(np.shape(X))
    check(found.shape[0] == len(X), f"{found.shape[0]} rows, not {len(X)}")
    check(found.shape[1] <= dense.shape[1], f"{found.shape[1]} columns")
    dense[:, : found.shape[1]] = found.toarray()
    close(dense, X, 0, 0)


def right(name: str, content: bytes, X: Any = X, y: Any = Y, **more: Any) -> Case:
    return Case(name, partial(reads, content, X, y), **more)


def wrong(name: str, content: bytes, *words: str, **more: Any) -> Case:
    return Case(name, partial(_reads_and_fits, content), words, **more)


def _reads_and_fits(content: bytes, library: Any) -> None:
    """A reader may leave it to the fit to refuse what it has read."""
    with open("rows.svm", "wb") as file:
        file.write(content)
    library.fit(*library.read("rows.svm"))


def bad_row(name: str, row: str, *words: str, **more: Any) -> Case:
    """Two good rows and a bad one: line 3 is named."""
    content = ROWS + row.encode("utf-8", "surrogateescape") + b"\n"
    return wrong(name, content, "rows.svm:3:", *words, **more)


def good_row(name: str, row: str, label: float, *values: float, **more: Any) -> Case:
    entries = [*values, *[0.0] * (3 - len(values))]
    return right(name, ROWS + row.encode() + b"\n", np.vstack([X, entries]), [*Y, label], **more)


GOOD_NUMBERS = (
    *(
        "1",
        "+1",
        "-1",
        "1.5",
        ".5",
        "5.",
        "+.5",
        "-.5",
        "1e3",
        "1E3",
        "1e+3",
        "1e-3",
        "00.5",
        "007",
    ),
    *(
        "0",
        "-0",
        "0.1",
        "1e-320",
        "5e-324",
        "1e-400",
        "1e308",
        "1.7976931348623157e308",
        "0.30000000000000004",
    ),
    *("123456789012345678", "9007199254740993", "1" * 300, "0." + "1" * 400),
)
BAD_NUMBERS = (
    *("nan", "NaN", "-nan", "inf", "-inf", "Infinity", "1e400", "-1e400", "1e99999", "1" * 400),
    *(
        "abc",
        "1e",
        "1e+",
        "e5",
        ".",
        "+",
        "-",
        "--1",
        "+-1",
        "1.2.3",
        "1:1",
        "0x10",
        "1_000",
        "1,5",
        "1d3",
    ),
    *(
        "\uff11",
        "\u0663",
        "\u22121",
        "1\u00a0",
        "\0",
        "1\0002",
        "'1'",
        '"1"',
        "1%",
        "$1",
        "true",
        "None",
        "NA",
        "?",
    ),
)
GOOD_LABELS = ("1", "+1", "-1", "0", "2", "1.5", "1e15", "-0", "01", "1.0", "-2.5e-3")
BAD_LABELS = (
    "nan",
    "inf",
    "-inf",
    "1e400",
    "abc",
    "1,2",
    "+",
    "0x1",
    "\uff11",
    "\0",
    "'1'",
    "label",
    "1;2",
)
BAD_INDICES = (
    *(
        "-1",
        "1.0",
        "a",
        "1e2",
        "4294967298",
        "9223372036854775808",
        "99999999999999999999999",
        "",
        "\uff11",
        "\0",
    ),
)


def numbers() -> Iterator[Case]:
    for text in GOOD_NUMBERS:
        yield good_row(f"value {text[:24]}", f"1 1:{text}", 1.0, float(text))
    for text in BAD_NUMBERS:
        yield bad_row(
            f"value {text[:24]!r} refused", f"1 1:{text}", "value" if ":" not in text else "1:1"
        )
    for text in GOOD_LABELS:
        yield good_row(f"label {text}", f"{text} 1:2", float(text), 2.0)
    for text in BAD_LABELS:
        yield bad_row(f"label {text!r} refused", f"{text} 1:2", "label")
    for text in BAD_INDICES:
        yield bad_row(f"index {text!r} refused", f"1 1:2 {text}:2", "ind" if text else "':2'")
    yield good_row("index 01", "1 01:2", 1.0, 2.0)
    yield Case(
        "index +1",
        partial(reads, ROWS + b"1 +1:2\n", np.vstack([X, [2, 0, 0]]), [*Y, 1]),
        ("rows.svm:3:",),
        either=True,
    )


def structure() -> Iterator[Case]:
    yield right("two rows", ROWS)
    yield right("tabs", ROWS.replace(b" ", b"\t"))
    yield right("blanks at the ends", ROWS.replace(b"\n", b"  \n").replace(b"+1", b"  +1"))
    yield right("Windows line ends", ROWS.replace(b"\n", b"\r\n"))
    yield right("line ends of two kinds", ROWS.replace(b"\n", b"\r\n", 1))
    yield wrong(
        "carriage returns alone", ROWS.replace(b"\n", b"\r"), "rows.svm:1:", "carriage return"
    )
    yield right("no line end at the end", ROWS.rstrip())
    yield right("blank lines", ROWS.replace(b"\n", b"\n\n  \n"))
    yield right("comments", b"# made by hand: 1:2\n" + ROWS.replace(b"\n", b" # 7:8 nan\n"))
    yield right("UTF-8 mark", b"\xef\xbb\xbf" + ROWS)
    yield wrong("UTF-8 mark within", ROWS + b"\xef\xbb\xbf1 1:1\n", "rows.svm:3:1", "label")
    yield right("queries", b"+1 qid:1 1:0.5 3:2\n-1 qid:2 2:1 3:-4\n", either=True)
    yield wrong("a query missing", b"+1 qid:1 1:0.5\n-1 2:1\n", "1 of 2 rows have a qid")
    yield bad_row("query of letters", "1 qid:a 1:2", "qid:a")
    yield bad_row("query behind entries", "1 1:2 qid:3", "qid:3")
    yield good_row("row without entries", "1", 1.0)
    yield good_row("explicit zero", "1 1:0 2:3", 1.0, 0.0, 3.0)
    yield good_row("descending indices", "1 3:1 1:2", 1.0, 2.0, 0.0, 1.0, either=True)
    yield right("indices from 0", b"+1 0:0.5 2:2\n-1 1:1 2:-4\n")
    yield bad_row("index twice", "1 1:1 1:2", "twice")
    yield bad_row("index twice, apart", "1 1:1 2:2 1:1", "twice")
    yield bad_row("cut at the colon", "1 1:2 2:", "cut short")
    yield bad_row("cut at the index", "1 1:2 2", "'2'")
    yield bad_row("blank after the colon", "1 1: 2", "without blanks")
    yield bad_row("blank before the colon", "1 1 :2", "'1'")
    yield bad_row("no label", "1:2 2:3", "no label")
    yield bad_row("words", "a line of words", "label")
    yield bad_row("CSV", "1,0.5,2.0", "label")
    yield wrong("empty", b"", "holds no rows")
    yield wrong("blank lines alone", b"\n\n \n", "holds no rows")
    yield wrong("comments alone", b"# nothing\n", "holds no rows")
    yield wrong("mark alone", b"\xef\xbb\xbf", "holds no rows")
    yield wrong("UTF-16", ROWS.decode().encode("utf-16"), "rows.svm:1:1", "UTF-16", "iconv")
    yield wrong("UTF-16 big-endian", ROWS.decode().encode("utf-16-be"), "rows.svm:1:1")
    yield wrong("UTF-32", ROWS.decode().encode("utf-32"), "rows.svm:1:1")
    yield wrong("bytes 128 to 255", ROWS + bytes(range(128, 256)), "rows.svm:3:1")
    yield wrong("zeros", bytes(1000), "rows.svm:1:1")
    yield wrong("a pickle", b"\x80\x04\x95" + bytes(30), "rows.svm:1:1")
    yield wrong("HTML", b"<!DOCTYPE html><html>404</html>\n", "rows.svm:1:1", "label")
    yield wrong("JSON", b'{"a": 1}\n', "rows.svm:1:1", "label")
    wide = np.zeros((3, 100_000))
    wide[:2, :3], wide[2] = X, 1.0
    row = b"1 " + b" ".join(b"%d:1" % j for j in range(1, 100_001))
    yield right("row of 100,000 entries", ROWS + row + b"\n", wide, [*Y, 1.0])
    yield right(
        "20,000 rows", ROWS * 10_000, np.tile(X, (10_000, 1)), np.tile(Y, 10_000), slow=True
    )
    yield wrong("the last of 20,001 rows", ROWS * 10_000 + b"1 1:x\n", "rows.svm:20001:5", "'x'")
    far = np.zeros((3, 200_000))
    far[:2, :3], far[2, -1] = X, 1.0
    yield right("index 200,000", ROWS + b"1 200000:1\n", far, [*Y, 1.0])


def containers() -> Iterator[Case]:
    packed = gzip.compress(ROWS, mtime=0)
    yield right("gzip under a plain name", packed, either=True)
    yield right("bzip2 under a plain name", bz2.compress(ROWS), either=True)
    yield right("xz under a plain name", lzma.compress(ROWS), either=True)
    yield Case("gzip by name", partial(reads, packed, X, Y, name="rows.svm.gz"), either=True)
    yield right(
        "two gzip members",
        gzip.compress(ROWS[:13], mtime=0) + gzip.compress(ROWS[13:], mtime=0),
        either=True,
    )
    for cut in (3, 11, len(packed) // 2, len(packed) - 9, len(packed) - 1):
        yield wrong(
            f"gzip cut at {cut} of {len(packed)}", packed[:cut], "gzip", "damaged or cut short"
        )
    for at in (12, 20, len(packed) - 6):
        altered = bytearray(packed)
        altered[at] ^= 255
        yield wrong(f"gzip altered at {at}", bytes(altered), "rows.svm")
    yield wrong("bzip2 cut", bz2.compress(ROWS)[:-9], "bzip2", "damaged or cut short")
    yield wrong(
        "bzip2 altered",
        bz2.compress(ROWS)[:-12] + b"xx" + bz2.compress(ROWS)[-10:],
        "damaged or cut short",
    )
    yield wrong("xz cut", lzma.compress(ROWS)[:-9], "xz", "damaged or cut short")
    yield wrong("Zstandard", b"\x28\xb5\x2f\xfd" + bytes(9), "unzstd")
    yield Case("zip", _zipped, ("zip archive", "unpack"))


def _zipped(library: Any) -> None:
    with zipfile.ZipFile("rows.svm", "w") as archive:
        archive.writestr("a", ROWS)
    library.read("rows.svm")


def _missing(library: Any) -> None:
    library.read("nowhere.svm")


def _folder(library: Any) -> None:
    os.mkdir("rows.svm")
    library.read("rows.svm")


def _fifo(library: Any) -> None:
    os.mkfifo("rows.svm")
    with open("whole", "wb") as file:
        file.write(ROWS)
    writer = threading.Thread(target=lambda: open("rows.svm", "wb").write(ROWS), daemon=True)
    writer.start()
    found, labels = library.read("rows.svm")
    close(labels, Y)
    close(found.toarray(), X)


def cases() -> Iterator[Case]:
    yield from numbers()
    yield from structure()
    yield from containers()
    yield Case("missing file", _missing, ("nowhere.svm",))
    yield Case("folder", _folder, ("rows.svm",))
    yield Case("named pipe", _fifo, either=True, apart=True, limit=10)
