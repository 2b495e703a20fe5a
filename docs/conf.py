"""Sphinx settings: MyST pages, numpy docstrings."""

import importlib.metadata

project = "linsep"
author = "The linsep developers"
copyright = "The linsep developers"
release = importlib.metadata.version("linsep")
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3  # links may lead to headings
highlight_language = "none"  # unless a block names its language
numpydoc_show_class_members = False
autodoc_member_order = "bysource"
html_theme = "pydata_sphinx_theme"
html_title = "linsep"
html_theme_options = {
    "navbar_center": [],
    "globaltoc_includehidden": True,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"**": ["globaltoc.html"]}
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True


def keep_bars(app, what, name, obj, options, lines):
    """In docstrings |w| is a norm, not a substitution."""
    lines[:] = [line.replace("|", r"\|") for line in lines]


def setup(app):
    app.connect("autodoc-process-docstring", keep_bars, priority=400)
