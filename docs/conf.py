"""Sphinx settings: MyST pages, numpy docstrings."""

import importlib.metadata

project = "linsep"
author = "The linsep developers"
release = importlib.metadata.version("linsep")
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3  # links may lead to headings
numpydoc_show_class_members = False
autodoc_member_order = "bysource"
html_theme = "alabaster"
html_theme_options = {
    "description": "Linear separation, with proof",
    "fixed_sidebar": True,
    "page_width": "68rem",
}
html_sidebars = {"**": ["about.html", "navigation.html", "searchbox.html"]}


def keep_bars(app, what, name, obj, options, lines):
    """In docstrings |w| is a norm, not a substitution."""
    lines[:] = [line.replace("|", r"\|") for line in lines]


def setup(app):
    app.connect("autodoc-process-docstring", keep_bars, priority=400)
