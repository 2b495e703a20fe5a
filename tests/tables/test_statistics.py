"""Statistics of columns: the encoder is the same however rows are cut into parts, and memory is bounded."""

import math
import pickle
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tuned import tuning

from linsep import Encoder
from linsep.errors import BadInput, NonFinite
from linsep.tables.moments import Moments
from linsep.tables.value_counts import (
    DistinctSample,
    ValueCounts,
    hash_numbers,
    number_of_key,
    ordered_keys,
)

RNG = np.random.default_rng(5)
N = 400


def table(n=N):
    """Columns of every kind, with gaps."""
    when = pd.Series(pd.date_range("2023-01-01", periods=n, freq="31h"))
    return pd.DataFrame(
        {
            "x": RNG.normal(size=n) * 1e-3 + 1e6,
            "gaps": np.where(np.arange(n) % 7 == 3, np.nan, RNG.normal(size=n)),
            "age": RNG.integers(0, 90, n),
            "yes": RNG.random(n) < 0.4,
            "city": pd.Series(RNG.choice(["Oslo", "Rome", "Lima", "Bonn"], n), dtype=object).where(
                np.arange(n) % 11 != 0, None
            ),
            "note": [" ".join(RNG.choice(list("abcdefghij"), 7)) for _ in range(n)],
            "code": [f"k{i}" for i in RNG.integers(0, 150, n)],
            "when": when.where(np.arange(n) % 13 != 0),
            "user": [f"u{i}" for i in range(n)],
            "user_id": RNG.permutation(n),
            "number": np.arange(n),
            "same": 3.5,
            "empty": np.nan,
        }
    )


TABLE = table()


def in_parts(frame, cuts, **how):
    """The encoder fitted to parts of a frame, each of which has been sent to another process and back."""
    encoder = Encoder(**how)
    edges = [0, *sorted(cuts), len(frame)]
    parts = [encoder.fit_partial(frame.iloc[a:b]) for a, b in pairwise(edges)]
    return encoder.merge(pickle.loads(pickle.dumps(part)) for part in parts)


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.integers(0, N), max_size=6),
    st.booleans(),
    st.sampled_from([None, (8, 8, 60), (16, 1, 10**6)]),
)
def test_parts_make_the_encoder_of_the_whole(cuts, standardise, small):
    """Also where quantiles and levels are sketched, because the limits are small."""
    names = ("statistics_values", "statistics_levels", "statistics_text")
    limits = {} if small is None else dict(zip(names, small, strict=True), statistics_fewest=4)
    with tuning(**limits):
        whole = Encoder(standardise=standardise).fit(TABLE)
        found = in_parts(TABLE, cuts, standardise=standardise)
    assert found.to_dict() == whole.to_dict()
    assert found.gaps_ == whole.gaps_ and found.n_samples_seen_ == N


def test_sketches_take_the_same_decisions(tuned):
    exact = Encoder().fit(TABLE)
    tuned(statistics_levels=40, statistics_values=64)
    found = Encoder().fit(TABLE)
    assert found.types_ == exact.types_
    assert found.types_["note"] == "text" and found.types_["user"] == "drop"
    assert found.types_["user_id"] == "drop" and found.types_["code"] == "hashed"
    named = Encoder(types={"code": "category"}).fit(TABLE)
    assert len(named.encodings_[6].levels) > 100  # asked for, so every level is kept


def test_moments_are_exact():
    columns = [
        RNG.normal(size=9000) * 1e-6 + 1e9,
        np.exp(40 * RNG.normal(size=9000)),
        np.full(9000, 0.1),
        RNG.integers(-5, 5, 9000).astype(float),
        np.r_[1e308, 5e-324, -1e308, np.zeros(8997)],
    ]
    found = Moments(5)
    found.add(np.array(columns), 0)
    for j, column in enumerate(columns):
        values = [Fraction(value) for value in column.tolist()]
        assert Fraction(found.first[j], 2**1074) == sum(values)
        assert Fraction(found.second[j], 2**2148) == sum(v * v for v in values)
    mean, deviation = found.mean_and_deviation(0, 9000, 0, 0.0)
    assert mean == pytest.approx(1e9, abs=1e-6)
    assert deviation == pytest.approx(np.std(columns[0] - 1e9), rel=1e-9)
    assert found.mean_and_deviation(2, 9000, 0, 0.0) == (0.1, 0.0)
    assert math.isfinite(found.mean_and_deviation(4, 9000, 0, 0.0)[1])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=60))
def test_keys_keep_the_order_and_the_value(values):
    x = np.array(values) + 0.0
    keys = ordered_keys(x)
    assert (np.argsort(keys, kind="stable") == np.argsort(x, kind="stable")).all()
    assert [number_of_key(key) for key in keys.tolist()] == x.tolist()
    counts = ValueCounts(1 << 14)
    counts.add(keys)
    low, high = map(number_of_key, counts.middle())
    assert [low, high] == [np.sort(x)[(len(x) - 1) // 2], np.sort(x)[len(x) // 2]]


def test_quantiles_of_many_values():
    for x in (RNG.normal(size=60_000), RNG.lognormal(size=60_000), -RNG.random(60_000) * 1e-9):
        counts = ValueCounts(1 << 12)
        counts.add(ordered_keys(x))
        assert len(counts.keys) <= 1 << 12 and not counts.exact
        middle = number_of_key(counts.middle()[0])
        assert abs(np.mean(x < middle) - 0.5) < 2e-3


def test_samples_estimate_how_many_differ():
    sample = DistinctSample()
    for part in np.array_split(RNG.integers(0, 300_000, 500_000), 7):
        found, counts = np.unique(hash_numbers(part), return_counts=True)
        sample.add(found, counts, np.zeros(len(found), np.int64))
    assert sample.distinct == pytest.approx(300_000 * (1 - math.exp(-5 / 3)), rel=0.06)
    assert sample.repeats and len(sample.hashes) == sample.limit


def test_parts_that_differ():
    encoder = Encoder()
    numbers, strings = pd.DataFrame({"a": [1.0, 2.0]}), pd.DataFrame({"a": ["x", "y"]})
    with pytest.raises(BadInput, match="'a' holds values of kind number in some parts"):
        encoder.merge([encoder.fit_partial(numbers), encoder.fit_partial(strings)])
    with pytest.raises(BadInput, match="do not have the same columns: only some have 'b'"):
        more = pd.DataFrame({"a": [1.0], "b": [2.0]})
        encoder.merge([encoder.fit_partial(numbers), encoder.fit_partial(more)])
    with pytest.raises(BadInput, match="no rows to fit"):
        encoder.merge([])
    with pytest.raises(NonFinite, match="infinite at row 1"):
        encoder.fit_partial(pd.DataFrame({"a": [1.0, np.inf]}))


@pytest.mark.parametrize("first", [0, 1])
def test_a_part_without_values_has_any_kind(first):
    """A part of a frame in which a column is empty shows no kind: it takes that of the others."""
    for column in ([1.0, 2.0, 4.0], pd.to_datetime(["2024-01-01", "2024-02-02", "2024-03-03"])):
        full = pd.DataFrame({"a": column, "b": [0.0, 1.0, 3.0]})
        bare = pd.DataFrame({"a": pd.Series([None, None], dtype=object), "b": [7.0, 9.0]})
        parts = [full, bare] if first == 0 else [bare, full]
        encoder = Encoder()
        encoder.merge([encoder.fit_partial(part) for part in parts])
        whole = Encoder().fit(pd.concat([full, full.iloc[:2].assign(a=None, b=[7.0, 9.0])]))
        assert encoder.to_dict() == whole.to_dict() and encoder.gaps_ == whole.gaps_
