"""PCI Express links: a card in a slow or narrow slot, or whose link came up below what card and slot can.

Source: Documentation/ABI/testing/sysfs-bus-pci (current_link_speed, max_link_speed and their widths).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from nicbench.doctor.base import Check, Examination, ok, warning
from nicbench.doctor.checks._interfaces import Adapters, Interface, adapters, drop_way_out, interfaces, name_adapter
from nicbench.hosts.base import Host

_NAME = "PCI Express"


class Slots(Examination):
    """From ``/sys/bus/pci``: the adapter and the port that it is plugged into."""

    kind = "slots"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        known = await interfaces(host)
        return judge(drop_way_out(await adapters(host), known), known)


def judge(found: Adapters, known: Collection[Interface]) -> tuple[Check, ...]:
    """One check for each adapter that says its link; of virtual ones none does."""
    told = {address: adapter for address, adapter in found.items() if adapter["link"]}
    if not told:
        return (ok(_NAME, "no adapter to measure with reports its PCIe link"),)
    return tuple(_judge_one(name_adapter(address, known), adapter) for address, adapter in told.items())


def _judge_one(who: str, adapter: Mapping[str, Any]) -> Check:
    name = f"{_NAME} of {who}"
    link, possible, slot = adapter["link"], adapter["link_possible"], adapter["slot_possible"]
    if possible is None or link["bandwidth_bits_per_s"] >= possible["bandwidth_bits_per_s"]:
        return ok(name, f"{_describe(link)}{'' if possible is None else ', all that the card can'}")
    text = f"{_describe(link)}, and the card could {_describe(possible)}: frames beyond that rate are lost in the card"
    if slot is not None and slot["bandwidth_bits_per_s"] < possible["bandwidth_bits_per_s"]:
        return warning(name, f"{text}. Its slot gives {_describe(slot)} at most: put it into a faster one")
    # Where the slot does not say either, nothing else is known of it.
    return warning(name, f"{text}. Reseat it, and look whether the BIOS limits the slot's speed or splits its lanes")


def _describe(link: Mapping[str, Any]) -> str:
    return (
        f"x{link['lanes']} at {link['speed_gt_per_s']:g} GT/s ({link['bandwidth_bits_per_s'] / 1e9:.1f} Gb/s each way)"
    )
