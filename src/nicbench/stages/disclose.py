"""Before the first trial of a turn: plan.json and inventory.json, in which every configuration is disclosed."""

from __future__ import annotations

from typing import Any

from nicbench.bench_file.models import BenchFile
from nicbench.hosts.local import LocalHost
from nicbench.inventory.collect import collect, host_name
from nicbench.labs.base import TestHost
from nicbench.model.plan import Plan
from nicbench.model.turn import Turn
from nicbench.stages.plan import compared
from nicbench.store.folder import RunFolder

_INVENTORY = "inventory.json"
_HYPERVISOR = "hypervisor"


async def disclose(bench: BenchFile, turn: Turn, plan: Plan, hosts: tuple[TestHost, ...], folder: RunFolder) -> None:
    """Writes both, and keeps in them what earlier turns have told. ``bench`` is the whole bench file."""
    if folder.redactor is not None:
        for each in hosts:
            folder.redactor.learn_host_name(await host_name(each.host))
    known = await collect((*hosts, *_hypervisor(hosts)), bench.of_turn(turn).controller_of)
    if folder.redactor is not None:
        folder.redactor.learn(known)  # what the inventory names is then found in the plan as well
    folder.write_json("plan.json", plan if turn.of == 1 else compared(bench, folder.plan(), plan))
    if len(bench.configurations) > 1:
        earlier: dict[str, Any] = folder.read_json(_INVENTORY) or {}
        known = {**earlier, **{f"{host}, {turn.configuration}": facts for host, facts in known.items()}}
    folder.write_json(_INVENTORY, known)


def _hypervisor(hosts: tuple[TestHost, ...]) -> tuple[TestHost, ...]:
    """This machine, where a host of the test is a guest that was started on it: it has a column of its own."""
    if not any(each.host.machine.made_here for each in hosts) or any(each.name == _HYPERVISOR for each in hosts):
        return ()
    return (TestHost(_HYPERVISOR, _HYPERVISOR, LocalHost(_HYPERVISOR), ()),)
