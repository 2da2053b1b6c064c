"""The kernel interfaces and cards behind DPDK's devices: found in the arguments of a virtual device or by a PCI
address, they must be free like any other.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from nicbench.core.errors import NotReadyError
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.testbed.interfaces.host_interfaces import check_free, check_interface, interfaces_of

# DPDK guides/nics: af_packet, af_xdp, pcap_ring and tap. `iface` of tap and of virtio_user is the name of an interface
# that the driver makes.
_KEYS = frozenset({"iface", "rx_iface", "rx_iface_in", "tx_iface", "remote"})
_MAKES_ITS_IFACE = ("net_tap", "net_tun", "eth_tap", "net_virtio_user", "virtio_user")
# Nested devices (net_failsafe: `dev(...)`) and lists (`[a,b]`) have arguments of the same form.
_SEPARATORS = re.compile(r"[,;()\[\]]")
_PCI_ADDRESS = re.compile(r"(?<![0-9a-fA-F:])(?:[0-9a-fA-F]{4}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7](?![0-9a-fA-F])")
_RUNS_COMMANDS = re.compile(r"(?:^|,)\s*(?:exec|fd)\s*\(")


def interfaces_of_vdev(vdev: str) -> tuple[str, ...]:
    """The interfaces that this device needs, in the order of its arguments."""
    driver = ""
    found: list[str] = []
    for part in _SEPARATORS.split(vdev):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            driver = key or driver
        elif key in _KEYS and value and not (key == "iface" and driver.startswith(_MAKES_ITS_IFACE)):
            found.append(value)
    return tuple(dict.fromkeys(found))


def other_values_of_vdev(vdev: str) -> tuple[str, ...]:
    """All other values of its arguments: each may name an interface for a driver that is not known here."""
    values = (part.partition("=")[2].strip() for part in _SEPARATORS.split(vdev))
    known = interfaces_of_vdev(vdev)
    return tuple(dict.fromkeys(value for value in values if value and value not in known))


def addresses_of_vdev(vdev: str) -> tuple[str, ...]:
    """The PCI addresses of devices that it contains (net_bonding, net_failsafe), as /sys writes them."""
    return tuple(dict.fromkeys(pci_address(found) for found in _PCI_ADDRESS.findall(vdev)))


def pci_address(text: str) -> str:
    """A PCI address as /sys writes it: lower case, with its domain."""
    return (text if text.count(":") == 2 else f"0000:{text}").lower()


def runs_commands(vdev: str) -> bool:
    """Whether it gets its devices from a command or a file (``exec(...)``, ``fd(...)`` of net_failsafe)."""
    return _RUNS_COMMANDS.search(vdev) is not None


async def check_vdev(host: Host, vdev: str, place: str) -> None:
    """Raises NotReadyError where a virtual device uses an interface that must not be used."""
    if runs_commands(vdev):
        raise NotReadyError(
            "this virtual device gets its devices from a command or a file, which cannot be checked",
            place=place,
            next_step="name its devices with `dev(...)`",
        )
    needed = interfaces_of_vdev(vdev)
    others = other_values_of_vdev(vdev)
    if needed or others:
        interfaces = await interfaces_of(host)
        for device in needed:
            check_interface(interfaces, device, place, for_tester=True)
        for value in others:
            name = interfaces.name_of(value)
            if name is not None:
                check_free(interfaces, name, place, for_tester=True)
    for address in addresses_of_vdev(vdev):
        await check_address(host, address, place)


async def check_address(host: Host, address: str, place: str) -> None:
    """Raises NotReadyError where the kernel uses the card at this PCI address; a card bound to DPDK has no interface.

    DPDK takes a card whatever namespace its interface is in, so the hosts outside a namespace are checked as well.
    """
    seen_from: Host | None = host
    while seen_from is not None:
        devices = await _interfaces_at(seen_from, address)
        if devices:
            interfaces = await interfaces_of(seen_from)
            for device in devices:
                check_free(interfaces, device, f"{place}, {address}", for_tester=True)
        seen_from = seen_from.inner if isinstance(seen_from, NetnsHost) else None


async def _interfaces_at(host: Host, address: str) -> list[str]:
    """The interfaces of a card: the entries of ``net/`` of the PCI device, or of its virtio device."""
    folder = f"/sys/bus/pci/devices/{pci_address(address)}/"
    listed = await host.run(("find", folder, "-maxdepth", "3", "-path", "*/net/*"), check=False)
    paths = (PurePosixPath(line) for line in listed.stdout.splitlines())
    return sorted({path.name for path in paths if path.parent.name == "net"})
