"""Sphinx settings: MyST pages, numpy docstrings."""

import importlib.metadata
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from external import write_inventory  # noqa: E402
from formulas import typeset  # noqa: E402

project = "linsep"
author = "The linsep developers"
copyright = "The linsep developers"
release = importlib.metadata.version("linsep")
extensions = [
    "myst_nb",  # Markdown pages, and notebooks that the build runs
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx-mathjax-offline",  # formulas need no network
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
INVENTORY = HERE / "sklearn.inv"  # no network: external.py lists the names
write_inventory(INVENTORY)
intersphinx_mapping = {"sklearn": ("https://scikit-learn.org/stable", str(INVENTORY))}
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True
exclude_patterns = ["gallery/**/*.ipynb"]  # each belongs to a page that has the same name
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3  # links may lead to headings
highlight_language = "none"  # unless a block names its language
numpydoc_show_class_members = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings name the types
toc_object_entries_show_parents = "hide"
autosummary_generate = True  # one page per public name, into docs/reference
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",  # written by the build, from scripts that it runs
    "subsection_order": [
        f"../examples/gallery/{name}" for name in ("work", "statistics", "teaching")
    ],
    "within_subsection_order": "FileNameSortKey",
    "nested_sections": False,
    "image_srcset": ["2x"],  # sharp on dense screens
    "doc_module": ("linsep",),
    "backreferences_dir": "gallery/used_by",
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 60,
    "remove_config_comments": True,
}
warnings.filterwarnings("ignore", message=".*non-interactive, and thus cannot be shown.*")
templates_path = ["_templates"]
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
html_static_path = ["_static"]
html_css_files = ["linsep.css"]
html_sidebars = {"**": ["globaltoc.html"]}
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True


def typeset_formulas(app, what, name, obj, options, lines):
    """Formulas in LaTeX."""
    lines[:] = [new for line in lines for new in typeset(line)]


def skip_sklearn(app, what, name, obj, skip, options):
    """Members that come from scikit-learn are described there."""
    return skip or (getattr(obj, "__module__", None) or "").startswith("sklearn.")


def setup(app):
    app.connect("autodoc-process-docstring", typeset_formulas, priority=400)
    app.connect("autodoc-skip-member", skip_sklearn)
