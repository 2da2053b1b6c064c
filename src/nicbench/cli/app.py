"""Assembles the commands, and turns every error of one into a message and an exit status."""

from __future__ import annotations

import contextlib
import re
import sys
from importlib import import_module
from inspect import getdoc
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from nicbench import __version__
from nicbench.cli import completion, failure
from nicbench.cli.output import ReaderGoneError, print_json, streams_may_break
from nicbench.cli.signals import StoppedError
from nicbench.core.errors import HostError, InterruptedRunError, NicbenchError, explain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nicbench.core.result import Summary


# Commands and groups as typer makes them, but for three things that a reader of help and errors meets.  Flags and
# arguments show no `<bool>` or `<str>` in the help; errors say what a missing argument is, without words of the
# libraries below; and old names of options still work. One convention holds for all commands: `--runs` is the folder
# that holds the runs, and `--out` the file or folder that a command writes.

_OLD: Final = "--output"
"""Until 0.1 the name of both; it is in no help."""
_WRITES_OUTPUT: Final = frozenset({"export"})
"""Commands whose `--output` was the file that they write."""
_PREFIX: Final = re.compile(r"\b(?:Value|Assertion) error, ")


class Command(TyperCommand):
    """A command of nicbench."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, rename_old(self.name or "", args))
        except typer.BadParameter as error:
            error.message = _PREFIX.sub("", error.message)
            text = getattr(error.param, "help", None)
            if type(error).__name__ == "MissingParameter" and text and not error.message:
                error.message = str(text)
            raise


class Group(TyperGroup):
    """A command that has commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types(super().get_params(ctx))


def use_for(app: typer.Typer) -> None:
    """Makes the commands of an app, also of those in its groups, commands of these kinds."""
    for command in app.registered_commands:
        command.cls = Command
    for group in app.registered_groups:
        group.cls = Group
        if group.typer_instance is not None:
            use_for(group.typer_instance)


def rename_old(command: str, words: Sequence[str]) -> list[str]:
    """Returns the arguments of a command with today's names of options; what follows ``--`` is unchanged."""
    name = "--out" if command in _WRITES_OUTPUT else "--runs"
    end = words.index("--") if "--" in words else len(words)
    renamed = [
        name if word == _OLD else f"{name}={word.removeprefix(f'{_OLD}=')}" if word.startswith(f"{_OLD}=") else word
        for word in words[:end]
    ]
    return [*renamed, *words[end:]]


def _without_types(parameters: list[Any]) -> list[Any]:
    for one in parameters:
        if isinstance(one, TyperOption) and one.is_flag and one.metavar is None:
            one.metavar = ""
        elif isinstance(one, TyperArgument) and one.metavar is not None:
            one.display_type_rich = _no_type  # type: ignore[method-assign]  # its name is said, and what it is
    return parameters


def _no_type(ctx: Any) -> None:
    """What the help shows as the type of an argument."""


# The order is that of the help: commands that measure, then those that show, then those that repair.
COMMANDS: Final = {
    "demo": (
        "demo",
        "Measure a known device, then how fast this machine forwards packets (root, a minute), and write a report.",
    ),
    "init": ("init", "Write a first bench file for this machine: asks what you want, or takes it from options."),
    "run": ("run", "Run every test of a bench file and write a report."),
    "resume": ("run", "Continue an interrupted run where it stopped."),
    "report": ("results", "Build the report of a run again."),
    "compare": ("compare", "Compare runs or published results side by side."),
    "check": ("check", "Check for regressions against a run or a tag: exit status 6 if worse, 5 if unknown."),
    "export": ("export", "Export a run's results, unrounded, to a file for other programs."),
    "diff": ("compare", "Show which settings differ between two runs; those that change results most come first."),
    "list": ("list_runs", "List the runs under --runs, oldest first, or search among them."),
    "gather": ("results", "Gather finished runs into a lake, which list, check, compare and web can read."),
    "web": ("serve", "Show the runs of a folder in the browser, also while they run."),
    "serve": ("serve", "Let programs such as snappi send traffic through the Open Traffic Generator API."),
    "optimise": ("optimise", "Search for the best settings of a bench file, and confirm by further runs what is best."),
    "study": ("study", "Make one file of runs for others to cite and repeat, or repeat such a study here."),
    "fleet": ("fleet", "Run many bench files on the machines of a Slurm cluster."),
    "tag": ("list_runs", "Add a tag to a run, or remove one. Tags find runs (`list --tag`, `check --against`)."),
    "validate": ("run", "Check bench files and print what a run would do."),
    "tune": ("run", "Print what a run would tune; exit status 3 if the run would be refused."),
    "import": ("import_results", "Import results that others measured, as a run that is marked as imported."),
    "reference": ("import_results", "Published results to compare with."),
    "doctor": ("machine", "Check that this machine has what nicbench needs; exit status 3 if something is missing."),
    "prove": ("prove", "Try with frames what a port can be relied on for (root), and keep the proof for later runs."),
    "inventory": ("machine", "Print the facts of this machine that a report discloses."),
    "lab": ("lab", "Set up a lab for manual experiments, or remove it."),
    "restore": ("lab", "Undo what a killed run changed on this machine, even if its run folder is gone."),
}
"""The file in ``commands`` of each command, and its line in the help. Only the file of the command called is loaded."""


def make_app(only: str | None = None) -> typer.Typer:
    """Builds the command line with one command, or with the names and lines of all of them and none loaded."""
    app = _empty_app()
    if only is None:
        for name, (_, words) in COMMANDS.items():
            app.command(name, help=words, short_help=words)(_nothing)
    else:
        _add_command(app, only)
    use_for(app)
    return app


def make_whole_app() -> typer.Typer:
    """Builds the command line with every command loaded, which takes a second."""
    app = _empty_app()
    for name in COMMANDS:
        _add_command(app, name)
    use_for(app)
    return app


def _empty_app() -> typer.Typer:
    app = typer.Typer(
        name="nicbench",
        cls=Group,
        rich_markup_mode=None,  # to load Rich takes as long as all the rest of the help
        help="A NIC performance lab in one tool: one YAML file names the machines, the links and the tests.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_global_options)
    return app


def _add_command(app: typer.Typer, name: str) -> None:
    file, words = COMMANDS[name]
    command = import_module(f"nicbench.cli.commands.{file}").COMMANDS[name]
    if isinstance(command, typer.Typer):
        for each in command.registered_commands:  # typer would cut a docstring to fit one line
            each.short_help = (getdoc(each.callback) or "").partition("\n\n")[0]
        app.add_typer(command, name=name, help=words)
    else:
        app.command(name, help=words)(command)


def _nothing() -> None:
    """Stands in the place of a command of which the name is enough."""


def run_command(given: list[str]) -> int:
    """Runs one command; returns the exit status, which is 0 or that of the error (core/errors.py)."""
    if completion.is_asked():
        return _complete()
    with streams_may_break():
        return _run_command(given, as_json="--json" in given)


def _complete() -> int:
    """Prints what a word may become, or the script that asks for it. Never fails: somebody is typing."""
    command = next((word for word in completion.typed_words() if word in COMMANDS), None)
    app = make_app(command)
    with contextlib.suppress(Exception, SystemExit):
        app(args=[], prog_name="nicbench")
    return 0


def report_signal(stopped: StoppedError, given: list[str]) -> int:
    """Reports a signal that ended the command while nothing was measured; returns the exit status."""
    return report_error(InterruptedRunError(stopped.words), given)


def report_error(error: NicbenchError, given: list[str]) -> int:
    """Reports what ended a command before, or outside of, its own work; returns the exit status."""
    with streams_may_break():
        return _report(error, as_json="--json" in given)


def _run_command(given: list[str], *, as_json: bool) -> int:
    try:
        make_app(given[0] if given and given[0] in COMMANDS else None)(args=given, prog_name="nicbench")
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
