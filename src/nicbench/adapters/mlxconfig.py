"""``mlxconfig -d ADAPTER -e query``: settings in the firmware of NVIDIA (Mellanox) adapters."""

from __future__ import annotations

import re
from typing import Any

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
