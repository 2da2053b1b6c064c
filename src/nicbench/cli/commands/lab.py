"""``nicbench lab up|down``: keeps a lab, and the DUT in it, for experiments by hand, and removes it."""

from __future__ import annotations

from typing import Annotated

import typer

from nicbench.bench_file import BenchFile, load
from nicbench.cli.interruption import run_to_the_end
from nicbench.cli.options import BenchPath
from nicbench.cli.output import results, say
from nicbench.errors import UsageError
from nicbench.labs.base import EndpointTestbed, Testbed
from nicbench.store.folder import slug
from nicbench.tuning.lock import HostLock
from nicbench.tuning.restore import kept_runs, restore, restore_stale
from nicbench.tuning.stack import UndoStack
from nicbench.units import format_bits_per_s

PREFIX = "lab-"
LabName = Annotated[str | None, typer.Argument(metavar="NAME", help="The lab; may be left out where there is one.")]

ConfigurationName = Annotated[
    str | None,
    typer.Option("--configuration", metavar="NAME", help="Which one of several."),
]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    labs = typer.Typer(help="Keep a lab for experiments by hand, or remove it.", no_args_is_help=True)
    labs.command("up")(_up)
    labs.command("down")(_down)
    app.add_typer(labs, name="lab")


def _up(bench: BenchPath, configuration: ConfigurationName = None) -> None:
    """Make the lab and the DUT of a bench file, and leave them there until `lab down`."""
    bench_file = _configuration(load(bench), configuration)
    if bench_file.lab is None or not bench_file.lab.plugin.touches_machine:
        step = "use a bench file whose lab is made on this machine, such as `veth` or `clients`"
        raise UsageError("there is no lab to keep", place=str(bench), next_step=step)
    name = f"{PREFIX}{slug(bench_file.title)}"
    if name in kept_runs():
        raise UsageError(f"the lab {name} is up already", next_step=f"nicbench lab down {name}")
    testbed = run_to_the_end(_keep(bench_file, name))
    console = results()
    console.print(f"{name} is up", markup=False)
    for title, text in _facts(testbed):
        console.print(f"  {title:<24} {text}", markup=False, soft_wrap=True)
    say(f"remove it: nicbench lab down {name}")


def _configuration(bench: BenchFile, name: str | None) -> BenchFile:
    """The one that is asked for; a lab holds one."""
    known = [each.configuration for each in bench.compared]
    if name is None and not known:
        return bench
    if name in known:
        return bench.compared[known.index(name)]
    what = "is the lab of which configuration?" if name is None else f"has no configuration {name}"
    step = f"write --configuration and one of {', '.join(known)}" if known else "leave --configuration out"
    raise UsageError(what, place=str(bench.path), next_step=step)


def _down(name: LabName = None) -> None:
    """Remove a lab that `lab up` made."""
    for sentence in run_to_the_end(restore(_the_one(name))):
        results().print(sentence, markup=False, soft_wrap=True)


def _the_one(name: str | None) -> str:
    kept = kept_runs()
    if name is None and len(kept) == 1:
        return kept[0]
    if name in kept:
        return str(name)
    known = f"labs that are up: {', '.join(kept)}" if kept else "no lab is up"
    raise UsageError(f"there is no lab {name}" if name else "which lab?", next_step=known)


async def _keep(bench: BenchFile, name: str) -> Testbed | EndpointTestbed:
    changes = UndoStack(name, None)
    lock = HostLock(name)
    try:
        for sentence in [*await lock.take(), *await restore_stale()]:
            say(sentence)
        testbed = await _made(bench, changes)
        changes.keep()
    except BaseException:  # an interruption too: half a lab is not kept
        for trouble in await changes.undo_all():
            say(f"warning: {trouble}")
        raise
    finally:
        lock.release()
    return testbed


async def _made(bench: BenchFile, changes: UndoStack) -> Testbed | EndpointTestbed:
    """What a run of the bench file would stand on."""
    from nicbench.stages import endpoints, testbed  # here: only this command and `run` make anything

    if bench.measures == "rounds":
        ends = await endpoints.make_endpoints(bench, changes)
        await endpoints.make_server(bench, ends, changes)
        return ends
    _, ports = await testbed.make_testbed(bench, changes)
    await testbed.make_dut(bench, ports, changes)
    return ports


def _facts(testbed: Testbed | EndpointTestbed) -> list[tuple[str, str]]:
    """What one needs to work in it: namespaces, interfaces, settings; one line each."""
    facts = testbed.facts
    if isinstance(testbed, EndpointTestbed):
        if isinstance(facts.get("rate"), int | float):
            facts = {**facts, "rate": format_bits_per_s(facts["rate"])}
        facts = {**facts, "addresses": {name: end.facts.address for name, end in testbed.endpoints.items()}}
    return [(name.replace("_", " "), _in_words(value)) for name, value in facts.items()]


def _in_words(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_in_words(part)}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_in_words(part) for part in value)
    return str(value)
