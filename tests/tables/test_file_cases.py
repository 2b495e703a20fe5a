"""Files that the system refuses, that grow, and that have very long lines; ``tests/faults`` holds bad content."""

from __future__ import annotations

import builtins
import json
import os

import pytest

from linsep import read_libsvm
from linsep.cli import main
from linsep.cli.commands import BAD_DATA
from linsep.data.files import libsvm

FAST = ["--C", "1", "--test", "0", "--no-report", "--json"]


@pytest.fixture
def fit(tmp_path, monkeypatch, capsys):
    """Write a file, fit to it, and give back the exit code, the facts and the words."""
    monkeypatch.chdir(tmp_path)

    def run(name, content, *words):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        code = main(["fit", name, *FAST, *words])
        said = capsys.readouterr()
        return code, json.loads(said.out or "{}"), said.err

    return run


ROWS = b"".join(
    b"%+d 1:%d 2:%d 3:%d\n" % (1 if i % 3 else -1, i * 7 % 5, i * 3 % 7, i % 2) for i in range(20)
)


def test_what_the_system_refuses(fit, tmp_path, monkeypatch):
    assert fit("missing.svm", None)[0] == BAD_DATA
    os.mkdir(tmp_path / "folder.svm")
    code, facts, _ = fit("folder.svm", None)
    assert code == BAD_DATA and "is a directory" in facts["message"]
    (tmp_path / "secret.svm").write_bytes(ROWS)
    real = builtins.open

    def closed(name, *words, **more):
        if str(name).endswith("secret.svm"):
            raise PermissionError(13, "Permission denied", str(name))
        return real(name, *words, **more)

    monkeypatch.setattr(builtins, "open", closed)
    code, facts, _ = fit("secret.svm", None)
    assert code == BAD_DATA and "Permission denied" in facts["message"]


def test_a_file_that_grows_while_it_is_read(tmp_path, monkeypatch, tuned):
    """Whole lines that were there when they were read; never half a line."""
    path = tmp_path / "data.svm"
    path.write_bytes(ROWS * 20)
    tuned(libsvm_chunk=64)
    chunks = libsvm._chunks

    def growing(stream):
        for at, chunk in enumerate(chunks(stream)):
            if at == 3:
                with path.open("ab") as more:
                    more.write(ROWS)
            yield chunk

    monkeypatch.setattr(libsvm, "_chunks", growing)
    assert read_libsvm(path).X.shape[0] in (400, 420)


@pytest.mark.slow
def test_a_line_of_64_megabytes(tmp_path):
    count = (64 << 20) // 10
    path = tmp_path / "data.svm"
    path.write_bytes(b"1 " + b" ".join(b"%d:1" % j for j in range(1, count)) + b"\n-1 1:1\n")
    X = read_libsvm(path).X
    assert X.shape == (2, count - 1) and X.nnz == count
