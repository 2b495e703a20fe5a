"""Small tables: HTML for notebooks, readable in light and dark themes, and text for terminals."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from typing import Any

_CELL = "padding:1px 12px 1px 0;text-align:left;font-variant-numeric:tabular-nums"


def facts_table(title: str, facts: Mapping[str, str], note: str = "") -> str:
    """Return HTML with a heading, a two-column table of facts and a note; all text is escaped."""
    rows = "".join(_row((name, value)) for name, value in facts.items())
    below = f"<div>{html.escape(note)}</div>" if note else ""
    return f"<div><strong>{html.escape(title)}</strong><table style='margin:0'>{rows}</table>{below}</div>"


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return an HTML table with a header row; all text is escaped."""
    top = "".join(f"<th style='{_CELL}'>{html.escape(head)}</th>" for head in heads)
    return f"<table style='margin:0'><tr>{top}</tr>{''.join(map(_row, rows))}</table>"


def text_table(heads: list[str], rows: list[list[str]]) -> list[str]:
    """Return the lines of a text table with aligned columns, the first to the left, the others to the right."""
    lines = [heads, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip()
        for line in lines
    ]


def certificate_html(model: Any) -> str:
    """Return the certificate of a fitted model as HTML; empty if it has none."""
    found = getattr(model, "certificate_", None)
    shown = found if type(found) is tuple else (found,)
    return "".join(part._repr_html_() for part in shown if hasattr(part, "_repr_html_"))


def _row(cells: Iterable[str]) -> str:
    inner = "".join(f"<td style='{_CELL}'>{html.escape(cell)}</td>" for cell in cells)
    return f"<tr>{inner}</tr>"


class ShowsCertificate:
    """Mixin for scikit-learn estimators that appends the certificate to their HTML representation."""

    def _repr_html_inner(self) -> str:
        shown: str = super()._repr_html_inner()  # type: ignore[misc]
        return shown + certificate_html(self)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += certificate_html(self)
        return bundle
