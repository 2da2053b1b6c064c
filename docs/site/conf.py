"""The site of documents, by Sphinx: every Markdown page of the repository, tables of docs/tables in their places."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from nicbench import __version__

project = "nicbench"
author = "nicbench contributors"
copyright = "nicbench contributors, Apache-2.0"
version = release = __version__

extensions = ["myst_parser", "sphinx_copybutton", "nicbench_docs"]
root_doc = "docs/index"
# The source is the repository, so that links read the same in a clone, on a forge and on the site.
include_patterns = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "protocol/*.md",
    "benchmarks/README.md",
    "docs/**.md",
]
exclude_patterns = [
    ".*",
    "build",
    "engine",
    "runs",
    "src",
    "tests",
    "scripts",
    "examples",
    "docs/site",
    "benchmarks/runs",
]

myst_enable_extensions = ["colon_fence", "attrs_inline"]
myst_heading_anchors = 5
myst_links_external_new_tab = False
# A dead link or anchor is a warning of MyST, and every warning fails the build (scripts/docs).
suppress_warnings = ["myst.header"]

html_theme = "furo"
html_title = "nicbench"
html_static_path = ["static"]
html_css_files = ["nicbench.css"]
html_additional_pages = {"index": "start.html"}
templates_path = ["templates"]
html_use_index = False
html_show_sourcelink = False
html_copy_source = False
html_permalinks_icon = "#"

copybutton_exclude = ".linenos, .gp, .go"
