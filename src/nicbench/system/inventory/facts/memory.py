"""Facts of memory: its size, its modules, its pages, and its NUMA nodes."""

from __future__ import annotations

import re
from shlex import quote
from typing import Annotated, Any, TypedDict

from nicbench.core.described import Facts, Label, NotEverywhere, OneLine, Subject, Write
from nicbench.core.errors import UnknownFactError
from nicbench.hosts.asking import text_of, values_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import CommandFact, Fact, group_alike, join_texts, parse_meminfo, part_of

_WANTED = {"MemTotal": "total_bytes", "MemAvailable": "available_bytes", "SwapTotal": "swap_bytes"}


class _Memory(TypedDict):
    """Of the whole machine."""

    total_bytes: int | None
    available_bytes: int | None
    swap_bytes: int | None


def _tell_memory(facts: Facts, write: Write) -> str | None:
    modules, memory = part_of(facts, "memory_modules"), part_of(facts, "memory")
    total = modules.get("total_bytes") or memory.get("total_bytes")
    return write("_bytes", total) if total else None


class Memory(Fact):
    """Main memory and swap.

    From ``/proc/meminfo``.
    """

    kind = "memory"
    shape = _Memory
    of_machine = True
    subjects = (Subject("Memory", 180, _tell_memory),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, int | None]:
        found = parse_meminfo(await text_of(host, "/proc/meminfo"))
        return {name: found.get(field) for field, name in _WANTED.items()}


_HANDLE = re.compile(r"Handle 0x[0-9A-Fa-f]+, DMI type (\d+),")
Structure = dict[str, str]


def parse_structures(text: str) -> list[tuple[int, Structure]]:
    """Type and fields of each structure; the lines of a list below a field are left out (dmidecode(8))."""
    found: list[tuple[int, Structure]] = []
    for line in text.splitlines():
        handle = _HANDLE.match(line)
        if handle:
            found.append((int(handle[1]), {}))
        elif found and line.startswith("\t") and not line.startswith("\t\t"):
            name, colon, value = line.strip().partition(":")
            if colon:
                found[-1][1][name] = value.strip()
    return found


_ARRAY, _MODULE = 16, 17
_UNITS = {"kB": 1 << 10, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_SIZE = re.compile(r"(\d{1,9}) (kB|KB|MB|GB|TB)")
# A speed in MHz (before dmidecode 3.2) counts transfers, as the one in MT/s.
_SPEED = re.compile(r"(\d{1,9}) (?:MT/s|MHz)")
_NOTHING_SAID = frozenset(
    {"", "Unknown", "Not Specified", "Not Provided", "NO DIMM", "None", "Undefined", "<OUT OF SPEC>"}
)

# JEP106 of JEDEC, as dmidecode prints it: some firmware gives this code in the place of the maker's name.
_MAKERS = {
    "Bank 1, Hex 0xCE": "Samsung",
    "Bank 1, Hex 0xAD": "SK Hynix",
    "Bank 1, Hex 0x2C": "Micron Technology",
    "Bank 2, Hex 0x98": "Kingston",
    "Bank 4, Hex 0x0B": "Nanya Technology",
}
_CODE = re.compile(r"(?:0x)?[0-9A-Fa-f]{4,}")


class _Module(TypedDict):
    """Modules that are alike."""

    count: int
    vendor: str | None
    model: str | None
    size_bytes: int | None
    type: str | None
    form: str | None
    ranks: str | None
    rated_mt_per_s: int | None
    running_mt_per_s: int | None
    slots: list[str]
    serials: list[str]


class _Modules(TypedDict):
    """All of them, and the slots."""

    total_bytes: int
    modules: int
    slots: int
    error_correction: str | None
    installed: list[_Module]


def _tell_modules(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "memory_modules")
    told = []
    for kind in found["installed"] if found else ():
        rated, running = kind.get("rated_mt_per_s"), kind.get("running_mt_per_s")
        told.append(
            join_texts(
                f"{kind['count']} \u00d7 {write('_bytes', kind['size_bytes'])}",
                join_texts(kind.get("vendor"), kind.get("model"), by=" "),
                join_texts(kind.get("type"), kind.get("form"), by=" "),
                f"rated {rated} MT/s" if rated else None,
                f"running at {running} MT/s" if running else None,
            )
        )
    slots = f"{found['modules']} of {found['slots']} slots" if found.get("slots") else None
    return join_texts(*told, slots, found.get("error_correction"), by="; ")


def parse_memory(text: str) -> dict[str, Any]:
    """Modules, alike ones together; slots, empty ones among them; UnknownFactError where the tables name none."""
    structures = parse_structures(text)
    slots = [fields for kind, fields in structures if kind == _MODULE]
    if not slots:
        raise UnknownFactError("the firmware's tables name no memory module")
    correction = [fields.get("Error Correction Type") for kind, fields in structures if kind == _ARRAY]
    modules = [_module(fields) for fields in slots if _bytes(fields.get("Size")) is not None]
    return {
        "total_bytes": sum(module["size_bytes"] for module in modules),
        "modules": len(modules),
        "slots": len(slots),
        "error_correction": next((kind for kind in correction if kind and kind not in _NOTHING_SAID), None),
        "installed": group_alike(modules, each={"slot": "slots", "serial": "serials"}),
    }


class MemoryModules(CommandFact):
    """Memory modules: how many of which maker and part, how large, rated and running speed, and the slots they are in.

    From ``dmidecode -t memory``, which needs root.
    """

    kind = "memory_modules"
    shape = _Modules
    of_machine = True
    subjects = (Subject("Memory modules", 190, _tell_modules),)
    command = (
        "dmidecode",
        "-t",
        "memory",
    )
    parse = staticmethod(parse_memory)


def _module(fields: Structure) -> dict[str, Any]:
    speed = fields.get("Configured Memory Speed") or fields.get("Configured Clock Speed")
    return {
        "vendor": _maker(fields),
        "model": _stated_value(fields.get("Part Number")),
        "size_bytes": _bytes(fields.get("Size")),
        "type": _stated_value(fields.get("Type")),
        "form": _stated_value(fields.get("Form Factor")),
        "ranks": _stated_value(fields.get("Rank")),
        "rated_mt_per_s": _transfers(fields.get("Speed")),
        "running_mt_per_s": _transfers(speed),
        "slot": _stated_value(fields.get("Locator")),
        "serial": _stated_value(fields.get("Serial Number")),
    }


def _maker(fields: Structure) -> str | None:
    """The name; of a firmware that gives a code for it, the name that the code stands for, or else the code."""
    vendor = _stated_value(fields.get("Manufacturer"))
    if vendor is not None and not _CODE.fullmatch(vendor):
        return vendor
    return _MAKERS.get(fields.get("Module Manufacturer ID", ""), vendor)


def _stated_value(value: str | None) -> str | None:
    return None if value is None or value in _NOTHING_SAID else value


def _bytes(value: str | None) -> int | None:
    """``32 GB``; an empty slot says "No Module Installed"."""
    found = _SIZE.fullmatch(value or "")
    return int(found[1]) * _UNITS[found[2]] or None if found else None


def _transfers(value: str | None) -> int | None:
    found = _SPEED.fullmatch(value or "")
    return int(found[1]) or None if found else None


_NODE = re.compile(r"/node(\d+)/cpulist$")
_DISTANCE = re.compile(r"/node(\d+)/distance$")
_DEVICE = re.compile(r"/net/([^/]+)/device/numa_node$")


class _Nodes(TypedDict):
    """CPUs and interfaces by node."""

    cpus_by_node: Annotated[dict[str, str], Label("NUMA", alone=True), OneLine("node {name}: CPUs {value}", "; ")]
    distances_by_node: dict[str, str]
    node_by_interface: Annotated[dict[str, Annotated[int | None, NotEverywhere]], OneLine()]


def _tell_numa(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "numa")
    nodes = part_of(found, "cpus_by_node")
    distances = part_of(found, "distances_by_node")
    if not nodes:
        return None
    told = "; ".join(f"node {node}: CPUs {cpus}" for node, cpus in nodes.items())
    return join_texts(told, f"distances {' / '.join(distances.values())}" if distances else None, by="; ")


class Numa(Fact):
    """NUMA nodes with their CPUs and distances, and the node of each test interface.

    From ``/sys/devices/system/node`` and ``/sys/class/net/DEVICE/device/numa_node``.
    """

    kind = "numa"
    shape = _Nodes
    subjects = (Subject("NUMA", 150, _tell_numa),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        paths = ["/sys/devices/system/node/node*/cpulist", "/sys/devices/system/node/node*/distance"]
        paths += [f"/sys/class/net/{quote(device)}/device/numa_node" for device in devices]
        return parse_nodes(await values_of(host, paths), devices)


def parse_nodes(values: dict[str, str], devices: tuple[str, ...]) -> dict[str, Any]:
    """CPUs by node; an interface without a node of its own (a virtual one, or -1) has null."""
    cpus = {found[1]: value for path, value in values.items() if (found := _NODE.search(path))}
    nodes = {found[1]: int(value) for path, value in values.items() if (found := _DEVICE.search(path))}
    distances = {found[1]: value for path, value in values.items() if (found := _DISTANCE.search(path))}
    return {
        "cpus_by_node": cpus,
        # From each node to every node; 10 is its own (ACPI, System Locality Information Table).
        "distances_by_node": distances if len(distances) > 1 else {},
        "node_by_interface": {name: nodes[name] if nodes.get(name, -1) >= 0 else None for name in devices},
    }


_TRANSPARENT = "/sys/kernel/mm/transparent_hugepage/enabled"


class _HugePages(TypedDict):
    """Of the default size; transparent ones as the kernel gives them."""

    pages: int | None
    free_pages: int | None
    page_bytes: Annotated[int | None, Label("Page size")]
    transparent: str | None


def _tell_huge_pages(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "huge_pages")
    if found.get("pages") is None:
        return None
    size = write("_bytes", found.get("page_bytes"))
    return join_texts(f"{found['pages']} of {size}", f"transparent: {found.get('transparent')}")


class HugePages(Fact):
    """Huge pages: how many there are, of which size, and whether the kernel makes transparent ones.

    From ``/proc/meminfo`` and ``/sys/kernel/mm/transparent_hugepage``.
    """

    kind = "huge_pages"
    shape = _HugePages
    of_machine = True
    subjects = (Subject("Huge pages", 200, _tell_huge_pages),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        found = parse_meminfo(await text_of(host, "/proc/meminfo"))
        try:
            transparent = selected_word(await text_of(host, _TRANSPARENT))
        except UnknownFactError:
            transparent = None
        return {
            "pages": found.get("HugePages_Total"),
            "free_pages": found.get("HugePages_Free"),
            "page_bytes": found.get("Hugepagesize"),
            "transparent": transparent,
        }


def selected_word(text: str) -> str | None:
    """The word in brackets of ``always [madvise] never``."""
    found = re.search(r"\[(\w+)\]", text)
    return found[1] if found else None
