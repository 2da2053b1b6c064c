"""Collects every fact of a testbed's hosts. Never fails: what cannot be read is null, with the reason beside it."""

from __future__ import annotations

import json
from typing import Any

from nicbench.hosts.base import Host
from nicbench.inventory.base import NOT_UNDERSTOOD, UNKNOWN, Fact, UnknownFactError
from nicbench.labs.base import Testbed
from nicbench.registry import find

REASONS = "reasons_null"
LARGEST_FACT_CHARACTERS = 1 << 20
"""A fact is what a report prints. More of it is a tool that went astray."""


async def collect(testbed: Testbed) -> dict[str, dict[str, Any]]:
    """The content of inventory.json: facts of the tester's host and, where it has one, of the DUT's."""
    tester = tuple(port.device for port in testbed.tester_ports if port.device is not None)
    dut = tuple(port.device for port in testbed.dut_ports if port.device is not None)
    inventory = {"tester": await collect_host(testbed.tester, tester)}
    if testbed.dut is not None:
        inventory["dut"] = await collect_host(testbed.dut, dut)
    return inventory


async def collect_host(host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
    """Facts by name; under ``reasons_null`` why some of them are null."""
    facts: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    for kind, fact in find("nicbench.inventory.facts", Fact).items():
        try:
            facts[kind] = plain_data(await fact().read(host, devices))
        except UNKNOWN as error:
            facts[kind], reasons[kind] = None, str(error).splitlines()[0]
        except NOT_UNDERSTOOD as error:
            # A tool of another version writes what the parser does not know: worth a word, never worth the run.
            facts[kind], reasons[kind] = None, f"not understood: {type(error).__name__}: {error}"
    return {**facts, REASONS: reasons} if reasons else facts


def plain_data(value: Any) -> Any:
    """``value`` as it will be read from inventory.json; ValueError or UnknownFactError where it cannot stand there."""
    text = json.dumps(value, allow_nan=False)
    if len(text) > LARGEST_FACT_CHARACTERS:
        raise UnknownFactError(f"it says {len(text)} characters; at most {LARGEST_FACT_CHARACTERS} are kept")
    return json.loads(text)
