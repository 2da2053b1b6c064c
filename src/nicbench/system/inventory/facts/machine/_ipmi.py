"""Output of ipmitool. Pure: text in, rows out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sensor:
    """One row of ``ipmitool sdr type KIND``."""

    name: str
    status: str
    reading: str


def parse_sensors(text: str) -> list[Sensor]:
    """Rows of name, number, status, entity, reading: ``Fan1A | 30h | ok | 7.1 | 7080 RPM``."""
    rows = ([field.strip() for field in line.split("|")] for line in text.splitlines())
    return [Sensor(row[0], row[2], row[4]) for row in rows if len(row) == 5]


def parse_fru(text: str) -> list[dict[str, str]]:
    """Field-replaceable units of ``ipmitool fru print``: fields by name, ``name`` is that of the unit."""
    found: list[dict[str, str]] = []
    for line in text.splitlines():
        name, colon, value = (part.strip() for part in line.partition(":"))
        if name == "FRU Device Description":
            found.append({"name": value.partition(" (ID ")[0]})
        elif colon and found:
            found[-1][name] = value
    return found
