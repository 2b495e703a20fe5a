"""The end of every fit, wherever its rows are stored: a model file, facts for ``--json``, an exit code."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

import linsep
from linsep.cli.commands import DONE, LIMIT, NOT_CERTIFIED
from linsep.cli.output import Outcome, certificate_facts, say
from linsep.data.files.remote import is_url, local_path, shown


def model_path(options: Any) -> Path:
    """Path of the model file: ``--output``, or the name of the data file in the current directory."""
    if options.output:
        return Path(options.output)
    if options.data == "-":
        return Path("model.linsep")
    path = Path(local_path(options.data) or options.data)
    if is_url(options.data) and local_path(options.data) is None:
        name = Path(shown(options.data)).name  # in the current directory
        return Path(name or "model").with_suffix(".linsep")
    return path.with_suffix(".linsep") if path.is_file() else Path("model.linsep")


def save_model(options: Any, model: Any, data: tuple[Any, Any] | None = None) -> Path:
    """Write the model file and print its path."""
    path = model_path(options)
    linsep.save(model, path, data=data)
    say(options, f"model: {path}")
    return path


def outcome(options: Any, model: Any, path: Path, began: float, **more: Any) -> Outcome:
    """Collect the facts of a fit, with ``more``, and determine the exit code from the certificate."""
    certificate = model.certificate_
    facts = {
        "verb": "fit",
        "linsep": linsep.__version__,
        "features": int(model.n_features_in_),
        "model": type(model).__name__,
        "C": float(model.C),
        "certificate": certificate_facts(certificate),
        "model_file": str(path),
        **more,
        "seconds": perf_counter() - began,
    }
    unproven = NOT_CERTIFIED if options.time_limit is None else LIMIT
    return Outcome(facts, DONE if certificate.certified else unproven)
