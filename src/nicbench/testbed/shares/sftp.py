"""Shares by SFTP in user space (`sftp`): OpenSSH's sftp-server on a plain TCP connection, and sshfs on the client.

It needs only FUSE in the client's kernel. There is no ssh in between, so that nothing is encrypted and no key is needed
(sshfs(1), ``directport``): each share has its own TCP port, which socat opens only to its client's address, and hands
the connection over to an sftp-server (socat(1), ``nofork``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Final

from pydantic import Field, StringConstraints

from nicbench.core.base import Frozen
from nicbench.testbed.shares.base import Command, FileSystem, Program, Server, Share, ShareKind, in_brackets

_SFTP_SERVER: Final = Program(
    "sftp-server",
    "openssh-sftp-server",
    ("/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/lib/ssh/sftp-server"),
)
_OPENSSH: Final = (
    "dpkg-query -W -f '${Package} ${Version}\\n' openssh-sftp-server 2>/dev/null || rpm -q openssh-server 2>/dev/null"
    " || ssh -V 2>&1"
)
Word = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_=.:/+-]+$", max_length=200)]


class SftpOptions(Frozen):
    """``share: {kind: sftp, options: [direct_io]}``.

    Share i has the TCP port ``first_port`` + i - 1. ``connections`` is the number for each mount; ``options`` are
    further options of sshfs.
    """

    first_port: int = Field(default=3201, ge=1, le=65_000)
    """TCP port of share 1; each further share has the next."""
    connections: int = Field(default=1, ge=1, le=64)
    """Connections of each mount (`max_conns` of sshfs)."""
    options: tuple[Word, ...] = ()
    """Further options of sshfs: `[direct_io]`."""


class Sftp(ShareKind):
    """Each share has a TCP port, each connection an sftp-server."""

    kind = "sftp"
    Options = SftpOptions
    options: SftpOptions
    server_programs = (Program("socat", "socat"), _SFTP_SERVER)
    client_programs = (Program("sshfs", "sshfs"),)
    client_file_system = FileSystem("fuse", "file systems in user space (FUSE)")
    statement = (
        "Shares are by SFTP on bare TCP connections, without ssh: nothing is encrypted and no key is asked for. Each "
        "TCP port takes connections from the address of its client alone."
    )
    version_commands: ClassVar[Mapping[str, Command]] = {
        "sftp-server": ("sh", "-c", _OPENSSH),
        "socat": ("sh", "-c", "socat -V | sed -n 's/^\\(socat version [^ ]*\\).*/\\1/p'"),
    }
    client_version_commands: ClassVar[Mapping[str, Command]] = {
        "sshfs": ("sh", "-c", "sshfs --version | grep -m 1 SSHFS")
    }

    def tcp_port(self, share: int) -> int:
        return self.options.first_port + share - 1

    def servers(self, shares: Sequence[Share], found: Mapping[str, str]) -> tuple[Server, ...]:
        return tuple(
            Server(
                name=f"sftp-server of share {share.number}",
                command=self._server(share, found),
                tcp_port=self.tcp_port(share.number),
                address=share.server.facts.address,
            )
            for share in shares
        )

    def _server(self, share: Share, found: Mapping[str, str]) -> Command:
        own, client = share.server.facts.address, share.client.facts.address
        six = ":" in own
        listen = ",".join(
            (
                f"TCP{6 if six else 4}-LISTEN:{self.tcp_port(share.number)}",
                f"bind={in_brackets(own)}",
                f"range={in_brackets(client)}/{128 if six else 32}",
                "reuseaddr",
                "nodelay",
                "fork",
            )
        )
        return (found["socat"], listen, f"EXEC:{found['sftp-server']} -e,nofork")

    def mount_command(self, share: Share) -> Command:
        options = [f"directport={self.tcp_port(share.number)}"]
        if self.options.connections > 1:
            options.append(f"max_conns={self.options.connections}")
        options += self.options.options
        source = f"{in_brackets(share.server.facts.address)}:{share.folder}"
        return ("sshfs", "-o", ",".join(options), source, share.directory)
