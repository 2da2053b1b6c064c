"""A host: where commands run and files are read and written. Wrappers (a namespace, a container) hold another host."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from nicbench.hosts._copying import get_as_text, put_as_text
from nicbench.model.base import Frozen

OUTPUT_LIMIT_BYTES = 16 * 1024 * 1024
"""What a command that is run to its end may write."""


@dataclass(frozen=True, slots=True)
class Completed:
    """A finished command. ``status`` is the exit status, negative for a signal."""

    command: tuple[str, ...]
    status: int
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class Presence:
    """The process that stands for the controller on another machine: it ends with the connection, or with the lease."""

    pid: int
    start_ticks: int
    boot_id: str


class Process(ABC):
    """A running command with its pipes. It never outlives the controller: it is killed when the controller dies."""

    @property
    @abstractmethod
    def pid(self) -> int | None:
        """Process id on the host, None where it cannot be known."""

    @abstractmethod
    async def write_line(self, line: str) -> None:
        """Writes one line to stdin and flushes; HostError when the process is gone."""

    @abstractmethod
    async def read_line(self, timeout_s: float | None = None) -> str | None:
        """One line of stdout without its newline, None at the end.

        HostError after ``timeout_s`` or an over-long line.
        """

    async def read_some(self) -> bytes:
        """What stdout has next, nothing at its end: for output that is large, or has no lines."""
        line = await self.read_line()
        return b"" if line is None else line.encode() + b"\n"

    @abstractmethod
    async def close_stdin(self) -> None:
        """End of input for the process."""

    @abstractmethod
    async def wait(self, timeout_s: float | None = None) -> int:
        """Exit status (negative: signal); HostError after ``timeout_s``."""

    @abstractmethod
    async def signal(self, number: int) -> None:
        """Sends a signal; nothing happens when the process has ended."""

    @abstractmethod
    def stderr_tail(self) -> str:
        """The last lines of stderr (bounded), for error messages."""


class Host(ABC):
    """Runs, reads, writes. ``name`` is how the bench file calls it."""

    kind: ClassVar[str]
    Options: ClassVar[type[Frozen]]
    stands_on: ClassVar[tuple[str, ...] | None] = None
    """Of a host that is made on another (``on`` in a bench file): the kinds of such hosts that this may be as well.

    None: it is made on no other.
    """
    name: str
    made_here: ClassVar[bool] = False
    """Whether nicbench makes this machine for one run, and throws it away: nobody else can be using it."""

    @property
    def machine(self) -> Host:
        """The host of the whole machine: itself, or, of a wrapper that shares a machine, the one that it is on."""
        return self

    @property
    def network(self) -> Host:
        """Where its interfaces are read and set: itself, or, of a container, the host that it has its network from."""
        return self

    def statements(self) -> tuple[str, ...]:
        """What a report must say plainly of measurements on it, in sentences."""
        return ()

    def disclosure(self) -> dict[str, Any]:
        """What a report discloses of how it was made; nothing of a host that was there."""
        return {}

    @abstractmethod
    def spec(self) -> dict[str, Any]:
        """Enough to make this host again in another process (undo.json).

        E.g. ``{"kind": "netns", "namespace": "x", "inner": {..}}``; ``hosts.from_spec`` is the inverse.
        """

    @classmethod
    @abstractmethod
    def of_spec(cls, spec: Mapping[str, Any], name: str | None, make: Callable[[Mapping[str, Any]], Host]) -> Host:
        """The inverse of ``spec``; a wrapper gives its inner host's to ``make``. ``name`` is the bench file's."""

    @abstractmethod
    async def run(
        self,
        command: Sequence[str],
        *,
        input_text: str | None = None,
        timeout_s: float = 30.0,
        check: bool = True,
        environment: Mapping[str, str] | None = None,
    ) -> Completed:
        """Runs to its end, output bounded.

        With ``check`` a failure is a HostError with the command, status and stderr.
        """

    @abstractmethod
    async def start(self, command: Sequence[str], *, environment: Mapping[str, str] | None = None) -> Process:
        """Starts a process with pipes."""

    @abstractmethod
    async def read_file(self, path: str) -> str | None:
        """Text of a file (for /proc, /sys too), None where it does not exist."""

    @abstractmethod
    async def write_file(self, path: str, text: str) -> None:
        """Writes text (for /proc, /sys too); HostError with the kernel's reason."""

    async def put(self, local: Path, remote: str, mode: int = 0o644) -> None:
        """Copies a file of this machine to the host; there it has its name only once it is whole. HostError."""
        await put_as_text(self, local, remote, mode)

    async def get(self, remote: str, local: Path) -> None:
        """Copies a file of the host to this machine; here it has its name only once it is whole. HostError."""
        await get_as_text(self, remote, local)

    @property
    def shares_files(self) -> bool:
        """Whether a path of this machine is the same file on the host."""
        return False

    async def close(self) -> None:  # noqa: B027 - most hosts hold nothing
        """Gives back what the host holds: a container, a connection. It comes again where it is needed again."""

    async def is_gone(self) -> bool:
        """Whether the machine is no more, and with it everything that was changed in it."""
        return False

    async def when_unheard(self, script: str) -> Presence | None:
        """Has the host run a script of its own, by its path, once it hears nothing of the controller any more.

        None where it need not: a machine that the controller itself runs on.
        """
        return None

    async def reconnect(self) -> None:  # noqa: B027 - most hosts have nothing to connect
        """Connects anew where a connection was lost, which ended everything on the host: for the undo alone."""
