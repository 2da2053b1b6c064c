"""Assembles the commands, and turns every error of one into a message and an exit status."""

from __future__ import annotations

import contextlib
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from nicbench import __version__
from nicbench.cli import command_line, completion, failure
from nicbench.cli.output import ReaderGoneError, print_json, streams_may_break
from nicbench.cli.signals import StoppedError
from nicbench.core.errors import HostError, InterruptedRunError, NicbenchError, explain

if TYPE_CHECKING:
    from nicbench.core.result import Summary

# The order is that of the help: commands that measure, then those that show, then those that repair.
COMMANDS: Final = {
    "demo": "demo",
    "init": "init",
    "run": "run",
    "resume": "resume",
    "report": "report",
    "compare": "compare",
    "check": "check",
    "export": "export",
    "diff": "diff",
    "list": "list_runs",
    "gather": "gather",
    "web": "web",
    "serve": "serve",
    "fleet": "fleet",
    "tag": "tag",
    "validate": "validate",
    "tune": "tune",
    "import": "import_results",
    "reference": "reference",
    "doctor": "doctor",
    "inventory": "inventory",
    "lab": "lab",
    "restore": "restore",
}
"""Each command and its file in ``commands``; only the command called is loaded, as all of them take a second."""


def make_app(only: str | None = None) -> typer.Typer:
    """Builds the command line with all its commands, or with one of them."""
    app = typer.Typer(
        name="nicbench",
        cls=command_line.Group,
        help="A NIC performance lab in one tool: one YAML file names the machines, the links and the tests.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_global_options)
    for name, file in COMMANDS.items():
        if only in (None, name):
            import_module(f"nicbench.cli.commands.{file}").register(app)
    command_line.use_for(app)
    return app


def run_command(given: list[str]) -> int:
    """Runs one command; returns the exit status, which is 0 or that of the error (core/errors.py)."""
    if completion.is_asked():
        return _complete()
    with streams_may_break():
        return _run_command(given, as_json="--json" in given)


def _complete() -> int:
    """Prints what a word may become, or the script that asks for it. Never fails: somebody is typing."""
    command = next((word for word in completion.typed_words() if word in COMMANDS), None)
    app = make_app(command) if command is not None else _app_of_names()
    with contextlib.suppress(Exception, SystemExit):
        app(args=[], prog_name="nicbench")
    return 0


def _app_of_names() -> typer.Typer:
    """The command line with the names of its commands and none of them: to load them all takes a second."""
    app = typer.Typer(name="nicbench")
    app.callback()(_global_options)
    for name in COMMANDS:
        app.command(name)(_nothing)
    return app


def _nothing() -> None:
    """Stands in the place of a command whose name is completed."""


def report_signal(stopped: StoppedError, given: list[str]) -> int:
    """Reports a signal that ended the command while nothing was measured; returns the exit status."""
    return report_error(InterruptedRunError(stopped.words), given)


def report_error(error: NicbenchError, given: list[str]) -> int:
    """Reports what ended a command before, or outside of, its own work; returns the exit status."""
    with streams_may_break():
        return _report(error, as_json="--json" in given)


def _run_command(given: list[str], *, as_json: bool) -> int:
    try:
        make_app(_needed_command(given))(args=given, prog_name="nicbench")
        sys.stdout.flush()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        return _finish_output(status, failure.usage_document() if status == 2 and as_json else None)
    except failure.ReportedError as reported:
        return _report(reported.error, as_json=as_json and not reported.told, summary=reported.summary)
    except NicbenchError as error:
        return _report(error, as_json=as_json)
    except ReaderGoneError:
        return 0  # the reader of our output closed the pipe
    except MemoryError as error:
        return _report(HostError(explain(error), next_step="free some memory"), as_json=as_json)
    except Exception as error:
        system_error = failure.of_system(error) if isinstance(error, OSError) else None
        return _report(system_error or failure.CrashError.of(error), as_json=as_json)
    return 0


def _needed_command(given: list[str]) -> str | None:
    """Returns the one command that these arguments need; None where it may be any."""
    if given[:1] == ["--version"]:
        return "list"  # the version needs no command, but typer needs at least one
    return given[0] if given and given[0] in COMMANDS else None


def _report(error: NicbenchError, *, as_json: bool, summary: Summary | None = None) -> int:
    """Reports the error and returns its status, even where stdout no longer takes a document."""
    try:
        return failure.report(error, as_json=as_json, summary=summary)
    except (NicbenchError, ReaderGoneError):
        return error.exit_status


def _finish_output(status: int, document: dict[str, Any] | None) -> int:
    """Flushes the output of what typer ended itself (help, wrong arguments), and returns the status."""
    try:
        if document is not None:
            print_json(document)
        sys.stdout.flush()
    except NicbenchError as error:
        failure.report(error, as_json=False)
        return status or error.exit_status
    except ReaderGoneError:
        pass
    return status


def _print_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"nicbench {__version__}\n")
        raise typer.Exit


def _global_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options of every command."""
