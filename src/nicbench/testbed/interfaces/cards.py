"""Cards: interfaces behind DPDK's devices, cards given to DPDK or a guest, and virtual functions (SR-IOV)."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from nicbench.core.errors import HostError, NotReadyError
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.system.adapters.links import parse_links, virtual_functions
from nicbench.testbed.interfaces.base import (
    Making,
    Port,
    VirtualFunctionOptions,
    actual_values,
    expected_values,
    origin_of,
    place_of,
    set_command,
)
from nicbench.testbed.interfaces.host_interfaces import Interfaces, check_free, check_interface, interfaces_of
from nicbench.testbed.interfaces.namespaces import bring_up, wait_for_carrier
from nicbench.tuning.changes import Changes
from nicbench.tuning.drivers import bound_driver, driver_override, folder_of, interface_of, set_driver
from nicbench.tuning.items.adapter import VirtualFunctionOptions as CountOptions
from nicbench.tuning.items.adapter import VirtualFunctions
from nicbench.tuning.setting import CannotSetError, Place
from nicbench.tuning.undo.adapters import RestoreDriver
from nicbench.tuning.undo.files import RestoreSetting

# The kernel interfaces and cards behind DPDK's devices, and cards given to DPDK or to a virtual machine by vfio-pci.
#
# They are found in the arguments of a virtual device or by a PCI address, and must be free like any other. A card is
# given (``bind`` of a port) where an IOMMU isolates it, together with its whole group (Documentation/driver-
# api/vfio.rst of the kernel); the undo returns it.


# DPDK guides/nics: af_packet, af_xdp, pcap_ring and tap. `iface` of tap and of virtio_user is the name of an interface
# that the driver makes.
_KEYS = frozenset({"iface", "rx_iface", "rx_iface_in", "tx_iface", "remote"})
_MAKES_ITS_IFACE = ("net_tap", "net_tun", "eth_tap", "net_virtio_user", "virtio_user")
# Nested devices (net_failsafe: `dev(...)`) and lists (`[a,b]`) have arguments of the same form.
_SEPARATORS = re.compile(r"[,;()\[\]]")
_PCI_ADDRESS = re.compile(r"(?<![0-9a-fA-F:])(?:[0-9a-fA-F]{4}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7](?![0-9a-fA-F])")
_RESET_S: Final = 2.0
_RUNS_COMMANDS = re.compile(r"(?:^|,)\s*(?:exec|fd)\s*\(")


def interfaces_of_vdev(vdev: str) -> tuple[str, ...]:
    """The interfaces that this device needs, in the order of its arguments."""
    driver = ""
    found = []
    for part in _SEPARATORS.split(vdev):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            driver = key or driver
        elif key in _KEYS and value and not (key == "iface" and driver.startswith(_MAKES_ITS_IFACE)):
            found.append(value)
    return tuple(dict.fromkeys(found))


def other_values_of_vdev(vdev: str) -> tuple[str, ...]:
    """All other values of its arguments: each may name an interface for a driver that is not known here."""
    values = (part.partition("=")[2].strip() for part in _SEPARATORS.split(vdev))
    known = interfaces_of_vdev(vdev)
    return tuple(dict.fromkeys(value for value in values if value and value not in known))


def addresses_of_vdev(vdev: str) -> tuple[str, ...]:
    """The PCI addresses of devices that it contains (net_bonding, net_failsafe), as /sys writes them."""
    return tuple(dict.fromkeys(pci_address(found) for found in _PCI_ADDRESS.findall(vdev)))


def pci_address(text: str) -> str:
    """A PCI address as /sys writes it: lower case, with its domain."""
    return (text if text.count(":") == 2 else f"0000:{text}").lower()


def runs_commands(vdev: str) -> bool:
    """Whether it gets its devices from a command or a file (``exec(...)``, ``fd(...)`` of net_failsafe)."""
    return _RUNS_COMMANDS.search(vdev) is not None


async def check_vdev(host: Host, vdev: str, place: str) -> None:
    """Raises NotReadyError where a virtual device uses an interface that must not be used."""
    if runs_commands(vdev):
        raise NotReadyError(
            "this virtual device gets its devices from a command or a file, which cannot be checked",
            place=place,
            next_step="name its devices with `dev(...)`",
        )
    needed = interfaces_of_vdev(vdev)
    others = other_values_of_vdev(vdev)
    if needed or others:
        interfaces = await interfaces_of(host)
        for device in needed:
            check_interface(interfaces, device, place, for_tester=True)
        for value in others:
            name = interfaces.name_of(value)
            if name is not None:
                check_free(interfaces, name, place, for_tester=True)
    for address in addresses_of_vdev(vdev):
        await check_address(host, address, place)


async def check_address(host: Host, address: str, place: str) -> None:
    """Raises NotReadyError where the kernel uses the card at this PCI address; a card bound to DPDK has no interface.

    DPDK takes a card whatever namespace its interface is in, so the hosts outside a namespace are checked as well.
    """
    seen_from: Host | None = host
    while seen_from is not None:
        devices = await _interfaces_at(seen_from, address)
        if devices:
            interfaces = await interfaces_of(seen_from)
            for device in devices:
                check_free(interfaces, device, f"{place}, {address}", for_tester=True)
        seen_from = seen_from.inner if isinstance(seen_from, NetnsHost) else None


async def _interfaces_at(host: Host, address: str) -> list[str]:
    """The interfaces of a card: the entries of ``net/`` of the PCI device, or of its virtio device."""
    folder = f"/sys/bus/pci/devices/{pci_address(address)}/"
    listed = await host.run(("find", folder, "-maxdepth", "3", "-path", "*/net/*"), check=False)
    paths = (PurePosixPath(line) for line in listed.stdout.splitlines())
    return sorted({path.name for path in paths if path.parent.name == "net"})


VFIO: Final = "vfio-pci"
_IFF_UP: Final = 1
_HARMLESS_DRIVERS: Final = ("pcieport", "pci-stub", "")
"""Other devices of a group may have these drivers; "" stands for no driver."""


async def bind_to_vfio(changes: Changes, machine: Host, address: str, place: str) -> None:
    """Binds the device to vfio-pci; the undo restores its driver. NotReadyError where no IOMMU isolates it."""
    await require_isolated(machine, address, place)
    now = await bound_driver(machine, address)
    if now == VFIO:
        return
    device, up = await _interface_state(machine, address) if now else (None, False)
    await machine.run(("modprobe", VFIO), check=False)
    if (await machine.run(("test", "-d", f"/sys/bus/pci/drivers/{VFIO}"), check=False)).status != 0:
        raise NotReadyError(
            "the kernel has no driver vfio-pci", place=place, next_step="modprobe vfio-pci; Debian's kernels have it"
        )
    before = await driver_override(machine, address)
    undo = RestoreDriver(address=address, driver=now, override=before, asked=VFIO, device=device, up=up)
    try:
        await changes.make(machine, undo, lambda: set_driver(machine, address, VFIO, override=VFIO))
    except HostError as error:
        raise NotReadyError(
            f"vfio-pci does not take {address}: {error.message}", place=place, next_step="see `dmesg` on that host"
        ) from error


async def _interface_state(machine: Host, address: str) -> tuple[str | None, bool]:
    """The name of the card's interface, None without one, and whether it is up."""
    found = (await machine.run(("ls", f"{folder_of(address)}/net"), check=False)).stdout.split()
    if not found:
        return None, False
    flags = await machine.read_file(f"/sys/class/net/{found[0]}/flags") or "0x0"
    return found[0], bool(int(flags, 16) & _IFF_UP)


async def require_isolated(machine: Host, address: str, place: str) -> None:
    """Raises NotReadyError where no IOMMU isolates the device, or another driver's device is in its group."""
    folder = folder_of(address)
    if (await machine.run(("test", "-e", folder), check=False)).status != 0:
        raise NotReadyError(
            f"there is no PCI device {address}", place=place, next_step="`lspci -D` lists those of that host"
        )
    listed = await machine.run(("ls", f"{folder}/iommu_group/devices"), check=False)
    if listed.status != 0:
        raise NotReadyError(
            f"no IOMMU isolates {address}, so vfio-pci does not take it",
            place=place,
            next_step="enable VT-d or AMD-Vi in the BIOS and boot with `intel_iommu=on iommu=pt`; on arm64 enable the "
            "SMMU (tuning: `boot_parameters` checks it)",
        )
    for other in listed.stdout.split():
        driver = await bound_driver(machine, other)
        if other != address and driver not in (*_HARMLESS_DRIVERS, VFIO):
            raise NotReadyError(
                f"{address} shares its IOMMU group with {other}, which {driver} uses",
                place=place,
                next_step="use a slot or a function in a group of its own (ACS), or unbind the other device",
            )


async def bind_cards(making: Making) -> None:
    """Binds the cards of all such ports; a port named by its interface then has a PCI address instead.

    NotReadyError where a card is in use.
    """
    for name, port in making.ports.items():
        if port.bind is None:
            continue
        place, host = place_of(port, name), origin_of(making, port)
        if port.device is not None:
            port = await _name_by_address(host, port, port.device, place)
        if port.address is not None:
            await check_address(host, port.address, place)
            await bind_to_vfio(making.changes, host.machine, port.address, place)
            making.tell("bound_cards", name, f"{port.address} to {port.bind}")
        making.ports[name] = port


async def _name_by_address(host: Host, port: Port, device: str, place: str) -> Port:
    """The port with the PCI address of its interface's card in place of the interface."""
    link = check_free(await interfaces_of(host), device, place, for_tester=True)
    done = await host.run(("readlink", f"/sys/class/net/{device}/device"), check=False)
    address = done.stdout.strip().rpartition("/")[2]
    if done.status != 0 or not address.count(":") == 2:
        raise NotReadyError(
            f"the interface {device} does not belong to a PCI card",
            place=place,
            next_step="remove `bind`, or name the interface of a card; `ls -l /sys/class/net` shows their devices",
        )
    return port.replace(device=None, address=address, mac=port.mac or str(link["address"]))


# Makes the virtual functions (SR-IOV) of ports with ``virtual_function: {of: n1, number: 0}``.
#
# Only on an adapter that has none yet, as the tuning item does: so the undo removes them, and with them all their
# settings (Documentation/PCI/pci-iov-howto.rst of the kernel; ip-link(8)). Drivers are bound after the settings.


Wanted = Mapping[str, tuple[VirtualFunctionOptions, str]]
"""The functions of one adapter by the port's name, each with the place of an error."""


async def make_virtual_functions(making: Making) -> None:
    """Makes the function of every such port. NotReadyError, with what to do, where that is impossible."""
    adapters: dict[tuple[str, str], tuple[Host, dict[str, tuple[VirtualFunctionOptions, str]]]] = {}
    for name, port in making.ports.items():
        if port.virtual_function is not None:
            host = origin_of(making, port)
            key = (repr(host.spec()), port.virtual_function.of)
            adapters.setdefault(key, (host, {}))[1][name] = (port.virtual_function, place_of(port, name))
    for (_, physical), (host, wanted) in adapters.items():
        await _create(making, host, physical, wanted)
        for name, (options, place) in wanted.items():
            making.ports[name] = await _hand_over(making, host, name, options, place)


async def _create(making: Making, host: Host, physical: str, wanted: Wanted) -> None:
    """Makes as many functions as the highest number needs and sets them; no driver is bound yet."""
    place = next(iter(wanted.values()))[1]
    interfaces = await interfaces_of(host)
    link = check_free(interfaces, physical, place, for_tester=False)
    _require_unused(interfaces, physical, place)
    item = VirtualFunctions(CountOptions(count=1 + max(options.number for options, _ in wanted.values())))
    at = Place(host, physical)
    try:
        now = await item.read_checked(at)
        asks = item.target_values(now)
        if now["virtual_functions"] != 0:
            raise CannotSetError(
                f"it has {now['virtual_functions']} virtual functions already, which nicbench did not make"
            )
    except CannotSetError as error:
        raise NotReadyError(
            f"{physical} cannot have virtual functions: {error}",
            place=place,
            next_step=f"see sriov_numvfs and sriov_totalvfs in /sys/class/net/{physical}/device: SR-IOV is enabled "
            "in the BIOS and the adapter's firmware, and `echo 0 >` sriov_numvfs removes functions that exist",
        ) from error
    if "UP" not in link["flags"]:  # the functions have no link while the physical function is down
        await bring_up(host, physical, making.changes)
    device = f"/sys/class/net/{physical}/device"
    probing = f"{device}/sriov_drivers_autoprobe"
    await making.changes.set_file(host, probing, "0")
    undo = RestoreSetting(
        item=item.kind,
        options=item.options.model_dump(mode="json"),
        device=physical,
        before={key: now[key] for key in asks},
        asked=asks,
    )

    async def apply() -> None:
        await item.write(at, asks)

    try:
        await making.changes.make(host, undo, apply)
    except HostError as error:
        raise NotReadyError(
            f"the adapter makes no virtual functions: {error.message}",
            place=place,
            next_step="see `dmesg` on that host; often SR-IOV is off in the BIOS, or the kernel lacks `pci=realloc`",
        ) from error
    if wrong := item.find_differing(asks, await item.read_checked(at)):
        raise NotReadyError(f"{physical} has other functions: {wrong}", place=place, next_step="see `dmesg`")
    for options, where in wanted.values():
        await _set_function(host, options, where)
    await wait_for_carrier(host, (physical,))  # making functions resets the adapter
    await making.changes.set_file(host, probing, "1")


def _require_unused(interfaces: Interfaces, physical: str, place: str) -> None:
    """Raises NotReadyError where the adapter has addresses: making functions resets it and stops all its traffic."""
    addresses = interfaces.addresses.get(physical, ())
    if addresses:
        raise NotReadyError(
            f"{physical} is in use: it has the address {addresses[0]}, and making virtual functions resets it",
            place=place,
            next_step=f"use another, or remove its addresses: ip address flush dev {physical}",
        )


async def _set_function(host: Host, options: VirtualFunctionOptions, place: str) -> None:
    """Sets one function by the driver of the physical function, and reads it back."""
    done = await host.run(set_command(options), check=False)
    shown = await host.run(("ip", "-d", "-j", "link", "show", "dev", options.of))
    functions = [each for link in parse_links(shown.stdout) for each in virtual_functions(link)]
    actual = next((actual_values(each) for each in functions if each["number"] == options.number), {})
    expected = expected_values(options)
    wrong = {name: actual.get(name) for name, value in expected.items() if actual.get(name) != value}
    if done.status != 0 or wrong:
        reason = done.stderr.strip() or f"asked for {expected}, it reads {wrong}"
        raise NotReadyError(
            f"virtual function {options.number} of {options.of} cannot be set: {reason}",
            place=place,
            next_step="remove from `virtual_function` the options that this adapter's driver does not support",
        )


async def _hand_over(making: Making, host: Host, name: str, options: VirtualFunctionOptions, place: str) -> Port:
    """Gives the function to the kernel, as an interface of the port's name, unless DPDK gets it; gives the new port."""
    port = making.ports[name]
    address = await address_of(host, options, place)
    driver: str | None = port.bind
    if driver is not None:
        given: dict[str, Any] = {"address": address, "mac": options.given_mac}
    else:
        device = port.device or options.device
        driver = await _bind_kernel_driver(host, address, device, options.given_mac, place)
        given = {"device": device}
    values = {**expected_values(options), **given, "driver": driver}
    making.tell("virtual_functions", name, {"of": options.of, "number": options.number, "address": address, **values})
    return port.replace(**given)


async def address_of(host: Host, options: VirtualFunctionOptions, place: str) -> str:
    """The PCI address of the function, from the link that the kernel makes in sysfs."""
    link = f"/sys/class/net/{options.of}/device/virtfn{options.number}"
    done = await host.run(("readlink", link), check=False)
    address = done.stdout.strip().rpartition("/")[2]
    if done.status != 0 or not address:
        raise NotReadyError(
            f"{options.of} has no virtual function {options.number}", place=place, next_step=f"see {link}"
        )
    return address


async def _bind_kernel_driver(host: Host, address: str, device: str, mac: str, place: str) -> str:
    """Has the kernel bind its driver, names the interface, and gives the driver's name."""
    folder = f"/sys/bus/pci/devices/{address}"
    alias = (await host.read_file(f"{folder}/modalias") or "").strip()
    if alias:  # udev loads the driver, but not every machine has udev
        await host.machine.run(("modprobe", alias), check=False)
    found = await _probe(host, address, mac)
    if found is None:
        raise NotReadyError(
            f"no kernel driver took the virtual function {address}",
            place=place,
            next_step=f"load its driver: `lspci -k -s {address}` names it (igbvf, ixgbevf, iavf, mlx5_core); or write "
            "`bind: vfio-pci` to give it to DPDK",
        )
    if found != device:
        await host.run(("ip", "link", "set", "dev", found, "down"))
        renamed = await host.run(("ip", "link", "set", "dev", found, "name", device), check=False)
        if renamed.status != 0:
            raise NotReadyError(
                f"its interface {found} cannot be renamed to {device}: {renamed.stderr.strip()}",
                place=place,
                next_step="give the port another name with `device`",
            )
    await host.run(("ip", "link", "set", "dev", device, "up"))
    link = json.loads((await host.run(("ip", "-j", "link", "show", "dev", device))).stdout)[0]
    if str(link["address"]) != mac:
        raise NotReadyError(
            f"the virtual function {address} should have the address {mac}, and its interface has {link['address']}",
            place=place,
            next_step="see `dmesg` for messages of its driver",
        )
    driver = await host.run(("readlink", f"{folder}/driver"), check=False)
    return driver.stdout.strip().rpartition("/")[2]


async def _probe(host: Host, address: str, mac: str) -> str | None:
    """Has the kernel bind its driver and returns the interface; None where no driver takes the function.

    Again where the driver chose an address itself: it asks the adapter, which does not answer during a reset.
    """
    for is_last in (False, False, True):
        await host.write_file("/sys/bus/pci/drivers_probe", address)
        found = await interface_of(host, address)
        if is_last or found is None or (await host.read_file(f"/sys/class/net/{found}/address") or mac).strip() == mac:
            return found
        await host.write_file(f"/sys/bus/pci/devices/{address}/driver/unbind", address)
        await asyncio.sleep(_RESET_S)
    return None
