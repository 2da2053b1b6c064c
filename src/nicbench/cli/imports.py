"""What ``nicbench import`` and ``nicbench reference import`` share: options, a preview, and the run folder."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from nicbench.cli import completion
from nicbench.cli.output import print_json, results, say
from nicbench.core.errors import UsageError
from nicbench.core.result import Summary
from nicbench.core.units import parse_ratio
from nicbench.importing.cells import DELIMITERS
from nicbench.importing.columns import FORMS, THOUSANDS, Link, Unit, parse_link, parse_unit
from nicbench.importing.folder import GivenFile, Monitored, words, write_run
from nicbench.importing.results import ImportedResults


def print_import(console: Console, summary: Summary, found: ImportedResults) -> None:
    """Prints the preview of ``--dry-run``: how columns were mapped, and the results."""
    from nicbench.cli.summary_table import print_summary  # imported here, as `--help` and completion need none

    table = Table(header_style="bold", title="Columns", title_justify="left", title_style="bold")
    for head in ("column of the file", "becomes", "unit"):
        table.add_column(head, overflow="fold")
    for one in found.columns:
        table.add_row(escape(one.head.text), escape(one.column.name), escape(str(one.unit)) if one.unit else "-")
    for name in found.ignored:
        table.add_row(escape(name), "left out", "-")
    console.print(table)
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
    str | None,
    _option("--method", "NAME", "What was measured: throughput, latency, ...", autocompletion=completion.methods),
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
Configuration = Annotated[
    list[str] | None,
    _option("--configuration", "COLUMN", "The column that names what is compared; each value gets its own table."),
]
PdrLoss = Annotated[str | None, _option("--pdr-loss", "SHARE", "The loss that a PDR allows: '0.5 %'.")]
DecimalMark = Annotated[str, typer.Option("--decimal", metavar="point|comma", help="The decimal mark.")]
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
    int, typer.Option("--heading-line", metavar="N", min=1, max=1000, help="The line of the headings.")
]
Errata = Annotated[bool, typer.Option("--errata", help="Accept implausible figures as printed, and list them.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be imported; write nothing.")]


def pairs(option: str, written: Iterable[str]) -> dict[str, str]:
    """Parses NAME=VALUE; UsageError where one is malformed, or a name occurs twice."""
    found: dict[str, str] = {}
    for text in written:
        name, mark, value = (part.strip() for part in text.partition("="))
        if not mark or not name or not value:
            raise UsageError(f"{option} {text!r} is not NAME=VALUE", next_step=f"write {option} 'NAME=VALUE'")
        if name in found:
            raise UsageError(f"{option} names {name!r} twice", next_step="leave one of them out")
        found[name] = value
    return found


def recordings(option: str, written: Iterable[str]) -> list[tuple[Path, str | None]]:
    """Parses FILE or FILE=HOST. An existing file whose own name contains "=" is taken as it is."""
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
