"""A real sshd, with keys and a configuration of the test's own, that is spoken to over the pipes of a proxy command."""

from __future__ import annotations

import getpass
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.commands import run_checked

from nicbench.hosts.kinds.ssh import SshHost
from nicbench.hosts.options import SshOptions

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/sbin")


def make_server_folder(folder: Path) -> Path:
    """Makes keys of a user, a stranger and two hosts there, and what sshd and its client need to know of them."""
    folder.mkdir(exist_ok=True)
    for name in ("user", "stranger", "host", "other_host"):
        run_checked(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", folder / name))
    (folder / "authorized_keys").write_text((folder / "user.pub").read_text())
    (folder / "known_hosts").write_text(f"* {(folder / 'host.pub').read_text()}")
    (folder / "sshd_config").write_text(
        f"HostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized_keys\nStrictModes no\nUsePAM no\n"
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\nPidFile none\n"
        f"SetEnv HOME={folder}\n"  # not the startup files of whoever runs the tests
    )
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # where it keeps its unprivileged half
    return folder


@dataclass
class Server:
    """What a test needs to know of the sshd; ``folder`` holds its keys and its log."""

    folder: Path

    @property
    def config(self) -> Path:
        return self.folder / "sshd_config"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    def command(self, *options: str) -> list[str]:
        """One connection's sshd, on stdin and stdout."""
        return [str(SSHD), "-i", "-f", str(self.config), "-E", str(self.folder / "log"), *options]

    def options(self, **changed: Any) -> SshOptions:
        given = {
            "address": "server",
            "user": getpass.getuser(),
            "key": str(self.folder / "user"),
            "known_hosts": str(self.known_hosts),
            "proxy_command": self.command(),
            **changed,
        }
        return SshOptions.model_validate(given)

    def host(self, **changed: Any) -> SshHost:
        return SshHost(self.options(**changed), "client1")
