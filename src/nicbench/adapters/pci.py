"""Network adapters on the PCI bus: from sysfs, with the names that ``lspci -vmm`` has for their numbers."""

from __future__ import annotations

import re
from typing import Any

PATTERNS = tuple(
    f"/sys/bus/pci/devices/*/{name}"
    for name in (
        *("class", "vendor", "device", "subsystem_vendor", "subsystem_device", "revision", "numa_node"),
        *("local_cpulist", "current_link_speed", "current_link_width", "max_link_speed", "max_link_width"),
        *("../max_link_speed", "../max_link_width", "sriov_totalvfs", "sriov_numvfs", "uevent"),
    )
)
"""The files to read. ``..`` is the port that the adapter is plugged into, as sysfs nests devices in their bridges."""

_PATH = re.compile(
    r"^/sys/bus/pci/devices/(?P<address>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])/(?P<name>[\w./]+)$"
)
_NETWORK_CLASS = re.compile(r"^0x02[0-9a-f]{4}$")
_SPEED = re.compile(r"^(\d{1,3}(?:\.\d)?) GT/s")
_WIDTH = re.compile(r"^x?(\d{1,2})$")
_ID = re.compile(r"^0x([0-9a-f]{4})$")
_WIDTHS = frozenset({1, 2, 4, 8, 12, 16, 32})


def parse_pci(text: str) -> dict[str, dict[str, Any]]:
    """Output of ``grep -H ""`` over ``PATTERNS``: each function of the class "network", by its address.

    Null is what the bus does not say: a virtual machine's bus often has no link.
    """
    values: dict[str, dict[str, str]] = {}
    for row in text.splitlines():
        # The address has colons of its own.
        path, value = _parted(row)
        if path is None:
            continue
        name, driver = path["name"], value.partition("DRIVER=")
        if name == "uevent":
            if driver[1] and not driver[0]:
                values.setdefault(path["address"], {})["driver"] = driver[2].strip()
            continue
        values.setdefault(path["address"], {})[name] = value.strip()
    return {
        address: _adapter(found)
        for address, found in sorted(values.items())
        if _NETWORK_CLASS.match(found.get("class", ""))
    }


def parse_names(text: str) -> dict[str, dict[str, str]]:
    """``lspci -D -vmm``: vendor, device and subsystem of each address in the words of the PCI ID database."""
    names: dict[str, dict[str, str]] = {}
    for block in text.split("\n\n"):
        rows = dict(row.split(":\t", 1) for row in block.splitlines() if ":\t" in row)
        if slot := rows.get("Slot"):
            wanted = {"vendor": "Vendor", "model": "Device", "subsystem_vendor": "SVendor", "subsystem": "SDevice"}
            names[slot.strip()] = {name: rows[key].strip() for name, key in wanted.items() if key in rows}
    return names


def bandwidth_bits_per_s(speed_gt_per_s: float | None, lanes: int | None) -> float | None:
    """What a PCIe link carries in each direction after its line code (PCIe 5.0, 4.2.1 and 4.2.2), headers included.

    8b/10b up to 5 GT/s, 128b/130b from 8 GT/s; at 64 GT/s (PCIe 6.0, flits of 256 bytes) 242 of 256 bytes are data.
    """
    if speed_gt_per_s is None or lanes is None:
        return None
    share_by_least_speed = {64.0: 242 / 256, 8.0: 128 / 130, 0.0: 8 / 10}
    share = next(share for least, share in share_by_least_speed.items() if speed_gt_per_s >= least)
    return speed_gt_per_s * 1e9 * lanes * share


def _parted(row: str) -> tuple[re.Match[str] | None, str]:
    for end in re.finditer(":", row):
        if path := _PATH.match(row[: end.start()]):
            return path, row[end.end() :]
    return None, ""


def _adapter(found: dict[str, str]) -> dict[str, Any]:
    current, most, slot = (_link(found, *names) for names in _LINKS)
    node = found.get("numa_node", "-1")
    ids = {name: match[1] for name in _IDS if (match := _ID.match(found.get(name, "")))}
    return {
        "id": f"{ids['vendor']}:{ids['device']}" if {"vendor", "device"} <= set(ids) else None,
        "subsystem_id": f"{ids['subsystem_vendor']}:{ids['subsystem_device']}" if len(ids) == len(_IDS) else None,
        "revision": found.get("revision"),
        "driver": found.get("driver"),
        "numa_node": int(node) if node.isdecimal() else None,
        "local_cpus": found.get("local_cpulist") or None,
        "link": current,
        "link_possible": most,
        "slot_possible": slot,
        "virtual_functions": _whole(found.get("sriov_numvfs")),
        "virtual_functions_possible": _whole(found.get("sriov_totalvfs")),
    }


_LINKS = (
    ("current_link_speed", "current_link_width"),
    ("max_link_speed", "max_link_width"),
    ("../max_link_speed", "../max_link_width"),
)
_IDS = ("vendor", "device", "subsystem_vendor", "subsystem_device")


def _link(found: dict[str, str], speed_name: str, width_name: str) -> dict[str, float | int | None] | None:
    speed, width = _SPEED.match(found.get(speed_name, "")), _WIDTH.match(found.get(width_name, ""))
    lanes = int(width[1]) if width and int(width[1]) in _WIDTHS else None
    if speed is None or lanes is None:
        return None
    rate = float(speed[1])
    return {"speed_gt_per_s": rate, "lanes": lanes, "bandwidth_bits_per_s": bandwidth_bits_per_s(rate, lanes)}


def _whole(value: str | None) -> int | None:
    return int(value) if value is not None and value.isascii() and value.isdecimal() else None
