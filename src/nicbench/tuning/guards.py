"""On every other machine that is changed: the record of its changes, and a script that undoes them without nicbench.

Both lie in /run/nicbench there, in a folder of the run and the host. The script is run by what holds the host's lease,
once nothing is heard of the controller; otherwise the undo is as on this machine.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import posixpath
import shlex
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from nicbench.core.errors import HostError, NicbenchError, NotReadyError
from nicbench.core.frozen import frozen
from nicbench.hosts.base import Host, Presence
from nicbench.hosts.owner import Owner
from nicbench.tuning.dry_undo import Change, DryUndo, Question, dry_undo
from nicbench.tuning.record import RECORD_NAME, RUNTIME_FOLDER, SHELL_CHECK, WHY, Entry, Record
from nicbench.tuning.undo.base import Undo

# The script that puts a host's settings back when nobody hears of nicbench any more. Pure: steps in, shell out.


SCRIPT_NAME, TOLD_NAME = "undo.sh", "told"
_COMMAND_TIMEOUT_S = 20
_BOOT_ID = "/proc/sys/kernel/random/boot_id"

_HEAD = """\
# Written by nicbench: puts back what a run changed on this host, the last change first, once nothing is heard of it.
# What does not read any more as the run left it was changed by somebody since, and is left alone.
exec 9<"$0"
flock 9
[ -e "$0" ] || exit 0
# Another than that of this script belongs to an earlier start of the run, whose changes are undone.
[ "$1" = PRESENCE ] || exit 0
told=${0%/*}/told
PATH="$PATH:/usr/sbin:/sbin:/usr/bin:/bin" LC_ALL=C
export PATH LC_ALL
reads() { [ "$(timeout TIMEOUT "$@" 2>/dev/null | sha256sum)" = "$wanted  -" ]; }
back() { echo "put back: $1" >>"$told"; }
left() { echo "left alone, somebody changed it since: $1" >>"$told"; }
failed() { echo "could not put back: $1" >>"$told"; }
"""


@frozen
class Step:
    """One change of the run: what it is in words, and how it is undone; None where that could not be foreseen."""

    words: str
    dry_undo: DryUndo | None


def script(steps: Sequence[Step], presence: Presence) -> str:
    """The whole script, of all steps of one host in the order in which they were made.

    It undoes for that presence alone. A run that is resumed writes its script to the place where the one before it had
    its own, and the presence of the controller that died may only now look there.
    """
    parts = [_HEAD.replace("TIMEOUT", str(_COMMAND_TIMEOUT_S)).replace("PRESENCE", presence.name)]
    parts += [_undo_lines(step) for step in reversed(steps)]
    return "\n".join([*parts, 'mv -f "$0" "$0.done"', ""])


def _undo_lines(step: Step) -> str:
    words = shlex.quote(step.words)
    if step.dry_undo is None:
        return f'echo {shlex.quote(f"not undone by this script: {step.words}")} >>"$told"'
    conditions = " && ".join(_condition(each) for each in step.dry_undo.holds) or "true"
    changes = " && ".join(_change(each) for each in step.dry_undo.changes)
    return f"if {conditions}; then\n    if {changes}; then back {words}; else failed {words}; fi\nelse left {words}; fi"


def _condition(question: Question) -> str:
    return f"wanted={hashlib.sha256(question.answer.encode()).hexdigest()} reads {shlex.join(question.command)}"


def _change(change: Change) -> str:
    command = f"timeout {_COMMAND_TIMEOUT_S} {shlex.join(change.command)} >/dev/null 2>&1"
    return command if change.text is None else f"printf %s {shlex.quote(change.text)} | {command}"


_STORE = f"""{SHELL_CHECK}
umask 077
folder=${{1%/*}}
mkdir -p "$folder" || exit
mine "${{folder%/*}}" group || {{ echo "$(told "${{folder%/*}}"): {WHY}" >&2; exit 1; }}
mine "$folder" nobody || {{ echo "$(told "$folder"): {WHY}" >&2; exit 1; }}
rm -f "$1.new" && cat >"$1.new" && mv -f "$1.new" "$1"
"""
# Waits for a script that is at work, and takes it away: it must not undo what another run sets afterwards.
_STAND_DOWN = """
cd "$1" 2>/dev/null || exit 0
[ ! -e "$2" ] || flock --timeout 120 "$2" rm -f "$2" || exit 1
[ ! -e "$3" ] || cat "$3"
"""
_STAND_DOWN_S = 130.0


class Guards:
    """Those of one run. ``store_undo`` and ``confirm_undo`` stand around each change."""

    def __init__(self, runtime: str = str(RUNTIME_FOLDER)) -> None:
        self._runtime = runtime
        self._guarded: dict[str, _GuardedMachine] = {}

    async def store_undo(self, record: Record, host: Host, undo: Undo) -> None:
        """Before a change: its undo lies on the host, whatever becomes of the connection that the change goes over."""
        if not is_guarded(host.machine):
            return
        folder = folder_of(self._runtime, record.run_id, host.machine)
        guarded = self._guarded.get(folder)
        if guarded is None:
            guarded = self._guarded[folder] = _GuardedMachine(host.machine, folder)
        await guarded.store_undo(record, host, undo)

    async def confirm_undo(self, record: Record, host: Host, undo: Undo) -> None:
        """Once it is made: the undo is of what now reads as it does, and of nothing else."""
        if is_guarded(host.machine):
            await self._guarded[folder_of(self._runtime, record.run_id, host.machine)].confirm_undo(host, undo)

    async def keep(self, record: Record) -> None:
        """The changes are to outlive this process: the scripts go, and the records there say so."""
        for guarded in self._guarded.values():
            await guarded.keep(record)


class _GuardedMachine:
    """One machine."""

    def __init__(self, machine: Host, folder: str) -> None:
        self._machine = machine
        self._folder = folder
        self._entries: list[Entry] = []
        self._steps: list[Step] = []
        self._presence: Presence | None = None

    async def store_undo(self, record: Record, host: Host, undo: Undo) -> None:
        if self._presence is None:
            self._presence = await self._machine.when_unheard(f"{self._folder}/{SCRIPT_NAME}")
        self._entries.append(Entry(host=_spec_seen_there(host.spec()), undo=undo))
        self._steps.append(await self._step(host, undo, applied=False))
        await asyncio.gather(self._store(RECORD_NAME, self._record(record)), self._store_script())

    async def keep(self, record: Record) -> None:
        await self._store(RECORD_NAME, self._record(record))
        command = ("sh", "-c", _STAND_DOWN, "stand-down", self._folder, SCRIPT_NAME, TOLD_NAME)
        await self._machine.run(command, timeout_s=_STAND_DOWN_S)

    def _record(self, record: Record) -> str:
        """As it lies there."""
        there = record.replace(
            run_id=posixpath.basename(self._folder),
            entries=tuple(self._entries),
            run_folder=None,
            owner=record.owner if self._presence is None else _owner(self._presence),
        )
        return there.model_dump_json(indent=1)

    async def confirm_undo(self, host: Host, undo: Undo) -> None:
        self._steps[-1] = await self._step(host, undo, applied=True)
        await self._store_script()

    async def _step(self, host: Host, undo: Undo, *, applied: bool) -> Step:
        if undo.ends_with_lease:
            return Step(undo.describe(), DryUndo())
        found = await dry_undo(host, undo, applied=applied) if undo.can_be_scripted else None
        return Step(f"{host.name}: {undo.describe_goal()}", found)

    async def _store_script(self) -> None:
        if self._presence is not None:
            await self._store(SCRIPT_NAME, script(self._steps, self._presence))

    async def _store(self, name: str, text: str) -> None:
        path = f"{self._folder}/{name}"
        try:
            await self._machine.run(("sh", "-c", _STORE, "store", path), input_text=text)
        except HostError as error:
            raise NotReadyError(
                f"what would be undone cannot be written to {path}: {error.message}",
                place=self._machine.name,
                next_step="changing that machine needs its root: `user: root`",
            ) from error


async def stand_down(run_id: str, hosts: Sequence[Host], runtime: str = str(RUNTIME_FOLDER)) -> list[str]:
    """Before an undo: connects anew where a connection was lost, and takes the script away.

    Gives, a sentence each, what a script has done meanwhile; and why a host cannot be reached.
    """
    said = []
    for machine in _other_machines(hosts):
        folder = folder_of(runtime, run_id, machine)
        try:
            await machine.reconnect()
            if not is_guarded(machine):
                continue
            command = ("sh", "-c", _STAND_DOWN, "stand-down", folder, SCRIPT_NAME, TOLD_NAME)
            told = (await machine.run(command, timeout_s=_STAND_DOWN_S)).stdout.splitlines()
        except NicbenchError as error:
            step = f" ({error.next_step})" if error.next_step else ""
            said.append(f"{machine.name} cannot be reached, to undo what was changed there: {error.message}{step}")
            continue
        if told:
            said.append(
                f"{machine.name} was not in reach of nicbench for a while, and undid by itself: {'; '.join(told)}"
            )
    return said


async def forget(run_id: str, hosts: Sequence[Host], runtime: str = str(RUNTIME_FOLDER)) -> None:
    """After an undo that left nothing: the folders on the machines go, and /run/nicbench with the last of them.

    A host of a lab is gone with its namespace by now, and its folder lies on this machine.
    """
    for machine in _other_machines(hosts):
        if not is_guarded(machine):
            continue
        folder = folder_of(runtime, run_id, machine)
        command = ("sh", "-c", 'rm -rf -- "$1"; rmdir "${1%/*}"', "forget", folder)
        try:
            await machine.run(command, check=False)
        except NicbenchError:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def is_guarded(machine: Host) -> bool:
    """Not this machine, whose next run undoes; and not one that is thrown away with all that was changed in it."""
    return not machine.shares_files and not machine.made_here


async def has_rebooted(run_id: str, machine: Host, runtime: str = str(RUNTIME_FOLDER)) -> bool:
    """Whether a guarded machine was booted since the run changed it; False where it cannot be asked.

    /run is empty after a boot; where it is not, the record there names the boot that it was written in.
    """
    try:
        text = await machine.read_file(f"{folder_of(runtime, run_id, machine)}/{RECORD_NAME}")
        now = await machine.read_file(_BOOT_ID)
        return text is None or (now is not None and Record.model_validate_json(text).owner.boot_id != now.strip())
    except (NicbenchError, ValidationError):
        return False


def folder_of(runtime: str, run_id: str, machine: Host) -> str:
    """Of a run and a host: two hosts of a bench file may be one machine, and share its /run."""
    spec = machine.spec()
    called = "".join(letter if letter.isalnum() or letter in "-._" else "_" for letter in str(spec.get("address", "")))
    return f"{runtime}/{run_id}.on.{called}-{_digest(machine)}"


def _other_machines(hosts: Sequence[Host]) -> list[Host]:
    found = {_digest(machine): machine for machine in (host.machine for host in hosts) if not machine.shares_files}
    return list(found.values())


def _digest(machine: Host) -> str:
    """Of what is needed to reach it: the same from whichever process it is reached."""
    return hashlib.sha256(json.dumps(machine.spec(), sort_keys=True).encode()).hexdigest()[:8]


def _spec_seen_there(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The machine itself is local to what undoes it there."""
    return {**spec, "inner": _spec_seen_there(spec["inner"])} if "inner" in spec else {"kind": "local"}


def _owner(presence: Presence) -> Owner:
    return Owner(pid=presence.pid, start_ticks=presence.start_ticks, boot_id=presence.boot_id)
