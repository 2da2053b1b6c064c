"""``nicbench lab up|list|shell|down``: keeps a lab, with the DUT in it, for manual experiments, and removes it."""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nicbench.cli import completion
from nicbench.cli.failure import run_to_the_end
from nicbench.cli.options import DEFAULT_RUNS, RunsFolder
from nicbench.cli.output import print_line, results, say
from nicbench.core.errors import NotReadyError, UsageError
from nicbench.tuning.record import RUNTIME_FOLDER, record_path
from nicbench.tuning.restore import find_kept_runs, find_unrestored_runs, restore, restore_stale, run_id_of

if TYPE_CHECKING:
    from nicbench.bench_file import BenchFile
    from nicbench.testbed.labs.base import EndpointTestbed, Testbed
    from nicbench.tuning.stack import UndoStack

PREFIX = "lab-"
_SANDBOX = "vm"
BenchToKeep = Annotated[
    Path, typer.Argument(metavar="BENCH.yaml", help="The bench file, or `vm` for a virtual machine to try things in.")
]
LabName = Annotated[
    str | None,
    typer.Argument(metavar="NAME", help="The lab; optional if only one is up.", autocompletion=completion.labs),
]

ConfigurationName = Annotated[
    str | None,
    typer.Option("--configuration", metavar="NAME", help="The configuration, if the file has several."),
]


def _up(bench: BenchToKeep, configuration: ConfigurationName = None) -> None:
    """Create the lab (or hosts and ports) and the DUT of a bench file; they stay until `lab down`."""
    from nicbench.bench_file import load  # imported here, as completion needs no parts of a run
    from nicbench.store.folder import slug

    if str(bench) == _SANDBOX and not bench.exists():
        bench = Path(str(files("nicbench.testbed.vm") / "sandbox.yaml"))
    bench_file = _configuration(load(bench), configuration)
    if not _makes_something(bench_file):
        step = (
            "use a bench file with a `lab` (such as `veth` or `clients`), or with hosts or ports that nicbench creates"
        )
        raise UsageError("this bench file creates nothing that could be kept up", place=str(bench), next_step=step)
    name = f"{PREFIX}{slug(bench_file.title)}"
    if name in find_kept_runs():
        raise UsageError(f"the lab {name} is already up", next_step=f"nicbench lab down {name}")
    testbed = run_to_the_end(_keep(bench_file, name))
    console = results()
    console.print(f"{name} is up", markup=False)
    for title, text in _facts(testbed):
        print_line(f"  {title:<24} {text}", console)
    say(f"work in it: nicbench lab shell --lab {name}")
    say(f"remove it:  nicbench lab down {name}")


def _list() -> None:
    """Print the labs that are up, and their hosts."""
    from nicbench.stages.lab_shell import hosts_of_lab  # imported here, as in _make_testbed

    kept = find_kept_runs()
    for name in kept:
        print_line(f"{name}  {', '.join(hosts_of_lab(name))}".rstrip())
    if not kept:
        say("no lab is up")


def _shell(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND", help="The command to run; the default is a shell.")
    ] = None,
    lab: Annotated[
        str | None,
        typer.Option("--lab", metavar="NAME", help="The lab, if several are up.", autocompletion=completion.labs),
    ] = None,
    host: Annotated[str | None, typer.Option("--host", metavar="HOST", help="One of its hosts.")] = None,
) -> None:
    """Run a command, or a shell, on a host of a lab that is up."""
    from nicbench.stages.lab_shell import host_of_lab, run_in_lab  # imported here, as in _make_testbed

    def show(piece: bytes) -> None:
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()

    raise typer.Exit(run_to_the_end(run_in_lab(host_of_lab(_require_lab(lab), host), command or (), show)))


def _makes_something(bench: BenchFile) -> bool:
    """Returns whether the bench file makes a lab on a machine, virtual machines, namespaces or addresses."""
    from nicbench.stages import hosts  # imported here, as in _make_testbed

    if bench.lab is not None:
        return bool(bench.lab.plugin.touches_machine)
    return hosts.starts_hosts(bench) or hosts.makes_ports(bench)


def _configuration(bench: BenchFile, name: str | None) -> BenchFile:
    """Returns the configuration asked for: a lab holds one."""
    known = [each.configuration for each in bench.compared]
    if name is None and not known:
        return bench
    if name in known:
        return bench.compared[known.index(name)]
    what = "has several configurations, and a lab holds one" if name is None else f"has no configuration {name}"
    step = f"write --configuration and one of {', '.join(known)}" if known else "leave --configuration out"
    raise UsageError(what, place=str(bench.path), next_step=step)


def _down(name: LabName = None) -> None:
    """Remove a lab that `lab up` made."""
    lab = _require_lab(name)
    for sentence in run_to_the_end(restore(lab)):
        print_line(sentence)
    if lab not in find_kept_runs():
        results().print(f"{lab} is down", markup=False)


def _require_lab(name: str | None) -> str:
    kept = find_kept_runs()
    if name is None and len(kept) == 1:
        return kept[0]
    if name in kept:
        return str(name)
    what = f"there is no lab {name}" if name else "several labs are up" if kept else "no lab is up"
    step = f"name one that is up: {', '.join(kept)}" if kept else "make one: nicbench lab up BENCH.yaml"
    raise UsageError(what, next_step=step)


async def _keep(bench: BenchFile, name: str) -> Testbed | EndpointTestbed:
    from nicbench.core.events import Bus, Note  # imported here, as in _make_testbed
    from nicbench.stages.hosts import describe_making, require_named
    from nicbench.stages.lab_shell import write_hosts
    from nicbench.stages.machine import claims, hold_machines
    from nicbench.tuning.stack import UndoStack

    await require_named(bench)
    changes, bus = UndoStack(name, None), Bus()
    bus.subscribe(lambda event: say(event.text) if isinstance(event, Note) else None)
    async with hold_machines(name, claims(bench), bus):
        try:
            say(describe_making(bench))
            testbed = await _make_testbed(bench, changes)
            await write_hosts(changes, name, testbed)
            await changes.keep()
        except BaseException:  # also after an interruption: half a lab is not kept
            for trouble in await changes.undo_all():
                say(f"warning: {trouble}")
            raise
    return testbed


async def _make_testbed(bench: BenchFile, changes: UndoStack) -> Testbed | EndpointTestbed:
    """Makes what a run of the bench file would use."""
    from nicbench.stages import testbed  # imported here, as only this command and `run` need it

    if bench.measures == "rounds":
        ends = await testbed.make_endpoints(bench, changes)
        await testbed.make_server(bench, ends, changes)
        return ends
    _, ports = await testbed.make_testbed(bench, changes)
    await testbed.make_dut(bench, ports, changes)
    return ports


def _facts(testbed: Testbed | EndpointTestbed) -> list[tuple[str, str]]:
    """Lists what one needs to work in the lab: namespaces, interfaces, settings; one line each."""
    from nicbench.core.units import format_bits_per_s  # imported here, as in _make_testbed
    from nicbench.testbed.labs.base import EndpointTestbed

    facts = {**testbed.facts, "hosts": _drop_commands(testbed.facts.get("hosts", {}))}
    if isinstance(testbed, EndpointTestbed):
        if isinstance(facts.get("rate"), int | float):
            facts = {**facts, "rate": format_bits_per_s(facts["rate"])}
        facts = {**facts, "addresses": {name: end.facts.address for name, end in testbed.endpoints.items()}}
    return [(name.replace("_", " "), _format_value(value)) for name, value in facts.items() if value not in ({}, None)]


def _drop_commands(hosts: dict[str, dict[str, object]]) -> dict[str, dict[str, object]]:
    """Drops the command lines that started hosts, which are only for the report."""
    return {name: {key: fact for key, fact in made.items() if key != "command"} for name, made in hosts.items()}


def _format_value(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_format_value(part)}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_format_value(part) for part in value)
    return str(value)


# ``nicbench restore RUN``, or ``--all``: undoes what killed runs left behind.

_Run = Annotated[
    str | None,
    typer.Argument(
        metavar="RUN",
        help="A run's folder, its id under --runs, or `latest`.",
        show_default=False,
        autocompletion=completion.runs,
    ),
]
_All = Annotated[bool, typer.Option("--all", help="Undo what every killed run left on this machine.")]


def _restore(run: _Run = None, runs_folder: RunsFolder = DEFAULT_RUNS, all_runs: _All = False) -> None:
    if (run is None) != all_runs:
        raise UsageError("name a run, or give --all", next_step="nicbench list shows the runs")
    if run is None:
        _restore_all()
        return
    reference = _reference(run, runs_folder)
    for sentence in run_to_the_end(restore(reference, RUNTIME_FOLDER)):
        print_line(sentence)
    from nicbench.tuning.lock import forget_dead_holder  # imported here, as in _make_testbed

    # The lock goes last: the next run finds changes that are not undone by the lock as well.
    run_id = run_id_of(reference)
    if not record_path(RUNTIME_FOLDER, run_id).exists() and forget_dead_holder(run_id, RUNTIME_FOLDER):
        print_line(f"{run_id}: its lock of this machine was removed")


def _restore_all() -> None:
    """Undoes what every dead run left; NotReadyError where some of it could not be undone."""
    for sentence in run_to_the_end(restore_stale(RUNTIME_FOLDER)):
        print_line(sentence)
    left = find_unrestored_runs(RUNTIME_FOLDER)
    if left:
        step = "undo by hand what the record of the run names, or restart the machines that it changed"
        raise NotReadyError("changes of killed runs are not undone", place=", ".join(left), next_step=step)


def _reference(run: str, runs_folder: Path) -> str:
    """Finds the run by its traces on this machine, or else by its folder; UsageError where there is neither."""
    from nicbench.store.listing import LATEST, open_run  # imported here, as in _make_testbed

    if run != LATEST:
        run_id = run_id_of(run)
        if _has_traces(run_id):
            return run
    folder = open_run(run, runs_folder, damaged=True)  # its changes are undone whatever became of its results
    if folder.is_imported:
        raise UsageError(
            "this run was imported, not measured by nicbench: it changed nothing that could be restored",
            place=str(folder.path),
            next_step="name a run that was measured; nicbench list shows which were",
        )
    return str(folder.path)


def _has_traces(run_id: str) -> bool:
    """Whether it may have changed this machine. NotReadyError where only root can see that."""
    from nicbench.tuning.lock import is_locked_by  # imported here, as in _make_testbed

    try:
        return record_path(RUNTIME_FOLDER, run_id).parent.is_dir() or is_locked_by(run_id, RUNTIME_FOLDER)
    except PermissionError as error:
        raise NotReadyError(
            "only root can see what a run changed", place=str(RUNTIME_FOLDER), next_step="run this with sudo"
        ) from error


_labs = typer.Typer(no_args_is_help=True)
_labs.command("up")(_up)
_labs.command("list")(_list)
_labs.command("shell", context_settings={"allow_interspersed_args": False})(_shell)
_labs.command("down")(_down)


COMMANDS = {"restore": _restore, "lab": _labs}
