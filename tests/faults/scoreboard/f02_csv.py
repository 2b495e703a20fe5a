"""F2: CSV as people have it, through ``read_table`` and ``linsep fit``."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from linsep import read_table
from scoreboard.harness import Case, check, close, same

LABELS = ["n", "n", "n", "y", "y", "y"] * 2
NAN = float("nan")


def column(head: str, cells: Any, n: int = 12, separator: str = ",", end: str = "\n") -> bytes:
    """A table of n rows: a column of numbers, one of ``cells``, and the target."""
    cell = cells if callable(cells) else (lambda i: cells[i % len(cells)])
    rows = [[i * i % 7, cell(i), LABELS[i % 12]] for i in range(n)]
    return (
        end.join(separator.join(map(str, row)) for row in [["a", head, "y"], *rows]) + end
    ).encode()


PLAIN = column("b", lambda i: i % 5)


def table(content: bytes, name: str = "rows.csv", **how: Any) -> Any:
    with open(name, "wb") as file:
        file.write(content)
    return read_table(name, "y", **how)


def holds(
    content: bytes, kind: str, values: Any, library: Any, name: str = "b", **how: Any
) -> None:
    """Column b is of that kind and has these values; the target is as it was."""
    found = table(content, **how)
    same(found.kinds[name], kind)
    got = found.values(name)
    if kind in ("number", "boolean"):
        check(
            np.allclose(got, np.resize(np.asarray(values, float), len(got)), 0, 0, equal_nan=True),
            got,
        )
    elif kind == "string":
        levels = [None, *found.levels[name]]
        same([levels[code + 1] for code in got], [values[i % len(values)] for i in range(len(got))])
    else:
        same(
            got.astype(str).tolist(),
            [str(np.datetime64(values[i % len(values)], "us")) for i in range(len(got))],
        )


def cells(name: str, given: list[str], kind: str, values: Any, **how: Any) -> Case:
    return Case(f"cells {name}", partial(holds, column("b", given), kind, values, **how))


def rejected(name: str, given: Any, *words: str, **how: Any) -> Case:
    content = given if isinstance(given, bytes) else column("b", given)
    return Case(name, lambda library: table(content, **how), words)


def numbers() -> Iterator[Case]:
    for given in (
        ["1", "2"],
        ["1.5", "-2"],
        ["+1", ".5"],
        ["1.", "-.5"],
        ["1e3", "1E-3"],
        ["0", "-0"],
        [" 1", "2 "],
        ["1e-320", "1e308"],
        ["0.1", "0.30000000000000004"],
        ["900719925474099", "1"],
        ["\t1", "2\t"],
        ['"1"', '" 2 "'],
    ):
        plain = [float(cell.strip('" \t')) for cell in given]
        yield cells(f"{given[0]!r} {given[1]!r}", given, "number", plain)
    for word in (
        "",
        "NA",
        "N/A",
        "n/a",
        "NaN",
        "nan",
        "NULL",
        "null",
        "None",
        "?",
        "-",
        "#N/A",
        "  ",
        " NA ",
    ):
        yield cells(f"missing {word!r}", [word, "1", "2"], "number", [NAN, 1, 2])
        yield cells(f"missing {word!r} among words", [word, "u", "v"], "string", [None, "u", "v"])
    for name, given in {
        "007": ["007", "12"],
        "an id of 17 digits": ["12345678901234567", "12345678901234568"],
        "an id of 20 digits": ["12345678901234567890", "12345678901234567891"],
        "versions": ["1.2.3", "1.2.4"],
        "addresses": ["10.0.0.1", "10.0.0.2"],
        "hexadecimal": ["0x10", "0x1f"],
        "telephone": ["+49 30 1234", "+49 30 1235"],
        "times of day": ["12:30", "13:45"],
        "day first": ["31.12.2023", "01.02.2024"],
        "month first": ["12/31/2023", "01/02/2024"],
        "Arabic digits": ["\u0661\u0662", "\u0663"],
        "full-width digits": ["\uff11", "\uff12"],
        "superscripts": ["\u00b2", "\u00b3"],
        "fractions": ["\u00bd", "\u00bc"],
        "Roman": ["\u2160", "\u2161"],
        "yes and no": ["yes", "no"],
        "T and F": ["T", "F"],
        "accents": ["caf\u00e9", "na\u00efve"],
        "quotes inside": ['"say ""hi"""', '"b"'],
        "a comma inside": ['"a, b"', "c"],
        "a line end inside": ['"a\nb"', "c"],
        "emoji": ["\U0001f600", "\U0001f601"],
        "HTML": ["<b>", "&amp;"],
        "formulas": ["=1+1", "@SUM(A1)"],
        "nan-like names": ["Nancy", "Nantes"],
        "inf-like names": ["Infra", "Info"],
        "single letters": ["e", "E5"],
    }.items():
        plain_text = [cell[1:-1].replace('""', '"') if cell[0] == '"' else cell for cell in given]
        yield cells(name, given, "string", plain_text)
    yield cells(
        "Arabic and Latin digits are different names", ["1", "\u0661"], "string", ["1", "\u0661"]
    )
    yield cells("booleans", ["true", "false"], "boolean", [1, 0])
    yield cells("Booleans", ["True", "False"], "boolean", [1, 0])
    yield cells("BOOLEANS", ["TRUE", "FALSE"], "boolean", [1, 0])
    yield cells("booleans and gaps", ["true", "", "false"], "boolean", [1, NAN, 0])
    for given in (
        ["2024-01-02"],
        ["2024-01-02T03:04:05"],
        ["2024-01-02 03:04"],
        ["2024-01-02 03:04:05.123456"],
    ):
        yield cells(f"time {given[0]}", given, "time", [given[0].replace(" ", "T")])
    yield cells(
        "time with a zone",
        ["2024-01-02T03:04:05+01:00", "2024-01-02T03:04:05Z"],
        "time",
        ["2024-01-02T02:04:05", "2024-01-02T03:04:05"],
    )


def doubtful_numbers() -> Iterator[Case]:
    yield rejected(
        "decimal comma, semicolons",
        column("b", ["1,5", "2,25"], separator=";"),
        "rows.csv:2:3",
        "'1,5'",
        "decimal=','",
    )
    yield Case(
        "decimal comma, given",
        partial(
            holds, column("b", ["1,5", "2,25"], separator=";"), "number", [1.5, 2.25], decimal=","
        ),
    )
    yield rejected("decimal comma in quotes", ['"1,5"', '"2,25"'], "rows.csv:2:3", "decimal=','")
    yield rejected(
        "thousands with commas", ['"1,234"', '"5,678"'], "rows.csv:2:3", "'1,234'", "decimal"
    )
    yield rejected(
        "thousands with commas and decimals",
        ['"1,234.5"', '"5,678.25"'],
        "rows.csv:2:3",
        "grouped digits",
    )
    yield rejected(
        "thousands with points and decimals",
        column("b", ["1.234,5", "5.678,25"], separator=";"),
        "grouped digits",
    )
    for blank in (" ", "\u00a0", "\u202f", "'", "\u2009", "_"):
        yield rejected(
            f"thousands with {blank!r}",
            [f"1{blank}234", f"5{blank}678", f"1{blank}234{blank}567"],
            "rows.csv:2:3",
            "grouped digits",
        )
    for sign in ("$", "\u20ac", "\u00a3", "\u00a5"):
        yield rejected(
            f"currency {sign}",
            [f"{sign}5", f"{sign}7.50"],
            "rows.csv:2:3",
            "types={'b': 'category'}",
        )
    yield rejected("currency behind", ["5 \u20ac", "7 \u20ac"], "rows.csv:2:3", "sign")
    yield rejected("percent", ["5%", "7 %"], "rows.csv:2:3", "sign")
    yield rejected(
        "accountants' negatives", ["(5)", "7", "(3)", "4"], "rows.csv:4:3", "'(3)'", "minus sign"
    )
    yield rejected("a minus that is none", ["\u22125", "7"], "rows.csv:2:3", "sign")
    yield rejected("infinity", ["1", "inf"], "rows.csv:3:3", "infinite")
    yield rejected("1e400", ["1", "1e400"], "rows.csv:3:3", "too large")
    yield rejected(
        "a word among numbers",
        lambda i: "oops" if i == 11 else i,
        "rows.csv:13:3",
        "'oops'",
        "missing=[...]",
    )
    yield rejected(
        "a date among numbers",
        lambda i: "2024-01-01" if i == 11 else i,
        "rows.csv:13:3",
        "'2024-01-01'",
    )
    yield rejected(
        "invisible blank",
        [f"\u00a0{i}" for i in range(12)],
        "rows.csv:2:3",
        "types={'b': 'category'}",
    )
    yield rejected(
        "spreadsheet error", lambda i: "#DIV/0!" if i == 5 else i, "rows.csv:7:3", "#DIV/0!"
    )
    yield rejected(
        "number and text after 1 MB",
        _late("oops"),
        "rows.csv:300002:",
        "'oops'",
        "types={'b': 'category'}",
    )


def _late(cell: str) -> bytes:
    return b"a,b,y\n" + b"1,2,n\n" * 150_000 + b"1,3,y\n" * 150_000 + f"1,{cell},y\n".encode()


def layouts() -> Iterator[Case]:
    for name, separator in (("comma", ","), ("semicolon", ";"), ("tab", "\t"), ("bar", "|")):
        for end_name, end in (("", "\n"), (" with Windows line ends", "\r\n")):
            content = column("b", ["1.5", "2"], separator=separator, end=end)
            yield Case(f"{name}s{end_name}", partial(holds, content, "number", [1.5, 2]))
        quoted = column("b", [f'"u{separator}"', '"v"'], separator=separator)
        yield Case(
            f"{name} inside quotes",
            partial(holds, quoted, "string", [f"u{separator}".strip(), "v"]),
        )
    yield Case(
        "carriage returns alone",
        partial(holds, PLAIN.replace(b"\n", b"\r"), "number", [i % 5 for i in range(12)]),
    )
    yield Case(
        "its own delimiter",
        partial(
            holds, PLAIN.replace(b",", b"~"), "number", [i % 5 for i in range(12)], delimiter="~"
        ),
    )
    yield Case(
        "no line end at the end",
        partial(holds, PLAIN.rstrip(), "number", [i % 5 for i in range(12)]),
    )
    yield Case(
        "blank lines",
        partial(holds, PLAIN.replace(b"\n", b"\n\n"), "number", [i % 5 for i in range(12)]),
    )
    yield Case(
        "blank lines first", partial(holds, b"\n\n" + PLAIN, "number", [i % 5 for i in range(12)])
    )
    yield Case(
        "UTF-8 mark",
        partial(holds, b"\xef\xbb\xbf" + PLAIN, "number", [i * i % 7 for i in range(12)], name="a"),
    )
    yield Case(
        "mark and quoted name",
        partial(
            holds,
            b"\xef\xbb\xbf" + PLAIN.replace(b"a,", b'"a",', 1),
            "number",
            [i * i % 7 for i in range(12)],
            name="a",
        ),
    )
    yield Case(
        "names in quotes",
        partial(
            holds, PLAIN.replace(b"a,b,y", b'"a","b","y"'), "number", [i % 5 for i in range(12)]
        ),
    )
    yield Case(
        "names with blanks",
        partial(holds, PLAIN.replace(b"a,b,y", b"a, b ,y"), "number", [i % 5 for i in range(12)]),
    )
    yield Case(
        "empty name",
        partial(
            holds,
            column("", lambda i: i % 5),
            "number",
            [i % 5 for i in range(12)],
            name="column_2",
        ),
    )
    yield rejected(
        "two names alike", column("a", ["1"]), "rows.csv:1:3", "two columns are called 'a'"
    )
    yield rejected("names alike but for blanks", column(" a ", ["1"]), "two columns are called 'a'")
    yield rejected(
        "no header",
        PLAIN.replace(b"n", b"0").replace(b",y\n", b",1\n").split(b"\n", 1)[1],
        "rows.csv:1:1",
        "header=False",
    )
    yield rejected("row too long", PLAIN + b"1,2,y,4\n", "rows.csv:14:1", "4 cells where 3")
    yield rejected("row too short", PLAIN + b"1,2\n", "rows.csv:14:1", "2 cells where 3")
    yield rejected("cut in the last line", PLAIN[:-3], "rows.csv:13:")
    yield rejected("quote left open", PLAIN + b'1,"2,y\n', "rows.csv:14:", "quote")
    yield rejected(
        "quote left open in the middle", PLAIN + b'1,"2,y\n' + PLAIN.split(b"\n", 1)[1], "quote"
    )
    yield rejected("NUL", PLAIN + b"1,\0,y\n", "rows.csv:14", "NUL")
    yield rejected("empty", b"", "the file is empty")
    yield rejected("blanks", b"  \n \n", "the file is empty")
    yield rejected("mark alone", b"\xef\xbb\xbf", "the file is empty")
    yield rejected("header alone", b"a,y\n", "the table has no rows")
    yield rejected("target not there", PLAIN.replace(b",y\n", b",z\n", 1), "no column 'y'")
    yield rejected(
        "target spelt otherwise", PLAIN.replace(b",y\n", b",Y\n", 1), "no column 'y'", "'Y'"
    )
    yield rejected("words above the header", b"made by hand\n" + PLAIN, "rows.csv")
    yield rejected("sep= above the header", b"sep=;\n" + PLAIN.replace(b",", b";"), "rows.csv")
    yield rejected("HTML", b"<!DOCTYPE html>\n<html><body>404</body></html>\n", "rows.csv")
    yield rejected("a spreadsheet", b"PK\x03\x04" + bytes(100), "rows.csv")
    yield rejected(
        "an old spreadsheet", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100), "rows.csv"
    )
    yield Case(
        "cell of 5 MB",
        partial(holds, column("b", ["x" * 5_000_000, "v"], 2), "string", ["x" * 5_000_000, "v"]),
    )
    yield Case(
        "name of 100,000 letters",
        partial(holds, column("b" * 100_000, ["1"]), "number", [1], name="b" * 100_000),
    )
    yield Case("2,000 columns", _wide)
    yield Case("one row", partial(holds, column("b", ["1"], 1), "number", [1]))


def _wide(library: Any) -> None:
    names = ",".join(f"c{j}" for j in range(2000))
    row = ",".join(str(j) for j in range(2000))
    found = table(f"{names},y\n{row},n\n{row},y\n".encode())
    same(len(found.kinds), 2000)
    close(found.values("c1999"), [1999.0, 1999.0])


def encodings() -> Iterator[Case]:
    words = column("b", ["caf\u00e9", "v"]).decode()
    for encoding in ("latin-1", "cp1252", "utf-8-sig", "iso8859-15", "mac-roman"):
        yield Case(
            f"{encoding}, given",
            partial(holds, words.encode(encoding), "string", ["caf\u00e9", "v"], encoding=encoding),
        )
    yield rejected(
        "latin-1, not given", words.encode("latin-1"), "rows.csv:2:6", "0xe9", "encoding='latin-1'"
    )
    yield rejected(
        "latin-1 after 1 MB",
        b"b,y\n" + b"x,n\nv,y\n" * 150_000 + "caf\u00e9,y\n".encode("latin-1"),
        "rows.csv:300002:",
        "encoding",
    )
    yield rejected("UTF-16", words.encode("utf-16"), "UTF-16", "UTF-8")
    yield rejected("UTF-16 without mark", words.encode("utf-16-le"), "UTF-16", "UTF-8")
    yield rejected("UTF-32", words.encode("utf-32"), "UTF-8")
    yield rejected("unknown encoding", PLAIN, "unknown encoding", "'utf-9'", encoding="utf-9")
    yield rejected("half a letter", PLAIN + b"1,\xc3,y\n", "rows.csv:14:", "0xc3")
    for pack in (gzip.compress, bz2.compress, lzma.compress):
        name = pack.__module__
        yield Case(
            f"{name} under a plain name",
            partial(holds, pack(PLAIN), "number", [i % 5 for i in range(12)]),
        )
        yield rejected(f"{name} cut", pack(PLAIN)[:-10], "damaged or cut short")


def targets() -> Iterator[Case]:
    def labelled(no: str, yes: str) -> bytes:
        return (
            column("b", ["1", "2"])
            .replace(b",n\n", f",{no}\n".encode())
            .replace(b",y\n", f",{yes}\n".encode())
            .replace(f"a,b,{yes}\n".encode(), b"a,b,y\n", 1)
        )

    for no, yes, expected in (
        ("0", "1", (0, 1)),
        ("-1", "+1", (-1, 1)),
        ("01", "1", ("01", "1")),
        ("0.5", "1.5", (0.5, 1.5)),
        ("true", "false", ("true", "false")),
        ("no", "yes", ("no", "yes")),
        ("1", "\u0661", ("1", "\u0661")),
        ("1 ", "2", (1, 2)),
        ("a", "A", ("a", "A")),
        ("1", "1.0", (1.0, 1.0)),
        ("12345678901234567", "12345678901234568", (12345678901234567, 12345678901234568)),
        ("1" * 20, "1" * 19 + "2", ("1" * 20, "1" * 19 + "2")),
    ):
        yield Case(
            f"target {no[:20]!r} {yes[:20]!r}", partial(_target, labelled(no, yes), expected)
        )
    yield rejected(
        "target missing in a row",
        labelled("n", ""),
        "the target 'y'",
        "rows.csv:5:5",
        "unlabelled='drop'",
    )
    yield rejected("target NA in a row", labelled("n", "NA"), "the target 'y'", "rows.csv:5:5")
    for word in ("inf", "-Infinity", "1e400", "-1e309"):
        yield rejected(
            f"target {word}", labelled("1.5", word), "the target 'y'", "rows.csv:5:5", "infinite"
        )
    yield rejected("target also ignored", PLAIN, "also in ignore", ignore=["y"])
    yield rejected("ignore as a string", PLAIN, "ignore=['b']", ignore="b")
    yield rejected("ignore not there", PLAIN, "no column 'c'", ignore=["c"])
    yield rejected("type not there", PLAIN, "no column 'c'", types={"c": "number"})
    yield rejected("type unknown", PLAIN, "types['b']", "'float'", types={"b": "float"})
    yield rejected("types a list", PLAIN, "types must be a dict", types=["number"])
    yield rejected("number by force", ["u", "v"], "rows.csv:2:3", "'u'", types={"b": "number"})
    yield rejected("delimiter of two letters", PLAIN, "delimiter", "'ab'", delimiter="ab")
    yield rejected("delimiter empty", PLAIN, "delimiter", delimiter="")
    yield rejected("decimal of two letters", PLAIN, "decimal", decimal="ab")
    yield rejected("quote of two letters", PLAIN, "quote", quote="ab")
    yield rejected("missing a string", PLAIN, "missing", missing="NA")
    yield rejected("header a string", PLAIN, "header", header="no")
    yield rejected("format unknown", PLAIN, "format", "'xls'", format="xls")
    yield Case(
        "target a number",
        lambda _: read_table(io.BytesIO(PLAIN), 3),
        ("no column 3", "'a', 'b', 'y'"),
    )
    yield Case("source a number", lambda _: read_table(3, "y"), ("path",))
    yield Case("source None", lambda _: read_table(None, "y"), ("path",))
    yield Case(
        "source text stream", lambda _: read_table(io.StringIO(PLAIN.decode()), "y"), ("'rb'",)
    )
    yield Case("source bytes", lambda _: read_table(PLAIN, "y"), ("path",))
    yield Case("path with NUL", lambda _: read_table("a\0b", "y"), ("x00", "NUL"))
    yield Case("no such file", lambda _: read_table("nowhere.csv", "y"), ("nowhere.csv",))
    yield Case("empty list of files", lambda _: read_table([], "y"), ("file",))
    yield Case("empty folder", _empty_folder, ("rows", "without files"))
    yield Case("files with other columns", _other_columns, ("b.csv", "columns"))


def _target(content: bytes, expected: Any, library: Any) -> None:
    found = table(content).y
    same(found.tolist(), [expected[LABELS[i % 12] == "y"] for i in range(12)])


def _empty_folder(library: Any) -> None:
    os.mkdir("rows")
    read_table("rows", "y")


def _other_columns(library: Any) -> None:
    for name, content in (("a.csv", PLAIN), ("b.csv", PLAIN.replace(b"a,b", b"a,c"))):
        with open(name, "wb") as file:
            file.write(content)
    read_table(["a.csv", "b.csv"], "y")


def cases() -> Iterator[Case]:
    for family in (numbers, doubtful_numbers, layouts, encodings, targets):
        yield from family()
