"""What a management controller tells by Redfish: BIOS settings and power."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from nicbench.core.frozen import frozen
from nicbench.core.lists import without_none
from nicbench.core.machine import Controller
from nicbench.system.redfish.answers import (
    RedfishError,
    json_object,
    link_of,
    parse_bios,
    parse_members,
    parse_service,
    parse_system,
    part_of,
    pending,
)

if TYPE_CHECKING:
    from nicbench.system.redfish.client import Client


# From a controller to the BIOS settings of one system: service root, systems, system, BIOS, what is pending.

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


# What a system draws, as its management controller tells it: EnvironmentMetrics (DSP0268), or the older Power.  A
# chassis that holds several systems (an enclosure of blades) tells what all of them draw, and is not read.

_POWER_ALTOGETHER: Final = 4
_MOST_CHASSIS: Final = 8
_LARGEST_WATTS: Final = 1e6


@frozen
class ChassisLinks:
    """Where a chassis has its power, the better resource first, and how many systems stand in it."""

    paths: tuple[str, ...]
    systems: int


def parse_chassis_of_system(text: str) -> tuple[str, ...]:
    """The chassis that hold a system."""
    listed = part_of(json_object(text), "Links").get("Chassis")
    links = [link_of(each) for each in listed[:_MOST_CHASSIS]] if isinstance(listed, list) else []
    return tuple(without_none(links))


def parse_chassis(text: str) -> ChassisLinks:
    """The links of a chassis to ``EnvironmentMetrics`` and ``Power``."""
    found = json_object(text)
    systems = part_of(found, "Links").get("ComputerSystems")
    links = (link_of(found.get(name)) for name in ("EnvironmentMetrics", "Power"))
    return ChassisLinks(
        paths=tuple(without_none(links)),
        systems=len(systems) if isinstance(systems, list) else 0,
    )


def parse_watts(text: str) -> float | None:
    """The watts of now: ``PowerWatts.Reading``, or the sum of what ``PowerControl`` says of the chassis itself.

    None where the resource has no such number. Some controllers list further entries for processors and memory, which
    the first contains.
    """
    found = json_object(text)
    reading = part_of(found, "PowerWatts").get("Reading")
    if reading is None:
        controls = found.get("PowerControl")
        first = controls[0] if isinstance(controls, list) and controls else None
        reading = first.get("PowerConsumedWatts") if isinstance(first, dict) else None
    return _watts(reading)


def _watts(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LARGEST_WATTS:
        return None
    return float(value)


class PowerOfSystem:
    """Reads one number again and again: the resource is looked for once."""

    def __init__(self, controller: Controller, patience_s: float = PATIENCE_S) -> None:
        self._controller = controller
        self._patience_s = patience_s
        self._client: Client | None = None
        self._path: str | None = None

    @property
    def resource(self) -> str:
        """What it reads, without names that the controller chose: ``EnvironmentMetrics`` or ``Power``."""
        return (self._path or "").rstrip("/").rpartition("/")[2]

    async def watts(self) -> float:
        """What the system draws now; RedfishError with the reason where the controller does not tell it."""
        try:
            return await asyncio.wait_for(self._read(), _POWER_ALTOGETHER * self._patience_s)
        except TimeoutError:
            took = f"{_POWER_ALTOGETHER * self._patience_s:g} s"
            raise RedfishError(f"the management controller did not tell its power within {took}") from None
        except (ValueError, RecursionError):  # without its words, which quote the answer
            raise RedfishError("the management controller's answer is no JSON of Redfish") from None

    async def _read(self) -> float:
        if self._client is None:
            from nicbench.system.redfish.client import Client  # here: httpx takes long to load

            self._client = Client(self._controller, self._patience_s)
        if self._path is not None:
            watts = parse_watts(await self._client.get(self._path))
            if watts is None:
                raise RedfishError("the management controller tells no power any more")
            return watts
        return await self._find(self._client)

    async def _find(self, client: Client) -> float:
        service = parse_service(await client.get(ROOT))
        system = choose_system(parse_members(await client.get(service["systems"])), self._controller.system)
        shared = False
        for chassis in parse_chassis_of_system(await client.get(system)):
            links = parse_chassis(await client.get(chassis))
            if links.systems > 1:
                shared = True
                continue
            for path in links.paths:
                watts = parse_watts(await client.get(path))
                if watts is not None:
                    self._path = path
                    return watts
        if shared:
            raise RedfishError("the management controller tells the power of a chassis with several systems only")
        raise RedfishError("the management controller tells no power of this system")
