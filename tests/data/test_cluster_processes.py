"""Clusters of real processes: any number of workers gives the same bits, and so does one that loses some."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import contextmanager, suppress

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from tuned import tuning

from linsep import Encoder, LinearClassifier, LogisticRegression, checkpoint
from linsep.errors import ClusterError

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")

pytestmark = pytest.mark.slow

N, D, PARTS = 48_000, 12, 8
#: Models, and the number of entries for which the client has room: with less than all, rows stay on the workers.
MODELS = (
    (LogisticRegression(), 1 << 27),
    (LinearClassifier("hinge", C=0.1), 1 << 27),
    (LogisticRegression(solver="newton-pilot"), 1 << 27),
    (LogisticRegression(C=0.05, l1_ratio=1.0), 10_000),
    (LogisticRegression(C=np.inf), 10_000),
)


def cluster(workers, **settings):
    return distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
        **{"memory_limit": 0, **settings},
    )


def rows(number, pause=0.0):
    """A partition, made on its worker."""
    time.sleep(pause)
    rng = np.random.default_rng(number)
    return rng.normal(size=(N // PARTS, D))


def signs(X, number):
    rng = np.random.default_rng(1000 + number)
    return np.where(X.sum(axis=1) / 2 + rng.logistic(size=len(X)) > 0, "up", "down")


def table(make=rows):
    from dask.delayed import delayed

    X = [delayed(make, pure=False)(k) for k in range(PARTS)]
    return X, [delayed(signs, pure=False)(part, k) for k, part in enumerate(X)]


def in_memory():
    X = [rows(k) for k in range(PARTS)]
    return np.vstack(X), np.concatenate([signs(part, k) for k, part in enumerate(X)])


@contextmanager
def started(workers):
    """A client of a new cluster."""
    one = cluster(workers)
    with distributed.Client(one) as client, client.as_current():
        one.scheduler.allowed_failures = 1
        yield client
    try:  # Dask's list of workers may stumble over one that was killed before it was entered
        one.close()
    except KeyError:
        one.status = distributed.Status.closed


@pytest.fixture(scope="module")
def client():
    """One cluster for the tests that grow and shrink it: to start a worker takes longer than a fit."""
    with started(1) as client:
        yield client


@pytest.fixture
def doomed():
    """Three workers for one test, which kills some: Dask may count them wrongly from then on."""
    with started(3) as client:
        yield client


@pytest.fixture(scope="module")
def answers(client):
    """What one worker says."""
    return fitted()


def fitted():
    X, y = table()
    found = []
    for model, room in MODELS:
        with tuning(memory_entries=room):
            found.append(np.append(model.fit(X, y).coef_, model.intercept_))
    return found


def assert_same(found, answers):
    for a, b in zip(found, answers, strict=True):
        assert np.array_equal(a, b)


def resize(client, workers):
    client.cluster.scale(workers)
    client.wait_for_workers(workers, timeout=120)
    for _ in range(1200):
        if len(client.nthreads()) <= workers:
            return
        time.sleep(0.1)
    raise AssertionError(f"there are still {len(client.nthreads())} workers, not {workers}")


@pytest.mark.parametrize("workers", [2, 4, 8])
def test_any_number_of_workers_gives_the_same_bits(client, workers, answers):
    resize(client, workers)
    assert_same(fitted(), answers)


def test_the_answer_is_that_of_an_array(client, answers):
    X, y = in_memory()
    model = LogisticRegression(tol=1e-9).fit(X, y)
    np.testing.assert_allclose(answers[0][:-1], model.coef_[0], atol=1e-3)


def kill(client, count, after):
    """SIGKILL some workers a moment from now; they are processes of this test's own cluster."""
    pids = list(client.run(os.getpid).values())[:count]

    def strike():
        time.sleep(after)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    thread = threading.Thread(target=strike)
    thread.start()
    return thread


@pytest.mark.parametrize("after", [0.0, 0.3])
def test_a_worker_killed_during_a_fit_changes_no_bit(answers, doomed, after):
    blow = kill(doomed, 1, after)
    there = fitted()
    blow.join()
    assert_same(there, answers)


def test_all_workers_killed_during_a_fit_and_new_ones_started(answers, doomed):
    doomed.cluster.scheduler.allowed_failures = 3
    blow = kill(doomed, 3, 0.3)  # their nannies start new ones, which hold nothing
    there = fitted()
    blow.join()
    assert_same(there, answers)


def sleep_in_every_task(pause):
    """Slow down this worker."""
    from linsep.data.cluster import partition

    fast = partition.visit

    def slow(*args, **settings):
        slow.calls += 1
        time.sleep(pause)
        return fast(*args, **settings)

    slow.calls = 0
    partition.visit = slow


def slow_calls():
    from linsep.data.cluster import partition

    return partition.visit.calls


def test_a_slow_worker_changes_no_bit(answers):
    """Every task of one worker takes half a second more."""
    with started(2) as client:
        worker = next(iter(client.scheduler_info()["workers"]))
        client.run(sleep_in_every_task, 0.5, workers=[worker])
        model = LogisticRegression().fit(*table())
        assert client.run(slow_calls, workers=[worker])[worker] > 0
    assert_same([np.append(model.coef_, model.intercept_)], answers[:1])


def test_a_worker_that_stops_answering_for_a_while_changes_no_bit(answers):
    with started(2) as client:
        (pid, _) = client.run(os.getpid).values()
        wake = threading.Timer(3.0, os.kill, (pid, signal.SIGCONT))
        stop = threading.Timer(0.3, os.kill, (pid, signal.SIGSTOP))
        wake.start(), stop.start()
        model = LogisticRegression().fit(*table(slowly))
        wake.join()
    assert_same([np.append(model.coef_, model.intercept_)], answers[:1])


def spilled(dask_worker):
    return len(dask_worker.data.slow)


def test_partitions_that_workers_write_to_their_disks_change_no_bit(answers):
    """Workers that keep about one partition in memory, and the others on disk."""
    memory = {"target": 6e5 / 1e9, "spill": False, "pause": False, "terminate": False}
    with (
        dask.config.set({f"distributed.worker.memory.{name}": v for name, v in memory.items()}),
        cluster(2, memory_limit=10**9) as two,
        distributed.Client(two) as client,
        client.as_current(),
    ):
        X, y = (client.persist(column) for column in table())
        distributed.wait([*X, *y])
        assert sum(client.run(spilled).values()) >= PARTS // 2
        model = LogisticRegression().fit(X, y)
    assert_same([np.append(model.coef_, model.intercept_)], answers[:1])


@pytest.mark.parametrize("how", ["the scheduler stops", "the cluster is restarted"])
def test_a_lost_scheduler_ends_a_fit_and_the_next_cluster_resumes_it(answers, how, tmp_path):
    """No hang: the fit ends with an error, and its checkpoint goes on where another scheduler has the partitions."""
    state = tmp_path / "state"

    def stop(client):
        time.sleep(0.3)
        try:
            if how == "the scheduler stops":
                client.sync(client.cluster.scheduler.close)
            else:
                client.restart(timeout=20)
        except Exception:  # the connection over which it was asked is gone
            return

    ended = False
    with (
        suppress(Exception),
        started(2) as client,
    ):  # a cluster without a scheduler does not close well
        blow = threading.Thread(target=stop, args=(client,))
        blow.start()
        with pytest.raises(ClusterError), checkpoint(state):
            LogisticRegression().fit(*table(slowly))
        ended = True
        blow.join()
    assert ended
    with started(2), checkpoint(state):
        model = LogisticRegression().fit(*table(slowly))
    assert_same([np.append(model.coef_, model.intercept_)], answers[:1])


def slowly(number):
    return rows(number, 0.2)


def mixed(number):
    """A partition of a frame with text and gaps, made on its worker."""
    import pandas as pd

    X = rows(number, 0.05)
    city = np.array(["Oslo", "Bergen", None], dtype=object)[np.arange(len(X)) % 3]
    return pd.DataFrame({"a": np.where(X[:, 0] > 1.0, np.nan, X[:, 1]), "city": city})


def encoded():
    """Encoder and coefficients of a pipeline on lazy frames."""
    from dask.delayed import delayed

    dd = pytest.importorskip("dask.dataframe")
    X = dd.from_delayed([delayed(mixed)(k) for k in range(PARTS)], meta=mixed(0).head(0))
    y = [
        delayed(lambda part: (part["a"].fillna(1.0) > 0).to_numpy())(one) for one in X.to_delayed()
    ]
    model = make_pipeline(Encoder(standardise=True), LogisticRegression(C=0.01)).fit(X, y)
    return model[0].to_dict(), model[-1].coef_


def test_a_worker_killed_while_an_encoder_is_fitted_changes_no_bit(doomed):
    doomed.cluster.scheduler.allowed_failures = 3
    whole = encoded()
    blow = kill(doomed, 1, 0.2)
    there = encoded()
    blow.join()
    assert there[0] == whole[0] and np.array_equal(there[1], whole[1])


def other_version(version):
    import linsep

    linsep.__version__ = version


def test_a_worker_with_another_version_is_refused():
    """On a cluster of its own: a worker that was killed before comes back whenever it likes, with the right version."""
    with cluster(1) as one, distributed.Client(one) as client, client.as_current():
        client.run(other_version, "0.0.0")
        with pytest.raises(ClusterError, match=r"A worker has linsep 0\.0\.0"):
            LogisticRegression().fit(*table())


def deadly(number):
    if number == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return rows(number)


def test_a_partition_that_kills_its_workers_is_named(doomed):
    with pytest.raises(ClusterError, match=r"Partition .*5.* workers died") as error:
        LogisticRegression().fit(*table(deadly))
    assert 5 in error.value.partitions


def test_no_workers_is_an_error_and_a_closed_client_too():
    with dask.config.set({"linsep.no-workers-timeout": "1s"}), cluster(0) as none:
        with distributed.Client(none) as client, client.as_current():
            with pytest.raises(ClusterError, match="no workers for 1 seconds"):
                LogisticRegression().fit(*table())
        with (
            client.as_current(),
            pytest.raises(ClusterError, match=r"no Dask client|client is clo"),
        ):
            LogisticRegression().fit(*table())
