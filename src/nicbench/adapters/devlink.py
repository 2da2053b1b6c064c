"""``devlink -j``: firmware versions and parameters of an adapter."""

from __future__ import annotations

import json
from typing import Any

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
