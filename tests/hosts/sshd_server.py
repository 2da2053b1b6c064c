"""A real sshd, with keys and a configuration of the test's own, that is spoken to over the pipes of a proxy command."""

from __future__ import annotations

import getpass
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nicbench.hosts.kinds.ssh import SshHost
from nicbench.hosts.options import SshOptions

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/sbin")


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
