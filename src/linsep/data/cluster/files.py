"""Scans whose files are read by the workers of a cluster; each file is a partition."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from linsep.data.cluster import engines
from linsep.data.cluster.engine import Source, cut, lengths
from linsep.data.files.arrow_dataset import DATASET
from linsep.data.files.datafile import DataFile, unchanged
from linsep.data.files.numeric import NumericFiles, Wanted
from linsep.data.location import Location
from linsep.errors import BadInput


@dataclass(frozen=True, eq=False)
class ClusterScan:
    """Files for ``fit``, ``predict`` and ``verify`` on a cluster; they are read when one of these is called."""

    location: ClassVar[Location] = Location.CLUSTER

    client: Any
    files: tuple[DataFile, ...]
    wanted: Wanted
    y: Any = None
    weight: Any = None

    def source(self, y: Any, weight: Any) -> Source:
        """Return rows, targets and weights of the files, which workers read; the scan may have its own vectors."""
        given = (
            ("target", y, self.y, self.wanted.target),
            ("weights", weight, self.weight, self.wanted.weight),
        )
        for name, *places in given:
            if sum(place is not None for place in places) > 1:
                raise BadInput(
                    f"The scan has {name} already: give them to scan or to fit, not to both."
                )
        engine, x, *read = self._columns()
        vectors: list[Any] = []
        for (name, *places, column), values in zip(given, read, strict=True):
            found = next((v for v in places if v is not None), None)
            if found is not None:
                vectors.append(engine.send(name, cut(found, lengths(engine, x), name)))
            else:
                vectors.append(None if column is None else values)
        if vectors[0] is None:
            raise BadInput(
                "The scan has no target: give scan(paths, target=...) the column, or y to fit."
            )
        return Source(engine, x, len(self.files), vectors[0], vectors[1])

    def _columns(self) -> Any:
        """Return the engine, and columns of raw rows, targets and weights of the files."""
        read = partial(read_file, wanted=self.wanted)
        return engines.module_of(self.client).files(self.client, list(self.files), read)

    def predict(self, model: Any, method: str, encode: Any) -> Any:
        """Return ``model.method`` of the rows of all files, lazily."""
        _, x, *_ = self._columns()
        return engines.module_of(self.client).predict_files(model, method, x, encode)

    def __repr__(self) -> str:
        return f"ClusterScan({len(self.files)} files)"


def read_file(file: DataFile, wanted: Wanted) -> tuple[Any, Any, Any]:
    """Read rows (with column names, if there are any), target and weight of a file, on a worker."""
    files = NumericFiles([file], wanted)
    with unchanged([file]):
        batches = [batch for _, batch in files]
    if not batches:
        return np.zeros((0, 1)), np.zeros(0), np.zeros(0)
    X: Any
    X, y = np.concatenate([batch.X for batch in batches]), files.target()
    weights = [batch.weight for batch in batches if batch.weight is not None]
    weight = np.concatenate(weights) if weights else None
    names = batches[0].names
    if names is not None:
        import pyarrow as pa  # noqa: PLC0415 - already loaded to read the file

        X = pa.table({name: column for name, column in zip(names, X.T, strict=True)})
    return X, y, weight


def scan_on_cluster(client: Any, reader: NumericFiles, y: Any, s: Any) -> ClusterScan:
    """Return a scan whose files are partitions; raise for formats that partitions cannot have."""
    if reader.kind == "libsvm":
        raise BadInput(
            f"{reader.files[0]}: LIBSVM files do not say how many columns there are, so partitions may differ. Give "
            "fit a list of delayed CSR matrices, or convert the files: linsep convert."
        )
    if reader.kind == DATASET:
        raise BadInput(
            "A dataset of pyarrow is read by one process: give scan the directory or the URL of its files, which the "
            "workers read themselves."
        )
    return ClusterScan(client, tuple(file.absolute() for file in reader.files), reader.wanted, y, s)
