"""Settings of a link and of what it carries: speed, MTU, pause frames, priorities, and the path behind it."""

from __future__ import annotations

from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address
from typing import Annotated, Literal

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.errors import HostError
from nicbench.core.plan import Values
from nicbench.core.quantity import BitsPerSecond, Seconds
from nicbench.hosts.asking import passes_whole
from nicbench.system.adapters.ethtool import parse_energy, parse_fec, parse_link_settings, parse_pause
from nicbench.system.adapters.links import PRIORITIES, parse_links, parse_pfc, parse_trust
from nicbench.tuning.items.base import (
    DeviceItem,
    DeviceOptions,
    Item,
    Phase,
    answer_of,
    carrier,
    device_of,
    run_link_setter,
    run_setter,
    wait_for_link,
)
from nicbench.tuning.setting import CannotSetError, Place

_WORDS = {"none": "Off", "off": "Off", "auto": "Auto", "rs": "RS", "baser": "BaseR", "llrs": "LLRS"}
_ADVERTISED = "advertised_modes"
Fec = Literal["auto", "off", "rs", "baser", "llrs"]


class LinkOptions(DeviceOptions):
    """Speed in bit/s. ``wait`` is for a link that was there: until it is there again.

    Where both ends are forced (no autonegotiation), the link is down between the two changes: set one end beforehand,
    or let it negotiate.
    """

    speed: BitsPerSecond | None = None
    duplex: Literal["full", "half"] | None = None
    autonegotiation: bool | None = None
    fec: Fec | None = None
    wait: Seconds = 30.0


class Link(DeviceItem):
    """Speed, duplex, autonegotiation and forward error correction of a link: ``ethtool -s``, ``--set-fec``
    (ethtool(8)).

    Read back when the link is there again, so that speed and duplex are those that both ends have.
    """

    kind = "link"
    Options = LinkOptions
    options: LinkOptions
    phase = Phase.LINK

    async def read(self, place: Place) -> Values:
        found = await answer_of(place, parse_link_settings, "ethtool", device_of(place))
        names = ("link", "speed_bits_per_s", "duplex", "autonegotiation")
        values: Values = {name: found[name] for name in names}
        advertised = found["advertised_modes"]
        modes = dict.fromkeys((*found["supported_modes"], *advertised))
        values[_ADVERTISED] = " ".join(f"{mode} {'on' if mode in advertised else 'off'}" for mode in modes) or None
        if self.options.fec is not None:
            fec = await answer_of(place, parse_fec, "ethtool", "--show-fec", device_of(place))
            values |= {"fec": _read_configuration(fec["configured"]), "fec_active": " ".join(fec["active"])}
        return values

    def target_values(self, now: Values) -> Values:
        asked: Values = {}
        if self.options.speed is not None:
            asked["speed_bits_per_s"] = round(self.options.speed)
        if self.options.duplex is not None:
            asked["duplex"] = self.options.duplex
        if self.options.autonegotiation is not None:
            asked["autonegotiation"] = self.options.autonegotiation
        if self.options.fec is not None:
            asked["fec"] = _WORDS[self.options.fec]
        if lacking := [name for name in asked if now.get(name) is None]:
            if now["link"] is False:
                raise CannotSetError(f"there is no link, so {', '.join(lacking)} could not be put back")
            raise CannotSetError(f"the driver has no {', '.join(lacking)}")
        return asked

    def entailed_keys(self, now: Values, asked: Values) -> tuple[str, ...]:
        """Where the link negotiates, ethtool chooses anew which modes it advertises."""
        negotiates = now["autonegotiation"] is True and now[_ADVERTISED] is not None
        return (_ADVERTISED,) if negotiates and asked.keys() - {"fec"} else ()

    def is_same(self, key: str, one: object, other: object) -> bool:
        # Of the modes that are off, drivers name those alone that the present transceiver supports.
        return one == other or (key == _ADVERTISED and _modes_on(one) == _modes_on(other))

    async def write(self, place: Place, values: Values) -> None:
        had, device = await carrier(place), device_of(place)
        if values.get("fec") is not None:
            encodings = str(values["fec"]).lower().split()
            await run_setter(place, "ethtool", "--set-fec", device, "encoding", *encodings)
        if (modes := values.get(_ADVERTISED)) is not None:
            # The undo: speed and duplex come of the negotiation. Named beside it they would be all that is advertised.
            await _advertise(place, str(modes).split())
            values = {}
        arguments = []
        if values.get("autonegotiation") is True and self.options.autonegotiation is False:
            # The undo where the driver does not say what is advertised.
            values = {"autonegotiation": True}
        if (speed := values.get("speed_bits_per_s")) is not None:
            arguments += ["speed", str(int(str(speed)) // 1_000_000)]
        if values.get("duplex") is not None:
            arguments += ["duplex", str(values["duplex"])]
        if values.get("autonegotiation") is not None:
            arguments += ["autoneg", "on" if values["autonegotiation"] else "off"]
        if arguments:
            await run_setter(place, "ethtool", "-s", device, *arguments)
        await wait_for_link(place, had, self.options.wait)


async def _advertise(place: Place, words: list[str]) -> None:
    """Has the link negotiate with exactly these modes, each followed by ``on`` or ``off``."""
    negotiate = ("ethtool", "-s", device_of(place), "autoneg", "on")
    if "off" not in words:
        await run_setter(place, *negotiate)  # advertises all that is supported
        return
    try:
        await run_setter(place, *negotiate, "advertise", *words)
    except HostError:
        # ethtool before 5.8 takes no names of modes. The link negotiates at least; the undo tells what differs.
        await run_setter(place, *negotiate)


def _modes_on(words: object) -> set[str]:
    every = str(words or "").split()
    return {mode for mode, state in zip(every[::2], every[1::2], strict=False) if state == "on"}


def _read_configuration(words: list[str]) -> str:
    """Since 5.19 what is supported stands beside it where the driver says so; ``None`` and ``Off`` are the same."""
    return " ".join(_WORDS.get(word.lower(), word) for word in words)


class LinkStateOptions(DeviceOptions):
    """``link_state: {speed: 100 Gb/s, fec: rs}`` under ``all`` is of both ends. ``wait`` is for the link to come up."""

    speed: BitsPerSecond | None = None
    duplex: Literal["full", "half"] | None = None
    fec: Literal["none", "rs", "baser", "llrs"] | None = None
    wait: Seconds = Field(default=30.0)
    required: bool = False


class LinkState(DeviceItem):
    """Checks the link at each named end once everything is set (ethtool(8)); it changes nothing.

    After all that takes a link down, at whichever end.
    """

    kind = "link_state"
    Options = LinkStateOptions
    options: LinkStateOptions
    phase = Phase.QUEUES
    only_checks = True

    async def read(self, place: Place) -> Values:
        with suppress(HostError):  # that there is none is what it reads
            await wait_for_link(place, (await carrier(place)) is not None, self.options.wait)
        found = await answer_of(place, parse_link_settings, "ethtool", device_of(place))
        values: Values = {"link": found["link"], "why_no_link": found["why_no_link"]}
        values |= {name: found[name] for name in ("speed_bits_per_s", "duplex")}
        if self.options.fec is not None:
            fec = await answer_of(place, parse_fec, "ethtool", "--show-fec", device_of(place))
            values["fec_active"] = " ".join(fec["active"]).lower()
        return values

    def target_values(self, now: Values) -> Values:
        asked: Values = {"link": True}
        if self.options.speed is not None:
            asked["speed_bits_per_s"] = round(self.options.speed)
        if self.options.duplex is not None:
            asked["duplex"] = self.options.duplex
        if self.options.fec is not None:
            asked["fec_active"] = self.options.fec
        return asked

    def is_same(self, key: str, one: object, other: object) -> bool:
        # Drivers say None or Off where there is none.
        none = ("none", "off")
        return one == other or (key == "fec_active" and one in none and other in none)


class MtuOptions(DeviceOptions):
    """Bytes above the link layer: a frame of 1518 bytes carries 1500. Whether the path carries it: ``path_mtu``."""

    bytes: int = Field(ge=68, le=65535)


class Mtu(DeviceItem):
    """The largest packet of an interface: ``ip link set mtu`` (ip-link(8)). Under ``all`` it is set at both ends.

    Some drivers take the link down for it.
    """

    kind = "mtu"
    Options = MtuOptions
    options: MtuOptions
    phase = Phase.LINK
    alone = "bytes"

    async def read(self, place: Place) -> Values:
        links = await answer_of(place, parse_links, "ip", "-j", "-d", "link", "show", "dev", device_of(place))
        if not links or not isinstance(links[0].get("mtu"), int):
            raise CannotSetError("it has no MTU")
        return {"mtu_bytes": links[0]["mtu"], **{name: links[0].get(name) for name in ("min_mtu", "max_mtu")}}

    def target_values(self, now: Values) -> Values:
        least, most = now.get("min_mtu"), now.get("max_mtu")
        # A driver that does not say has 0.
        if isinstance(most, int) and 0 < most < self.options.bytes:
            raise CannotSetError(f"{self.options.bytes} bytes are more than the driver's {most}")
        if isinstance(least, int) and self.options.bytes < least:
            raise CannotSetError(f"{self.options.bytes} bytes are less than the driver's {least}")
        return {"mtu_bytes": self.options.bytes}

    async def write(self, place: Place, values: Values) -> None:
        await run_link_setter(place, "ip", "link", "set", "dev", device_of(place), "mtu", str(values["mtu_bytes"]))


class PathMtuOptions(Frozen):
    """``to``: an address at the far end of the path; ``bytes``: as the MTU that it should have."""

    to: IPv4Address | IPv6Address
    bytes: int = Field(ge=128, le=65535)
    required: bool = False


class PathMtu(Item):
    """Whether packets of a size pass a path unfragmented: ``ping -M do`` (ping(8)). Only checked, once all MTUs are
    set.

    The last of the phases, so that both ends have their MTU by then.
    """

    kind = "path_mtu"
    Options = PathMtuOptions
    options: PathMtuOptions
    scope = "namespace"
    phase = Phase.TRAFFIC
    only_checks = True

    async def read(self, place: Place) -> Values:
        try:
            passes = await passes_whole(place.host, str(self.options.to), self.options.bytes)
        except HostError as error:
            raise CannotSetError(error.message) from error
        return {"passes": passes}

    def target_values(self, now: Values) -> Values:
        return {"passes": True}


class EnergyOptions(DeviceOptions):
    """``energy_efficient_ethernet: false``."""

    on: bool


class EnergyEfficientEthernet(DeviceItem):
    """Energy-Efficient Ethernet (IEEE 802.3az), which delays the first frame after an idle time: ``ethtool --set-eee``.

    The link is negotiated anew for it.
    """

    kind = "energy_efficient_ethernet"
    Options = EnergyOptions
    options: EnergyOptions
    phase = Phase.LINK
    alone = "on"

    async def read(self, place: Place) -> Values:
        found = await answer_of(place, parse_energy, "ethtool", "--show-eee", device_of(place))
        if not found["supported"]:
            raise CannotSetError("the adapter does not support it")
        return {"enabled": found["enabled"], "active": found["active"]}

    def target_values(self, now: Values) -> Values:
        return {"enabled": self.options.on}

    async def write(self, place: Place, values: Values) -> None:
        await run_link_setter(
            place, "ethtool", "--set-eee", device_of(place), "eee", "on" if values["enabled"] else "off"
        )


class FlowControlOptions(DeviceOptions):
    """``rx``: obeys pause frames; ``tx``: sends them; ``autonegotiate``: as both ends agree, off if not asked for."""

    rx: bool | None = None
    tx: bool | None = None
    autonegotiate: bool | None = None


class FlowControl(DeviceItem):
    """Pause frames of an adapter (IEEE 802.3 annex 31B): ``ethtool -A`` (ethtool(8)).

    A link that was there is waited for: it is negotiated anew. What was agreed on is read as ``rx_negotiated``.
    """

    kind = "flow_control"
    Options = FlowControlOptions
    options: FlowControlOptions
    phase = Phase.LINK

    async def read(self, place: Place) -> Values:
        found = await answer_of(place, parse_pause, "ethtool", "-a", device_of(place))
        return dict(found)

    def target_values(self, now: Values) -> Values:
        asked = self.options.model_dump(exclude={"devices"}, exclude_none=True)
        if lacking := [name for name in asked if now.get(name) is None]:
            raise CannotSetError(f"the driver has no {', '.join(lacking)} of flow control")
        if now.get("autonegotiate") and any(now[name] != value for name, value in asked.items()):
            asked.setdefault("autonegotiate", False)  # Intel's drivers take no other setting while it is on
        return dict(asked)

    async def write(self, place: Place, values: Values) -> None:
        words = {"autonegotiate": "autoneg"}
        arguments = [word for name, on in values.items() for word in (words.get(name, name), "on" if on else "off")]
        await run_link_setter(place, "ethtool", "-A", device_of(place), *arguments)


Priority = Annotated[int, Field(ge=0, lt=PRIORITIES)]


class PriorityFlowControlOptions(DeviceOptions):
    """``priority_flow_control: [3]``; none are an empty list."""

    priorities: tuple[Priority, ...] = Field(max_length=PRIORITIES)


class PriorityFlowControl(DeviceItem):
    """Which priorities are paused on their own (IEEE 802.1Qbb): ``dcb pfc`` (dcb-pfc(8)).

    The other end has to be set to the same: under ``all``, or on the switch.
    """

    kind = "priority_flow_control"
    Options = PriorityFlowControlOptions
    options: PriorityFlowControlOptions
    phase = Phase.LINK
    alone = "priorities"

    async def read(self, place: Place) -> Values:
        found = await answer_of(place, parse_pfc, "dcb", "-j", "pfc", "show", "dev", device_of(place))
        return {"priorities": list(found["priorities"]), "classes_possible": found["classes_possible"]}

    def target_values(self, now: Values) -> Values:
        asked, most = sorted(set(self.options.priorities)), now["classes_possible"]
        if isinstance(most, int) and len(asked) > most:
            raise CannotSetError(f"{len(asked)} priorities are more than the adapter's {most}")
        return {"priorities": list(asked)}

    async def write(self, place: Place, values: Values) -> None:
        priorities = values["priorities"]
        on = [f"{priority}:on" for priority in priorities] if isinstance(priorities, list) else []
        await run_setter(place, "dcb", "pfc", "set", "dev", device_of(place), "prio-pfc", "all:off", *on)


class TrustOptions(DeviceOptions):
    """``trust: [dscp]``: what is looked at first, and what after it."""

    order: tuple[Literal["dscp", "pcp", "ethtype", "stream-port", "dgram-port", "port"], ...] = Field(max_length=6)


class Trust(DeviceItem):
    """What an adapter takes a frame's priority from: ``dcb apptrust`` (iproute2 6.3, Linux 6.2).

    With priority flow control and traffic classes.
    """

    kind = "trust"
    Options = TrustOptions
    options: TrustOptions
    phase = Phase.LINK
    alone = "order"

    async def read(self, place: Place) -> Values:
        order = await answer_of(place, parse_trust, "dcb", "-j", "apptrust", "show", "dev", device_of(place))
        return {"order": list(order)}

    def target_values(self, now: Values) -> Values:
        return {"order": list(self.options.order)}

    async def write(self, place: Place, values: Values) -> None:
        order = values["order"]
        words = [str(word) for word in order] if isinstance(order, list) else []
        await run_setter(place, "dcb", "apptrust", "set", "dev", device_of(place), "order", *words)
