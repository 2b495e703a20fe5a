"""The template, the style sheet, the script, and the policy that allows these two and nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from typing import Any

from linsep.report import formatting as words
from linsep.report.ranking import Thresholds

#: No page is larger, whatever the input.
LARGEST = 2_000_000


def render(facts: dict[str, Any]) -> str:
    """The page as text."""
    from jinja2 import DictLoader, Environment, StrictUndefined  # noqa: PLC0415
    from markupsafe import Markup  # noqa: PLC0415

    folder = files("linsep.report") / "templates"
    names = [item.name for item in folder.iterdir() if item.name.endswith(".html")]
    texts = {name: (folder / name).read_text(encoding="utf-8") for name in names}
    css = (folder / "report.css").read_text(encoding="utf-8")
    script = (folder / "report.js").read_text(encoding="utf-8")
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
    # Only what linsep itself wrote passes unescaped: the two files above and the serialised figures.
    figures = {key: Markup(svg) for key, svg in facts["figures"].items()}
    page = environment.get_template("page.html").render(
        {
            **facts,
            "figures": figures,
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
