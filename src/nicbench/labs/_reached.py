"""How a lab's namespaces are reached: directly, by an sshd in each of them, or as containers that join them.

With ssh and containers a bench file for real machines can be tried on one: the same tools, by the same ways.
"""

from __future__ import annotations

import hashlib
from typing import Final, Literal

from nicbench.errors import HostError, NotReadyError
from nicbench.hosts._container_options import ContainerOptions
from nicbench.hosts._ssh_options import SshOptions
from nicbench.hosts.base import Host
from nicbench.hosts.container import ContainerHost
from nicbench.hosts.netns import NetnsHost
from nicbench.hosts.ssh import SshHost
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo import RemovePath

ReachedBy = Literal["namespace", "ssh", "container"]

# Of a lab that is thrown away: nobody but its own key may come in, and no start-up file has a say.
_CONFIG: Final = """HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
PidFile none
LogLevel ERROR
SetEnv HOME={folder}
"""
_SET_UP: Final = (
    "umask 077; mkdir -p /run/sshd {folder} && chmod 755 /run/sshd && cd {folder} && "
    "for name in user host; do ssh-keygen -q -t ed25519 -N '' -C nicbench-lab -f $name || exit 1; done && "
    "printf '* %s\\n' \"$(cat host.pub)\" > known_hosts"
)


class Reach:
    """Gives each namespace as the kind of host that was asked for; ``prepare`` comes first."""

    def __init__(self, by: ReachedBy, changes: Changes, local: Host) -> None:
        self._by = by
        self._changes = changes
        self._local = local
        self._sshd = ""
        self._folder = f"/run/nicbench-sshd-{hashlib.sha256(changes.run_id.encode()).hexdigest()[:12]}"

    async def prepare(self) -> None:
        """Keys and a configuration for the sshds of this lab; NotReadyError where there is no sshd."""
        if self._by != "ssh":
            return
        found = await self._local.run(("sh", "-c", "PATH=$PATH:/usr/sbin:/usr/local/sbin command -v sshd"), check=False)
        self._sshd = found.stdout.strip()
        if not self._sshd:
            raise NotReadyError(
                "sshd is not installed", place=self._local.name, next_step="apt-get install openssh-server"
            )

        async def apply() -> None:
            await self._local.run(("sh", "-c", _SET_UP.format(folder=self._folder)))

        try:
            await self._changes.make(self._local, RemovePath(path=self._folder), apply)
        except HostError as error:
            raise NotReadyError(
                f"no keys can be made for the lab's sshds: {error.message}",
                place=self._local.name,
                next_step="apt-get install openssh-client",
            ) from error
        await self._local.write_file(f"{self._folder}/config", _CONFIG.format(folder=self._folder))

    def host(self, namespace: NetnsHost) -> Host:
        """The namespace under its own name."""
        if self._by == "namespace":
            return namespace
        if self._by == "container":
            # This machine's own file system, with whatever is written to it thrown away.
            return ContainerHost(namespace, ContainerOptions(root="/"), namespace.name)
        inside = ("ip", "netns", "exec", namespace.namespace, self._sshd, "-i", "-f", f"{self._folder}/config")
        options = SshOptions(
            address=namespace.name,
            user="root",
            key=f"{self._folder}/user",
            known_hosts=f"{self._folder}/known_hosts",
            proxy_command=inside,
        )
        return SshHost(options, namespace.name)
