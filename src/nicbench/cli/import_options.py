"""The options of ``nicbench import`` as typed on the command line: pairs written NAME=VALUE, units, links, shares."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from nicbench.errors import UsageError
from nicbench.importing.cells import DELIMITERS
from nicbench.importing.links import Link, parse_link
from nicbench.importing.numbers import THOUSANDS
from nicbench.importing.units import FORMS, Unit, parse_unit
from nicbench.units import parse_ratio


def _option(name: str, metavar: str, text: str, **more: Any) -> Any:
    return typer.Option(name, metavar=metavar, help=text, show_default=False, **more)


ImportPaths = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...", help="Tables of results, recordings of nmon; several make one run.", show_default=False
    ),
]
MethodName = Annotated[str | None, _option("--method", "NAME", "What was measured: throughput, latency, ...")]
WithMonitor = Annotated[
    list[str] | None,
    _option("--with-monitor", "FILE[=HOST]", "What nmon recorded of a machine meanwhile; HOST is its name."),
]
FormatName = Annotated[str, typer.Option("--from", metavar="FORMAT", help="plain, or whose export it is.")]
Title = Annotated[str | None, _option("--title", "TEXT", "The run's title; else the file's name.")]
Source = Annotated[str | None, _option("--source", "TEXT", "Who published it, where.")]
Year = Annotated[int | None, _option("--year", "YEAR", "Of the publication.", min=1970, max=2200)]
Device = Annotated[str | None, _option("--device", "TEXT", "What was measured.")]
LinkSpeed = Annotated[str | None, _option("--link-speed", "SPEED", "Of a port: '25 Gb/s', 25GbE, 2x25GbE.")]
Ports = Annotated[
    int | None, _option("--ports", "N", "How many ports the rates are the sum of; 1: per port.", min=1, max=1024)
]
Column = Annotated[list[str] | None, _option("--column", "THEIRS=OURS", "What a column is called here.")]
UnitOf = Annotated[list[str] | None, _option("--unit", "COLUMN=UNIT", "A unit that the heading does not name.")]
Given = Annotated[list[str] | None, _option("--set", "NAME=VALUE", "A column that the file lacks, for all rows.")]
Where = Annotated[list[str] | None, _option("--where", "COLUMN=VALUE", "Only rows with this text.")]
Ignore = Annotated[list[str] | None, _option("--ignore", "COLUMN", "A column to leave out.")]
Configuration = Annotated[
    list[str] | None, _option("--configuration", "COLUMN", "Names what is compared: a table for each.")
]
PdrLoss = Annotated[str | None, _option("--pdr-loss", "SHARE", "What a PDR allows to be lost: '0.5 %'.")]
DecimalMark = Annotated[str, typer.Option("--decimal", metavar="point|comma", help="What stands before decimals.")]
ThousandsMark = Annotated[str | None, _option("--thousands", "MARK", f"Between them: {', '.join(THOUSANDS)}.")]
Delimiter = Annotated[str | None, _option("--delimiter", "MARK", f"{', '.join(DELIMITERS)}; else as the headings.")]
Encoding = Annotated[str | None, _option("--encoding", "NAME", "cp1252, ...; else UTF-8, or UTF-16 by its mark.")]
HeadingLine = Annotated[int, typer.Option("--heading-line", metavar="N", min=1, max=1000, help="Where headings are.")]
Errata = Annotated[bool, typer.Option("--errata", help="Take what cannot be so as it is printed, and list it.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be imported; write nothing.")]


def pairs(option: str, written: Iterable[str]) -> dict[str, str]:
    """NAME=VALUE; UsageError where one is not, or a name stands twice."""
    found: dict[str, str] = {}
    for text in written:
        name, mark, value = (part.strip() for part in text.partition("="))
        if not mark or not name or not value:
            raise UsageError(f"{option} {text!r} is no pair", next_step=f"write {option} 'NAME=VALUE'")
        if name in found:
            raise UsageError(f"{option} names {name!r} twice", next_step="leave one of them out")
        found[name] = value
    return found


def recordings(option: str, written: Iterable[str]) -> list[tuple[Path, str | None]]:
    """FILE or FILE=HOST. A file whose own name has the mark is taken as it is."""
    found: list[tuple[Path, str | None]] = []
    for text in written:
        file, mark, host = text.rpartition("=")
        if not mark or Path(text).exists():
            found.append((Path(text), None))
        elif not file.strip() or not host.strip():
            raise UsageError(f"{option} {text!r} names no file and host", next_step=f"write {option} 'FILE=HOST'")
        else:
            found.append((Path(file), host.strip()))
    return found


def units(option: str, written: Iterable[str]) -> dict[str, Unit]:
    """COLUMN=UNIT."""
    found = {}
    for name, text in pairs(option, written).items():
        unit = parse_unit(text)
        if unit is None:
            raise UsageError(f"{option}: {text!r} is no unit that is known", next_step=f"known are {FORMS}")
        found[name] = unit
    return found


def link(option: str, text: str | None, ports: int | None) -> Link | None:
    """The speed of a port; how many ports' rates are summed may be part of it ("2x25GbE")."""
    if text is None:
        return None
    try:
        found = parse_link(text)
    except ValueError as error:
        raise UsageError(f"{option} {text!r} is no speed", next_step=str(error)) from error
    if ports is not None and found.ports not in (None, ports):
        raise UsageError(f"{option} {text!r} and --ports {ports} contradict each other", next_step="give one of them")
    return Link(found.bits_per_s, found.ports or ports)


def ratio(option: str, text: str | None) -> float | None:
    """A share, from "0.5 %"."""
    try:
        return None if text is None else parse_ratio(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from error


def choice(option: str, text: str | None, known: Iterable[str]) -> str | None:
    """One of the known words."""
    if text is not None and text not in known:
        raise UsageError(f"{option} cannot be {text!r}", next_step=f"it is one of {', '.join(known)}")
    return text
