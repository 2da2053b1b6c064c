"""Where adapters hang on the PCI bus: by their interface, or by the address of a port that a driver of DPDK has."""

from __future__ import annotations

import shlex

from nicbench.measure.health.base import HealthView


def script_for_functions(view: HealthView, command: str) -> str:
    """The command for every adapter's folder ``$p`` under /sys/devices; virtual interfaces have none."""
    places = [f"/sys/class/net/{shlex.quote(device)}/device" for device in view.devices]
    places += [f"/sys/bus/pci/devices/{shlex.quote(address)}" for address in view.addresses]
    if not places:
        return ""
    return f'for d in {" ".join(places)}; do [ -e "$d" ] || continue; p=$(readlink -f "$d"); {command}; done'
