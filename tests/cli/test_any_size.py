"""Size changes the time and nothing else: one command gives one model and one report in memory, from disk and on a
cluster."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import linsep
from linsep.cli import main
from linsep.cli.fitting import Numbers

RNG = np.random.default_rng(2)


def mixed(n):
    """A table with numbers, gaps, categories, times, texts and labels."""
    words = ["red", "green", "blue", "fast", "slow", "big", "small"]
    x = RNG.normal(size=n)
    city = RNG.choice(["Oslo", "Rome", "Lima"], n)
    frame = pd.DataFrame(
        {
            "x": x,
            "gaps": np.where(RNG.random(n) < 0.1, np.nan, 100.0 * RNG.normal(size=n) + 7.0),
            "city": np.where(RNG.random(n) < 0.05, None, city),
            "member": RNG.random(n) < 0.5,
            "when": pd.date_range("2020-01-01", periods=n, freq="53h"),
        }
    )
    y = np.where(x - (city == "Rome") + RNG.logistic(size=n) > 0.0, "up", "down")
    note = [f"{' '.join(RNG.choice(words, 5))} {i}" for i in range(n)]
    return frame, note, y


def write(kind, n=700, text=False):
    """A file of that kind, and the options that read it."""
    frame, note, y = mixed(n)
    if text:
        frame["note"] = note
    frame["y"] = y
    path = Path(f"table.{kind}")
    if kind == "csv":
        frame.to_csv(path, index=False)
        return [str(path), "-t", "y"]
    if kind == "parquet":
        frame.to_parquet(path, row_group_size=n // 3)
        return [str(path), "-t", "y"]
    X, t = RNG.normal(size=(n, 9)) * (RNG.random((n, 9)) < 0.4), y == "up"
    X[:, 0] += t
    lines = (
        f"{int(label)} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row) if v)
        for row, label in zip(X.tolist(), t, strict=True)
    )
    path.write_text("\n".join(lines) + "\n")
    return [str(path)]


def fitted(words, capsys):
    """Facts, what was said, the model and the page of a fit."""
    code = main(["fit", *words, "--json", "-o", "m.linsep"])
    said = capsys.readouterr()
    assert code == 0, said.err
    facts = json.loads(said.out)
    page = b"" if facts["report"] is None else Path(facts["report"]).read_bytes()
    return facts, said.err, linsep.load("m.linsep"), page


def same(one, other):
    """Whether two fits have the same bits everywhere."""
    for name in ("certificate", "test", "C", "rows", "features", "separable", "notes"):
        assert one[0][name] == other[0][name], name
    assert one[1] == other[1]
    a, b = one[2], other[2]
    if hasattr(a, "steps"):
        assert a[0].to_dict() == b[0].to_dict()
        a, b = a[-1], b[-1]
    assert np.array_equal(a.coef_, b.coef_) and np.array_equal(a.intercept_, b.intercept_)
    assert a.data_digest_ == b.data_digest_
    assert one[3] == other[3]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


#: Numbers that make few rows go the way of many, from file to fit.
ON_DISK = {
    "stored_in_memory": 0,
    "batches_kept": 0,
    "batches_piece": 2000,
    "delimited_block": 5000,
}


@pytest.mark.parametrize("kind", ["csv", "parquet", "svm"])
def test_three_ways_one_model(kind, here, tuned, capsys, client, without_figures):
    """Memory, disk and cluster: the same text, model, certificate and page, byte for byte."""
    words = [*write(kind), "--Cs", "3", "--cv", "2"]
    words += [] if kind == "csv" else ["--no-report"]
    whole = fitted(words, capsys)
    assert "reads" not in whole[0]
    same(whole, fitted([*words, "--cluster", client.scheduler.address], capsys))
    tuned(**ON_DISK, few_always=1 << 20)
    stored = fitted([*words, "--memory-limit", "1K"], capsys)
    assert stored[0]["reads"] > 0
    same(whole, stored)


def test_too_many_rows_for_a_native_fit(here, tuned, capsys):
    """The solver that ``auto`` takes for large tables, in memory and on disk."""
    words = [*write("parquet"), "--Cs", "3", "--cv", "2", "--no-report"]
    tuned(native_entries=0, native_pilot_entries=0)
    whole = fitted(words, capsys)
    tuned(**ON_DISK)
    stored = fitted([*words, "--memory-limit", "1K"], capsys)
    assert stored[0]["reads"] > 3
    same(whole, stored)


def near(one, other):
    """Whether two models are as near to each other as their certificates say."""
    assert one[0].to_dict() == other[0].to_dict()
    error = one[-1].certificate_.coef_error + other[-1].certificate_.coef_error
    assert np.linalg.norm(one[-1].coef_ - other[-1].coef_) <= error


@pytest.mark.slow
def test_texts_from_disk(here, tuned, capsys):
    """Texts make sparse rows, which memory and disk may fit by different solvers, to the same certificate."""
    words = [*write("csv", 300, text=True), "--C", "0.1", "--no-report"]
    whole = fitted(words, capsys)
    tuned(stored_in_memory=0, batches_kept=0, batches_piece=2000, delimited_block=5000)
    stored = fitted([*words, "--memory-limit", "1K"], capsys)
    near(whole[2], stored[2])
    assert stored[0]["test"] == whole[0]["test"] and stored[0]["reads"] > 3


@pytest.mark.slow
def test_rows_stay_on_the_cluster_if_they_are_many(here, tuned, capsys, client):
    """Several files, one partition each; the answer is that of one file, within its certificate."""
    words = write("csv", 900)
    how = ["--Cs", "3", "--cv", "2", "--no-report"]
    whole = fitted([*words, *how], capsys)
    frame = pd.read_csv("table.csv")
    for k, part in enumerate(np.array_split(np.arange(900), 3)):
        frame.iloc[part].to_csv(f"part-{k}.csv", index=False)
    words[0] = "part-*.csv"
    same_files = fitted([*words, *how], capsys)
    assert np.array_equal(same_files[2][-1].coef_, whole[2][-1].coef_)
    tuned(stored_in_memory=0)
    words += ["--cluster", client.scheduler.address, "--memory-limit", "1K"]
    far = fitted([*words, *how[:-1]], capsys)
    assert b"Held-out rows" in far[3]
    assert far[0]["rounds"] > 0 and far[0]["bytes_received"] > 0
    assert far[0]["C"] == whole[0]["C"]
    assert far[0]["test"]["rows"] == whole[0]["test"]["rows"]
    near(whole[2], far[2])


def test_a_cache_is_used_again(here, tuned, capsys, monkeypatch):
    words = [
        *write("csv", 300),
        "--C",
        "1",
        "--memory-limit",
        "1K",
        "--cache",
        "rows",
        "--no-report",
    ]
    tuned(stored_in_memory=0)
    first = fitted([*words, "--resume", "state"], capsys)
    assert len(list(Path("rows").iterdir())) == 3 and not Path("state").exists()
    monkeypatch.setattr("linsep.data.cache.build", None)  # nothing is written again
    same(first, fitted(words, capsys))


def test_several_files_are_one_table(here):
    frame, _, y = mixed(60)
    frame["y"] = y
    frame.to_csv("all.csv", index=False)
    Path("parts").mkdir()
    frame.iloc[:30].to_csv("parts/a.csv", index=False)
    frame.iloc[30:].assign(gaps=None).to_csv("parts/b.csv", index=False)  # no number to infer from
    one, two = linsep.read_table("all.csv", "y"), linsep.read_table("parts", "y")
    assert two.kinds == one.kinds and len(two) == 60 and two.y.tolist() == one.y.tolist()
    assert np.isnan(two.values("gaps")[30:]).all()
    three = linsep.read_table(["parts/a.csv", "parts/b.csv"], "y")
    assert three.values("x").tolist() == one.values("x").tolist()
    frame.rename(columns={"x": "z"}).to_csv("parts/c.csv", index=False)
    with pytest.raises(linsep.errors.BadInput, match="no column 'x'"):
        linsep.read_table("parts/*.csv", "y")


def test_separability_of_wide_sparse_tables_is_not_looked_at_beyond_a_million_entries():
    """It takes hundreds of passes, and all rows in memory, where columns are many."""
    y = np.zeros(4000)
    assert Numbers(sp.csr_matrix((4000, 2000)), y, 2000).wide
    assert not Numbers(sp.csr_matrix((4000, 1000)), y, 1000).wide
    assert not Numbers(np.zeros((4000, 2000)), y, 2000).wide
    assert Numbers(np.zeros((10, 20)), y[:10], 20).wide
