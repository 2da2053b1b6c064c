"""How an import ends: a run folder with its report, or a look at what it would bring."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nicbench.cli.conduct import build_report
from nicbench.cli.import_table import print_import
from nicbench.cli.output import print_json, results, say
from nicbench.cli.summary_table import print_summary
from nicbench.importing.files import GivenFile
from nicbench.importing.folder import write_run
from nicbench.importing.monitored import Monitored, words
from nicbench.importing.results import ImportedResults
from nicbench.model.result import Summary


def show_import(summary: Summary, found: ImportedResults, machines: Sequence[Monitored], *, as_json: bool) -> None:
    """For ``--dry-run``."""
    if as_json:
        print_json(summary)
        return
    print_import(results(), summary, found)
    for each in machines:
        say(words(each))
    say("\nnothing was written (--dry-run)")


def keep_import(
    output: Path,
    files: Sequence[GivenFile],
    summary: Summary,
    said: dict[str, Any],
    *,
    as_json: bool,
    machines: Sequence[Monitored] = (),
) -> None:
    """The run folder, with its report. ``said``: how the ``files`` were read; ``machines``: what was recorded."""
    folder = write_run(output, files, summary, said, sys.argv[1:], machines)
    report = build_report(folder)
    if as_json:
        print_json(summary)
    else:
        print_summary(results(), summary)
    say(f"\nrun folder: {folder.path}\nreport: {report}")
