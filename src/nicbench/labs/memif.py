"""A lab of shared memory (`memif`): the tester and a DUT in user space joined by rings, without a kernel interface.

The tester's ports are memif clients, the DUT's are the servers, which must be there first. With ``zero_copy`` the
tester's frames are read and written where they lie, in its own memory, so that the copies are the DUT's work, as those
of a card's DMA would not be anybody's. A full ring refuses frames instead of losing them: overload shows as
back-pressure, which is charged to the DUT (docs/verdicts.md). No frame can leave: there is no way out of shared memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, ClassVar, Final, Literal

from pydantic import AfterValidator, Field

from nicbench.errors import NotReadyError
from nicbench.hosts.base import Host
from nicbench.labs._cores import core_map, cpus_of_status
from nicbench.labs._veth_names import dut_ipv4, dut_ipv6, mac
from nicbench.labs.base import DutPort, FrameLab, Objection, Testbed, TesterPort, machine_words
from nicbench.model.base import Frozen
from nicbench.model.pattern import Pattern
from nicbench.model.quantity import BitsPerSecond
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo import RemovePath

# Below /run, so that only root can have made it, and nothing outlives a restart.
_FOLDER: Final = "/run/nicbench-memif"


def _power_of_two(frames: int) -> int:
    if frames & (frames - 1):
        below = 1 << (frames.bit_length() - 1)
        raise ValueError(f"a ring holds a power of two of frames, and {frames} is none: write {below} or {2 * below}")
    return frames


class MemifOptions(Frozen):
    """``lab: {kind: memif, topology: crossed}``.

    ``crossed``: pairs of ports, in at one and out at the other. ``same-port``: out where it came in.
    """

    topology: Literal["crossed", "same-port"] = "crossed"
    ports: int = Field(default_factory=lambda given: 1 if given.get("topology") == "same-port" else 2, ge=1, le=8)
    zero_copy: bool = False
    ring_frames: Annotated[int, Field(ge=64, le=16_384), AfterValidator(_power_of_two)] = 2048
    buffer_bytes: int = Field(default=2048, ge=1536, le=16_384)
    link: BitsPerSecond = Field(default=100e9, ge=1e6, le=1e13)


class MemifLab(FrameLab):
    """``t0 <-> d0``, ``t1 <-> d1``, ...: each a pair of rings in memory."""

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
            cores=core_map(cpus_of_status(await local.read_file("/proc/self/status") or ""), dut_apart=True),
            link_bits_per_s=self.options.link,
            link_is_nominal=True,
            statements=(
                f"A lab of shared memory measures {machine_words(local)} and the DUT's program, and no network card.",
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
        yield False  # a ring needs somebody at its other end: the DUT itself, as a sink, where it can be one

    @asynccontextmanager
    async def cable(self, testbed: Testbed, changes: Changes) -> AsyncIterator[bool]:
        yield False


def socket_folder(run_id: str) -> str:
    """Of this run alone; its name leaves room for the socket's in the 108 bytes that the kernel gives to both."""
    return f"{_FOLDER}-{hashlib.sha256(run_id.encode()).hexdigest()[:12]}"


def client_vdev(options: MemifOptions, folder: str, port: int) -> str:
    """The tester's end, in DPDK's words. The client chooses the ring and the buffers, and owns their memory."""
    return (
        f"net_memif{port},role=client,{_socket(folder, port)},rsize={options.ring_frames.bit_length() - 1},"
        f"bsize={options.buffer_bytes},mac={mac(0, port)},zero-copy={'yes' if options.zero_copy else 'no'}"
    )


def server_vdev(options: MemifOptions, folder: str, port: int) -> str:
    """The DUT's end. Its ring size is the upper bound of what it accepts."""
    return (
        f"net_memif{port},role=server,{_socket(folder, port)},rsize={options.ring_frames.bit_length() - 1},"
        f"bsize={options.buffer_bytes},mac={mac(1, port)}"
    )


def _socket(folder: str, port: int) -> str:
    return f"id={port},socket={folder}/memif.sock,socket-abstract=no"


async def _make_private(local: Host, folder: str) -> None:
    """``mkdir`` fails where somebody else has it."""
    await local.run(("mkdir", "-m", "700", folder))


async def _require_root(local: Host) -> None:
    if (await local.run(("id", "-u"))).stdout.strip() != "0":
        raise NotReadyError(
            "a lab of shared memory needs root: it keeps its sockets and its undo where only root can write",
            place=local.name,
            next_step="run it with sudo, or try `lab: {kind: simulated}`, which needs no root",
        )
