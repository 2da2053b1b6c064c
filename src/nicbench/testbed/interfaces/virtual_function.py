"""Makes the virtual functions (SR-IOV) of ports with ``virtual_function: {of: n1, number: 0}``.

Only on an adapter that has none yet, as the tuning item does: so the undo removes them, and with them all their
settings (Documentation/PCI/pci-iov-howto.rst of the kernel; ip-link(8)). Drivers are bound after the settings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nicbench.core.errors import HostError, NotReadyError
from nicbench.hosts.base import Host
from nicbench.system.adapters.links import parse_links, virtual_functions
from nicbench.testbed.interfaces.base import Making, origin_of, place_of
from nicbench.testbed.interfaces.host_interfaces import Interfaces, check_free, interfaces_of
from nicbench.testbed.interfaces.options import (
    Port,
    VirtualFunctionOptions,
    actual_values,
    expected_values,
    set_command,
)
from nicbench.tuning.drivers import interface_of
from nicbench.tuning.items.adapter import VirtualFunctionOptions as CountOptions
from nicbench.tuning.items.adapter import VirtualFunctions
from nicbench.tuning.setting import CannotSetError, Place
from nicbench.tuning.undo.files import RestoreSetting
from nicbench.tuning.undo.network import SetLinkDown

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
        up = ("ip", "link", "set", "dev", physical, "up")
        await making.changes.make(host, SetLinkDown(device=physical), lambda: _run(host, up))
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
    await host.write_file("/sys/bus/pci/drivers_probe", address)
    found = await interface_of(host, address)
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


async def _run(host: Host, command: tuple[str, ...]) -> None:
    await host.run(command)
