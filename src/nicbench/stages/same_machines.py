"""The machines of a run: which they are, and that a run goes on where it began, unless it was told to move.

A machine is known by a hash of its machine id and its name, and by its network adapters in their slots. It stays the
same after a reboot. Clones of one disk image have one machine id, so the name counts as well.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Final

from nicbench.bench_file.models import BenchFile
from nicbench.core.errors import HostError, UnknownFactError, UsageError
from nicbench.core.events import Bus, Event, MachinesUsed, Note, RoundFinished, TrialFinished, UsedMachine
from nicbench.hosts import build_hosts
from nicbench.hosts.asking import output_of
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.local import LocalHost
from nicbench.store.folder import RunFolder

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
    nothing was measured yet goes on anywhere, and one of an older nicbench, which did not say where it began, as well.
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
    found: dict[str, Host] = {}
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
