"""A lab of shared memory (`memif`): rings join the tester and a DUT in user space, without kernel interfaces.

The tester's ports are memif clients, the DUT's are the servers, which must start first. With ``zero_copy`` frames stay
in the tester's memory, so that only the DUT copies them, work that a card's DMA would do. A full ring refuses frames
instead of losing them: overload shows as back-pressure, which counts against the DUT (docs/verdicts.md). No frame can
leave shared memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, ClassVar, Final, Literal

from pydantic import AfterValidator, Field

from nicbench.core.base import Frozen
from nicbench.core.errors import NotReadyError
from nicbench.core.pattern import Pattern
from nicbench.core.quantity import BitsPerSecond
from nicbench.hosts.base import Host
from nicbench.testbed.cores import make_core_map
from nicbench.testbed.labs.base import DutPort, FrameLab, Objection, Testbed, TesterPort, machine_words
from nicbench.testbed.labs.veth import dut_ipv4, dut_ipv6, mac
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.files import RemovePath

# Below /run, where only root can make it, and nothing outlives a reboot.
_FOLDER: Final = "/run/nicbench-memif"


def _require_power_of_two(frames: int) -> int:
    if frames & (frames - 1):
        below = 1 << (frames.bit_length() - 1)
        raise ValueError(f"a ring holds a power of two of frames, not {frames}: write {below} or {2 * below}")
    return frames


class MemifOptions(Frozen):
    """``lab: {kind: memif, topology: crossed}``.

    With ``crossed`` frames leave by the other port of a pair, with ``same-port`` by the one that they came in on.
    """

    topology: Literal["crossed", "same-port"] = "crossed"
    """`crossed`: pairs of ports, in at one and out at the other. `same-port`: out where it came in."""
    ports: int = Field(default_factory=lambda given: 1 if given.get("topology") == "same-port" else 2, ge=1, le=8)
    """Number of ports: by default 2, of `same-port` 1. Several ports of `same-port` need `pattern: same-port`. testpmd
    and the reflector join pairs (`one-to-one`), l3fwd routes between all ports (any pattern).
    """
    zero_copy: bool = False
    """The tester's frames are read and written where they lie. It needs `tester: {huge_pages: true}`."""
    ring_frames: Annotated[int, Field(ge=64, le=16_384), AfterValidator(_require_power_of_two)] = 2048
    """Length of each ring, a power of two."""
    buffer_bytes: int = Field(default=2048, ge=1536, le=16_384)
    """Size of each place in a ring, in bytes."""
    link: BitsPerSecond = Field(default=100e9, ge=1e6, le=1e13)
    """The speed that line rates are computed from; nominal."""


class MemifLab(FrameLab):
    """The lab; its links ``t0 <-> d0``, ``t1 <-> d1``, ... are pairs of rings in memory."""

    kind = "memif"
    Options = MemifOptions
    port_kind = "memif"
    has_sink = False
    has_cable = False
    time_stamp_advice: ClassVar[dict[str, str]] = {}
    options: MemifOptions

    async def up(self, changes: Changes, local: Host) -> Testbed:
        await _require_root(local)
        folder = socket_folder(changes.run_id)
        await changes.make(local, RemovePath(path=folder), lambda: _make_private(local, folder))
        ports = range(self.options.ports)
        return Testbed(
            tester=local,
            dut=local,
            tester_ports=tuple(
                TesterPort(
                    name=f"t{port}",
                    engine={
                        "name": f"t{port}",
                        "kind": "vdev",
                        "vdev": client_vdev(self.options, folder, port),
                        "lossless": True,
                        # One ring for each queue of the DUT: what it receives from is what the tester sends to.
                        "transmit_queues": self.queues.receive,
                        "receive_queues": self.queues.transmit,
                    },
                    mac=mac(0, port),
                )
                for port in ports
            ),
            dut_ports=tuple(
                DutPort(
                    name=f"d{port}",
                    mac=mac(1, port),
                    ipv4=dut_ipv4(port),
                    ipv6=dut_ipv6(port),
                    vdev=server_vdev(self.options, folder, port),
                )
                for port in ports
            ),
            cores=await make_core_map(local),
            link_bits_per_s=self.options.link,
            link_is_nominal=True,
            statements=(
                f"A lab of shared memory measures {machine_words(local)} and the DUT's program, not a network card.",
                "Its line rate is nominal: the speed of a link that the rings stand for, not what they can carry.",
            ),
            facts={
                "lab": self.kind,
                **self.options.model_dump(),
                "links": [f"t{port} <-> d{port}" for port in ports],
                "tester_role": "client",
                "dut_role": "server",
            },
            # Zero copy hands the DUT one file descriptor for the tester's whole memory.
            eal=("--single-file-segments",) if self.options.zero_copy else (),
            same_port=self.options.topology == "same-port",
        )

    def objections(self, *, tester_has_huge_pages: bool, pattern: Pattern) -> tuple[Objection, ...]:
        found = []
        if self.options.zero_copy and not tester_has_huge_pages:
            message = "zero copy shares the tester's memory with the DUT, for which it must be in huge pages"
            step = "write `tester: {huge_pages: true}`, or `zero_copy: false`"
            found.append(Objection("zero_copy", message, step))
        topology = self.options.topology
        if self.options.ports > 1 and (topology == "same-port") != (pattern is Pattern.SAME_PORT):
            message = f"the topology {topology} does not go with the pattern {pattern.value}"
            step = f"write `topology: {'same-port' if topology == 'crossed' else 'crossed'}`, or another `pattern`"
            found.append(Objection("topology", message, step))
        return tuple(found)

    @asynccontextmanager
    async def without_dut(self, testbed: Testbed, changes: Changes) -> AsyncIterator[bool]:
        yield False  # a ring needs a process at its other end, so that only the DUT itself can be the sink

    @asynccontextmanager
    async def cable(self, testbed: Testbed, changes: Changes) -> AsyncIterator[bool]:
        yield False


def socket_folder(run_id: str) -> str:
    """The folder of this run's sockets; short, because a socket's path may have 108 bytes."""
    return f"{_FOLDER}-{hashlib.sha256(run_id.encode()).hexdigest()[:12]}"


def client_vdev(options: MemifOptions, folder: str, port: int) -> str:
    """The tester's end as a DPDK device. The client chooses ring and buffer sizes, and owns the memory."""
    return (
        f"net_memif{port},role=client,{_socket(folder, port)},rsize={options.ring_frames.bit_length() - 1},"
        f"bsize={options.buffer_bytes},mac={mac(0, port)},zero-copy={'yes' if options.zero_copy else 'no'}"
    )


def server_vdev(options: MemifOptions, folder: str, port: int) -> str:
    """The DUT's end as a DPDK device; its ring size is the largest that it accepts."""
    return (
        f"net_memif{port},role=server,{_socket(folder, port)},rsize={options.ring_frames.bit_length() - 1},"
        f"bsize={options.buffer_bytes},mac={mac(1, port)}"
    )


def _socket(folder: str, port: int) -> str:
    return f"id={port},socket={folder}/memif.sock,socket-abstract=no"


async def _make_private(local: Host, folder: str) -> None:
    """Makes the folder for root alone; ``mkdir`` fails where it exists already."""
    await local.run(("mkdir", "-m", "700", folder))


async def _require_root(local: Host) -> None:
    if (await local.run(("id", "-u"))).stdout.strip() != "0":
        raise NotReadyError(
            "a lab of shared memory needs root: its sockets and its undo are where only root can write",
            place=local.name,
            next_step="run it with sudo, or try `lab: {kind: simulated}`, which needs no root",
        )
