"""Makes a bond of several interfaces of a host, verifies it, and takes it apart again (docs/studies.md).

Undone, each port is out of the bond and has its state, MAC address and MTU as before, and the bond is gone.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from nicbench.core.errors import HostError, NotReadyError
from nicbench.core.units import and_list
from nicbench.hosts.base import Host
from nicbench.system.adapters.links import parse_links
from nicbench.testbed.interfaces.base import (
    LACP,
    BondOptions,
    BondSettings,
    Making,
    create_command,
    join_commands,
    place_of,
)
from nicbench.testbed.interfaces.host_interfaces import check_free, interfaces_of
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.network import DeleteLink, ReleasePort

_NOBODY: Final = "00:00:00:00:00:00"


def list_bond_differences(
    links: Sequence[Mapping[str, Any]], name: str, settings: BondSettings, mtu: int | None = None
) -> list[str]:
    """A sentence for each setting of the bond that differs from what was asked for."""
    link = _link(links, name)
    data = link.get("linkinfo", {}).get("info_data", {})
    found = [
        f"{key} is {data.get(key)} instead of {value}"
        for key, value in settings.data().items()
        if str(data.get(key, 0 if key == "min_links" else None)) != str(value)
    ]
    if mtu is not None and link.get("mtu") != mtu:
        found.append(f"its MTU is {link.get('mtu')} instead of {mtu}")
    return found


def explain_waiting(links: Sequence[Mapping[str, Any]], name: str, settings: BondSettings, ports: Sequence[str]) -> str:
    """Why the bond does not work as a whole yet, as a sentence; an empty text where it does.

    In every mode the link of each port must be up. LACP also needs a partner, and every port in the one aggregator
    that has it, collecting and distributing (IEEE 802.1AX-2020, 6.4.13).
    """
    bond = _link(links, name)
    if "LOWER_UP" not in bond.get("flags", ()):
        return f"{name} has no carrier: {_describe_ports(links, ports)}"
    down = [port for port in ports if _member_data(links, port, name).get("mii_status") != "UP"]
    if down:
        return f"{and_list(down)} {'is' if len(down) == 1 else 'are'} down: {_describe_ports(links, ports)}"
    if settings.mode != LACP:
        return ""
    info = bond.get("linkinfo", {}).get("info_data", {}).get("ad_info") or {}
    if info.get("partner_mac", _NOBODY) == _NOBODY:
        return f"the other end does not speak LACP: {_describe_ports(links, ports)}"
    outside = [
        port for port in ports if _member_data(links, port, name).get("ad_aggregator_id") != info.get("aggregator")
    ]
    if outside:
        return (
            f"not all ports are in the active aggregator {info.get('aggregator')} with the partner "
            f"{info['partner_mac']}: {_describe_ports(links, ports)}"
        )
    idle = [port for port in ports if not _distributes(_member_data(links, port, name))]
    if idle:
        return (
            f"{and_list(idle)} {'does' if len(idle) == 1 else 'do'} not distribute yet: {_describe_ports(links, ports)}"
        )
    return ""


def _describe_ports(links: Sequence[Mapping[str, Any]], ports: Sequence[str]) -> str:
    """The state of each port in words, as in "e0 is up in aggregator 1, e1 is down"."""
    return ", ".join(f"{port} {_describe_port(_link(links, port))}" for port in ports)


def _describe_port(link: Mapping[str, Any]) -> str:
    if not link:
        return "does not exist"
    data = link.get("linkinfo", {}).get("info_slave_data", {})
    state = "is up" if data.get("mii_status") == "UP" else "is down"
    aggregator = data.get("ad_aggregator_id")
    return state if aggregator is None else f"{state} in aggregator {aggregator}"


def _distributes(member: Mapping[str, Any]) -> bool:
    """Whether a port distributes frames; an older ``ip`` does not show that, so an active port counts as one."""
    states = member.get("ad_actor_oper_port_state_str")
    if states is None:
        return bool(member.get("state", "ACTIVE") == "ACTIVE")
    return {"collecting", "distributing"} <= set(states)


def _member_data(links: Sequence[Mapping[str, Any]], port: str, bond: str) -> Mapping[str, Any]:
    link = _link(links, port)
    data: Mapping[str, Any] = link.get("linkinfo", {}).get("info_slave_data", {})
    return data if link.get("master") == bond else {}


def _link(links: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    return next((link for link in links if link.get("ifname") == name), {})


_TRIES: Final = 240
_STEP_S: Final = 0.25
"""Tries make a minute: partners with a slow LACP rate send every 30 s."""
_LIST_COMMAND: Final = ("ip", "-j", "-d", "link", "show")
_NO_DRIVER: Final = ("Unknown device type", "Operation not supported", "not supported", "Unknown master interface")
NEEDS_DRIVER: Final = (
    "modprobe bonding; a kernel without it needs a virtual machine: write `on: guest` there, and "
    "`hosts: {guest: {kind: vm}}`"
)


async def make_bonds(making: Making) -> None:
    """Makes the bonds of all ports, in the namespaces that their interfaces are in by now."""
    for name, port in making.ports.items():
        if port.bond is not None and port.device is not None:
            made = await make_bond(
                making.changes, making.network_of(port), port.device, port.bond, place_of(port, name)
            )
            making.tell("bonds", name, made)


async def make_bond(changes: Changes, network: Host, name: str, options: BondOptions, place: str) -> dict[str, Any]:
    """Makes the bond ``name`` of unused interfaces and waits until it works; gives what a report discloses of it.

    NotReadyError, with what to do, where a port cannot be taken, the kernel has no bonding, or the bond does not come
    up.
    """
    interfaces = await interfaces_of(network)
    if name in interfaces.links:
        raise NotReadyError(
            f"there is an interface {name} already",
            place=place,
            next_step=f"give the bond another name with `device`, or remove that one: ip link delete dev {name}",
        )
    found = {port: check_free(interfaces, port, place, for_tester=True) for port in options.of}
    await changes.make(network, DeleteLink(device=name), lambda: create_bond(network, name, options))
    for port, link in found.items():
        undo = ReleasePort(
            device=port, bond=name, is_up="UP" in link["flags"], mac=str(link["address"]), mtu_bytes=int(link["mtu"])
        )
        await changes.make(network, undo, lambda port=port: join_bond(network, name, port))  # type: ignore[misc]
    if options.mtu is not None:
        await _set_mtu(network, name, options.mtu, place)
    await network.run(("ip", "link", "set", "dev", name, "up"))
    await wait_for_bond(network, name, options, options.of, place=place)
    links = await _links(network)
    differences = list_bond_differences(links, name, options, options.mtu)
    if differences:
        raise NotReadyError(
            f"the kernel set the bond up differently: {'; '.join(differences)}",
            place=place,
            next_step="correct `bond`, or use a newer kernel and `ip`",
        )
    return {"bond": name, "of": list(options.of), **options.data(), **({"mtu": options.mtu} if options.mtu else {})}


async def create_bond(network: Host, name: str, settings: BondSettings) -> None:
    """Makes a bond without ports. NotReadyError where the kernel has no bonding."""
    # Without max_bonds=0 the driver makes a bond bond0 by itself when it is loaded.
    await network.machine.run(("modprobe", "bonding", "max_bonds=0"), check=False)
    done = await network.run(create_command(name, settings), check=False)
    if done.status == 0:
        return
    message = done.stderr.strip()
    if any(words in message for words in _NO_DRIVER):
        raise NotReadyError(
            f"the kernel of this host has no bonding: {message}", place=network.name, next_step=NEEDS_DRIVER
        )
    raise HostError(f"the bond {name} cannot be made: {message}", place=network.name)


async def join_bond(network: Host, name: str, port: str) -> None:
    """Adds one port to the bond; nothing else may use it."""
    for command in join_commands(name, port):
        await network.run(command)


async def wait_for_bond(
    network: Host, name: str, settings: BondSettings, ports: tuple[str, ...], *, place: str | None = None
) -> None:
    """Waits until every port is up and, with LACP, in the aggregator with the partner; NotReadyError after a minute."""
    reason = ""
    for _ in range(_TRIES):
        reason = explain_waiting(await _links(network), name, settings, ports)
        if not reason:
            return
        await asyncio.sleep(_STEP_S)
    partner = (
        "join the ports at the other end to one LACP channel (mode active or passive), all at one speed"
        if settings.mode == LACP
        else "check cables and the ports at the other end"
    )
    raise NotReadyError(
        f"the bond did not come up within {_TRIES * _STEP_S:g} s: {reason}",
        place=place or f"{network.name}, bond {name}",
        next_step=f"{partner}; `cat /proc/net/bonding/{name}` shows the state while the bond exists",
    )


async def _set_mtu(network: Host, name: str, mtu: int, place: str) -> None:
    """Sets the MTU of the bond, which sets that of its ports."""
    done = await network.run(("ip", "link", "set", "dev", name, "mtu", str(mtu)), check=False)
    if done.status != 0:
        raise NotReadyError(
            f"its ports cannot have an MTU of {mtu}: {done.stderr.strip()}",
            place=place,
            next_step="write a smaller `mtu` under `bond`; `ip -d link show` has the maximum of each port (maxmtu)",
        )


async def _links(network: Host) -> list[dict[str, Any]]:
    done = await network.run(_LIST_COMMAND)
    try:
        return parse_links(done.stdout)
    except (ValueError, json.JSONDecodeError) as error:
        raise HostError(
            f"the output of `{' '.join(_LIST_COMMAND)}` is not valid: {error}", place=network.name
        ) from error
