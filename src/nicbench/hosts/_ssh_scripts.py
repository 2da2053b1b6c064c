"""What runs on a host that is reached by ssh: POSIX shell, and of util-linux and coreutils what every Linux has.

**The keeper** is one process for each connection. It holds a lock as long as it hears of nicbench. Once its stdin
ends, or nothing came for the lease, or it is killed, the kernel gives the lock free: no program has to notice anything.
**A watcher** beside each command waits for that lock, and then kills the command's session. It dies with its command.
A half-open connection never ends a stdin (sshd waits for TCP, and that for a quarter of an hour): the lease does.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

NEEDED = ("flock", "setpriv", "setsid", "timeout", "dd", "mktemp", "cat")
"""Without them no command could be promised to end."""

MISSING = "missing"
"""The wrapper's answer in the place of a process id: there is no such command."""
LACKING = "lacking"
"""The keeper's answer: what it needs is not there."""

_KEEPER = r"""
token=$1 lease=$2 wrapper=$3
umask 077
lacking=
for tool in flock setpriv setsid timeout dd mktemp cat; do
    command -v "$tool" >/dev/null 2>&1 || lacking="$lacking $tool"
done
[ -z "$lacking" ] || { echo "$token lacking$lacking"; exit 1; }
folder=$(mktemp -d /run/nicbench-lease.XXXXXX 2>/dev/null) ||
    folder=$(mktemp -d "${XDG_RUNTIME_DIR:-/tmp}/nicbench-lease.XXXXXX") ||
    { echo "$token lacking a folder to write to"; exit 1; }
trap 'rm -rf "$folder"' EXIT
trap '' HUP INT TERM PIPE
exec 9>"$folder/lock"
flock 9
printf '%s\n' "$wrapper" >"$folder/run"
read -r boot </proc/sys/kernel/random/boot_id
read -r stat <"/proc/$$/stat"
set -- ${stat##*) }
shift 19
echo "$token keeper $folder $$ $1 $boot $(id -u)"
while [ -n "$(exec 9>&-; exec timeout "$lease" dd bs=64 count=1 2>/dev/null)" ]; do
    echo . 2>/dev/null || break
done
exec 9>&-
sleep 1
[ -f "$folder/guard" ] && sh "$folder/guard"
exit 0
"""

# $0 lies in the keeper's folder. The watcher compares its parent, because that may have ended before the watcher asked
# to be told so; and it finds every process of the session, because some (timeout) make groups of their own.
_WRAPPER = r"""
if [ "$1" = --signal ]; then
    for each in /proc/[0-9]*/stat; do
        { read -r stat <"$each"; } 2>/dev/null || continue
        number=${each#/proc/} number=${number%/stat}
        set -- "$1" "$2" "$3" ${stat##*) }
        [ "$7" = "$3" ] && [ "$number" != $$ ] && kill "-$2" "$number" 2>/dev/null
    done
    exit 0
fi
read -r stat <"/proc/$$/stat"
rest=${stat##*) }; rest=${rest#* }; rest=${rest#* }; rest=${rest#* }
[ "${rest%% *}" = $$ ] || exec setsid sh "$0" "$@"
token=$1 count=$2
shift 2
PATH="$PATH:/usr/sbin:/sbin:/usr/bin:/bin" LC_ALL=C
export PATH LC_ALL
while [ "$count" -gt 0 ]; do
    export "$1"
    shift
    count=$((count - 1))
done
command -v "$1" >/dev/null 2>&1 || { echo "$token missing"; exit 127; }
exec 9<"${0%/*}/lock"
setpriv --pdeathsig KILL sh -c '[ "$PPID" = "$1" ] &&
    exec flock --shared /proc/self/fd/9 sh -c "sh \"\$0\" --signal KILL \$1; kill -KILL -- -\$1" "$2" "$1"
' watcher $$ "$0" </dev/null >/dev/null 2>&1 &
exec 9<&-
echo "$token $$"
exec "$@"
"""


def keeper(token: str, lease_s: float) -> str:
    """The command of the keeper. Its first line is ``TOKEN keeper FOLDER PID START_TICKS BOOT_ID UID``.

    Each byte that it reads renews the lease and is answered by a line with a dot.
    """
    return shlex.join(("exec", "sh", "-c", _KEEPER, "nicbench-keeper", token, f"{lease_s:g}", _WRAPPER))


def wrapped(folder: str, token: str, command: Sequence[str], environment: Mapping[str, str] | None) -> str:
    """The command with its watcher. Its first line is ``TOKEN PID``: the leader of the session that it becomes."""
    variables = [f"{name}={value}" for name, value in (environment or {}).items()]
    return shlex.join(("exec", "sh", f"{folder}/run", token, str(len(variables)), *variables, *command))


def signalled(folder: str, session: int, number: int) -> str:
    """Sends a signal to every process of a command's session."""
    return shlex.join(("exec", "sh", f"{folder}/run", "--signal", str(number), str(session)))
