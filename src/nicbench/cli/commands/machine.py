"""``nicbench doctor`` and ``nicbench inventory``: show what machines have and lack. They change nothing."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nicbench.cli.failure import run_to_the_end
from nicbench.cli.options import Json, Redact
from nicbench.cli.output import FORMAT, print_json, print_line, results
from nicbench.core.errors import NotReadyError

if TYPE_CHECKING:
    from rich.console import Console

    from nicbench.doctor.base import Check

# ``nicbench doctor``: shows what this machine has and lacks, with the command that fixes it. Changes nothing.

_LEAST_ROOM = 30
"""The least width of texts; narrower terminals wrap by themselves."""


Build = Annotated[str | None, typer.Option("--build", help="Build something that a DUT needs: l3fwd.", metavar="NAME")]


Verbose = Annotated[bool, typer.Option("--verbose", help="Print the details of each check.")]


def _doctor(json: Json = False, build: Build = None, verbose: Verbose = False) -> None:
    from nicbench.doctor.base import State, build_on_this_machine, diagnose_this_machine  # not for a completion

    if build is not None:
        print_line(run_to_the_end(build_on_this_machine(build)))
        return
    checks = run_to_the_end(diagnose_this_machine())
    lacking = sum(check.state is State.MISSING for check in checks)
    if json:
        plain = [check.model_dump(mode="json") for check in checks]
        print_json({"format": FORMAT, "ready": not lacking, "checks": plain})
    else:
        _print(checks, with_details=verbose)
    if lacking:
        raise typer.Exit(NotReadyError.exit_status)


def _print(checks: Sequence[Check], *, with_details: bool) -> None:
    """Prints the verdict and the checks, the worst first; texts stay in their column, commands unwrapped."""
    from rich.markup import escape

    from nicbench.doctor.base import State  # imported here, as in _doctor

    styles = {State.OK: "green", State.WARNING: "yellow", State.MISSING: "red"}
    state_width = max(len(state.value) for state in State) + 1
    console = results()
    lacking = sum(check.state is State.MISSING for check in checks)
    warned = sum(check.state is State.WARNING for check in checks)
    warnings = f"{warned} {'warning' if warned == 1 else 'warnings'}" if warned else ""
    verdict = f"{lacking} missing: nicbench cannot run yet" if lacking else "this machine is ready"
    console.print("; ".join(filter(None, (verdict, warnings))) + "\n")
    width = max((len(check.name) for check in checks), default=0)
    indent = " " * (state_width + width + 3)
    room = max(console.width - len(indent), _LEAST_ROOM) if console.is_terminal else sys.maxsize
    for check in sorted(checks, key=lambda check: list(styles).index(check.state), reverse=True):
        style = styles[check.state]
        state = f"[{style}]{check.state.value:<{state_width}}[/]"
        text = f"\n{indent}".join(wrap(check.text, room, break_long_words=False, break_on_hyphens=False))
        console.print(f"{state} {escape(check.name):<{width}}  {escape(text)}", soft_wrap=True)
        if check.mend_command is not None:
            console.print(f"{indent}fix: {escape(check.mend_command)}", soft_wrap=True)
        if with_details:
            for name, value in check.details.items():
                print_line(f"{indent}{name.replace('_', ' ')}: {_in_words(value)}", console)


def _in_words(value: Any) -> str:
    """A detail as a reader says it."""
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value)


# ``nicbench inventory``: shows the facts of this machine, or of the machines of a bench file. Changes nothing.


_Bench = Annotated[
    Path | None,
    typer.Argument(
        metavar="BENCH.yaml", help="Show the hosts of this bench file instead of this machine.", show_default=False
    ),
]


def _inventory(bench: _Bench = None, json: Json = False, redact: Redact = False) -> None:
    from nicbench.bench_file import load  # imported here, as in _doctor
    from nicbench.stages.hosts import inventory_of

    found = run_to_the_end(inventory_of(None if bench is None else load(bench), redact=redact))
    if json:
        print_json({"format": FORMAT, "hosts": found})
    else:
        _inventory_print(results(), found)


def _inventory_print(console: Console, found: dict[str, Any]) -> None:
    from rich.markup import escape
    from rich.table import Table

    from nicbench.report.facts import columns, label_of  # imported here, as charts take a second to load
    from nicbench.report.system_table import system_table

    for name, facts in found.items():
        table = system_table({name: facts})
        shown = Table(title=escape(name), title_justify="left", box=None, pad_edge=False, show_header=False)
        shown.add_column(style="bold")
        shown.add_column(overflow="fold")
        for row in table.rows:
            shown.add_row(escape(row.label), escape(row.texts[0] or "unknown"))
        console.print(shown)
        if table.unknown:
            console.print("\nNot known:")
            for label, reason in table.unknown:
                console.print(f"  {escape(label)}: {escape(reason)}", soft_wrap=True)
        _, rows = columns({name: facts}, label_of)
        console.print(f"\nEvery fact: {len(rows)}")
        every = Table(box=None, pad_edge=False, show_header=False)
        every.add_column(style="dim", overflow="fold", ratio=2)
        every.add_column(overflow="fold", ratio=3)
        for label, texts in rows:
            every.add_row(escape(label), escape(texts[0]))
        console.print(every)


COMMANDS = {"doctor": _doctor, "inventory": _inventory}
