"""Conversion of a matplotlib figure to SVG that can be embedded in the page.

The content-security policy forbids style attributes, so styles become presentation attributes, and the colours of the
plot style become classes, which the style sheet defines for light, dark and print. Names never pass through
matplotlib, which would interpret ``$`` as mathematics and warn about emoji: it lays out placeholders, which are then
replaced by the names in the XML tree.
"""

from __future__ import annotations

import io
import re
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from xml.etree import ElementTree

from linsep.plot import style

_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_CLASSES = {
    style.BLACK: "ink",
    "#ffffff": "paper",
    style.GREY: "grey",
    style.BLUE.lower(): "blue",
    style.VERMILION.lower(): "red",
}
_KEPT = {
    "fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-dashoffset", "stroke-linejoin", "stroke-linecap",
    "opacity", "fill-opacity", "stroke-opacity", "text-anchor", "font-size", "font-weight",
}  # fmt: skip
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}(?:e-?\d+)?")
_SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "linsep",
    "text.parse_math": False,
    "font.size": 10.0,
    "axes.unicode_minus": False,
}


@contextmanager
def drawing() -> Iterator[None]:
    """Apply the matplotlib settings of all figures, independent of those of the user."""
    import matplotlib as mpl  # noqa: PLC0415

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        yield


_WIDE = 6.0  # inches from which a figure is scrolled on a phone instead of shrunk


class Placeholders:
    """Placeholders of about the same width as the names they replace."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}

    def __call__(self, name: str) -> str:
        """Return the text that matplotlib draws instead of the name."""
        wide = sum(unicodedata.east_asian_width(c) in "WF" for c in name)
        stand_in = f"{len(self.names)}".rjust(min(len(name) + wide, 60), "n") + "\u2009"
        while stand_in in self.names:
            stand_in += "\u2009"
        self.names[stand_in] = name
        return stand_in


def new_axes(width: float = 5.4, height: float = 3.7) -> Any:
    """Return the axes of a new figure that is not registered with pyplot."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    return Figure(figsize=(width, height), dpi=72, layout="constrained").add_subplot()


def to_svg(
    ax: Any,
    key: str,
    description: str,
    names: dict[str, str] | None = None,
    dot: tuple[float, float] | None = None,
) -> str:
    """Return the figure of ``ax`` as inline SVG with ids that begin with ``key``; ``dot`` is a movable point."""
    figure = ax.figure
    figure.patch.set_visible(False)
    ax.patch.set_visible(False)
    out = io.BytesIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    root = ElementTree.fromstring(out.getvalue())
    _strip(root)
    used = set(
        re.findall(r"#([\w-]+)", " ".join(v for e in root.iter() for v in e.attrib.values()))
    )
    for element in root.iter():
        _dress(element, key, used)
        if names and element.text in names:
            element.text = names[element.text]
    for size in ("width", "height", "version"):
        root.attrib.pop(size, None)
    if figure.get_figwidth() > _WIDE:
        root.set("class", "broad")
    root.set("role", "img")
    root.set("aria-labelledby", f"{key}-title")
    root.set("fill", "currentColor")
    title = ElementTree.Element(f"{{{_SVG}}}title", {"id": f"{key}-title"})
    title.text = description
    root.insert(0, title)
    if dot is not None:
        root.append(_movable(ax, key, dot))
    ElementTree.register_namespace("", _SVG)
    return ElementTree.tostring(root, encoding="unicode")


def _strip(parent: Any) -> None:
    for child in list(parent):
        if child.tag in (f"{{{_SVG}}}metadata", f"{{{_SVG}}}style"):
            parent.remove(child)
        else:
            _strip(child)


def _dress(element: Any, key: str, used: set[str]) -> None:
    """Replace the style attribute by presentation attributes, colours by classes, and make ids unique."""
    looks = _looks(element.attrib.pop("style", ""))
    classes = []
    for name, value in {**element.attrib, **looks}.items():
        if name in ("fill", "stroke") and value.lower() in _CLASSES:
            classes.append(f"{name[0]}-{_CLASSES[value.lower()]}")
            element.attrib.pop(name, None)
        elif name in looks and name in _KEPT:
            element.set(name, value)
    if classes:
        element.set("class", " ".join(classes))
    link = element.attrib.pop(f"{{{_XLINK}}}href", None)
    if link is not None:
        element.set("href", link)
    own = element.attrib.pop("id", None)
    for name, value in list(element.attrib.items()):
        element.set(name, _shorten(name, value, key))
    if own in used:
        element.set("id", f"{key}-{own}")


def _looks(text: str) -> dict[str, str]:
    """Parse the declarations of a style attribute."""
    looks: dict[str, str] = {}
    for declaration in text.split(";"):
        name, colon, value = declaration.partition(":")
        if colon:
            looks[name.strip()] = value.strip()
    if "font" in looks:
        size = re.search(r"([\d.]+)px", looks["font"])
        looks["font-size"] = f"{size[1]}px" if size else "10px"
    return looks


def _shorten(name: str, value: str, key: str) -> str:
    """Make links refer to ids of this figure, and round numbers to two decimals."""
    if "#" in value and name in ("href", "clip-path", "fill"):
        return value.replace("#", f"#{key}-", 1)
    return _LONG_NUMBER.sub(lambda found: f"{float(found[0]):.2f}", value)


def _movable(ax: Any, key: str, at: tuple[float, float]) -> Any:
    """Return a dot at ``at`` with the positions of (0, 0) and (1, 1), so that a script can move it."""
    height = ax.figure.get_figheight() * 72
    (x0, y0), (x1, y1), (x, y) = ax.transData.transform([(0, 0), (1, 1), at]).tolist()
    return ElementTree.Element(
        f"{{{_SVG}}}circle",
        {
            "id": f"{key}-dot",
            "class": "dot",
            "r": "5",
            "cx": f"{x:.2f}",
            "cy": f"{height - y:.2f}",
            "data-frame": f"{x0:.2f} {height - y0:.2f} {x1:.2f} {height - y1:.2f}",
        },
    )
