"""The encoder: what each kind of column becomes, that it is stable, and what it refuses."""

import io
import json
import math
from datetime import date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from linsep import Encoder, LogisticRegression, read_table
from linsep.errors import BadInput, BadModelFile, NonFinite
from linsep.tables import from_frame

N = 60
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "age": np.where(np.arange(N) % 7 == 0, np.nan, RNG.integers(18, 90, N)),
        "city": pd.Series(RNG.choice(["Oslo", "Bergen", "Rome"], N), dtype=object).where(
            np.arange(N) % 9 != 0, None
        ),
        "member": RNG.random(N) < 0.5,
        "when": pd.date_range("2024-01-01", periods=N, freq="36h"),
        "note": [" ".join(RNG.choice(list("abcdefgh"), 6)) for _ in range(N)],
        "size": RNG.standard_normal(N),
        "number": np.arange(N),
        "same": 1,
        "user": [f"u{i}" for i in range(N)],
    }
)
Y = np.where(FRAME["size"] > 0, "big", "small")
MAKES = {"pandas": lambda f: f, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}


def encode(column, **settings):
    """Names and values of one encoded column, next to one that stays."""
    frame = pd.DataFrame({"x": column})
    encoder = Encoder(sparse=False, **settings).fit(frame)
    return encoder.get_feature_names_out().tolist(), encoder.transform(frame).T.tolist()


def test_numbers_and_missing():
    names, values = encode([3.0, math.nan, 1.0, 2.0])
    assert names == ["x", "x=(missing)"]
    assert values == [[3, 2, 1, 2], [0, 1, 0, 0]]
    _, (z,) = encode([1.0, 2.0, 3.0, 6.0], standardise=True)
    assert np.mean(z) == pytest.approx(0) and np.std(z) == pytest.approx(1)


def test_booleans():
    assert encode([True, False, True]) == (["x"], [[1, 0, 1]])
    assert encode(pd.array([True, None, True, False], "boolean")) == (
        ["x", "x=(missing)"],
        [[1, 1, 1, 0], [0, 1, 0, 0]],
    )


def test_categories():
    names, values = encode(["b", "a", "b", None, "a", "c"])
    assert names == ["x=a", "x=b", "x=(other)", "x=(missing)"]
    assert np.argmax(values, axis=0).tolist() == [1, 0, 1, 3, 0, 2]
    names, _ = encode(["b", "a"], min_count=1)
    assert names == ["x=a", "x=b"]


def test_unknown_levels():
    known = pd.DataFrame({"x": ["a", "b"] * 3, "z": ["p", "q"] * 2 + ["r", "s"]})
    encoder = Encoder(sparse=False).fit(known)
    new = pd.DataFrame({"x": ["a", "zzz", "zzz"], "z": ["p", "new", None]})
    assert encoder.get_feature_names_out().tolist() == ["x=a", "x=b", "z=p", "z=q", "z=(other)"]
    assert encoder.transform(new).tolist() == [[1, 0, 1, 0, 0], [0, 0, 0, 0, 1], [0, 0, 0, 0, 1]]
    assert encoder.unseen(new) == {"x": {"zzz": 2}, "z": {"new": 1}}
    assert encoder.unseen(known) == {"z": {"r": 1, "s": 1}}


def test_hashing():
    wide = [f"k{i % 300}" for i in range(900)]
    frame = pd.DataFrame({"x": [*wide, None]})
    encoder = Encoder(hash_size=128).fit(frame)
    assert encoder.types_ == {"x": "hashed"}
    X = encoder.transform(frame)
    assert sp.issparse(X) and X.shape == (901, 129)
    assert (np.abs(X).sum(axis=1) == 1).all() and X[900, 128] == 1
    assert (X[:300] != X[300:600]).nnz == 0
    assert 90 < len(np.unique(X[:900].indices)) <= 128 and set(X[:900].data) == {-1.0, 1.0}


def test_texts():
    frame = pd.DataFrame({"x": [f"the quick fox number {i} the" for i in range(30)]})
    encoder = Encoder(hash_size=1024, ngrams=(1, 1)).fit(frame)
    assert encoder.types_ == {"x": "text"}
    X = encoder.transform(frame)
    np.testing.assert_allclose(sp.linalg.norm(X, axis=1), 1.0)
    row = X[[0]].toarray()[0]
    assert row.max() / row[row > 0].min() == pytest.approx(1 + math.log(2))  # "the" occurs twice
    assert encoder.transform(pd.DataFrame({"x": [None, ""]}).astype(object)).nnz == 0
    letters = Encoder(types={"x": "text"}, analyzer="char", ngrams=(2, 3), hash_size=64)
    assert letters.fit_transform(pd.DataFrame({"x": ["ab", "cd"]})).shape == (2, 64)


def test_times():
    frame = pd.DataFrame({"x": pd.to_datetime(["2024-01-01 00:00", "2024-12-31 06:30", None])})
    encoder = Encoder(sparse=False).fit(frame)
    row = dict(
        zip(encoder.get_feature_names_out(), encoder.transform(frame).T.tolist(), strict=True)
    )
    assert len(row) == 1 + 12 + 7 + 24 + 1
    assert row["x=days"][:2] == pytest.approx([0, 1])
    assert row["x=Jan"] == [1, 0, 0] and row["x=Dec"] == [0, 1, 0]
    assert row["x=Mon"] == [1, 0, 0] and row["x=Tue"] == [0, 1, 0]
    assert row["x=00h"] == [1, 0, 0] and row["x=06h"] == [0, 1, 0]
    assert row["x=(missing)"] == [0, 0, 1]
    assert encode(pd.to_datetime(["2024-01-01", "2024-01-03"]))[0] == ["x=days"]


@pytest.mark.parametrize(
    ("column", "why"),
    [
        ([5] * 30, "constant: every value is 5"),
        (["x"] * 30, "constant: every value is 'x'"),
        ([math.nan] * 30, "every value is missing"),
        ([None] * 30, "every value is missing"),
        (list(range(30)), "a row number"),
        ([f"k{i}" for i in range(30)], "an identifier: different in every row"),
        ([f"{i + 1}/3/2024" for i in range(30)], "dates are read as such if written 2024-01-31"),
        (pd.to_datetime(["2024-01-01"] * 30), "constant"),
        (pd.to_datetime([None] * 30), "every value is missing"),
    ],
)
def test_what_is_dropped_and_why(column, why):
    schema = Encoder.infer(pd.DataFrame({"x": column}))
    assert schema.encodings[0].type == "drop" and why in str(schema)


def test_identifiers_by_name():
    shuffled = np.random.default_rng(0).permutation(1000)[:50]
    assert Encoder.infer(pd.DataFrame({"user_id": shuffled})).encodings[0].type == "drop"
    assert Encoder.infer(pd.DataFrame({"price": shuffled})).encodings[0].type == "number"
    asked = Encoder.infer(pd.DataFrame({"user_id": shuffled}), types={"user_id": "number"})
    assert asked.encodings[0].type == "number"


def test_types_by_decree():
    names, values = encode([1, 2, 1, 2], types={"x": "category"})
    assert names == ["x=1", "x=2"] and values == [[1, 0, 1, 0], [0, 1, 0, 1]]
    assert encode([1.5, 2.0] * 2, types={"x": "category"})[0] == ["x=1.5", "x=2"]
    assert encode([0, 1, 1], types={"x": "boolean"})[1] == [[0, 1, 1]]
    with pytest.raises(BadInput, match="holds values of kind number, but boolean is needed"):
        encode([0, 2, 1], types={"x": "boolean"})
    with pytest.raises(BadInput, match="for instance 'a', but number is needed"):
        encode(["a", "b"], types={"x": "number"})
    with pytest.raises(BadInput, match="no column 'z'; its columns are 'x'"):
        encode([1, 2], types={"z": "number"})


@pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)
def test_any_frame(make):
    reference = Encoder(hash_size=256).fit(FRAME)
    encoder = Encoder(hash_size=256).fit(make(FRAME))
    assert encoder.to_dict() == reference.to_dict()
    assert abs(encoder.transform(make(FRAME)) - reference.transform(FRAME)).max() == 0


def test_a_file_and_a_frame_agree(tmp_path):
    path = tmp_path / "t.csv"
    FRAME.assign(y=Y).to_csv(path, index=False)
    table = read_table(path, "y")
    frame = FRAME
    reference = Encoder(hash_size=256).fit(frame)
    fitted = Encoder(hash_size=256).fit(table).to_dict()
    assert fitted.pop("reading")["target"] == "y"  # a frame was not read from a file
    assert fitted == reference.to_dict()
    assert (table.y == Y).all()
    again = read_table(path, "y", types=reference.types_)
    assert abs(reference.transform(again) - reference.transform(frame)).max() == 0


def test_batches_change_nothing(tmp_path, tuned):
    path = tmp_path / "t.csv"
    FRAME.to_csv(path, index=False)
    whole = Encoder(hash_size=256).fit(read_table(path))
    X = whole.transform(read_table(path))
    tuned(delimited_block=200, delimited_lines=1)
    table = read_table(path)
    assert len(table.batches) > 5
    cut = Encoder(hash_size=256).fit(table)
    assert cut.to_dict() == whole.to_dict()
    assert abs(cut.transform(table) - X).max() == 0
    dense = cut.set_params(sparse=False).transform(table, consume=True)
    np.testing.assert_array_equal(dense, X.toarray())
    assert len(table) == 0


def test_dense_and_sparse_agree():
    dense, sparse = (Encoder(hash_size=64, sparse=s).fit_transform(FRAME) for s in (False, True))
    assert isinstance(dense, np.ndarray) and dense.flags.c_contiguous and sp.issparse(sparse)
    np.testing.assert_array_equal(sparse.toarray(), dense)
    assert isinstance(Encoder().fit_transform(FRAME[["age", "size"]]), np.ndarray)


def test_columns_in_any_order():
    encoder = Encoder(hash_size=64).fit(FRAME)
    turned = FRAME[FRAME.columns[::-1]]
    assert abs(encoder.transform(turned) - encoder.transform(FRAME)).max() == 0
    assert encoder.transform(FRAME.drop(columns=["same", "user"])).shape[0] == N


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f.drop(columns=["age", "city"]), "missing: 'age', 'city'"),
        (lambda f: f.assign(new=1), "not there when the encoder was fitted: 'new'"),
        (
            lambda f: f.assign(age="old"),
            "column 'age' holds values of kind string, for instance 'old'",
        ),
        (lambda f: f.assign(city=1.0), "fitted to strings such as 'Bergen'"),
        (lambda f: f.assign(when="x"), "but time is needed"),
        (lambda f: f.assign(member=3), "but boolean is needed"),
        (lambda f: f.assign(size=np.inf), "infinite at row 0"),
        (lambda f: f.to_numpy(), "needs named columns"),
    ],
)
def test_rows_that_do_not_fit(change, words):
    encoder = Encoder(hash_size=64).fit(FRAME)
    with pytest.raises(BadInput) as caught:
        encoder.transform(change(FRAME.copy()))
    assert words in str(caught.value)


def test_what_fits_all_the_same():
    encoder = Encoder(hash_size=64, extra="ignore").fit(FRAME)
    X = encoder.transform(FRAME)
    assert abs(encoder.transform(FRAME.assign(new=1)) - X).max() == 0
    assert abs(encoder.transform(FRAME.assign(member=FRAME.member.astype(float))) - X).max() == 0
    assert encoder.transform(FRAME.assign(age=None, when=None)).shape == X.shape


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"sparse": "maybe"}, "sparse must be"),
        ({"extra": "drop"}, "extra must be"),
        ({"analyzer": "byte"}, "analyzer must be"),
        ({"hash_size": 0}, "hash_size"),
        ({"ngrams": (2, 1)}, "ngrams must be"),
        ({"types": {"x": "float"}}, "must be one of number"),
    ],
)
def test_wrong_settings(settings, words):
    with pytest.raises(BadInput, match=words):
        Encoder(**settings).fit(pd.DataFrame({"x": [1, 2]}))


def test_strange_frames():
    with pytest.raises(BadInput, match="objects of type int, str"):
        from_frame(pd.DataFrame({"x": [1, "a"]}))
    with pytest.raises(BadInput, match="names must be strings"):
        from_frame(pd.DataFrame({0: [1, 2]}))
    with pytest.raises(BadInput, match="beyond 2\\^53"):
        from_frame(pd.DataFrame({"x": [1, 2**60]}))
    with pytest.raises(BadInput, match="no numeric form"):
        from_frame(pl.DataFrame({"x": [[1], [2]]}))
    objects = pd.DataFrame(
        {"x": [date(2024, 1, 1), None], "t": [datetime(2024, 1, 1), None]}, dtype=object
    )
    assert set(from_frame(objects).kinds.values()) == {"time"}
    mixed = pd.DataFrame({"x": [True, None], "z": [1, pd.NA]}, dtype=object)
    assert from_frame(mixed).kinds == {"x": "boolean", "z": "number"}
    with pytest.raises(NonFinite):
        Encoder().fit(pd.DataFrame({"x": [1.0, -np.inf]}))


def test_the_dictionary_is_all_of_it():
    encoder = Encoder(hash_size=64).fit(FRAME)
    text = json.dumps(encoder.to_dict(), allow_nan=False)
    again = Encoder.from_dict(json.loads(text))
    assert again.to_dict() == encoder.to_dict()
    assert abs(again.transform(FRAME) - encoder.transform(FRAME)).max() == 0
    assert str(again.schema_) == str(encoder.schema_)


def damaged(change):
    data = json.loads(json.dumps(Encoder(hash_size=64).fit(FRAME).to_dict()))
    change(data)
    return data


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.pop("sparse"),
        lambda d: d.update(more=1),
        lambda d: d.update(sparse="maybe"),
        lambda d: d.update(extra=3),
        lambda d: d.update(columns={}),
        lambda d: d["columns"].append(7),
        lambda d: d["columns"].append({"type": "eval"}),
        lambda d: d["columns"].append(d["columns"][0]),
        lambda d: d["columns"][0].update(fill=math.inf),
        lambda d: d["columns"][0].update(fill="0"),
        lambda d: d["columns"][0].update(scale=0.0),
        lambda d: d["columns"][0].update(indicator=1),
        lambda d: d["columns"][0].pop("mean"),
        lambda d: d["columns"][0].update(name=3),
        lambda d: d["columns"][1].update(levels="abc"),
        lambda d: d["columns"][1].update(levels=[1]),
        lambda d: d["columns"][3].update(origin="yesterday"),
        lambda d: d["columns"][4].update(size=1 << 40),
        lambda d: d["columns"][4].update(size=0),
        lambda d: d["columns"][4].update(analyzer="os.system"),
        lambda d: d["columns"][4].update(longest=10**9),
    ],
)
def test_a_damaged_dictionary_is_refused(change):
    with pytest.raises(BadModelFile):
        Encoder.from_dict(damaged(change))


def test_in_a_pipeline():
    model = make_pipeline(Encoder(hash_size=256), LogisticRegression(C=10.0))
    assert model.fit(FRAME, Y).score(FRAME, Y) > 0.9
    assert model[-1].certificate_.certified
    assert cross_val_score(model, FRAME, Y, cv=3).mean() > 0.7
    assert clone(model[0]).get_params() == model[0].get_params()
    names = model[:-1].get_feature_names_out()
    assert len(names) == model[-1].n_features_in_


def test_a_matrix_needs_no_encoder():
    with pytest.raises(BadInput, match=r"pass table\.matrix to the model"):
        Encoder().fit(read_table(io.BytesIO(b"1 1:1\n2 2:1\n"), format="libsvm"))


def test_the_schema_lists_every_feature_of_a_category():
    frame = pd.DataFrame({"plan": ["basic", "plus"] * 20 + ["rare", None]})
    schema = Encoder.infer(frame)
    assert "basic, plus, (other), (missing)" in str(schema)
    assert schema.encodings[0].names == [
        "plan=basic",
        "plan=plus",
        "plan=(other)",
        "plan=(missing)",
    ]


def test_levels_with_commas_are_quoted_in_the_schema():
    table = read_table(io.BytesIO(b'city,n\n"Bonn, Stadt",1\nUlm,2\n"Bonn, Stadt",3\nUlm,5\n'))
    assert "'Bonn, Stadt', Ulm" in str(Encoder().fit(table).schema_)
