"""Reads the files of an import, each by itself so that errors name it, and joins them into one run."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from nicbench import __version__
from nicbench.core.errors import UsageError
from nicbench.core.events import Note, ResultReady, RunFinished, RunStarted
from nicbench.core.frozen import frozen
from nicbench.core.machine import MonitorPlan
from nicbench.core.plan import Plan, PlannedTest, ReportWishes
from nicbench.core.result import NOT_MEASURED, ImportCheck, ImportedFile, ImportOrigin, Result, ResultVerdict, Summary
from nicbench.core.turn import DEFAULT
from nicbench.importing.cells import MOST_ROWS, Cell, Dialect, Sheet, decode, read_bytes
from nicbench.importing.columns import ImportOptions, choose_rows
from nicbench.importing.formats.base import FILE, FILE_NUMBER, FILES, Format
from nicbench.importing.nmon import ENDING, Recording, read_nmon
from nicbench.importing.results import ImportedResults, import_results, method_of
from nicbench.methods.base import Method
from nicbench.store.files import write_atomically
from nicbench.store.folder import RAW, RunFolder

MOST_FILES: Final = 500
MOST_BYTES_TOGETHER: Final = 64 * 2**20


@frozen
class GivenFile:
    """A file as the user named it, with its content."""

    path: Path
    content: bytes


def given_files(paths: Sequence[Path]) -> tuple[GivenFile, ...]:
    """Reads the files, within limits. UsageError where one cannot be read, or two have one name in the run folder."""
    if len(paths) > MOST_FILES:
        raise UsageError(f"{len(paths)} files are more than {MOST_FILES}", next_step="import a part of them at a time")
    seen: dict[str, Path] = {}
    found = []
    total = 0
    for path in paths:
        if path.name in seen:
            raise UsageError(
                f"has the name of {seen[path.name]}", place=str(path), next_step="give them names of their own"
            )
        seen[path.name] = path
        content = read_bytes(path)
        total += len(content)
        if total > MOST_BYTES_TOGETHER:
            limit = f"with it there are more than {MOST_BYTES_TOGETHER // 2**20} MiB"
            raise UsageError(limit, place=str(path), next_step="import a part of the files at a time")
        found.append(GivenFile(path, content))
    return tuple(found)


def import_files(
    files: Sequence[GivenFile],
    form: type[Format],
    methods: Sequence[type[Method]],
    options: ImportOptions,
    dialect: Dialect,
) -> ImportedResults:
    """Imports all files, of each what is of one of the methods.

    WrongFileError lists what is wrong with the first wrong file; UsageError where two files have the same point.
    """
    numbered = [(f"{number}", f"{len(files)}") for number in range(1, len(files) + 1)]
    found = [
        _import_one(file, form, methods, options, dialect, place) for file, place in zip(files, numbered, strict=True)
    ]
    if len(found) == 1:
        return found[0]
    seen: dict[str, Path] = {}
    results = []
    for file, one in zip(files, found, strict=True):
        for result in one.results:
            if result.id in seen:
                raise UsageError(
                    f"is about the same as {seen[result.id]}: {result.id}",
                    place=str(file.path),
                    next_step=f"tell the files apart: --configuration {FILE}, or --column {FILE}=PORT for instance",
                )
            results.append(_name_file_in_errata(result, file.path))
        seen |= {result.id: file.path for result in one.results}
        if len(results) > MOST_ROWS:
            raise UsageError(
                f"with it there are more than {MOST_ROWS} rows",
                place=str(file.path),
                next_step="import a part of the files at a time",
            )
    columns = {column.head.text: column for one in found for column in one.columns}
    ignored = dict.fromkeys(name for one in found for name in one.ignored)
    return ImportedResults(tuple(results), tuple(columns.values()), tuple(ignored), _joined_checks(found))


def _joined_checks(found: Sequence[ImportedResults]) -> tuple[ImportCheck, ...]:
    counted = Counter[str]()
    for check in (check for one in found for check in one.checks):
        counted[check.what] += check.comparisons
    return tuple(ImportCheck(what=what, comparisons=number) for what, number in counted.items())


def _import_one(
    file: GivenFile,
    form: type[Format],
    methods: Sequence[type[Method]],
    options: ImportOptions,
    dialect: Dialect,
    place: tuple[str, str],
) -> ImportedResults:
    """Imports one file; ``place`` is its number, and how many there are."""
    name = str(file.path)
    sheet = _add_file_columns(form.cells(file.content, name, dialect), file.path, place, form, options)
    cells = choose_rows(sheet, options)
    found = []
    for method in methods:
        others = [other for other in methods if other is not method]
        found.append(import_results(form.sheet(cells, name, method.kind, options), name, method, options, others))
    if len(found) == 1:
        return found[0]
    columns = {column.head.text: column for one in reversed(found) for column in one.columns}
    ignored = [name for name in found[0].ignored if all(name in one.ignored for one in found)]
    results = tuple(result for one in found for result in one.results)
    return ImportedResults(results, tuple(columns.values()), tuple(ignored), _joined_checks(found))


def _add_file_columns(
    sheet: Sheet, path: Path, place: tuple[str, str], form: type[Format], options: ImportOptions
) -> Sheet:
    """Adds what is known of the file as columns, where options or the format name them and the file has no such."""
    asked = {*options.configurations, *options.columns, *options.where, *form.of_files}
    stem = Path(path.name.removesuffix(".gz")).stem.encode("utf-8", "replace").decode()
    for head, text in ((FILE, stem), (FILE_NUMBER, place[0]), (FILES, place[1])):
        if head in asked and sheet.index_of(head) is None:
            is_typed = head != FILE
            rows = tuple((*row, Cell(text, row[0].position, is_typed)) for row in sheet.rows)
            sheet = replace(sheet, heads=(*sheet.heads, Cell(head, sheet.heads[0].position)), rows=rows)
    return sheet


def _name_file_in_errata(result: Result, path: Path) -> Result:
    """Adds the file's name to the place of each erratum."""
    if result.imported is None or not result.imported.errata:
        return result
    name = path.name.encode("utf-8", "replace").decode()
    errata = tuple(one.replace(place=f"{name}:{one.place}") for one in result.imported.errata)
    return result.replace(imported=result.imported.replace(errata=errata))


METHOD: Final = "monitor"
"""Stands for the method where nothing was measured and machines were only monitored."""
FORMAT: Final = "nmon"
MOST_BYTES: Final = 64 * 2**20
"""The largest recording; a day at one-second intervals on a machine with 64 CPUs takes twice as much."""


@frozen
class Monitored:
    """A file and the recording in it."""

    file: GivenFile
    recording: Recording


def is_recording(path: Path) -> bool:
    """Returns whether the file is a recording, by its ending."""
    return path.name.lower().removesuffix(".gz").endswith(ENDING)


def read_monitored(
    named: Iterable[tuple[Path, str | None]], results: Sequence[GivenFile] = (), encoding: str | None = None
) -> tuple[Monitored, ...]:
    """Reads each file, under another machine name where one is given; ``results`` lists the files of results.

    UsageError where two are of one machine or have one name. WrongFileError with line and section where one is wrong.
    """
    found = []
    seen: dict[str, Path] = {}
    names = {file.path.name for file in results}
    for path, host in named:
        if path.name in names:
            raise UsageError("has the name of another file", place=str(path), next_step="give them names of their own")
        names.add(path.name)
        content = read_bytes(path, MOST_BYTES)
        recording = read_nmon(decode(content, str(path), encoding), str(path), host)
        if recording.host in seen:
            raise UsageError(
                f"is a recording of {recording.host}, as is {seen[recording.host]}",
                place=str(path),
                next_step="name the machines apart: --with-monitor FILE=HOST",
            )
        seen[recording.host] = path
        found.append(Monitored(GivenFile(path, content), recording))
    return tuple(found)


def rows(recordings: Sequence[Recording]) -> Iterator[tuple[Any, ...]]:
    """Yields rows of monitor.parquet. Times count from the first recording where all recordings overlap.

    Otherwise the machines' clocks differ, and the times of each count from its own start.
    """
    begun_s = [each.samples[0].at_s - each.samples[0].interval_s for each in recordings]
    ended_s = [each.samples[-1].at_s for each in recordings]
    at_once = max(begun_s) < min(ended_s)
    for recording, began_s in zip(recordings, begun_s, strict=True):
        from_s = min(begun_s) if at_once else began_s
        for sample in recording.samples:
            at_s = sample.at_s - from_s
            head = (1, recording.host, at_s, round(at_s * 1e9), round(sample.interval_s * 1e9), None)
            for one in sample.readings:
                yield (*head, one.metric, one.of, one.kind, one.value)


def plans(recordings: Sequence[Recording]) -> tuple[MonitorPlan, ...]:
    """Returns how the recordings were made, for reports."""
    return tuple(
        MonitorPlan(host=each.host, interval_s=each.interval_s, paused=False, during_trials="", recorder=each.recorder)
        for each in recordings
    )


def words(each: Monitored) -> str:
    """Describes what was read of a file and what was not, for the notes of a report."""
    recording = each.recording
    text = (
        f"{each.file.path.name} is a recording of {recording.host} by {recording.recorder}: {len(recording.samples)} "
        f"snapshots, one each {recording.interval_s:g} s."
    )
    left = ", ".join(recording.left_out[:12])
    return f"{text} Not read of it: {left}{', ...' if len(recording.left_out) > 12 else ''}." if left else text


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
        folder.journal.append(ResultReady(test=result.test, result=result))
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
    kinds = Counter(result.method for result in summary.results)
    goals = {"NDR": 0.0, **({"PDR": options["pdr_loss_ratio"]} if options.get("pdr_loss_ratio") is not None else {})}
    return Plan(
        run_id=run_id,
        title=summary.title,
        nicbench_version=__version__,
        seed=0,
        command=tuple(map(as_text, command)),
        dut={"name": named} if named else {},
        link_bits_per_s=options.get("link_bits_per_s"),
        report=ReportWishes.model_validate(options.get("report", {})),
        monitors=plans([each.recording for each in machines]),
        tests=tuple(  # none of a recording
            PlannedTest(
                name=kind,
                method=kind,
                description=f"{NOT_MEASURED}; from {source.named}",
                options=method_of(kind).options_of_import(goals),
                points=points,
                estimate_s=0.0,
            )
            for kind, points in kinds.items()
        ),
    )
