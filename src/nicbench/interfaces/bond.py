"""A bond of several interfaces of a host: made, verified, and taken apart again (docs/studies.md).

Undone, each port is out of the bond and has its state, MAC address and MTU as before, and the bond is gone.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

from nicbench.adapters.links import parse_links
from nicbench.errors import HostError, NotReadyError
from nicbench.hosts.base import Host
from nicbench.interfaces._bond_options import LACP, BondOptions, BondSettings, creating, joining
from nicbench.interfaces._bond_state import unlike, waiting_for
from nicbench.interfaces.base import Making, place_of
from nicbench.labs._host_interfaces import interfaces_of
from nicbench.labs._interfaces import check_free
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo import DeleteLink, ReleasePort

_TRIES: Final = 240
_STEP_S: Final = 0.25
"""A minute: partners that speak LACP slowly say something every 30 s."""
_LISTED: Final = ("ip", "-j", "-d", "link", "show")
_NO_DRIVER: Final = ("Unknown device type", "Operation not supported", "not supported", "Unknown master interface")
NEEDS_DRIVER: Final = (
    "modprobe bonding; a kernel without it needs a virtual machine: write `on: guest` there, and "
    "`hosts: {guest: {kind: vm}}`"
)


async def make_bonds(making: Making) -> None:
    """Those of all ports, where their interfaces are by now."""
    for name, port in making.ports.items():
        if port.bond is not None and port.device is not None:
            made = await make_bond(
                making.changes, making.network_of(port), port.device, port.bond, place_of(port, name)
            )
            making.tell("bonds", name, made)


async def make_bond(changes: Changes, network: Host, name: str, options: BondOptions, place: str) -> dict[str, Any]:
    """The bond ``name`` of interfaces that nobody uses, up and working; gives what of it a report discloses.

    NotReadyError, with what to do, where a port cannot be taken, the kernel has no bonding, or the ports do not come
    together.
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
    wrong = unlike(links, name, options, options.mtu)
    if wrong:
        raise NotReadyError(
            f"the kernel made something else of it: {'; '.join(wrong)}",
            place=place,
            next_step="correct `bond`, or use a newer kernel and `ip`",
        )
    return {"bond": name, "of": list(options.of), **options.data(), **({"mtu": options.mtu} if options.mtu else {})}


async def create_bond(network: Host, name: str, settings: BondSettings) -> None:
    """Without ports yet. NotReadyError where the kernel has no bonding."""
    # The driver makes a bond that nobody asked for when it is loaded in another way.
    await network.machine.run(("modprobe", "bonding", "max_bonds=0"), check=False)
    done = await network.run(creating(name, settings), check=False)
    if done.status == 0:
        return
    said = done.stderr.strip()
    if any(words in said for words in _NO_DRIVER):
        raise NotReadyError(
            f"the kernel of this host has no bonding: {said}", place=network.name, next_step=NEEDS_DRIVER
        )
    raise HostError(f"the bond {name} cannot be made: {said}", place=network.name)


async def join_bond(network: Host, name: str, port: str) -> None:
    """One port more; it must be used by nobody."""
    for command in joining(name, port):
        await network.run(command)


async def wait_for_bond(
    network: Host, name: str, settings: BondSettings, ports: tuple[str, ...], *, place: str | None = None
) -> None:
    """Until every port is up and, of LACP, in the one aggregator that has a partner; NotReadyError after a minute."""
    lacking = ""
    for _ in range(_TRIES):
        lacking = waiting_for(await _links(network), name, settings, ports)
        if not lacking:
            return
        await asyncio.sleep(_STEP_S)
    partner = (
        "join the ports at the other end to one LACP channel (mode active or passive), all at one speed"
        if settings.mode == LACP
        else "check cables and the ports at the other end"
    )
    raise NotReadyError(
        f"the bond did not come together within {_TRIES * _STEP_S:g} s: {lacking}",
        place=place or f"{network.name}, bond {name}",
        next_step=f"{partner}; `cat /proc/net/bonding/{name}` shows it while the bond is there",
    )


async def _set_mtu(network: Host, name: str, mtu: int, place: str) -> None:
    """Of the bond, which sets its ports'."""
    done = await network.run(("ip", "link", "set", "dev", name, "mtu", str(mtu)), check=False)
    if done.status != 0:
        raise NotReadyError(
            f"its ports cannot have an MTU of {mtu}: {done.stderr.strip()}",
            place=place,
            next_step="write a smaller `mtu` under `bond`; `ip -d link show` has the greatest of each port (maxmtu)",
        )


async def _links(network: Host) -> list[dict[str, Any]]:
    done = await network.run(_LISTED)
    try:
        return parse_links(done.stdout)
    except (ValueError, json.JSONDecodeError) as error:
        raise HostError(f"what `{' '.join(_LISTED)}` says is not understood: {error}", place=network.name) from error
