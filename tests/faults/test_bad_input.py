"""Bad input that once crashed, gave a wrong answer without a word, or ended in a message about something else."""

import bz2
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from linsep import (
    Encoder,
    LinearClassifier,
    LinearSVCCV,
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    SGDClassifier,
    load,
    read_libsvm,
    read_table,
    save,
    scan,
    tune,
)
from linsep.cli import main
from linsep.errors import BadFile, BadInput, BadModelFile, LinsepError
from linsep.model_files.codec import Reader

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
y = (X[:, 0] + RNG.normal(size=60) > 0).astype(int)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "rows.csv"
    lines = "".join(f"{a},{b},{c},{label}\n" for (a, b, c), label in zip(X, y, strict=True))
    path.write_text("a,b,ab,y\n" + lines)
    return path


@pytest.fixture
def damaged(tmp_path):
    packed = bz2.compress(b"1 1:2\n" * 1000)
    path = tmp_path / "rows.svm.bz2"
    path.write_bytes(packed[:-12] + b"xx" + packed[-10:])
    return path


def gives_nan(model, X, y):
    return float("nan")


def fails(model, X, y):
    return 1 / 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: LogisticRegression(C=10**400).fit(X, y), "C is too large"),
        (lambda: LogisticRegression().fit(X, [1, "a"] * 30), "int, str"),
        (lambda: LogisticRegression().fit(X, np.array([10**400, 1] * 30)), "beyond 64 bits"),
        (lambda: LogisticRegression().fit(np.array([[10**400], [1]] * 30), y), "beyond float64"),
        (lambda: tune(LogisticRegression(), X, y, ["1", "2"]), "list of numbers"),
        (lambda: tune(LogisticRegression(), X, y, [1, 2], scoring=gives_nan), "gave nan"),
        (
            lambda: tune(LogisticRegression(), X, y, [1, 2], scoring=fails),
            "scoring=fails failed on a fold .ZeroDivisionError",
        ),
        (
            lambda: tune(
                LogisticRegression(),
                X,
                np.repeat([0, 1], 30),
                [1, 2],
                scoring="auc",
                cv=[(np.arange(20, 60), np.arange(20))],
            ),
            "both classes",
        ),
        (lambda: SGDClassifier(schedule=lambda k: 1 / 0).fit(X, y), "fails at step k = 0"),
        (lambda: tune(LogisticRegression, X, y, [1]), r"the class LogisticRegression; give Logis"),
        (lambda: LogisticRegression().fit(X, np.eye(2)[y]), r"argmax\(axis=1\)"),
        (lambda: LogisticRegression().fit([[1, 2], [3]], [0, 1]), r"inhomogeneous part; give"),
        (lambda: Encoder(types=[1]).fit(pa.table({"a": X[:, 0]})), "types must be a dict"),
    ],
    ids=lambda one: one if isinstance(one, str) else "call",
)
def test_arguments_are_refused_by_name(call, words):
    with pytest.raises(BadInput, match=words):
        call()


@pytest.mark.parametrize("kind", [LinearClassifier, SGDClassifier])
def test_a_loss_without_probabilities_says_what_has_them(kind):
    model = kind(loss="hinge").fit(X, y)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError) as caught:
        model.predict_proba(X)
    assert "use loss='logistic'" in str(caught.value.__cause__)


@pytest.mark.parametrize("count", [-3, 0, 10**9, 10**30, 2.0, "2"])
def test_number_of_threads_must_be_whole(count):
    with pytest.raises(BadInput, match=r"n_threads must be a whole number >= 1"):
        LogisticRegression(n_threads=count).fit(X, y)


@pytest.mark.parametrize("count", [1e30, 4.0, 0, -1, 2**70])
def test_number_of_features_must_be_whole(count, tmp_path):
    (tmp_path / "rows.svm").write_text("1 1:2\n-1 2:1\n")
    with pytest.raises(BadInput, match="n_features must be a whole number"):
        read_libsvm(tmp_path / "rows.svm", n_features=count)


def test_columns_are_named_once_and_in_a_list(table):
    with pytest.raises(BadInput, match="also in ignore"):
        read_table(table, "y", ignore=["y"])
    with pytest.raises(BadInput, match=r"ignore=\['ab'\]"):
        read_table(table, "y", ignore="ab")
    with pytest.raises(BadInput, match="types must be a dict"):
        read_table(table, "y", types=["number"])


@pytest.mark.parametrize(
    "use",
    [
        read_libsvm,
        lambda path: read_table(path, "y"),
        lambda path: scan(path, target="y"),
        load,
        lambda path: save(LogisticRegression().fit(X, y), path),
    ],
)
def test_a_path_with_nul_is_refused(use):
    with pytest.raises(BadInput, match="x00"):
        use("a\0b")


def test_damaged_bzip2_says_so(damaged):
    with pytest.raises(BadFile, match="damaged or cut short"):
        read_libsvm(damaged)


@pytest.mark.parametrize(("values", "kind"), [([[1]] * 60, "list"), ([b"\xff"] * 60, "binary")])
def test_a_target_without_one_value_per_row(values, kind, tmp_path):
    pq.write_table(pa.table({"a": X[:, 0], "y": values}), tmp_path / "rows.parquet")
    with pytest.raises(BadFile, match=f"the target 'y' holds {kind}"):
        read_table(tmp_path / "rows.parquet", "y")


def test_altered_arrow_files_never_crash(tmp_path):
    rng = np.random.default_rng(1)
    rows = pa.table({"a": X[:, 0], "s": ["x", "yy", "zzz"] * 20, "y": ["p", "q"] * 30})
    path = tmp_path / "rows.arrow"
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows)
    whole, refused = path.read_bytes(), 0
    for _ in range(300):  # a crash would end the process
        altered = bytearray(whole)
        altered[rng.integers(len(whole))] = rng.integers(256)
        path.write_bytes(altered)
        try:
            read_table(path, "y")
        except LinsepError:
            refused += 1
    assert refused > 100


def test_a_file_that_shrinks_is_an_error(tmp_path):
    rows = pa.table({"a": np.zeros(100_000), "y": np.arange(100_000) % 2})
    path = tmp_path / "rows.arrow"
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=1000)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(BadFile):
        read_table(path, "y")


def test_a_full_disk_is_reported(tmp_path, capsys):
    model = LogisticRegression().fit(X, y)
    with pytest.raises(OSError, match="No space left"):
        save(model, "/dev/full")
    save(model, tmp_path / "m.linsep")
    words = ["export", str(tmp_path / "m.linsep"), "--to", "python"]
    assert main([*words, "-o", "/dev/full"]) != 0
    assert "No space left" in capsys.readouterr().err
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "linsep.cli", *words]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode != 0
    assert "No space left" in done.stderr


def test_a_cache_notices_a_source_of_the_same_size_and_time(tmp_path):
    path, cache = tmp_path / "rows.csv", tmp_path / "cache"
    path.write_text("a,y\n" + "".join(f"{v:+.3f},{v > 0:d}\n" for v in X[:, 0]))
    when = os.stat(path)
    with scan(path, target="y", cache=cache) as rows:
        first = LogisticRegression().fit(rows).coef_
    path.write_text("a,y\n" + "".join(f"{-v:+.3f},{v > 0:d}\n" for v in X[:, 0]))
    os.utime(path, ns=(when.st_atime_ns, when.st_mtime_ns))
    with scan(path, target="y", cache=cache) as rows:
        second = LogisticRegression().fit(rows).coef_
    assert first[0, 0] > 0 > second[0, 0]


@pytest.mark.parametrize("labels", [y, np.arange(60) % 3], ids=["two", "three"])
@pytest.mark.parametrize(
    "model", [Perceptron(max_updates=500), SGDClassifier(), LogisticRegressionCV(), LinearSVCCV()]
)
def test_every_estimator_can_be_saved(model, labels, tmp_path):
    model.fit(X, labels)
    save(model, tmp_path / "model.linsep")
    again = load(tmp_path / "model.linsep")
    assert np.array_equal(again.predict(X), model.predict(X))
    assert set(vars(model)) - set(vars(again)) <= {"tuning_"}
    if hasattr(model, "partial_fit"):  # it goes on where it ended
        assert np.array_equal(
            again.partial_fit(X, labels).coef_, model.partial_fit(X, labels).coef_
        )


def test_strings_of_a_model_file_cannot_fill_the_memory():
    with pytest.raises(BadModelFile, match="64 MB"):
        Reader([]).value({"strings": ["x" * 100_000, *[""] * 100_000], "dtype": "str"})
