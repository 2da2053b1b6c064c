"""What a DUT in user space needs of its testbed, rings in memory or cards: its ports, its cores, how frames pass."""

from __future__ import annotations

from dataclasses import dataclass

from nicbench.duts._networks import SWEPT_ADDRESSES, swept_address
from nicbench.duts._transparent import tester_macs
from nicbench.duts._ways import routed, ways_back
from nicbench.duts.base import Addressing, Refusal
from nicbench.errors import UsageError
from nicbench.hosts.base import Host
from nicbench.labs.base import Testbed
from nicbench.model.pattern import Pattern, Way

MOST_PORTS = 32
"""Of a program of DPDK, as it is built."""


@dataclass(frozen=True, slots=True)
class DutCores:
    """CPUs of the DUT's process: one for the thread that sleeps and answers, the others forward."""

    main: int
    workers: tuple[int, ...]


def require_user_space(testbed: Testbed, kind: str) -> Host:
    """The DUT's host; UsageError where its ports are neither rings in memory nor cards that DPDK drives."""
    ports = testbed.dut_ports
    if testbed.dut is None or not ports or any(port.vdev is None and port.address is None for port in ports):
        raise UsageError(
            f"a DUT of kind {kind} stands in a lab of shared memory, or on cards that DPDK drives",
            place="dut",
            next_step="use `lab: {kind: memif}`, or give its ports by `address`",
        )
    return testbed.dut


def card_macs(testbed: Testbed) -> tuple[str, ...] | None:
    """What frames to cards must bear: a card takes no others. None of rings, and where it is not known."""
    macs = tuple(port.mac for port in testbed.dut_ports if port.address is not None and port.mac is not None)
    return macs if macs and len(macs) == len(testbed.dut_ports) else None


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


def goes_back(testbed: Testbed) -> bool:
    """Whether frames leave by the port that they came in at."""
    return testbed.same_port or len(testbed.dut_ports) == 1


def pairs_only(kind: str, ports: int, pattern: Pattern) -> Refusal | None:
    """Of a DUT that joins its ports in pairs, or each with itself: what of a pattern between so many it cannot do."""
    if ports <= 2 or pattern in (Pattern.ONE_TO_ONE, Pattern.SAME_PORT):
        return None
    return Refusal(
        f"{kind} forwards between the two ports of a pair, or back out of each, so not {pattern.value}",
        "write `pattern: one-to-one`, or choose l3fwd, which routes between all ports",
    )


def in_pairs(testbed: Testbed) -> tuple[Way, ...]:
    """The ways through such a DUT; of each pair forward first, then reverse."""
    ports = len(testbed.dut_ports)
    if goes_back(testbed):
        return ways_back(ports)
    return tuple((port, port ^ 1) for port in range(ports - ports % 2))


def forwarded(
    testbed: Testbed, ip: int, ways: tuple[Way, ...], destination_macs: tuple[str, ...] | None = None
) -> tuple[Addressing, ...]:
    """Frames of these ways, addressed to ``destination_macs``; without them the tester's ports address each other."""
    macs = tester_macs(testbed)

    def one(way: Way) -> Addressing:
        here, there = way
        source_mac, destination_mac = macs[here], destination_macs[here] if destination_macs else macs[there]
        if len(macs) > 1:
            return routed(ip, len(macs), way, source_mac=source_mac, destination_mac=destination_mac)
        # With one port both networks lie behind it.
        return Addressing(
            transmit=here,
            receive=there,
            source_mac=source_mac,
            destination_mac=destination_mac,
            ip=ip,
            source_address=swept_address(ip, 0),
            destination_address=swept_address(ip, 1),
            source_address_count=SWEPT_ADDRESSES,
            destination_address_count=SWEPT_ADDRESSES,
        )

    return tuple(one(way) for way in ways)
