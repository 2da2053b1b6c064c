"""A lease on another machine, or on ports of it: taken, watched and given back through a process there.

**A lease is a process on that machine**, POSIX shell and flock(1), which holds locks of the kernel: ``host.lock``, the
very lock that a run on that machine itself takes (``lock.py``), alone for the whole machine or together with others for
ports of it; and its own file in ``leases``, whose content says whose it is. It lives as long as its stdin, and so as
long as the controller is heard of; when it ends, however it ends, the kernel gives the locks free. So no two clocks are
compared, nothing has to be renewed during a trial, and a file whose lock is free is of a dead run.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nicbench.core.errors import HostError, NicbenchError, NotReadyError
from nicbench.hosts.base import Host, Process
from nicbench.hosts.kinds.ssh import Machine, SshHost, machine
from nicbench.tuning.lock import (
    Lease,
    Standing,
    busy_error,
    lease_of_this_process,
    lease_text,
    standing_of,
    standing_of_holder,
)
from nicbench.tuning.record import RUNTIME_FOLDER, SHELL_CHECK, WHY

RELEASE = "release"
"""The word by which a lease is given back."""
# All takers come one after the other, under a lock of the folder, so that each sees what the one before has written.
# A holder's file begins with the time by this machine's clock. It is removed where the lease is given back; of a run
# that died it stays, for the next to tell of.
_SCRIPT = (
    SHELL_CHECK
    + r"""
folder=$1 mode=$2 token=$3 lease=$4
shift 4
refuse() { echo "refused $1"; exit 1; }
command -v flock >/dev/null 2>&1 || refuse "flock is not installed (package util-linux)"
umask 077
# Twice: somebody may remove the empty folder in between.
mkdir -p "$folder/leases" 2>/dev/null || mkdir -p "$folder/leases" 2>/dev/null ||
    refuse "$(id -un) may not make $folder"
[ -w "$folder" ] && [ -w "$folder/leases" ] || refuse "$(id -un) may not write to $folder"
for each in "$folder" "$folder/leases"; do
    mine "$each" group || { echo "stranger $(told "$each")"; exit 1; }
done
# Whoever can open a folder or a file can hold its lock. A folder of a group of all who measure stays theirs.
for each in "$folder" "$folder/leases"; do
    case $(stat -c %A "$each") in ?????w*) umask 007 ;; *) [ ! -O "$each" ] || chmod 700 "$each" ;; esac
done
exec 7<"$folder/leases"
flock -w 90 7 || refuse "$folder/leases stays locked"

line() { head -c 8192 "$1" 2>/dev/null | tr '\n' ' '; echo; }
tell() {
    which=$1 taken= living=
    shift
    for file in "$folder"/leases/*; do
        [ -f "$file" ] || continue
        if flock -n -s "$file" true 2>/dev/null; then
            [ "$which" = all ] && echo "dead $(line "$file")" && rm -f "$file"
        else
            echo "held $(line "$file")"
            living="$living $(sed -n '1s/.*"run_id": *"\([^"]*\)".*/\1/p' "$file" 2>/dev/null)"
            for port in "$@"; do
                sed 1d "$file" 2>/dev/null | grep -qxF -e "$port" && taken=1
            done
        fi
    done
}

# Whether changes of a run that holds nothing here any more stand. What held its connection puts them back by undo.sh.
unsettled() {
    name=${1##*/} waited=0
    for run in $living; do
        case $name in "$run" | "$run".on.*) return 1 ;; esac
    done
    while [ -e "$1/undo.sh" ] && owned "$2" && [ "$waited" -lt 60 ]; do
        sleep 0.5
        waited=$((waited + 1))
    done
    [ -e "$2" ] && ! { [ ! -e "$1/undo.sh" ] && [ -e "$1/undo.sh.done" ] &&
        ! grep -qE '^(could not|not undone)' "$1/told" 2>/dev/null; }
}
owned() {
    owner=$(sed -n 's/^ *"pid": *\([0-9]*\),*$/\1/p' "$1" | head -n 1)
    ticks=$(sed -n 's/^ *"start_ticks": *\([0-9]*\),*$/\1/p' "$1" | head -n 1)
    [ -n "$owner" ] && [ -r "/proc/$owner/stat" ] || return 1
    [ "$(sed 's/.*) //' "/proc/$owner/stat" 2>/dev/null | cut -d ' ' -f 20)" = "$ticks" ]
}

echo "now $(date +%s)"
[ "$mode" = whole ] && kind=-x || kind=-s
while :; do
    [ ! -e "$folder/host.lock" ] || mine "$folder/host.lock" group ||
        { echo "stranger $(told "$folder/host.lock")"; exit 1; }
    exec 8>>"$folder/host.lock"
    if ! flock -n "$kind" 8; then
        tell living
        echo "local $(line "$folder/host.lock")"
        exit 1
    fi
    [ "$folder/host.lock" -ef "/proc/$$/fd/8" ] && break
done
tell all "$@"
[ -z "$taken" ] || exit 1
for record in "$folder"/*/undo.json; do
    [ ! -e "$record" ] || { mine "${record%/*}" nobody && mine "$record" nobody; } ||
        { echo "stranger $(told "$record")"; exit 1; }
    [ -f "$record" ] && ! grep -q '"kept": *true' "$record" && unsettled "${record%/undo.json}" "$record" &&
        name=${record%/undo.json} && echo "record ${name##*/}"
done
file="$folder/leases/$token"
exec 9>"$file"
flock -n 9 || refuse "$file is locked"
{ echo "$(date +%s) $lease"; for port in "$@"; do echo "$port"; done; } >&9
exec 7<&-
echo taken
while read -r word; do
    [ "$word" = release ] && rm -f "$file" && exit 0
done
"""
)
# A port is known by its PCI address, and what is no PCI device by its name in its network namespace.
_PORTS = r"""
for device in "$@"; do
    path=$(readlink -f "/sys/class/net/$device/device")
    space=$(readlink /proc/self/ns/net)
    space=${space#"net:["}
    case ${path##*/} in
        *:*.*) echo "${path##*/}" ;;
        *) echo "${space%]}/$device" ;;
    esac
done
"""


@dataclass
class Answer:
    """What the script said before it had ``taken`` the lease, or ended."""

    held: list[Standing] = field(default_factory=list)
    dead: list[Standing] = field(default_factory=list)
    records: list[str] = field(default_factory=list)
    """Runs of that machine itself whose changes are not undone."""
    local: str = ""
    """Content of the lock's file of that machine itself."""
    is_busy: bool = False
    refused: str | None = None
    stranger: str | None = None
    """What others may have written of what root there would obey: its path, owner and mode."""
    taken: bool = False
    now_s: int = 0

    def hear(self, line: str) -> None:
        """One line of it."""
        word, _, rest = line.strip().partition(" ")
        match word:
            case "now" if rest.isdigit():
                self.now_s = int(rest)
            case "held":
                self.held.append(standing_of(rest, self.now_s))
            case "dead":
                self.dead.append(standing_of(rest, self.now_s))
            case "record":
                self.records.append(rest)
            case "local":
                self.local, self.is_busy = rest, True
            case "refused":
                self.refused = rest
            case "stranger":
                self.stranger = rest
            case "taken":
                self.taken = True


def take_command(folder: str, lease: Lease, token: str, ports: Sequence[str] | None) -> tuple[str, ...]:
    """The holder's process; ``ports`` None: the whole machine. Its lines are for an ``Answer``."""
    mode = "whole" if ports is None else "ports"
    text, *lines = lease_text(lease, ports or ())
    return ("sh", "-c", _SCRIPT, "nicbench-lease", folder, mode, token, text, *lines)


def ports_command(devices: Sequence[str]) -> tuple[str, ...]:
    """Prints for each network device, in order, what its port is known by on that machine."""
    return ("sh", "-c", _PORTS, "nicbench-ports", *devices)


_ANSWER_TIMEOUT_S = 150.0
_END_TIMEOUT_S = 10.0


class HostLease:
    """``ports`` are the names that machine uses, None for the whole machine. ``lost`` is called if the lease ends
    early.
    """

    def __init__(
        self,
        host: Host,
        run_id: str,
        ports: Sequence[str] | None,
        lost: Callable[[str], None] = lambda _sentence: None,
        folder: Path = RUNTIME_FOLDER,
    ) -> None:
        self._host = host
        self._lease = lease_of_this_process(run_id, host.options.lease if isinstance(host, SshHost) else None)
        self._ports = None if ports is None else tuple(dict.fromkeys(ports))
        self._lost = lost
        self._folder = folder
        self._process: Process | None = None
        self._watching: asyncio.Task[None] | None = None
        self._connected: Machine | None = None

    async def take(self) -> list[str]:
        """Takes it; says whose dead leases were found. BusyError names living holders."""
        token = secrets.token_hex(8)
        process = await self._host.start(take_command(str(self._folder), self._lease, token, self._ports))
        try:
            answer = await self._answer(process)
            self._check(answer, process)
        except BaseException:
            await asyncio.shield(_end(process))
            raise
        self._process = process
        if isinstance(self._host, SshHost):
            self._connected = machine(self._host.options)
            self._connected.leases += 1
        self._watching = asyncio.create_task(self._watch(process))
        return [f"{self._host.name}: {standing.words} left a lease behind: it was removed" for standing in answer.dead]

    async def release(self) -> None:
        """Gives it back; nothing happens where it is not held."""
        process, self._process = self._process, None
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait((self._watching,))
            self._watching = None
        if self._connected is not None:
            self._connected.leases -= 1
            self._connected = None
        if process is not None:
            await _end(process)

    async def _answer(self, process: Process) -> Answer:
        answer = Answer()
        while not answer.taken and (line := await process.read_line(_ANSWER_TIMEOUT_S)) is not None:
            answer.hear(line)
        return answer

    def _check(self, answer: Answer, process: Process) -> None:
        name = self._host.name
        if answer.refused is not None:
            step = f"log in there as root, or let {self._folder} belong to a group of all who measure"
            raise NotReadyError(f"no lease can be taken there: {answer.refused}", place=name, next_step=step)
        if answer.stranger is not None:
            step = "there: read it; if it is yours, `chown root` and `chmod go-w` it; if not, remove it"
            raise NotReadyError(f"{answer.stranger}: {WHY}", place=name, next_step=step)
        if answer.taken and not answer.records:
            return
        if answer.taken:
            runs = ", ".join(answer.records)
            raise NotReadyError(
                f"a run on that machine died and its changes are not undone: {runs}",
                place=name,
                next_step=f"there: sudo nicbench restore {answer.records[0]}",
            )
        if answer.held:
            raise busy_error(self._find_conflicting(answer.held), name)
        here = standing_of_holder(answer.local, answer.now_s)
        if here is not None or answer.is_busy:
            raise busy_error([here] if here is not None else [], name)
        raise HostError(f"no lease can be taken there: {process.stderr_tail()}", place=name)

    def _find_conflicting(self, held: list[Standing]) -> list[Standing]:
        """Of the living leases those that ours would meet: the whole machine meets all."""
        if self._ports is None:
            return held
        wanted = set(self._ports)
        return [each for each in held if not each.ports or wanted & set(each.ports)] or held

    async def _watch(self, process: Process) -> None:
        """Says nothing to the process and waits for its end: no timer wakes the controller."""
        reason = "its process ended"
        with contextlib.suppress(asyncio.CancelledError):
            try:
                while await process.read_line() is not None:
                    pass
            except NicbenchError as error:
                reason = error.message
            self._lost(f"{self._host.name}: the lease was lost ({reason}): another run may have used it since")


async def _end(process: Process) -> None:
    with contextlib.suppress(NicbenchError):
        await process.write_line(RELEASE)
        await process.close_stdin()
        try:
            await process.wait(_END_TIMEOUT_S)
        except HostError:
            await process.signal(signal.SIGKILL)
