"""What devlink and mlxconfig say of an adapter's firmware and its parameters. Pure."""

from __future__ import annotations

import json
import re
from typing import Any

# ``devlink -j``: firmware versions and parameters of an adapter.


_SERIAL = "serial_number"


def parse_info(text: str) -> dict[str, dict[str, Any]]:
    """``devlink -j dev info``: by handle (``pci/0000:03:00.0``), driver and versions; fixed, running and stored.

    A stored version that differs from the running one waits for a reset.
    """
    found: dict[str, dict[str, Any]] = {}
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
    found: dict[str, dict[str, Any]] = {}
    for handle, parameters in json.loads(text).get("param", {}).items():
        values: dict[str, Any] = {}
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
