"""A tuning item: reads a setting, says what it is to become, and writes it. The rest is done for it.

The driver (``tuning/tune.py``) records the old value before the change, verifies by reading back, and refuses or
reports what could not be set; ``tuning/undo/files.py`` undoes it by the same ``read`` and ``write``, also
from another process after a crash. So an item holds nothing but what it was given.

To add one:

An item reads one setting, says what it is to become, and writes it. Recording the old value, verifying, refusing,
undoing (also after kill -9), dry run and ``tuning.json`` are done for it.

1. Add a subclass of ``nicbench.tuning.items.base.Item`` to the file of its theme in ``src/nicbench/tuning/items``. Its
   docstring says what is set, and after which source (a page of the kernel's documentation, of a tool). ``kind`` is
   its key in the bench file, ``Options`` is frozen; ``alone`` names the option that a value alone stands for (``mtu:
   9000``).
2. ``scope`` is ``machine`` (once, outside of namespaces), ``namespace``, or ``device``: once for each interface of
   the test on that host, and then ``Options`` derives from ``DeviceOptions``, whose ``devices`` names others.
   ``phase`` is when it is applied; ``Phase`` says which order is needed and why.
3. ``async read(place)`` gives the setting as a flat dict of plain data: ``{"rx": 512, "tx": 512}``. It changes
   nothing; parsing is a pure function with golden outputs. ``CannotSetError``, with the reason, where this place has
   no such setting.
4. ``target_values(now)`` gives of these keys those that are asked for, with the value that each will *read as* once
   it is set. ``CannotSetError`` where it cannot be (above the maximum), with what could.
5. ``async write(place, values)`` sets these keys and no other; the undo calls it with the old ones. Wait in it until
   they hold (a link that comes up again), within a bound. ``is_same(key, one, other)`` where one value is written in
   several ways.
6. The undo makes the item again from its options in another process, so an item keeps nothing else. ``apply`` is
   overridden only where the undo is another one: a process that is held. ``only_checks = True`` for what is never
   changed: no ``write``; the report says whether it is as asked.
7. Write ``tests/tuning/items/test_NAME.py`` with ``FakeHost``: applied, verified, undone; what the kernel rounds; a
   value somebody changed since; what cannot be. ``docs/tuning.md`` shows both docstrings and the options. An item of a
   profile is named in ``tuning/tune.py``, with the reason.
"""

from __future__ import annotations

import asyncio
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Annotated, ClassVar, Literal, TypeVar

from pydantic import Field, StringConstraints

from nicbench.core.base import Frozen
from nicbench.core.errors import HostError, UnknownFactError
from nicbench.core.plan import Values
from nicbench.hosts.asking import output_of, values_of
from nicbench.system.adapters.ethtool import parse_driver, parse_limits
from nicbench.system.inventory.base import NOT_UNDERSTOOD
from nicbench.tuning.changes import Changes
from nicbench.tuning.setting import CannotSetError, Place, Setting, plain_value, same_value
from nicbench.tuning.undo.files import RestoreSetting

Scope = Literal["machine", "namespace", "device"]


class Phase(IntEnum):
    """In which order items are applied: what another one would undo, or needs, comes first. Undone in reverse."""

    SERVICE = 1
    """Programs that would set again what others have set (tuned, irqbalance)."""
    MACHINE = 2
    """CPU, memory, kernel."""
    FUNCTION = 3
    """What makes interfaces, or resets an adapter: virtual functions, private flags, PCI."""
    LINK = 4
    """What takes the link down for a while: speed, FEC, MTU, flow control."""
    QUEUES = 5
    """Channels: how many queues there are."""
    RINGS = 6
    """What each queue has, once they are there: rings, coalescing, offloads."""
    STEERING = 7
    """Who works on each queue: IRQ affinity, RSS, RPS, XPS."""
    TRAFFIC = 8
    """What frames meet on their way: sysctls, qdiscs, packet filters."""


Device = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,62}$")]
"""An interface, or the PCI address of an adapter; it becomes part of paths and of commands."""


class DeviceOptions(Frozen):
    """Of an item with the scope ``device``: the interfaces of the test on that host, or those named here."""

    devices: tuple[Device, ...] = Field(default=(), max_length=64)


class NoOptions(Frozen):
    """Nothing to choose."""


class ExpectedOptions(Frozen):
    """Of an item that is only checked: a machine that is otherwise is not measured where it is ``required``."""

    required: bool = False


class Item(Setting):
    """A setting of the section ``tuning``: ``kind`` is its key in the bench file, ``Options`` what is written there."""

    scope: ClassVar[Scope]
    """``machine``: once for the whole machine, outside of namespaces; ``namespace``: of the host's network namespace;
    ``device``: of each interface of the test there. The options of these derive from ``DeviceOptions``."""
    phase: ClassVar[Phase]
    alone: ClassVar[str | None] = None
    """The option that a value alone stands for: ``mtu: 9000`` for ``mtu: {bytes: 9000}``. Where it is the only one,
    keys and values are its value too: ``sysctls: {net.core.busy_poll: 50}``."""
    only_checks: ClassVar[bool] = False
    """Whether the item changes nothing: the report then states whether the machine meets what the bench file asks."""

    @abstractmethod
    def target_values(self, now: Values) -> Values:
        """Of the keys of ``now`` those that are asked for, with the value that each will read as once it is set.

        CannotSetError where the place cannot take it (more than its maximum), with what it could.
        """

    def entailed_keys(self, now: Values, asked: Values) -> tuple[str, ...]:
        """Keys of ``now`` that change along with those that are asked for, and are put back with them."""
        return ()

    def commands(self) -> tuple[str, ...]:
        """What is run on the host, where somebody who repeats the test without nicbench needs the commands."""
        return ()

    async def apply(self, changes: Changes, place: Place, before: Values, asked: Values) -> None:
        """Writes, undo first. Only an item whose undo is another one (a process that is held) does this differently."""
        undo = RestoreSetting.of(self, place.device, before, asked)
        await changes.make(place.host, undo, lambda: self.write(place, asked))


# Settings that are files under /sys or /proc, one value each: read with patterns, written one by one.


class DeviceItem(Item):
    """An item of each interface of the test on that host; its options derive from ``DeviceOptions``."""

    scope = "device"


class FilesItem(Item):
    """Keys are paths below ``folder``; the values are text, of ``always [madvise] never`` the selected word."""

    scope = "machine"
    phase = Phase.MACHINE
    folder: ClassVar[str]
    patterns: ClassVar[tuple[str, ...]]
    missing: ClassVar[str]
    """The message for a machine that has none of the files."""

    async def read(self, place: Place) -> Values:
        try:
            found = await values_of(place.host, tuple(self.folder + pattern for pattern in self.patterns))
        except UnknownFactError as error:
            raise CannotSetError(self.missing) from error
        return {path.removeprefix(self.folder): plain_value(text) for path, text in found.items()}

    async def write(self, place: Place, values: Values) -> None:
        for key, value in values.items():
            await place.host.write_file(self.folder + key, str(value))

    def is_same(self, key: str, one: object, other: object) -> bool:
        return same_value(self.folder + key, str(one), str(other))


class SwitchOptions(Frozen):
    """``ITEM: false`` or ``ITEM: true``."""

    on: bool


class SwitchItem(FilesItem):
    """A few files that are all set to one value where a thing is on, and to another where it is off."""

    Options = SwitchOptions
    alone = "on"
    on: ClassVar[str] = "1"
    off: ClassVar[str] = "0"

    def target_values(self, now: Values) -> Values:
        value = self.on if getattr(self.options, "on", False) else self.off
        return dict.fromkeys(now, value)


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
