"""What a kind of share must define: programs, commands of its servers and clients, and needs of the kernel.

A kind's commands are made by pure functions; ``_serving`` and ``_mounting`` run them, with their undo.

To add one:

1. Write ``src/nicbench/testbed/shares/NAME.py`` with one subclass of ``nicbench.testbed.shares.base.ShareKind``:
   programs with their packages, the commands of its servers and of a mount, and the TCP port on which a server is
   ready, all by pure functions; what the kernel must have; a statement for the report. Starting, waiting, mounting
   and the undo are done for it.
2. What a server leaves in the kernel has its undo in ``Server.undo``. A mount and a server outlive a controller that
   is killed, until they are undone: what was written through them can then be removed.
3. Write ``tests/testbed/shares/test_NAME.py`` with the commands to the last word; add a section to
   ``docs/streams.md`` (a test compares) and its packages to ``packages.debian``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from nicbench.core.base import Frozen
from nicbench.core.described import DescribedPlugin
from nicbench.core.frozen import frozen
from nicbench.hosts.base import Host
from nicbench.testbed.labs.base import Endpoint
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.base import Undo

Command = tuple[str, ...]


@frozen
class Share:
    """Share ``number`` (from 1): ``folder`` of the server's host, which ``client`` mounts at ``directory``."""

    number: int
    folder: str
    server: Endpoint
    client: Endpoint
    directory: str


@frozen
class Program:
    """A program, found by its name or, where it is not in PATH, by the ``paths`` of distributions."""

    name: str
    package: str
    paths: tuple[str, ...] = ()


@frozen
class FileSystem:
    """A file system of the kernel by its name in ``/proc/filesystems``; ``words`` is its name in messages."""

    name: str
    words: str


@frozen
class Server:
    """A process in the background and its TCP port; with ``address`` None it listens on all addresses.

    ``undo`` reverts what it leaves in the kernel, and the command ``stop`` ends that; ``shown`` is the command to show
    to people where the real one is a script.
    """

    name: str
    command: Command
    tcp_port: int
    address: str | None = None
    undo: Undo | None = None
    stop: Command | None = None
    shown: str | None = None

    @property
    def words(self) -> str:
        """The command as a person would write it."""
        return self.shown or " ".join(self.command)


class ShareKind(DescribedPlugin, ABC):
    """The base of every kind of share."""

    kind: ClassVar[str]
    Options: ClassVar[type[Frozen]]
    server_programs: ClassVar[tuple[Program, ...]] = ()
    client_programs: ClassVar[tuple[Program, ...]] = ()
    server_file_system: ClassVar[FileSystem | None] = None
    client_file_system: ClassVar[FileSystem]
    server_check: ClassVar[Command | None] = None
    """A command that runs on the server's host before anything is changed; where it fails, its output says why."""
    survives_restart: ClassVar[bool] = False
    """Whether clients can go on using their mounts after a restart of the servers."""
    statement: ClassVar[str]
    """Sentences for the reader of a report."""
    version_commands: ClassVar[Mapping[str, Command]] = {}
    """Commands on the server's host, by the name of the fact, whose first line of output the report has."""
    client_version_commands: ClassVar[Mapping[str, Command]] = {}
    """The same on a client's host."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = self.Options.model_validate(options)

    @abstractmethod
    def tcp_port(self, share: int) -> int:
        """The TCP port that clients of this share connect to."""

    @abstractmethod
    def servers(self, shares: Sequence[Share], found: Mapping[str, str]) -> tuple[Server, ...]:
        """The servers to run on the server's host in its network; ``found`` has the paths of its programs."""

    async def prepare_clients(self, changes: Changes, hosts: Sequence[Host]) -> None:
        """Is called with the clients' hosts before the first mount. Most kinds need nothing."""
        return

    @abstractmethod
    def mount_command(self, share: Share) -> Command:
        """The command on the client's host, in its network, that ends once the share is mounted."""


def in_brackets(address: str) -> str:
    """An address as it stands before a colon: an IPv6 address in brackets."""
    return f"[{address}]" if ":" in address else address
