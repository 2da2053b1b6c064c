"""Facts of storage: drives and their controllers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any, TypedDict

from nicbench.core.described import Facts, NotEverywhere, Subject, Write
from nicbench.core.errors import UnknownFactError
from nicbench.hosts.asking import output_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import CommandFact, Fact, count_words, group_alike, join_texts

_COLUMNS = "NAME,TYPE,VENDOR,MODEL,SIZE,TRAN,REV,ROTA,SERIAL"
_NOT_A_DRIVE = ("zram", "ram", "loop", "nbd", "fd")


class _Drive(TypedDict):
    """Drives that are alike."""

    count: int
    vendor: str | None
    model: str | None
    size_bytes: int
    interface: str | None
    rotating: bool | None
    firmware: Annotated[str | None, NotEverywhere]
    names: list[str]
    serials: list[str]


def _tell_drives(facts: Facts, write: Write) -> str | None:
    return join_texts(
        *(
            join_texts(
                f"{count_words(each)}{join_texts(each.get('vendor'), each.get('model'), by=' ') or 'unnamed'}",
                write("_bytes", each.get("size_bytes")),
                each.get("interface"),
                f"firmware {each['firmware']}" if each.get("firmware") else None,
            )
            for each in facts.get("drives") or ()
        ),
        by="; ",
    )


class Drives(Fact):
    """Drives: vendor, model, size, interface, firmware; alike ones together.

    From ``lsblk``, and ``nvme list`` where it is installed, which alone knows the firmware of NVMe everywhere.
    """

    kind = "drives"
    shape = list[_Drive]
    of_machine = True
    subjects = (Subject("Drives", 220, _tell_drives),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> list[dict[str, Any]]:
        listed = await output_of(host, "lsblk", "-J", "-b", "-d", "-o", _COLUMNS)
        nvme = {}
        if '"nvme' in listed:
            try:
                nvme = parse_nvme_list(await output_of(host, "nvme", "list", "-o", "json"))
            except (UnknownFactError, ValueError):
                nvme = {}  # what lsblk knows of them is kept
        return merge_drives(parse_lsblk(listed), nvme)


def merge_drives(found: list[dict[str, Any]], nvme: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Both sources together; the program that is made for NVMe is believed."""
    known = [
        {**drive, **{name: value for name, value in nvme.get(drive["name"], {}).items() if value}} for drive in found
    ]
    return group_alike(known, each={"name": "names", "serial": "serials"})


def parse_lsblk(text: str) -> list[dict[str, Any]]:
    """Whole drives of ``lsblk -J -b -d``; older versions print every value as text (before 2.33)."""
    found = []
    for row in json.loads(text)["blockdevices"]:
        size = int(row.get("size") or 0)
        if row.get("type") == "disk" and size > 0 and not str(row.get("name")).startswith(_NOT_A_DRIVE):
            found.append(
                {
                    "name": str(row["name"]),
                    "vendor": _vendor(row.get("vendor")),
                    "model": _text(row.get("model")),
                    "size_bytes": size,
                    "interface": _text(row.get("tran")) or ("nvme" if str(row["name"]).startswith("nvme") else None),
                    "rotating": None if row.get("rota") is None else str(row["rota"]).lower() in ("1", "true"),
                    "firmware": _text(row.get("rev")),
                    "serial": _text(row.get("serial")),
                }
            )
    return found


def parse_nvme_list(text: str) -> dict[str, dict[str, Any]]:
    """``nvme list -o json`` by name of the drive: one flat list (nvme-cli 1), or subsystems with controllers (2)."""
    found = {}
    for device in json.loads(text)["Devices"]:
        for name, fields in _controllers(device):
            found[name] = {
                "model": _text(fields.get("ModelNumber")),
                "firmware": _text(fields.get("Firmware")),
                "serial": _text(fields.get("SerialNumber")),
            }
    return found


def _controllers(device: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    if "DevicePath" in device:
        yield str(device["DevicePath"]).removeprefix("/dev/"), device
    for subsystem in device.get("Subsystems", []):
        for controller in subsystem.get("Controllers", []):
            # A namespace belongs to its controller, or, with several paths to it, to the subsystem.
            for space in [*controller.get("Namespaces", []), *subsystem.get("Namespaces", [])]:
                yield str(space["NameSpace"]), controller


def _vendor(value: Any) -> str | None:
    """A virtual drive has the number of its PCI vendor there (0x1af4), which says nothing of a drive."""
    vendor = _text(value)
    return None if vendor is None or vendor.startswith("0x") else vendor


def _text(value: Any) -> str | None:
    return str(value).strip() or None if value is not None else None


_MASS_STORAGE = "01"  # PCI Code and ID Assignment Specification, base class 01h


class _Controller(TypedDict):
    """Controllers that are alike."""

    count: int
    vendor: str | None
    model: str | None
    sold_as: str | None
    interface: str | None
    revision: str | None
    driver: str | None
    addresses: list[str]


def _tell_controllers(facts: Facts, write: Write) -> str | None:
    return join_texts(
        *(
            join_texts(
                f"{count_words(each)}{join_texts(each.get('vendor'), each.get('model'), by=' ')}", each.get("driver")
            )
            for each in facts.get("storage_controllers") or ()
        ),
        by="; ",
    )


def parse_controllers(text: str) -> list[dict[str, Any]]:
    """Records of ``lspci -Dvmmnnk``: a field a line, an empty line between, numbers in brackets."""
    found = []
    for record in text.split("\n\n"):
        fields = {name: value.strip() for name, _, value in (line.partition(":") for line in record.splitlines())}
        kind, _, number = fields.get("Class", "").removesuffix("]").rpartition(" [")
        if number[:2] == _MASS_STORAGE:
            found.append(
                {
                    "vendor": _strip_number(fields.get("Vendor")),
                    "model": _strip_number(fields.get("Device")),
                    "sold_as": _strip_number(fields.get("SDevice")),
                    "interface": kind,
                    "revision": fields.get("Rev"),
                    "driver": fields.get("Driver"),
                    "address": fields.get("Slot"),
                }
            )
    return group_alike(found, each={"address": "addresses"})


class StorageControllers(CommandFact):
    """Storage controllers on the PCI bus: vendor, model, revision, driver.

    From ``lspci``.
    """

    kind = "storage_controllers"
    shape = list[_Controller]
    of_machine = True
    subjects = (Subject("Storage controllers", 210, _tell_controllers),)
    command = (
        "lspci",
        "-Dvmmnnk",
    )
    parse = staticmethod(parse_controllers)


def _strip_number(name: str | None) -> str | None:
    """``MegaRAID SAS-3 3108 [Invader] [005d]`` without its identifier."""
    return name if name is None else name.rpartition(" [")[0] or name
