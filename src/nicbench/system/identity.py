"""Which card a port is: its driver, firmware and PCI numbers, and the hash by which its proof is found again."""

from __future__ import annotations

import hashlib

from nicbench.core.errors import HostError, NicbenchError
from nicbench.core.proof import ProvenPort
from nicbench.hosts.asking import join_scripts, split_sections
from nicbench.hosts.base import Host
from nicbench.system.adapters.ethtool import parse_driver, parse_link_settings

_ASK = {
    "driver": 'ethtool -i "$1"',
    "link": 'ethtool "$1"',
    "address": 'ethtool -P "$1"; cat "/sys/class/net/$1/address"',
    "card": '(cd "/sys/class/net/$1/device" && cat vendor device subsystem_vendor subsystem_device)',
    "machine": "cat /etc/machine-id",
}
_NO_ADDRESS = "00:00:00:00:00:00"


async def identify_port(host: Host, device: str) -> ProvenPort:
    """Asks the host which card stands behind an interface. HostError where the interface is missing."""
    told = split_sections((await host.run(("sh", "-c", join_scripts(_ASK), "sh", device), check=False)).stdout)
    addresses = [line.rpartition(" ")[2] for line in told.get("address", "").split("\n") if line.count(":") >= 5]
    if not addresses:
        raise HostError(f"there is no interface {device}", place=host.name, next_step="`ip link` lists them")
    address = next((each for each in addresses if each != _NO_ADDRESS), "")
    return port_of(device, address, told)


def port_of(device: str, address: str, told: dict[str, str]) -> ProvenPort:
    """The port of what the host's tools said, by the names of ``_ASK``. Pure."""
    driver = parse_driver(told.get("driver", ""))
    numbers = [each.removeprefix("0x") for each in told.get("card", "").split()]
    card = f"{numbers[0]}:{numbers[1]} {numbers[2]}:{numbers[3]}" if len(numbers) == 4 else None
    try:
        speed = parse_link_settings(told.get("link", ""))["speed_bits_per_s"]
    except ValueError:  # the driver says nothing of a link
        speed = None
    key = f"{told.get('machine', '').strip()} {address.lower()}"
    return ProvenPort(
        device=device,
        driver=driver["name"] or "unknown",
        driver_version=driver["version"],
        firmware=driver["firmware"],
        card=card,
        bits_per_s=speed,
        fingerprint=hashlib.sha256(key.encode()).hexdigest()[:16],
    )


async def driver_of(host: Host, device: str) -> str:
    """Names the kernel driver of an interface, as ``ethtool -i`` does; "" where the host does not say."""
    try:
        shown = await host.run(("ethtool", "-i", device), check=False)
    except NicbenchError:
        return ""
    return parse_driver(shown.stdout)["name"] or ""
