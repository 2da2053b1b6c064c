"""The test interfaces, inside their namespace: driver, firmware, MTU, queues, rings, offloads, link."""

from __future__ import annotations

import json
from typing import Any

from nicbench.hosts.base import Host
from nicbench.inventory._asking import output_of
from nicbench.inventory.base import Fact, UnknownFactError
from nicbench.inventory.facts._ethtool import parse_driver, parse_features, parse_limits


class Interfaces(Fact):
    """From ``ip -j -d link`` and ``ethtool -i -k -g -l``."""

    kind = "interfaces"

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        return {device: await _interface(host, device) for device in devices}


async def _interface(host: Host, device: str) -> dict[str, Any]:
    facts = parse_link(await output_of(host, "ip", "-j", "-d", "link", "show", "dev", device))
    for name, option, parse in (
        ("driver", "-i", parse_driver),
        ("rings", "-g", parse_limits),
        ("channels", "-l", parse_limits),
        ("offloads_on", "-k", parse_features),
    ):
        try:
            facts[name] = parse(await output_of(host, "ethtool", option, device))
        except UnknownFactError:
            facts[name] = None  # many drivers answer only some of these
    return facts


def parse_link(text: str) -> dict[str, Any]:
    """What of ``ip -j -d link show`` bears on a measurement."""
    link = json.loads(text)[0]
    program = link.get("xdp", {}).get("prog", {})
    return {
        "kind": link.get("linkinfo", {}).get("info_kind") or "hardware",
        "mac": link.get("address"),
        "mtu_bytes": link.get("mtu"),
        "state": link.get("operstate"),
        "queueing": link.get("qdisc"),
        "transmit_queue_frames": link.get("txqlen"),
        "transmit_queues": link.get("num_tx_queues"),
        "receive_queues": link.get("num_rx_queues"),
        "xdp_program": program.get("name"),
    }
