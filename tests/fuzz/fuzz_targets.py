"""What is fuzzed, and what is acceptable of it.

A target makes inputs (``make``) and judges them (``judge``): it returns "refused" where linsep raised the right kind of
error, "accepted" where it returned what the input says, and raises whatever else happened. The corpora are in
corpus/, a line for each member with its name; members are written as Python writes bytes, without the quotes.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import math
import re
import shutil
import struct
import sys
import zlib
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from mutation import Mutator, change_json
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

import linsep
from linsep.cli import commands
from linsep.data.journal import Journal
from linsep.errors import BadFile, BadInput, BadModelFile, LinsepError
from linsep.model_files import container, from_bytes, to_bytes

HERE = Path(__file__).parent


def corpus(name: str) -> list[bytes]:
    """The members of a corpus."""
    lines = (HERE / "corpus" / f"{name}.txt").read_text("ascii").splitlines()
    texts = (line.split("\t", 1)[1] for line in lines if line and not line.startswith("#"))
    return [text.encode("ascii").decode("unicode_escape").encode("latin-1") for text in texts]


class Target:
    """Bytes that are changed without knowledge of their format."""

    words: tuple[bytes, ...] = ()

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.members = self.found()
        self.mutate = Mutator(self.members, self.words)

    def found(self) -> list[bytes]:
        """The corpus."""
        return corpus(type(self).__name__.lower())

    def make(self, rng: Random) -> bytes:
        """An input."""
        return self.mutate(rng)

    def judge(self, data: bytes) -> str:
        """ "accepted" or "refused"; raise if it is neither."""
        raise NotImplementedError


_NUMBER = rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_IS_NUMBER = re.compile(_NUMBER).fullmatch
_IS_ENTRY = re.compile(rb"(\d+):(" + _NUMBER + rb")").fullmatch
_IS_QUERY = re.compile(rb"qid:(\d+)").fullmatch
_PACKED = (
    b"\x1f\x8b",
    b"BZh",
    b"\xfd7zXZ\x00",
    b"\x28\xb5\x2f\xfd",
    b"PK\x03\x04",
    b"\xff\xfe",
    b"\xfe\xff",
)


class Libsvm(Target):
    """``read_libsvm`` raises BadFile, or returns what a plain reader in Python returns, bit for bit."""

    words = (
        b"qid:1 ",
        b" 1:1",
        b"\n+1 2:0.5",
        b"#",
        b"\r\n",
        b"1e400",
        b"nan",
        b"\xef\xbb\xbf",
        b"0:1 ",
        b" 3:-0 ",
    )

    def judge(self, data: bytes) -> str:
        try:
            found = linsep.read_libsvm(io.BytesIO(data), n_threads=1)
        except BadFile:
            assert data.startswith(_PACKED) or _libsvm_rows(data) is None, (
                "a sound text was refused"
            )
            return "refused"
        if data.startswith(_PACKED):
            return "accepted"
        rows = _libsvm_rows(data)
        assert rows is not None, "a faulty text was accepted"
        labels, queries, entries = rows
        X = found.X
        assert found.y.tobytes() == np.array(labels).tobytes()
        assert queries is None if found.qid is None else found.qid.tolist() == queries
        lowest = min((index for row in entries for index in row), default=1)
        first = 0 if lowest == 0 else 1
        assert found.zero_based == (first == 0)
        highest = max((index for row in entries for index in row), default=first - 1)
        assert X.shape == (len(labels), highest + 1 - first)
        assert np.diff(X.indptr).tolist() == [len(row) for row in entries]
        assert X.indices.tolist() == [index - first for row in entries for index in sorted(row)]
        values = [row[index] for row in entries for index in sorted(row)]
        assert X.data.tobytes() == np.array(values, float).tobytes()
        return "accepted"


def _libsvm_rows(
    text: bytes,
) -> tuple[list[float], list[int] | None, list[dict[int, float]]] | None:
    """Labels, query numbers and entries of a text; None if it is not LIBSVM's."""
    labels, queries, entries = [], [], []
    for line in text.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        bare, mark, _ = line.partition(b"#")
        if not mark:
            bare = bare.removesuffix(b"\r")
        if b"\r" in bare:
            return None
        label, *tokens = re.split(rb"[ \t]+", bare.strip(b" \t"))
        if not label and not tokens:
            continue
        if not _IS_NUMBER(label) or math.isinf(float(label)):
            return None
        query = _IS_QUERY(tokens[0]) if tokens else None
        if query:
            if int(query[1][-30:]) >= 9223372036854775800 or len(query[1].lstrip(b"0")) > 19:
                return None
            queries.append(int(query[1]))
        row = _libsvm_entries(tokens[1:] if query else tokens)
        if row is None:
            return None
        labels.append(float(label))
        entries.append(row)
    if not labels or 0 < len(queries) < len(labels):
        return None
    return labels, queries or None, entries


def _libsvm_entries(tokens: list[bytes]) -> dict[int, float] | None:
    row: dict[int, float] = {}
    for token in tokens:
        entry = _IS_ENTRY(token)
        if not entry or len(entry[1].lstrip(b"0")) > 12:
            return None
        index, value = int(entry[1]), float(entry[2])
        if index in row or index > 2**31 or math.isinf(value):
            return None
        row[index] = value
    return row


class Csv(Target):
    """``read_table`` raises a typed error, or returns the rows and numbers that Python's csv module finds."""

    words = (
        b",",
        b'"',
        b'""',
        b"\n",
        b"\r\n",
        b";",
        b"\t",
        b"NA",
        b"1,5",
        b"2024-01-01",
        b"true",
        b"\xef\xbb\xbf",
        b"\xc3\xa9",
    )

    def judge(self, data: bytes) -> str:
        try:
            table = linsep.read_table(io.BytesIO(data), format="csv", delimiter=",")
        except LinsepError:
            return "refused"
        if data.startswith(_PACKED):
            return "accepted"
        text = data.removeprefix(b"\xef\xbb\xbf").decode()
        lines = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
        names, rows = lines[0], lines[1:]
        assert len(table.kinds) == len(names) and len(table) == len(rows)
        for at, (name, kind) in enumerate(table.kinds.items()):
            assert name == (names[at].strip() or f"column_{at + 1}")
            if kind == "number":
                for cell, value in zip(
                    (row[at] for row in rows), table.values(name).tolist(), strict=True
                ):
                    assert math.isnan(value) or value == float(cell), (name, cell, value)
        return "accepted"


X, Y = load_iris(return_X_y=True)
X, Y = X[::5], Y[::5]
_ROWS = {"two": (X[10:], Y[10:]), "three": (X, Y), "numbers": (X, X[:, 0] + X[:, 1] ** 2)}


def _models() -> list[Any]:
    """Small models of several kinds."""
    return [
        linsep.LogisticRegression().fit(*_ROWS["two"]),
        linsep.LogisticRegression(0.5).fit(*_ROWS["three"]),
        linsep.LogisticRegression(multiclass="ovr").fit(*_ROWS["three"]),
        linsep.LinearSVC().fit(*_ROWS["two"]),
        linsep.LogisticRegression(l1_ratio=1.0).fit(*_ROWS["two"]),
        linsep.LinearRegressor("huber", C=3.0).fit(*_ROWS["numbers"]),
    ]


def _sealed(manifest: bytes, arrays: bytes) -> bytes:
    """A model file with the checksum of its manifest."""
    head = (
        b"LINSEP\r\n"
        + struct.pack("<Q", len(manifest))
        + hashlib.sha256(manifest).digest()
        + manifest
    )
    return head + bytes(-len(head) % 64) + arrays


def _opened(content: bytes) -> tuple[bytes, bytes]:
    length = struct.unpack_from("<Q", content, 8)[0]
    return content[48 : 48 + length], content[48 + length + -(48 + length) % 64 :]


def _forged(content: bytes, change: Any) -> bytes:
    """A model file after a change of its manifest, with the right checksum."""
    text, arrays = _opened(content)
    manifest = json.loads(text)
    change(manifest)
    return _sealed(json.dumps(manifest).encode(), arrays)


#: Changes of a manifest that were once neither refused nor right.
PAST_FORGERIES = (
    lambda manifest: manifest["fitted"].pop("_fits"),
    lambda manifest: manifest["params"].update(l1_ratio=False),
    lambda manifest: manifest["params"].update(C=True),
)


class Model(Target):
    """``load`` raises BadModelFile for a file that is damaged.

    A forged one, changed with the right checksums, is refused too, or is a model whose certificate ``verify`` refuses
    unless it is true: its two numbers enclose the minimum. One in ``verified`` of those that load is verified, and
    every forgery that once led to a failure.
    """

    verified = 64

    words = (
        b'{"array":0}',
        b'"float"',
        b"null",
        b"true",
        b"[[[[",
        b'{"record":',
        b"LINSEP\r\n",
        bytes(64),
    )

    def found(self) -> list[bytes]:
        self.sound = [to_bytes(model) for model in _models()]
        self.past = [_forged(self.sound[0], change) for change in PAST_FORGERIES]
        return self.sound + self.past

    def make(self, rng: Random) -> bytes:
        whole = rng.choice(self.members)
        kind = rng.random()
        if kind < 0.5:
            return self.mutate(rng)
        text, arrays = _opened(whole)
        if kind < 0.65:
            return _sealed(Mutator([text], self.words)(rng), arrays)
        manifest = json.loads(text)
        if kind < 0.75:
            return self._with_other_numbers(manifest, arrays, rng)
        for _ in range(rng.choice((1, 1, 2, 3))):
            manifest = change_json(manifest, rng)
        return _sealed(json.dumps(manifest).encode(), arrays)

    @staticmethod
    def _with_other_numbers(manifest: dict[str, Any], arrays: bytes, rng: Random) -> bytes:
        """One number of an array is changed, and the checksum of the array set right."""
        room, entry = bytearray(arrays), rng.choice(manifest["arrays"])
        size = math.prod(entry["shape"]) * int(entry["dtype"][-1])
        if size:
            at = entry["offset"] + rng.randrange(size)
            room[at] ^= 1 << rng.randrange(8)
        raw = room[entry["offset"] : entry["offset"] + size]
        entry["sha256"] = hashlib.sha256(raw).hexdigest()
        return _sealed(json.dumps(manifest).encode(), bytes(room))

    def judge(self, data: bytes) -> str:
        try:
            model = from_bytes(data)
        except BadModelFile:
            return "refused"
        if data in self.sound:
            return "accepted"
        # Which must hold for whatever was loaded.
        container.unpack(data, "a file that is not sealed")
        if data in self.past or zlib.crc32(data) % self.verified == 0:
            self._verify(model)
        return "loaded"

    def _verify(self, model: Any) -> None:
        """Let the certificate be refused, or be true."""
        kind = {2: "two", 3: "three"}.get(len(getattr(model, "classes_", ())), "numbers")
        try:
            with np.errstate(all="ignore"):
                found = linsep.verify(model, *_ROWS[kind])
        except (LinsepError, NotFittedError):
            return
        self._true(model, *_ROWS[kind], found)

    @staticmethod
    def _true(model: Any, rows: Any, labels: Any, found: Any) -> None:
        """Whether what was verified encloses the minimum, which a fit of our own encloses too."""
        asked = {name: value for name, value in model.get_params().items() if name in _PROBLEM}
        proven = type(model)(**asked, tol=1e-9).fit(rows, labels).certificate_
        assert found.dual <= proven.primal + proven.rounding, "a false lower bound was verified"
        assert found.primal >= proven.dual - found.rounding, (
            "an objective below the minimum was verified"
        )


_PROBLEM = (
    "loss",
    "C",
    "l1_ratio",
    "fit_intercept",
    "class_weight",
    "multiclass",
    "penalty_factor",
    "groups",
)


class Cache(Target):
    """A scan whose cache was damaged has the rows, labels and names of its files, or raises BadInput."""

    words = (b"null", b"true", b'"', b"[", b"]", b"{", b"}", b"float32", b"\x93NUMPY")

    def found(self) -> list[bytes]:
        rng = np.random.default_rng(0)
        numbers = rng.normal(size=(40, 3)).round(3)
        labels = rng.integers(0, 2, 40)
        lines = [
            ",".join([*map(str, row), str(label)])
            for row, label in zip(numbers, labels, strict=True)
        ]
        self.folder.joinpath("d.csv").write_text("\n".join(["a,b,c,y", *lines]) + "\n")
        entries = [
            " ".join(f"{j + 1}:{v}" for j, v in enumerate(row) if v > 0) for row in numbers.tolist()
        ]
        text = "\n".join(f"{label} {row}" for label, row in zip(labels, entries, strict=True))
        self.folder.joinpath("s.svm").write_text(text + "\n")
        members = []
        self.truth = {}
        for name in ("d.csv", "s.svm"):
            with self._scan(name, self.folder / f"{name}.whole") as scanned:
                self.truth[name] = self._content(scanned)
                for file in sorted(scanned.cache.iterdir()):
                    members.append(f"{name}/{file.name}".encode() + b"\0" + file.read_bytes())
        return members

    def make(self, rng: Random) -> bytes:
        name, content = rng.choice(self.members).split(b"\0", 1)
        others = [member.split(b"\0", 1)[1] for member in self.members]
        return (
            name + b"\0" + Mutator([content, content, content, rng.choice(others)], self.words)(rng)
        )

    def _scan(self, name: str, cache: Path) -> Any:
        target = {"target": "y"} if name == "d.csv" else {}
        return linsep.scan(self.folder / name, cache=cache, **target)

    @staticmethod
    def _content(scanned: Any) -> list[Any]:
        """All that a fit may use, as bytes."""
        names = scanned.feature_names
        found: list[Any] = [
            scanned.shape,
            None if names is None else names.tolist(),
            scanned.y.tolist(),
        ]
        for rows in (scanned.rows, scanned.rows.sample_copy):
            for place, block in rows.blocks():
                dense = block.toarray() if rows.sparse else block
                found += [place, dense.dtype.str, dense.shape, dense.tobytes()]
        return found

    def judge(self, data: bytes) -> str:
        place, content = data.split(b"\0", 1)
        name, file = place.decode().split("/")
        cache = self.folder / "cache"
        shutil.rmtree(cache, ignore_errors=True)
        shutil.copytree(self.folder / f"{name}.whole", cache)
        next(cache.iterdir()).joinpath(file).write_bytes(content)
        try:
            with self._scan(name, cache) as scanned:
                found = self._content(scanned)
        except BadInput:
            return "refused"
        assert found == self.truth[name], "the rows of a damaged cache were used"
        return "accepted"


class _Killed(BaseException):
    pass


class Checkpoint(Target):
    """A fit that resumes from a damaged checkpoint ends with the same bits, or raises BadInput."""

    words = (b"F", b"P", b"linsep checkpoint 3\n", bytes(8), b"\xff" * 8, b"<f8", b"|O8")

    def found(self) -> list[bytes]:
        rng = np.random.default_rng(0)
        numbers = rng.normal(size=(60, 2))
        np.save(self.folder / "X.npy", numbers)
        self.labels = numbers[:, 0] + rng.normal(size=60) > 0
        self.state = self.folder / "state"
        self.truth = self._fit()
        members = []
        for passes in (1, 3, 5):
            with contextlib.suppress(_Killed), linsep.checkpoint(self.state), _killed_after(passes):
                self._fit()
            members.append(self.state.read_bytes())
            self.state.unlink()
        assert len(set(members)) == 3
        return members

    def _fit(self) -> bytes:
        # Small files are else read to memory.
        path = self.folder / "X.npy"
        with linsep.scan(path, target=self.labels, memory_limit=0) as rows:
            model = linsep.LogisticRegression(solver="newton-cg").fit(rows)
        return (
            model.coef_.tobytes() + model.intercept_.tobytes() + repr(model.certificate_).encode()
        )

    def judge(self, data: bytes) -> str:
        self.state.write_bytes(data)
        try:
            with linsep.checkpoint(self.state):
                found = self._fit()
        except BadInput:
            return "refused"
        assert found == self.truth, "a damaged checkpoint was used"
        return "accepted"


@contextlib.contextmanager
def _killed_after(passes: int) -> Any:
    """Let the fit inside die when it has recorded so many passes."""
    record, left = Journal.record, iter(range(passes))

    def stops(self: Journal, vectors: Any) -> None:
        if next(left, None) is None:
            raise _Killed
        record(self, vectors)

    Journal.record = stops  # type: ignore[method-assign]
    try:
        yield
    finally:
        Journal.record = record  # type: ignore[method-assign]


class Config(Target):
    """``--config`` is a usage error (exit code 2), or changes options that the TOML file names, and no others."""

    words = (
        b"[fit]\n",
        b"C = 1\n",
        b"[[fit]]\n",
        b"fit = 1\n",
        b"true",
        b"'x'",
        b"[1, 2]",
        b'""',
        b"= {a = 1}",
        b"--",
    )

    def found(self) -> list[bytes]:
        if sys.version_info >= (3, 11):
            import tomllib
        else:
            import tomli as tomllib

        self.read = tomllib.loads
        self.parser, self.options = commands.parser("fit"), commands.options_of("fit")
        return super().found()

    def judge(self, data: bytes) -> str:
        path = self.folder / "fuzz.toml"
        path.write_bytes(data)
        argv = ["fit", "--config", str(path), "data.csv"]
        said = io.StringIO()
        try:
            with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
                words = commands._with_config(self.parser, argv, "fit")
                options = self.parser.parse_args(words)
        except SystemExit as stop:
            assert stop.code == commands.USAGE and said.getvalue().startswith("linsep: --config"), (
                said.getvalue()
            )
            return "refused"
        assert options.config == str(path) and options.data == "data.csv", options
        plain = self.parser.parse_args(argv)
        named = self.read(path.read_text("utf-8")).get("fit", {})
        known = {text: one.dest for one in self.options._actions for text in one.option_strings}
        asked = {known[f"--{name.replace('_', '-')}"] for name in named}
        changed = {name for name, value in vars(options).items() if value != getattr(plain, name)}
        assert changed <= asked, f"{changed - asked} were not asked for"
        return "accepted"


TARGETS = {kind.__name__.lower(): kind for kind in (Libsvm, Csv, Model, Cache, Checkpoint, Config)}
