"""``nicbench import FILE... --method NAME``: makes a run folder of results that somebody else measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from nicbench.cli import imports as read
from nicbench.cli.imports import keep_import, show_import
from nicbench.cli.options import DEFAULT_RUNS, Json, RunsFolder, choice
from nicbench.core.errors import UsageError
from nicbench.core.registry import find
from nicbench.importing.cells import DELIMITERS, decode, read_bytes, read_sheet
from nicbench.importing.columns import THOUSANDS, ImportOptions
from nicbench.importing.folder import (
    FORMAT,
    METHOD,
    Dialect,
    given_files,
    import_files,
    is_recording,
    name_of,
    provenance,
    read_monitored,
    summary_of,
)
from nicbench.importing.formats.base import Format
from nicbench.importing.results import ImportedResults, importable, likely_method, method_of
from nicbench.methods.base import Method


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("import")(_import)


def _import(
    paths: read.ImportPaths,
    method: read.MethodName = None,
    form: read.FormatName = "plain",
    title: read.Title = None,
    source: read.Source = None,
    year: read.Year = None,
    device: read.Device = None,
    link_speed: read.LinkSpeed = None,
    ports: read.Ports = None,
    column: read.Column = None,
    unit: read.UnitOf = None,
    given: read.Given = None,
    where: read.Where = None,
    ignore: read.Ignore = None,
    configuration: read.Configuration = None,
    pdr_loss: read.PdrLoss = None,
    decimal: read.DecimalMark = "point",
    thousands: read.ThousandsMark = None,
    delimiter: read.Delimiter = None,
    encoding: read.Encoding = None,
    heading_line: read.HeadingLine = 1,
    with_monitor: read.WithMonitor = None,
    errata: read.Errata = False,
    dry_run: read.DryRun = False,
    runs_folder: RunsFolder = DEFAULT_RUNS,
    json: Json = False,
) -> None:
    """Import results that others measured, as a run that is marked as imported."""
    tables = [path for path in paths if not is_recording(path)]
    own_names = [(path, None) for path in paths if is_recording(path)]
    named = [*own_names, *read.recordings("--with-monitor", with_monitor or ())]
    kind = _method_of(method, tables)
    formats = find("nicbench.importing.formats", Format)
    choice("--from", form, formats)
    link = read.link("--link-speed", link_speed, ports)
    options = ImportOptions(
        link=link,
        ports=ports,
        columns=read.pairs("--column", column or ()),
        units=read.units("--unit", unit or ()),
        given=read.pairs("--set", given or ()),
        where=read.pairs("--where", where or ()),
        ignore=tuple(ignore or ()),
        configurations=tuple(configuration or ()),
        decimal="comma" if choice("--decimal", decimal, ("point", "comma")) == "comma" else "point",
        thousands=choice("--thousands", thousands, THOUSANDS),
        loss_ratio=read.ratio("--pdr-loss", pdr_loss),
        errata=errata,
    )
    if options.decimal == options.thousands:
        raise UsageError(f"--decimal and --thousands cannot both be {decimal}", next_step="leave one of them out")
    mark = DELIMITERS[delimiter] if choice("--delimiter", delimiter, DELIMITERS) and delimiter else None
    files = given_files(tables)
    machines = read_monitored(named, files, encoding)
    if kind is None:
        found, method, form = ImportedResults((), (), ()), METHOD, FORMAT
    else:
        found = import_files(files, formats[form], kind, options, Dialect(mark, encoding, heading_line))
        method = kind.kind
    known = provenance(files, found, machines, source=source, year=year, device=device, method=method, format=form)
    summary = summary_of(title or Path(name_of(paths[0])).stem, found, known)
    stored = {
        "method": method,
        "format": form,
        "pdr_loss_ratio": options.loss_ratio,
        "link_bits_per_s": link.bits_per_s if link else None,
        "columns": {one.head.text: one.key for one in found.columns},
    }
    if dry_run:
        show_import(summary, found, machines, as_json=json)
    else:
        keep_import(runs_folder, files, summary, stored, as_json=json, machines=machines)


def _method_of(name: str | None, tables: Sequence[Path]) -> type[Method] | None:
    """Returns the method; None where no file has results, and there are only recordings of machines."""
    if tables and name is None:
        raise UsageError("the method is not given", place=str(tables[0]), next_step=_method_step(tables[0]))
    if name is not None and not tables:
        raise UsageError(
            f"no file with results was given for `{name}`",
            place="--method",
            next_step="name one, or leave --method out",
        )
    return None if name is None else method_of(name)


def _method_step(path: Path) -> str:
    """Names the method whose columns a table has, as far as it is a CSV that can be read; otherwise all of them."""
    methods = importable()
    try:
        fitting = likely_method(read_sheet(decode(read_bytes(path), str(path), None), str(path)), methods)
    except UsageError:
        fitting = None
    if fitting is not None:
        return f"add --method {fitting}, whose columns it has; or one of {', '.join(methods)}"
    return f"add --method and one of {', '.join(methods)}"
