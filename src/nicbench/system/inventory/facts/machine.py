"""Facts of the machine as a whole: its firmware, whether it is virtual or a container, fans and power supplies."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Final, TypedDict

from nicbench.core.described import Facts, NotEverywhere, Subject, Write
from nicbench.core.errors import UnknownFactError
from nicbench.core.frozen import frozen
from nicbench.core.lists import without_none
from nicbench.hosts.asking import output_of, values_of
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.container import ContainerHost
from nicbench.system.hypervisor import is_virtual_machine
from nicbench.system.inventory.base import Fact, FilesFact, group_alike, join_texts, part_of
from nicbench.system.redfish.answers import group_of
from nicbench.system.redfish.readings import bios_settings

_FOLDER = "/sys/class/dmi/id/"
_FIELDS = {
    "bios_vendor": "bios_vendor",
    "bios_version": "bios_version",
    "bios_date": "bios_date",
    "bios_release": "bios_release",
    "sys_vendor": "vendor",
    "product_name": "product",
    "product_version": "product_version",
    "product_serial": "serial",
    "product_uuid": "uuid",
    "board_vendor": "board_vendor",
    "board_name": "board",
    "board_version": "board_version",
    "board_serial": "board_serial",
    "chassis_vendor": "chassis_vendor",
    "chassis_type": "chassis",
    "chassis_asset_tag": "asset_tag",
}
# Table 17 of the SMBIOS specification (DSP0134, 7.4.1), those that a machine in a laboratory can be.
_CHASSIS = {
    "1": "other",
    "3": "desktop",
    "4": "low profile desktop",
    "6": "mini tower",
    "7": "tower",
    "8": "portable",
    "9": "laptop",
    "10": "notebook",
    "17": "main server chassis",
    "23": "rack mount chassis",
    "25": "multi-system",
    "28": "blade",
    "29": "blade enclosure",
    "33": "IoT gateway",
    "34": "embedded PC",
    "35": "mini PC",
}
_NOTHING_SAID = frozenset(
    {"", "none", "default string", "not specified", "to be filled by o.e.m.", "system serial number", "0123456789"}
)


class _Identity(TypedDict):
    """Makers and models, as the firmware's tables have them."""

    vendor: str | None
    product: str | None
    board_vendor: str | None
    board: str | None
    chassis: str | None
    bios_vendor: str | None
    bios_version: str | None
    bios_date: str | None
    bios_release: str | None
    product_version: str | None
    serial: str | None
    uuid: str | None
    board_version: str | None
    board_serial: str | None
    chassis_vendor: str | None
    asset_tag: str | None


def _tell_machine(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "firmware")
    board = join_texts(found.get("board_vendor"), found.get("board"), by=" ")
    return join_texts(
        join_texts(found.get("vendor"), found.get("product"), by=" "),
        f"board {board}" if board else None,
        found.get("chassis"),
    )


def _tell_bios(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "firmware")
    return join_texts(join_texts(found.get("bios_vendor"), found.get("bios_version"), by=" "), found.get("bios_date"))


def parse_identity(values: dict[str, str]) -> dict[str, str | None]:
    """What the tables say; a maker's filler ("To Be Filled By O.E.M.") is null, as what only root may read is."""
    found = {}
    for file, name in _FIELDS.items():
        value = values.get(_FOLDER + file)
        found[name] = None if value is None or value.lower() in _NOTHING_SAID else value
    if found["chassis"] is not None:
        found["chassis"] = _CHASSIS.get(found["chassis"], f"type {found['chassis']}")
    return found


class Firmware(FilesFact):
    """What the firmware's tables (SMBIOS) say of the machine: BIOS, system, board, chassis.

    From ``/sys/class/dmi/id``.
    """

    kind = "firmware"
    shape = Annotated[_Identity, NotEverywhere]
    of_machine = True
    subjects = (
        Subject("Machine", 10, _tell_machine),
        Subject("BIOS", 20, _tell_bios),
    )
    paths = tuple(_FOLDER + name for name in _FIELDS)
    parse = staticmethod(parse_identity)


class _Settings(TypedDict):
    """Names and values are the BIOS maker's; ``pending`` are set at the next start."""

    attributes: dict[str, Any]
    pending: dict[str, Any]


def _tell_bios_settings(facts: Facts, write: Write) -> str | None:
    """Those that change network results, by what they do; the others stand below the table."""
    found = part_of(facts, "bios_settings")
    groups: dict[str, list[str]] = {}
    others = 0
    for name, value in part_of(found, "attributes").items():
        group = group_of(str(name))
        if group is None:
            others += 1
        else:
            groups.setdefault(group, []).append(f"{name} {write('', value)}")
    waiting = [f"{name} {write('', value)}" for name, value in part_of(found, "pending").items()]
    return join_texts(
        *(f"{group}: {', '.join(told)}" for group, told in groups.items()),
        f"pending until a reboot: {', '.join(waiting)}" if waiting else None,
        f"{others} others, below" if others else None,
        by="; ",
    )


class BiosSettings(Fact):
    """BIOS settings, as the management controller tells them: what no file of the machine says.

    From Redfish's ComputerSystem and Bios resources (DSP0268).
    """

    kind = "bios_settings"
    shape = _Settings
    of_machine = True
    subjects = (Subject("BIOS settings", 30, _tell_bios_settings),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        if self.controller is None:
            raise UnknownFactError("the bench file names no management controller of it (`redfish`)")
        return await bios_settings(self.controller)


_X86 = re.compile(r"x86_64|i[3-6]86")


class _Hypervisor(TypedDict):
    """Whether there is one beneath, and whose it is."""

    virtual_machine: bool | None
    vendor: str | None


def _tell_hypervisor(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "hypervisor")
    if found.get("virtual_machine") is None:
        return None
    return join_texts("virtual machine", found.get("vendor")) if found["virtual_machine"] else "none: this is hardware"


class Hypervisor(Fact):
    """Whether this is a virtual machine, and whose.

    From ``lscpu``; where the processor has no flag for it, as on arm64, from ``systemd-detect-virt``.
    """

    kind = "hypervisor"
    shape = _Hypervisor
    of_machine = True
    subjects = (Subject("Hypervisor", 80, _tell_hypervisor),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        found = parse_virtualization(await output_of(host, "lscpu", "-J"))
        if found["virtual_machine"] is None:
            found["virtual_machine"] = await is_virtual_machine(host)
        return found


def parse_virtualization(text: str) -> dict[str, Any]:
    """An x86 processor's own flag tells of a hypervisor even where nobody names it; others have none."""
    fields = {}

    def walk(entries: list[dict[str, Any]]) -> None:
        for entry in entries:
            fields[str(entry["field"]).rstrip(":")] = str(entry.get("data") or "")
            walk(entry.get("children", []))

    walk(json.loads(text)["lscpu"])
    vendor = fields.get("Hypervisor vendor") or None
    virtual = True if vendor is not None else None
    if "Flags" in fields and _X86.fullmatch(fields.get("Architecture", "")):
        virtual = "hypervisor" in fields["Flags"].split()
    return {"virtual_machine": virtual, "vendor": vendor}


_FORMATS = {
    "podman": "{{.OCIRuntime}}|{{.Image}}|{{.ImageDigest}}",
    "docker": "{{.HostConfig.Runtime}}|{{.Image}}|",
}


# Of the container's first process, seen from the machine: the files of cgroup 2 (cpu.max) lie in one tree, those of
# cgroup 1 in one for each controller (Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/).
_BOUNDS: Final = """
grep -E '^(Cpus|Mems)_allowed_list:' "/proc/$1/status"
while IFS=: read -r _ controllers path; do
    case ,$controllers, in
    ,,) for root in /sys/fs/cgroup /sys/fs/cgroup/unified; do
            grep -sH '' "$root$path/cpu.max" "$root$path/memory.max"
        done ;;
    *,cpu,*) for root in /sys/fs/cgroup/cpu "/sys/fs/cgroup/$controllers"; do
            grep -sH '' "$root$path/cpu.cfs_quota_us" "$root$path/cpu.cfs_period_us" && break
        done ;;
    *,memory,*) grep -sH '' "/sys/fs/cgroup/memory$path/memory.limit_in_bytes" ;;
    esac
done <"/proc/$1/cgroup"
true
"""
_NO_BOUND_BYTES = 2**62
"""Cgroup 1 shows as no bound of memory the largest whole number of pages."""


class _Bounds(TypedDict):
    """The bounds in force in the kernel; None for unlimited or unknown."""

    cpus: str | None
    cpu_time_cpus: float | None
    memory_bytes: int | None
    memory_nodes: str | None


class _Container(TypedDict):
    """As its engine says of it."""

    engine: str
    version: str | None
    runtime: str | None
    image: str
    image_id: str | None
    image_digest: str | None
    root: bool
    network: str
    cpus: str | None
    cpu_time_cpus: float | None
    memory_bytes: int | None
    memory_node: int | None
    in_force: _Bounds
    privileged: bool
    arguments: list[str]
    engine_arguments: list[str]
    adapted: list[str]


def _tell_container(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "container")
    if not found:
        return None
    bounds = part_of(found, "in_force")
    cpus, time, memory = bounds.get("cpus"), bounds.get("cpu_time_cpus"), bounds.get("memory_bytes")
    nodes = bounds.get("memory_nodes")
    return join_texts(
        join_texts(found.get("engine"), found.get("version"), found.get("runtime"), by=" "),
        join_texts(
            f"CPUs {cpus}" if cpus else None,
            f"CPU time of {time:g} CPUs" if time else None,
            f"memory {write('memory_bytes', memory)}" if memory else "no bound of memory" if bounds else None,
            f"of node {nodes}" if nodes and found.get("memory_node") is not None else None,
        ),
        by="; ",
    )


class Container(Fact):
    """The container that a host is: engine, runtime, image, what it may use. False for a host of another kind.

    As the engine's ``version`` and ``inspect`` say, with the bounds that were asked for and those in force.
    """

    kind = "container"
    shape = _Container | bool
    inside = True
    subjects = (Subject("Container", 85, _tell_container, is_everywhere=False),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any] | bool:
        if not isinstance(host, ContainerHost):
            return False
        asked = host.options
        runtime, image, digest = parts_of(await host.inspect(_FORMATS[asked.engine]))
        return {
            "engine": asked.engine,
            "version": await host.engine_version(),
            "runtime": runtime,
            "image": asked.image,
            "image_id": image,
            "image_digest": digest,
            "root": asked.root,
            "network": host.network_words,
            "cpus": asked.cpus,
            "cpu_time_cpus": asked.cpu_time,
            "memory_bytes": asked.memory,
            "memory_node": asked.memory_node,
            "in_force": parse_bounds(await host.look_from_machine(_BOUNDS)),
            "privileged": asked.privileged,
            "arguments": list(asked.arguments),
            "engine_arguments": list(asked.engine_arguments),
            "adapted": [adaptation.why for adaptation in host.adaptations],
        }


def parse_bounds(text: str) -> dict[str, Any]:
    """Bounds of a container from its first process's status and the files of its cgroup, each ``PATH:VALUE``."""
    lines = (line.partition(":") for line in text.splitlines())
    values = {key.rpartition("/")[2]: value.strip() for key, _, value in lines}
    quota, period = (*values.get("cpu.max", "max 100000").split(), "")[:2]
    if "cpu.cfs_quota_us" in values:
        quota, period = values["cpu.cfs_quota_us"], values.get("cpu.cfs_period_us", "")
    memory = values.get("memory.max") or values.get("memory.limit_in_bytes") or ""
    return {
        "cpus": values.get("Cpus_allowed_list"),
        "cpu_time_cpus": int(quota) / int(period) if quota.isdigit() and period.isdigit() else None,
        "memory_bytes": int(memory) if memory.isdigit() and int(memory) < _NO_BOUND_BYTES else None,
        "memory_nodes": values.get("Mems_allowed_list"),
    }


def parts_of(text: str) -> tuple[str | None, str | None, str | None]:
    """Runtime, id and digest of the image, None where the engine leaves one empty."""
    parts = [part.strip() or None for part in text.strip().split("|")]
    runtime, image, digest = (*parts, None, None, None)[:3]
    return runtime, image, digest


# Output of ipmitool. Pure: text in, rows out.


@frozen
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
    found = []
    for line in text.splitlines():
        name, colon, value = (part.strip() for part in line.partition(":"))
        if name == "FRU Device Description":
            found.append({"name": value.partition(" (ID ")[0]})
        elif colon and found:
            found[-1][name] = value
    return found


_SPEED = re.compile(r"(\d{1,6}) RPM")


class _Fans(TypedDict):
    """How fast each fan turns, by its name."""

    count: int
    speed_per_minute: dict[str, int | None]


def _tell_fans(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "fans")
    speeds = without_none(part_of(found, "speed_per_minute").values())
    turning = f"{min(speeds)} to {max(speeds)} per minute" if speeds else None
    return join_texts(str(found["count"]), turning) if found.get("count") else None


class Fans(Fact):
    """Fans: how many, and how fast they turn. A slow fan is why a card is hot; fans at full speed shake drives.

    From ``ipmitool sdr type Fan``; without a management controller, from ``/sys/class/hwmon``.
    """

    kind = "fans"
    shape = _Fans
    of_machine = True
    subjects = (Subject("Fans", 240, _tell_fans),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        try:
            return parse_fans(await output_of(host, "ipmitool", "sdr", "type", "Fan"))
        except UnknownFactError:
            return parse_hwmon_fans(await values_of(host, ["/sys/class/hwmon/hwmon*/fan*_input"]))


def parse_fans(text: str) -> dict[str, Any]:
    """Rows with a speed; a fan that gives no reading is counted and its speed is null."""
    found = {
        row.name: int(speed[1]) if (speed := _SPEED.fullmatch(row.reading)) else None
        for row in parse_sensors(text)
        if _SPEED.fullmatch(row.reading) or row.reading == "No Reading"
    }
    return {"count": len(found), "speed_per_minute": found}


def parse_hwmon_fans(values: dict[str, str]) -> dict[str, Any]:
    """Each ``fanN_input`` is in revolutions per minute (Documentation/hwmon/sysfs-interface.rst)."""
    found = {
        path.split("/")[-2] + " " + path.split("/")[-1].removesuffix("_input"): int(v) for path, v in values.items()
    }
    return {"count": len(found), "speed_per_minute": found}


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
    """Power supplies: maker, model, state. A machine on half its supplies may hold its clock down.

    From ``ipmitool sdr type "Power Supply"`` and ``ipmitool fru print``.
    """

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
