"""What a run on real ports rests on: the proofs of its ports, where `nicbench prove` made them on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from nicbench.core.errors import HostError, NotReadyError
from nicbench.core.proof import Outcome, Proof
from nicbench.store.proofs import FOLDER, find_proof
from nicbench.system.identity import identify_port
from nicbench.testbed.labs.base import Testbed

PROOFS: Final = "proofs.json"
"""The file in the run folder."""
_DRIVERS: Final = {"xdp": "xdp", "af_xdp": "net_af_xdp", "af_packet": "net_af_packet"}
"""The tester's drivers for kernel interfaces, by the protocol's kinds of ports."""


class Grounds(NamedTuple):
    """The proofs of a run's ports, and sentences for the report on ports without one."""

    proofs: tuple[Proof, ...]
    unproven: tuple[str, ...]


async def hold_against_proofs(testbed: Testbed, folder: Path = FOLDER) -> Grounds:
    """Finds the proofs of the tester's ports.

    NotReadyError where a port was proven not to carry the driver that the run uses.
    """
    unproven: list[str] = []
    aged: list[str] = []
    held: list[Proof] = []
    for port in testbed.tester_ports:
        driver = _DRIVERS.get(str(port.engine.get("kind")))
        if port.device is None or driver is None:
            continue
        host = testbed.host_of(port)
        try:
            now = await identify_port(host, port.device)
        except HostError:  # a port that does not say what it is has no proof
            unproven.append(port.device)
            continue
        proof = find_proof(now.fingerprint, folder)
        if proof is None:
            unproven.append(port.device)
            continue
        held += [] if proof in held else [proof]
        kernel = (await host.read_file("/proc/sys/kernel/osrelease") or "").strip()
        changed = proof.aged(now, kernel)
        finding = proof.of(f"drivers.{driver}")
        if changed:
            aged.append(f"{port.device} ({', '.join(changed)})")
        elif finding is None or finding.outcome in (Outcome.UNTRIED, Outcome.ABSENT):
            unproven.append(port.device)  # what was not there then, a cable for one, may be there now
        elif finding.outcome is Outcome.FAILED:
            raise NotReadyError(
                f"its proof says of `driver: {driver}`: {finding.seen}",
                place=f"{host.name}, {port.device}",
                next_step="choose another `driver`, or prove the port again: nicbench prove",
            )
    said = []
    if unproven:
        said.append(f"What {', '.join(unproven)} can be relied on for was not proven (`nicbench prove`).")
    if aged:
        said.append(f"The proof of {', '.join(aged)} is of another driver, firmware or kernel.")
    return Grounds(tuple(held), tuple(said))
