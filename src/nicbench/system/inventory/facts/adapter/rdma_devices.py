"""RDMA devices (RoCE, iWARP, InfiniBand): their firmware, model and board, as their drivers show them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypedDict

from nicbench.core.described import Facts, NotEverywhere, Subject, Write
from nicbench.core.errors import UnknownFactError
from nicbench.hosts.asking import output_of, paths_and_values
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.subjects import join_texts, part_of

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
    """From ``/sys/class/infiniband``."""

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
