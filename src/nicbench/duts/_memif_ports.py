"""What a DUT in user space needs of a memif testbed: its ports, its cores, and how frames pass through it."""

from __future__ import annotations

from dataclasses import dataclass

from nicbench.duts._networks import SWEPT_ADDRESSES, swept_address
from nicbench.duts._transparent import tester_macs
from nicbench.duts.base import Addressing
from nicbench.errors import UsageError
from nicbench.hosts.base import Host
from nicbench.labs.base import Testbed


@dataclass(frozen=True, slots=True)
class DutCores:
    """CPUs of the DUT's process: one for the thread that sleeps and answers, the others forward."""

    main: int
    workers: tuple[int, ...]


def require_memif(testbed: Testbed, kind: str) -> Host:
    """The DUT's host; UsageError where its ports are not rings in memory."""
    if testbed.dut is None or not testbed.dut_ports or any(port.vdev is None for port in testbed.dut_ports):
        raise UsageError(
            f"a DUT of kind {kind} stands in a lab of shared memory", place="dut", next_step="use `lab: {kind: memif}`"
        )
    return testbed.dut


def dut_cores(testbed: Testbed, wanted: int, kind: str) -> DutCores:
    """``wanted`` forwarding cores of those that the lab has for the DUT; UsageError where it has fewer."""
    cores = testbed.cores
    available = (*cores.dut, *(() if cores.shared else cores.housekeeping))
    if wanted > len(available):
        raise UsageError(
            f"{kind} is to forward on {wanted} cores; this machine has {len(available)} for it beside the tester's",
            place="dut, cores",
            next_step=f"write `cores: {len(available)}`, or use a machine with more",
        )
    workers = available[:wanted]
    spare = [cpu for cpu in cores.housekeeping if cpu not in workers]
    # It answers between trials only, when the tester's CPU is idle too.
    fallback = cores.worker if cores.worker is not None else workers[0]
    return DutCores(main=spare[0] if spare else fallback, workers=workers)


def forwarded(testbed: Testbed, ip: int, destination_macs: tuple[str, ...] | None = None) -> tuple[Addressing, ...]:
    """Out of the other port, or of the same one where there is only one; frames are addressed to ``destination_macs``.

    Without them the tester's ports address each other.
    """
    macs = tester_macs(testbed)
    ways = ((0, 0),) if len(macs) == 1 else ((0, 1), (1, 0))
    return tuple(
        Addressing(
            transmit=here,
            receive=there,
            source_mac=macs[here],
            destination_mac=destination_macs[here] if destination_macs else macs[there],
            ip=ip,
            source_address=swept_address(ip, here),
            # With one port both networks lie behind it.
            destination_address=swept_address(ip, there if there != here else 1),
            source_address_count=SWEPT_ADDRESSES,
            destination_address_count=SWEPT_ADDRESSES,
        )
        for here, there in ways
    )
