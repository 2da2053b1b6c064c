"""What items of network adapters share: a tool asked, its refusal as the reason, CPUs as lists, the wait for a link.

Rings and channels also share a number for each kind of queue, with a maximum.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable
from typing import ClassVar, Literal, TypeVar

from nicbench.core.errors import HostError, UnknownFactError
from nicbench.core.plan import Values
from nicbench.hosts.asking import output_of
from nicbench.system.adapters.ethtool import parse_driver, parse_limits
from nicbench.system.inventory.base import NOT_UNDERSTOOD
from nicbench.tuning.items.base import DeviceItem
from nicbench.tuning.setting import CannotSetError, Place

Answer = TypeVar("Answer")
PCI_ADDRESS = re.compile(r"^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")
_STEP_S = 0.1


def device_of(place: Place) -> str:
    """The interface of a place; CannotSetError where it has none."""
    if place.device is None:
        raise CannotSetError("no interface is named")
    return place.device


async def answer_of(place: Place, parse: Callable[[str], Answer], *command: str) -> Answer:
    """What a tool says of a place; CannotSetError, with its last words, where it does not answer."""
    try:
        return parse(await output_of(place.host, *command))
    except UnknownFactError as error:
        raise CannotSetError(str(error)) from error
    except NOT_UNDERSTOOD as error:
        raise CannotSetError(f"{' '.join(command)}: not understood: {error}") from error


async def run_setter(place: Place, *command: str) -> None:
    """Runs what sets something; a failure is a HostError with the tool's words."""
    done = await place.host.run(command, check=False)
    if done.status != 0:
        words = (done.stderr.strip() or done.stdout.strip() or f"exit status {done.status}").splitlines()
        raise HostError(f"{' '.join(command)}: {words[-1]}", place=str(place))


async def address_of(place: Place) -> str:
    """The PCI address of an interface; a place may also be an address itself, of an adapter that DPDK has."""
    device = device_of(place)
    if PCI_ADDRESS.match(device):
        return device
    bus = (await answer_of(place, parse_driver, "ethtool", "-i", device))["bus"]
    if bus is None or not PCI_ADDRESS.match(bus):
        raise CannotSetError("it is no adapter on a PCI bus")
    return bus


async def carrier(place: Place) -> bool | None:
    """Whether the interface has a link; None where it is down, or does not say."""
    try:
        text = await place.host.read_file(f"/sys/class/net/{device_of(place)}/carrier")
    except HostError:
        return None  # the kernel refuses to say it of an interface that is down
    return {"1": True, "0": False}.get((text or "").strip())


async def wait_for_link(place: Place, had: bool | None, timeout_s: float) -> None:
    """Waits until a link that was there is there again: drivers reset it for many settings.

    HostError after ``timeout_s``.
    """
    if not had:
        return
    for _ in range(max(1, round(timeout_s / _STEP_S))):
        if await carrier(place):
            return
        await asyncio.sleep(_STEP_S)
    raise HostError(
        f"the link did not come back within {timeout_s:g} s: is the other end set to the same?", place=str(place)
    )


async def run_link_setter(place: Place, *command: str, timeout_s: float = 30.0) -> None:
    """Runs what sets something for which the link is negotiated anew, and waits until the link is there again."""
    had = await carrier(place)
    await run_setter(place, *command)
    await wait_for_link(place, had, timeout_s)


def assign_in_turn(cpus: Iterable[int], count: int) -> list[int]:
    """Returns ``count`` CPUs, taken from ``cpus`` in turn. ValueError if ``cpus`` is empty."""
    known = tuple(cpus)
    if not known:
        raise ValueError("no CPU to choose from")
    return [known[number % len(known)] for number in range(count)]


Amount = int | Literal["maximum"]
_MAXIMUM = "_maximum"


class LimitsItem(DeviceItem):
    """``read_option`` and ``write_option`` are ethtool's; the fields of the options are the rows it prints."""

    read_option: ClassVar[str]
    write_option: ClassVar[str]

    async def read(self, place: Place) -> Values:
        limits = await answer_of(place, parse_limits, "ethtool", self.read_option, device_of(place))
        values: Values = {name: row["current"] for name, row in limits.items() if row.get("current") is not None}
        return values | {f"{name}{_MAXIMUM}": limits[name].get("maximum") for name in values}

    def target_values(self, now: Values) -> Values:
        asked = {}
        for name, amount in self.options.model_dump(exclude={"devices"}, exclude_none=True).items():
            most = now.get(f"{name}{_MAXIMUM}")
            if name not in now:
                there = ", ".join(key for key in now if not key.endswith(_MAXIMUM)) or "none"
                raise CannotSetError(f"the driver has no {name}; it has: {there}")
            if amount == "maximum" and not isinstance(most, int):
                raise CannotSetError(f"the driver does not report the maximum of {name}")
            if isinstance(amount, int) and isinstance(most, int) and amount > most:
                raise CannotSetError(f"{name} {amount} is more than the driver's {most}")
            asked[name] = most if amount == "maximum" else amount
        return asked

    async def write(self, place: Place, values: Values) -> None:
        arguments = [word for name, value in values.items() for word in (name.replace("_", "-"), str(value))]
        await run_setter(place, "ethtool", self.write_option, device_of(place), *arguments)
