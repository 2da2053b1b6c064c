"""An ssh connection with a lease: the host ends what was started over it when it loses contact with nicbench.

The scripts below run on the other machine. They need a POSIX shell, and of util-linux and coreutils what every Linux
has.

**The keeper** is one process for each connection. It holds a lock as long as it hears from nicbench. When its stdin
ends, or nothing came for the duration of the lease, or it is killed, the kernel releases the lock: no program has to
notice anything.
**A watcher** beside each command waits for that lock, and then kills the command's session. It dies with its command.
A half-open connection never ends a stdin (sshd waits for TCP, and that for a quarter of an hour): the lease does.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shlex
import signal
import time
from collections.abc import Callable, Mapping, Sequence

import asyncssh

from nicbench.core.errors import HostError, NicbenchError, NotReadyError
from nicbench.core.frozen import frozen
from nicbench.hosts.channel import Channel
from nicbench.hosts.options import SshOptions
from nicbench.hosts.ssh_connection import Hop, close, connect

# The channel of one command on an ssh connection.


class SshChannel(Channel, asyncssh.SSHClientSession[bytes]):
    """A ``Channel`` that is a session of asyncssh."""

    def __init__(self) -> None:
        super().__init__()
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._paused = False

    # Called by asyncssh.

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        self._channel = chan

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        if datatype == asyncssh.EXTENDED_DATA_STDERR:
            self._see_errors(data)
        else:
            self._see_output(data)

    def eof_received(self) -> bool:
        self.at_end = True
        self._tell()
        return True  # our direction stays open: the command may still read

    def exit_status_received(self, status: int) -> None:
        self.status = status
        self._tell()

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:
        self.status = -_signal_number(signal)
        self._tell()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = self.at_end = True
        self.error = exc
        self._writable.set()
        self._tell()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    # Called by nicbench.

    async def write(self, data: bytes) -> None:
        if self._channel is None or self.closed or self._channel.is_closing():
            raise BrokenPipeError
        try:
            self._channel.write(data)
        except OSError as error:
            raise BrokenPipeError from error
        await self._writable.wait()
        if self.closed:
            raise BrokenPipeError

    def write_eof(self) -> None:
        if self._channel is not None and not self.closed and not self._channel.is_closing():
            self._channel.write_eof()

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()

    def _hold_back(self) -> None:
        if self._channel is None or self.closed:
            return
        full = self._is_full
        if full and not self._paused:
            self._channel.pause_reading()
        elif self._paused and not full:
            self._channel.resume_reading()
        self._paused = full


def _signal_number(name: str) -> int:
    """Returns the number of a signal from its name without SIG (RFC 4254, section 6.10); SIGKILL if unknown."""
    try:
        return signal.Signals[f"SIG{name.partition('@')[0]}"].value
    except KeyError:
        return signal.SIGKILL.value


MISSING = "missing"
"""The wrapper's answer, in place of a process id, if the command does not exist."""
LACKING = "lacking"
"""The keeper's answer that programs which it needs are not there."""
# sshd allows 10 sessions on a connection (MaxSessions). One is the keeper's, one is reserved for signals.
MOST_COMMANDS = 8
_FEWEST_COMMANDS = 2
# Bounds what a login script may print before the first line of ours.
_MOST_NOISE_BYTES = 65536
_RENEWALS = 3
"""Renewals within each lease, so that two may be late."""
_KEEPER_END_S = 3.0
"""How long to wait for the end of a keeper before it is left to its host."""

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

# $0 is in the keeper's folder. The watcher compares its parent's pid, because the parent may have ended before the
# watcher set its death signal; and it signals every process of the session, because some (timeout) make process groups
# of their own.
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


def keeper_command(token: str, lease_s: float) -> str:
    """Builds the keeper's command line. It first prints ``TOKEN keeper FOLDER PID START_TICKS BOOT_ID UID``.

    Each byte that the keeper reads renews the lease and is answered with a line that holds a dot.
    """
    return shlex.join(("exec", "sh", "-c", _KEEPER, "nicbench-keeper", token, f"{lease_s:g}", _WRAPPER))


def wrap_command(folder: str, token: str, command: Sequence[str], environment: Mapping[str, str] | None) -> str:
    """Builds the command line that runs a command with its watcher. It first prints ``TOKEN PID``.

    PID is the leader of the session that the command becomes.
    """
    variables = [f"{name}={value}" for name, value in (environment or {}).items()]
    return shlex.join(("exec", "sh", f"{folder}/run", token, str(len(variables)), *variables, *command))


def signal_command(folder: str, session: int, number: int) -> str:
    """Builds the command line that sends a signal to every process of a command's session."""
    return shlex.join(("exec", "sh", f"{folder}/run", "--signal", str(number), str(session)))


@frozen
class Keeper:
    """The controller's presence on the host: the keeper process, and its folder, which exists as long as it runs."""

    folder: str
    pid: int
    start_ticks: int
    boot_id: str
    user_id: int


class FullError(Exception):
    """The connection has no room for another command."""


class LeasedConnection:
    """An ssh connection with its keeper, made by ``open``. ``lost`` is the error once it has ended by itself."""

    def __init__(self, chain: list[Hop], host: str, lease_s: float) -> None:
        self._chain = chain
        self._host = host
        self._lease_s = lease_s
        self._token = f"nicbench-{secrets.token_hex(8)}"
        self._keeper_channel = SshChannel()
        self._heard_s = time.monotonic()
        self._renewing: asyncio.Task[None] | None = None
        self._most = MOST_COMMANDS
        self._closing = False
        self._signalling = asyncio.Lock()
        """Only one session is reserved for signals, so they are sent one at a time."""
        self.commands = 0
        self.lost: HostError | None = None
        self.on_lost: Callable[[], None] | None = None
        self.keeper = Keeper("", 0, 0, "", 0)

    @classmethod
    async def open(cls, options: SshOptions, host: str) -> LeasedConnection:
        """Connects and starts the keeper. NotReadyError where either fails."""
        chain = await connect(options, host)
        connection = cls(chain, host, options.lease)
        try:
            async with asyncio.timeout(options.connect_timeout):
                await connection._start_keeper()
        except (TimeoutError, OSError, asyncssh.Error) as error:
            await close(chain, at_once=True)
            why = f"did not start a shell: {str(error) or f'silent for {options.connect_timeout:g} s'}"
            raise NotReadyError(why, place=host, next_step="try by hand: ssh HOST true") from error
        except BaseException:
            await close(chain, at_once=True)
            raise
        connection._renewing = asyncio.create_task(connection._renew())
        return connection

    @property
    def has_room(self) -> bool:
        return self.lost is None and self.commands < self._most

    async def start(self, command: Sequence[str], environment: Mapping[str, str] | None) -> tuple[SshChannel, int]:
        """Starts a command; returns its channel and pid. NotReadyError if the command does not exist; FullError."""
        if not self.has_room:
            raise FullError
        self.commands += 1
        channel = SshChannel()
        try:
            await self._session(channel, wrap_command(self.keeper.folder, self._token, command, environment))
            words = await self._first_line(channel)
        except BaseException:
            channel.close()
            self.commands -= 1
            raise
        if words == [MISSING]:
            self.release(channel)
            raise NotReadyError(
                f"{command[0]}: command not found",
                place=self._host,
                next_step="install it on that host; nicbench doctor names the package",
            )
        return channel, int(words[0])

    def release(self, channel: Channel) -> None:
        """Closes the channel of a command that has ended or is not needed any more."""
        channel.close()
        self.commands -= 1

    async def signal(self, session: int, number: int) -> None:
        """Signals every process of a command's session; nothing happens where the session or connection is gone."""
        channel = SshChannel()
        with contextlib.suppress(TimeoutError, NicbenchError, FullError):
            async with self._signalling, asyncio.timeout(self._lease_s):
                await self._session(channel, signal_command(self.keeper.folder, session, number))
                await channel.until(lambda: channel.closed or channel.status is not None)
        channel.close()

    def failure(self) -> HostError:
        """Returns the error for whoever waits for something on this connection after it was lost."""
        return self.lost or self._lost_error("the connection ended")

    async def close(self) -> None:
        """Closes the connection in order; the keeper ends what still runs on the host."""
        self._closing = True
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait((self._renewing,))
            self._renewing = None
        if self.lost is None:
            self._keeper_channel.write_eof()
            # The keeper ends what still runs there and tidies up; afterwards a lab's namespace may be removed.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_KEEPER_END_S):
                    await self._keeper_channel.until(lambda: self._keeper_channel.at_end)
        await close(self._chain, at_once=self.lost is not None)

    async def _session(self, channel: SshChannel, command: str) -> None:
        try:
            await self._chain[-1].connection.create_session(
                lambda: channel, command, encoding=None, request_pty=False, env={}
            )
        except asyncssh.ChannelOpenError as error:
            if self.lost is not None:
                raise self.lost from error
            others = self.commands - 1
            if others < _FEWEST_COMMANDS:
                raise NotReadyError(
                    f"its sshd opens no further session on a connection: {error.reason}",
                    place=self._host,
                    next_step="let MaxSessions in its sshd_config be at least 4 (10 is sshd's own)",
                ) from error
            self._most = others - 1  # one is reserved for signals
            raise FullError from error
        except (asyncssh.Error, OSError) as error:
            raise self.failure() from error

    async def _first_line(self, channel: SshChannel) -> list[str]:
        """Reads the first line with our token and returns its other words; skips what a login script prints before."""
        start = self._token.encode()
        while True:
            await channel.until(lambda: b"\n" in channel.stdout or channel.at_end)
            line, newline, _ = bytes(channel.stdout).partition(b"\n")
            channel.take(len(line) + 1)
            if line.startswith(start):
                return line[len(start) :].decode(errors="replace").split()
            if not newline or len(line) > _MOST_NOISE_BYTES:
                if self.lost is not None or (channel.closed and channel.error is not None):
                    raise self.failure()
                said = (bytes(channel.stderr) or line).decode(errors="replace").strip()[-500:]
                raise HostError(
                    f"no command can be started: {said or 'the shell said nothing'}",
                    place=self._host,
                    next_step="its user needs a shell that runs `sh`; a forced command in authorized_keys is none",
                )

    async def _start_keeper(self) -> None:
        channel = self._keeper_channel
        await self._session(channel, keeper_command(self._token, self._lease_s))
        words = await self._first_line(channel)
        if words[:1] == [LACKING]:
            raise NotReadyError(
                f"this host lacks {', '.join(words[1:])}",
                place=self._host,
                next_step="install util-linux and coreutils there: without them nothing ends when nicbench does",
            )
        folder, pid, ticks, boot, user = words[1:6]
        self.keeper = Keeper(folder, int(pid), int(ticks), boot, int(user))
        channel.on_change = self._hear
        self._heard_s = time.monotonic()

    def _hear(self) -> None:
        channel = self._keeper_channel
        if channel.stdout:
            channel.take(len(channel.stdout))
            self._heard_s = time.monotonic()
        # The exit status arrives before the channel closes, and before the end of the commands that end with it.
        if (channel.closed or channel.status is not None) and not self._closing:
            self.give_up("the connection ended" if channel.status is None else "the host ended the lease")

    async def _renew(self) -> None:
        while self.lost is None:
            with contextlib.suppress(BrokenPipeError):
                await self._keeper_channel.write(b".")
            await asyncio.sleep(self._lease_s / _RENEWALS)
            if (silent_s := time.monotonic() - self._heard_s) > self._lease_s:
                self.give_up(f"silent for {silent_s:.0f} s")

    def give_up(self, why: str) -> None:
        """Ends the connection as lost; what runs over it ends too."""
        if self.lost is None:
            self.lost = self._lost_error(why)
            self._chain[-1].connection.abort()
            if self.on_lost is not None:
                self.on_lost()

    def _lost_error(self, why: str) -> HostError:
        return HostError(
            f"the ssh connection was lost: {why}. What nicbench ran there ends, and its settings are put back there, "
            f"within {self._lease_s:g} s",
            place=self._host,
            next_step="see whether the host and the way to it are up; then nicbench restore RUN checks its settings",
        )
