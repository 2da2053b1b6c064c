"""Cards of the machine that a guest is given (``pci``): kept apart by an IOMMU, taken by vfio-pci, with an address.

A virtual function gets its address on its adapter's port, as an administrator sets it; the guest cannot change it.
"""

from __future__ import annotations

from collections.abc import Mapping

from nicbench.adapters.links import parse_links, virtual_functions
from nicbench.errors import NotReadyError
from nicbench.hosts._vm_options import VmOptions
from nicbench.hosts.base import Host
from nicbench.interfaces._vfio import bind_to_vfio, require_apart
from nicbench.labs._behind import check_address
from nicbench.tuning.changes import Changes
from nicbench.tuning.drivers import folder_of
from nicbench.tuning.undo import RestoreFunctionMac


async def give_cards(
    changes: Changes, local: Host, options: VmOptions, guest: str
) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """The MAC address of each by its name, and what finds their drivers in the guest (``modalias``).

    NotReadyError where one is not there, used, or cannot be kept apart.
    """
    macs: dict[str, str] = {}
    aliases: list[str] = []
    for name, card in options.cards.items():
        if card.pci is None:
            continue
        place = f"{guest}, card {name}"
        await require_apart(local, card.pci, place)
        await check_address(local, card.pci, place)
        own = await _mac_of(local, card.pci)
        owner = await _owner(local, card.pci)
        if owner is not None and card.mac is not None:
            await _set_mac(changes, local, owner, card.mac, place)
        elif card.mac is not None and card.mac != own:
            raise NotReadyError(
                f"the card {card.pci} is no virtual function: nobody but its driver in the guest can give it `mac`",
                place=place,
                next_step="remove `mac`",
            )
        mac = card.mac or own
        if mac is None:
            raise NotReadyError(
                f"the MAC address of {card.pci} is not known: no driver of the kernel has it",
                place=place,
                next_step="write `mac`, by which the guest tells its cards apart",
            )
        macs[name] = mac
        aliases.append((await local.read_file(f"{folder_of(card.pci)}/modalias") or "").strip())
        await bind_to_vfio(changes, local, card.pci, place)
    return macs, tuple(dict.fromkeys(filter(None, aliases)))


async def _mac_of(local: Host, address: str) -> str | None:
    shown = await local.run(("sh", "-c", f"cat {folder_of(address)}/net/*/address"), check=False)
    return shown.stdout.split()[0] if shown.status == 0 and shown.stdout.split() else None


async def _owner(local: Host, address: str) -> tuple[str, int] | None:
    """The interface of its physical function, and its number there; None of a whole card."""
    script = 'cd "$1/physfn" 2>/dev/null || exit 0; ls net; for f in virtfn*; do echo "$f $(readlink "$f")"; done'
    lines = (await local.run(("sh", "-c", script, "sh", folder_of(address)))).stdout.splitlines()
    for line in lines[1:]:
        link, _, target = line.partition(" ")
        if target.rpartition("/")[2] == address:
            return lines[0], int(link.removeprefix("virtfn"))
    return None


async def _set_mac(changes: Changes, local: Host, owner: tuple[str, int], mac: str, place: str) -> None:
    device, number = owner
    before = await _told(local, device, number)
    if before == mac:
        return
    undo = RestoreFunctionMac(device=device, number=number, mac=before or "00:00:00:00:00:00", asked=mac)

    async def apply() -> None:
        await local.run(("ip", "link", "set", "dev", device, "vf", str(number), "mac", mac))

    await changes.make(local, undo, apply)
    if (found := await _told(local, device, number)) != mac:
        raise NotReadyError(
            f"virtual function {number} of {device} should have the address {mac}, and has {found}",
            place=place,
            next_step="see `dmesg` for what its adapter's driver says",
        )


async def _told(local: Host, device: str, number: int) -> str | None:
    shown = await local.run(("ip", "-d", "-j", "link", "show", "dev", device))
    functions = [each for link in parse_links(shown.stdout) for each in virtual_functions(link)]
    return next((str(each["mac"]) for each in functions if each["number"] == number), None)
