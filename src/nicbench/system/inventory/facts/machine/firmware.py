"""What the firmware's tables (SMBIOS) say of the machine: BIOS, system, board, chassis."""

from __future__ import annotations

from typing import Annotated, TypedDict

from nicbench.core.described import Facts, NotEverywhere, Subject, Write
from nicbench.hosts.asking import values_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.subjects import join_texts, part_of

_FOLDER = "/sys/class/dmi/id/"
_FIELDS = {
    "bios_vendor": "bios_vendor",
    "bios_version": "bios_version",
    "bios_date": "bios_date",
    "bios_release": "bios_release",
    "sys_vendor": "vendor",
    "product_name": "product",
    "product_version": "product_version",
    "product_serial": "serial",
    "product_uuid": "uuid",
    "board_vendor": "board_vendor",
    "board_name": "board",
    "board_version": "board_version",
    "board_serial": "board_serial",
    "chassis_vendor": "chassis_vendor",
    "chassis_type": "chassis",
    "chassis_asset_tag": "asset_tag",
}
# Table 17 of the SMBIOS specification (DSP0134, 7.4.1), those that a machine in a laboratory can be.
_CHASSIS = {
    "1": "other",
    "3": "desktop",
    "4": "low profile desktop",
    "6": "mini tower",
    "7": "tower",
    "8": "portable",
    "9": "laptop",
    "10": "notebook",
    "17": "main server chassis",
    "23": "rack mount chassis",
    "25": "multi-system",
    "28": "blade",
    "29": "blade enclosure",
    "33": "IoT gateway",
    "34": "embedded PC",
    "35": "mini PC",
}
_NOTHING_SAID = frozenset(
    {"", "none", "default string", "not specified", "to be filled by o.e.m.", "system serial number", "0123456789"}
)


class _Identity(TypedDict):
    """Makers and models, as the firmware's tables have them."""

    vendor: str | None
    product: str | None
    board_vendor: str | None
    board: str | None
    chassis: str | None
    bios_vendor: str | None
    bios_version: str | None
    bios_date: str | None
    bios_release: str | None
    product_version: str | None
    serial: str | None
    uuid: str | None
    board_version: str | None
    board_serial: str | None
    chassis_vendor: str | None
    asset_tag: str | None


def _tell_machine(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "firmware")
    board = join_texts(found.get("board_vendor"), found.get("board"), by=" ")
    return join_texts(
        join_texts(found.get("vendor"), found.get("product"), by=" "),
        f"board {board}" if board else None,
        found.get("chassis"),
    )


def _tell_bios(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "firmware")
    return join_texts(join_texts(found.get("bios_vendor"), found.get("bios_version"), by=" "), found.get("bios_date"))


class Firmware(Fact):
    """From ``/sys/class/dmi/id``."""

    kind = "firmware"
    shape = Annotated[_Identity, NotEverywhere]
    of_machine = True
    subjects = (
        Subject("Machine", 10, _tell_machine),
        Subject("BIOS", 20, _tell_bios),
    )

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, str | None]:
        return parse_identity(await values_of(host, [_FOLDER + name for name in _FIELDS]))


def parse_identity(values: dict[str, str]) -> dict[str, str | None]:
    """What the tables say; a maker's filler ("To Be Filled By O.E.M.") is null, as what only root may read is."""
    found: dict[str, str | None] = {}
    for file, name in _FIELDS.items():
        value = values.get(_FOLDER + file)
        found[name] = None if value is None or value.lower() in _NOTHING_SAID else value
    if found["chassis"] is not None:
        found["chassis"] = _CHASSIS.get(found["chassis"], f"type {found['chassis']}")
    return found
