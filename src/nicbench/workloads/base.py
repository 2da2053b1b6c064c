"""What a tool's file says of it: what it cannot do, its commands, when its server is ready, and what its output means.

Nothing here runs anything: commands are made and outputs are read by pure functions; ``play`` does the running.
"""

from __future__ import annotations

import re
import signal
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

from pydantic import ValidationError

from nicbench.errors import HostError, UsageError
from nicbench.hosts.base import Host
from nicbench.model.base import Frozen
from nicbench.model.round import Ask, Figures, Job

Command = tuple[str, ...]
MEBIBYTE = 1024 * 1024
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")
_LAST_WORDS_CHARACTERS = 600


class WorkloadError(HostError):
    """What a tool wrote cannot be read, or cannot be so."""


@dataclass(frozen=True, slots=True)
class End:
    """One side of a job: the host where the process runs, and the address that the traffic goes to or comes from.

    ``link_bits_per_s`` is what the link carries; None where that is unknown, which it also is of virtual interfaces
    whose speed is a made-up one (a veth pair's 10 Gbit/s). ``device`` is the kernel interface.
    """

    host: Host
    address: str
    device: str | None = None
    link_bits_per_s: float | None = None
    rdma_device: str | None = None
    rdma_port: int = 1
    gid_index: int | None = None
    folder: str | None = None
    """There its client may leave the files that its workload ``leaves``; None where nobody keeps them."""


@dataclass(frozen=True, slots=True)
class LeftFile:
    """A file that a client leaves on its host beside what it prints: its name in ``End.folder``, and what it holds."""

    name: str
    what: Literal["frame samples"]


@dataclass(frozen=True, slots=True)
class Kept:
    """What became of a file that was left: paths in the run folder, and what of it is missing, in words."""

    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Keeper(Protocol):
    """Gives clients a folder on their hosts, and keeps what they leave there; what it makes on a host is undone."""

    async def folder(self, host: Host, job: int) -> str:
        """A new folder on the host for the job with this number of the round."""

    async def take(self, host: Host, job: int, left: LeftFile, path: str) -> Kept:
        """The client has ended: fetches the file. It raises only where the run folder cannot be written."""


class Watch(Protocol):
    """Looks at the machines while clients run, and at nothing before or after."""

    async def begin(self) -> None:
        """The clients come next."""

    async def end(self) -> None:
        """Every client has ended."""


@dataclass(frozen=True, slots=True)
class Output:
    """What a process wrote, and how it ended: ``status`` is negative for a signal, None where it had to be left."""

    stdout: str
    stderr: str = ""
    status: int | None = 0


@dataclass(frozen=True, slots=True)
class Listening:
    """A socket that a server has once it is ready. ``address`` is None where it takes any."""

    protocol: Literal["tcp", "udp"]
    port: int
    address: str | None = None


class NoOptions(Frozen):
    """Nothing to choose."""


class Workload(ABC):
    """A tool. One instance is made for each job, with the options that the bench file gives (``workload: {..}``)."""

    kind: ClassVar[str]
    """Its name in the bench file, and that of the program."""
    Options: ClassVar[type[Frozen]] = NoOptions
    package: ClassVar[str]
    """The Debian package that has it; what it is called where it is in none."""
    is_ours: ClassVar[bool] = False
    """Whether it is a program of nicbench, which is put where it is not, instead of one that must be installed."""
    ports_per_job: ClassVar[int] = 1
    """How many ports in a row, beginning with the job's, a job may use."""
    server_ends: ClassVar[bool] = True
    """Whether the server ends by itself once its client has; else it is told to, by ``stop_signal``."""
    stop_signal: ClassVar[int] = signal.SIGTERM
    output_limit_bytes: ClassVar[int] = 8 * MEBIBYTE
    """More than this is a flood, and the end of the process."""
    environment: ClassVar[Mapping[str, str]] = {}
    """Variables that its processes get."""

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        try:
            self.options = self.Options.model_validate(dict(options or {}))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise UsageError(f"workload {self.kind}: {where}: {first['msg']}") from error

    def program(self, ask: Ask) -> str:
        """What is run for this, on both sides; perftest has one for each operation."""
        return self.kind

    @abstractmethod
    def refusal(self, ask: Ask) -> str | None:
        """Why it cannot do what is asked, in words; None where it can. Known before anything is touched."""

    def refusal_of_version(self, ask: Ask, version: str) -> str | None:
        """Why this version of it cannot."""
        return None

    def refusal_of_ends(self, job: Job, client: End, server: End | None) -> str | None:
        """Why it cannot between these two, an RDMA tool without an RDMA device for instance."""
        return None

    @abstractmethod
    def server_command(self, job: Job, client: End, server: End) -> Command | None:
        """The server's command line, None where it needs none."""

    @abstractmethod
    def client_command(self, job: Job, client: End, server: End | None) -> Command:
        """The client's command line."""

    def listens(self, job: Job, server: End) -> tuple[Listening, ...]:
        """The sockets that tell that the server is ready; none where it needs no server."""
        return (Listening("tcp", job.port, server.address),)

    def expected_s(self, job: Job) -> float | None:
        """How long the client runs, None where that depends on how fast it goes."""
        return job.ask.duration_s

    def version_command(self, ask: Ask) -> Command:
        """Prints the version, and does nothing else."""
        return (self.program(ask), "--version")

    def leaves(self, job: Job) -> tuple[LeftFile, ...]:
        """Files that its client makes in ``client.folder``, which is there if there are any; they are kept for it."""
        return ()

    @abstractmethod
    def parse_version(self, text: str) -> str | None:
        """The version in what that printed, stdout and stderr; None where there is none."""

    @abstractmethod
    def parse(self, job: Job, client: Output, server: Output | None) -> Figures:
        """The figures in what both sides wrote. Pure; WorkloadError, and nothing else, where there are none."""

    def ends_run(self, output: Output) -> bool:
        """Whether what went wrong would go wrong in every later round: the directory is gone, the disk is full."""
        return False

    def complaint(self, output: Output) -> str | None:
        """What the tool itself says went wrong, in its output, whatever its exit status; None where it says nothing."""
        return None


def clean(text: str) -> str:
    """The text without anything that a terminal obeys: control characters are written as escapes, ends of line stay."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text.replace("\r\n", "\n"))


def has_control_characters(text: str) -> bool:
    """Whether there is anything in it that a terminal obeys, or an end of line."""
    return "\n" in text or _CONTROL.search(text) is not None


def last_words(text: str) -> str:
    """The end of what a process wrote, for a message: clean, on one line, bounded."""
    words = " / ".join(line.strip() for line in clean(text[-4 * _LAST_WORDS_CHARACTERS :]).splitlines() if line.strip())
    return words if len(words) <= _LAST_WORDS_CHARACTERS else f"...{words[-_LAST_WORDS_CHARACTERS:]}"
