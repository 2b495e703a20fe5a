"""A fit on a cluster whose client dies goes on from its checkpoint, to the same bits."""

from __future__ import annotations

import signal
import time

import numpy as np
import pytest
from started import output, start

from linsep import LinearSVC, LogisticRegression, checkpoint
from linsep.data.journal import Journal
from linsep.errors import BadInput

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

N, D, PARTS = 24_000, 22, 4
MODELS = {
    "newton-rounds": LogisticRegression(),
    "several": LogisticRegression(),
    "ovr": LogisticRegression(multiclass="ovr"),
    "hinge": LinearSVC(),
}


class Killed(BaseException):
    pass


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    z = X @ rng.normal(size=D) + 3 * rng.normal(size=N)
    return da.from_array(X, chunks=(N // PARTS, D)), z


def fitted(name, table):
    X, z = table
    y = np.digitize(z, [-3.0, 3.0]) if name in ("several", "ovr") else z > 0
    model = MODELS[name]
    return type(model)(**model.get_params()).fit(X, da.from_array(y, chunks=N // PARTS))


def recording(monkeypatch, most=np.inf):
    """Counts the records; the process would have died while it wrote the one after ``most``."""
    record, made = Journal.record, []

    def counts(self, vectors):
        if len(made) == most:
            raise Killed
        made.append(1)
        record(self, vectors)

    monkeypatch.setattr(Journal, "record", counts)
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "newton-rounds",
        "hinge",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("several", "ovr")),
    ],
)
def test_goes_on_to_the_same_bits(name, client, table, tmp_path, monkeypatch):
    alone = fitted(name, table)
    with monkeypatch.context() as patch, checkpoint(tmp_path / "state"):
        records = recording(patch)
        fitted(name, table)
    for passes in (1, len(records) - 1):
        with monkeypatch.context() as patch, pytest.raises(Killed):
            recording(patch, passes)
            with checkpoint(tmp_path / "state"):
                fitted(name, table)
        with checkpoint(tmp_path / "state"):
            again = fitted(name, table)
        assert np.array_equal(alone.coef_, again.coef_) and alone.n_passes_ == again.n_passes_
        assert again.certificate_ == alone.certificate_ and again.certificate_.certified
        assert not (tmp_path / "state").exists()


def test_other_rows_are_refused(client, table, tmp_path, monkeypatch):
    X, z = table
    with monkeypatch.context() as patch, pytest.raises(Killed):
        recording(patch, 1)
        with checkpoint(tmp_path / "state"):
            fitted("newton-rounds", table)
    for other in ((X + 1e-9, z), (X, -z)):
        with pytest.raises(BadInput, match="made by another fit"), checkpoint(tmp_path / "state"):
            fitted("newton-rounds", other)


FIT = """
import sys, time
import dask, dask.array as da, numpy as np
from dask.distributed import Client
from linsep import LogisticRegression, checkpoint

dask.config.set({"linsep.memory-limit": 0})  # the small table stays on the workers, as a large one does
with Client(sys.argv[1]):
    X = da.random.default_rng(0).normal(size=(40_000, 30), chunks=(10_000, 30))
    y = X.sum(axis=1) + da.random.default_rng(1).logistic(size=40_000, chunks=10_000) > 0
    with checkpoint(sys.argv[2]):
        model = LogisticRegression(solver="newton-cg", tol=1e-5).fit(X, y)
        print([x.hex() for x in model.coef_[0].tolist()], model.traffic_.rounds)
"""


@pytest.mark.slow
def test_the_client_is_killed_and_started_again(tmp_path):
    state = tmp_path / "state"
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=0
    ) as cluster:
        address = cluster.scheduler_address
        whole, rounds = output(start(FIT, address, state)).rsplit(" ", 1)
        process = start(FIT, address, state)
        while process.poll() is None and not (state.exists() and state.stat().st_size > 1000):
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL and state.exists()
        again, fewer = output(start(FIT, address, state)).rsplit(" ", 1)
        assert again == whole and int(fewer) < int(rounds)
        assert not state.exists()
