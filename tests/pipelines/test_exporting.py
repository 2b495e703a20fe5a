"""Pipelines in SQL, Python, C, ONNX and scikit-learn: every export says what the pipeline says."""

from __future__ import annotations

import contextlib
import ctypes
import sqlite3
import subprocess

import duckdb
import numpy as np
import onnxruntime
import pandas as pd
import pytest
from mixed_columns import TEXTS, columns, frame
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from linsep import Encoder, LinearRegressor, LinearSVC, LogisticRegression, basis, export
from linsep.errors import Refused
from linsep.export.formula import formula
from linsep.export.queries import quote

RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=(80, 3)) * [1.0, 50.0, 1e-3] + [0.5, 1e4, 2.0]
NUMBERS[3] = 0.0
Y = RNG.uniform(size=80) < 1 / (1 + np.exp(-NUMBERS[:, 0]))
THREE = np.array(["a", "b", "c"])[np.arange(80) % 3]
GAPS = np.where(RNG.uniform(size=NUMBERS.shape) < 0.2, np.nan, NUMBERS)
CODES = np.array([[3.0, 1.5], [7.0, 2.5], [7.0, -1.0], [9.0, 1.5]] * 20)

NUMERIC = {
    "standard": (StandardScaler(), NUMBERS),
    "without a mean": (StandardScaler(with_mean=False), NUMBERS),
    "min-max": (MinMaxScaler((-1, 3)), NUMBERS),
    "clipped": (MinMaxScaler(clip=True), NUMBERS),
    "max-abs": (MaxAbsScaler(), NUMBERS),
    "robust": (RobustScaler(), NUMBERS),
    "one after another": (make_pipeline(MinMaxScaler(), StandardScaler(), RobustScaler()), NUMBERS),
    "normalised": (make_pipeline(StandardScaler(), Normalizer()), NUMBERS),
    "normalised l1": (Normalizer("l1"), NUMBERS),
    "polynomial": (make_pipeline(StandardScaler(), PolynomialFeatures(3)), NUMBERS),
    "basis of monomials": (make_pipeline(StandardScaler(), basis.Polynomial(3)), NUMBERS),
    "basis of interactions": (basis.Interactions(), NUMBERS),
    "union": (make_union(StandardScaler(), MaxAbsScaler()), NUMBERS),
    "weighted union": (
        make_union(StandardScaler(), MaxAbsScaler()).set_params(
            transformer_weights={"standardscaler": 0.5}
        ),
        NUMBERS,
    ),
    "selected": (make_pipeline(VarianceThreshold(1e-4), StandardScaler()), NUMBERS),
    "imputed": (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), GAPS),
    "imputed codes": (SimpleImputer(missing_values=-1.0, strategy="median"), CODES),
    "numbers as levels": (OneHotEncoder(handle_unknown="ignore"), CODES),
    "levels multiplied": (
        make_pipeline(OneHotEncoder(sparse_output=False), PolynomialFeatures(2)),
        CODES,
    ),
    "ordinal numbers": (OrdinalEncoder(), CODES),
}


def levels(n: int = 80) -> pd.DataFrame:
    """Texts with gaps, quotes and characters beyond ASCII; truth values; numbers."""
    rng = np.random.default_rng(3)
    words = np.array(["Oslo", "it's", 'say "hi"', "Zürich", "back\\slash??/", None], dtype=object)
    return pd.DataFrame(
        {
            "ci'ty": pd.Series(rng.choice(words, n), dtype=object),
            "size": rng.choice(["S", "M", "L"], n),
            "yes": rng.choice([True, False], n),
            "age": np.where(rng.uniform(size=n) < 0.2, np.nan, rng.normal(40, 10, n)),
        }
    )


MIXED = {
    "issue": lambda: make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["age"]),
        (OneHotEncoder(handle_unknown="ignore"), ["ci'ty"]),
        (OrdinalEncoder(categories=[["S", "M", "L"]]), ["size"]),
        (OneHotEncoder(drop="if_binary"), ["yes"]),
    ),
    "infrequent": lambda: make_column_transformer(
        (OneHotEncoder(min_frequency=14, handle_unknown="infrequent_if_exist"), ["ci'ty", "size"]),
        (SimpleImputer(strategy="median"), ["age"]),
        remainder="drop",
    ),
    "filled texts": lambda: make_column_transformer(
        (
            make_pipeline(
                SimpleImputer(strategy="constant", fill_value="?", missing_values=None),
                OneHotEncoder(drop="first", handle_unknown="ignore"),
            ),
            ["ci'ty"],
        ),
        (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), ["size"]),
    ),
    "products": lambda: make_pipeline(
        make_column_transformer(
            (OneHotEncoder(), ["size"]), (SimpleImputer(), ["age"]), sparse_threshold=0
        ),
        PolynomialFeatures(2, interaction_only=True, include_bias=False),
    ),
}


def said(model, rows):
    """Scores (n, k), answers and probabilities of a pipeline."""
    if not hasattr(model, "classes_"):
        z = model.predict(rows)
        return z[:, None], z.tolist(), None
    z = model.decision_function(rows).reshape(len(rows), -1)
    p = model.predict_proba(rows) if hasattr(model, "predict_proba") else None
    return z, model.predict(rows).tolist(), p


def as_lists(rows):
    """Rows as Python lists, gaps as None."""
    if isinstance(rows, pd.DataFrame):
        rows = rows.astype(object).to_numpy()
    return [[None if pd.isna(v) else v for v in row] for row in rows.tolist()]


def by_python(model, rows):
    scope = {}
    exec(export.python(model), scope)
    given = as_lists(rows)
    p = [scope["predict_proba"](row) for row in given] if "predict_proba" in scope else None
    return np.array([scope["score"](row) for row in given]), [scope["predict"](r) for r in given], p


def by_sql(model, rows, engine):
    names, given = formula(model).columns, as_lists(rows)
    kinds = {str: "VARCHAR", bool: "BOOLEAN"}
    types = [
        kinds.get(
            next((type(row[j]) for row in given if row[j] is not None), float), "DOUBLE PRECISION"
        )
        for j in range(len(names))
    ]
    listed = ", ".join(f"{quote(n)} {t}" for n, t in zip(names, types, strict=True))
    query = export.sql(model, "t", key="row id") + ' ORDER BY "row id"'
    marks = ", ".join("?" * (len(names) + 1))
    connect = sqlite3.connect if engine == "sqlite" else duckdb.connect
    with contextlib.closing(connect(":memory:")) as connection:
        connection.execute(f'CREATE TABLE t ("row id" INTEGER, {listed})')
        connection.executemany(
            f"INSERT INTO t VALUES ({marks})", [[i, *row] for i, row in enumerate(given)]
        )
        found = connection.execute(query).fetchall()
    k = len(formula(model).b)
    z = np.array([row[1 : 1 + k] for row in found], dtype=float)
    p = [row[2 + k :] for row in found] if len(found[0]) > 2 + k else None
    return z, [row[1 + k] for row in found], p


def by_c(model, rows, tmp_path):
    stem = (
        f"m{len(list(tmp_path.iterdir()))}"  # a library of the same name would not be loaded again
    )
    source, made = tmp_path / f"{stem}.c", tmp_path / f"{stem}.so"
    source.write_text(export.c(model, "m"))
    command = ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC"]
    subprocess.run([*command, "-o", made, source, "-lm"], check=True)
    library, f = ctypes.CDLL(str(made)), formula(model)
    texts = f.texts
    numeric = [j for j in f.used if j not in texts]
    k = len(f.b)
    if f.classes is None:
        library.m_predict.restype = ctypes.c_double
    scores, answers, p = [], [], []
    for row in as_lists(rows):
        x = (ctypes.c_double * max(1, len(numeric)))(
            *[np.nan if row[j] is None else float(row[j]) for j in numeric]
        )
        s = (ctypes.c_char_p * max(1, len(texts)))(
            *[None if row[j] is None else row[j].encode() for j in texts]
        )
        given = (x, s) if texts else (x,)
        z = (ctypes.c_double * k)()
        library.m_score(*given, z)
        scores.append(list(z))
        at = library.m_predict(*given)
        answers.append(at if f.classes is None else f.classes[at])
        if f.link:
            out = (ctypes.c_double * len(f.classes))()
            library.m_proba(*given, out)
            p.append(list(out))
    return np.array(scores), answers, p or None


def by_onnx(model, rows):
    session = onnxruntime.InferenceSession(export.onnx(model), providers=["CPUExecutionProvider"])
    inputs = [i.name for i in session.get_inputs()]
    if inputs == ["X"]:
        given = {"X": np.asarray(rows, dtype=float)}
    else:
        texts = formula(model).texts
        given = {}
        for j, name in enumerate(formula(model).columns):
            values = rows.iloc[:, j]
            if name not in inputs:
                continue
            if j in texts:
                column = np.array(["" if pd.isna(v) else v for v in values], dtype=object)
            else:
                column = np.asarray(values, dtype=float)
            given[name] = column[:, None]
    names = [output.name for output in session.get_outputs()]
    found = dict(zip(names, session.run(None, given), strict=True))
    answers = found["label"].tolist() if "label" in found else found["score"][:, 0].tolist()
    return found["score"], answers, found.get("probability")


def agree(model, rows, found):
    z, answers, p = said(model, rows)
    np.testing.assert_allclose(found[0], z, rtol=1e-9, atol=1e-9 * np.abs(z).max())
    ranked = np.sort(z, axis=1)
    clear = (np.abs(z[:, 0]) if z.shape[1] == 1 else ranked[:, -1] - ranked[:, -2]) > 1e-7
    if hasattr(model, "classes_"):
        assert [a for a, ok in zip(found[1], clear, strict=True) if ok] == [
            a for a, ok in zip(answers, clear, strict=True) if ok
        ]
    if p is not None:
        np.testing.assert_allclose(np.asarray(found[2], dtype=float), p, rtol=1e-8, atol=1e-12)


def everywhere(model, rows, tmp_path):
    agree(model, rows, by_python(model, rows))
    for engine in ("sqlite", "duckdb"):
        agree(model, rows, by_sql(model, rows, engine))
    agree(model, rows, by_c(model, rows, tmp_path))
    agree(model, rows, by_onnx(model, rows))
    made = export.to_sklearn(model)
    agree(model, rows, said(made, rows))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("case", NUMERIC)
def test_numeric_pipelines(case, tmp_path):
    steps, rows = NUMERIC[case]
    everywhere(make_pipeline(steps, LogisticRegression()).fit(rows, Y), rows, tmp_path)


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore:Found unknown categories")
@pytest.mark.parametrize("case", MIXED)
@pytest.mark.parametrize("several", [False, True])
def test_levels_texts_and_gaps(case, several, tmp_path):
    rows = levels()
    model = make_pipeline(MIXED[case](), LogisticRegression()).fit(rows, THREE if several else Y)
    everywhere(model, rows, tmp_path)
    if case in ("infrequent", "filled texts"):
        new = rows.iloc[:3].copy()
        new["ci'ty"] = "never seen"
        everywhere(model, new, tmp_path)


TOWNS = ["Oslo", "Ro'me", "Oslo", None, "Ro'me", " Oslo", "Lima", "Bern"]
PEOPLE = pd.DataFrame(
    {
        "age": [31.0, 58.0, None, 40.0, 22.0, 67.0, 45.0, 33.0],
        "ci'ty": pd.Series(TOWNS, dtype=object),
        'mem"ber': pd.Series([True, False, True, None, False, False, True, True], dtype=object),
        "same": [1.0] * 8,
        "zip": [1, 2, 1, 1, 2, 2, 1, 3],
    }
)
STRANGERS = pd.DataFrame(
    {
        "age": [None, 1e3, 50.0],
        "ci'ty": ["Paris", None, "Oslo \t"],
        'mem"ber': [None, False, True],
        "same": [7.0, None, 1.0],
        "zip": [9, 1, 2],
    }
)


@pytest.mark.parametrize("settings", [{"standardise": True}, {"min_count": 2}, {"min_count": 9}])
@pytest.mark.parametrize("several", [False, True])
def test_the_encoder_of_linsep(settings, several, tmp_path):
    y = np.arange(8) % 3 if several else [0, 1, 0, 0, 1, 1, 0, 1]
    model = make_pipeline(Encoder(**settings), LogisticRegression()).fit(PEOPLE, y)
    for rows in (PEOPLE, STRANGERS):
        agree(model, rows, by_python(model, rows))
        agree(model, rows, by_c(model, rows, tmp_path))
        # TRIM in SQL strips spaces only
        spaced = rows.assign(**{"ci'ty": rows["ci'ty"].str.replace("\t", " ")})
        for engine in ("sqlite", "duckdb"):
            agree(model, rows, by_sql(model, spaced, engine))


def test_numbers_and_levels_of_the_encoder(tmp_path):
    y = [0, 1, 0, 0, 1, 1, 0, 1]
    numbers = PEOPLE[["age", 'mem"ber', "zip"]]
    model = make_pipeline(Encoder(), LogisticRegression()).fit(numbers, y)
    agree(model, numbers, by_onnx(model, numbers))
    coded = make_pipeline(Encoder(types={"zip": "category"}), LogisticRegression()).fit(numbers, y)
    agree(coded, numbers, by_python(coded, numbers))
    scaled = make_pipeline(Encoder(), StandardScaler(), LogisticRegression()).fit(numbers, y)
    agree(scaled, numbers, by_python(scaled, numbers))
    agree(scaled, numbers, by_sql(scaled, numbers, "sqlite"))


def test_what_the_encoder_cannot_export():
    y = [0, 1, 0, 0, 1, 1, 0, 1]
    model = make_pipeline(Encoder(), LogisticRegression()).fit(PEOPLE, y)
    with pytest.raises(Refused, match=r"cannot strip the blanks.*\"ci'ty\"; export model\[-1\]"):
        export.onnx(model)
    with pytest.raises(Refused, match=r"numeric part of a model only; export model\[-1\]"):
        export.to_sklearn(model)
    texts = make_pipeline(Encoder(types={"ci'ty": "text"}, hash_size=16), LogisticRegression())
    texts.fit(PEOPLE, y)
    for write in (export.python, export.c, export.onnx, lambda model: export.sql(model, "t")):
        with pytest.raises(Refused, match="encoded as text, which cannot be exported"):
            write(texts)


def test_other_models_and_a_frame_of_numbers(tmp_path):
    for model, y in ((LinearSVC(), Y), (LinearRegressor(), NUMBERS[:, 0])):
        everywhere(make_pipeline(StandardScaler(), model).fit(NUMBERS, y), NUMBERS, tmp_path)
    named = pd.DataFrame(NUMBERS, columns=["a", "b b", 'c"c'])
    everywhere(make_pipeline(StandardScaler(), LogisticRegression()).fit(named, Y), named, tmp_path)


def test_scalings_are_folded_where_that_is_exact_enough():
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(NUMBERS[4:], Y[4:])
    f = formula(model)
    scale, mean = model[0].scale_, model[0].mean_
    far = np.abs(mean) > 64 * scale
    assert far.tolist() == [False, True, True]  # means of 200 and 2,000 deviations
    assert f.W[0, 0] == model[-1].coef_[0, 0] / scale[0]
    assert len(f.terms) == 3
    near = make_pipeline(StandardScaler(), LogisticRegression()).fit(NUMBERS[4:] - mean, Y[4:])
    assert formula(near).plain
    assert "COEF" in export.python(near)


def test_unknown_levels_of_a_strict_encoder_have_no_answer(tmp_path):
    rows = levels()[["size"]]
    model = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(rows, Y)
    new = pd.DataFrame({"size": ["XXL"]})
    scope = {}
    exec(export.python(model), scope)
    with pytest.raises(ValueError, match="no value"):
        scope["predict"](["XXL"])
    assert by_sql(model, new, "sqlite")[1] == [None]
    z, _, _ = by_onnx(model, new)
    assert np.isnan(z).all()
    (tmp_path / "m.c").write_text(export.c(model, "m"))
    subprocess.run(
        ["cc", "-std=c99", "-shared", "-fPIC", "-o", tmp_path / "m.so", tmp_path / "m.c", "-lm"],
        check=True,
    )
    library = ctypes.CDLL(str(tmp_path / "m.so"))
    given = (ctypes.c_double * 1)(), (ctypes.c_char_p * 1)(b"XXL")
    assert library.m_predict(*given) == -1


#: Capitals, accents, characters of three and four bytes, ligatures, white space, one letter, no word at all.
DOCUMENTS = [
    *TEXTS,
    "A fine, FINE film: fine!",
    "Über Straße naïve İstanbul \u212aelvin",
    "the\t the  film\n\nand_the x y ½ ﬁne",
    "",
    "?!",
    "한국 영화 good \U0001d524\U0001d52c\U0001d52c\U0001d521 bad Ǆungla",
]
VECTORIZERS = {
    "tfidf": TfidfVectorizer(),
    "sublinear bigrams": TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), norm="l1"),
    "stop words": TfidfVectorizer(stop_words="english", ngram_range=(1, 3), binary=True),
    "no accents": TfidfVectorizer(strip_accents="unicode", ngram_range=(2, 2)),
    "ascii": CountVectorizer(strip_accents="ascii", token_pattern=r"(?u)\b\w+\b"),
    "characters": TfidfVectorizer(analyzer="char", ngram_range=(1, 3)),
    "characters of words": TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5)),
    "hashed": HashingVectorizer(n_features=2**6),
    "hashed, weighted": make_pipeline(
        HashingVectorizer(n_features=2**8, norm=None, alternate_sign=False), TfidfTransformer()
    ),
    "counted, weighted": make_pipeline(CountVectorizer(), TfidfTransformer(), SelectKBest(k=9)),
    "scaled": make_pipeline(CountVectorizer(lowercase=False), Normalizer(), MaxAbsScaler()),
    "union": make_union(TfidfVectorizer(), CountVectorizer(analyzer="char")),
}
#: What a graph of ONNX can say.
PLAIN = {
    "tfidf": TfidfVectorizer(lowercase=False),
    "bigrams": TfidfVectorizer(lowercase=False, ngram_range=(1, 2), sublinear_tf=True, norm="l1"),
    "trigrams": CountVectorizer(lowercase=False, ngram_range=(2, 3), binary=True),
    "selected": make_pipeline(TfidfVectorizer(lowercase=False), SelectKBest(k=9), MaxAbsScaler()),
}


def text_model(steps, several=False):
    y = np.arange(len(DOCUMENTS)) % (3 if several else 2)
    return make_pipeline(steps, LogisticRegression(C=10.0)).fit(DOCUMENTS, y)


def as_table(rows):
    return np.array(rows, dtype=object)[:, None]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", VECTORIZERS)
def test_texts_in_python_and_c(case, tmp_path):
    new = [*DOCUMENTS, "an unseen WORD, good and bad", "straße STRASSE naive"]
    for several in (False, True):
        model = text_model(VECTORIZERS[case], several)
        found = by_python(model, as_table(new))
        agree(model, new, found)
        agree(model, new, by_c(model, as_table(new), tmp_path))
        agree(model, new, said(export.to_sklearn(model), new))
    scope = {}
    exec(export.python(model), scope)
    assert scope["predict"](new[0]) == model.predict(new[:1])[0]  # a text is a row, too
    with pytest.raises(ValueError, match="no value"):
        scope["predict"]([None])


@pytest.mark.parametrize("case", PLAIN)
def test_texts_in_onnx(case):
    model = text_model(PLAIN[case], several=case == "bigrams")
    for rows in (DOCUMENTS, ["", "?"]):
        agree(model, rows, by_onnx(model, pd.DataFrame({"text": rows})))


def test_texts_beside_other_columns(tmp_path):
    n = len(DOCUMENTS)
    rows = pd.DataFrame(
        {
            "age": np.arange(n) % 5.0,
            "body": DOCUMENTS,
            "size": ["S", "M"] * (n // 2) + ["S"] * (n % 2),
        }
    )
    columns = make_column_transformer(
        (TfidfVectorizer(lowercase=False), "body"),
        (StandardScaler(), ["age"]),
        (OneHotEncoder(), ["size"]),
    )
    model = make_pipeline(columns, LogisticRegression()).fit(rows, np.arange(n) % 3 == 0)
    for found in (by_python(model, rows), by_c(model, rows, tmp_path), by_onnx(model, rows)):
        agree(model, rows, found)


def test_texts_that_no_language_can_say_are_refused_with_a_remedy():
    model = text_model(TfidfVectorizer())
    with pytest.raises(Refused, match=r"portable SQL.*export\.python"):
        export.sql(model, "t")
    for steps, remedy in (
        (TfidfVectorizer(), "lowercase=False"),
        (HashingVectorizer(n_features=16), "TfidfVectorizer"),
        (TfidfVectorizer(analyzer="char", lowercase=False), "analyzer='word'"),
        (TfidfVectorizer(lowercase=False, strip_accents="unicode"), "strip_accents=None"),
        (TfidfVectorizer(lowercase=False, stop_words="english", ngram_range=(1, 2)), "ngram_range"),
    ):
        with pytest.raises(Refused, match=remedy):
            export.onnx(text_model(steps))
    with pytest.raises(Refused, match=r"regular expressions.*export\.python"):
        export.c(text_model(TfidfVectorizer(token_pattern=r"[a-z]+")))
    with pytest.raises(Refused, match="a function is code"):
        export.python(text_model(TfidfVectorizer(tokenizer=str.split, token_pattern=None)))
    with pytest.raises(Refused, match="no other step"):
        export.python(
            text_model(make_pipeline(CountVectorizer(max_features=3), PolynomialFeatures(2)))
        )


def test_capital_sigma_has_no_score_in_c(tmp_path):
    model = make_pipeline(CountVectorizer(), LogisticRegression()).fit(["οδος", "καλη"], [0, 1])
    z, _, _ = by_c(model, as_table(["ΚΑΛΗ"]), tmp_path)
    assert z[0, 0] == pytest.approx(model.decision_function(["ΚΑΛΗ"])[0])
    (tmp_path / "s.c").write_text(export.c(model, "s"))
    command = [
        "cc",
        "-std=c99",
        "-shared",
        "-fPIC",
        "-o",
        tmp_path / "s.so",
        tmp_path / "s.c",
        "-lm",
    ]
    subprocess.run(command, check=True)
    library, none = ctypes.CDLL(str(tmp_path / "s.so")), (ctypes.c_double * 1)()
    for text in ("ΟΔΟΣ".encode(), b"\xff", None):
        assert library.s_predict(none, (ctypes.c_char_p * 1)(text)) == -1


def test_what_has_no_export_names_the_step_and_the_remedy():
    spread = make_pipeline(QuantileTransformer(n_quantiles=5), LogisticRegression()).fit(NUMBERS, Y)
    for write in (export.python, export.c, export.onnx, lambda m: export.sql(m, "t")):
        with pytest.raises(
            Refused, match=r"The step QuantileTransformer cannot be exported.*linsep\.save"
        ):
            write(spread)
    highest = make_pipeline(Normalizer("max"), LogisticRegression()).fit(NUMBERS, Y)
    with pytest.raises(Refused, match="portable SQL"):
        export.sql(highest, "t")
    agree(highest, NUMBERS, by_python(highest, NUMBERS))
    agree(highest, NUMBERS, by_onnx(highest, NUMBERS))
    X, y = frame()
    assert formula(make_pipeline(columns(), LogisticRegression()).fit(X, y)).texts == [2, 3]


def test_the_constant_of_polynomials_inside_a_norm(tmp_path):
    model = make_pipeline(PolynomialFeatures(2), Normalizer("l1"), LogisticRegression())
    everywhere(model.fit(NUMBERS, Y), NUMBERS, tmp_path)
