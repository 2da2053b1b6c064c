"""Links: one that runs below its port's speed, at half duplex, or not at all.

Source: ethtool(8); IEEE 802.3 clause 28 for what two ends agree on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from nicbench.doctor.base import Check, Examination, ok, warning
from nicbench.doctor.checks._interfaces import select_measurable
from nicbench.hosts.base import Host
from nicbench.system.adapters.ethtool import parse_link_settings
from nicbench.system.inventory.base import NOT_UNDERSTOOD

_NAME = "link"
_MODE = re.compile(r"^(\d{2,7})base")


class Links(Examination):
    """From ``ethtool`` of each interface that a device stands behind and that could be measured."""

    kind = "links"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        checks = []
        for interface in await select_measurable(host):
            done = await host.run(("ethtool", interface.name), check=False)
            try:
                checks.append(judge(interface.name, parse_link_settings(done.stdout)))
            except NOT_UNDERSTOOD:
                checks.append(ok(f"{_NAME} of {interface.name}", f"{interface.driver} does not report its link"))
        return tuple(checks) or (ok(_NAME, "no card's interface, except those that carry a default route"),)


def judge(device: str, settings: Mapping[str, Any]) -> Check:
    """``settings`` as ``nicbench.system.adapters.ethtool`` tells them."""
    name = f"{_NAME} of {device}"
    if settings["link"] is False:
        why = f" ({settings['why_no_link']})" if settings["why_no_link"] else ""
        return ok(name, f"none{why}: to measure with it, plug in the cable and `ip link set {device} up`")
    speed, most = settings["speed_bits_per_s"], fastest(settings["supported_modes"])
    if speed is None:
        return ok(name, "its driver does not report a speed: give `link:` in the bench file")
    if settings["duplex"] == "half":
        text = f"{_gbps(speed)} at half duplex: sending and receiving share it, so results would not be a port's"
        return warning(name, text, f"ethtool --change {device} autoneg on")
    if most is None or speed >= most:
        return ok(name, f"{_gbps(speed)}, {'duplex unknown' if settings['duplex'] is None else 'full duplex'}")
    text = f"runs at {_gbps(speed)} and could at {_gbps(most)}: the line limits the port and the DUT"
    partner, offered = fastest(settings["partner_modes"]), fastest(settings["advertised_modes"])
    if partner is not None and partner < most:
        return warning(
            name, f"{text}. The other end offers {_gbps(partner)} at most: change it, the cable or transceiver"
        )
    if settings["autonegotiation"] is False or (offered is not None and offered < most):
        return warning(
            name, f"{text}. It is configured so; to negotiate again:", f"ethtool --change {device} autoneg on"
        )
    return warning(name, f"{text}. Look at the other end, the cable and the transceiver (`ethtool -m {device}`)")


def fastest(modes: Iterable[str]) -> int | None:
    """Bits per second of the fastest mode in ethtool's words (``25000baseCR/Full``)."""
    return max((int(found[1]) * 1_000_000 for mode in modes if (found := _MODE.match(mode))), default=None)


def _gbps(bits_per_s: int) -> str:
    return f"{bits_per_s / 1e9:g} Gb/s" if bits_per_s >= 1e9 else f"{bits_per_s / 1e6:g} Mb/s"
