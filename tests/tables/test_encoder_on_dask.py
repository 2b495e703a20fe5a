"""Mixed tables on Dask: the workers encode their partitions with the bits of the whole table in memory."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import linsep
from linsep import Encoder, LogisticRegression
from linsep.data.entrance import partitions
from linsep.errors import BadInput

dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

N = 2400


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    x, day = rng.normal(size=N), rng.integers(0, 900, N)
    frame = pd.DataFrame(
        {
            "amount": np.where(rng.random(N) < 0.1, np.nan, x),
            "city": np.array(["Oslo", "Bergen", "Bodø", None], dtype=object)[rng.integers(0, 4, N)],
            "grade": pd.Categorical(np.array(["a", "b", "c"])[rng.integers(0, 3, N)]),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(day, unit="D"),
            "member": rng.random(N) < 0.5,
        }
    )
    return frame, np.where(x + rng.logistic(size=N) > 0, "yes", "no")


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # which Dask gives to pandas
def test_partitions_are_encoded_as_the_whole_table_is(client, table, tmp_path):
    frame, y = table
    lazy = dd.from_pandas(frame.assign(y=y), npartitions=5)
    model = make_pipeline(Encoder(standardise=True), LogisticRegression())
    X = lazy.drop(columns="y")  # of partitions whose sizes nobody knows
    model.fit(X, lazy["y"])
    here = Encoder(standardise=True).fit(frame)
    assert model[0].to_dict() == here.to_dict()
    whole = here.transform(frame)
    assert (model[0].transform(X).compute() == whole).all()
    opened = partitions.open_partitions(
        model[0].transform(X), lazy["y"], None, "test", numbers=False
    )
    assert (opened[:] == whole).all()
    assert linsep.verify(model[-1], whole, y).certified
    assert linsep.verify(model[-1], model[0].transform(X), lazy["y"]).certified
    assert np.isclose(model.score(X, lazy["y"]), model[-1].score(whole, y), rtol=1e-12)
    answers = model.predict(X)
    assert (answers.compute() == model[-1].predict(whole)).all()
    lazy.assign(answer=answers).to_parquet(tmp_path / "answers")
    read = pd.read_parquet(tmp_path / "answers")
    assert (read["answer"].to_numpy() == model[-1].predict(whole)).all()
    np.testing.assert_allclose(
        model.predict_proba(X).compute(), model[-1].predict_proba(whole), rtol=1e-12
    )
    linsep.save(model[-1], tmp_path / "model.linsep")
    assert (linsep.load(tmp_path / "model.linsep").coef_ == model[-1].coef_).all()


def test_an_empty_partition_and_a_level_that_some_lack(client, table):
    frame, y = table
    rows = frame.assign(y=y).sort_values("city", kind="stable").reset_index(drop=True)
    others = ["Oslo", "Bodø"]
    lazy = dd.from_pandas(rows, npartitions=5)  # the first holds one city, which is left out
    lazy = lazy[lazy["city"].isin(others)]
    model = make_pipeline(Encoder(), LogisticRegression()).fit(lazy.drop(columns="y"), lazy["y"])
    kept = rows[rows["city"].isin(others)].drop(columns="y")
    assert model[0].to_dict() == Encoder().fit(kept).to_dict()
    assert model[-1].certificate_.certified


def _poisoned(rows, partition_info=None):
    if partition_info and partition_info["number"] == 3:
        rows = rows.assign(amount=np.inf)
    return rows


def test_what_a_partition_is_refused_for_names_it(client, table):
    frame, y = table
    lazy = dd.from_pandas(frame, npartitions=5)
    bad = lazy.map_partitions(_poisoned, meta=lazy._meta)
    with pytest.raises(BadInput, match=r"Partition 3 \(counting from 0\).*'amount'.*infinite"):
        make_pipeline(Encoder(), LogisticRegression()).fit(
            bad, dd.from_pandas(pd.Series(y), npartitions=5)
        )
    model = make_pipeline(Encoder(), LogisticRegression()).fit(
        lazy, dd.from_pandas(pd.Series(y), npartitions=5)
    )
    with pytest.raises(BadInput, match=r"'amount'.*infinite"):
        model.predict(bad).compute()


def test_only_empty_partitions(client, table):
    frame, y = table
    lazy = dd.from_pandas(frame.assign(y=y), npartitions=3)
    none = lazy[lazy["amount"] > 1e9]
    with pytest.raises(BadInput, match="no rows"):
        make_pipeline(Encoder(), LogisticRegression()).fit(none.drop(columns="y"), none["y"])
