"""``nicbench doctor``: shows what this machine has and lacks, with the command that fixes it. Changes nothing."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from textwrap import wrap
from typing import Annotated, Any, Final

import typer
from rich.markup import escape

from nicbench.cli.failure import run_to_the_end
from nicbench.cli.options import Json
from nicbench.cli.output import FORMAT, print_json, results
from nicbench.core.errors import NotReadyError
from nicbench.doctor.base import Check, State
from nicbench.doctor.diagnose import build_on_this_machine, diagnose_this_machine

STYLES: Final = {State.OK: "green", State.WARNING: "yellow", State.MISSING: "red"}
_STATE_WIDTH: Final = max(len(state.value) for state in State) + 1
_LEAST_ROOM: Final = 30
"""The least width of texts; narrower terminals wrap by themselves."""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("doctor")(_doctor)


Build = Annotated[str | None, typer.Option("--build", help="Build something that a DUT needs: l3fwd.", metavar="NAME")]


Verbose = Annotated[bool, typer.Option("--verbose", help="Print the details of each check.")]


def _doctor(json: Json = False, build: Build = None, verbose: Verbose = False) -> None:
    """Check that this machine has what nicbench needs; exit status 3 if something is missing."""
    if build is not None:
        results().print(escape(run_to_the_end(build_on_this_machine(build))), soft_wrap=True)
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
    console = results()
    lacking = sum(check.state is State.MISSING for check in checks)
    warned = sum(check.state is State.WARNING for check in checks)
    warnings = f"{warned} {'warning' if warned == 1 else 'warnings'}" if warned else ""
    verdict = f"{lacking} missing: nicbench cannot run yet" if lacking else "this machine is ready"
    console.print("; ".join(filter(None, (verdict, warnings))) + "\n")
    width = max((len(check.name) for check in checks), default=0)
    indent = " " * (_STATE_WIDTH + width + 3)
    room = max(console.width - len(indent), _LEAST_ROOM) if console.is_terminal else sys.maxsize
    for check in sorted(checks, key=lambda check: list(STYLES).index(check.state), reverse=True):
        style = STYLES[check.state]
        state = f"[{style}]{check.state.value:<{_STATE_WIDTH}}[/]"
        text = f"\n{indent}".join(wrap(check.text, room, break_long_words=False, break_on_hyphens=False))
        console.print(f"{state} {escape(check.name):<{width}}  {escape(text)}", soft_wrap=True)
        if check.mend_command is not None:
            console.print(f"{indent}fix: {escape(check.mend_command)}", soft_wrap=True)
        if with_details:
            for name, value in check.details.items():
                console.print(escape(f"{indent}{name.replace('_', ' ')}: {_in_words(value)}"), soft_wrap=True)


def _in_words(value: Any) -> str:
    """A detail as a reader says it."""
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value)
