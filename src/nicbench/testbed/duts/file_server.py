"""A host that serves files: shares in folders of its own, each mounted by a client (`file-server`).

Each share has a folder, a server, and a mount with connections of its own on a client's host; the shares go to the
clients in turn, by the port that each client leads to. Everything is unmounted, ended and removed afterwards, also
after a crash or where a server has died. Verified: each client can write to its mount.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, Field, model_validator

from nicbench.core.base import Frozen
from nicbench.core.errors import HostError, NicbenchError, NotReadyError
from nicbench.core.quantity import Bytes
from nicbench.core.registry import find
from nicbench.core.round import MOUNTS, Mount, ShareChoice
from nicbench.hosts.base import Host
from nicbench.testbed.duts.base import EndpointDut, EndpointDutOptions
from nicbench.testbed.labs.base import EndpointTestbed
from nicbench.testbed.share_servers import (
    SHARE,
    Servers,
    file_system_of,
    find_programs,
    folders_in_memory,
    folders_inside,
    make_private,
    mount,
    place_of,
    require_check,
    require_file_system,
    require_use,
)
from nicbench.testbed.shares.base import Command, Share, ShareKind
from nicbench.tuning.changes import Changes

_SMALLEST_MEMORY: Final = 2**20


def _check_folder(path: str) -> str:
    rest = path.replace(SHARE, "")
    if not path.startswith("/") or ".." in path.split("/"):
        raise ValueError(f"write the whole path of the folder, as in /stor/d{SHARE}, not {path!r}")
    if any(character in rest for character in "{}\0\n\t '\"\\,:"):
        raise ValueError(f"{path!r}: write a folder without {{ }} , : quotes and blanks, except for {SHARE}")
    return path.rstrip("/") or "/"


class FileServerOptions(EndpointDutOptions):
    """``dut: {kind: file-server, share: sftp, shares: 12, folder: "/stor/d{share}"}``.

    Shares are in folders of the server, or in its memory with ``memory`` bytes each.
    """

    share: ShareChoice
    """The kind of share, alone or with options of its own: `{kind: sftp, connections: 2}`."""
    shares: int = Field(default=1, ge=1, le=256)
    """Number of shares."""
    folder: Annotated[str, AfterValidator(_check_folder)] | None = None
    """Where the shares are, one folder for each: `/stor/d{share}`. The folders must exist, or be made by the tuning
    item `file_system`. nicbench makes a folder of its own in each, shares that and removes it; nothing else is
    touched. Give this or `memory`.
    """
    memory: Bytes | None = Field(default=None, ge=_SMALLEST_MEMORY)
    """Each share is a tmpfs of this size on the server."""

    @model_validator(mode="after")
    def _check_place(self) -> Self:
        if (self.folder is None) == (self.memory is None):
            raise ValueError(f"give either `folder` (/stor/d{SHARE}) or `memory` (1 GiB, of each share)")
        if self.folder is not None and self.shares > 1 and SHARE not in self.folder:
            raise ValueError(f"{self.shares} shares need folders of their own: write {SHARE} in `folder`")
        return self


class FileServer(EndpointDut):
    """The measured host and its shares."""

    kind = "file-server"
    has_shares = True
    Options = FileServerOptions
    options: FileServerOptions

    def __init__(self, options: Frozen) -> None:
        super().__init__(options)
        kinds = find("nicbench.testbed.shares", ShareKind)
        self._kind = kinds[self.options.share.kind](self.options.share.options)
        self._mounts: list[Mount] = []
        self._facts: dict[str, Any] = {}
        self._shares: tuple[Share, ...] = ()
        self._running: Servers | None = None
        self._run = ""

    def mounts(self) -> tuple[Mount, ...]:
        return tuple(self._mounts)

    @property
    def survives_restart(self) -> bool:
        return self._kind.survives_restart

    async def restart(self) -> None:
        if self._running is None or not self.survives_restart:
            raise NotImplementedError
        await self._running.restart()
        for share in self._shares:
            await require_use(share)

    async def begin_round(self) -> None:
        if self._running is not None:
            await self._running.look()

    async def failure(self) -> str | None:
        return None if self._running is None else await self._running.failure()

    async def up(self, testbed: EndpointTestbed, changes: Changes) -> None:
        name = self._run = hashlib.sha256(changes.run_id.encode()).hexdigest()[:12]
        server = place_of(testbed.server).host
        found = await self._require(testbed)
        ours = f"/run/nicbench-shares-{name}"
        await make_private(changes, server, ours)
        folders = await self._folders(changes, server, ours, f"nicbench-{name}")
        shares = self._shares = shares_of(testbed, folders, f"{MOUNTS}{name}")
        servers = self._kind.servers(shares, found)
        self._running = Servers(testbed.server, changes, ours)
        await self._running.start(servers)
        commands = {testbed.server.name: [each.words for each in servers]}
        hosts = {repr(share.client.host.spec()): share.client.host for share in shares}
        await self._kind.prepare_clients(changes, tuple(hosts.values()))
        made = set()
        for share in shares:
            client = place_of(share.client.host).host
            if repr(client.spec()) not in made:
                made.add(repr(client.spec()))
                await make_private(changes, client, f"{MOUNTS}{name}")
            command = self._kind.mount_command(share)
            commands.setdefault(share.client.host.name, []).append(" ".join(command))
            await self._mount(changes, share, command)
        self._facts = {
            "versions": await self._versions(testbed),
            "file_systems": {
                str(share.number): f"{share.folder}: {await file_system_of(server, share.folder)}" for share in shares
            },
            **self._facts,
            "commands": commands,
        }

    async def _require(self, testbed: EndpointTestbed) -> dict[str, str]:
        """Finds the server's programs, and raises NotReadyError where a host lacks a program or a file system."""
        kind = self._kind
        if kind.server_file_system is not None:
            await require_file_system(testbed.server, kind.server_file_system)
        found = await find_programs(testbed.server, kind.server_programs)
        if kind.server_check is not None:
            await require_check(testbed.server, kind.server_check)
        for each in testbed.test_hosts[1:]:
            await require_file_system(each.host, kind.client_file_system)
            await find_programs(each.host, kind.client_programs)
        return found

    async def _folders(self, changes: Changes, server: Host, ours: str, own_name: str) -> tuple[str, ...]:
        options = self.options
        if options.memory is not None:
            return await folders_in_memory(changes, server, ours, options.shares, options.memory)
        return await folders_inside(changes, server, str(options.folder), own_name, options.shares)

    async def _mount(self, changes: Changes, share: Share, command: Command) -> None:
        try:
            line = await mount(changes, share, command)
        except HostError as error:
            raise NotReadyError(
                f"share {share.number} of {share.server.host.name} cannot be mounted: {error.message}",
                place=share.client.host.name,
                next_step=f"try it there by hand: {' '.join(command)}",
            ) from error
        self._facts.setdefault("mounts", {})[str(share.number)] = f"{share.client.host.name}: {line}"
        self._mounts.append(
            Mount(
                share=share.number,
                kind=self._kind.kind,
                endpoint=share.client.name,
                directory=share.directory,
                server_port=share.server.name,
                address=share.server.facts.address,
                tcp_port=self._kind.tcp_port(share.number),
                survives_restart=self._kind.survives_restart,
            )
        )

    async def _versions(self, testbed: EndpointTestbed) -> dict[str, str]:
        versions = await _first_lines(testbed.server, self._kind.version_commands)
        for each in testbed.test_hosts[1:]:
            for name, line in (await _first_lines(each.host, self._kind.client_version_commands)).items():
                if versions.setdefault(name, line) != line:
                    versions[f"{name} of {each.name}"] = line
        return versions

    def disclosure(self) -> dict[str, Any]:
        """Facts for the report, with RUN in place of the run's id in names, so that two runs can be compared."""
        facts: dict[str, Any] = json.loads(json.dumps(self._facts).replace(self._run or "RUN", "RUN"))
        return {
            "kind": self.kind,
            "name": self.options.name or f"file server ({self._kind.kind})",
            "host": self.options.host,
            "shares": self.options.shares,
            "share": {"kind": self._kind.kind, **self._kind.options.model_dump(mode="json")},
            "statement": self._kind.statement,
            **facts,
        }


def shares_of(testbed: EndpointTestbed, folders: tuple[str, ...], mounted_in: str) -> tuple[Share, ...]:
    """Share i goes to client i, modulo their number, through the measured port that this client leads to."""
    ports = {end.name: end for end in testbed.servers}
    clients = testbed.clients
    return tuple(
        Share(
            number=number,
            folder=folder,
            server=ports[str(clients[(number - 1) % len(clients)].facts.port)],
            client=clients[(number - 1) % len(clients)],
            directory=f"{mounted_in}/{number}",
        )
        for number, folder in enumerate(folders, 1)
    )


async def _first_lines(host: Host, commands: Mapping[str, Command]) -> dict[str, str]:
    """The first line that each command prints, for versions; commands that print nothing are left out."""
    versions = {}
    for name, command in commands.items():
        try:
            done = await host.run(command, check=False)
        except NicbenchError:
            continue
        lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
        if lines:
            versions[name] = lines[0]
    return versions
