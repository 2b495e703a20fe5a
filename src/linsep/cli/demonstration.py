"""``linsep demo``: run ``fit`` on a bundled real table and write all results to one folder.

Palmer penguins (Gorman, Williams and Fraser 2014; Horst, Hill and Gorman 2020), CC0: 344 birds of three species with
text, numbers and missing values. The target is the species.
"""

from __future__ import annotations

import argparse
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

from linsep.cli import fitting
from linsep.cli.commands import options_of
from linsep.cli.output import Outcome, say


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to the parser."""
    parser.add_argument("folder", nargs="?", default="linsep-demo", help="default: linsep-demo")


def run(options: Any) -> Outcome:
    """Copy the table and run ``fit`` on it."""
    folder = Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / "penguins.csv"
    source = files("linsep.cli") / "data" / "penguins.csv"
    with source.open("rb") as from_file, data.open("wb") as to_file:
        shutil.copyfileobj(from_file, to_file)
    asked = options_of("fit").parse_args([str(data), "--target", "species"])
    asked.json, asked.quiet, asked.verb = options.json, options.quiet, "fit"
    say(options, f"linsep fit {data} --target species")
    outcome = fitting.run(asked)
    say(options, "next: linsep predict, verify, explain or export the model; see linsep --help")
    return outcome
