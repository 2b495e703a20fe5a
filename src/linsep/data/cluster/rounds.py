"""The client's side of a round: submit tasks, wait for them, and say what went wrong."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from linsep.errors import ClusterError, LinsepError

POLL = 0.5  # seconds between two looks at the workers
NO_WORKERS = "linsep.no-workers-timeout"  # the key of Dask's configuration, and its default
NO_WORKERS_SECONDS = 30.0


@dataclass
class Traffic:
    """What a fit has cost the network.

    ``rounds`` counts the times that all partitions, or those concerned, were asked; ``sent`` and ``received`` are
    bytes of functions and vectors to the partitions, and of sums, rows and vectors from them.
    """

    rounds: int = 0
    sent: int = 0
    received: int = 0


class Rounds:
    """The client's side of a round: submit, wait, and say what went wrong."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.traffic = Traffic()
        self.origins: dict[str, int] = {}  # the user's own tasks, by the number of their partition
        self._run = uuid.uuid4().hex[:12]
        self._refuse_closed()

    def keys(self, what: str, numbers: Sequence[int]) -> list[str]:
        """Names of tasks that tell what they are about."""
        return [f"linsep-{what}-{self._run}-{self.traffic.rounds}-{i}" for i in numbers]

    def map(self, what: str, fn: Any, numbers: Sequence[int], *args: Any, **common: Any) -> Any:
        """A task for each of the numbered partitions."""
        self._refuse_closed()
        keys = self.keys(what, numbers)
        return self.client.map(fn, *args, key=keys, pure=False, **common)

    def results(self, futures: Sequence[Any]) -> list[Any]:
        """The results, in order; never waits for ever when nobody is there to work."""
        from distributed import wait  # noqa: PLC0415

        idle_since = None
        pending = list(futures)
        try:
            while True:
                self._refuse_closed()
                try:
                    wait(pending, timeout=POLL)  # type: ignore[no-untyped-call]
                    break
                except TimeoutError:
                    idle_since = self._still_idle(idle_since)
            return list(self.client.gather(pending))
        except LinsepError:
            raise
        except Exception as error:
            raise self._explained(error, pending) from error

    def _refuse_closed(self) -> None:
        if self.client.status != "running":
            raise ClusterError(
                f"The Dask client is {self.client.status}: connect a new one and fit again."
            )

    def _still_idle(self, since: float | None) -> float | None:
        """When the last worker was seen to be gone; raises once that is too long ago."""
        import dask  # noqa: PLC0415
        from dask.utils import parse_timedelta  # noqa: PLC0415

        if self.client.nthreads():
            return None
        now = time.monotonic()
        limit = parse_timedelta(dask.config.get(NO_WORKERS, NO_WORKERS_SECONDS))
        if since is not None and now - since >= limit:
            raise ClusterError(
                f"The cluster has had no workers for {limit:g} seconds: start some, or wait longer with "
                f"dask.config.set({{{NO_WORKERS!r}: '10 minutes'}})."
            )
        return now if since is None else since

    def _number(self, task: str) -> int | None:
        """Which partition a task is about."""
        ours = ("linsep-open-", "linsep-sum-", "linsep-map-", "linsep-targets-", "linsep-spill-")
        if task.startswith(ours):
            return int(task.rsplit("-", 1)[1])
        return self.origins.get(task)

    def _explained(self, error: Exception, futures: Sequence[Any]) -> ClusterError:
        """What Dask says, in the words of a fit."""
        from distributed.scheduler import KilledWorker  # noqa: PLC0415

        if isinstance(error, KilledWorker):
            killed = [f.exception() for f in futures if f.status == "error"]
            tasks = sorted({str(one.task) for one in killed if isinstance(one, KilledWorker)})
            numbers = {self._number(task) for task in tasks}
            known = tuple(sorted(number for number in numbers if number is not None))
            names = ", ".join(map(str, known or tasks))
            return ClusterError(
                f"Partition {names} (counting from 0): {error.allowed_failures + 1} workers died, one after the "
                "other, while they had it. It, or one of them, is too large for their memory, or its data bring "
                "them down. Look at it, cut it into smaller ones, or give the workers more memory.",
                known,
            )
        if self.client.status != "running":
            return ClusterError(f"The Dask client was closed during the fit: {error}")
        return ClusterError(f"The cluster cannot go on: {type(error).__name__}: {error}")
