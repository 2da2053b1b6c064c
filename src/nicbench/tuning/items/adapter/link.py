"""Speed, duplex, autonegotiation and forward error correction of a link: ``ethtool -s``, ``--set-fec`` (ethtool(8))."""

from __future__ import annotations

from typing import Literal

from nicbench.core.errors import HostError
from nicbench.core.plan import Values
from nicbench.core.quantity import BitsPerSecond, Seconds
from nicbench.system.adapters.ethtool_link import parse_fec, parse_link_settings
from nicbench.tuning.items._adapter import answer_of, carrier, device_of, run_setter, wait_for_link
from nicbench.tuning.items.base import DeviceOptions, Item, Phase, Place
from nicbench.tuning.setting import CannotSetError

_WORDS = {"none": "Off", "off": "Off", "auto": "Auto", "rs": "RS", "baser": "BaseR", "llrs": "LLRS"}
_ADVERTISED = "advertised_modes"
Fec = Literal["auto", "off", "rs", "baser", "llrs"]


class LinkOptions(DeviceOptions):
    """Speed in bit/s. ``wait`` is for a link that was there: until it is there again.

    Where both ends are forced (no autonegotiation), there is no link between the one change and the other: set one end
    beforehand, or let it negotiate.
    """

    speed: BitsPerSecond | None = None
    duplex: Literal["full", "half"] | None = None
    autonegotiation: bool | None = None
    fec: Fec | None = None
    wait: Seconds = 30.0


class Link(Item):
    """Read back when the link is there again, so that speed and duplex are those that both ends have."""

    kind = "link"
    Options = LinkOptions
    options: LinkOptions
    scope = "device"
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
        arguments: list[str] = []
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
