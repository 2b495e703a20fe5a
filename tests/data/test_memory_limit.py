"""Data of four times the memory that a process may still take after its imports, enforced by the system."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

ROOM, D, CHUNK, TIMES = 48 << 20, 100, 14_000, 18  # 4.0 times the room

PROGRAM = """
import json, resource, sys, threading

threading.stack_size(1 << 20)  # stacks count as data
import numpy as np
from linsep import LinearClassifier, LinearSVC, LogisticRegression, scan, separate

kind, folder, ending, room = sys.argv[1:]
models = {
    "logistic": LogisticRegression(n_threads=2),
    "squared": LinearClassifier("squared", n_threads=2),
    "squared hinge": LinearClassifier("squared_hinge", n_threads=2),
    "hinge": LinearSVC(n_threads=2),
    "three classes": LogisticRegression(n_threads=2),
}

def answer(name):
    target = "y"
    if ending == "npy":
        target = np.load(f"{folder}/{name}-{'classes' if kind == 'three classes' else 'y'}.npy")
    limit = 0 if name == "small" else None  # the small table stays on disk, as the large one does
    with scan(f"{folder}/{name}.{ending}", target=target, memory_limit=limit) as rows:
        if kind == "separability":
            return not separate(rows, n_threads=2).separable, rows.rows.nbytes
        model = models[kind].fit(rows)
        return bool(model.certificate_.certified), rows.rows.nbytes

# Imports, threads and the buffers of libraries come first, whichever method is chosen later.
for solver in ("newton", "newton-pilot", "auto"):
    if kind in ("logistic", "squared", "squared hinge"):
        models[kind].set_params(solver=solver)
    answer("small")
with open("/proc/self/status") as lines:
    now = next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmData"))
resource.setrlimit(resource.RLIMIT_DATA, (now + int(room), now + int(room)))
try:
    np.ones(4 * int(room) // 8)
    held = True
except MemoryError:
    held = False
print(json.dumps([held, *answer("large")]))
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="reads /proc"),
]


def chunk():
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(CHUNK, D)), 2)
    return X, X[:, 0] + X[:, 1] + rng.normal(size=CHUNK)


def write_npy(folder: Path, name: str, times: int) -> None:
    X, z = chunk()
    rows = np.lib.format.open_memmap(folder / f"{name}.npy", "w+", float, (times * CHUNK, D))
    for k in range(times):
        rows[k * CHUNK : (k + 1) * CHUNK] = X
    np.save(folder / f"{name}-y.npy", np.tile(z > 0, times))
    np.save(folder / f"{name}-classes.npy", np.tile(np.digitize(z, [-1.0, 1.0]), times))


def write_table(folder: Path, name: str, times: int, ending: str) -> None:
    pa = pytest.importorskip("pyarrow")
    X, z = chunk()
    table = pa.table({**{f"x{j}": X[:, j] for j in range(D)}, "y": (z > 0).astype(int)})
    path = str(folder / f"{name}.{ending}")
    if ending == "parquet":
        from pyarrow import parquet

        with parquet.ParquetWriter(path, table.schema) as writer:
            for _ in range(times):
                writer.write_table(table)
    elif ending == "csv":
        from pyarrow import csv

        with csv.CSVWriter(path, table.schema) as writer:
            for _ in range(times):
                writer.write_table(table)
    else:
        with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            for _ in range(times):
                writer.write_table(table)


def run(kind: str, folder: Path, ending: str) -> None:
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}
    env["MALLOC_MMAP_THRESHOLD_"] = "131072"  # else large blocks leave holes once one was freed
    env["ARROW_DEFAULT_MEMORY_POOL"] = "system"  # the others reserve more than they use
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), kind, str(folder), ending, str(ROOM)],
        capture_output=True,
        text=True,
        env=env,
        check=False,
        timeout=120,
    )
    assert found.returncode == 0, found.stderr
    held, certified, size = json.loads(found.stdout)
    assert not held and certified and size >= 4 * ROOM


@pytest.fixture(scope="module")
def npy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("npy")
    write_npy(folder, "small", 1)
    write_npy(folder, "large", TIMES)
    return folder


KINDS = ["logistic", "squared", "squared hinge", "hinge", "three classes", "separability"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_solver(kind, npy):
    run(kind, npy, "npy")


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv"])
def test_every_kind_of_file(ending, tmp_path):
    for name, times in (("small", 1), ("large", TIMES)):
        write_table(tmp_path, name, times, ending)
    run("logistic", tmp_path, ending)
