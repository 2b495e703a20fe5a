"""``linsep fit --cluster ADDRESS``: the workers of a Dask cluster read the files and store the rows.

Each file is a partition. The workers compute statistics of their columns, from which the client fits the encoder; they
encode their rows, and the solver adds up sums over them. If the encoded rows take at most ``--memory-limit``, they are
copied to the client and fitted there like a table in memory.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from linsep.arrays import IntArray, stack_rows
from linsep.cli import reading, storage
from linsep.data.cluster.engines.dask_engine import connected
from linsep.data.files.columns import Target
from linsep.data.scanning import stored_rows
from linsep.errors import BadInput
from linsep.tables import Encoder, Table
from linsep.tables.statistics import ColumnStatistics
from linsep.tables.table_files import column_kinds, read_part


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to the parser."""
    group = parser.add_argument_group("cluster")
    group.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="scheduler of a Dask cluster, tcp://HOST:PORT; its workers read DATA, each file as one partition",
    )


@dataclass(frozen=True, eq=False)
class ClusterTable:
    """A table on the workers: ``parts`` are futures of tables, ``sizes`` are their numbers of rows."""

    client: Any
    parts: list[Any]
    sizes: list[int]
    y: npt.NDArray[Any]
    source: str
    numeric: bool  #: whether the files contain a matrix without column names
    unlabelled: int = 0  #: number of rows that were skipped because they have no target

    def __len__(self) -> int:
        return sum(self.sizes)

    def take(self, rows: IntArray) -> ClusterTable:
        """Return the table of the given rows, which must be in increasing order."""
        edges = np.cumsum([0, *self.sizes])
        cuts = np.searchsorted(rows, edges)
        mine = [rows[a:b] - edge for a, b, edge in zip(cuts, cuts[1:], edges, strict=False)]
        parts = self.client.map(Table.take, self.parts, mine, pure=False)
        return replace(self, parts=parts, sizes=[len(part) for part in mine], y=self.y[rows])

    def to_local(self) -> Table:
        """Copy all rows to the memory of the client."""
        tables = self.client.gather(self.parts)
        whole: Table = replace(tables[0], y=self.y)
        whole.batches = [batch for table in tables for batch in table.batches]
        return whole

    def statistics(self, encoder: Encoder) -> Iterator[ColumnStatistics]:
        """Iterate over the column statistics of each part."""
        for future in self.client.map(encoder.fit_partial, self.parts, pure=False):
            yield future.result()

    def encode(self, encoder: Encoder | None) -> list[Any]:
        """Return futures of the encoded rows."""
        return list(self.client.map(partial(_encode_part, encoder), self.parts, pure=False))

    def targets(self) -> list[Any]:
        """Return futures of the targets."""
        parts = np.split(self.y, np.cumsum(self.sizes)[:-1])
        return list(self.client.scatter([np.array(part.tolist()) for part in parts]))


@contextmanager
def open_table(options: Any) -> Iterator[ClusterTable]:
    """Open the files named by the options as a labelled table on the workers."""
    if options.cache:
        raise BadInput(
            "The workers of a cluster keep the rows in memory, where --cache has no effect; leave it out."
        )
    if options.data == "-":
        raise BadInput(
            "The workers of a cluster read files, not standard input: give the paths of the files."
        )
    files = [file.absolute() for file in reading.files(options)]
    how = reading.labelled_reading(options)
    with connected(options.cluster) as client:
        kinds = client.submit(column_kinds, files[0], options.target, how, pure=False).result()
        if kinds is None and len(files) > 1:
            raise BadInput(
                f"{files[0]} has no column names, and several such files do not form a table; convert them to Parquet."
            )
        parts = client.map(
            partial(read_part, target=options.target, how=how, kinds=kinds), files, pure=False
        )
        facts = [client.submit(_facts, part, pure=False) for part in parts]
        target: Target | None = None
        vectors, sizes = [], []
        for fact in facts:
            size, found = fact.result()
            sizes.append(size)
            if isinstance(found, Target):
                target = target or Target(found.name)
                target.merge(found)
            elif found is not None:
                vectors.append(found)
        if target is None and not vectors:
            raise BadInput(f"{reading.source_name(options)}: the files hold no targets.")
        y = np.concatenate(vectors) if target is None else target.values()
        tables = client.map(_table, parts, pure=False)
        dropped = 0 if target is None else target.dropped
        source = reading.source_name(options)
        yield ClusterTable(client, tables, sizes, y, source, kinds is None, dropped)


def _facts(part: tuple[Table, Any]) -> tuple[int, Any]:
    """Return the number of rows and the target. Runs on a worker."""
    return len(part[0]), part[1]


def _table(part: tuple[Table, Any]) -> Table:
    return part[0]


def _encode_part(encoder: Encoder | None, table: Table) -> Any:
    """Encode a part of the table. Runs on a worker."""
    return table.matrix if encoder is None else encoder.transform(table)


def _bytes(X: Any) -> int:
    return int(X.data.nbytes + X.indices.nbytes if sp.issparse(X) else X.nbytes)


def _shape(X: Any) -> tuple[int, int]:
    return _bytes(X), int(X.shape[1])


def matrix(options: Any, table: ClusterTable, encoder: Encoder | None) -> tuple[Any, Any, int]:
    """Return the rows as numbers, their targets and the number of columns: locally if they fit, else on the workers."""
    parts = table.encode(encoder)
    facts = table.client.gather(table.client.map(_shape, parts, pure=False))
    columns = facts[0][1]
    if sum(size for size, _ in facts) > storage.limit(options):
        return parts, table.targets(), columns
    return stack_rows(table.client.gather(parts)), table.y, columns


def to_local(X: list[Any], columns: int) -> Any:
    """Copy encoded rows from the workers to the disk of the client, one part after another; return a scan of them."""
    return stored_rows((future.result() for future in X), columns)
