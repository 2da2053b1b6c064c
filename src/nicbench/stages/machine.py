"""The machines of a run: held for it alone, undone at its end, and no connection left open.

This machine is taken, and those of the bench file, whole or by their ports; all or none. A machine is taken whole where
its settings may be changed: it is tuned, it is set up as the DUT, a lab is made on it, or frames are sent from it.
Otherwise another run may use other ports of it.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from nicbench.bench_file.models import BenchFile
from nicbench.core.errors import BusyError
from nicbench.core.events import Bus, Note, Waiting
from nicbench.hosts import build_hosts, close_connections, close_containers, close_ports
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.local import LocalHost
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.hosts.owner import boot_id
from nicbench.store.folder import RunFolder
from nicbench.tuning.lease import HostLease, ports_command
from nicbench.tuning.lock import HostLock, Place
from nicbench.tuning.restore import restore_stale
from nicbench.tuning.stack import UndoStack

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_TESTER = "tester"


@dataclass
class Claim:
    """What a run needs of one host of its bench file: all of its machine, or these devices and PCI addresses."""

    host: Host
    whole: bool = False
    devices: set[str] = field(default_factory=set)
    addresses: set[str] = field(default_factory=set)


def claims(bench: BenchFile, make_host: Callable[[BenchFile, str], Host] | None = None) -> tuple[Claim, ...]:
    """One for each host on another machine; nothing is touched yet."""
    found: dict[str, Claim] = {}
    for each in bench.configurations:
        for name in each.hosts:
            host = (make_host or _host)(each, name)
            if isinstance(host.machine, LocalHost) or host.machine.made_here:
                continue
            ports = [port for port in each.ports.values() if port.host == name]
            claim = found.setdefault(repr(host.spec()), Claim(host))
            claim.whole |= bool(each.tuning) or _sends_frames(each, name) or _is_set_up(each, name)
            claim.whole |= each.lab is not None and each.lab.on == name
            claim.devices.update(device for port in ports for device in port.devices)
            claim.addresses.update(port.address for port in ports if port.address is not None)
    return tuple(found.values())


@asynccontextmanager
async def hold_machines(run_id: str, wanted: tuple[Claim, ...], bus: Bus, wait_s: float = 0.0) -> AsyncIterator[None]:
    """Holds this machine and every claim; waits so long for those that others hold, and holds nothing meanwhile.

    Of the runs on this machine who came first gets its turn first. BusyError names the holder, or who comes before,
    once ``wait_s`` are over.
    """
    end = time.monotonic() + wait_s
    told: set[str] = set()
    place = Place(run_id)
    try:
        while True:
            async with AsyncExitStack() as stack:
                try:
                    place.require_first()
                    await _take_all(run_id, wanted, bus, stack)
                except BusyError as error:
                    if time.monotonic() >= end:
                        raise
                    _publish_once(error, told, bus)
                else:
                    place.leave()
                    yield
                    return
            await asyncio.sleep(min(_try_again_s(), max(end - time.monotonic(), 0.0)))
    finally:
        place.leave()


async def _take_all(run_id: str, wanted: tuple[Claim, ...], bus: Bus, stack: AsyncExitStack) -> None:
    lock = HostLock(run_id)
    # Before anything else: what a dead run of ours changed, here and elsewhere, is undone under this lock.
    stack.callback(lock.release)
    for sentence in [*await lock.take(), *await restore_stale()]:
        bus.publish(Note(level="warning", text=sentence))
    for machine, ports in (await _group_by_machine(wanted)).values():
        lease = HostLease(machine, run_id, ports, lambda sentence: bus.publish(Note(level="warning", text=sentence)))
        stack.push_async_callback(lease.release)
        for sentence in await lease.take():
            bus.publish(Note(level="warning", text=sentence))


async def _group_by_machine(wanted: tuple[Claim, ...]) -> Mapping[str, tuple[Host, tuple[str, ...] | None]]:
    """The machine and its ports, None for all of it, by the id of its boot: several hosts may be on one machine."""
    found: dict[str, tuple[Host, tuple[str, ...] | None]] = {}
    for claim in wanted:
        machine = claim.host.machine
        boot = (await machine.read_file(_BOOT_ID) or "").strip() or repr(machine.spec())
        if boot == boot_id():
            continue  # this machine by another way: its lock is taken
        first, known = found.get(boot, (machine, ()))
        ports = None if claim.whole or known is None else (*known, *await _ports(claim))
        found[boot] = (first, ports)
    return dict(sorted(found.items()))


async def _ports(claim: Claim) -> tuple[str, ...]:
    """The ports of a claim by the names that its machine has for them."""
    devices = sorted(claim.devices)
    # From outside of a container: nothing is started in a machine that may be somebody else's.
    network = claim.host.network
    if isinstance(network, NetnsHost) and not await network.exists():
        network = network.inner  # it is made by the run, and the interfaces are moved into it
    known = (await network.run(ports_command(devices))).stdout.split() if devices else []
    return (*sorted(claim.addresses), *known)


def _host(bench: BenchFile, name: str) -> Host:
    return build_hosts(bench.hosts)[name]


def _sends_frames(bench: BenchFile, name: str) -> bool:
    """Whether our own engine does so from there."""
    return bench.measures == "frames" and name in (_TESTER, bench.tester_kind().peer)


def _is_set_up(bench: BenchFile, name: str) -> bool:
    """Whether it is the DUT, and nicbench makes it what it is."""
    return bool(bench.dut.plugin.is_set_up) and bench.role_of(name) == "dut"


def _try_again_s() -> float:
    """A random time to wait before the next attempt, so that two runs that want the same do not meet for ever."""
    return 1.0 + secrets.randbelow(2000) / 1000.0


def _publish_once(error: BusyError, told: set[str], bus: Bus) -> None:
    # The age in the message grows: a holder, and a place in the queue, is told of once.
    key = f"{error.place} {error.message.partition(' since ')[0]}"
    if key not in told:
        told.add(key)
        bus.publish(Waiting(text=f"{error.place}: {error.message}"))


@asynccontextmanager
async def hold_for_run(
    folder: RunFolder, bus: Bus, *, touched: bool, elsewhere: tuple[Claim, ...] = (), wait_s: float = 0.0
) -> AsyncIterator[UndoStack]:
    """Holds this machine and what is claimed of others, and an undo stack; waits so long for those that hold them.

    ``touched`` is false where a run changes nothing (a simulated lab).
    """
    changes = UndoStack(folder.run_id, folder.path)
    if not touched:
        yield changes
        return
    async with hold_machines(folder.run_id, elsewhere, bus, wait_s), undo_at_end(changes, bus):
        yield changes


@asynccontextmanager
async def undo_at_end(changes: UndoStack, bus: Bus) -> AsyncIterator[None]:
    """Undoes afterwards whatever was changed, and says what could not be."""
    try:
        yield
    finally:
        for trouble in await changes.undo_all():
            bus.publish(Note(level="warning", text=trouble))


Outcome = TypeVar("Outcome")


async def run_and_close_hosts(work: Coroutine[Any, Any, Outcome]) -> Outcome:
    """``work``, and then no container and no connection stays; also where it fails, or is cancelled."""
    try:
        return await work
    finally:
        await close_containers()
        await close_connections()
        await close_ports()
