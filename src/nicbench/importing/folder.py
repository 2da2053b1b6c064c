"""Writes an import's run folder: that of a measured run, with ``import.json`` for the bench file, and the files."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nicbench import __version__
from nicbench.core.events import Note, ResultReady, RunFinished, RunStarted
from nicbench.core.plan import Plan, PlannedTest
from nicbench.core.registry import find_one
from nicbench.core.result import NOT_MEASURED, ImportedFile, ImportOrigin, ResultVerdict, Summary
from nicbench.core.turn import DEFAULT
from nicbench.importing.files import GivenFile
from nicbench.importing.monitored import Monitored, plans, rows, words
from nicbench.importing.results import ImportedResults
from nicbench.methods.base import Method
from nicbench.store.files import write_atomically
from nicbench.store.folder import RAW, RunFolder

_MOST_NAMED = 5


def summary_of(title: str, found: ImportedResults, source: ImportOrigin) -> Summary:
    """Builds the summary of an import, all of whose results are marked as imported."""
    return Summary(title=as_text(title), verdict=ResultVerdict.IMPORTED, results=found.results, imported=source)


def provenance(
    files: Sequence[GivenFile], found: ImportedResults, machines: Sequence[Monitored] = (), **said: Any
) -> ImportOrigin:
    """Describes where the results and the recordings of ``machines`` come from; ``said`` is what the user stated."""
    first, *more = (
        ImportedFile(file=f"{RAW}/{name_of(file.path)}", sha256=hashlib.sha256(file.content).hexdigest())
        for file in (*files, *(each.file for each in machines))
    )
    return ImportOrigin(
        file=first.file,
        sha256=first.sha256,
        more_files=tuple(more),
        rows=len(found.results),
        ignored_columns=found.ignored,
        checks=found.checks,
        **{name: as_text(value) if isinstance(value, str) else value for name, value in said.items()},
    )


def name_of(path: Path) -> str:
    """Returns the file's name as valid UTF-8."""
    return as_text(path.name)


def as_text(word: str) -> str:
    """Replaces what is not valid UTF-8 in a word of the command line by a question mark, for JSON files."""
    return word.encode("utf-8", "replace").decode()


def write_run(
    parent: Path,
    files: Sequence[GivenFile],
    summary: Summary,
    options: dict[str, Any],
    command: Sequence[str],
    machines: Sequence[Monitored] = (),
) -> RunFolder:
    """Writes the folder under ``parent``; ``options`` say how the ``files`` and recordings were read."""
    source = summary.imported
    assert source is not None  # noqa: S101 - summary_of() gave it
    folder = RunFolder.create_imported(parent, {"import": 1, "file": source.file, **options}, summary.title)
    try:
        _write_files(folder, files, summary, options, command, machines)
    except BaseException:  # a full disk, Ctrl-C: half an import is of no use, and the user still has its files
        folder.remove()
        raise
    return folder


def _write_files(
    folder: RunFolder,
    files: Sequence[GivenFile],
    summary: Summary,
    options: dict[str, Any],
    command: Sequence[str],
    machines: Sequence[Monitored],
) -> None:
    source = summary.imported
    assert source is not None  # noqa: S101 - as above
    every = (*files, *(each.file for each in machines))
    for file in every:
        write_atomically(folder.raw / name_of(file.path), file.content)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    folder.write_json("plan.json", plan_of(folder.run_id, summary, options, command, machines))
    folder.journal.append(
        RunStarted(run_id=folder.run_id, title=summary.title, nicbench_version=__version__, wall_time=now, seed=0)
    )
    names = ", ".join(name_of(file.path) for file in every[:_MOST_NAMED])
    names += f" and {len(every) - _MOST_NAMED} more" if len(every) > _MOST_NAMED else ""
    folder.journal.append(Note(text=f"Imported from {names}, not measured by nicbench: {source.named}."))
    for each in machines:
        folder.journal.append(Note(text=words(each)))
    for result in summary.results:
        folder.journal.append(ResultReady(test=source.method, result=result))
    folder.journal.append(RunFinished(verdict=summary.verdict))
    if machines:
        from nicbench.store import monitor_samples  # imported here: it loads slowly, and most imports have no recording

        monitor_samples.write(folder.path, rows([each.recording for each in machines]))
    folder.finish(summary)


def plan_of(
    run_id: str,
    summary: Summary,
    options: dict[str, Any],
    command: Sequence[str],
    machines: Sequence[Monitored] = (),
) -> Plan:
    """Builds the plan of an import; ``options`` say how its file was read, ``machines`` are the recordings."""
    source = summary.imported
    assert source is not None  # noqa: S101 - as above
    compared = summary.results[0].configuration if summary.results else DEFAULT
    named = source.device or (compared if compared != DEFAULT else None)
    method = find_one("nicbench.methods", Method, source.method)
    goals = {"NDR": 0.0, **({"PDR": options["pdr_loss_ratio"]} if options.get("pdr_loss_ratio") is not None else {})}
    return Plan(
        run_id=run_id,
        title=summary.title,
        nicbench_version=__version__,
        seed=0,
        command=tuple(map(as_text, command)),
        dut={"name": named} if named else {},
        link_bits_per_s=options.get("link_bits_per_s"),
        monitors=plans([each.recording for each in machines]),
        tests=()
        if method is None  # a recording, which no test is of
        else (
            PlannedTest(
                name=source.method,
                method=source.method,
                description=f"{NOT_MEASURED}; from {source.named}",
                options=method.options_of_import(goals),
                points=len(summary.results),
                estimate_s=0.0,
            ),
        ),
    )
