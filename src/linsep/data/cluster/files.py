"""Files that the workers of a cluster read themselves: one file is one partition."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from linsep.data.files.numeric import NumericFiles, Wanted
from linsep.data.location import Location
from linsep.errors import BadInput


@dataclass(frozen=True, eq=False)
class ClusterScan:
    """Files for ``fit``, ``predict`` and ``verify`` on a cluster; nothing is read until one of them needs it."""

    location: ClassVar[Location] = Location.CLUSTER

    client: Any
    files: tuple[Path, ...]
    wanted: Wanted
    y: Any = None
    weight: Any = None

    def pieces(self) -> tuple[list[Any], list[Any] | None, list[Any] | None]:
        """Rows, targets and weights of every file, to be read by a worker."""
        from dask.delayed import delayed  # noqa: PLC0415

        read = delayed(read_file, nout=3, pure=True)
        X, y, weight = zip(*(read(str(file), self.wanted) for file in self.files), strict=True)
        return (
            list(X),
            list(y) if self.wanted.target is not None else None,
            list(weight) if self.wanted.weight is not None else None,
        )

    def __repr__(self) -> str:
        return f"ClusterScan({len(self.files)} files)"


def read_file(path: str, wanted: Wanted) -> tuple[Any, Any, Any]:
    """On a worker: rows (with the names of their columns, if they have any), target and weight of a file."""
    files = NumericFiles([Path(path)], wanted)
    batches = [batch for _, batch in files]
    if not batches:
        return np.zeros((0, 1)), np.zeros(0), np.zeros(0)
    X: Any
    X, y = np.concatenate([batch.X for batch in batches]), files.target()
    weights = [batch.weight for batch in batches if batch.weight is not None]
    weight = np.concatenate(weights) if weights else None
    names = batches[0].names
    if names is not None:
        import pyarrow as pa  # noqa: PLC0415 - which has read the file

        X = pa.table({name: column for name, column in zip(names, X.T, strict=True)})
    return X, y, weight


def scan_on_cluster(client: Any, reader: NumericFiles, y: Any, s: Any) -> ClusterScan:
    """The files as partitions."""
    if reader.kind == "libsvm":
        raise BadInput(
            f"{reader.files[0]}: LIBSVM files do not say how many columns there are, so partitions may differ. Give "
            "fit a list of delayed CSR matrices, or convert the files: linsep convert."
        )
    files = tuple(file.resolve() for file in reader.files)
    return ClusterScan(client, files, reader.wanted, y, s)
