"""Fits on a cluster: linsep against dask-ml on the same Dask workers, and against Spark's MLlib in local mode.

    python benchmarks/cluster.py [--rows 400000] [--features 28] [--workers 2] [--without labels,spark]
    python benchmarks/cluster.py --scaling | --classes

One table of normal numbers with noisy labels, cut into partitions that the workers hold before any clock starts.
The objective is ``1/2 |w|^2 + C sum loss`` with C = 1. linsep stops at its certificate; the others have none, so their
objective is computed outside the clock and compared with the lower bound that linsep has proven. dask-ml penalises the
intercept too, which on so many rows moves the optimum by far less than what is measured. The libraries take turns
``--repeats`` times, so that other work on the machine meets all of them; times are of the wall, the least of each.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from pathlib import Path
from typing import Any

import machine
import numpy as np

from linsep import LinearClassifier, LinearRegressor, LinearSVC, LogisticRegression

PARTITIONS = 8
AGAIN = 15  # seconds of fits after which none is repeated
RESULTS = Path(__file__).parent / "results" / "cluster.csv"
Row = dict[str, Any]


def part(number: int, n: int, d: int) -> np.ndarray:
    """Some rows, the noise of their labels in the last column."""
    rng = np.random.default_rng(number)
    return rng.normal(size=(n, d + 1))


def truth(d: int) -> np.ndarray:
    return np.random.default_rng(10_000).normal(size=d)


def table(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """All rows in memory, and their scores with noise."""
    Z = np.vstack([part(k, n // PARTITIONS, d) for k in range(PARTITIONS)])
    return np.ascontiguousarray(Z[:, :d]), Z[:, :d] @ truth(d) + 3.0 * Z[:, d]


def value(loss: str, X: np.ndarray, y: np.ndarray, w: Any, b: float) -> float:
    """The objective, C = 1."""
    m = np.where(y, 1.0, -1.0) * (X @ np.ravel(w) + b)
    losses = np.logaddexp(0.0, -m) if loss == "logistic" else np.maximum(0.0, 1.0 - m)
    return 0.5 * float(np.ravel(w) @ np.ravel(w)) + float(losses.sum())


@dataclass
class Contender:
    """A fit that is timed: its name, its loss, the call, and coefficients and intercept of what it returns."""

    who: str
    loss: str
    fit: Callable[[], Any]
    read: Callable[[Any], tuple[Any, float]]
    seconds: list[float] = field(default_factory=list)
    model: Any = None
    failure: str = ""

    def run(self) -> None:
        """Fit once more, unless it failed or took long."""
        if self.failure or sum(self.seconds) > AGAIN:
            return
        began = time.perf_counter()
        try:
            self.model = self.fit()
        except Exception as error:
            self.failure = f"{type(error).__name__}: {error}"[:90]
            return
        self.seconds.append(time.perf_counter() - began)


def raced(options: Any, contenders: list[Contender], X: np.ndarray, z: np.ndarray) -> list[Row]:
    """Let the contenders take turns; their least times, and how far each stopped above the proven lower bound."""
    for _ in range(options.repeats):
        for one in contenders:
            one.run()
    bounds = {one.loss: one.model.certificate_.dual for one in contenders if one.who == "linsep"}
    found = []
    for one in contenders:
        if one.failure:
            found.append(line(one.who, one.loss, np.nan, np.nan, one.failure))
            continue
        reached = value(one.loss, X, z > 0, *one.read(one.model))
        note = f"certified, {one.model.traffic_.rounds} rounds" if one.who == "linsep" else ""
        gap = (reached - bounds[one.loss]) / reached
        found.append(line(one.who, one.loss, min(one.seconds), gap, note))
    return found


def line(who: str, loss: str, seconds: float, gap: float, note: str) -> Row:
    print(f"| {who} | {loss} | {seconds:.2f} | {gap:.1e} | {note} |", flush=True)
    return {
        "who": who,
        "loss": loss,
        "seconds": f"{seconds:.3f}",
        "gap": f"{gap:.2e}",
        "note": note,
    }


def plane(model: Any) -> tuple[Any, float]:
    return model.coef_, float(np.ravel(model.intercept_)[0])


def on_dask(X: np.ndarray, z: np.ndarray, left_out: Sequence[str]) -> list[Contender]:
    """linsep and dask-ml on the same workers."""
    import dask.array as da
    from dask.distributed import wait

    size = len(z) // PARTITIONS
    rows = da.from_array(X, chunks=(size, -1)).persist()
    labels = da.from_array(z > 0, chunks=size).persist()
    wait([rows, labels])
    kinds = {"logistic": LogisticRegression, "hinge": LinearSVC}
    found = [
        Contender("linsep", loss, lambda kind=kind: kind().fit(rows, labels), plane)
        for loss, kind in kinds.items()
    ]
    try:
        from dask_ml.linear_model import LogisticRegression as Rival
    except ImportError:
        print("| dask-ml | absent | | | |")
        return found
    for solver in ("admm", "lbfgs", "newton", "proximal_grad", "gradient_descent"):
        if solver in left_out:
            continue
        name = f"dask-ml, {solver}" + (" (default)" if solver == "admm" else "")
        fit = lambda solver=solver: Rival(solver=solver).fit(rows, labels)  # noqa: E731
        found.append(Contender(name, "logistic", fit, plane))
    return found


def labels_and_weights(options: Any, X: np.ndarray, z: np.ndarray) -> list[Row]:
    """What becomes of several classes, of class weights and of names, on the first rows."""
    import dask.array as da
    from dask_ml.linear_model import LogisticRegression as Rival

    X, z = X[:20_000], z[:20_000]
    rare = z > np.quantile(z, 0.9)
    questions = {
        "three classes": (np.digitize(z, np.quantile(z, [0.3, 0.7])), {}),
        "class_weight='balanced'": (rare, {"class_weight": "balanced"}),
        "labels 'no' and 'yes'": (np.where(z > 0, "yes", "no"), {}),
    }
    found = []
    for question, (y, extra) in questions.items():
        for who, kind in (("linsep", LogisticRegression), ("dask-ml", Rival)):
            rows, labels = da.from_array(X, chunks=(5000, -1)), da.from_array(y, chunks=5000)
            try:
                guess = np.asarray(kind(**extra).fit(rows, labels).predict(rows))
                kinds = sorted(map(str, np.unique(guess)))
                recall = [float(np.mean(guess[y == c] == c)) for c in np.unique(y)]
                note = (
                    f"predicts {', '.join(kinds)}; recall {', '.join(f'{r:.2f}' for r in recall)}"
                )
            except Exception as error:
                note = f"{type(error).__name__}: {error}"[:90]
            print(f"| {who} | {question} | {note} |", flush=True)
            found.append({"who": who, "loss": question, "seconds": "", "gap": "", "note": note})
    return found


def spark_plane(model: Any) -> tuple[Any, float]:
    return model.coefficients.toArray(), float(model.intercept)


@contextmanager
def on_spark(options: Any, X: np.ndarray, z: np.ndarray) -> Iterator[list[Contender]]:
    """MLlib's logistic regression and linear support vector machine; its regParam is 1/(C n)."""
    try:
        from pyspark.ml import classification
        from pyspark.ml.feature import VectorAssembler
        from pyspark.sql import SparkSession
    except ImportError:
        print("| Spark | absent | | | |")
        yield []
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    n, d = X.shape
    session = (
        SparkSession.builder.master(f"local[{options.workers}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    with tempfile.TemporaryDirectory() as folder:
        names = [f"x{j}" for j in range(d)]
        columns = {name: X[:, j] for j, name in enumerate(names)}
        pq.write_table(
            pa.table({**columns, "label": (z > 0).astype(float)}), f"{folder}/rows.parquet"
        )
        frame = session.read.parquet(f"{folder}/rows.parquet").repartition(PARTITIONS)
        made = VectorAssembler(inputCols=names, outputCol="features").transform(frame)
        made = made.select("features", "label").cache()
        made.count()  # the rows are in memory before the clock starts
        common = {"regParam": 1.0 / n, "maxIter": 200, "standardization": False}
        found = []
        for kind, loss in (("LogisticRegression", "logistic"), ("LinearSVC", "hinge")):
            for tol in (1e-6, 1e-9):
                learner = getattr(classification, kind)(**common, tol=tol)
                fit = lambda learner=learner: learner.fit(made)  # noqa: E731
                found.append(Contender(f"Spark {kind}, tol={tol:g}", loss, fit, spark_plane))
        yield found
    session.stop()


def peak() -> int:
    """On a worker: the most memory that its process has held, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith("VmHWM")))


def scaling(options: Any) -> None:
    """Rounds, bytes and memory for 1 to 8 workers, which make their partitions themselves."""
    import dask.array as da
    from dask.distributed import Client

    n, d = options.rows, options.features
    print(
        "| workers | loss | rounds | sent | received | most memory of a worker | before |\n|"
        + "---|" * 7
    )
    for workers in (1, 2, 4, 8):
        for loss, kind in (("logistic", LogisticRegression), ("hinge", LinearSVC)):
            with Client(
                n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0"
            ) as client:
                X = da.random.default_rng(0).normal(size=(n, d), chunks=(n // 16, d))
                noise = da.random.default_rng(1).logistic(size=n, chunks=n // 16)
                before = max(client.run(peak).values())
                model = kind().fit(X, X.sum(axis=1) + 3.0 * noise > 0)
                held = max(client.run(peak).values())
                traffic = model.traffic_
                print(
                    f"| {workers} | {loss} | {traffic.rounds} | {traffic.sent / 1e6:.2f} MB | "
                    f"{traffic.received / 1e6:.1f} MB | {held / 1e6:.0f} MB | {before / 1e6:.0f} MB |",
                    flush=True,
                )


def problems() -> dict[str, tuple[Any, Any, Any]]:
    """Small examples of every class of problem: model, rows and targets."""
    import scipy.sparse as sp

    rng = np.random.default_rng(0)

    def sparse(n: int, d: int, k: int = 20) -> Any:
        columns = np.minimum((d * rng.random((n, k)) ** 3).astype(np.int32), d - 1)
        X = sp.csr_matrix((rng.normal(size=n * k), columns.ravel(), np.arange(n + 1) * k), (n, d))
        X.sum_duplicates()
        return X

    def scored(X: Any) -> tuple[Any, Any]:
        z = X @ (rng.normal(size=X.shape[1]) * (rng.random(X.shape[1]) < 0.3))
        return X, z / z.std() + 0.7 * rng.logistic(size=len(z))

    def three(z: Any) -> Any:
        return np.digitize(z, [-0.7, 0.7])

    T, t = scored(rng.normal(size=(20_000, 20)))
    W, w = scored(rng.normal(size=(300, 900)))
    S, s = scored(sparse(20_000, 100_000))
    M, m = scored(sparse(20_000, 1_000_000))
    side = T[:, 0] > 0
    apart = T + np.outer(np.where(side, 0.2, -0.2), np.eye(20)[0])
    lasso = {"l1_ratio": 1.0, "C": 0.01}
    return {
        "logistic": (LogisticRegression(), T, t > 0),
        "squared hinge": (LinearClassifier("squared_hinge"), T, t > 0),
        "softmax": (LogisticRegression(), T, three(t)),
        "L1 logistic": (LogisticRegression(**lasso), T, t > 0),
        "L1 squared": (LinearRegressor("squared", **lasso), T, t),
        "L1 softmax": (LogisticRegression(**lasso), T, three(t)),
        "L1 logistic, sparse": (LogisticRegression(l1_ratio=1.0, C=0.1), S, s > 0),
        "wide logistic": (LogisticRegression(C=0.1), W, w > 0),
        "wide softmax": (LogisticRegression(C=0.1), W, three(w)),
        "sparse logistic": (LogisticRegression(), S, s > 0),
        "sparse squared hinge": (LinearClassifier("squared_hinge"), S, s > 0),
        "sparse softmax": (LogisticRegression(), S, three(s)),
        "sparse logistic, 10^6 features": (LogisticRegression(), M, m > 0),
        "C=inf logistic": (LogisticRegression(C=np.inf), T, t > 0),
        "C=inf softmax": (LogisticRegression(C=np.inf), T, three(t)),
        "C=inf squared": (LinearRegressor("squared", C=np.inf), T, t),
        "hard margin": (LinearSVC(C=np.inf), apart, side),
        "L1 hinge": (LinearClassifier("hinge", **lasso), T, t > 0),
        "quantile": (LinearRegressor("pinball"), T, t),
        "wide hinge": (LinearSVC(C=0.1), W, w > 0),
        "sparse hinge": (LinearSVC(), S, s > 0),
        "Crammer and Singer": (LinearSVC(multiclass="crammer_singer"), T, three(t)),
        "groups": (LogisticRegression(feature_groups=np.arange(20) // 4, **lasso), T, t > 0),
    }


def classes() -> None:
    """Where each class of problem is fitted, if the client has memory for its rows and if it has none."""
    from dask.delayed import delayed
    from dask.distributed import Client

    from linsep.errors import Refused

    dataset: Any = import_module("linsep.data.dataset")
    fields = ["problem", "client", "rows", "features", "solver", "rounds", "sent", "received"]
    facts = machine.facts(2)
    found = []
    with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=":0"):
        for name, (model, X, y) in problems().items():
            edges = np.linspace(0, len(y), 6).astype(int)
            parts = [[delayed(a[lo:hi]) for lo, hi in pairwise(edges)] for a in (X, y)]
            for client, room in (("has memory", 1 << 27), ("has none", 1000)):
                dataset.MEMORY_ENTRIES = room
                row = {"problem": name, "client": client, "rows": len(y), "features": X.shape[1]}
                try:
                    model.fit(*parts)
                    traffic = model.traffic_
                    row |= {"solver": model.solver_, "rounds": traffic.rounds}
                    row |= {"sent": traffic.sent, "received": traffic.received}
                    assert model.certificate_.certified, name
                except Refused:
                    row["solver"] = "refused"
                found.append(row)
                print(" | ".join(str(row.get(field, "")) for field in fields), flush=True)
    with RESULTS.with_name("cluster_classes.csv").open("w", newline="") as out:
        out.writelines(f"# {name}: {fact}\n" for name, fact in facts.items())
        writer = csv.DictWriter(out, fields)
        writer.writeheader()
        writer.writerows(found)


def save(options: Any, rows: list[Row], facts: dict[str, str]) -> None:
    """The table with the facts it means nothing without."""
    for name in ("dask", "distributed", "dask-ml", "pyspark"):
        try:
            facts[name] = version(name)
        except PackageNotFoundError:
            facts[name] = "absent"
    facts["load average at the end"] = f"{machine.load_average():.2f}"
    facts["data"] = f"{options.rows} x {options.features}, {PARTITIONS} partitions, C = 1"
    with RESULTS.open("w", newline="") as out:
        out.writelines(f"# {name}: {fact}\n" for name, fact in facts.items())
        writer = csv.DictWriter(out, ["who", "loss", "seconds", "gap", "note"])
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    """Run what is asked for and write the table."""
    few: Any = import_module("linsep.data.memory_rows")
    few.CLUSTER_BYTES = 0  # rows stay on the workers, as those of large tables do
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--features", type=int, default=28)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--without",
        default="",
        help="labels, spark or solvers of dask-ml, with commas between them",
    )
    parser.add_argument(
        "--scaling", action="store_true", help="rounds and memory for 1 to 8 workers"
    )
    parser.add_argument(
        "--classes", action="store_true", help="rounds and bytes of each class of problem"
    )
    options = parser.parse_args()
    if options.scaling:
        return scaling(options)
    if options.classes:
        return classes()
    left_out = options.without.split(",")
    facts = machine.facts(options.workers)
    X, z = table(options.rows, options.features)
    rows: list[Row] = []
    print("| | loss | seconds | gap | |\n|---|---|---|---|---|")
    from dask.distributed import Client

    cluster = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    spark = nullcontext([]) if "spark" in left_out else on_spark(options, X, z)
    with warnings.catch_warnings(), Client(n_workers=options.workers, **cluster), spark as others:
        warnings.simplefilter("ignore")
        rows += raced(options, [*on_dask(X, z, left_out), *others], X, z)
        if "labels" not in left_out:
            rows += labels_and_weights(options, X, z)
    save(options, rows, facts)


if __name__ == "__main__":
    main()
