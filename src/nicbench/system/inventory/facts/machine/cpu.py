"""Processors: model, sockets, cores, threads, and which CPUs this process may use."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, TypedDict

from nicbench.core.described import Facts, Label, Subject, Write
from nicbench.core.errors import UnknownFactError
from nicbench.hosts.asking import output_of, text_of, values_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.subjects import join_texts, part_of

_NUMBERS = {
    "CPU(s)": "cpus",
    "Socket(s)": "sockets",
    "Core(s) per socket": "cores_per_socket",
    "Thread(s) per core": "threads_per_core",
}
_CLOCKS = {"CPU min MHz": "minimum_hz", "CPU max MHz": "maximum_hz"}
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
_MICROCODE = re.compile(r"^(?:microcode|revision)\s*:\s*(\S+)$", re.MULTILINE)  # x86, and PowerPC's
_ISOLATION = {
    "isolated": "/sys/devices/system/cpu/isolated",
    "without_timer_tick": "/sys/devices/system/cpu/nohz_full",
    "online": "/sys/devices/system/cpu/online",
}


class _Cpu(TypedDict):
    """All processors together."""

    architecture: str | None
    vendor: str | None
    model: str | None
    family: str | None
    model_number: str | None
    stepping: str | None
    level_1_data_cache: str | None
    level_2_cache: str | None
    level_3_cache: str | None
    cpus: Annotated[int | None, Label("CPUs", alone=True)]
    sockets: int | None
    cores_per_socket: int | None
    threads_per_core: int | None
    minimum_hz: int | None
    maximum_hz: int | None
    microcode: str | None
    cpus_isolated: Annotated[str | None, Label("Isolated CPUs", alone=True)]
    cpus_without_timer_tick: Annotated[str | None, Label("CPUs without timer tick", alone=True)]
    cpus_online: Annotated[str | None, Label("Online CPUs", alone=True)]


def _tell_processors(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "cpu")
    if not found.get("model"):
        return None
    sockets, cores = found.get("sockets"), found.get("cores_per_socket")
    return join_texts(
        f"{sockets} \u00d7 {found['model']}" if sockets else found["model"],
        found.get("vendor"),
        f"{cores} core{'s' if cores != 1 else ''}{' each' if sockets != 1 else ''}" if cores else None,
        f"{found['cpus']} CPUs" if found.get("cpus") else None,
    )


def _tell_stepping(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "cpu")
    names = {"family": "family", "model_number": "model", "stepping": "stepping", "microcode": "microcode"}
    return join_texts(*(f"{word} {found[name]}" for name, word in names.items() if found.get(name)))


def _tell_isolated(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "cpu")
    kept = {"cpus_isolated": "isolated", "cpus_without_timer_tick": "without timer tick"}
    told = [f"CPUs {found[name]} {words}" for name, words in kept.items() if found.get(name) not in (None, "", "none")]
    return join_texts(*told) or ("none" if found.get("cpus_isolated") == "none" else None)


class Cpu(Fact):
    """From ``lscpu -J`` and ``/proc/cpuinfo``."""

    kind = "cpu"
    shape = _Cpu
    of_machine = True
    subjects = (
        Subject("Processors", 90, _tell_processors),
        Subject("Stepping", 100, _tell_stepping),
        Subject("CPUs set apart", 160, _tell_isolated),
    )

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        facts = parse_lscpu(await output_of(host, "lscpu", "-J"))
        try:
            facts["microcode"] = parse_microcode(await text_of(host, "/proc/cpuinfo"))
        except UnknownFactError:
            facts["microcode"] = None
        try:
            lists = await values_of(host, _ISOLATION.values())
        except UnknownFactError:
            lists = {}
        return facts | {
            f"cpus_{name}": _cpu_list(lists[path]) if path in lists else None for name, path in _ISOLATION.items()
        }


def _cpu_list(text: str) -> str:
    """An empty list is a fact, too: no CPU is. Where no CPU ever was to be, ``nohz_full`` prints ``(null)``."""
    return "none" if text in ("", "(null)") else text


def parse_lscpu(text: str) -> dict[str, Any]:
    """What of ``lscpu -J`` a report needs; a field that this version of it does not print is null."""
    fields: dict[str, str] = {}
    _flatten(json.loads(text)["lscpu"], fields)
    numbers = {name: int(fields[field]) if field in fields else None for field, name in _NUMBERS.items()}
    clocks = {name: _hertz(fields.get(field)) for field, name in _CLOCKS.items()}
    return {name: fields.get(field) for field, name in _TEXTS.items()} | numbers | clocks


def parse_microcode(text: str) -> str | None:
    """The revision that every processor bears; several are a fault of their own and all named."""
    return ", ".join(sorted(set(_MICROCODE.findall(text)))) or None


def _hertz(megahertz: str | None) -> int | None:
    """``3700.0000``; lscpu prints "-" or nothing on a virtual machine."""
    return round(float(megahertz) * 1e6) if megahertz and megahertz[0].isdigit() else None


def _flatten(entries: list[dict[str, Any]], into: dict[str, str]) -> None:
    """Newer versions nest the fields below headings."""
    for entry in entries:
        if entry.get("data") is not None:
            into[str(entry["field"]).rstrip(":")] = str(entry["data"])
        _flatten(entry.get("children", []), into)
