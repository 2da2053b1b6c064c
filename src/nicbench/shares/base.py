"""What a kind of share says of itself: programs, commands of its servers and its clients, what the kernel must have.

Nothing here runs anything: a kind's commands are made by pure functions; ``_serving`` and ``_mounting`` run them, with
their undo.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from nicbench.hosts.base import Host
from nicbench.labs.base import Endpoint
from nicbench.model.base import Frozen
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo import Undo

Command = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Share:
    """Share ``number`` (from 1): ``folder`` of the server's host, to be mounted by ``client`` at ``directory``."""

    number: int
    folder: str
    server: Endpoint
    client: Endpoint
    directory: str


@dataclass(frozen=True, slots=True)
class Program:
    """A program by its name or, where it is in no PATH, by the ``paths`` that distributions give it."""

    name: str
    package: str
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileSystem:
    """A file system of the kernel, as ``/proc/filesystems`` calls it; ``words`` say what it is for."""

    name: str
    words: str


@dataclass(frozen=True, slots=True)
class Server:
    """A process in the background, and the TCP port on which it is ready. ``address`` None: it listens on all.

    ``undo`` is of what it leaves in the kernel, ``stop`` the command by which that ends; ``shown`` is how it is told
    where its command is a script.
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
        """As a person would write it."""
        return self.shown or " ".join(self.command)


class ShareKind(ABC):
    """One kind. ``found`` is where its programs are on the server's host, by their names."""

    kind: ClassVar[str]
    Options: ClassVar[type[Frozen]]
    server_programs: ClassVar[tuple[Program, ...]] = ()
    client_programs: ClassVar[tuple[Program, ...]] = ()
    server_file_system: ClassVar[FileSystem | None] = None
    client_file_system: ClassVar[FileSystem]
    server_check: ClassVar[Command | None] = None
    """Run on the server's host before anything is changed: where it fails, what it prints is why."""
    survives_restart: ClassVar[bool] = False
    """Whether clients go on with their mounts once the servers were ended and started again."""
    statement: ClassVar[str]
    """What a reader of the report must know of it."""
    version_commands: ClassVar[Mapping[str, Command]] = {}
    """By what they tell: commands on the server's host, of which the first line that they print is disclosed."""
    client_version_commands: ClassVar[Mapping[str, Command]] = {}
    """The same of a client's host."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = self.Options.model_validate(options)

    @abstractmethod
    def tcp_port(self, share: int) -> int:
        """Where clients of this share connect to."""

    @abstractmethod
    def servers(self, shares: Sequence[Share], found: Mapping[str, str]) -> tuple[Server, ...]:
        """What is to run on the server's host, inside its network."""

    async def prepare_clients(self, changes: Changes, hosts: Sequence[Host]) -> None:
        """Before the first mount, of every client's host once. Most kinds need nothing."""
        return

    @abstractmethod
    def mount_command(self, share: Share) -> Command:
        """Run on the client's host, inside its network; ends once the share is mounted."""


def in_brackets(address: str) -> str:
    """An address before a colon: of IPv6 in brackets."""
    return f"[{address}]" if ":" in address else address
