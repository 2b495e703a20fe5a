"""Pipelines in model files: what is loaded predicts the same bits, proves the same, and never runs code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from mixed_columns import SENTIMENT, TEXTS, columns, frame
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from linsep import (
    Encoder,
    LinearRegressor,
    LinearSVC,
    LogisticRegression,
    basis,
    load,
    save,
    verify,
)
from linsep.cli import main
from linsep.errors import BadModelFile, Refused
from linsep.model_files import container, digest, from_bytes, to_bytes

NUMBERS = np.abs(np.random.default_rng(0).normal(size=(60, 3))) * [1.0, 1e4, 1e-3] + 1.0
Y = np.arange(60) % 2 == 0
LEVELS = np.array([["a", "x"], ["b", "y"], ["c", "x"]] * 20, dtype=object)
GAPS = np.where(np.random.default_rng(1).uniform(size=(60, 3)) < 0.2, np.nan, NUMBERS)

NUMERIC = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    MinMaxScaler(clip=True, feature_range=(-1, 2)),
    MaxAbsScaler(),
    RobustScaler(),
    Normalizer("l1"),
    PolynomialFeatures(2, interaction_only=True),
    Binarizer(threshold=1.5),
    VarianceThreshold(),
    PCA(2, random_state=0),
    TruncatedSVD(2, random_state=0),
    PowerTransformer(),
    QuantileTransformer(n_quantiles=10, random_state=0),
    make_union(StandardScaler(), MinMaxScaler()),
    FunctionTransformer(),
    *(getattr(basis, name)() for name in basis.__all__),
]


def same(model, X, y):
    """Save, load, and compare every bit of what the model says."""
    again = from_bytes(to_bytes(model, data=(X, y)))
    before, after = model[:-1].transform(X), again[:-1].transform(X)
    if hasattr(before, "toarray"):
        before, after = before.toarray(), after.toarray()
    # Products in another order of memory.
    last_bits = 1e-12 if isinstance(model[0], PCA | TruncatedSVD) else 0.0
    np.testing.assert_allclose(np.asarray(before), np.asarray(after), rtol=last_bits)
    np.testing.assert_array_equal(model.predict(X), again.predict(X))
    assert [name for name, _ in model.steps] == [name for name, _ in again.steps]
    assert again[-1].data_digest_ == digest(before, y)
    assert again[-1].certificate_ == model[-1].certificate_
    return again


@pytest.mark.parametrize("step", NUMERIC, ids=lambda step: type(step).__name__)
def test_numeric_steps(step):
    again = same(make_pipeline(step, LogisticRegression()).fit(NUMBERS, Y), NUMBERS, Y)
    if not isinstance(step, PCA | TruncatedSVD):  # their fit_transform has other last bits
        assert verify(again, NUMBERS, Y).certified


@pytest.mark.parametrize("strategy", ["mean", "median", "most_frequent", "constant"])
def test_imputers(strategy):
    step = SimpleImputer(strategy=strategy, add_indicator=True)
    same(make_pipeline(step, StandardScaler(), LinearSVC()).fit(GAPS, Y), GAPS, Y)
    words = LEVELS.copy()
    words[::7, 0] = None
    if strategy in ("most_frequent", "constant"):
        filled = SimpleImputer(strategy=strategy, missing_values=None, fill_value="none")
        same(make_pipeline(filled, OneHotEncoder(), LogisticRegression()).fit(words, Y), words, Y)


@pytest.mark.parametrize(
    "encoder",
    [
        OneHotEncoder(),
        OneHotEncoder(drop="first", sparse_output=False),
        OneHotEncoder(min_frequency=21, handle_unknown="infrequent_if_exist"),
        OneHotEncoder(handle_unknown="ignore", dtype=np.float32),
        OrdinalEncoder(),
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
    ],
    ids=repr,
)
def test_encoders(encoder):
    again = same(make_pipeline(encoder, LogisticRegression()).fit(LEVELS, Y), LEVELS, Y)
    if getattr(encoder, "handle_unknown", "error") != "error":
        new = np.array([["new", "x"]], dtype=object)
        assert np.isfinite(again.decision_function(new)).all()
    gaps = LEVELS.copy()
    gaps[::7, 0] = None
    numbers = np.array([[3, 1.5], [7, np.nan], [7, 2.5]] * 20)
    if "infrequent" not in repr(encoder):
        for rows in (gaps, numbers):
            if isinstance(encoder, OneHotEncoder):
                same(make_pipeline(encoder, LogisticRegression()).fit(rows, Y), rows, Y)


@pytest.mark.parametrize(
    "vectorizer",
    [
        TfidfVectorizer(),
        TfidfVectorizer(ngram_range=(1, 2), stop_words="english", sublinear_tf=True, norm="l1"),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 3), use_idf=False),
        CountVectorizer(binary=True, vocabulary=["good", "bad"]),
        CountVectorizer(stop_words=["very"], max_features=3, strip_accents="unicode"),
        HashingVectorizer(n_features=64),
        make_pipeline(CountVectorizer(), TfidfTransformer()),
    ],
    ids=lambda step: repr(step).replace("\n", "")[:60],
)
def test_texts(vectorizer):
    again = same(
        make_pipeline(vectorizer, LogisticRegression()).fit(TEXTS, SENTIMENT), TEXTS, SENTIMENT
    )
    assert verify(again, TEXTS, SENTIMENT).certified


def test_frames_selectors_and_output_settings(tmp_path):
    X, y = frame()
    same(make_pipeline(columns(), LogisticRegression()).fit(X, y), X, y)
    chosen = make_column_transformer(
        (OneHotEncoder(), make_column_selector(dtype_exclude=np.number)),
        (SimpleImputer(), pd.Index(["age"])),
        remainder="passthrough",
    )
    again = same(make_pipeline(chosen, LogisticRegression()).fit(X, y), X, y)
    assert again[:-1].get_feature_names_out().tolist()[-1] == "remainder__income"
    assert again.feature_names_in_.tolist() == ["age", "income", "city", "size"]
    numbers = ColumnTransformer(
        [("n", SimpleImputer(), slice(0, 2)), ("d", "drop", [2])], sparse_threshold=0
    )
    same(make_pipeline(numbers, StandardScaler(), LogisticRegression()).fit(X, y), X, y)
    framed = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression())
    framed.set_output(transform="pandas").fit(X[["age", "income"]], y)
    again = same(framed, X[["age", "income"]], y)
    assert list(again[:-1].transform(X[["age", "income"]])) == ["age", "income"]
    path = tmp_path / "m.linsep"
    save(framed, path)
    assert verify(load(path), X[["age", "income"]], y).certified


def test_encoder_among_other_steps_nested_pipelines_and_regression():
    X, y = frame()
    same(
        make_pipeline(Encoder(), StandardScaler(with_mean=False), LogisticRegression()).fit(X, y),
        X,
        y,
    )
    inner = make_pipeline(StandardScaler(), LinearRegressor())
    nested = Pipeline([("no", "passthrough"), ("one", MinMaxScaler()), ("rest", inner)])
    nested.fit(NUMBERS, NUMBERS[:, 0])
    again = from_bytes(to_bytes(nested))
    np.testing.assert_array_equal(again.predict(NUMBERS), nested.predict(NUMBERS))
    assert again["rest"]["linearregressor"].certificate_.certified
    assert repr(again) == repr(nested)
    alone = from_bytes(to_bytes(make_pipeline(LinearSVC()).fit(NUMBERS, Y)))
    assert isinstance(alone, Pipeline)


def test_what_is_refused_names_the_step_and_the_remedy():
    logs = make_pipeline(FunctionTransformer(np.log), LogisticRegression()).fit(NUMBERS, Y)
    with pytest.raises(Refused, match=r"FunctionTransformer.func is a ufunc"):
        to_bytes(logs)
    own = make_pipeline(TfidfVectorizer(tokenizer=str.split, token_pattern=None), LinearSVC())
    with pytest.raises(Refused, match=r"TfidfVectorizer.tokenizer"):
        to_bytes(own.fit(TEXTS, SENTIMENT))
    cached = Pipeline([("s", StandardScaler()), ("m", LinearSVC())], memory="/tmp").fit(NUMBERS, Y)
    with pytest.raises(Refused, match="set memory=None"):
        to_bytes(cached)

    class Own(StandardScaler):
        pass

    with pytest.raises(Refused, match="a step that a model file cannot hold: Own"):
        to_bytes(make_pipeline(Own(), LogisticRegression()).fit(NUMBERS, Y))


def test_another_version_of_scikit_learn_is_warned_of(monkeypatch):
    content = to_bytes(make_pipeline(StandardScaler(), LogisticRegression()).fit(NUMBERS, Y))
    monkeypatch.setattr(sklearn, "__version__", "99.1")
    with pytest.warns(InconsistentVersionWarning, match=r"99\.1"):
        from_bytes(content)
    alone = to_bytes(LogisticRegression().fit(NUMBERS, Y))
    assert isinstance(from_bytes(alone), LogisticRegression)  # no steps, no warning


def altered(change):
    """A file whose manifest was changed, with right checksums."""
    manifest, arrays = container.unpack(
        to_bytes(make_pipeline(StandardScaler(), LogisticRegression()).fit(NUMBERS, Y)), "x"
    )
    change(manifest)
    return container.pack(manifest, arrays)


def _scaler(manifest):
    return manifest["steps"]["pipeline"]["params"]["steps"][0]["tuple"][1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: _scaler(m).update(step="os.system"), "a step of unknown kind"),
        (lambda m: _scaler(m)["params"].update(evil=1), "does not know"),
        (lambda m: _scaler(m)["fitted"].update(transform=1), "a name that no estimator"),
        (lambda m: _scaler(m)["fitted"].update(__class__=1), "a name that no estimator"),
        (lambda m: m["steps"]["pipeline"]["params"].update(memory="/tmp"), "no linsep would"),
        (lambda m: m["steps"].update(more=1), "and no others"),
        (lambda m: m.update(steps=None), "and no others"),
        (lambda m: m["steps"].update(pipeline=3), "does not hold a pipeline"),
        (lambda m: m["steps"].update(scikit_learn=1), "not a version"),
        (lambda m: m["steps"]["pipeline"]["params"].update(steps=[]), "not pairs"),
        (lambda m: m["steps"]["pipeline"]["params"].update(steps=3), "not pairs"),
        (lambda m: m["steps"]["pipeline"]["params"]["steps"].append(1), "not pairs"),
        (lambda m: m["steps"]["pipeline"]["params"]["steps"].pop(), "does not end in the model"),
        (lambda m: _scaler(m)["params"].update(copy={"type": "eval"}), "unknown kind"),
        (lambda m: _scaler(m)["params"].update(copy={"dtype": "O, O"}), "unknown kind"),
        (lambda m: _scaler(m)["params"].update(copy={"slice": ["a", 1, 2]}), "unknown kind"),
        (lambda m: _scaler(m)["params"].update(copy={"set": [1]}), "unknown kind"),
        (lambda m: _scaler(m)["params"].update(copy={"objects": [[1]]}), "text and numbers"),
        (
            lambda m: _scaler(m)["params"].update(copy={"encoder": 1}),
            "an encoder must have the keys",
        ),
    ],
)
def test_forged_steps_are_refused(change, words):
    with pytest.raises(BadModelFile, match=words):
        from_bytes(altered(change))


def test_every_truncation_of_steps_is_refused():
    content = to_bytes(make_pipeline(StandardScaler(), LogisticRegression()).fit(NUMBERS, Y))
    assert json.loads(content[48 : 48 + int.from_bytes(content[8:16], "little")])["format"] == 2
    for cut in range(0, len(content), 97):
        with pytest.raises(BadModelFile):
            from_bytes(content[:cut])


def test_the_checker_proves_a_pipeline_from_the_rows_its_steps_make(tmp_path):
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(NUMBERS, Y)
    save(model, tmp_path / "m.linsep")
    np.savez(tmp_path / "rows.npz", X=model[:-1].transform(NUMBERS), y=Y)
    checker = Path(__file__).parents[2] / "checker" / "linsep_check.py"
    done = subprocess.run(
        [sys.executable, str(checker), str(tmp_path / "m.linsep"), str(tmp_path / "rows.npz")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_command_line_reads_pipelines(tmp_path, capsys):
    X, y = frame()
    X = X.round(3)  # which every reader of numbers reads alike
    X.assign(y=np.where(y, "yes", "no")).to_csv(tmp_path / "t.csv", index=False)
    given = pd.read_csv(tmp_path / "t.csv")
    rows, labels = given.drop(columns="y"), given["y"]
    models = {
        "columns": make_pipeline(columns(), LogisticRegression()).fit(rows, labels),
        "encoder": make_pipeline(Encoder(), MaxAbsScaler(), LogisticRegression()).fit(rows, labels),
    }
    for name, model in models.items():
        path = str(tmp_path / f"{name}.linsep")
        save(model, path)
        assert main(["verify", path, str(tmp_path / "t.csv"), "--target", "y"]) == 0
        assert (
            main(["predict", path, str(tmp_path / "t.csv"), "-o", str(tmp_path / "p.csv"), "-q"])
            == 0
        )
        said = pd.read_csv(tmp_path / "p.csv")["prediction"]
        assert said.tolist() == model.predict(rows).tolist()
        out = str(tmp_path / "rows.npz")
        assert (
            main(["convert", str(tmp_path / "t.csv"), out, "--target", "y", "--like", path, "-q"])
            == 0
        )
        with np.load(out) as made:
            np.testing.assert_array_equal(made["X"], np.asarray(model[:-1].transform(rows)))
        capsys.readouterr()
        assert main(["explain", path]) == 0
        assert "Rome" in capsys.readouterr().out
