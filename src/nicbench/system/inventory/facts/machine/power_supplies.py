"""Power supplies: maker, model, state. A machine on half its supplies may hold its clock down."""

from __future__ import annotations

import re
from typing import Any, TypedDict

from nicbench.core.described import Facts, Subject, Write
from nicbench.core.errors import UnknownFactError
from nicbench.hosts.asking import output_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.facts.machine._groups import group_alike
from nicbench.system.inventory.facts.machine._ipmi import parse_fru, parse_sensors
from nicbench.system.inventory.subjects import join_texts, part_of

_SUPPLY = re.compile(r"\bPS\s?\d|\bPSU|PWR SPLY|power supply", re.IGNORECASE)


class _Supply(TypedDict):
    """Power supplies that are alike."""

    count: int
    vendor: str | None
    model: str | None
    part: str | None
    serials: list[str]


class _Supplies(TypedDict):
    """Which there are, and the state of each sensor."""

    states: dict[str, str]
    installed: list[_Supply]


def _tell_supplies(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "power_supplies")
    kinds = [
        join_texts(f"{each['count']} \u00d7 {join_texts(each.get('vendor'), each.get('model'), by=' ')}")
        for each in found.get("installed") or ()
    ]
    states = [f"{name}: {state}" for name, state in part_of(found, "states").items()]
    return join_texts(*kinds, *states, by="; ")


class PowerSupplies(Fact):
    """From ``ipmitool sdr type "Power Supply"`` and ``ipmitool fru print``."""

    kind = "power_supplies"
    shape = _Supplies
    of_machine = True
    subjects = (Subject("Power supplies", 250, _tell_supplies),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        states = parse_supply_states(await output_of(host, "ipmitool", "sdr", "type", "Power Supply"))
        try:
            installed = parse_supplies(await output_of(host, "ipmitool", "fru", "print"))
        except UnknownFactError:
            installed = None
        return {"states": states, "installed": installed}


def parse_supply_states(text: str) -> dict[str, str]:
    """What each sensor says; one without a reading is left out."""
    return {row.name: row.reading for row in parse_sensors(text) if row.reading not in ("", "No Reading")}


def parse_supplies(text: str) -> list[dict[str, Any]]:
    """Units that call themselves a power supply; makers fill the fields of the board or of the product."""
    found = []
    for unit in parse_fru(text):
        model = unit.get("Product Name") or unit.get("Board Product")
        if _SUPPLY.search(unit["name"]) or _SUPPLY.search(model or ""):
            found.append(
                {
                    "vendor": unit.get("Product Manufacturer") or unit.get("Board Mfg") or None,
                    "model": model or None,
                    "part": unit.get("Product Part Number") or unit.get("Board Part Number") or None,
                    "serial": unit.get("Product Serial") or unit.get("Board Serial") or None,
                }
            )
    return group_alike(found, each={"serial": "serials"})
