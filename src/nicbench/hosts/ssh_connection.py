"""Opens ssh connections, over jump hosts or a proxy command; explains why a host cannot be reached and what to do."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shlex
import signal
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh

from nicbench.core.errors import NotReadyError
from nicbench.core.frozen import frozen
from nicbench.hosts.options import SshOptions

# Like any child, a proxy command must not outlive the controller.
_DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")
_END_TIMEOUT_S = 0.5
_USUAL_KNOWN_HOSTS = (
    "~/.ssh/known_hosts",
    "~/.ssh/known_hosts2",
    "/etc/ssh/ssh_known_hosts",
    "/etc/ssh/ssh_known_hosts2",
)
# Limits the wait for data that is still to be sent, which the other side may never take.
_CLOSE_TIMEOUT_S = 3.0


# Errors: one sentence and one command for each usual reason.


@dataclass
class HopAttempt:
    """An attempt to connect to one hop: where it goes, and the host key that was presented there, if any."""

    address: str
    port: int
    user: str
    known_hosts: tuple[str, ...]
    before: tuple[str, ...] = ()
    """Options with which OpenSSH's ssh gets there: ``-J``, ``-o ProxyCommand``."""
    key: asyncssh.SSHKey | None = None
    expected: tuple[asyncssh.SSHKey, ...] = field(default=())
    revoked: tuple[asyncssh.SSHKey, ...] = field(default=())

    @property
    def where(self) -> str:
        return f"{self.user}@{self.address}:{self.port}"

    @property
    def name(self) -> str:
        """The host as known_hosts names it."""
        return self.address if self.port == 22 else f"[{self.address}]:{self.port}"

    def by_hand(self, *last: str) -> str:
        """Returns the command line that makes the same connection with OpenSSH's ssh."""
        file = ("-o", f"UserKnownHostsFile={self.known_hosts[0]}") if self.known_hosts else ()
        return shlex.join(("ssh", *self.before, *file, "-p", str(self.port), f"{self.user}@{self.address}", *last))


def connection_error(error: BaseException, attempt: HopAttempt, host: str, timeout_s: float) -> NotReadyError:
    """Makes the NotReadyError that says why a hop cannot be reached, with a next step."""
    message, step = _explain(error, attempt, timeout_s)
    return NotReadyError(f"ssh to {attempt.where}: {message}", place=host, next_step=step)


def _explain(error: BaseException, attempt: HopAttempt, timeout_s: float) -> tuple[str, str]:
    match error:
        case asyncssh.HostKeyNotVerifiable() if attempt.key is not None:
            return _explain_host_key(attempt, attempt.key)
        case asyncssh.HostKeyNotVerifiable() if "revoked" in error.reason:
            shown = " or ".join(f"{key.get_algorithm()} {key.get_fingerprint()}" for key in attempt.revoked)
            return _explain_revoked(attempt, shown or "it, or the authority that signed it,")
        case asyncssh.HostKeyNotVerifiable() | asyncssh.KeyExchangeFailed():
            return (
                f"its host key cannot be verified: {error.reason}",
                f"compare its host keys: {attempt.by_hand('true')}",
            )
        case asyncssh.PermissionDenied():
            return (
                "it refused every key that was offered",
                (
                    f"let it know one: ssh-copy-id -p {attempt.port} {attempt.user}@{attempt.address}; "
                    "or name another `key` or `user`, or load the key into the agent: ssh-add"
                ),
            )
        case TimeoutError():
            return (
                f"no answer within {timeout_s:g} s",
                f"see whether it is up and no filter drops it: {attempt.by_hand()}",
            )
        case socket.gaierror():
            return f"its name is not known ({error.strerror})", "write its address, or an alias of ~/.ssh/config"
        case ConnectionRefusedError():
            return (
                "nothing listens there",
                f"start sshd on it, or name the `port` that sshd listens on (not {attempt.port})",
            )
        case OSError() if error.errno in (errno.ENETUNREACH, errno.EHOSTUNREACH):
            return f"there is no route to it ({error.strerror})", f"check the address: ip route get {attempt.address}"
        case asyncssh.ChannelOpenError():
            return f"the host before it could not reach it ({error.reason})", f"try it by hand: {attempt.by_hand()}"
        case asyncssh.KeyImportError() | asyncssh.KeyEncryptionError():
            return f"the private key cannot be used: {error}", "load it into the agent (ssh-add) and leave `key` out"
        case asyncssh.DisconnectError():
            return f"the connection ended: {error.reason}", f"try it by hand: {attempt.by_hand()}"
        case _:
            return str(error) or type(error).__name__, f"try it by hand: {attempt.by_hand()}"


def _explain_host_key(attempt: HopAttempt, key: asyncssh.SSHKey) -> tuple[str, str]:
    """Explains an unknown host key, a changed one, which may be a man in the middle, or a revoked one."""
    shown = f"{key.get_algorithm()} {key.get_fingerprint()}"
    if key in attempt.revoked:
        return _explain_revoked(attempt, shown)
    if not attempt.expected:
        return (
            f"its host key is not known: {shown}",
            (
                "compare this fingerprint with the host's own (there: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub)"
                f", and accept it once by hand: {attempt.by_hand('true')}"
            ),
        )
    known = ", ".join(f"{each.get_algorithm()} {each.get_fingerprint()}" for each in attempt.expected)
    file = f" -f {shlex.quote(attempt.known_hosts[0])}" if attempt.known_hosts else ""
    return (
        (
            f"its host key has CHANGED: it shows {shown}, known is {known}; "
            "somebody sits between, or it was installed anew"
        ),
        (
            f"only if you know why: ssh-keygen -R {shlex.quote(attempt.name)}{file}; then accept the new one once by "
            f"hand: {attempt.by_hand('true')}"
        ),
    )


def _explain_revoked(attempt: HopAttempt, shown: str) -> tuple[str, str]:
    files = ", ".join(attempt.known_hosts or _USUAL_KNOWN_HOSTS)
    return (
        f"its host key is REVOKED: {shown} is marked `@revoked` in {files}; whoever shows it may have stolen it",
        "have the host make a new key (ssh-keygen -A there, after its old ones are removed); never accept this one",
    )


class Proxy:
    """A command whose stdin and stdout are the connection, like ssh's ProxyCommand; it ends with the connection.

    ``socket`` is our end. The command's stderr goes to the terminal, as with ssh.
    """

    def __init__(self, process: asyncio.subprocess.Process, ours: socket.socket) -> None:
        self._process = process
        self.socket = ours

    @classmethod
    async def start(cls, command: Sequence[str]) -> Proxy:
        """Starts the command. OSError where it cannot be started."""
        ours, theirs = socket.socketpair()
        try:
            process = await asyncio.create_subprocess_exec(
                *_DIES_WITH_US, *command, stdin=theirs.fileno(), stdout=theirs.fileno(), start_new_session=True
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        return cls(process, ours)

    async def close(self) -> None:
        """Closes our end, at which the command should end; kills it where it does not."""
        self.socket.close()
        try:
            async with asyncio.timeout(_END_TIMEOUT_S):
                await self._process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.wait()


# Connections. The host key of every hop is always checked.


@frozen
class Hop:
    """A connection to one hop, and the proxy command that it goes through, if any."""

    connection: asyncssh.SSHClientConnection
    proxy: Proxy | None


async def connect(options: SshOptions, host: str) -> list[Hop]:
    """Connects to a host; returns its hop last, after those of the jump hosts. NotReadyError says why it failed."""
    chain: list[Hop] = []
    try:
        target = await _resolve(host, options, options.address, options.port, options.user, options.key)
        hops = options.jump or tuple(hop for hop in str(target.tunnel or "").split(",") if hop)
        before: tuple[str, ...] = ()
        for number, hop in enumerate(hops):
            user, _, address = hop.rpartition("@")
            name, port = _address_and_port(address)
            near = await _resolve(host, options, name, port, user or None, None)
            if options.key is not None and not near.config.get("IdentityFile"):
                near = await _resolve(host, options, name, port, user or None, options.key)
            chain.append(await _connect_hop(near, options, host, chain[-1:], before))
            before = ("-J", ",".join(hops[: number + 1]))
        if options.proxy_command:
            before = ("-o", f"ProxyCommand={' '.join(options.proxy_command)}")
        chain.append(await _connect_hop(target, options, host, chain[-1:], before, options.proxy_command))
    except BaseException:
        await close(chain)
        raise
    return chain


async def close(chain: Sequence[Hop], *, at_once: bool = False) -> None:
    """Closes the hops, the last first; ``at_once`` where the other side does not answer any more."""
    for hop in reversed(chain):
        hop.connection.abort() if at_once else hop.connection.close()
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                await hop.connection.wait_closed()
        hop.connection.abort()
        if hop.proxy is not None:
            await hop.proxy.close()


class _Client(asyncssh.SSHClient):
    """Remembers the host key that was refused, for the error."""

    def __init__(self, attempt: HopAttempt) -> None:
        self._attempt = attempt

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        self._attempt.key = key
        return False  # asked only for keys that no known_hosts has


async def _resolve(
    host: str, options: SshOptions, address: str, port: int | None, user: str | None, key: str | None
) -> asyncssh.SSHClientConnectionOptions:
    """Combines the given settings with what ~/.ssh/config says of this address; the given ones win."""
    asked: dict[str, Any] = {"username": user} if user is not None else {}
    if port is not None:
        asked["port"] = port
    if key is not None:
        asked["client_keys"] = [_expand(key)]
    try:
        resolved: asyncssh.SSHClientConnectionOptions = await asyncssh.SSHClientConnectionOptions.construct(
            host=address, config=(), password_auth=False, kbdint_auth=False, agent_forwarding=False, **asked
        )
        return resolved
    except (OSError, ValueError) as error:
        attempt = HopAttempt(address, port or 22, user or "", ())
        raise connection_error(error, attempt, host, options.connect_timeout) from error


async def _connect_hop(
    resolved: asyncssh.SSHClientConnectionOptions,
    options: SshOptions,
    host: str,
    through: Sequence[Hop],
    before: tuple[str, ...],
    proxy_command: Sequence[str] | None = None,
) -> Hop:
    files = _known_hosts_files(options, resolved)
    named = tuple(files[:1]) if options.known_hosts or resolved.known_hosts else ()
    attempt = HopAttempt(resolved.host, resolved.port, resolved.username, named, before)
    # None would switch the check off: `UserKnownHostsFile none` in ~/.ssh/config does that.
    text = "# known hosts\n" + "\n".join(
        file.read_text(errors="replace") for file in map(Path, files) if file.is_file()
    )
    command = proxy_command or (() if through else resolved.proxy_command)
    proxy: Proxy | None = None
    try:
        proxy = await Proxy.start(command) if command else None
        known = asyncssh.import_known_hosts(text)
        name = resolved.host_key_alias or resolved.host
        matching = known.match(name, "", resolved.port if resolved.port != 22 else None)
        attempt.expected, attempt.revoked = tuple(matching[0]), tuple(matching[2])
        connection = await asyncssh.connect(
            resolved.host,
            resolved.port,
            options=resolved,
            sock=proxy.socket if proxy else None,
            tunnel=through[0].connection if through else None,
            proxy_command=None,
            known_hosts=known,
            client_factory=lambda: _Client(attempt),
            connect_timeout=options.connect_timeout,
            login_timeout=options.connect_timeout,
        )
        return Hop(connection, proxy)
    except BaseException as error:
        if proxy is not None:
            await proxy.close()
        if isinstance(error, OSError | asyncssh.Error | ValueError):
            raise connection_error(error, attempt, host, options.connect_timeout) from error
        raise


def _known_hosts_files(options: SshOptions, resolved: asyncssh.SSHClientConnectionOptions) -> list[str]:
    if options.known_hosts is not None:
        return [_expand(options.known_hosts)]
    configured = resolved.known_hosts
    if isinstance(configured, list) and configured:
        return [_expand(str(each)) for each in configured]
    return [_expand(each) for each in _USUAL_KNOWN_HOSTS]


def _expand(path: str) -> str:
    return str(Path(path).expanduser())


def _address_and_port(text: str) -> tuple[str, int | None]:
    """Splits ``host``, ``host:22``, ``[2001:db8::1]:22`` or ``2001:db8::1`` into address and port."""
    if text.startswith("["):
        address, _, rest = text[1:].partition("]")
        return address, int(rest[1:]) if rest.startswith(":") and rest[1:].isdigit() else None
    address, colon, port = text.rpartition(":")
    if colon and port.isdigit() and ":" not in address:
        return address, int(port)
    return text, None
