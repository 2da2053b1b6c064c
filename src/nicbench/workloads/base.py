"""The base of workloads: what a tool cannot do, its commands, when its server is ready, and how its output is parsed.

Nothing here runs a process: pure functions build commands and parse outputs; ``play`` runs them.
"""

from __future__ import annotations

import re
import signal
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Protocol

from pydantic import ValidationError

from nicbench.core.base import Frozen, why_of
from nicbench.core.described import DescribedPlugin
from nicbench.core.errors import HostError, UsageError
from nicbench.core.frozen import frozen
from nicbench.core.round import Figures, Job, JobSpec, Vlan
from nicbench.hosts.base import Host

Command = tuple[str, ...]
MEBIBYTE = 1024 * 1024
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")
_LAST_WORDS_CHARACTERS = 600


class WorkloadError(HostError):
    """The output of a tool cannot be parsed, or is implausible."""


@frozen
class End:
    """One side of a job: the host where the process runs, and the address that the traffic goes to or comes from.

    ``link_bits_per_s`` is the link's rate; None where that is unknown, as for virtual interfaces, whose speed is
    nominal (a veth pair's 10 Gbit/s). ``device`` is the kernel interface.
    """

    host: Host
    address: str
    device: str | None = None
    link_bits_per_s: float | None = None
    rdma_device: str | None = None
    rdma_port: int = 1
    gid_index: int | None = None
    folder: str | None = None
    """The folder for the files that its workload ``leaves``; None where they are not kept."""
    vlan: Vlan | None = None
    """What ``device`` is, where it is the interface of a VLAN."""


@frozen
class LeftFile:
    """A file that a client leaves on its host in addition to its output: its name in ``End.folder``, and its
    content.
    """

    name: str
    what: Literal["frame samples"]


@frozen
class StoredFile:
    """Where a file that a client left was stored: its paths in the run folder, and notes on what is missing."""

    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Keeper(Protocol):
    """Makes folders for clients on their hosts, and stores what they leave there; its changes to hosts are undone."""

    async def folder(self, host: Host, job: int) -> str:
        """Makes a folder on the host for the job with this number in the round."""

    async def take(self, host: Host, job: int, left: LeftFile, path: str) -> StoredFile:
        """Fetches a file after the client has ended. It raises only where the run folder cannot be written."""


class Watch(Protocol):
    """Observes the machines while clients run, and only then."""

    async def begin(self) -> None:
        """Begins to observe, just before the clients start."""

    async def end(self) -> None:
        """Ends the observation, once every client has ended."""


@frozen
class Output:
    """The output of a process and its exit status: negative for a signal, None where it could not be ended."""

    stdout: str
    stderr: str = ""
    status: int | None = 0


@frozen
class Listening:
    """A socket on which a server listens once it is ready. An ``address`` of None stands for any address."""

    protocol: Literal["tcp", "udp"]
    port: int
    address: str | None = None


class NoOptions(Frozen):
    """The options of a workload that has none."""


class Workload(DescribedPlugin, ABC):
    """A tool that produces a load. Each job makes an instance, with its options in the bench file."""

    kind: ClassVar[str]
    """Its name in the bench file, and that of the program."""
    Options: ClassVar[type[Frozen]] = NoOptions
    package: ClassVar[str]
    """The Debian package that has it, or its own name where none does."""
    version_pattern: ClassVar[re.Pattern[str]]
    """Its first group is the version in the output of ``version_command``."""
    tried: ClassVar[tuple[str, str] | None] = None
    """The oldest and the newest version whose output was tried; None for a program of nicbench."""
    is_ours: ClassVar[bool] = False
    """Whether it is a program of nicbench, which is copied to hosts and need not be installed."""
    ports_per_job: ClassVar[int] = 1
    """How many consecutive ports, beginning with the job's, a job may use."""
    server_ends: ClassVar[bool] = True
    """Whether the server ends by itself after its client; otherwise it is ended by ``stop_signal``."""
    stop_signal: ClassVar[int] = signal.SIGTERM
    output_limit_bytes: ClassVar[int] = 8 * MEBIBYTE
    """A process that writes more than this is killed."""
    environment: ClassVar[Mapping[str, str]] = {}
    """Environment variables of its processes."""

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        try:
            self.options = self.Options.model_validate(dict(options or {}))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise UsageError(f"workload {self.kind}: {where}: {why_of(first)}") from error

    def program(self, ask: JobSpec) -> str:
        """Returns the program that does this, on both sides; perftest has one for each operation."""
        return self.kind

    @abstractmethod
    def refusal(self, ask: JobSpec) -> str | None:
        """Returns why the tool cannot do this, None where it can. Called before any machine is touched."""

    def refusal_of_version(self, ask: JobSpec, version: str) -> str | None:
        """Returns why this version of the tool cannot do this, None where it can."""
        return None

    def refusal_of_ends(self, job: Job, client: End, server: End | None) -> str | None:
        """Returns why the tool cannot run between these ends (no RDMA device, for instance), None where it can."""
        return None

    @abstractmethod
    def server_command(self, job: Job, client: End, server: End) -> Command | None:
        """Builds the server's command line, None where the tool needs no server."""

    @abstractmethod
    def client_command(self, job: Job, client: End, server: End | None) -> Command:
        """Builds the client's command line."""

    def listens(self, job: Job, server: End) -> tuple[Listening, ...]:
        """Returns the sockets on which a ready server listens; none where the tool needs no server."""
        return (Listening("tcp", job.port, server.address),)

    def expected_s(self, job: Job) -> float | None:
        """Returns how long the client runs, None where that depends on its throughput."""
        return job.ask.duration_s

    def version_command(self, ask: JobSpec) -> Command:
        """Builds the command line that prints the version and does nothing else."""
        return (self.program(ask), "--version")

    def leaves(self, job: Job) -> tuple[LeftFile, ...]:
        """Returns the files that the client writes to ``client.folder``; the run folder stores them."""
        return ()

    def parse_version(self, text: str) -> str | None:
        """Parses the version from the output of ``version_command``; None if it names none."""
        found = self.version_pattern.search(text)
        return found[1] if found else None

    @abstractmethod
    def parse(self, job: Job, client: Output, server: Output | None) -> Figures:
        """Parses the figures from the output of both sides. Pure; it raises WorkloadError alone, if the output has no
        figures.
        """

    def ends_run(self, output: Output) -> bool:
        """Whether the failure would repeat in every later round, as when the directory is gone or the disk is full."""
        return False

    def complaint(self, output: Output) -> str | None:
        """Returns the tool's own error message, whatever its exit status; None where it printed none."""
        return None


def version_numbers(version: str) -> tuple[int, ...]:
    """Returns the numbers of a version, to compare it with others."""
    return tuple(int(part) for part in re.findall(r"\d{1,9}", version)[:3])


def clean(text: str) -> str:
    """Escapes the control characters of a text, so that it can be shown on a terminal; ends of line stay."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text.replace("\r\n", "\n"))


def has_control_characters(text: str) -> bool:
    """Whether a text holds a control character or an end of line."""
    return "\n" in text or _CONTROL.search(text) is not None


def printed_error(pattern: re.Pattern[str], *texts: str) -> str | None:
    """Returns the error that a tool printed, one of two groups of the pattern, in the first text that has one."""
    found = next(filter(None, map(pattern.search, texts)), None)
    return last_words(found[1] or found[2] or "an error that it does not name") if found else None


def last_words(text: str) -> str:
    """Quotes the end of a process's output for a message: clean, on one line, at most 600 characters."""
    words = " / ".join(line.strip() for line in clean(text[-4 * _LAST_WORDS_CHARACTERS :]).splitlines() if line.strip())
    return words if len(words) <= _LAST_WORDS_CHARACTERS else f"...{words[-_LAST_WORDS_CHARACTERS:]}"
