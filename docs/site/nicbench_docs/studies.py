"""The reports of published studies: nicbench makes them of the data sets that it comes with, beside the pages."""

from __future__ import annotations

import contextlib
import io
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from nicbench.cli.main import main
from nicbench.importing.reference.data_sets import data_sets

if TYPE_CHECKING:
    from sphinx.application import Sphinx

FOLDER = "reports"
"""The folder of the site in which the reports are."""


class Reports(SphinxDirective):
    """``{reports} NAME ...``: links to the reports of these data sets; without a report, the reason."""

    has_content = False
    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        up = "../" * self.env.docname.count("/")
        entries = nodes.bullet_list()
        for name in self.arguments[0].split():
            one = data_sets()[name]
            text = nodes.paragraph()
            if one.reading is None:
                text += nodes.Text(f"{one.title}: no report. {one.why_not}")
            else:
                text += nodes.reference("", one.title, refuri=f"{up}{FOLDER}/{name}.html", internal=False)
                text += nodes.Text(f" ({one.year})")
            entries += nodes.list_item("", text)
        return [entries]


def make_reports(app: Sphinx, failure: Exception | None) -> None:
    """Makes the report of every data set of which a run can be made, unless ``nicbench_reports`` is off."""
    if failure is not None or not app.config.nicbench_reports:
        return
    folder = Path(app.outdir) / FOLDER
    folder.mkdir(exist_ok=True)
    for name, one in data_sets().items():
        if one.reading is None:
            continue
        with tempfile.TemporaryDirectory() as made, contextlib.chdir(made), contextlib.redirect_stdout(io.StringIO()):
            with contextlib.redirect_stderr(io.StringIO()) as said:
                if main(["reference", "import", name]) != 0:
                    raise RuntimeError(f"the report of {name} could not be made: {said.getvalue()}")
            shutil.copy(next(Path(made).glob("runs/*/report.html")), folder / f"{name}.html")
