"""What takes a lease on another machine: POSIX shell and flock(1) there, and what its answers mean.

**A lease is a process on that machine** which holds locks of the kernel: ``host.lock``, the very lock that a run on
that machine itself takes (``lock.py``), alone for the whole machine or together with others for ports of it; and its
own file in ``leases``, whose content says whose it is. It lives as long as its stdin, and so as long as the controller
is heard of; when it ends, however it ends, the kernel gives the locks free. So no two clocks are compared, nothing has
to be renewed during a trial, and a file whose lock is free is of a dead run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from nicbench.tuning.holder import Lease, Standing, lease_text, standing_of

RELEASE = "release"
"""The word by which a lease is given back."""
# All takers come one after the other, under a lock of the folder, so that each sees what the one before has written.
# A holder's file begins with the time by this machine's clock. It is removed where the lease is given back; of a run
# that died it stays, for the next to tell of.
_SCRIPT = r"""
folder=$1 mode=$2 token=$3 lease=$4
shift 4
refuse() { echo "refused $1"; exit 1; }
command -v flock >/dev/null 2>&1 || refuse "flock is not installed (package util-linux)"
umask 022
# Twice: somebody may remove the empty folder in between.
mkdir -p "$folder/leases" 2>/dev/null || mkdir -p "$folder/leases" 2>/dev/null ||
    refuse "$(id -un) may not make $folder"
[ -w "$folder" ] && [ -w "$folder/leases" ] || refuse "$(id -un) may not write to $folder"
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
