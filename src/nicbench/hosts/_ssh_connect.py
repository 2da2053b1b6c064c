"""Opens connections by ssh, over jump hosts or a proxy command. The host key of every hop is checked in any case."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncssh

from nicbench.hosts._ssh_errors import Seen, told
from nicbench.hosts._ssh_options import SshOptions
from nicbench.hosts._ssh_proxy import Proxy

_USUAL_KNOWN_HOSTS = (
    "~/.ssh/known_hosts",
    "~/.ssh/known_hosts2",
    "/etc/ssh/ssh_known_hosts",
    "/etc/ssh/ssh_known_hosts2",
)
# What is still to be sent may never be taken.
_CLOSE_TIMEOUT_S = 3.0


@dataclass(frozen=True, slots=True)
class Hop:
    """A connection, and the command that it goes through."""

    connection: asyncssh.SSHClientConnection
    proxy: Proxy | None


async def connect(options: SshOptions, host: str) -> list[Hop]:
    """The connection, last, after those of the jump hosts on its way. NotReadyError says why there is none."""
    chain: list[Hop] = []
    try:
        target = await _resolved(host, options, options.address, options.port, options.user, options.key)
        hops = options.jump or tuple(hop for hop in str(target.tunnel or "").split(",") if hop)
        before: tuple[str, ...] = ()
        for number, hop in enumerate(hops):
            user, _, address = hop.rpartition("@")
            name, port = _address_and_port(address)
            near = await _resolved(host, options, name, port, user or None, None)
            if options.key is not None and not near.config.get("IdentityFile"):
                near = await _resolved(host, options, name, port, user or None, options.key)
            chain.append(await _hop(near, options, host, chain[-1:], before))
            before = ("-J", ",".join(hops[: number + 1]))
        if options.proxy_command:
            before = ("-o", f"ProxyCommand={' '.join(options.proxy_command)}")
        chain.append(await _hop(target, options, host, chain[-1:], before, options.proxy_command))
    except BaseException:
        await close(chain)
        raise
    return chain


async def close(chain: Sequence[Hop], *, at_once: bool = False) -> None:
    """Ends the connection and then those below it; ``at_once`` where the other side hears nothing any more."""
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

    def __init__(self, seen: Seen) -> None:
        self._seen = seen

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        self._seen.key = key
        return False  # asked only for keys that no known_hosts has


async def _resolved(
    host: str, options: SshOptions, address: str, port: int | None, user: str | None, key: str | None
) -> asyncssh.SSHClientConnectionOptions:
    """What is asked for, over what ~/.ssh/config says of this address."""
    asked: dict[str, Any] = {"username": user} if user is not None else {}
    if port is not None:
        asked["port"] = port
    if key is not None:
        asked["client_keys"] = [_expanded(key)]
    try:
        resolved: asyncssh.SSHClientConnectionOptions = await asyncssh.SSHClientConnectionOptions.construct(
            host=address, config=(), password_auth=False, kbdint_auth=False, agent_forwarding=False, **asked
        )
        return resolved
    except (OSError, ValueError) as error:
        seen = Seen(address, port or 22, user or "", ())
        raise told(error, seen, host, options.connect_timeout) from error


async def _hop(
    resolved: asyncssh.SSHClientConnectionOptions,
    options: SshOptions,
    host: str,
    through: Sequence[Hop],
    before: tuple[str, ...],
    proxy_command: Sequence[str] | None = None,
) -> Hop:
    files = _known_hosts_files(options, resolved)
    named = tuple(files[:1]) if options.known_hosts or resolved.known_hosts else ()
    seen = Seen(resolved.host, resolved.port, resolved.username, named, before)
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
        seen.expected = tuple(known.match(name, "", resolved.port if resolved.port != 22 else None)[0])
        connection = await asyncssh.connect(
            resolved.host,
            resolved.port,
            options=resolved,
            sock=proxy.socket if proxy else None,
            tunnel=through[0].connection if through else None,
            proxy_command=None,
            known_hosts=known,
            client_factory=lambda: _Client(seen),
            connect_timeout=options.connect_timeout,
            login_timeout=options.connect_timeout,
        )
        return Hop(connection, proxy)
    except BaseException as error:
        if proxy is not None:
            await proxy.close()
        if isinstance(error, OSError | asyncssh.Error | ValueError):
            raise told(error, seen, host, options.connect_timeout) from error
        raise


def _known_hosts_files(options: SshOptions, resolved: asyncssh.SSHClientConnectionOptions) -> list[str]:
    if options.known_hosts is not None:
        return [_expanded(options.known_hosts)]
    configured = resolved.known_hosts
    if isinstance(configured, list) and configured:
        return [_expanded(str(each)) for each in configured]
    return [_expanded(each) for each in _USUAL_KNOWN_HOSTS]


def _expanded(path: str) -> str:
    return str(Path(path).expanduser())


def _address_and_port(text: str) -> tuple[str, int | None]:
    """``host``, ``host:22``, ``[2001:db8::1]:22``, ``2001:db8::1``."""
    if text.startswith("["):
        address, _, rest = text[1:].partition("]")
        return address, int(rest[1:]) if rest.startswith(":") and rest[1:].isdigit() else None
    address, colon, port = text.rpartition(":")
    if colon and port.isdigit() and ":" not in address:
        return address, int(port)
    return text, None
