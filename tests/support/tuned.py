"""Tuned numbers of the source under names of their own: the one place where tests know where they stand.

Some paths are meant for large data: many blocks, many entries, long files. A test takes such a path with few rows by
``tuned(block_bytes=4_000)``, a fixture. Whoever moves, renames or tunes such a number changes at most this table.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

PLACES = {
    "block_bytes": "linsep.data.layout.BLOCK_BYTES",
    "converted_bytes": "linsep.data.memory.CONVERT_BYTES",
    "memory_entries": "linsep.data.dataset.MEMORY_ENTRIES",
    "few_on_disk": "linsep.data.memory_rows.FILE_BYTES",
    "few_always": "linsep.data.memory_rows.ALWAYS_BYTES",
    "few_on_cluster": "linsep.data.memory_rows.CLUSTER_BYTES",
    "lbfgs_pair_price": "linsep.solvers.newton.quasi_newton.PAIR",
    "clear_mean": "linsep.solvers.newton.directions.CLEAR",
    "native_pilot_entries": "linsep.solvers.newton.native.PILOT_ENTRIES",
    "spilled_entries": "linsep.data.cluster.spill._ENTRIES",
    "recheck_entries": "linsep.certificates.parts._CHUNK",
    "second_bound_work": "linsep.certificates.verification._SECOND_BOUND_WORK",
    "exactly_verified": "linsep.certificates.verification.EXACT_SIZE",
    "exact_entries": "linsep.certificates.exact.points._CHUNK",
    "has_flint": "linsep.certificates.exact.losses.HAS_FLINT",
    "refinements": "linsep.certificates.curvature.repaired_dual._REFINEMENTS",
    "softmax_hessian": "linsep.certificates.curvature.softmax.LARGEST",
    "softmax_underflow": "linsep.certificates.softmax.UNDERFLOW",
    "delimited_block": "linsep.data.files.delimited._BLOCK",
    "delimited_lines": "linsep.data.files.delimited._LINES",
    "delimited_head": "linsep.data.files.delimited._HEAD",
    "stored_in_memory": "linsep.cli.storage.IN_MEMORY",
    "short_vectors": "linsep.data.mapped_vectors._SHORT",
    "starts_step": "linsep.data.row_starts._STEP",
    "looked_at_together": "linsep.report.largest._TOGETHER",
    "batches_kept": "linsep.tables.batches.KEPT",
    "batches_piece": "linsep.tables.batches._PIECE",
    "batches_region": "linsep.tables.batches._REGION",
    "libsvm_chunk": "linsep.data.files.libsvm._CHUNK",
    "support_entries": "linsep.estimators.support.MAX_STORED_ENTRIES",
    "bars_first": "linsep.monitoring.bars.FIRST",
    "bars_look": "linsep.monitoring.bars._LOOK",
    "native_entries": "linsep.solvers.newton.native.ENTRIES",
    "cluster_pilot_entries": "linsep.solvers.newton.cluster.PILOT_ENTRIES",
    "cluster_pilot_rows": "linsep.solvers.newton.cluster.PILOT_ROWS",
    "cluster_few_entries": "linsep.solvers.newton.cluster.FEW_ENTRIES",
    "native_l1_entries": "linsep.solvers.l1.native.ENTRIES",
    "coordinate_rounds": "linsep.solvers.l1.coordinate.MAX_ROUNDS",
    "working_set_rounds": "linsep.solvers.l1.working_set.MAX_ROUNDS",
    "interior_l1_limit": "linsep.solvers.interior.l1.LIMIT",
    "sifting_few_rounds": "linsep.solvers.interior.sifting.FEW_ROUNDS",
    "sifting_entries": "linsep.solvers.interior.sifting.ENTRIES",
    "soft_margin_bound": "linsep.solvers.hard_margin.soft_margin._BOUND",
    "ascent_leave": "linsep.solvers.dual_ascent.native.LEAVE",
    "ascent_entries_per_call": "linsep.solvers.dual_ascent.native._ENTRIES_PER_CALL",
    "ascent_large": "linsep.solvers.dual_ascent.native.LARGE",
    "softmax_pilot_work": "linsep.solvers.multiclass.softmax._PILOT_WORK",
    "softmax_most_features": "linsep.solvers.multiclass.softmax._MOST_FEATURES",
    "softmax_polish": "linsep.solvers.multiclass.softmax._POLISH",
    "softmax_sample_price": "linsep.solvers.multiclass.softmax._SAMPLE_PRICE",
    "softmax_factorised": "linsep.solvers.multiclass.softmax_directions._FACTORISED",
    "softmax_single": "linsep.solvers.multiclass.softmax_directions._SINGLE",
    "softmax_worth": "linsep.solvers.multiclass.softmax_directions._WORTH",
    "crammer_singer_pilot_work": "linsep.solvers.multiclass.crammer_singer._PILOT_WORK",
    "crammer_singer_polish": "linsep.solvers.multiclass.crammer_singer._POLISH",
    "file_entries": "linsep.data.files.numeric._ENTRIES",
    "scaling_copied": "linsep.online.scaling._COPIED",
    "schur_largest": "linsep.solvers.linalg.schur_cg.MAX_ORDER",
    "crammer_singer_order": "linsep.solvers.multiclass.crammer_singer_directions._ORDER",
    "crammer_singer_epochs": "linsep.solvers.multiclass.crammer_singer_ascent._EPOCHS",
    "gram_grid_few": "linsep.solvers.grid.gram._FEW",
    "hinge_grid_entries": "linsep.solvers.grid.hinge.ENTRIES",
    "hinge_grid_spare": "linsep.solvers.grid.hinge.SPARE",
    "hinge_grid_least": "linsep.solvers.grid.hinge.LEAST",
    "grid_search_held": "linsep.tuning.grid_scores._HELD",
    "statistics_levels": "linsep.tables.statistics._LEVELS",
    "statistics_values": "linsep.tables.statistics._VALUES",
    "statistics_text": "linsep.tables.statistics._TEXT",
    "statistics_fewest": "linsep.tables.statistics._FEWEST",
    "long_call": "linsep.interrupts.LONG",
    "softmax_packed_work": "linsep.solvers.multiclass.softmax._PACKED_WORK",
    "softmax_kept": "linsep.solvers.multiclass.softmax._KEPT",
    "gram_largest": "linsep.solvers.newton.gram_reduction.MAX_ORDER",
    "worth_a_thread": "linsep.tuning.one_by_one._WORTH_A_THREAD",
}


def tune(patch: pytest.MonkeyPatch, **settings: Any) -> None:
    """Set the numbers until the patch is undone."""
    for name, value in settings.items():
        module, _, constant = PLACES[name].rpartition(".")
        patch.setattr(importlib.import_module(module), constant, value)


@contextmanager
def tuning(**settings: Any) -> Iterator[None]:
    """Set the numbers for the length of a ``with`` block."""
    with pytest.MonkeyPatch.context() as patch:
        tune(patch, **settings)
        yield
