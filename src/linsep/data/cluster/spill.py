"""Copies of cluster rows on the client's disk, for methods that need all rows when they exceed the client's memory.

The user sets the directory and the size limit in the configuration of the cluster library (``Engine.setting``);
without a directory, such a fit raises an error.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linsep.data.cache import write_rows
from linsep.data.cluster import partition as on_worker
from linsep.data.cluster.engine import parse_bytes
from linsep.data.dataset import MEMORY_ENTRIES
from linsep.data.disk import Disk
from linsep.data.strided_sample import STRIDE
from linsep.errors import Refused

if TYPE_CHECKING:
    from linsep.data.cluster.dataset import Cluster

DIRECTORY, LIMIT = "spill-directory", "spill-limit"  # names of the settings
_ENTRIES = 1 << 23  # entries per transfer: 64 MB


def spill(data: Cluster) -> Disk:
    """Copy rows and targets to the client's disk; closing the copy deletes it. One round, in pieces."""
    home = _place(data)
    try:
        remedy = f"set linsep.{DIRECTORY} to a directory with more room; nothing was kept"
        rows = write_rows(home, _pieces(data), remedy, width=data.d)
    except BaseException:
        shutil.rmtree(home, ignore_errors=True)
        raise
    remove = weakref.finalize(rows, shutil.rmtree, home, ignore_errors=True)
    t = data.targets
    return Disk(rows, t.sign, t.offset, t.weight, t.labels, data.n_threads, remove)


def _place(data: Cluster) -> Path:
    """Create a directory below the user's spill directory; raise if it or the limit is too small."""
    size = data.X.nbytes
    size += size // STRIDE  # the strided sample for pilots is stored a second time
    engine = data.engine
    chosen, limit = engine.setting(DIRECTORY), engine.setting(LIMIT)
    if chosen is None:
        raise Refused(
            f"This fit needs all rows at the client, and {data.n_entries:,} entries are too many for its memory "
            f"(at most {MEMORY_ENTRIES:,}). Let linsep write them to the client's disk during the fit, {size:,} bytes: "
            f"{engine.how_to_set(DIRECTORY, '/a/directory')}; linsep.{LIMIT} sets an upper limit. Or use a smooth loss "
            "with a finite C (a large one instead of inf), or the hinge with a finite C and many more rows than "
            "features: their rows stay on the workers."
        )
    if limit is not None and size > parse_bytes(limit):
        raise Refused(
            f"The rows take {size:,} bytes on the client's disk, and linsep.{LIMIT} is {parse_bytes(limit):,}: allow "
            "more, or fit fewer rows or columns."
        )
    place = Path(chosen)
    place.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(place).free
    if size > free:
        raise Refused(
            f"The rows take {size:,} bytes on the client's disk, and {place} has room for {free:,}: set "
            f"linsep.{DIRECTORY} to a directory with more."
        )
    return Path(tempfile.mkdtemp(prefix="linsep-rows-", dir=place))


def _pieces(data: Cluster) -> Iterator[Any]:
    """Yield all rows in pieces; the next piece is transferred while one is written."""
    X, engine = data.X, data.engine
    engine.traffic.rounds += 1
    height = max(1, _ENTRIES * data.n // max(1, data.n_entries))
    asked = []
    for i, fact in enumerate(X.facts):
        cuts = [*range(0, fact.n, height), fact.n]
        asked += [(i, lo, hi) for lo, hi in pairwise(cuts)]
    coming: list[Any] = []
    for at in range(len(asked) + 1):
        if at < len(asked):
            i, lo, hi = asked[at]
            coming.append(engine.map("spill", on_worker.between, X.parts, among=[i], lo=lo, hi=hi))
        if at > 0:
            (piece,) = engine.collect(coming.pop(0))
            engine.traffic.received += piece.data.nbytes
            yield piece.astype(X.dtype, copy=False)
