"""Rates that are a sum of ports, divided by the number of the ports: for whom wants them beside rates per port."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from nicbench.beside.entry import Entry
from nicbench.beside.objections import listed
from nicbench.model.rate import Bounded
from nicbench.model.result import Result, Value

_SUM: Final = re.compile(r"sum of (\d+) ports")
_RATES: Final = ("_frames_per_s", "_bits_per_s")
PER_PORT: Final = "per port"


def per_port(entries: Iterable[Entry]) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
    """The entries, those whose scope is a sum of ports divided; and a sentence on what was done to whom."""
    found, changed = [], []
    for entry in entries:
        results = tuple(_divided(result) for result in entry.results)
        if results != entry.results:
            changed.append(entry.name)
        found.append(replace(entry, results=results))
    return tuple(found), _told(changed)


def _told(names: Sequence[str]) -> tuple[str, ...]:
    if not names:
        return ()
    said = (
        f"rates of {listed(names)} are printed as the sum of ports and were divided by their number (--per-port): all "
        "ports are taken to have carried as much"
    )
    return (said,)


def _divided(result: Result) -> Result:
    match = _SUM.fullmatch(result.scope)
    if match is None:
        return result
    ports = int(match[1])
    values = {name: _share(value, ports) if name.endswith(_RATES) else value for name, value in result.values.items()}
    imported = result.imported
    if imported is not None:  # what is printed is not what is shown
        printed = {name: one for name, one in imported.printed.items() if not name.endswith(_RATES)}
        imported = imported.model_copy(update={"printed": printed})
    return result.model_copy(update={"values": values, "scope": PER_PORT, "imported": imported})


def _share(value: Value, ports: int) -> Value:
    if isinstance(value, Bounded):
        numbers = {
            name: None if (number := getattr(value, name)) is None else number / ports
            for name in ("value", "lower", "upper")
        }
        return value.model_copy(update=numbers)
    return value / ports if isinstance(value, int | float) and not isinstance(value, bool) else value
