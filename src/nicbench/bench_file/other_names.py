"""What newcomers, and other programs, call the keys of a bench file: an unknown key leads to the one that is meant."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final

_MEANT: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "pci": ("address",),
        "pci_address": ("address",),
        "bdf": ("address",),
        "slot": ("address",),
        "interface": ("device",),
        "iface": ("device",),
        "netdev": ("device",),
        "nic": ("device",),
        "ifname": ("device",),
        "dev": ("device",),
        "ip_address": ("ip",),
        "addr": ("ip", "address"),
        "type": ("kind", "method"),
        "machine": ("host",),
        "packet_size": ("frame_bytes",),
        "packet_sizes": ("frame_bytes",),
        "pkt_size": ("frame_bytes",),
        "size": ("frame_bytes", "frame_size", "message_bytes"),
        "sizes": ("frame_bytes", "message_bytes"),
        "frame_size": ("frame_bytes",),
        "frame_sizes": ("frame_bytes",),
        "frame_length": ("frame_bytes",),
        "tool": ("workload",),
        "editors": ("instances",),
        "clients": ("instances",),
        "fps": ("frames_per_s",),
        "time": ("duration",),
        "seconds": ("duration",),
        "repeat": ("repetitions", "runs"),
        "parallel": ("streams",),
        "loss": ("goals",),
        "server": ("dut",),
        "device_under_test": ("dut",),
        "cables": ("links",),
        "generator": ("tester",),
        "topology": ("lab", "links"),
    }
)


def meant_by(given: str, known: Collection[str]) -> str | None:
    """The key that is called ``given`` elsewhere; None where it is no such name, or the section has no such key."""
    asked = given.lower().replace("-", "_").replace(" ", "_")
    if asked in known:
        return asked
    return next((key for key in _MEANT.get(asked, ()) if key in known), None)
