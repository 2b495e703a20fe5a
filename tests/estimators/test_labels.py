"""Labels of every kind become positions in a sorted list of classes, or a clear refusal."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from linsep.data.entrance.labels import (
    Labels,
    classes_of,
    code_strings,
    combined_weights,
    encode,
    encode_any,
    encode_as,
)
from linsep.errors import BadInput

TWO = {
    "0 and 1": np.array([0, 1, 1, 0]),
    "-1 and +1": np.array([-1, 1, 1, -1]),
    "1 and 2": np.array([1, 2, 2, 1]),
    "bool": np.array([False, True, True, False]),
    "int8 extremes": np.array([-128, 127, 127, -128], dtype=np.int8),
    "uint64 beyond int64": np.array([3, 2**63 + 5, 2**63 + 5, 3], dtype=np.uint64),
    "whole floats": np.array([-1.0, 1.0, 1.0, -1.0]),
    "float32": np.array([0, 1, 1, 0], dtype=np.float32),
    "str": np.array(["no", "yes", "yes", "no"]),
    "object str": np.array(["no", "yes", "yes", "no"], dtype=object),
    "object int": np.array([0, 1, 1, 0], dtype=object),
    "object bool": np.array([False, True, True, False], dtype=object),
    "list": [0, 1, 1, 0],
    "list of str": ["no", "yes", "yes", "no"],
    "'01' is not '1'": np.array(["01", "1", "1", "01"]),
}
MANY = {
    "small int": np.array([5, 3, 9, 3, 5]),
    "negative": np.array([-5, 0, 7, 0, -5]),
    "wide int": np.array([10**15, -(10**15), 0, 0, 10**15]),
    "int8 extremes": np.array([-128, 0, 127, 0, -128], dtype=np.int8),
    "huge uint64": np.array([1, 2**63, 2**64 - 1, 1, 2**63], dtype=np.uint64),
    "whole floats": np.array([2.0, 0.0, 1.0, 1.0, 2.0]),
    "huge floats": np.array([1e300, 0.0, -1e300, 0.0, 1e300]),
    "str": np.array(["b", "a", "c", "a", "b"]),
    "object str": np.array(["b", "a", "c", "a", "b"], dtype=object),
}


@pytest.mark.parametrize("name", TWO)
def test_two_classes(name):
    y = TWO[name]
    labels = encode(y, 4, "Model")
    np.testing.assert_array_equal(labels.classes, np.unique(y))
    np.testing.assert_array_equal(labels.signs(), [-1.0, 1.0, 1.0, -1.0])
    np.testing.assert_array_equal(labels.classes[labels.codes.astype(int)], y)
    if isinstance(y, np.ndarray) and y.dtype != object:
        assert labels.classes.dtype == y.dtype


@pytest.mark.parametrize("name", MANY)
def test_many_classes(name):
    y = MANY[name]
    labels = encode(y, 5, "Model")
    classes, codes = np.unique(y, return_inverse=True)
    np.testing.assert_array_equal(labels.classes, classes)
    np.testing.assert_array_equal(labels.codes, codes)
    assert labels.classes.dtype == y.dtype
    assert labels.codes.dtype == np.int64
    for c in range(len(classes)):
        np.testing.assert_array_equal(labels.signs(c) > 0, codes == c)


@given(hnp.arrays(np.int64, st.integers(2, 40), elements=st.integers(-6, 6)))
def test_agrees_with_sorting(y):
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) == 1:
        with pytest.raises(BadInput, match="one class only"):
            encode(y, len(y), "Model")
        return
    labels = encode(y, len(y), "Model")
    np.testing.assert_array_equal(labels.classes, classes)
    np.testing.assert_array_equal(labels.codes, codes)


@given(hnp.arrays(np.dtype("U2"), st.integers(2, 60), elements=st.text("abcdef", max_size=2)))
def test_strings_agree_with_sorting(y):
    classes, codes = np.unique(y, return_inverse=True)
    assume(len(classes) > 1)
    labels = encode(y, len(y), "Model")
    np.testing.assert_array_equal(labels.classes, classes)
    np.testing.assert_array_equal(labels.codes, codes)
    assert labels.classes.dtype == y.dtype


def test_ten_thousand_classes():
    y = np.random.default_rng(0).permutation(np.repeat(np.arange(10_000), 2))
    labels = encode(y, len(y), "Model")
    np.testing.assert_array_equal(labels.classes, np.arange(10_000))
    np.testing.assert_array_equal(labels.codes, y)


REFUSED = {
    "one class": (np.array([7, 7, 7]), ["one class only", "7", "at least 2"]),
    "one string": (np.array(["a", "a", "a"]), ["one class only", "'a'", "at least 2"]),
    "fractions": (
        np.array([1.0, 0.25, 3.5]),
        ["Unknown label type", "continuous", "0.25", "row 1"],
    ),
    "two fractions": (np.array([0.25, 0.75, 0.25]), ["continuous", "0.25", "row 0", "regressor"]),
    "NaN": (np.array([0.0, 1.0, np.nan]), ["Input y contains NaN", "row 2"]),
    "infinity": (np.array([0.0, np.inf, 1.0]), ["Input y contains infinity", "row 1"]),
    "None": (np.array(["a", None, "b"], dtype=object), ["row 1", "None", "missing"]),
    "NaN among strings": (np.array(["a", "b", np.nan], dtype=object), ["row 2", "missing"]),
    "str and int": (np.array(["a", 1, "b"], dtype=object), ["int, str", "astype(str)"]),
    "bytes": (np.array([b"a", b"b", b"a"]), ["bytes", "decode"]),
    "dates": (np.array(["2020-01-01"] * 3, dtype="datetime64[D]"), ["datetime64", "astype(str)"]),
    "complex": (np.array([1j, 2j, 1j]), ["Complex data not supported", "complex128"]),
    "lists": (np.array([[1], [2, 3], [4]], dtype=object), ["Unknown label type", "unhashable"]),
    "tuples": (np.array([(1, 2), None], dtype=object)[[0, 0, 0]], ["tuple", "astype(str)"]),
    "too short": (np.array([0, 1]), ["X has 3 rows", "y has 2"]),
    "too long": (np.array([0, 1, 0, 1]), ["X has 3 rows", "y has 4"]),
    "two columns": (np.array([[0, 1], [1, 0], [0, 1]]), ["1d array", "(3, 2)", "one model each"]),
    "nothing": (None, ["requires y to be passed", "None"]),
    "masked": (np.ma.array([0, 1, 0], mask=[0, 1, 0]), ["masked", "(1,)"]),
    "ragged": ([[1], [2, 3], [4]], ["inhomogeneous", "one entry for each row"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    y, words = REFUSED[name]
    with pytest.raises(BadInput) as error:
        encode(y, 3, "Model")
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize("classes", [np.array([0, 1]), np.array(["a", "b", "c"])])
def test_encoding_in_terms_of_a_fitted_model(classes):
    y = classes[[1, 1, 1]]
    labels = encode_as(classes, y, 3, "Model")
    np.testing.assert_array_equal(labels.codes, [1, 1, 1])
    with pytest.raises(BadInput, match="not one of the classes"):
        encode_as(classes, [9, 9, 9], 3, "Model")


def three() -> Labels:
    return encode(np.array(["a", "a", "b", "c", "c", "c"]), 6, "Model")


def test_no_weights_are_none():
    assert combined_weights(three(), None, None, "Model") is None


def test_class_weights_multiply_sample_weights():
    s = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    both = combined_weights(three(), s, {"a": 2.0, "c": 0.5}, "Model")
    np.testing.assert_array_equal(both, [2.0, 4.0, 3.0, 2.0, 2.5, 3.0])
    assert combined_weights(three(), s, None, "Model") is s


@pytest.mark.parametrize("s", [None, np.array([1.0, 0.0, 3.0, 4.0, 5.0, 6.0])])
def test_balanced_makes_the_totals_equal(s):
    labels = three()
    both = combined_weights(labels, s, "balanced", "Model")
    totals = np.bincount(labels.codes, weights=both)
    np.testing.assert_allclose(totals, (6.0 if s is None else s.sum()) / 3, rtol=1e-14)


BAD_CLASS_WEIGHTS = {
    "unknown class": ({"d": 1.0}, ["'d'", "'a', 'b', 'c'"]),
    "negative": ({"a": -1.0}, ["class_weight['a']", "from 0", "-1.0"]),
    "infinite": ({"a": np.inf}, ["class_weight['a']", "1e+100", "inf"]),
    "NaN": ({"a": np.nan}, ["class_weight['a']", "nan"]),
    "text": ({"a": "2"}, ["class_weight['a']", "'2'"]),
    "zero": ({"a": 0.0}, ["class 'a'", "zero"]),
    "unknown word": ("balance", ["'balanced'", "'balance'"]),
    "list": ([1.0, 2.0, 3.0], ["dict", "[1.0, 2.0, 3.0]"]),
}


@pytest.mark.parametrize("name", BAD_CLASS_WEIGHTS)
def test_bad_class_weight(name):
    class_weight, words = BAD_CLASS_WEIGHTS[name]
    with pytest.raises(BadInput) as error:
        combined_weights(three(), None, class_weight, "Model")
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_a_class_without_weight_is_refused(class_weight):
    s = np.array([1.0, 1.0, 0.0, 1.0, 1.0, 1.0])
    with pytest.raises(BadInput, match="class 'b' is zero") as error:
        combined_weights(three(), s, class_weight, "Model")
    assert "leave those rows out" in str(error.value)


def test_products_of_weights_that_are_too_large():
    with pytest.raises(BadInput, match="overflow"):
        combined_weights(three(), np.full(6, 1e60), {"a": 1e60}, "Model")


@pytest.mark.parametrize("k", [1, 2, 3, 300])
def test_coded_strings_are_the_labels_in_fewer_bytes(k):
    """Strings and their codes are encoded alike, also where a selection has lost classes."""
    names = np.array([f"class {c:03d}" for c in range(k)], dtype=object)
    y = names[np.random.default_rng(k).permutation(np.repeat(np.arange(k), 4))]
    coded = code_strings(y)
    assert coded.codes.itemsize == (1 if k < 257 else 2)
    assert coded.shape == y.shape and coded.dtype == y.dtype and coded[3] == y[3]
    for rows in (slice(None), slice(1, 5), np.flatnonzero(y != names[0])):
        some, expected = coded[rows], y[rows]
        assert np.asarray(some).tolist() == expected.tolist()
        if len(expected):
            one, other = (encode_any(labels, len(expected), "Model") for labels in (some, expected))
            assert one.classes.tolist() == other.classes.tolist()
            assert one.codes.dtype == other.codes.dtype
            np.testing.assert_array_equal(one.codes, other.codes)
            assert classes_of(some).tolist() == one.classes.tolist()


def test_labels_that_are_not_strings_are_not_coded():
    y = np.array([3, 1, 3])
    assert code_strings(y) is y
