"""Storage controllers on the PCI bus: vendor, model, revision, driver."""

from __future__ import annotations

from typing import Any, TypedDict

from nicbench.core.described import Facts, Subject, Write
from nicbench.hosts.asking import output_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.facts.machine._groups import group_alike
from nicbench.system.inventory.subjects import count_words, join_texts

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


class StorageControllers(Fact):
    """From ``lspci``."""

    kind = "storage_controllers"
    shape = list[_Controller]
    of_machine = True
    subjects = (Subject("Storage controllers", 210, _tell_controllers),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> list[dict[str, Any]]:
        return parse_controllers(await output_of(host, "lspci", "-Dvmmnnk"))


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


def _strip_number(name: str | None) -> str | None:
    """``MegaRAID SAS-3 3108 [Invader] [005d]`` without its identifier."""
    return name if name is None else name.rpartition(" [")[0] or name
