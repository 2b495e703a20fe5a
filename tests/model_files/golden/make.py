"""How the golden files were made; run only when the format number grows, and keep the old files."""

from pathlib import Path

import pyarrow as pa
from sklearn.pipeline import make_pipeline

import linsep

HERE = Path(__file__).parent
X = [[0.0, 1.0], [1.0, 0.5], [2.0, 3.0], [3.0, 2.0], [4.0, 5.0], [5.0, 4.0]]
FRAME = pa.table(
    {
        "age": [31.0, 58.0, None, 40.0, 22.0, 67.0],
        "city": ["Oslo", "Rome", "Oslo", None, "Rome", "Oslo"],
        "member": [True, False, True, True, False, False],
    }
)
MODELS = {
    "logistic": lambda: linsep.LogisticRegression(C=2.0).fit(X, ["a", "a", "b", "a", "b", "b"]),
    "multinomial": lambda: linsep.LogisticRegression().fit(X, [0, 0, 1, 1, 2, 2]),
    "ovr": lambda: linsep.LinearClassifier("squared_hinge").fit(X, [0, 1, 2, 0, 1, 2]),
    "regressor": lambda: linsep.LinearRegressor("huber", C=1.0).fit(
        X, [1.0, 2.0, 2.5, 4.0, 4.5, 7.0]
    ),
    "table": lambda: make_pipeline(linsep.Encoder(), linsep.LogisticRegression()).fit(
        FRAME, [0, 1, 0, 0, 1, 1]
    ),
}

if __name__ == "__main__":
    for name, make in MODELS.items():
        linsep.save(make(), HERE / f"{name}-1.linsep")
