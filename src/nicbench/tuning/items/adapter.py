"""Settings of adapters, their drivers and their firmware, and of the firmware of the machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints

from nicbench.core.errors import UnknownFactError
from nicbench.core.plan import Values
from nicbench.hosts.asking import output_of, values_of
from nicbench.system.adapters.ethtool import parse_private_flags
from nicbench.system.adapters.links import parse_rdma_links
from nicbench.system.adapters.pci import (
    forms_of,
    parse_mlxconfig,
    parse_parameters,
    parse_register,
    read_request_bytes,
    set_read_request,
)
from nicbench.system.inventory.base import NOT_UNDERSTOOD
from nicbench.system.redfish.readings import bios_settings
from nicbench.tuning.changes import Changes
from nicbench.tuning.items.base import (
    DeviceItem,
    DeviceOptions,
    ExpectedOptions,
    Item,
    Phase,
    address_of,
    answer_of,
    device_of,
    run_link_setter,
    run_setter,
)
from nicbench.tuning.setting import CannotSetError, Place, plain_value

_REGISTER = "CAP_EXP+8.w"
_MASK = 0x7000


class ReadRequestOptions(DeviceOptions):
    """``pci_read_request: 1024``. ``devices`` may be PCI addresses too, of adapters that DPDK has."""

    bytes: Literal[128, 256, 512, 1024, 2048, 4096]


class PciReadRequest(DeviceItem):
    """The largest read that an adapter asks of memory (MaxReadReq): bits 14:12 of its Device Control register.

    The register stands 8 bytes into the PCI Express capability (PCIe 5.0, 7.5.3.4), which ``setpci`` finds by its name
    (``CAP_EXP``, setpci(8)); only those bits are written (``=VALUE:MASK``).

    A function that is reset gets its old value from the firmware, so it comes before what uses the adapter.
    """

    kind = "pci_read_request"
    Options = ReadRequestOptions
    options: ReadRequestOptions
    phase = Phase.FUNCTION
    alone = "bytes"

    async def read(self, place: Place) -> Values:
        address = await address_of(place)
        size = await answer_of(
            place, lambda text: read_request_bytes(parse_register(text)), "setpci", "-s", address, _REGISTER
        )
        return {"read_request_bytes": size}

    def target_values(self, now: Values) -> Values:
        return {"read_request_bytes": self.options.bytes}

    async def write(self, place: Place, values: Values) -> None:
        bits = set_read_request(0, int(str(values["read_request_bytes"])))
        await run_setter(place, "setpci", "-s", await address_of(place), f"{_REGISTER}={bits:04x}:{_MASK:04x}")


Flag = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_ .-]*$", max_length=64)]


class PrivateFlagOptions(DeviceOptions):
    """``private_flags: {flags: {rx_cqe_compress: true}}``: the driver's own names."""

    flags: dict[Flag, bool] = Field(min_length=1, max_length=64)


class PrivateFlags(DeviceItem):
    """Switches that only one driver has: ``ethtool --set-priv-flags`` (ethtool(8)).

    Early: many of them reset the adapter.
    """

    kind = "private_flags"
    Options = PrivateFlagOptions
    options: PrivateFlagOptions
    phase = Phase.FUNCTION

    async def read(self, place: Place) -> Values:
        found = await answer_of(place, parse_private_flags, "ethtool", "--show-priv-flags", device_of(place))
        return dict(found)

    def target_values(self, now: Values) -> Values:
        if lacking := [flag for flag in self.options.flags if flag not in now]:
            raise CannotSetError(f"the driver has no {', '.join(lacking)}; it has: {', '.join(now) or 'none'}")
        return dict(self.options.flags)

    async def write(self, place: Place, values: Values) -> None:
        arguments = [word for flag, on in values.items() for word in (flag, "on" if on else "off")]
        await run_link_setter(place, "ethtool", "--set-priv-flags", device_of(place), *arguments)


class VirtualFunctionOptions(DeviceOptions):
    """``virtual_functions: 4``."""

    count: int = Field(ge=0, le=65535)


class VirtualFunctions(DeviceItem):
    """How many virtual functions an adapter has (SR-IOV): ``device/sriov_numvfs``
    (Documentation/PCI/pci-iov-howto.rst).

    From none only: addresses, VLANs, drivers and users of functions that are there could not be put back.
    """

    kind = "virtual_functions"
    Options = VirtualFunctionOptions
    options: VirtualFunctionOptions
    phase = Phase.FUNCTION
    alone = "count"

    async def read(self, place: Place) -> Values:
        folder = _folder(place)
        now = await place.host.read_file(f"{folder}/sriov_numvfs")
        most = await place.host.read_file(f"{folder}/sriov_totalvfs")
        if now is None or most is None:
            raise CannotSetError("the adapter, or its driver, has no virtual functions")
        return {"virtual_functions": int(now), "virtual_functions_maximum": int(most)}

    def target_values(self, now: Values) -> Values:
        most = now["virtual_functions_maximum"]
        if isinstance(most, int) and self.options.count > most:
            raise CannotSetError(f"{self.options.count} are more than the adapter's {most}")
        if now["virtual_functions"] not in (0, self.options.count):
            raise CannotSetError(
                f"it has {now['virtual_functions']} virtual functions already, and what is set on them "
                "could not be put back; remove them yourself"
            )
        return {"virtual_functions": self.options.count}

    async def write(self, place: Place, values: Values) -> None:
        await place.host.write_file(f"{_folder(place)}/sriov_numvfs", str(values["virtual_functions"]))


def _folder(place: Place) -> str:
    return f"/sys/class/net/{device_of(place)}/device"


Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=64)]


class DevlinkOptions(DeviceOptions):
    """``devlink_parameters: {values: {flow_steering_mode: smfs}}``."""

    values: dict[Name, bool | int | str] = Field(min_length=1, max_length=64)


class DevlinkParameters(DeviceItem):
    """Parameters of an adapter's driver that act at once: ``devlink dev param set .. cmode runtime`` (devlink-dev(8)).

    Those that wait for a reload or a reset are refused here: see ``firmware_settings``.
    """

    kind = "devlink_parameters"
    Options = DevlinkOptions
    options: DevlinkOptions
    phase = Phase.FUNCTION

    async def read(self, place: Place) -> Values:
        handle = f"pci/{await address_of(place)}"
        found = await answer_of(place, parse_parameters, "devlink", "-j", "dev", "param", "show", handle)
        if not found.get(handle):
            raise CannotSetError("its driver has no devlink parameters")
        return dict(found[handle])

    def target_values(self, now: Values) -> Values:
        for name in self.options.values:
            if name not in now:
                later = [key for key in now if key.startswith(f"{name}, ")]
                reason = f"{name} takes effect only after a reload or a reset" if later else f"the driver has no {name}"
                raise CannotSetError(reason)
        return dict(self.options.values)

    async def write(self, place: Place, values: Values) -> None:
        handle = f"pci/{await address_of(place)}"
        for name, value in values.items():
            word = str(value).lower() if isinstance(value, bool) else str(value)
            await run_setter(
                place, *("devlink", "dev", "param", "set", handle, "name", name, "value", word, "cmode", "runtime")
            )

    def is_same(self, key: str, one: object, other: object) -> bool:
        return str(one).lower() == str(other).lower()


# Settings in an adapter's firmware, by ``mlxconfig`` (NVIDIA Firmware Tools): in force, and after the next reset.

FirmwareName = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]*$", max_length=64)]
AFTER_RESET = ", after the next reset"


class FirmwareOptions(DeviceOptions):
    """``{settings: {CQE_COMPRESSION: 1}}``: mlxconfig's names; values as numbers, or as it writes them."""

    settings: dict[FirmwareName, int | str] = Field(min_length=1, max_length=64)


class FirmwareItem(DeviceItem):
    """Reads both values of each setting that is asked for."""

    options: FirmwareOptions

    async def read(self, place: Place) -> Values:
        address = await address_of(place)
        found = await answer_of(place, parse_mlxconfig, "mlxconfig", "-d", address, "-e", "query")
        values: Values = {}
        for name in self.options.settings:
            if name not in found:
                raise CannotSetError(f"the firmware has no setting {name}")
            values[name] = found[name].get("current")
            values[f"{name}{AFTER_RESET}"] = found[name].get("next_boot")
        return values

    def is_same(self, key: str, one: object, other: object) -> bool:
        return bool(forms_of(str(one)) & forms_of(str(other)))


class FirmwareExpectedOptions(FirmwareOptions):
    """``required``: an adapter that is otherwise is not measured; without it, the report says so."""

    required: bool = False


class FirmwareSettings(FirmwareItem):
    """Settings in an adapter's firmware as they are expected to be: only checked, and disclosed.

    What is in force now; what would change them is ``firmware_changes``.
    """

    kind = "firmware_settings"
    Options = FirmwareExpectedOptions
    options: FirmwareExpectedOptions
    phase = Phase.FUNCTION
    only_checks = True

    def target_values(self, now: Values) -> Values:
        return dict(self.options.settings)


class FirmwareChangeOptions(FirmwareOptions):
    """``keep`` leaves them set when the run ends, so that a reset finds them; tuning.json has the values before."""

    keep: bool = False


class FirmwareChanges(FirmwareItem):
    """Settings in an adapter's firmware, changed: in force **after the next reset** of the adapter, not in this run.

    The keys say what is pending. Without ``keep`` the undo takes it back, and acts only a reset in between.
    """

    kind = "firmware_changes"
    Options = FirmwareChangeOptions
    options: FirmwareChangeOptions
    phase = Phase.FUNCTION

    def target_values(self, now: Values) -> Values:
        return {f"{name}{AFTER_RESET}": value for name, value in self.options.settings.items()}

    async def apply(self, changes: Changes, place: Place, before: Values, asked: Values) -> None:
        """What the bench file says is to stay is the one change that has no undo."""
        if self.options.keep:
            await self.write(place, asked)
        else:
            await super().apply(changes, place, before, asked)

    async def write(self, place: Place, values: Values) -> None:
        # mlxconfig takes the words that it prints without the number in parentheses, or the number.
        words = [f"{name.removesuffix(AFTER_RESET)}={str(value).partition('(')[0]}" for name, value in values.items()]
        await run_setter(place, "mlxconfig", "-d", await address_of(place), "--yes", "set", *words)


BiosSettingsName = Annotated[str, StringConstraints(pattern=r"^[!-~]+$", max_length=128)]


class BiosSettingsOptions(ExpectedOptions):
    """``bios_settings: {expected: {SubNumaCluster: Disabled, SriovGlobalEnable: Enabled}}``."""

    expected: dict[BiosSettingsName, str | int | bool] = Field(min_length=1, max_length=100)


class BiosSettings(Item):
    """BIOS settings by Redfish: checked, never changed, for it takes a reboot and may leave a machine that does not
    boot.

    Names and values are those of the controller's attribute registry, as ``nicbench inventory`` prints them.

    Each value in force; one that is set but waits for a reboot reads ``Disabled (pending until a reboot: Enabled)``. A
    setting that the controller does not list reads ``not listed``.
    """

    kind = "bios_settings"
    Options = BiosSettingsOptions
    options: BiosSettingsOptions
    scope = "machine"
    phase = Phase.SERVICE
    only_checks = True

    async def read(self, place: Place) -> Values:
        if place.controller is None:
            raise CannotSetError("the bench file names no management controller of this host (`redfish`)")
        found = await bios_settings(place.controller)
        waiting = found["pending"] or {}
        return {name: _value_of(name, found["attributes"], waiting) for name in self.options.expected}

    def target_values(self, now: Values) -> Values:
        return dict(self.options.expected)


def _value_of(name: str, attributes: Mapping[str, Any], waiting: Mapping[str, Any]) -> str | int | float | bool | None:
    if name not in attributes:
        return "not listed"
    value: str | int | float | bool | None = attributes[name]
    return f"{value} (pending until a reboot: {waiting[name]})" if name in waiting else value


RdmaCongestionName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]*$", max_length=64)]
_APPLY: Final = "apply"
"""bnxt_re takes over what was written once this file is written."""
_WORD: Final = re.compile(r"(?:0[xX][0-9a-fA-F]+|[0-9]+)")
_FOLDERS_MADE_BY_HAND: Final = ("bnxt_re", "irdma")


class RdmaCongestionOptions(DeviceOptions):
    """``rdma_congestion: {values: {rpg_ai_rate: 5, rpg_hai_rate: 50}}``, by the driver's names."""

    values: dict[RdmaCongestionName, bool | int | str] = Field(min_length=1, max_length=64)


class RdmaCongestion(DeviceItem):
    """How RDMA over Ethernet slows down and comes back where packets are marked (DCQCN): the driver's own parameters.

    Sources: NVIDIA, "DCQCN CC Parameters" (``/sys/class/net/X/ecn`` of MLNX_OFED); drivers/infiniband/hw/mlx5/cong.c of
    the kernel (``cc_params`` in debugfs); README of Broadcom's bnxt_re, "Congestion Control" (configfs, made effective
    by the file ``apply``); Intel Ethernet 800 Series Linux Flow Control Configuration Guide for RDMA (configfs,
    ``irdma``).

    Those of mlx5, bnxt_re and irdma. Whether marks are answered at all is ``ecn`` with mlx5.
    """

    kind = "rdma_congestion"
    Options = RdmaCongestionOptions
    options: RdmaCongestionOptions
    phase = Phase.LINK

    async def read(self, place: Place) -> Values:
        return {name: plain_value(text) for name, (_, text) in (await _parameters(place)).items() if name != _APPLY}

    def target_values(self, now: Values) -> Values:
        for name in self.options.values:
            if name not in now:
                raise CannotSetError(f"the driver has no {name}; it has {', '.join(sorted(now))}")
        return {name: int(value) if isinstance(value, bool) else value for name, value in self.options.values.items()}

    async def write(self, place: Place, values: Values) -> None:
        there = await _parameters(place)
        for name, value in values.items():
            if name not in there:
                raise CannotSetError(f"the driver has no {name} any more")
            await place.host.write_file(there[name][0], str(value))
        if _APPLY in there:
            await place.host.write_file(there[_APPLY][0], "0x1")

    def is_same(self, key: str, one: object, other: object) -> bool:
        return _number(one) == _number(other)


async def _parameters(place: Place) -> dict[str, tuple[str, str]]:
    """Returns path and text of each parameter by name; CannotSetError, with the next step, if the driver has none."""
    rdma = await _rdma_device(place)
    try:
        found = await values_of(place.host, await _patterns(place, rdma))
    except UnknownFactError as error:
        raise CannotSetError(_why_none(rdma)) from error
    named: dict[str, tuple[str, str]] = {}
    for path, text in found.items():
        named.setdefault(path.rpartition("/")[2], (path, text))
    return named


async def _patterns(place: Place, rdma: str | None) -> tuple[str, ...]:
    net = f"/sys/class/net/{device_of(place)}/ecn"
    patterns = [f"{net}/roce_np/*", f"{net}/roce_rp/*"]
    with suppress(CannotSetError):  # what is no adapter on a PCI bus has none in debugfs
        patterns.append(f"/sys/kernel/debug/mlx5/{await address_of(place)}/cc_params/*")
    if rdma is not None:
        patterns += [f"/sys/kernel/config/bnxt_re/{rdma}/ports/1/cc/*", f"/sys/kernel/config/irdma/{rdma}/*"]
    return tuple(patterns)


async def _rdma_device(place: Place) -> str | None:
    """Returns the name of the RDMA device over the interface, or None."""
    try:
        links = parse_rdma_links(await output_of(place.host, "rdma", "-j", "link", "show"))
    except (UnknownFactError, *NOT_UNDERSTOOD):
        return None
    return next((str(link["ifname"]) for link in links if link.get("netdev") == device_of(place)), None)


def _why_none(rdma: str | None) -> str:
    if rdma is None:
        return "it has no RDMA device, or its driver tells nothing of congestion control"
    folders = " or ".join(f"`mkdir /sys/kernel/config/{folder}/{rdma}`" for folder in _FOLDERS_MADE_BY_HAND)
    return f"the driver of {rdma} shows no parameters of congestion control; {folders} shows those of bnxt_re or irdma"


def _number(value: object) -> object:
    text = str(value).strip()
    return int(text, 0) if _WORD.fullmatch(text) and not re.fullmatch(r"0[0-9]+", text) else text


_FILE = re.compile(r"/ecn/(roce_[nr]p/enable/([0-7]))$")
Priority = Annotated[int, Field(ge=0, le=7)]


class EcnOptions(DeviceOptions):
    """``ecn: [3]``: the priorities whose congestion is notified (notification point) and obeyed (reaction point)."""

    priorities: tuple[Priority, ...] = Field(max_length=8)


class Ecn(DeviceItem):
    """Explicit congestion notification of RDMA over Ethernet, by priority: ``/sys/class/net/X/ecn`` of mlx5_core.

    That of TCP is the sysctl ``net.ipv4.tcp_ecn``. Source: NVIDIA MLNX_OFED documentation, "ECN".

    Both points together: one without the other does nothing.
    """

    kind = "ecn"
    Options = EcnOptions
    options: EcnOptions
    phase = Phase.LINK
    alone = "priorities"

    async def read(self, place: Place) -> Values:
        base = f"/sys/class/net/{device_of(place)}/ecn"
        try:
            found = await values_of(place.host, (f"{base}/roce_np/enable/*", f"{base}/roce_rp/enable/*"))
        except UnknownFactError as error:
            raise CannotSetError("the driver has no congestion notification by priority") from error
        return {match[1]: value == "1" for path, value in found.items() if (match := _FILE.search(path))}

    def target_values(self, now: Values) -> Values:
        return {key: int(key.rpartition("/")[2]) in self.options.priorities for key in now}

    async def write(self, place: Place, values: Values) -> None:
        for key, on in values.items():
            await place.host.write_file(f"/sys/class/net/{device_of(place)}/ecn/{key}", "1" if on else "0")
