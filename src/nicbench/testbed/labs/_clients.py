"""The lab of clients: the bond of each port of the server, links that do not hold senders back, and the kind of host
that each namespace is reached as.

With ssh and containers a bench file for real machines can be tried on one, with the same tools and connections.
"""

from __future__ import annotations

import hashlib
from typing import Final, Literal, Self

from pydantic import Field, model_validator

from nicbench.core.bond import HASHED_MODES
from nicbench.core.errors import HostError, NotReadyError
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.container import ContainerHost
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.hosts.kinds.ssh import SshHost
from nicbench.hosts.options import ContainerOptions, SshOptions
from nicbench.testbed.interfaces.options import BondSettings, HashPolicy, require_links
from nicbench.tuning.bpf import deploy_program, with_program
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.files import RemovePath


class LabBond(BondSettings):
    """``bond: {links: 4, mode: 802.3ad, policy: layer3+4, switch_policy: layer2+3}``.

    ``policy`` chooses the ports by which the server sends, ``switch_policy`` those of the other end (by default the
    server's).
    """

    links: int = Field(default=4, ge=2, le=16)
    """Links of each bond. The other end is a bond of the switch, or of the client where a port has only one."""
    mode: Literal["balance-rr", "active-backup", "balance-xor", "802.3ad"] = "802.3ad"
    """The mode, in the driver's words."""
    switch_policy: HashPolicy | None = None
    """The hash policy of the other end, for what comes to the server; without it as `policy`."""

    @model_validator(mode="after")
    def _check_switch_policy(self) -> Self:
        if self.switch_policy is not None and self.mode not in HASHED_MODES:
            raise ValueError(f"`{self.mode}` does not hash, so `switch_policy` has no effect: remove it")
        require_links(self, self.links)
        return self

    @property
    def partner(self) -> BondSettings:
        """The settings of the bond at the other end."""
        return BondSettings(
            mode=self.mode,
            policy=self.switch_policy or self.policy,
            miimon=self.miimon,
            lacp_rate=self.lacp_rate,
            min_links=self.min_links,
        )

    @property
    def switch_knows_it(self) -> bool:
        """Whether the switch must have a bond as well; with ``active-backup`` it uses ordinary ports."""
        return self.mode != "active-backup"

    @property
    def words(self) -> str:
        """The bond in words, as in "802.3ad, layer3+4, at the other end layer2"."""
        own, other = self.hashes_by, self.partner.hashes_by
        policies = "" if own is None else f", {own}" if own == other else f", {own}, at the other end {other}"
        return f"{self.mode}{policies}"


def members_of(device: str, links: int) -> tuple[str, ...]:
    """The names of a bond's member interfaces, in the order in which they join it: s0p1, s0p2, ..."""
    return tuple(f"{device}p{number}" for number in range(1, links + 1))


async def free_senders(host: Host, device: str) -> str | None:
    """Lets packets that arrive at a veth count against their sender no longer (wire.bpf.c); returns why it cannot.

    NotReadyError where the program is not compiled, or cannot be put on the host.
    """
    program = await deploy_program(host, "wire")
    add = "tc qdisc replace dev $1 clsact; tc filter replace dev $1 ingress bpf da pinned $NAMED"
    try:
        await host.run(with_program(program, add, device))
    except HostError as error:
        return error.message
    return None


ReachedBy = Literal["namespace", "ssh", "container"]

# The sshd serves only this lab: only its own key may log in, and no configuration of the machine applies.
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
    """Gives each namespace as a host of the chosen kind; ``prepare`` must be called first."""

    def __init__(self, by: ReachedBy, changes: Changes, local: Host) -> None:
        self._by = by
        self._changes = changes
        self._local = local
        self._sshd = ""
        self._folder = f"/run/nicbench-sshd-{hashlib.sha256(changes.run_id.encode()).hexdigest()[:12]}"

    async def prepare(self) -> None:
        """Makes keys and a configuration for the sshds of this lab; NotReadyError where there is no sshd."""
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
        """The namespace as a host, with the same name."""
        if self._by == "namespace":
            return namespace
        if self._by == "container":
            # The container sees the file system of this machine, and its writes are discarded.
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
