"""What a DPDK virtual device (``vdev``) stands on: the kernel interfaces and PCI addresses in its arguments.

A port given as ``net_af_packet0,iface=eth0`` sends through eth0 like one given as ``device: eth0``, and is checked like
one. DPDK reads only the arguments that a driver knows; here every one is looked at, whatever the driver is called.
"""

from __future__ import annotations

import re

# DPDK guides/nics: af_packet, af_xdp, pcap_ring and tap. `iface` of tap and of virtio_user is the name of an interface
# that the driver makes.
_KEYS = frozenset({"iface", "rx_iface", "rx_iface_in", "tx_iface", "remote"})
_MAKES_ITS_IFACE = ("net_tap", "net_tun", "eth_tap", "net_virtio_user", "virtio_user")
# Nested devices (net_failsafe: `dev(...)`) and lists (`[a,b]`) have arguments of the same form.
_SEPARATORS = re.compile(r"[,;()\[\]]")
_PCI_ADDRESS = re.compile(r"(?<![0-9a-fA-F:])(?:[0-9a-fA-F]{4}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7](?![0-9a-fA-F])")
_RUNS_COMMANDS = re.compile(r"(?:^|,)\s*(?:exec|fd)\s*\(")


def interfaces_of_vdev(vdev: str) -> tuple[str, ...]:
    """Interfaces that must be there for this device, in the order of its arguments."""
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
    """Every other value: each may be the name of an interface, in the words of a driver that is not known here."""
    values = (part.partition("=")[2].strip() for part in _SEPARATORS.split(vdev))
    known = interfaces_of_vdev(vdev)
    return tuple(dict.fromkeys(value for value in values if value and value not in known))


def addresses_of_vdev(vdev: str) -> tuple[str, ...]:
    """PCI addresses of devices that it takes in (net_bonding, net_failsafe), as /sys writes them."""
    return tuple(dict.fromkeys(pci_address(found) for found in _PCI_ADDRESS.findall(vdev)))


def pci_address(text: str) -> str:
    """A PCI address as /sys writes it: lower case, with its domain."""
    return (text if text.count(":") == 2 else f"0000:{text}").lower()


def runs_commands(vdev: str) -> bool:
    """Whether its devices are known only to a command or a file (``exec(...)``, ``fd(...)`` of net_failsafe)."""
    return _RUNS_COMMANDS.search(vdev) is not None
