"""Facts of network adapters as devices on the bus: their PCI Express, firmware and RDMA."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, TypedDict

from nicbench.core.described import Facts, NotEverywhere, Subject, Write
from nicbench.core.errors import UnknownFactError
from nicbench.hosts.asking import output_of, paths_and_values
from nicbench.hosts.base import Host
from nicbench.system.adapters.pci import (
    PATTERNS,
    parse_info,
    parse_mlxconfig,
    parse_names,
    parse_parameters,
    parse_pci,
    parse_pci_express,
    pending,
)
from nicbench.system.inventory.base import Fact, ask_interfaces, join_texts, part_of

_NAMES = ("vendor", "model", "subsystem_vendor", "subsystem")


class _Slot(TypedDict):
    """A link of PCI Express."""

    speed_gt_per_s: float
    lanes: int | None
    bandwidth_bits_per_s: float | None


class _Adapter(TypedDict):
    """One function of an adapter, by its PCI address."""

    vendor: str | None
    model: str | None
    subsystem_vendor: str | None
    subsystem: str | None
    id: str | None
    subsystem_id: str | None
    revision: str | None
    driver: str | None
    numa_node: Annotated[int | None, NotEverywhere]
    local_cpus: str | None
    link: _Slot | None
    link_possible: _Slot | None
    slot_possible: _Slot | None
    virtual_functions: int | None
    virtual_functions_possible: int | None


class PciAdapters(Fact):
    """Every network adapter on the host's PCI bus: what it is, where it sits, its link, and what that could be.

    From ``/sys/bus/pci``, so also those that DPDK has taken; names from ``lspci -D -vmm`` where it is installed.
    """

    kind = "pci_adapters"
    shape = dict[str, _Adapter]
    of_machine = True

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        found = parse_pci(await output_of(host, "sh", "-c", f'grep -sH "" {" ".join(PATTERNS)}; true'))
        if not found:
            raise UnknownFactError("no network adapter on its PCI bus")
        try:
            names = parse_names(await output_of(host, "lspci", "-D", "-vmm"))
        except UnknownFactError:
            names = {}  # the numbers say the same
        unnamed = dict.fromkeys(_NAMES)
        return {address: {**unnamed, **names.get(address, {}), **facts} for address, facts in found.items()}


class _Function(TypedDict):
    """One function of an adapter, by its PCI address."""

    payload_bytes: int | None
    payload_possible_bytes: int | None
    read_request_bytes: int | None
    aspm: str | None
    relaxed_ordering: bool | None
    extended_tags: bool | None
    no_snoop: bool | None
    link_degraded: bool | None
    product: str | None
    part: str | None


class PciExpress(Fact):
    """How firmware and kernel set each network adapter's PCI Express function: payload, read requests, ASPM, ordering.

    From ``lspci -D -vv``, which needs root.
    """

    kind = "pci_express"
    shape = dict[str, _Function]
    of_machine = True

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        found = parse_pci_express(await output_of(host, "lspci", "-D", "-vv"))
        if not found:
            raise UnknownFactError("no network adapter with a PCI Express capability that lspci may read")
        return found


# Documentation/networking/devlink/devlink-info.rst: of all, of management, of RoCE, of the package, of its settings.
_TOLD = ("fw.version", "fw", "fw.mgmt", "fw.roce", "fw.bundle_id", "fw.psid", "fw.psid.api")


def _tell_versions(facts: Facts, handle: str) -> str | None:
    adapter = part_of(part_of(facts, "devlink"), handle)
    running, stored = part_of(adapter, "running"), part_of(adapter, "stored")
    known = {**part_of(adapter, "fixed"), **running}
    names = [name for name in _TOLD if known.get(name) and not (name == "fw" and known.get("fw.version"))]
    waits = [name for name in names if name in running and stored.get(name, running[name]) != running[name]]
    said = join_texts(
        *(f"{name} {known[name]}" + (f" (after a reset {stored[name]})" if name in waits else "") for name in names)
    )
    return join_texts(handle.partition("/")[2] or handle, said, by=": ") if said else None


def _tell_firmware(facts: Facts, write: Write) -> str | None:
    return join_texts(*(_tell_versions(facts, handle) for handle in part_of(facts, "devlink")), by="; ")


class Devlink(Fact):
    """Firmware versions and parameters of adapters as devlink knows them.

    From ``devlink -j dev info`` and ``dev param show``.
    """

    kind = "devlink"
    shape = dict[str, dict[str, Any]]
    of_machine = True
    subjects = (Subject("Adapter firmware", 233, _tell_firmware, is_everywhere=False),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        found = parse_info(await output_of(host, "devlink", "-j", "dev", "info"))
        if not found:
            raise UnknownFactError("devlink knows no adapter")
        try:
            parameters = parse_parameters(await output_of(host, "devlink", "-j", "dev", "param", "show"))
        except UnknownFactError:
            parameters = {}
        return {handle: {**facts, "parameters": parameters.get(handle)} for handle, facts in found.items()}


_VENDOR = "15b3"  # NVIDIA (Mellanox Technologies) in the PCI ID database


class _Settings(TypedDict):
    """Of one adapter: names and values are its firmware's."""

    not_default: dict[str, str]
    after_the_next_reset: dict[str, str]


class AdapterFirmware(Fact):
    """Settings in the firmware of NVIDIA (Mellanox) adapters: those that are not the default, and those that wait.

    From ``mlxconfig -d ADDRESS -e query``, for each adapter of that vendor on the host's bus.
    """

    kind = "adapter_firmware"
    shape = dict[str, _Settings]
    of_machine = True

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        pci = parse_pci(await output_of(host, "sh", "-c", f'grep -sH "" {" ".join(PATTERNS)}; true'))
        # The first function of a card answers for all of it.
        ours = tuple(
            address for address, facts in pci.items() if str(facts["id"]).startswith(_VENDOR) and address.endswith(".0")
        )
        if not ours:
            raise UnknownFactError("no adapter whose firmware has settings that a tool here reads")

        async def ask(address: str) -> Any:
            settings = parse_mlxconfig(await output_of(host, "mlxconfig", "-d", address, "-e", "query"))
            changed = {
                name: values["current"]
                for name, values in settings.items()
                if "current" in values and values["current"] != values.get("default")
            }
            return {"not_default": changed, "after_the_next_reset": pending(settings)}

        return await ask_interfaces(ours, ask)


_FOLDER = "/sys/class/infiniband/"
# Documentation/ABI/stable/sysfs-class-infiniband. `hca_type` and `board_id` depend on the driver: irdma has neither.
_ASK = (
    "echo devices; "  # so that none is an answer, too
    f'grep -sH "" {_FOLDER}*/fw_ver {_FOLDER}*/hca_type {_FOLDER}*/board_id; '
    f"grep -sH ^DRIVER= {_FOLDER}*/device/uevent; "
    # The address on the bus, under a name of its own, since a path has one value.
    f"for one in {_FOLDER}*; do address=$(sed -n s/^PCI_SLOT_NAME=//p $one/device/uevent 2>/dev/null); "
    '[ -z "$address" ] || echo "$one/bus:$address"; done; true'
)


class _RdmaDevice(TypedDict):
    """One device, by its name."""

    firmware: str | None
    model: Annotated[str | None, NotEverywhere]
    board: Annotated[str | None, NotEverywhere]
    driver: Annotated[str | None, NotEverywhere]
    bus: Annotated[str | None, NotEverywhere]


def _tell_device(name: str, device: Mapping[str, Any]) -> str | None:
    said = join_texts(
        device.get("model"),
        f"board {device['board']}" if device.get("board") else None,
        f"driver {device['driver']}" if device.get("driver") else None,
        f"firmware {device['firmware']}" if device.get("firmware") else None,
        device.get("bus"),
    )
    return join_texts(name, said, by=": ")


def _tell_devices(facts: Facts, write: Write) -> str | None:
    devices = part_of(facts, "rdma_devices")
    return join_texts(*(_tell_device(name, part_of(devices, name)) for name in devices), by="; ")


class RdmaDevices(Fact):
    """RDMA devices (RoCE, iWARP, InfiniBand): their firmware, model and board, as their drivers show them.

    From ``/sys/class/infiniband``.
    """

    kind = "rdma_devices"
    shape = dict[str, _RdmaDevice]
    of_machine = True
    subjects = (Subject("RDMA devices", 232, _tell_devices, is_everywhere=False),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        found = parse_rdma_devices(paths_and_values(await output_of(host, "sh", "-c", _ASK)))
        if not found:
            raise UnknownFactError("the kernel has no RDMA device")
        return found


def parse_rdma_devices(files: Mapping[str, str]) -> dict[str, dict[str, str | None]]:
    """Devices by name, from paths below ``/sys/class/infiniband/NAME`` and the first line of each file."""
    found: dict[str, dict[str, str | None]] = {}
    for path, value in files.items():
        name, _, file = path.removeprefix(_FOLDER).partition("/")
        key = {
            "fw_ver": "firmware",
            "hca_type": "model",
            "board_id": "board",
            "device/uevent": "driver",
            "bus": "bus",
        }.get(file)
        if not path.startswith(_FOLDER) or not name or key is None:
            continue
        device = found.setdefault(name, dict.fromkeys(("firmware", "model", "board", "driver", "bus")))
        device[key] = value.strip().removeprefix("DRIVER=") or None
    return found


# MLNX_OFED_LINUX-5.8-1.1.2.1: and, since its drivers are part of DOCA, OFED-internal-24.04-0.6.6:
_VERSION = re.compile(r"^\S*OFED\S*-\d[\w.-]{0,60}(?=:?\s*$)", re.MULTILINE)


def _tell_ofed(facts: Facts, write: Write) -> str | None:
    return str(facts["ofed"]) if facts.get("ofed") else None


class Ofed(Fact):
    """The vendor's RDMA stack that takes the place of the kernel's, where one is installed.

    From ``ofed_info -s``.
    """

    kind = "ofed"
    shape = str
    of_machine = True
    subjects = (Subject("OFED", 231, _tell_ofed, is_everywhere=False),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> str:
        version = parse_ofed(await output_of(host, "ofed_info", "-s"))
        if version is None:
            raise UnknownFactError("ofed_info names no version")
        return version


def parse_ofed(text: str) -> str | None:
    """Name and version of the stack, without the colon after it."""
    found = _VERSION.search(text)
    return found[0] if found else None
