"""The card in other hands: DPDK's driver by its PCI address, and its virtual functions (SR-IOV)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from nicbench.core.errors import NicbenchError, NotReadyError
from nicbench.core.proof import Finding
from nicbench.prove.abilities.frames import pass_all
from nicbench.prove.base import Ability, absent, failed, proven
from nicbench.prove.loop import Loop
from nicbench.tuning.stack import UndoStack

_SIZES: Final = (64, 512, 1518)


async def _judge(name: str, loop: Loop, changes: UndoStack, driver: str | None, by: str) -> Finding:
    """Makes the ports, has frames pass both ways, and says what became of them."""
    try:
        await loop.make(changes)
        async with loop.session(driver) as session:
            damage = await pass_all(session, _SIZES)
            rate = session.rate_frames_per_s
    except NotReadyError as error:
        return absent(name, error.message)
    except NicbenchError as error:
        return failed(name, error.message)
    if damage is not None:
        return failed(name, f"{by}: {damage}")
    return proven(name, f"{by}: every frame came back unaltered, at {rate:,.0f} a second")


class Dpdk(Ability):
    """Whether DPDK drives the card by its PCI address, and the kernel has it back afterwards."""

    kind = "dpdk"
    order = 9
    tries = "frames of three sizes by DPDK's own driver, behind the IOMMU"
    changes = "the kernel has no interfaces of the cards meanwhile"
    estimate_s = 20.0
    is_apart = True

    async def prove(self, loop: Loop, changes: UndoStack) -> AsyncIterator[Finding]:
        yield await _judge("dpdk.pci", loop.instead(bind="vfio-pci"), changes, None, "by vfio-pci")


class VirtualFunctions(Ability):
    """Whether the card makes a virtual function that passes frames, and removes it."""

    kind = "functions"
    order = 10
    tries = "a virtual function of each port is made, frames pass through it, and it is removed"
    changes = "the card has virtual functions meanwhile"
    estimate_s = 20.0
    is_apart = True

    async def prove(self, loop: Loop, changes: UndoStack) -> AsyncIterator[Finding]:
        yield await _judge(
            "functions.sriov", loop.of_functions(), changes, "net_af_packet", "through virtual functions"
        )
