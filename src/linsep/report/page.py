"""The template, the style sheet, the script, and the policy that allows these two and nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import Any

from linsep.report import formatting as words
from linsep.report.ranking import Thresholds

#: No page is larger, whatever the input.
LARGEST = 2_000_000


@cache
def _files() -> tuple[Any, str, str]:
    """The compiled templates, the style sheet and the script."""
    from jinja2 import DictLoader, Environment, StrictUndefined  # noqa: PLC0415

    folder = files("linsep.report") / "templates"
    texts = {
        item.name: item.read_text(encoding="utf-8") for item in folder.iterdir() if item.is_file()
    }
    environment = Environment(
        loader=DictLoader(texts),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=words.number, percent=words.percent, count=words.count, tiny=words.tiny
    )
    return environment.get_template("page.html"), texts["report.css"], texts["report.js"]


def render(facts: dict[str, Any]) -> str:
    """The page as text."""
    from markupsafe import Markup  # noqa: PLC0415

    template, css, script = _files()
    # Only what linsep itself wrote passes unescaped: the style sheet, the script and the serialised figures.
    page = template.render(
        {
            **facts,
            "figures": {key: Markup(svg) for key, svg in facts["figures"].items()},
            "css": Markup(css),
            "script": Markup(script),
            "policy": policy(css, script),
        }
    )
    return str(page)


def policy(css: str, script: str) -> str:
    """Nothing may be loaded, and only this style sheet and this script may act."""
    return (
        f"default-src 'none'; style-src '{_digest(css)}'; script-src '{_digest(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def slider_data(found: Thresholds) -> str:
    """The stops of the slider as JSON: numbers only, so nothing in it can end the element."""
    digits = 3 if found.on_probabilities else 6
    return json.dumps(
        {
            "t": [float(f"{t:.{digits}g}") for t in found.t.tolist()],
            "tp": [round(value, 6) for value in found.tp.tolist()],
            "fp": [round(value, 6) for value in found.fp.tolist()],
            "positives": found.positives,
            "negatives": found.negatives,
        },
        separators=(",", ":"),
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
