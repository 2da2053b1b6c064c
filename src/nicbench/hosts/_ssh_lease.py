"""A connection with its keeper: commands are started on it; it knows when the host was not heard for the lease."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import asyncssh

from nicbench.errors import HostError, NicbenchError, NotReadyError
from nicbench.hosts._channel import Channel
from nicbench.hosts._ssh_channel import SshChannel
from nicbench.hosts._ssh_connect import Hop, close, connect
from nicbench.hosts._ssh_options import SshOptions
from nicbench.hosts._ssh_scripts import LACKING, MISSING, keeper, signalled, wrapped

# sshd allows 10 sessions on a connection (MaxSessions). One is the keeper's, one is kept for signals.
MOST_COMMANDS = 8
_FEWEST_COMMANDS = 2
# What a login script may print before our own first line.
_MOST_NOISE_BYTES = 65536
_RENEWALS = 3
"""In each lease: two may be late."""
_KEEPER_END_S = 3.0
"""A keeper that is not gone by then is left to its host."""


@dataclass(frozen=True, slots=True)
class Keeper:
    """The controller's presence on the host: a process there, and the folder that is there as long as it is."""

    folder: str
    pid: int
    start_ticks: int
    boot_id: str
    user_id: int


class FullError(Exception):
    """This connection takes no further command."""


class LeasedConnection:
    """See the module. Made by ``open``; ``lost`` says, once it has ended by itself, how."""

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
        """Only one session is left for signals."""
        self.commands = 0
        self.lost: HostError | None = None
        self.on_lost: Callable[[], None] | None = None
        self.keeper = Keeper("", 0, 0, "", 0)

    @classmethod
    async def open(cls, options: SshOptions, host: str) -> LeasedConnection:
        """Connects, and starts the keeper. NotReadyError where either cannot be."""
        chain = await connect(options, host)
        connection = cls(chain, host, options.lease)
        try:
            async with asyncio.timeout(options.connect_timeout):
                await connection._start_keeper()
        except (TimeoutError, OSError, asyncssh.Error) as error:
            await close(chain, at_once=True)
            why = f"did not start a shell: {error or f'silent for {options.connect_timeout:g} s'}"
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
        """The command running, and its process id. NotReadyError where there is no such command; FullError."""
        if not self.has_room:
            raise FullError
        self.commands += 1
        channel = SshChannel()
        try:
            await self._session(channel, wrapped(self.keeper.folder, self._token, command, environment))
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
        """A command has ended, or nobody cares any more."""
        channel.close()
        self.commands -= 1

    async def signal(self, session: int, number: int) -> None:
        """To every process of a command's session; nothing happens where that is gone, or the connection."""
        channel = SshChannel()
        with contextlib.suppress(TimeoutError, NicbenchError, FullError):
            async with self._signalling, asyncio.timeout(self._lease_s):
                await self._session(channel, signalled(self.keeper.folder, session, number))
                await channel.until(lambda: channel.closed or channel.status is not None)
        channel.close()

    def failure(self) -> HostError:
        """How the connection ended, for whoever waits for something on it."""
        return self.lost or self._lost_error("the connection ended")

    async def close(self) -> None:
        """In order: what still runs there ends with it."""
        self._closing = True
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait((self._renewing,))
            self._renewing = None
        if self.lost is None:
            self._keeper_channel.write_eof()
            # It ends what still runs there and tidies up: a lab's namespace may be taken from under it afterwards.
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
            self._most = others - 1  # one is left for signals
            raise FullError from error
        except (asyncssh.Error, OSError) as error:
            raise self.failure() from error

    async def _first_line(self, channel: SshChannel) -> list[str]:
        """The words of our own first line, without its token; what a login script prints before it is left out."""
        start = self._token.encode()
        while True:
            await channel.until(lambda: b"\n" in channel.stdout or channel.at_end)
            line, newline, _ = bytes(channel.stdout).partition(b"\n")
            channel.take(len(line) + 1)
            if line.startswith(start):
                return line[len(start) :].decode(errors="replace").split()
            if not newline or len(line) > _MOST_NOISE_BYTES:
                said = (bytes(channel.stderr) or line).decode(errors="replace").strip()[-500:]
                if channel.closed and channel.error is not None:
                    raise self.failure()
                raise HostError(
                    f"no command can be started: {said or 'the shell said nothing'}",
                    place=self._host,
                    next_step="its user needs a shell that runs `sh`; a forced command in authorized_keys is none",
                )

    async def _start_keeper(self) -> None:
        channel = self._keeper_channel
        await self._session(channel, keeper(self._token, self._lease_s))
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
        # Its end is told before its channel closes, and before the end of what ends with it.
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
        """The connection is over, and what runs there with it."""
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
