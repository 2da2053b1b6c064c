"""The machines of a run: held for it alone, undone at its end, and no connection left open.

This machine is taken, and those of the bench file, whole or by their ports; all or none. A machine is taken whole where
its settings may be changed: it is tuned, it is set up as the DUT, a lab is made on it, or frames are sent from it.
Otherwise another run may use other ports of it.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from nicbench.bench_file.models import BenchFile
from nicbench.core.errors import BusyError, HostError, UnknownFactError, UsageError
from nicbench.core.events import Bus, Event, MachinesUsed, Note, RoundFinished, TrialFinished, UsedMachine, Waiting
from nicbench.hosts import build_hosts, close_connections, close_containers, close_ports
from nicbench.hosts.asking import output_of
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
    """Holds this machine and every claim; waits up to ``wait_s`` for those that others hold, and holds nothing
    meanwhile.

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
    """Holds this machine, the claims on others, and an undo stack; waits up to ``wait_s`` for their present holders.

    ``touched`` is false where a run changes nothing (a simulated lab).
    """
    changes = UndoStack(folder.run_id, folder.path)
    if not touched:
        yield changes
        return
    async with hold_machines(folder.run_id, elsewhere, bus, wait_s), undo_at_end(changes, bus):
        yield changes


@asynccontextmanager
async def undo_at_end(changes: UndoStack, bus: Bus) -> AsyncIterator[UndoStack]:
    """Undoes afterwards whatever was changed, and says what could not be."""
    try:
        yield changes
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


# The machines of a run: which they are, and that a run goes on where it began, unless it was told to move.  A machine
# is known by a hash of its machine id and its name, and by its network adapters in their slots. It stays the same
# after a reboot. Clones of one disk image have one machine id, so the name counts as well.

THIS_MACHINE: Final = "this machine"
# The id is a line of its own also where the file is missing, is empty (an image that was not booted yet) or has no
# newline. Virtual functions come and go with the settings of a run; the adapter that they belong to is asked for.
_ASK: Final = r"""
echo "$(cat /etc/machine-id 2>/dev/null)"
uname -n
for device in /sys/bus/pci/devices/*; do
    read -r class <"$device/class" || continue
    case $class in 0x02*) ;; *) continue ;; esac
    [ -e "$device/physfn" ] && continue
    read -r vendor <"$device/vendor" && read -r number <"$device/device" && echo "${device##*/} $vendor $number"
done
true
"""


async def see_machines(bench: BenchFile, folder: RunFolder, bus: Bus, *, others_allowed: bool) -> None:
    """Journals the machines of a run where it begins; where it goes on, refuses others.

    ``others_allowed``: go on there as well, and say so. UsageError where samples are of other machines. A run in which
    nothing was measured yet goes on anywhere.
    """
    used = {name: await _identify(host, folder.run_id) for name, host in _machines(bench).items()}
    before, measured = _last_used(folder.journal.events())
    moved = describe_move(before or {}, used)
    if not moved:
        return
    if before is not None and measured:
        if not others_allowed:
            raise UsageError(
                f"the run began on other machines: {moved}",
                place=str(folder.path),
                next_step="resume it there, start a new run here, or add --on-other-machines: "
                "the trials of both then stand in one run, and the report says so",
            )
        bus.publish(Note(level="warning", text=f"The run continues on other machines, as it was asked to: {moved}."))
    bus.publish(MachinesUsed(machines=used))


def describe_move(before: Mapping[str, UsedMachine], now: Mapping[str, UsedMachine]) -> str:
    """Says which machines are others, and by what: their names, or adapters that were changed."""
    found = {name: _difference(before.get(name), now.get(name)) for name in dict.fromkeys([*before, *now])}
    return "; ".join(f"{name} {difference}" for name, difference in found.items() if difference)


def _difference(before: UsedMachine | None, now: UsedMachine | None) -> str:
    """Says what differs; empty where it is one machine. Names do not count here: a redacted journal has none."""
    if before is None or now is None:
        return "is no host of both"
    if (before.machine_hash, before.cards) == (now.machine_hash, now.cards):
        return ""
    if before.machine_hash != now.machine_hash:
        if before.host_name == now.host_name:
            return f"is another machine of the name {now.host_name}"
        return f"was {before.host_name} and is {now.host_name}"
    slots = [slot for slot in {**before.cards, **now.cards} if before.cards.get(slot) != now.cards.get(slot)]
    changes = (f"{slot} was {before.cards.get(slot, 'empty')}, is {now.cards.get(slot, 'empty')}" for slot in slots)
    return f"({now.host_name}) has other adapters: {', '.join(changes)}"


def _machines(bench: BenchFile) -> dict[str, Host]:
    """Returns the machines that take part, by the hosts of the bench file; a host made here stands on this machine."""
    found = {}
    for each in bench.configurations:
        for name, host in build_hosts(each.hosts).items():
            machine = host.machine
            found[name] = LocalHost(THIS_MACHINE) if machine.made_here else machine
    return found or {THIS_MACHINE: LocalHost(THIS_MACHINE)}


async def _identify(machine: Host, run_id: str) -> UsedMachine:
    try:
        machine_id, name, *cards = (await output_of(machine, "sh", "-c", _ASK)).splitlines()
    except (UnknownFactError, ValueError) as error:  # ValueError: one line, so there is no uname
        raise HostError(
            f"it does not say which machine it is: {error}",
            place=machine.name,
            next_step="see that a shell there runs `uname -n` and may read /sys/bus/pci/devices",
        ) from error
    # The id of a machine is confidential (machine-id(5)); with the id of the run no other run has the same hash.
    machine_hash = hashlib.sha256(f"{run_id}\n{machine_id}\n{name}".encode()).hexdigest()[:16]
    slots = (line.split() for line in cards)
    return UsedMachine(
        machine_hash=machine_hash,
        host_name=name,
        cards={slot: f"{vendor.removeprefix('0x')}:{device.removeprefix('0x')}" for slot, vendor, device in slots},
    )


def _last_used(events: Iterable[Event]) -> tuple[Mapping[str, UsedMachine] | None, bool]:
    """Returns the machines that were used last, and whether anything was measured."""
    used, measured = None, False
    for event in events:
        if isinstance(event, MachinesUsed):
            used = event.machines
        measured = measured or isinstance(event, TrialFinished | RoundFinished)
    return used, measured
