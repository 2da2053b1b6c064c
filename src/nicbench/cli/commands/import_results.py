"""``nicbench import`` and ``nicbench reference``: make run folders of results that others measured or published."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from nicbench.cli import completion
from nicbench.cli.options import DEFAULT_RUNS, Json, RunsFolder, choice
from nicbench.cli.output import FORMAT, print_json, print_table, results, say
from nicbench.core.errors import UsageError
from nicbench.core.number_reader import DECIMALS, THOUSANDS, Decimal
from nicbench.core.plan import ReportWishes
from nicbench.core.registry import find
from nicbench.core.result import Summary
from nicbench.core.units import parse_ratio
from nicbench.importing.cells import DELIMITERS, Dialect, Sheet, make_sheet, read_bytes
from nicbench.importing.columns import FORMS, ImportOptions, Link, Unit, parse_link, parse_unit
from nicbench.importing.folder import FORMAT as RECORDING
from nicbench.importing.folder import (
    METHOD,
    GivenFile,
    Monitored,
    given_files,
    import_files,
    is_recording,
    name_of,
    provenance,
    read_monitored,
    summary_of,
    words,
    write_run,
)
from nicbench.importing.formats.base import Format, lines_of
from nicbench.importing.reference.data_sets import (
    DataSet,
    PlacedErratum,
    as_run,
    command_line,
    data_set,
    data_sets,
    errata_of,
    plain,
    sheet_of,
)
from nicbench.importing.results import ImportedResults, importable, likely_method, method_of
from nicbench.methods.base import Method

# What ``nicbench import`` and ``nicbench reference import`` share: options, a preview, and the run folder.


def print_import(console: Console, summary: Summary, found: ImportedResults) -> None:
    """Prints the preview of ``--dry-run``: how columns were mapped, and the results."""
    from nicbench.cli.summary_table import print_summary  # imported here, as `--help` and completion need none

    columns = ((one.head.text, one.column.name, str(one.unit) if one.unit else "-") for one in found.columns)
    ignored = ((name, "left out", "-") for name in found.ignored)
    print_table(console, ("column of the file", "becomes", "unit"), (*columns, *ignored), "Columns")
    print_summary(console, summary)


# The options of ``nicbench import``: pairs written NAME=VALUE, units, links, shares.


def _option(name: str, metavar: str, text: str, **more: Any) -> Any:
    return typer.Option(name, metavar=metavar, help=text, show_default=False, **more)


ImportPaths = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...", help="Tables of results and recordings of nmon; several make one run.", show_default=False
    ),
]
MethodName = Annotated[
    list[str] | None,
    _option(
        "--method",
        "NAME",
        "What was measured: throughput, latency, ...; again for more in one table.",
        autocompletion=completion.methods,
    ),
]
WithMonitor = Annotated[
    list[str] | None,
    _option("--with-monitor", "FILE[=HOST]", "A recording of a machine by nmon; HOST is its name."),
]
FormatName = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="FORMAT",
        help="plain, or the program that exported the file.",
        autocompletion=completion.import_formats,
    ),
]
Title = Annotated[str | None, _option("--title", "TEXT", "The run's title (default: the file's name).")]
Source = Annotated[str | None, _option("--source", "TEXT", "Who published it, and where.")]
Year = Annotated[int | None, _option("--year", "YEAR", "The year of publication.", min=1970, max=2200)]
Device = Annotated[str | None, _option("--device", "TEXT", "What was measured.")]
LinkSpeed = Annotated[str | None, _option("--link-speed", "SPEED", "The speed of a port: '25 Gb/s', 25GbE, 2x25GbE.")]
Ports = Annotated[
    int | None, _option("--ports", "N", "How many ports the rates are summed over; 1 means per port.", min=1, max=1024)
]
Column = Annotated[list[str] | None, _option("--column", "THEIRS=OURS", "What a column means to nicbench.")]
UnitOf = Annotated[list[str] | None, _option("--unit", "COLUMN=UNIT", "The unit of a column whose heading names none.")]
Given = Annotated[
    list[str] | None, _option("--set", "NAME=VALUE", "A column that the file lacks, with one value for all rows.")
]
Where = Annotated[list[str] | None, _option("--where", "COLUMN=VALUE", "Only rows with this value.")]
Ignore = Annotated[list[str] | None, _option("--ignore", "COLUMN", "A column to leave out.")]
Repeat = Annotated[
    list[str] | None, _option("--repeat", "COLUMN", "Its empty cells have the value above, as merged cells do.")
]
CellsAre = Annotated[
    str | None, _option("--cells", "NAME [UNIT]", "What the figures of a wide table are: 'frame rate [Mpps]'.")
]
Configuration = Annotated[
    list[str] | None,
    _option("--configuration", "COLUMN", "The column that names what is compared; each value gets its own table."),
]
PdrLoss = Annotated[str | None, _option("--pdr-loss", "SHARE", "The loss that a PDR allows: '0.5 %'.")]
DecimalMark = Annotated[str | None, _option("--decimal", "point|comma", "The decimal mark (default: point).")]
ThousandsMark = Annotated[
    str | None, _option("--thousands", "MARK", f"The thousands separator: {', '.join(THOUSANDS)}.")
]
Delimiter = Annotated[
    str | None, _option("--delimiter", "MARK", f"{', '.join(DELIMITERS)} (default: found from the headings).")
]
Encoding = Annotated[
    str | None, _option("--encoding", "NAME", "cp1252, ... (default: UTF-8, or UTF-16 by its byte order mark).")
]
HeadingLine = Annotated[
    str, typer.Option("--heading-line", metavar="N[-M]", help="The line of the headings, or the first and the last.")
]
LastLine = Annotated[
    int | None, _option("--last-line", "N", "The last line with figures; what is below are notes.", min=1)
]
SheetName = Annotated[str | None, _option("--sheet", "NAME", "The sheet of a workbook (XLSX).")]
OfReport = Annotated[
    list[str] | None,
    _option("--report", "KEY=TEXT", "What the report says of its publisher: author, contact, sponsor, disclaimer, ..."),
]
Errata = Annotated[bool, typer.Option("--errata", help="Accept implausible figures as printed, and list them.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be imported; write nothing.")]


def pairs(option: str, written: Iterable[str]) -> dict[str, str]:
    """Parses NAME=VALUE; UsageError where one is malformed, or a name occurs twice."""
    found = {}
    for text in written:
        name, mark, value = (part.strip() for part in text.partition("="))
        if not mark or not name or not value:
            raise UsageError(f"{option} {text!r} is not NAME=VALUE", next_step=f"write {option} 'NAME=VALUE'")
        if name in found:
            raise UsageError(f"{option} names {name!r} twice", next_step="leave one of them out")
        found[name] = value
    return found


def recordings(option: str, written: Iterable[str]) -> list[tuple[Path, str | None]]:
    """Parses FILE or FILE=HOST. The name of an existing file may contain "=" itself."""
    found: list[tuple[Path, str | None]] = []
    for text in written:
        file, mark, host = text.rpartition("=")
        if not mark or Path(text).exists():
            found.append((Path(text), None))
        elif not file.strip() or not host.strip():
            raise UsageError(f"{option} {text!r} is not FILE=HOST", next_step=f"write {option} 'FILE=HOST'")
        else:
            found.append((Path(file), host.strip()))
    return found


def wishes(option: str, written: Iterable[str]) -> dict[str, str]:
    """Parses KEY=TEXT of the section ``report`` of a bench file."""
    found = pairs(option, written)
    try:
        ReportWishes.model_validate(found)
    except ValidationError as error:
        first = error.errors()[0]
        step = f"known are {', '.join(ReportWishes.model_fields)}"
        raise UsageError(f"{option} {first['loc'][0]}: {first['msg']}", next_step=step) from error
    return found


def units(option: str, written: Iterable[str]) -> dict[str, Unit]:
    """Parses COLUMN=UNIT."""
    found = {}
    for name, text in pairs(option, written).items():
        unit = parse_unit(text)
        if unit is None:
            raise UsageError(f"{option}: {text!r} is not a known unit", next_step=f"known are {FORMS}")
        found[name] = unit
    return found


def link(option: str, text: str | None, ports: int | None) -> Link | None:
    """Parses the speed of a port, which may include the number of ports summed up ("2x25GbE")."""
    if text is None:
        return None
    try:
        found = parse_link(text)
    except ValueError as error:
        raise UsageError(f"{option} {text!r} is not a speed", next_step=str(error)) from error
    if ports is not None and found.ports not in (None, ports):
        raise UsageError(f"{option} {text!r} and --ports {ports} contradict each other", next_step="give one of them")
    return Link(found.bits_per_s, found.ports or ports)


def ratio(option: str, text: str | None) -> float | None:
    """Parses a share such as "0.5 %"."""
    try:
        return None if text is None else parse_ratio(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from error


def show_import(summary: Summary, found: ImportedResults, machines: Sequence[Monitored], *, as_json: bool) -> None:
    """Prints the preview of ``--dry-run``."""
    if as_json:
        print_json(summary)
        return
    print_import(results(), summary, found)
    for each in machines:
        say(words(each))
    say("\nnothing was written (--dry-run)")


def keep_import(
    runs_folder: Path,
    files: Sequence[GivenFile],
    summary: Summary,
    options: dict[str, Any],
    *,
    as_json: bool,
    machines: Sequence[Monitored] = (),
) -> None:
    """Writes the run folder and its report; ``options`` say how the ``files`` were read."""
    from nicbench.cli.running import build_report  # imported here, as in print_import
    from nicbench.cli.summary_table import print_summary

    folder = write_run(runs_folder, files, summary, options, sys.argv[1:], machines)
    report = build_report(folder)
    if as_json:
        print_json(summary)
    else:
        print_summary(results(), summary)
    say(f"\nrun folder: {folder.path}\nreport: {report}")


# ``nicbench import FILE... --method NAME``: makes a run folder of results that somebody else measured.


def _import(
    paths: ImportPaths,
    method: MethodName = None,
    form: FormatName = "plain",
    title: Title = None,
    source: Source = None,
    year: Year = None,
    device: Device = None,
    link_speed: LinkSpeed = None,
    ports: Ports = None,
    column: Column = None,
    unit: UnitOf = None,
    given: Given = None,
    where: Where = None,
    ignore: Ignore = None,
    repeat: Repeat = None,
    cells: CellsAre = None,
    configuration: Configuration = None,
    pdr_loss: PdrLoss = None,
    decimal: DecimalMark = None,
    thousands: ThousandsMark = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    heading_line: HeadingLine = "1",
    last_line: LastLine = None,
    sheet: SheetName = None,
    with_monitor: WithMonitor = None,
    report: OfReport = None,
    errata: Errata = False,
    dry_run: DryRun = False,
    runs_folder: RunsFolder = DEFAULT_RUNS,
    json: Json = False,
) -> None:
    tables = [path for path in paths if not is_recording(path)]
    own_names = [(path, None) for path in paths if is_recording(path)]
    named = [*own_names, *recordings("--with-monitor", with_monitor or ())]
    methods = _methods_of(tuple(dict.fromkeys(method or ())), tables)
    formats = find("nicbench.importing.formats", Format)
    choice("--from", form, formats)
    link_of_ports = link("--link-speed", link_speed, ports)
    options = ImportOptions(
        link=link_of_ports,
        ports=ports,
        columns=pairs("--column", column or ()),
        units=units("--unit", unit or ()),
        given=pairs("--set", given or ()),
        where=pairs("--where", where or ()),
        ignore=tuple(ignore or ()),
        repeat=tuple(repeat or ()),
        cells=cells,
        configurations=tuple(configuration or ()),
        decimal=_decimal(decimal),
        thousands=choice("--thousands", thousands, THOUSANDS),
        loss_ratio=ratio("--pdr-loss", pdr_loss),
        errata=errata,
    )
    if decimal is not None and options.decimal == options.thousands:
        raise UsageError(f"--decimal and --thousands cannot both be {decimal}", next_step="leave one of them out")
    mark = DELIMITERS[delimiter] if choice("--delimiter", delimiter, DELIMITERS) and delimiter else None
    files = given_files(tables)
    machines = read_monitored(named, files, encoding)
    if not methods:
        found, measured, form = ImportedResults((), (), ()), METHOD, RECORDING
    else:
        dialect = Dialect(mark, encoding, _heading_lines(heading_line), last_line, sheet)
        found = import_files(files, formats[form], methods, options, dialect)
        measured = ", ".join(kind.kind for kind in methods)
    known = provenance(files, found, machines, source=source, year=year, device=device, method=measured, format=form)
    summary = summary_of(title or Path(name_of(paths[0])).stem, found, known)
    stored = {
        "method": measured,
        "format": form,
        "pdr_loss_ratio": options.loss_ratio,
        "link_bits_per_s": options.link.bits_per_s if options.link else None,
        "columns": {one.head.text: one.key for one in found.columns},
        "report": wishes("--report", report or ()),
    }
    if dry_run:
        show_import(summary, found, machines, as_json=json)
    else:
        keep_import(runs_folder, files, summary, stored, as_json=json, machines=machines)


def _decimal(given: str | None) -> Decimal | None:
    said = choice("--decimal", given, DECIMALS)
    return None if said is None else "comma" if said == "comma" else "point"


def _heading_lines(given: str) -> tuple[int, int]:
    first, mark, last = given.partition("-")
    if not (first.isdecimal() and (last.isdecimal() or not mark)) or not 1 <= int(first) <= int(last or first) <= 1000:
        step = "write a line, or the first and the last: --heading-line 3-4"
        raise UsageError(f"--heading-line {given!r} is not a line number", next_step=step)
    return int(first), int(last or first)


def _methods_of(names: Sequence[str], tables: Sequence[Path]) -> tuple[type[Method], ...]:
    """Returns the methods; none where no file has results, and there are only recordings of machines."""
    if tables and not names:
        raise UsageError("the method is not given", place=str(tables[0]), next_step=_method_step(tables[0]))
    if names and not tables:
        raise UsageError(
            f"no file with results was given for `{names[0]}`",
            place="--method",
            next_step="name one, or leave --method out",
        )
    return tuple(method_of(name) for name in names)


def _method_step(path: Path) -> str:
    """Names the method whose columns a readable CSV has; otherwise all methods."""
    methods = importable()
    try:
        content = read_bytes(path)
        fitting = likely_method(make_sheet(lines_of(content, str(path), Dialect()), str(path)), methods)
    except UsageError:
        fitting = None
    if fitting is not None:
        return f"add --method {fitting}, whose columns it has; or one of {', '.join(methods)}"
    return f"add --method and one of {', '.join(methods)}"


# ``nicbench reference list|show|import``: published results that come with nicbench.

MOST_ROWS_SHOWN = 40

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="A name that `nicbench reference list` shows.",
        show_default=False,
        autocompletion=completion.data_sets,
    ),
]
AllRows = Annotated[bool, typer.Option("--all", help=f"Show every row, not only the first {MOST_ROWS_SHOWN}.")]


def _list(json: Json = False) -> None:
    """List the published results that come with nicbench."""
    every = tuple(data_sets().values())
    if json:
        print_json({"format": FORMAT, "data_sets": [_headline(one) for one in every]})
        return
    table = Table(header_style="bold")
    for column in ("name", "year", "method", "title"):
        table.add_column(column, overflow="fold", no_wrap=column == "name")
    for one in every:
        method = one.reading.method if one.reading else "-"
        table.add_row(one.name, str(one.year), method, escape(one.title))
    results().print(table)
    say("method `-`: cannot be imported as results; `nicbench reference show NAME` says why")


def _show(name: Name, json: Json = False, every_row: AllRows = False) -> None:
    """Show a data set: its source, its rows as printed, and its errata."""
    chosen = data_set(name)
    if json:
        print_json({"format": FORMAT, **plain(chosen)})
        return
    console = results()
    for head, text in _facts(chosen):
        console.print(f"[bold]{head:<9}[/] {escape(text)}", soft_wrap=True)
    sheet = sheet_of(chosen)
    shown = len(sheet.rows) if every_row else min(len(sheet.rows), MOST_ROWS_SHOWN)
    _print_rows(console, sheet, shown)
    if shown < len(sheet.rows):
        say(f"{len(sheet.rows) - shown} more rows: --all shows them")
    _print_errata(console, errata_of(chosen))


def _reference_import(name: Name, runs_folder: RunsFolder = DEFAULT_RUNS, json: Json = False) -> None:
    """Import a data set as a run, marked as not measured by nicbench."""
    made = as_run(data_set(name))
    keep_import(runs_folder, made.files, made.summary, made.options, as_json=json)


def _headline(one: DataSet) -> dict[str, object]:
    method = one.reading.method if one.reading else None
    kept = one.model_dump(include={"name", "title", "year", "source", "about", "why_not"})
    return {**kept, "method": method, "rows": len(sheet_of(one).rows)}


def _facts(one: DataSet) -> list[tuple[str, str]]:
    facts = [("title", one.title), ("source", f"{one.source} ({one.year})"), ("what", one.about)]
    facts += [("note", note) for note in one.notes]
    command = command_line(one)
    if one.reading is None or command is None:
        return [*facts, ("no run", one.why_not or "")]
    return [*facts, ("method", one.reading.method), ("as read", command)]


def _print_rows(console: Console, sheet: Sheet, shown: int) -> None:
    rows = ((cell.text or "-" for cell in row) for row in sheet.rows[:shown])
    print_table(console, (head.text for head in sheet.heads), rows)


def _print_errata(console: Console, errata: tuple[PlacedErratum, ...]) -> None:
    if not errata:
        console.print("errata: none")
        return
    rows = ((one.place, one.column, one.printed, one.computed or "-", one.reason) for one in errata)
    print_table(console, ("line:column", "of", "printed", "computed", "reason"), rows, "Errata")


_references = typer.Typer(no_args_is_help=True)
_references.command("list")(_list)
_references.command("show")(_show)
_references.command("import")(_reference_import)


COMMANDS = {"import": _import, "reference": _references}
