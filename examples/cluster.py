"""Fit on a Dask cluster: rows stay on the workers, only sums travel.

Run it as it is and it starts a small cluster on this machine. On a real one give the address of its scheduler, and
the files that every worker can read, one partition each::

    python examples/cluster.py tcp://scheduler:8786 "/data/clicks/part-*.parquet" clicked
"""

from __future__ import annotations

import sys

import numpy as np
from dask.delayed import delayed
from dask.distributed import Client, LocalCluster

import linsep

FEATURES, ROWS, PARTITIONS = 20, 10_000, 6


def rows(number: int) -> np.ndarray:
    """A partition: on a real cluster, read from a file or a database by the worker that keeps it."""
    return np.random.default_rng(number).normal(size=(ROWS, FEATURES))


def labels(X: np.ndarray, number: int) -> np.ndarray:
    """Two classes that overlap."""
    noise = np.random.default_rng([number, 1]).logistic(size=len(X))
    return np.where(X[:, :5].sum(axis=1) + noise > 0, "click", "none")


def made_here() -> tuple[list, list]:
    """Partitions that workers make when they are asked."""
    X = [delayed(rows)(k) for k in range(PARTITIONS)]
    return X, [delayed(labels)(part, k) for k, part in enumerate(X)]


def report(X, y) -> None:
    """Fit, check the certificate on the cluster, count a class without moving a row."""
    model = linsep.LogisticRegression(C=1.0).fit(X, y)
    print(model.certificate_)
    traffic = model.traffic_
    print(f"{traffic.rounds} rounds, {traffic.sent:,} bytes sent, {traffic.received:,} received")
    print("verified:", linsep.verify(model, X, y).certified)
    share = (model.predict(X) == model.classes_[0]).mean()  # a dask array until it is computed
    print(f"predicted {str(model.classes_[0])!r}: {share.compute():.1%}")


def main(arguments: list[str]) -> None:
    """On the cluster that is named, or on one of two processes."""
    if len(arguments) == 3:
        address, pattern, target = arguments
        with Client(address) as client:
            report(linsep.scan(pattern, target=target, client=client), None)
        return
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as local:
        with Client(local):
            report(*made_here())


if __name__ == "__main__":
    main(sys.argv[1:])
