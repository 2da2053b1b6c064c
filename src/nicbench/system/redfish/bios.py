"""From a controller to the BIOS settings of one system: service root, systems, system, BIOS, what is pending."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from nicbench.core.machine import Controller
from nicbench.system.redfish.answers import (
    RedfishError,
    parse_bios,
    parse_members,
    parse_service,
    parse_system,
    pending,
)

if TYPE_CHECKING:
    from nicbench.system.redfish.client import Client

ROOT: Final = "/redfish/v1/"
PATIENCE_S: Final = 5.0
"""For one answer: a slow controller takes two seconds for its BIOS."""
_ALTOGETHER: Final = 3
"""Times that, for all of them."""


async def bios_settings(controller: Controller, patience_s: float = PATIENCE_S) -> dict[str, Any]:
    """Attributes, those that are pending until a reboot, and what the machine is; RedfishError with the reason."""
    try:
        return await asyncio.wait_for(_read(controller, patience_s), _ALTOGETHER * patience_s)
    except TimeoutError:
        took = f"{_ALTOGETHER * patience_s:g} s"
        raise RedfishError(f"the management controller did not tell its BIOS settings within {took}") from None
    except (ValueError, RecursionError):  # without its words, which quote the answer
        raise RedfishError("the management controller's answer is no JSON of Redfish") from None


async def _read(controller: Controller, patience_s: float) -> dict[str, Any]:
    from nicbench.system.redfish.client import Client  # here: httpx takes long to load, and few runs have a controller

    client = Client(controller, patience_s)
    service = parse_service(await client.get(ROOT))
    chosen = choose_system(parse_members(await client.get(service["systems"])), controller.system)
    system = parse_system(await client.get(chosen))
    if system["bios"] is None:
        raise RedfishError("the management controller tells no BIOS settings of this system")
    bios = parse_bios(await client.get(system["bios"]))
    if not bios["attributes"]:
        raise RedfishError("the management controller lists no BIOS attributes (some do only once the host has booted)")
    identity = {
        name: [*system["identity"].get(name, []), *bios["identity"].get(name, [])]
        for name in {**system["identity"], **bios["identity"]}
    }
    waiting = await _pending(client, bios)
    return {
        "machine": system["machine"],
        "registry": bios["registry"],
        "pending": waiting,
        "attributes": bios["attributes"],
        "identity": identity,
    }


async def _pending(client: Client, bios: dict[str, Any]) -> dict[str, Any] | None:
    """None where the controller does not say what is pending."""
    if bios["settings"] is None:
        return None
    try:
        return pending(bios["attributes"], parse_bios(await client.get(bios["settings"]))["attributes"])
    except (RedfishError, ValueError, RecursionError):
        return None


def choose_system(systems: Sequence[str], name: str | None) -> str:
    """The path of the system that the bench file means; RedfishError where that is not one."""
    by_name = {path.rstrip("/").rpartition("/")[2]: path for path in systems}
    if name is not None and name in by_name:
        return by_name[name]
    if name is None and len(systems) == 1:
        return systems[0]
    if not systems:
        raise RedfishError("the management controller has no system")
    listed = ", ".join(_text_of(each) for each in by_name)
    if name is None:
        raise RedfishError(f"the management controller has {len(systems)} systems ({listed}): name one with `system`")
    raise RedfishError(f"the management controller has no system of the name in `system`; it has {listed}")


def _text_of(name: str) -> str:
    """Some call a system by its serial number or UUID, which has no place in a message that a run folder keeps."""
    digits = sum(letter.isdigit() for letter in name)
    tells = re.fullmatch(r"[A-Za-z0-9-]{7,}", name) and digits >= 3
    return f"{name[:2]}...{name[-2:]}" if tells else name[:40]
