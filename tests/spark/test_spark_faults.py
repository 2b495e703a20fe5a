"""Executors that are lost during a fit on Spark, in a small cluster of processes on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark


def test_an_executor_killed_during_a_fit_changes_no_bit():
    pyspark = pytest.importorskip("pyspark")
    settings = {
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_SCALA_VERSION": "2.13",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_HOSTNAME": "localhost",
        "PYSPARK_PYTHON": sys.executable,
    }
    ended = subprocess.run(
        [sys.executable, Path(__file__).with_name("lost_executor.py")],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert "the same bits after the loss of executor" in ended.stdout
