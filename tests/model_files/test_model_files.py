"""Model files: they come back bit for bit, and nothing but a sound file is ever opened."""

import hashlib
import importlib.util
import io
import json
import os
import pickle
import struct
from dataclasses import replace
from pathlib import Path
from types import GenericAlias, SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import linsep
from linsep import (
    Encoder,
    LinearClassifier,
    LinearRegressor,
    LogisticRegression,
    load,
    losses,
    save,
)
from linsep.cli import main
from linsep.errors import BadModelFile, CertificateError, LinsepError, Refused
from linsep.model_files import container, digest, from_bytes, to_bytes
from linsep.model_files.codec import Reader, Writer, conforms
from linsep.solution import Explicit

GOLDEN = Path(__file__).parent / "golden"
spec = importlib.util.spec_from_file_location("golden_models", GOLDEN / "make.py")
golden = importlib.util.module_from_spec(spec)
spec.loader.exec_module(golden)

X, Y = load_iris(return_X_y=True)
MODELS = {
    "multinomial": lambda: LogisticRegression().fit(X, Y),
    "ovr": lambda: LogisticRegression(multiclass="ovr", class_weight={0: 2.0, 1: 1.0, 2: 1.5}).fit(
        X, Y
    ),
    "two classes": lambda: LogisticRegression(C=0.5).fit(X[50:], np.array(["x", "y"])[Y[50:] - 1]),
    "objects": lambda: LogisticRegression().fit(X, np.array(["p", "q", "r"], object)[Y]),
    "booleans": lambda: LogisticRegression().fit(X, Y == 1),
    "floats": lambda: LogisticRegression().fit(X, Y.astype(float)),
    "loss by name": lambda: LinearClassifier("squared_hinge").fit(X, Y),
    "loss with width": lambda: LinearClassifier(losses.HuberisedHinge(0.5)).fit(X, Y),
    "unpenalised": lambda: LinearRegressor().fit(X, Y + 0.5),
    "regressor": lambda: LinearRegressor("huber", C=3.0).fit(X, Y + 0.5),
    "dual": lambda: LinearClassifier("squared_hinge", solver="dual-cd").fit(X[50:], Y[50:]),
    "balanced": lambda: LogisticRegression(class_weight="balanced", max_passes=1000).fit(X, Y),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_round_trip(make, tmp_path):
    model = make()
    path = tmp_path / "model.linsep"
    save(model, path)
    again = load(path)
    assert type(again) is type(model) and again.get_params() == model.get_params()
    assert to_bytes(again) == to_bytes(model) == path.read_bytes()
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.certificate_ == model.certificate_ and again.trace_ == model.trace_
    rows = (
        X[50:]
        if len(getattr(model, "classes_", "")) == 2 and model.classes_.dtype.kind != "b"
        else X
    )
    target = model.predict(rows)
    for one in (model, again):  # on other data both say the same
        try:
            found = linsep.verify(one, rows, target)
        except CertificateError as error:
            found = error.certificate
        assert found is not None
    again.fit(X, Y)


def test_a_loaded_model_is_verified():
    model = MODELS["multinomial"]()
    again = from_bytes(to_bytes(model))
    assert linsep.verify(again, X, Y) == linsep.verify(model, X, Y)
    other = Y.copy()
    other[0] = 2
    with pytest.raises(CertificateError):
        linsep.verify(again, X, other)


def test_without_the_dual_numbers():
    rows, labels = load_breast_cancer(return_X_y=True)
    rows = StandardScaler().fit_transform(rows)
    model = LinearClassifier("squared_hinge", tol=1e-4).fit(rows, labels)
    margins = (2.0 * labels - 1.0) * model.decision_function(rows)
    explicit = Explicit(-losses.SquaredHinge().slope(margins))
    model._fits = [replace(model._fits[0], dual=explicit)]
    whole, small = to_bytes(model), to_bytes(model, include_dual=False)
    assert len(small) < len(whole) - 8 * len(rows) + 1000
    again = from_bytes(whole)
    np.testing.assert_array_equal(again._fits[0].dual.u, explicit.u)
    assert linsep.verify(again, rows, labels) == linsep.verify(model, rows, labels)
    np.testing.assert_array_equal(from_bytes(small).predict(rows), model.predict(rows))


def test_an_encoder_travels_along(tmp_path):
    model = golden.MODELS["table"]()
    save(model, tmp_path / "m.linsep")
    again = load(tmp_path / "m.linsep")
    np.testing.assert_array_equal(
        again.predict_proba(golden.FRAME), model.predict_proba(golden.FRAME)
    )
    assert str(again[0].schema_) == str(model[0].schema_)


def test_an_encoder_remembers_how_its_file_was_read():
    """The settings that say what a cell means are stored; the encoder of a data frame has none."""
    text = b"a;b;y\n1.234,5;u;no\n2.345,5;v;yes\n???;u;yes\n"
    how = {"decimal": ",", "thousands": ".", "missing": ["???"]}
    table = linsep.read_table(io.BytesIO(text), "y", **how)
    model = make_pipeline(linsep.Encoder(), linsep.LogisticRegression()).fit(table, table.y)
    again = from_bytes(to_bytes(model))
    assert again[0].reading_ == {"target": "y", **how, "missing": ["", "???"]}
    same = linsep.read_table(io.BytesIO(text), **again[0].reading_)
    np.testing.assert_array_equal(again.predict_proba(same), model.predict_proba(table))
    assert load(GOLDEN / "table-1.linsep")[0].reading_ == {}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda r: r.pop("missing"),
            "reading must have the keys target, decimal, thousands and missing",
        ),
        (lambda r: r.update(encoding="utf-8"), "reading must have the keys"),
        (lambda r: r.update(missing="NA"), "missing in reading"),
        (lambda r: r.update(missing=[1]), "missing in reading"),
        (lambda r: r.update(target=3), "target in reading"),
        (lambda r: r.update(decimal=";;"), "decimal must be one character"),
        (lambda r: r.update(decimal=None), "decimal must be one character"),
        (lambda r: r.update(thousands="."), "neither a digit, a sign, nor the decimal separator"),
    ],
)
def test_forged_settings_of_a_file(change, words):
    table = linsep.read_table(io.BytesIO(b"a,y\n1,no\n2,yes\n"), "y")
    settings = Encoder().fit(table).to_dict()
    assert Encoder.from_dict(settings).reading_["target"] == "y"
    change(settings["reading"])
    with pytest.raises(BadModelFile, match=words):
        Encoder.from_dict(settings)


def test_the_data_leave_a_digest():
    model = MODELS["multinomial"]()
    again = from_bytes(to_bytes(model, data=(X, Y)))
    assert again.data_digest_ == digest(X, Y) == digest(sp.csr_array(X), list(Y))
    assert from_bytes(to_bytes(again)).data_digest_ == again.data_digest_
    assert digest(X[::-1], Y) != digest(X, Y) != digest(X, Y[::-1])


@pytest.mark.parametrize("name", golden.MODELS)
def test_golden_files(name):
    """Files of format 1 are read for ever, and mean what they meant."""
    old = load(GOLDEN / f"{name}-1.linsep")
    new = golden.MODELS[name]()
    rows = golden.FRAME if name == "table" else golden.X
    np.testing.assert_allclose(
        old.predict(rows).astype(float)
        if name == "regressor"
        else old[-1].coef_
        if name == "table"
        else old.coef_,
        new.predict(rows).astype(float)
        if name == "regressor"
        else new[-1].coef_
        if name == "table"
        else new.coef_,
        rtol=1e-4,
        atol=1e-6,
    )
    if name != "regressor":
        assert old.predict(rows).tolist() == new.predict(rows).tolist()


def test_what_cannot_be_saved(tmp_path):
    class Mine(losses.Logistic):
        pass

    with pytest.raises(Refused, match="written in Python, and a model file holds no code"):
        to_bytes(LinearClassifier(Mine()).fit(X, Y))
    with pytest.raises(Refused, match="random_state is a RandomState"):
        to_bytes(LogisticRegression(random_state=np.random.RandomState(0)).fit(X, Y))
    with pytest.raises(Refused, match="StandardScaler cannot be saved"):
        to_bytes(StandardScaler().fit(X))
    with pytest.raises(Refused, match="a step that a model file cannot hold: SelectKBest"):
        to_bytes(make_pipeline(SelectKBest(k=1), LogisticRegression()).fit(X, Y))

    class Own(LogisticRegression):
        pass

    with pytest.raises(Refused, match="Own cannot be saved"):
        to_bytes(Own().fit(X, Y))
    with pytest.raises(NotFittedError):
        save(LogisticRegression(), tmp_path / "m.linsep")
    assert not list(tmp_path.iterdir())


# Writing.


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "m.linsep"
    save(MODELS["multinomial"](), path)
    before = path.read_bytes()
    for name in ("replace", "fsync"):
        with monkeypatch.context() as patch:

            def fail(*args):
                raise OSError("disk full")

            patch.setattr(os, name, fail)
            with pytest.raises(OSError, match="disk full"):
                save(MODELS["ovr"](), path)
        assert path.read_bytes() == before
        assert [p.name for p in tmp_path.iterdir()] == ["m.linsep"]


def test_links_and_modes(tmp_path):
    model = MODELS["multinomial"]()
    save(model, tmp_path / "real.linsep")
    (tmp_path / "link.linsep").symlink_to(tmp_path / "real.linsep")
    save(model, tmp_path / "link.linsep")
    assert (tmp_path / "link.linsep").is_symlink()
    assert load(tmp_path / "link.linsep").certificate_ == model.certificate_
    plain = tmp_path / "plain"
    plain.write_text("")
    assert plain.stat().st_mode == (tmp_path / "real.linsep").stat().st_mode
    with pytest.raises(FileNotFoundError):
        save(model, tmp_path / "no" / "such" / "folder.linsep")


def test_what_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadModelFile, match="not a regular file"):
        load(tmp_path / "pipe")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)


# Reading what is damaged or forged: the content is changed, the checksums are right where that is possible.

CONTENT = to_bytes(MODELS["multinomial"]())
TABLE = to_bytes(golden.MODELS["table"]())


def opened(content):
    length = struct.unpack_from("<Q", content, 8)[0]
    start = 48 + length + -(48 + length) % 64
    return json.loads(content[48 : 48 + length]), content[start:]


def sealed(manifest, arrays):
    text = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
    head = b"LINSEP\r\n" + struct.pack("<Q", len(text)) + hashlib.sha256(text).digest() + text
    return head + bytes(-len(head) % 64) + arrays


def forged(change, content=CONTENT):
    manifest, arrays = opened(content)
    out = change(manifest)
    return sealed(manifest if not isinstance(out, bytes) else out, arrays)


def resealed_array(change, number=0):
    """One array changed, with the checksums of the forger."""
    manifest, arrays = opened(CONTENT)
    entry = manifest["arrays"][number]
    size = int(np.prod(entry["shape"])) * 8
    at = entry["offset"]
    raw = change(np.frombuffer(arrays[at : at + size]).copy()).tobytes()
    entry["sha256"] = hashlib.sha256(raw).hexdigest()
    return sealed(manifest, arrays[:at] + raw + arrays[at + size :])


def fitted(key, value):
    return lambda m: m["fitted"].update({key: value})


def record(path, value):
    """Set a field of a record somewhere below ``fitted``."""

    def change(manifest):
        node = manifest["fitted"]
        for step in path[:-1]:
            node = node[step]
            node = node.get("fields", node.get("tuple", node)) if isinstance(node, dict) else node
        node[path[-1]] = value

    return change


BOMB = {"float": "inf"}
for _ in range(50):
    BOMB = {"tuple": [BOMB]}

FORGED = {
    "format missing": (lambda m: m.pop("format"), "format number is None"),
    "format zero": (lambda m: m.update(format=0), "format number is 0"),
    "format negative": (lambda m: m.update(format=-1), "format number is -1"),
    "format as text": (lambda m: m.update(format="1"), "format number is '1'"),
    "format as truth": (lambda m: m.update(format=True), "format number is True"),
    "format newer": (lambda m: m.update(format=3), "install a newer linsep"),
    "format huge": (lambda m: m.update(format=2**63), "install a newer linsep"),
    "model unknown": (lambda m: m.update(model="RandomForest"), "this version of linsep reads"),
    "model a path": (lambda m: m.update(model="os.system"), "this version of linsep reads"),
    "model not text": (
        lambda m: m.update(model=["LogisticRegression"]),
        "this version of linsep reads",
    ),
    "key missing": (lambda m: m.pop("fitted"), "'fitted'"),
    "key too many": (lambda m: m.update(code="print(1)"), "'code'"),
    "params a list": (lambda m: m.update(params=[]), "must be objects"),
    "parameter unknown": (lambda m: m["params"].update(run="x"), "unknown parameters"),
    "fitted a list": (lambda m: m.update(fitted=[]), "must be objects"),
    "dunder attribute": (fitted("__class__", "x"), "no estimator would give"),
    "method replaced": (fitted("predict", "x"), "no estimator would give"),
    "attribute not a name": (fitted("a b_", "x"), "no estimator would give"),
    "coef_ missing": (lambda m: m["fitted"].pop("coef_"), "belong to nothing|coef_ is missing"),
    "class weights missing": (
        lambda m: m["fitted"].pop("_class_weight"),
        "_class_weight is missing",
    ),
    "coef_ text": (fitted("coef_", "x"), "array of finite numbers"),
    "coef_ of strings": (fitted("coef_", {"strings": ["x"], "dtype": "str"}), "finite numbers"),
    "coef_ the wrong array": (fitted("coef_", {"array": 1}), "does not fit|array"),
    "array number negative": (fitted("coef_", {"array": -1}), "unknown kind"),
    "array number too large": (fitted("coef_", {"array": 99}), "unknown kind"),
    "array number fractional": (fitted("coef_", {"array": 0.0}), "unknown kind"),
    "array number true": (fitted("coef_", {"array": True}), "unknown kind"),
    "intercept_ infinite": (fitted("intercept_", {"float": "inf"}), "intercept_ must be finite"),
    "n_features_in_ negative": (fitted("n_features_in_", -4), "does not fit -4 columns"),
    "n_features_in_ 2^31": (fitted("n_features_in_", 2**31), "does not fit"),
    "n_features_in_ 2^63": (fitted("n_features_in_", 2**63), "does not fit"),
    "n_features_in_ text": (fitted("n_features_in_", "4"), "does not fit"),
    "classes_ too few": (fitted("classes_", {"strings": ["a", "b"], "dtype": "str"}), "2 classes"),
    "classes_ twice": (fitted("classes_", {"strings": ["a"] * 3, "dtype": "str"}), "3 classes"),
    "classes_ none": (fitted("classes_", None), "not a list of classes"),
    "names too few": (
        fitted("feature_names_in_", {"strings": ["a"], "dtype": "object"}),
        "one name for each column",
    ),
    "certificate_ a number": (fitted("certificate_", 1.0), "not a certificate"),
    "certificate with text": (record(["certificate_", "gap"], "0"), "Optimality.gap is not what"),
    "certificate of odd kind": (record(["certificate_", "kind"], "divine"), "Optimality.kind"),
    "certificate with more": (record(["certificate_", "sworn"], True), "unknown fields"),
    "record unknown": (fitted("x_", {"record": "Popen", "fields": {}}), "unknown kind 'Popen'"),
    "record without fields": (fitted("x_", {"record": "Fit", "fields": 3}), "record of unknown"),
    "record incomplete": (fitted("x_", {"record": "Fit", "fields": {}}), "Fit is not sound"),
    "penalty impossible": (
        fitted("x_", {"record": "ElasticNet", "fields": {"C": -1.0, "l1_ratio": 0.0}}),
        "ElasticNet is not sound",
    ),
    "status unknown": (fitted("x_", {"status": "PERFECT"}), "unknown kind"),
    "float unknown": (fitted("x_", {"float": "1e5"}), "unknown kind"),
    "value of unknown kind": (fitted("x_", {"code": "1"}), "unknown kind"),
    "empty value": (fitted("x_", {}), "unknown kind"),
    "dictionary with a key twice": (fitted("x_", {"dict": [[1, 2], [1, 3]]}), "repeated key"),
    "dictionary of triples": (fitted("x_", {"dict": [[1, 2, 3]]}), "list of pairs"),
    "dictionary with a list as key": (fitted("x_", {"dict": [[[1], 2]]}), "odd or repeated key"),
    "strings with numbers": (fitted("x_", {"strings": [1], "dtype": "str"}), "something else"),
    "sparse rows out of range": (
        fitted("x_", {"csr": [{"array": 0}, {"array": 0}, {"array": 0}, [1, 1]]}),
        "sparse matrix is damaged",
    ),
    "fits not a list": (fitted("_fits", 3), "belong to nothing|not a list of fits"),
    "encoder of another model": (
        lambda m: m.update(encoder=opened(TABLE)[0]["encoder"]),
        "the model needs 4",
    ),
    "encoder not an encoder": (
        lambda m: m.update(encoder={"code": 1}),
        "an encoder must have the keys",
    ),
    "arrays not a list": (lambda m: m.update(arrays={}), "no list of arrays"),
    "array entry incomplete": (
        lambda m: m["arrays"][0].pop("sha256"),
        "array 0 must have the keys",
    ),
    "array of objects": (lambda m: m["arrays"][0].update(dtype="|O"), "dtype '|O'"),
    "array big-endian": (lambda m: m["arrays"][0].update(dtype=">f8"), "dtype '>f8'"),
    "array shape negative": (lambda m: m["arrays"][0].update(shape=[-1, 4]), "shape"),
    "array shape 2^63": (lambda m: m["arrays"][0].update(shape=[2**63]), "shape"),
    "array shape 2^40 squared": (
        lambda m: m["arrays"][0].update(shape=[2**40, 2**40]),
        "too short",
    ),
    "array shape with truth": (lambda m: m["arrays"][0].update(shape=[True, 4]), "shape"),
    "array of six dimensions": (
        lambda m: m["arrays"][0].update(shape=[1, 1, 1, 1, 3, 4]),
        "shape",
    ),
    "array somewhere else": (lambda m: m["arrays"][0].update(offset=64), "is not where"),
    "array at a negative place": (lambda m: m["arrays"][0].update(offset=-64), "is not where"),
    "array on another one": (lambda m: m["arrays"][1].update(offset=0), "is not where"),
    "array too many": (lambda m: m["arrays"].append(m["arrays"][0]), "is not where"),
    "array too few": (lambda m: m["arrays"].pop(), "left over"),
    "one array a million times": (
        lambda m: m["fitted"].update(x_=[m["fitted"]["coef_"]] * 1_000_000),
        "refers to its arrays too many times",
    ),
    "not an object": (lambda m: b"[]", "not an object"),
    "not JSON": (lambda m: b"{", "cannot be read"),
    "not UTF-8": (lambda m: b"\xff", "cannot be read"),
    "JSON with NaN": (lambda m: b'{"format": NaN}', "NaN is not JSON"),
    "JSON with a key twice": (lambda m: b'{"format": 1, "format": 1}', "a key occurs twice"),
    "JSON a million deep": (lambda m: b"[" * 1_000_000, "cannot be read"),
    "JSON with a giant number": (lambda m: b'{"format": ' + b"9" * 5000 + b"}", "cannot be read"),
    "fifty values deep": (fitted("x_", BOMB), ""),
}


LARGE = "one array a million times"


@pytest.mark.parametrize(
    "case",
    [*(name for name in FORGED if name != LARGE), pytest.param(LARGE, marks=pytest.mark.slow)],
)
def test_forged(case):
    change, words = FORGED[case]
    content = forged(change)
    if not words:  # odd, but sound
        assert from_bytes(content).coef_.shape == (3, 4)
        return
    with pytest.raises(BadModelFile, match=words.replace("|O", "\\|O")) as caught:
        from_bytes(content, "bad.linsep")
    assert "bad.linsep" in str(caught.value)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_none(value):
    with pytest.raises(BadModelFile, match="finite"):
        from_bytes(resealed_array(lambda a: np.where(np.arange(len(a)) == 3, value, a)))


def test_every_way_to_cut_the_file():
    borders = {0, 1, 7, 8, 15, 16, 47, 48, 49, len(CONTENT) - 1, *range(0, len(CONTENT), 37)}
    for end in borders:
        with pytest.raises(BadModelFile):
            from_bytes(CONTENT[:end])
    for more in (b"\0", b"\0" * 64, b"x"):
        with pytest.raises(BadModelFile, match="left over"):
            from_bytes(CONTENT + more)


def test_every_byte_counts():
    rng = np.random.default_rng(0)
    for at in {*range(64), *rng.integers(0, len(CONTENT), 300).tolist()}:
        damaged = bytearray(CONTENT)
        damaged[at] ^= 1 << int(rng.integers(8))
        with pytest.raises(BadModelFile):
            from_bytes(bytes(damaged))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it is empty"),
        (b"PK\x03\x04" + bytes(99), "zip archive"),
        (CONTENT.replace(b"\r\n", b"\n", 1), "line ends were changed"),
        (b"solver_type L2R_LR\nnr_class 2\n" * 9, "does not start like a linsep model"),
        (b"LINSEP\r\n" + struct.pack("<Q", 2**63) + bytes(99), "too short"),
        (b"LINSEP\r\n" + struct.pack("<Q", 10**9) + bytes(99), "too short"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",  # CONTENT holds the time of its fit
)
def test_other_files(content, words):
    with pytest.raises(BadModelFile, match=words):
        from_bytes(content)


def test_a_pickle_is_never_opened(tmp_path):
    witness = tmp_path / "ran"

    class Trap:
        def __reduce__(self):
            return (Path.touch, (witness,))

    path = tmp_path / "m.linsep"
    path.write_bytes(pickle.dumps(Trap()) + bytes(100))
    with pytest.raises(BadModelFile, match="never opens: a pickle can run any code"):
        load(path)
    assert not witness.exists()


def test_names_are_only_names():
    """Strings from a file are never looked up, however they look."""
    rows = golden.FRAME.rename_columns(["__import__('os')", "../../etc/passwd", "{0.__class__}"])
    model = make_pipeline(Encoder(), LogisticRegression()).fit(rows, [0, 1, 0, 0, 1, 1])
    again = from_bytes(to_bytes(model))
    assert again.predict(rows).tolist() == model.predict(rows).tolist()


def test_values_of_every_kind():
    value = [None, True, 1, 1.5, -0.0, "ü\0", [1], (1, (2,)), {1: "a", "b": (None,)}, np.arange(3)]
    value += [np.float32([1.5]), np.array([["x"]]).ravel(), sp.csr_array(np.eye(2))]
    writer = Writer()
    node = json.loads(json.dumps(writer.value(value, "it"), allow_nan=False))
    back = Reader(writer.arrays).value(node)
    assert back[:9] == value[:9] and np.signbit(back[4])
    for one, other in zip(back[9:12], value[9:12], strict=True):
        assert one.dtype == other.dtype and (one == other).all()
    assert (back[12] != value[12]).nnz == 0
    with pytest.raises(Refused, match="it is a set"):
        Writer().value({1}, "it")
    with pytest.raises(Refused, match="array of objects"):
        Writer().value(np.array([None]), "it")
    with pytest.raises(Refused, match="array of complex128"):
        Writer().value(np.array([1j]), "it")


def test_equal_arrays_are_stored_once():
    writer = Writer()
    a = writer.value([np.zeros(3), np.zeros(3), np.ones(3)], "it")
    assert a == [{"array": 0}, {"array": 0}, {"array": 1}] and len(writer.arrays) == 2


@pytest.mark.parametrize(
    ("value", "hint", "fits"),
    [
        (1, float, True),
        (True, float, False),
        (True, int, False),
        (None, float | None, True),
        ((1.0, "x"), tuple[float, str], True),
        ((1.0,), tuple[float, str], False),
        ([1.0], tuple[float, ...], False),
    ],
)
def test_conforms(value, hint, fits):
    assert conforms(value, hint) is fits


@pytest.mark.parametrize("own", [False, True])
def test_arrays_conform_whether_or_not_numpy_makes_their_type_an_alias_of_its_own(own, monkeypatch):
    array = npt.NDArray
    if own:  # numpy 2.5 on Python 3.12
        monkeypatch.setattr(npt, "NDArray", SimpleNamespace())
        array = {kind: GenericAlias(npt.NDArray, (kind,)) for kind in (np.float64, Any)}
    numbers, words = np.zeros(2), np.array(["a"])
    assert conforms(numbers, array[np.float64]) and not conforms(words, array[np.float64])
    assert conforms(words, array[Any]) and not conforms([1.0], array[Any])


def test_the_header_is_what_the_page_says():
    assert CONTENT.startswith(container.MAGIC) and len(CONTENT) % container.ALIGN == 0
    assert issubclass(BadModelFile, LinsepError)


# Through the command line: what is made of the file, the exit code, what is said.
COMMANDED = {
    "good": (lambda content: content, 0, ""),
    "empty": (lambda content: b"", 5, "it is empty"),
    "cut in the header": (lambda content: content[:20], 5, "does not start"),
    "cut in the manifest": (lambda content: content[:200], 5, "too short"),
    "cut in the arrays": (lambda content: content[:-64], 5, "too short"),
    "a bit turned": (lambda content: content[:99] + b"\0" + content[100:], 5, "checksum"),
    "more behind it": (lambda content: content + b"x", 5, "left over"),
    "a pickle": (lambda content: pickle.dumps([1]) + bytes(100), 5, "never opens"),
    "a newer format": (lambda content: forged(lambda m: m.update(format=3)), 5, "format 3"),
    "an older format": (lambda content: forged(lambda m: m.update(format=0)), 5, "format"),
    "coefficients not finite": (
        lambda content: resealed_array(lambda a: np.where(np.arange(len(a)) == 3, np.nan, a)),
        5,
        "finite",
    ),
    "a table": (lambda content: b"a,b\n1,2\n" * 20, 5, "does not start"),
}


@pytest.mark.parametrize("case", COMMANDED)
def test_the_command_line_says_what_is_wrong(case, tmp_path, capsys):
    change, code, words = COMMANDED[case]
    path = tmp_path / "m.linsep"
    path.write_bytes(change(CONTENT))
    assert main(["explain", str(path)]) == code
    said = capsys.readouterr().err
    assert words in said and "Traceback" not in said
    assert code == 0 or f"linsep: {path} " in said


def test_there_are_as_many_cases_as_promised():
    assert len(FORGED) + len(COMMANDED) >= 60


@pytest.mark.parametrize("dtype", [str, object, bool, np.int32])
def test_the_fewest_errors_with_labels_of_any_kind(dtype, tmp_path):
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    y = np.array([0, 1, 0, 1]).astype(dtype if dtype is not object else str).astype(dtype)
    model = linsep.ZeroOneClassifier().fit(X, y)
    save(model, tmp_path / "model.linsep")
    again = load(tmp_path / "model.linsep")
    assert (again.predict(X) == model.predict(X)).all()
    assert linsep.verify(again, X, y).proven
