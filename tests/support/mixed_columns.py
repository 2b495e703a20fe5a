"""Rows that need preprocessing: numbers with gaps, levels and texts, and a ColumnTransformer for them."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

TEXTS = ["good film", "bad film", "very good", "very bad", "good good", "bad plot", "good plot"] * 6
SENTIMENT = np.array(["bad" if "bad" in text else "good" for text in TEXTS])


def frame(n: int = 120, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """A table with gaps, levels and numbers of very different size, and two classes."""
    rng = np.random.default_rng(seed)
    age, income = rng.uniform(18, 80, n), rng.lognormal(10, 1, n)
    city, size = rng.choice(["Oslo", "Bergen", "Rome"], n), rng.choice(["S", "M", "L"], n)
    z = 0.05 * (age - 50) + (city == "Rome") - (size == "S") + 0.3 * rng.normal(size=n)
    age[::9] = np.nan
    return pd.DataFrame({"age": age, "income": income, "city": city, "size": size}), z > 0


def columns() -> ColumnTransformer:
    """Imputed and scaled numbers, one-hot and ordinal codes."""
    return make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["age", "income"]),
        (OneHotEncoder(handle_unknown="ignore"), ["city"]),
        (OrdinalEncoder(categories=[["S", "M", "L"]]), ["size"]),
    )
