"""Gives cards of the machine to a guest (``pci``) by vfio-pci, isolated by an IOMMU, and sets their MAC addresses.

A virtual function gets its address from the driver of its physical function, so that the guest cannot change it.
"""

from __future__ import annotations

from collections.abc import Mapping

from nicbench.core.errors import NotReadyError
from nicbench.hosts.base import Host
from nicbench.hosts.options import VmOptions
from nicbench.system.adapters.links import parse_links, virtual_functions
from nicbench.testbed.interfaces.dpdk_devices import check_address
from nicbench.testbed.interfaces.vfio import bind_to_vfio, require_isolated
from nicbench.tuning.changes import Changes
from nicbench.tuning.drivers import folder_of
from nicbench.tuning.undo.restore_function_mac import RestoreFunctionMac


async def give_cards(
    changes: Changes, local: Host, options: VmOptions, guest: str
) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """Gives the cards to the guest; returns their MAC addresses by name, and the ``modalias`` of their drivers.

    NotReadyError where a card does not exist, is in use, or cannot be isolated.
    """
    macs: dict[str, str] = {}
    aliases: list[str] = []
    for name, card in options.cards.items():
        if card.pci is None:
            continue
        place = f"{guest}, card {name}"
        await require_isolated(local, card.pci, place)
        await check_address(local, card.pci, place)
        own = await _mac_of(local, card.pci)
        owner = await _owner(local, card.pci)
        if owner is not None and card.mac is not None:
            await _set_mac(changes, local, owner, card.mac, place)
        elif card.mac is not None and card.mac != own:
            raise NotReadyError(
                f"the card {card.pci} is not a virtual function: only its driver in the guest can set `mac`",
                place=place,
                next_step="remove `mac`",
            )
        mac = card.mac or own
        if mac is None:
            raise NotReadyError(
                f"the MAC address of {card.pci} is unknown: it has no kernel driver",
                place=place,
                next_step="write `mac`, by which the guest identifies its cards",
            )
        macs[name] = mac
        aliases.append((await local.read_file(f"{folder_of(card.pci)}/modalias") or "").strip())
        await bind_to_vfio(changes, local, card.pci, place)
    return macs, tuple(dict.fromkeys(filter(None, aliases)))


async def _mac_of(local: Host, address: str) -> str | None:
    shown = await local.run(("sh", "-c", f"cat {folder_of(address)}/net/*/address"), check=False)
    return shown.stdout.split()[0] if shown.status == 0 and shown.stdout.split() else None


async def _owner(local: Host, address: str) -> tuple[str, int] | None:
    """The interface of its physical function, and its number there; None for a card that is not a virtual function."""
    script = 'cd "$1/physfn" 2>/dev/null || exit 0; ls net; for f in virtfn*; do echo "$f $(readlink "$f")"; done'
    lines = (await local.run(("sh", "-c", script, "sh", folder_of(address)))).stdout.splitlines()
    for line in lines[1:]:
        link, _, target = line.partition(" ")
        if target.rpartition("/")[2] == address:
            return lines[0], int(link.removeprefix("virtfn"))
    return None


async def _set_mac(changes: Changes, local: Host, owner: tuple[str, int], mac: str, place: str) -> None:
    device, number = owner
    before = await _read_mac(local, device, number)
    if before == mac:
        return
    undo = RestoreFunctionMac(device=device, number=number, mac=before or "00:00:00:00:00:00", asked=mac)

    async def apply() -> None:
        await local.run(("ip", "link", "set", "dev", device, "vf", str(number), "mac", mac))

    await changes.make(local, undo, apply)
    if (found := await _read_mac(local, device, number)) != mac:
        raise NotReadyError(
            f"virtual function {number} of {device} should have the address {mac}, and has {found}",
            place=place,
            next_step="see `dmesg` for messages of the adapter's driver",
        )


async def _read_mac(local: Host, device: str, number: int) -> str | None:
    """The MAC address that the adapter has for a virtual function; None where it is unknown."""
    shown = await local.run(("ip", "-d", "-j", "link", "show", "dev", device))
    functions = [each for link in parse_links(shown.stdout) for each in virtual_functions(link)]
    return next((str(each["mac"]) for each in functions if each["number"] == number), None)
