"""What sysfs and lspci say of the PCI devices of a host: who they are, and how their link to the bus is. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from nicbench.core.frozen import frozen
from nicbench.system.adapters.ethtool import number_of

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
        path, value = _split_path(row)
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
    names = {}
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


def _split_path(row: str) -> tuple[re.Match[str] | None, str]:
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
        "virtual_functions": number_of(found.get("sriov_numvfs")),
        "virtual_functions_possible": number_of(found.get("sriov_totalvfs")),
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


# ``lspci -D -vv`` and ``setpci``: how a PCI Express function was set by firmware and kernel.


_HEAD = re.compile(r"^(?P<address>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (?P<rest>.*)$")
_NETWORK = re.compile(r"^(Ethernet|Network|Infiniband) controller|\[02[0-9a-f]{2}\]", re.IGNORECASE)
_SIZES = re.compile(r"MaxPayload (\d+) bytes, MaxReadReq (\d+) bytes")
_CAPABLE = re.compile(r"DevCap:\s+MaxPayload (\d+) bytes")
_LINK = re.compile(r"Lnk(?P<which>Cap|Sta):.*?Speed (?P<speed>[\d.]+)GT/s[^,]*, Width x(?P<width>\d+)(?P<rest>[^\n]*)")
_ASPM = re.compile(r"LnkCtl:\s+ASPM ([^;]+);")
_FLAGS = {"relaxed_ordering": "RlxdOrd", "extended_tags": "ExtTag", "no_snoop": "NoSnoop"}
_VPD = {"product": re.compile(r"Product Name: (.+)"), "part": re.compile(r"\[PN\] Part number: (.+)")}


def parse_pci_express(text: str) -> dict[str, dict[str, Any]]:
    """Each network function that has a PCI Express capability, by address; null for rows that lspci may not read.

    Without root lspci prints ``<access denied>`` for capabilities, and the adapter is left out.
    """
    found = {}
    for head, body in _blocks(text):
        if not _NETWORK.search(head["rest"]) or "Express" not in body:
            continue
        sizes, capable = _SIZES.search(body), _CAPABLE.search(body)
        control = body.partition("DevCtl:")[2].partition("DevSta:")[0]
        aspm = _ASPM.search(body)
        found[head["address"]] = {
            "payload_bytes": int(sizes[1]) if sizes else None,
            "payload_possible_bytes": int(capable[1]) if capable else None,
            "read_request_bytes": int(sizes[2]) if sizes else None,
            "aspm": aspm[1].strip() if aspm else None,
            **{name: _flag(control, word) for name, word in _FLAGS.items()},
            "link_degraded": _is_degraded(body),
            **{name: value[1].strip() if (value := pattern.search(body)) else None for name, pattern in _VPD.items()},
        }
    return found


def read_request_bytes(register: int) -> int:
    """MaxReadReq of a Device Control register: bits 14:12, 128 bytes at 0, doubling (PCIe 5.0, 7.5.3.4).

    ValueError for the two values that are reserved.
    """
    field = register >> 12 & 0b111
    if field > 5:
        raise ValueError(f"{field} in bits 14:12 of Device Control is reserved")
    return 128 << field


def set_read_request(register: int, size_bytes: int) -> int:
    """Returns the register with bits 14:12 for this size and all other bits unchanged.

    ValueError for a size that PCI Express does not have.
    """
    sizes = {128 << field: field for field in range(6)}
    if size_bytes not in sizes:
        raise ValueError(f"MaxReadReq is one of {', '.join(map(str, sizes))} bytes, not {size_bytes}")
    return register & 0x8FFF | sizes[size_bytes] << 12


def parse_register(text: str) -> int:
    """What ``setpci`` prints of a word: four hex digits. ValueError for anything else."""
    word = text.strip()
    if not re.fullmatch(r"[0-9a-fA-F]{4}", word):
        raise ValueError(f"{word[:80]!r} is no word of configuration space")
    value = int(word, 16)
    if value == 0xFFFF:
        raise ValueError("the adapter does not answer: every bit of the register reads as 1")
    return value


def _blocks(text: str) -> list[tuple[re.Match[str], str]]:
    blocks: list[tuple[re.Match[str], list[str]]] = []
    for row in text.splitlines():
        if head := _HEAD.match(row):
            blocks.append((head, []))
        elif blocks:
            blocks[-1][1].append(row)
    return [(head, "\n".join(rows)) for head, rows in blocks]


def _flag(control: str, word: str) -> bool | None:
    found = re.search(rf"\b{word}([+-])", control)
    return None if found is None else found[1] == "+"


def _is_degraded(body: str) -> bool | None:
    """Whether the link runs below what the function could; lspci says so itself from 3.6 on, older ones do not."""
    links = {link["which"]: (float(link["speed"]), int(link["width"])) for link in _LINK.finditer(body)}
    if set(links) != {"Cap", "Sta"}:
        return None
    return links["Sta"][0] < links["Cap"][0] or links["Sta"][1] < links["Cap"][1]


# What devlink and mlxconfig say of an adapter's firmware and its parameters. Pure.

# ``devlink -j``: firmware versions and parameters of an adapter.


_SERIAL = "serial_number"


def parse_info(text: str) -> dict[str, dict[str, Any]]:
    """``devlink -j dev info``: by handle (``pci/0000:03:00.0``), driver and versions; fixed, running and stored.

    A stored version that differs from the running one waits for a reset.
    """
    found = {}
    for handle, entry in json.loads(text).get("info", {}).items():
        versions = entry.get("versions", {})
        found[handle] = {
            "driver": entry.get("driver"),
            "serial": entry.get(_SERIAL),
            **{group: dict(versions.get(group, {})) for group in ("fixed", "running", "stored")},
        }
    return found


def parse_parameters(text: str) -> dict[str, dict[str, Any]]:
    """``devlink -j dev param show``: by handle, ``name`` to its value; or ``name, when`` unless that is now.

    ``runtime`` is in force, ``driverinit`` after a reload of the driver, ``permanent`` after a reset of the adapter.
    """
    found = {}
    for handle, parameters in json.loads(text).get("param", {}).items():
        values = {}
        for parameter in parameters:
            for value in parameter.get("values", []):
                when = value.get("cmode")
                name = parameter["name"] if when == "runtime" else f"{parameter['name']}, {when}"
                values[name] = value.get("value")
        found[handle] = values
    return found


# ``mlxconfig -d ADAPTER -e query``: settings in the firmware of NVIDIA (Mellanox) adapters.


_ROW = re.compile(r"^(?:\*|\s)?\s*(?P<name>[A-Z][A-Z0-9_]*(?:\[[\d.]+\])?)\s{2,}(?P<values>\S.*)$")
_VALUE = re.compile(r"(?:\w+)\([^)]*\)|Array\[[\d.]+\]|\S+")


def parse_mlxconfig(text: str) -> dict[str, dict[str, str]]:
    """Each setting with ``default``, ``current`` and ``next_boot``; without ``-e`` there is only the last."""
    columns: tuple[str, ...] = ()
    found: dict[str, dict[str, str]] = {}
    for row in text.splitlines():
        if "Next Boot" in row or "Next boot" in row:
            head = row.lower()
            columns = tuple(
                name
                for name, words in (("default", "default"), ("current", "current"), ("next_boot", "next boot"))
                if words in head
            )
        elif columns and (setting := _ROW.match(row)):
            values = _VALUE.findall(setting["values"])
            if len(values) == len(columns):
                found[setting["name"]] = dict(zip(columns, values, strict=True))
    if not columns:
        raise ValueError("no table of settings in it")
    return found


def pending(settings: dict[str, dict[str, str]]) -> dict[str, Any]:
    """Settings that change with the next reset of the adapter."""
    return {
        name: values["next_boot"]
        for name, values in settings.items()
        if "current" in values and values["current"] != values.get("next_boot")
    }


def forms_of(value: str) -> frozenset[str]:
    """The ways in which a value may be written, in small letters: of ``True(1)`` the word, the number, and both."""
    found = re.search(r"^([^(]*)\(([^)]*)\)$", value)
    return frozenset(form.lower() for form in (value, *(found.groups() if found else ())) if form)


# Interrupts of an adapter: which they are (sysfs, ``/proc/interrupts``), and which CPUs take them.

_INTERRUPTS_ROW = re.compile(r"^\s*(\d{1,7}):(.*)$")
_MSI = re.compile(r"/msi_irqs/(\d{1,7})$")
_QUEUE = re.compile(
    r"(?:^|[^0-9a-z])(?:txrx|rxtx|txr|tx|rx|fp|slice|comp|input|output|ntfy-block|ntfy-blk|q|io|mana_q)"
    r"[-.@]?(\d{1,5})",
    re.IGNORECASE,
)
_ONLY_A_NUMBER = re.compile(r"\w*-(\d{1,5})")  # eth0-3 of sfc, mlx4-3 of mlx4_core
_NO_QUEUE = re.compile(r"(?:^|[^0-9a-z])(?:config|async|misc|ctrl|mgmnt|fdir|link|event|pages|oicr)", re.IGNORECASE)


@frozen
class Interrupt:
    """One interrupt. ``queue`` is null where its name says none (link changes, management)."""

    number: int
    name: str
    queue: int | None


def parse_interrupts(text: str) -> dict[int, str]:
    """``/proc/interrupts``: number to name, the word after chip and trigger; the columns of counts are left out."""
    lines = text.splitlines()
    columns = sum(word.startswith("CPU") for word in lines[0].split()) if lines else 0
    found = {}
    for line in lines[1:]:
        if row := _INTERRUPTS_ROW.match(line):
            words = row[2].split()[columns:]
            # "PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0"; several names are separated by commas.
            names = words[2:] if len(words) > 2 else words
            found[int(row[1])] = " ".join(names)
    return found


def numbers_of(paths: Iterable[str]) -> list[int]:
    """The numbers in paths of ``device/msi_irqs``."""
    return sorted({int(found[1]) for path in paths if (found := _MSI.search(path))})


def queue_of(name: str, device: str) -> int | None:
    """The queue in the name of an interrupt of ``device``: ``ens1f0-TxRx-3``, ``mlx5_comp3@pci:..``, ``eth0-fp-3``.

    What the interface is called says nothing: ``link1``, ``rx0``.
    """
    plain = _interrupts_whole(device).sub("", name.partition("@")[0])
    if _NO_QUEUE.search(plain):
        return None
    if found := list(_QUEUE.finditer(plain)):
        return int(found[-1][1])
    alone = _ONLY_A_NUMBER.fullmatch(plain)
    return int(alone[1]) if alone else None


def interrupts_of_device(
    device: str, bus: str | None, msi: Iterable[int], names: Mapping[int, str]
) -> tuple[Interrupt, ...]:
    """Returns the interrupts of an interface by its PCI function, or by its name if the bus does not list them."""
    owned = set(msi)
    if not owned:
        ours = _interrupts_whole(device)
        of_bus = re.compile(rf"@pci:{re.escape(bus)}$") if bus else None
        owned = {number for number, name in names.items() if ours.search(name) or (of_bus and of_bus.search(name))}
    known = ((number, names.get(number, "")) for number in sorted(owned))
    # An interrupt that is allocated and not requested has no name, and is nobody's.
    return tuple(Interrupt(number, name, queue_of(name, device)) for number, name in known if name)


def _interrupts_whole(device: str) -> re.Pattern[str]:
    """Finds the name of an interface where it is not a part of a longer one."""
    return re.compile(rf"(?<![\w.]){re.escape(device)}(?![\w.])")
