"""Fit on two executors and kill one of them in the middle; run by test_spark_faults.py in a process of its own."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

import numpy as np
import psutil
from pyspark.sql import SparkSession

from linsep import LinearSVC, LogisticRegression
from linsep.data.cluster.engines.spark_engine import SparkEngine


def executors(session):
    """Process ids of the executors, which the JVM of this session started."""
    found = []
    for one in psutil.Process(session.sparkContext._gateway.proc.pid).children(recursive=True):
        with suppress(psutil.Error):  # ended meanwhile
            if one.name() == "java" and "CoarseGrainedExecutorBackend" in " ".join(one.cmdline()):
                found.append(one.pid)
    return found


def kill_one_before_job(session, number):
    """Kill an executor before the job of this number; return a list that receives its process id."""
    run, jobs, killed = SparkEngine._run, [], []

    def counted(self, rdd, numbers):
        jobs.append(1)
        if len(jobs) == number:
            killed.append(executors(session)[0])
            os.kill(killed[0], signal.SIGKILL)
        return run(self, rdd, numbers)

    SparkEngine._run = counted
    return killed


def main():
    session = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.executor.memory", "512m")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4_000, 6))
    y = X.sum(axis=1) + rng.logistic(size=len(X)) > 0
    rows = [(*map(float, x), bool(t)) for x, t in zip(X, y, strict=True)]
    names = [*(f"x{j}" for j in range(6)), "y"]
    frame = session.createDataFrame(session.sparkContext.parallelize(rows, 3), names)
    models = LogisticRegression(), LinearSVC(C=0.1)
    whole = [model.fit(frame, "y").coef_.tolist() for model in models]
    killed = kill_one_before_job(session, 3)
    again = [model.fit(frame, "y").coef_.tolist() for model in models]
    assert killed and again == whole, (killed, again, whole)
    assert all(model.certificate_.certified for model in models)
    session.stop()
    print("the same bits after the loss of executor", killed)


if __name__ == "__main__":
    sys.exit(main())
