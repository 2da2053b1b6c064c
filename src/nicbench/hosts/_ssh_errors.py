"""Why a host cannot be reached by ssh, and what to do: one sentence and one command for each usual reason."""

from __future__ import annotations

import errno
import shlex
import socket
from dataclasses import dataclass, field

import asyncssh

from nicbench.errors import HostError, NotReadyError


@dataclass
class Seen:
    """One hop on the way: where it goes, and the host key that was shown there, once there was one."""

    address: str
    port: int
    user: str
    known_hosts: tuple[str, ...]
    before: tuple[str, ...] = ()
    """Options that bring OpenSSH's own ssh there: ``-J``, ``-o ProxyCommand``."""
    key: asyncssh.SSHKey | None = None
    expected: tuple[asyncssh.SSHKey, ...] = field(default=())

    @property
    def where(self) -> str:
        return f"{self.user}@{self.address}:{self.port}"

    @property
    def name(self) -> str:
        """As known_hosts writes it."""
        return self.address if self.port == 22 else f"[{self.address}]:{self.port}"

    def by_hand(self, *last: str) -> str:
        """The same connection by OpenSSH's own ssh."""
        file = ("-o", f"UserKnownHostsFile={self.known_hosts[0]}") if self.known_hosts else ()
        return shlex.join(("ssh", *self.before, *file, "-p", str(self.port), f"{self.user}@{self.address}", *last))


def told(error: BaseException, seen: Seen, host: str, timeout_s: float) -> HostError | NotReadyError:
    """What failed in words; NotReadyError where somebody has to mend something first."""
    message, step = _reason(error, seen, timeout_s)
    return NotReadyError(f"ssh to {seen.where}: {message}", place=host, next_step=step)


def _reason(error: BaseException, seen: Seen, timeout_s: float) -> tuple[str, str]:
    match error:
        case asyncssh.HostKeyNotVerifiable() if seen.key is not None:
            return _of_host_key(seen, seen.key)
        case asyncssh.HostKeyNotVerifiable() | asyncssh.KeyExchangeFailed():
            return f"its host key cannot be verified: {error.reason}", f"compare its host keys: {seen.by_hand('true')}"
        case asyncssh.PermissionDenied():
            return (
                "it refused every key that was offered",
                (
                    f"let it know one: ssh-copy-id -p {seen.port} {seen.user}@{seen.address}; "
                    "or name another `key` or `user`, or load the key into the agent: ssh-add"
                ),
            )
        case TimeoutError():
            return f"no answer within {timeout_s:g} s", f"see whether it is up and no filter drops it: {seen.by_hand()}"
        case socket.gaierror():
            return f"its name is not known ({error.strerror})", "write its address, or an alias of ~/.ssh/config"
        case ConnectionRefusedError():
            return (
                "nothing listens there",
                f"start sshd on it, or name the `port` that sshd listens on (not {seen.port})",
            )
        case OSError() if error.errno in (errno.ENETUNREACH, errno.EHOSTUNREACH):
            return f"there is no route to it ({error.strerror})", f"check the address: ip route get {seen.address}"
        case asyncssh.ChannelOpenError():
            return f"the host before it could not reach it ({error.reason})", f"try it by hand: {seen.by_hand()}"
        case asyncssh.KeyImportError() | asyncssh.KeyEncryptionError():
            return f"the private key cannot be used: {error}", "load it into the agent (ssh-add) and leave `key` out"
        case asyncssh.DisconnectError():
            return f"the connection ended: {error.reason}", f"try it by hand: {seen.by_hand()}"
        case _:
            return str(error) or type(error).__name__, f"try it by hand: {seen.by_hand()}"


def _of_host_key(seen: Seen, key: asyncssh.SSHKey) -> tuple[str, str]:
    """A key that is not known, or another than the known one: only the second may mean that somebody sits between."""
    shown = f"{key.get_algorithm()} {key.get_fingerprint()}"
    if not seen.expected:
        return (
            f"its host key is not known: {shown}",
            (
                "compare this fingerprint with the host's own (there: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub)"
                f", and accept it once by hand: {seen.by_hand('true')}"
            ),
        )
    known = ", ".join(f"{each.get_algorithm()} {each.get_fingerprint()}" for each in seen.expected)
    file = f" -f {shlex.quote(seen.known_hosts[0])}" if seen.known_hosts else ""
    return (
        (
            f"its host key has CHANGED: it shows {shown}, known is {known}; "
            "somebody sits between, or it was installed anew"
        ),
        (
            f"only if you know why: ssh-keygen -R {shlex.quote(seen.name)}{file}; then accept the new one once by "
            f"hand: {seen.by_hand('true')}"
        ),
    )
