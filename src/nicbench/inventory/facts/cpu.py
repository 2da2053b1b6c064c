"""Processors: model, sockets, cores, threads, and which CPUs this process may use."""

from __future__ import annotations

import json
from typing import Any

from nicbench.hosts.base import Host
from nicbench.inventory._asking import output_of, values_of
from nicbench.inventory.base import Fact, UnknownFactError

_NUMBERS = {
    "CPU(s)": "cpus",
    "Socket(s)": "sockets",
    "Core(s) per socket": "cores_per_socket",
    "Thread(s) per core": "threads_per_core",
}
_TEXTS = {
    "Architecture": "architecture",
    "Vendor ID": "vendor",
    "Model name": "model",
    "CPU family": "family",
    "Model": "model_number",
    "Stepping": "stepping",
    "L1d cache": "level_1_data_cache",
    "L2 cache": "level_2_cache",
    "L3 cache": "level_3_cache",
}
_ISOLATION = {
    "isolated": "/sys/devices/system/cpu/isolated",
    "without_timer_tick": "/sys/devices/system/cpu/nohz_full",
    "online": "/sys/devices/system/cpu/online",
}


class Cpu(Fact):
    """From ``lscpu -J``."""

    kind = "cpu"

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        facts = parse_lscpu(await output_of(host, "lscpu", "-J"))
        try:
            lists = await values_of(host, _ISOLATION.values())
        except UnknownFactError:
            lists = {}
        # An empty list is a fact, too: no CPU is.
        return facts | {
            f"cpus_{name}": lists[path] or "none" if path in lists else None for name, path in _ISOLATION.items()
        }


def parse_lscpu(text: str) -> dict[str, Any]:
    """What of ``lscpu -J`` a report needs; a field that this version of it does not print is null."""
    fields: dict[str, str] = {}
    _flatten(json.loads(text)["lscpu"], fields)
    numbers = {name: int(fields[field]) if field in fields else None for field, name in _NUMBERS.items()}
    return {name: fields.get(field) for field, name in _TEXTS.items()} | numbers


def _flatten(entries: list[dict[str, Any]], into: dict[str, str]) -> None:
    """Newer versions nest the fields below headings."""
    for entry in entries:
        if entry.get("data") is not None:
            into[str(entry["field"]).rstrip(":")] = str(entry["data"])
        _flatten(entry.get("children", []), into)
