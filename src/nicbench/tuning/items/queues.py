"""Settings of the queues of an interface: their number and length, interrupts, offloads and queueing disciplines."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from types import MappingProxyType
from typing import Annotated

from pydantic import Field, StringConstraints

from nicbench.core.errors import HostError
from nicbench.core.plan import Values
from nicbench.system.adapters.ethtool import parse_coalescing, parse_features
from nicbench.system.adapters.links import parse_links, parse_qdiscs
from nicbench.tuning.items.base import (
    Amount,
    DeviceItem,
    DeviceOptions,
    LimitsItem,
    Phase,
    answer_of,
    device_of,
    run_setter,
)
from nicbench.tuning.setting import CannotSetError, Place


class ChannelOptions(DeviceOptions):
    """Queues, or ``maximum``; ``combined`` where a channel both sends and receives, as with most cards."""

    combined: Amount | None = Field(default=None)
    rx: Amount | None = Field(default=None)
    tx: Amount | None = Field(default=None)
    other: Amount | None = Field(default=None)


class Channels(LimitsItem):
    """How many queues an adapter has: ``ethtool -L`` (ethtool(8)).

    Before rings and steering, which are of each queue.
    """

    kind = "channels"
    Options = ChannelOptions
    options: ChannelOptions
    phase = Phase.QUEUES
    read_option = "-l"
    write_option = "-L"


class RingOptions(DeviceOptions):
    """Frames, or ``maximum``. Where a driver rounds them, the refusal says what it made of it."""

    rx: Amount | None = Field(default=None)
    tx: Amount | None = Field(default=None)
    rx_mini: Amount | None = Field(default=None)
    rx_jumbo: Amount | None = Field(default=None)


class Rings(LimitsItem):
    """How many frames each queue of an adapter holds: ``ethtool -G`` (ethtool(8)).

    Most drivers stop all queues for it, so it comes before steering.
    """

    kind = "rings"
    Options = RingOptions
    options: RingOptions
    phase = Phase.RINGS
    read_option = "-g"
    write_option = "-G"


_ADAPTIVE = MappingProxyType({"adaptive_rx": "rx", "adaptive_tx": "tx"})
Count = Annotated[int, Field(ge=0, lt=2**32)]


class CoalescingOptions(DeviceOptions):
    """Microseconds and frames in ethtool's words; ``adaptive`` lets the driver choose them by the load."""

    adaptive_rx: bool | None = None
    adaptive_tx: bool | None = None
    rx_usecs: Count | None = None
    rx_frames: Count | None = None
    rx_usecs_irq: Count | None = None
    rx_frames_irq: Count | None = None
    tx_usecs: Count | None = None
    tx_frames: Count | None = None
    tx_usecs_irq: Count | None = None
    tx_frames_irq: Count | None = None
    cqe_mode_rx: bool | None = None
    cqe_mode_tx: bool | None = None


class Coalescing(DeviceItem):
    """After how long, or how many frames, an adapter interrupts: ``ethtool -C`` (ethtool(8)).

    Writes times and counts while the adaptive mode is off: drivers refuse or overwrite them otherwise.
    """

    kind = "coalescing"
    Options = CoalescingOptions
    options: CoalescingOptions
    phase = Phase.RINGS

    async def read(self, place: Place) -> Values:
        found = await answer_of(place, parse_coalescing, "ethtool", "-c", device_of(place))
        return dict(found)

    def target_values(self, now: Values) -> Values:
        asked = self.options.model_dump(exclude={"devices"}, exclude_none=True)
        if lacking := [name for name in asked if name not in now]:
            raise CannotSetError(f"the driver has no {', '.join(lacking)}; it has: {', '.join(now) or 'none'}")
        return dict(asked)

    async def write(self, place: Place, values: Values) -> None:
        adaptive = {name for name in _ADAPTIVE if values.get(name) is True}
        # The modes first: ethtool sends all of them at once, and a reader sees what decides over the rest.
        modes_first = sorted(values.items(), key=lambda pair: not isinstance(pair[1], bool))
        fixed = [(name, value) for name, value in modes_first if name not in adaptive]
        switched_off = [(name, False) for name in sorted(adaptive) if _adaptive_keys(name, values)]
        for group in (switched_off + fixed, [(name, True) for name in sorted(adaptive)]):
            if group:
                await run_setter(place, "ethtool", "-C", device_of(place), *_arguments(group))

    def find_differing(self, one: Values, other: Values) -> Values:
        """Ignores values that an adaptive mode chooses, as these change with the load."""
        differing = super().find_differing(one, other)
        for name in _ADAPTIVE:
            if one.get(name) is True and other.get(name) is True:
                differing = {key: value for key, value in differing.items() if key not in _adaptive_keys(name, one)}
        return differing


def _adaptive_keys(mode: str, values: Values) -> list[str]:
    """Of ``adaptive_rx`` the times and counts of ``rx``, of ``adaptive_tx`` those of ``tx``."""
    return [key for key in values if key.startswith(f"{_ADAPTIVE[mode]}_")]


def _arguments(values: Iterable[tuple[str, object]]) -> Iterable[str]:
    for name, value in values:
        yield from (name.replace("_", "-"), ("on" if value else "off") if isinstance(value, bool) else str(value))


Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$", max_length=64)]

_SHORT = MappingProxyType(
    {
        "rx": "rx-checksumming",
        "tx": "tx-checksumming",
        "sg": "scatter-gather",
        "tso": "tcp-segmentation-offload",
        "gso": "generic-segmentation-offload",
        "gro": "generic-receive-offload",
        "lro": "large-receive-offload",
        "rxvlan": "rx-vlan-offload",
        "txvlan": "tx-vlan-offload",
        "ntuple": "ntuple-filters",
        "rxhash": "receive-hashing",
    }
)
"""ethtool's short names, which are what ``-K`` takes, and its long ones, which are what ``-k`` prints."""
_LONG = MappingProxyType({long: short for short, long in _SHORT.items()})
_GROUPS = MappingProxyType(
    {
        "tx-checksumming": "tx-checksum-",
        "scatter-gather": "tx-scatter-gather",
        "tcp-segmentation-offload": "tx-tcp",
    }
)
"""Long names that stand for several features, by how these begin: each of them has a value of its own to go back to."""
_FIXED = ", fixed"


class OffloadOptions(DeviceOptions):
    """``offloads: {features: {gro: false, tso: false}}``: ethtool's short or long names, or those of the kernel."""

    features: dict[Name, bool] = Field(min_length=1, max_length=100)


class Offloads(DeviceItem):
    """What an adapter or the kernel does for many frames at once: ``ethtool -K`` (ethtool(8)).

    Of a name that stands for several features each is recorded and put back on its own.
    """

    kind = "offloads"
    Options = OffloadOptions
    options: OffloadOptions
    phase = Phase.RINGS

    async def read(self, place: Place) -> Values:
        found = await answer_of(place, parse_features, "ethtool", "-k", device_of(place))
        values: Values = {name: feature.on for name, feature in found.items()}
        # What is off though it was asked to be on would stay so, and be asked to be off afterwards.
        stuck = [name for name, feature in found.items() if feature.fixed or feature.requested is not None]
        return values | {f"{name}{_FIXED}": True for name in stuck}

    def target_values(self, now: Values) -> Values:
        asked: Values = {}
        for name, on in self.options.features.items():
            members = _members(name, now)
            if not members:
                raise CannotSetError(f"there is no offload {name}")
            free = [member for member in members if f"{member}{_FIXED}" not in now]
            if not free and any(now[member] is not on for member in members):
                raise CannotSetError(f"{name} stays {'off' if on else 'on'} in this driver")
            asked |= dict.fromkeys(free or members, on)
        return asked

    async def write(self, place: Place, values: Values) -> None:
        try:
            await self._switch(place, values)
        except HostError:
            # What a driver refuses stays requested, and is switched once the driver can.
            now = await self.read_checked(place)
            with suppress(HostError):
                await self._switch(place, {name: now[name] for name in values})
            raise

    async def _switch(self, place: Place, values: Values) -> None:
        arguments = [word for name, on in values.items() for word in (_LONG.get(name, name), "on" if on else "off")]
        await run_setter(place, "ethtool", "-K", device_of(place), *arguments)


def _members(name: str, now: Values) -> list[str]:
    long = _SHORT.get(name, name)
    if prefix := _GROUPS.get(long):
        members = [key for key in now if key.startswith(prefix) and not key.endswith(_FIXED)]
        if members:
            return members
    return [long] if long in now else []


class TransmitQueueOptions(DeviceOptions):
    """Of a discipline that has no limit of its own (pfifo_fast); it is read when the discipline is made."""

    frames: int = Field(ge=0, le=2**31 - 1)


class TransmitQueue(DeviceItem):
    """How many frames wait in an interface's queueing discipline: ``ip link set txqueuelen`` (ip-link(8)).

    Before the disciplines, which take it over.
    """

    kind = "transmit_queue"
    Options = TransmitQueueOptions
    options: TransmitQueueOptions
    phase = Phase.RINGS
    alone = "frames"

    async def read(self, place: Place) -> Values:
        links = await answer_of(place, parse_links, "ip", "-j", "link", "show", "dev", device_of(place))
        if not links or not isinstance(links[0].get("txqlen"), int):
            raise CannotSetError("it has no transmit queue")
        return {"transmit_queue_frames": links[0]["txqlen"]}

    def target_values(self, now: Values) -> Values:
        return {"transmit_queue_frames": self.options.frames}

    async def write(self, place: Place, values: Values) -> None:
        frames = str(values["transmit_queue_frames"])
        await run_setter(place, "ip", "link", "set", "dev", device_of(place), "txqueuelen", frames)


Word = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:/%-]*$", max_length=64)]
_HANDLE = "6e62:"  # in hex; so that the undo knows its own


class QdiscOptions(DeviceOptions):
    """The root queueing discipline of an interface: ``tc qdisc`` (tc(8)), in the place of the kernel's default.

    ``qdisc: {kind: fq, parameters: [limit, 10000]}``: tc's words, as after ``tc qdisc replace dev X root``.
    """

    kind: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=32)]
    parameters: tuple[Word, ...] = Field(default=(), max_length=64)


class Qdisc(DeviceItem):
    """Replaces the kernel's default alone, which comes back when this one is deleted."""

    kind = "qdisc"
    Options = QdiscOptions
    options: QdiscOptions
    phase = Phase.STEERING  # undone after sysctls: what comes back is the default by then

    async def read(self, place: Place) -> Values:
        listed = await answer_of(place, parse_qdiscs, "tc", "-j", "qdisc", "show", "dev", device_of(place))
        root = next((entry for entry in listed if entry["parent"] == "root"), None)
        if root is None:
            raise CannotSetError("it has no root queueing discipline")
        # The kernel gives its defaults the handle 0:, and whoever sets one gets or names another.
        handle = str(root["handle"])
        return {"kind": str(root["kind"]), "by": {"0:": "kernel", _HANDLE: "nicbench"}.get(handle, handle)}

    def target_values(self, now: Values) -> Values:
        if now["by"] not in ("kernel", "nicbench"):
            raise CannotSetError(
                f"somebody set a {now['kind']} (handle {now['by']}), which could not be put back exactly"
            )
        return {"kind": self.options.kind, "by": "nicbench"}

    async def write(self, place: Place, values: Values) -> None:
        device = device_of(place)
        if values.get("by") == "kernel":
            await run_setter(place, "tc", "qdisc", "del", "dev", device, "root")
            return
        words = (self.options.kind, *self.options.parameters)
        await run_setter(place, "tc", "qdisc", "replace", "dev", device, "root", "handle", _HANDLE, *words)
