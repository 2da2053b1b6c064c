"""Collects every fact of a testbed's hosts. Never fails: what cannot be read is null, with the reason beside it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from nicbench.core.errors import UnknownFactError
from nicbench.core.machine import Controller
from nicbench.core.registry import find
from nicbench.hosts.asking import output_of
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import outermost
from nicbench.system.inventory.base import NOT_UNDERSTOOD, UNKNOWN, Fact

REASONS = "reasons_null"
Known = dict[str, dict[str, tuple[Any, str | None]]]
"""By machine and fact: the value, or None and the reason."""
_LONGEST_REASON = 300
LARGEST_FACT_CHARACTERS = 1 << 20
"""A fact is what a report prints. More of it is a tool that went astray."""


class InventoriedHost(Protocol):
    """A host of a testbed: its role, how the inventory calls it, and the interfaces that the test uses there."""

    @property
    def role(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def host(self) -> Host: ...
    @property
    def devices(self) -> tuple[str, ...]: ...


async def collect(
    hosts: Iterable[InventoriedHost], controller_of: Callable[[str, str], Controller | None] = lambda _role, _host: None
) -> dict[str, dict[str, Any]]:
    """The content of inventory.json: facts of each host of a testbed.

    ``controller_of`` gives a machine's management controller by role and name of the host.
    """
    known: Known = {}
    return {
        each.name: await collect_host(each.host, each.devices, known, controller_of(each.role, each.host.name))
        for each in hosts
    }


async def collect_host(
    host: Host, devices: tuple[str, ...], known: Known | None = None, controller: Controller | None = None
) -> dict[str, Any]:
    """Facts by name; under ``reasons_null`` why some of them are null.

    ``known`` keeps the facts of whole machines, so that two namespaces of one machine ask it once.
    """
    machine = outermost(host)
    of_machine = (known if known is not None else {}).setdefault(json.dumps(machine.spec(), sort_keys=True), {})
    facts = {}
    reasons = {}
    for kind, fact in find("nicbench.system.inventory.facts", Fact).items():
        if not fact.of_machine:
            value, reason = await _read(fact(controller), host if fact.inside else host.network, devices)
        else:
            if kind not in of_machine:
                of_machine[kind] = await _read(fact(controller), machine, devices)
            value, reason = of_machine[kind]
        facts[kind] = value
        if reason is not None:
            reasons[kind] = reason
    return {**facts, REASONS: reasons} if reasons else facts


async def host_name(host: Host) -> str:
    """How the machine calls itself, empty where it does not say: no fact of a measurement, but one to redact."""
    try:
        return (await output_of(outermost(host), "uname", "-n")).strip()
    except UNKNOWN:
        return ""


async def _read(fact: Fact, host: Host, devices: tuple[str, ...]) -> tuple[Any, str | None]:
    """The fact, or None and why."""
    try:
        return plain_data(await fact.read(host, devices)), None
    except UNKNOWN as error:
        return None, (str(error).splitlines() or [type(error).__name__])[0][:_LONGEST_REASON]
    except NOT_UNDERSTOOD as error:
        # A tool of another version writes what the parser does not know: worth a word, never worth the run.
        return None, f"not understood: {type(error).__name__}: {error}"[:_LONGEST_REASON]


def plain_data(value: Any) -> Any:
    """``value`` as it will be read from inventory.json; ValueError or UnknownFactError where it cannot stand there."""
    text = json.dumps(value, allow_nan=False)
    if len(text) > LARGEST_FACT_CHARACTERS:
        raise UnknownFactError(f"it says {len(text)} characters; at most {LARGEST_FACT_CHARACTERS} are kept")
    return json.loads(text)
