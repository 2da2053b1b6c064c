"""``nicbench fleet submit|status|cancel|gather|features``: many runs on the machines of a Slurm cluster."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from nicbench.cli.failure import ReportedError, run_to_the_end
from nicbench.cli.options import Json, duration_s
from nicbench.cli.output import FORMAT, print_json, print_line, say
from nicbench.core.errors import NicbenchError
from nicbench.core.units import format_duration_s

if TYPE_CHECKING:
    from nicbench.fleet.folder import Manifest, TaskState

_FleetOrFolder = Annotated[
    Path,
    typer.Argument(metavar="FLEET.yaml", help="The fleet file, or the folder of a fleet to submit its missing runs."),
]
_Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of a fleet.", show_default=False)]
_Into = Annotated[
    Path,
    typer.Option("--into", metavar="DIR", help="Where the folder of the fleet is made; every machine must see it."),
]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Check every run and print the arrays, and submit nothing.")]
_Cables = Annotated[
    float,
    typer.Option(
        "--cables",
        metavar="DURATION",
        parser=duration_s("--cables"),
        help="Send test frames from free ports for this long, to find cables to machines that do the same. Needs root.",
        show_default="no frames",
    ),
]
_Number = Annotated[int, typer.Argument(metavar="NUMBER", min=0, help="The number of the run.", show_default=False)]
_Folders = Annotated[list[Path], typer.Argument(metavar="FOLDER...", help="The folders of fleets.", show_default=False)]
_Lake = Annotated[str, typer.Option("--into", metavar="LAKE", help="A folder or an address like s3://bucket/lake.")]
_MOST_SHOWN: Final = 20


def _submit(fleet: _FleetOrFolder, into: _Into = Path("fleets"), dry_run: _DryRun = False, json: Json = False) -> None:
    """Check every run of a fleet file, and have Slurm start them."""
    from nicbench.fleet import FleetFolder, read_fleet, slurm
    from nicbench.fleet.folder import states_of
    from nicbench.fleet.jobs import make_fleet, plan_fleet, submit

    if fleet.is_dir():
        folder = FleetFolder.open(fleet)
        manifest = folder.manifest
        alive = {each.task.number for each in states_of(folder) if each.is_alive}
    else:
        read = read_fleet(fleet)
        manifest, texts = plan_fleet(read, slurm.list_machines(), slurm.largest_array())
        alive = set()
        if not dry_run:
            folder = make_fleet(read, manifest, texts, into)
    if dry_run:
        _show_plan(manifest, as_json=json)
        return
    submitted = submit(folder, alive)
    if json:
        print_json({"format": FORMAT, "folder": str(folder.path), "submitted": submitted})
        return
    print_line(str(folder.path))
    say(f"{submitted} of {len(manifest.tasks)} runs submitted; see `nicbench fleet status {folder.path}`")


def _show_plan(manifest: Manifest, *, as_json: bool) -> None:
    if as_json:
        print_json(manifest)
        return
    for array in manifest.arrays:
        cells = list(dict.fromkeys(str(manifest.tasks[number]) for number in array.numbers))
        asked = f"{array.nodes} nodes with {array.constraint or 'no features asked for'}"
        limit = format_duration_s(array.limit_min * 60.0)
        print_line(f"{len(array.numbers)} runs on {asked}, each at most {limit}:")
        shown = cells[:_MOST_SHOWN]
        for cell in (*shown, *([f"... and {len(cells) - len(shown)} more"] if len(cells) > len(shown) else [])):
            print_line(f"  {cell}")


def _status(folder: _Folder, json: Json = False) -> None:
    """Show how many runs are done, waiting, running or failed, and why."""
    from nicbench.fleet import FleetFolder
    from nicbench.fleet.folder import DONE, states_of

    opened = FleetFolder.open(folder)
    found = states_of(opened)
    if json:
        print_json({"format": FORMAT, "fleet": opened.manifest.fleet, "runs": [_row(each) for each in found]})
        return
    counts: dict[str, int] = {}
    for each in found:
        counts[each.state] = counts.get(each.state, 0) + 1
    summary = ", ".join(f"{count} {state}" for state, count in counts.items())
    print_line(f"{opened.manifest.fleet}: {len(found)} runs: {summary}")
    others = [each for each in found if each.state != DONE]
    for each in others[:_MOST_SHOWN]:
        machines = " ".join(f"{role}={name}" for role, name in each.machines.items())
        said = " ".join(filter(None, (each.reason and f"({each.reason})", machines and f"on {machines}", each.log)))
        print_line(f"  {each.task.number} {each.task}: {each.state} {said}".rstrip())
    if len(others) > _MOST_SHOWN:
        say(f"  ... and {len(others) - _MOST_SHOWN} more; --json shows all")
    if held := [each.job for each in others if each.is_held and each.job is not None]:
        say(f"Slurm holds some back, and starts them after `scontrol release {','.join(held[:_MOST_SHOWN])}`")
    if any(not each.is_alive for each in others):
        say(f"`nicbench fleet submit {folder}` submits what neither waits nor runs again")


def _row(state: TaskState) -> dict[str, Any]:
    return {
        "number": state.task.number,
        **state.task.values,
        "repeat": state.task.repeat,
        "state": state.state,
        "reason": state.reason or None,
        "job": state.job,
        "machines": dict(state.machines),
        "run": state.run,
        "log": state.log,
    }


def _cancel(folder: _Folder) -> None:
    """Cancel the runs that wait or run. A run undoes its changes, keeps what it measured, and may be resubmitted."""
    from nicbench.fleet import FleetFolder, slurm

    slurm.cancel([array.name for array in FleetFolder.open(folder).manifest.arrays])
    say(f"cancelled; `nicbench fleet status {folder}` shows what ends")


def _gather(folders: _Folders, into: _Lake, json: Json = False) -> None:
    """Append the finished runs of fleets to a lake, which list, check, compare and web can read."""
    from nicbench.cli.commands.results import gather
    from nicbench.fleet import FleetFolder

    gather([FleetFolder.open(folder).runs for folder in folders], into, json)


def _features(cables: _Cables = 0.0) -> None:
    """Print this machine's line for slurm.conf: its cards, drivers, speeds, kernel, and cables."""
    from nicbench.fleet.jobs import collect_features

    name = socket.gethostname().partition(".")[0]
    found = run_to_the_end(collect_features(name, cables))
    print_line(f"NodeName={name} Feature={','.join(found)}")


def _execute(folder: _Folder, number: _Number) -> None:
    """Make one run, on the machines of the Slurm job that calls this; the jobs of `submit` do."""
    from nicbench.fleet import FleetFolder
    from nicbench.fleet.jobs import prepare, publish_finished, try_again

    opened = FleetFolder.open(folder)
    try:
        work = prepare(opened, number)
        if work is None:
            say(f"run {number} is finished already")
            return
        try:
            _measure(work)
        finally:
            published = publish_finished(opened, number)
            if published is not None:
                say(f"finished: {published}")
    except ReportedError as reported:
        raise ReportedError(try_again(reported.error), reported.summary, told=reported.told) from reported
    except NicbenchError as error:
        raise try_again(error) from error


def _measure(work: Any) -> None:
    from nicbench.cli.commands.run import resume, run

    if work.begun is not None:
        resume(str(work.begun))
    else:
        tags = [f"{axis}-{value}" for axis, value in work.task.values.items() if axis != "bench"]
        run(work.bench, runs_folder=work.folder, tag=tags)


_fleets = typer.Typer(no_args_is_help=True)
_fleets.command("submit")(_submit)
_fleets.command("status")(_status)
_fleets.command("cancel")(_cancel)
_fleets.command("gather")(_gather)
_fleets.command("features")(_features)
_fleets.command("exec")(_execute)


COMMANDS = {"fleet": _fleets}
