"""``nicbench import FILE... --method NAME``: a run folder of results that somebody else measured."""

from __future__ import annotations

from pathlib import Path

import typer

from nicbench.cli import import_options as read
from nicbench.cli.imported_run import keep_import, show_import
from nicbench.cli.options import DEFAULT_OUTPUT, Json, Output
from nicbench.errors import UsageError
from nicbench.importing.cells import DELIMITERS
from nicbench.importing.files import Dialect, given_files, import_files
from nicbench.importing.folder import name_of, provenance, summary_of
from nicbench.importing.formats.base import Format
from nicbench.importing.numbers import THOUSANDS
from nicbench.importing.options import ImportOptions
from nicbench.importing.results import method_of
from nicbench.registry import find


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("import")(_import)


def _import(
    paths: read.ImportPaths,
    method: read.MethodName,
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
    errata: read.Errata = False,
    dry_run: read.DryRun = False,
    output: Output = DEFAULT_OUTPUT,
    json: Json = False,
) -> None:
    """Make a run of results that somebody else measured, marked as such, with the tables and charts of our own."""
    kind = method_of(method)
    formats = find("nicbench.importing.formats", Format)
    read.choice("--from", form, formats)
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
        decimal="comma" if read.choice("--decimal", decimal, ("point", "comma")) == "comma" else "point",
        thousands=read.choice("--thousands", thousands, THOUSANDS),
        loss_ratio=read.ratio("--pdr-loss", pdr_loss),
        errata=errata,
    )
    if options.decimal == options.thousands:
        raise UsageError(f"--decimal and --thousands cannot both be {decimal}", next_step="leave one of them out")
    mark = DELIMITERS[delimiter] if read.choice("--delimiter", delimiter, DELIMITERS) and delimiter else None
    files = given_files(paths)
    found = import_files(files, formats[form], kind, options, Dialect(mark, encoding, heading_line))
    known = provenance(files, found, source=source, year=year, device=device, method=method, format=form)
    summary = summary_of(title or Path(name_of(paths[0])).stem, found, known)
    said = {
        "method": method,
        "format": form,
        "pdr_loss_ratio": options.loss_ratio,
        "link_bits_per_s": link.bits_per_s if link else None,
        "columns": {one.head.text: one.key for one in found.columns},
    }
    if dry_run:
        show_import(summary, found, as_json=json)
    else:
        keep_import(output, files, summary, said, as_json=json)
