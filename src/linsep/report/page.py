"""Rendering of the page: template, style sheet, script, and a content-security policy that allows only these."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import Any

from linsep.report import formatting as words

#: Maximum size of a page, for any input.
LARGEST = 2_000_000


@cache
def _files() -> tuple[Any, str, str]:
    """Load the compiled templates, the style sheet and the script."""
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
    """Render the page as text."""
    from markupsafe import Markup  # noqa: PLC0415

    template, css, script = _files()
    # Only text written by linsep itself is not escaped: the style sheet, the script and the serialised figures.
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
    """Return a content-security policy that forbids loading anything and allows only this style sheet and script."""
    return (
        f"default-src 'none'; style-src '{_digest(css)}'; script-src '{_digest(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
