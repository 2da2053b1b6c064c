"""Doubles of the machine for tests: a host that runs nothing, an undo stack that notes changes, and monitors.

``FakeHost`` has scripted answers, files in memory, and a log of its commands. ``NotedChanges`` makes and notes changes,
which nobody undoes. ``FakeMonitors`` notes what a run tells it. ``FakePlayer`` plays rounds by functions.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nicbench.core.base import Frozen, WorkloadChoice
from nicbench.core.bond import BondObservation
from nicbench.core.connections import ConnectionTable
from nicbench.core.errors import HostError
from nicbench.core.machine import MonitorPlan
from nicbench.core.reading import PathChanges
from nicbench.core.round import (
    HostCommand,
    Job,
    JobOutcome,
    JobSpec,
    MachineCpu,
    Preparation,
    RestartServers,
    RoundRequest,
    SenderTrace,
)
from nicbench.hosts.base import Completed, Host, Process
from nicbench.measure.rounds import Player
from nicbench.monitor.base import Monitors
from nicbench.tuning.changes import Changes, by_others
from nicbench.tuning.undo.base import Undo
from nicbench.workloads.base import Watch

Answer = str | Completed | Callable[[tuple[str, ...]], "str | Completed"]


class FakeOptions(Frozen):
    """A fake host has no options."""


class FakeHost(Host):
    """A host that answers by the longest matching command prefix; other commands succeed without output.

    ``commands`` is the log of everything that was run or started, ``files`` its file system; ``write_filter`` may
    change what a write stores, as a kernel does.
    """

    kind = "fake"
    Options = FakeOptions

    def __init__(self, name: str = "fake", files: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.files = dict(files or {})
        self.commands: list[tuple[str, ...]] = []
        self.modes: dict[str, int] = {}
        """Modes of the files that were copied there."""
        self.local = True
        """Whether it stands for this machine (see ``Host.shares_files``)."""
        self.writes: list[tuple[str, str]] = []
        self.write_filter: Callable[[str, str], str] = lambda _path, text: text
        self._answers: dict[tuple[str, ...], Answer] = {}
        self._processes: dict[tuple[str, ...], FakeProcess] = {}

    def answer(self, prefix: str | Sequence[str], answer: Answer) -> None:
        """Sets the answer to a command: its stdout, a whole ``Completed``, or a function of the command."""
        self._answers[_words(prefix)] = answer

    def fail(self, prefix: str | Sequence[str], stderr: str, status: int = 1) -> None:
        """Makes a command fail."""
        words = _words(prefix)
        self._answers[words] = lambda command: Completed(command, status, "", stderr)

    def process(self, prefix: str | Sequence[str], process: FakeProcess) -> None:
        """Sets the process that ``start`` returns for a command."""
        self._processes[_words(prefix)] = process

    @classmethod
    def of_spec(cls, spec: Mapping[str, Any], name: str | None, make: Callable[[Mapping[str, Any]], Host]) -> FakeHost:
        return cls(name or cls.kind)

    def spec(self) -> dict[str, Any]:
        return {"kind": self.kind, "name": self.name}

    async def run(
        self,
        command: Sequence[str],
        *,
        input_text: str | None = None,
        timeout_s: float = 30.0,
        check: bool = True,
        environment: Mapping[str, str] | None = None,
    ) -> Completed:
        words = tuple(command)
        self.commands.append(words)
        answer = _find_longest(self._answers, words)
        if callable(answer):
            answer = answer(words)
        done = answer if isinstance(answer, Completed) else Completed(words, 0, answer or "", "")
        if check and done.status != 0:
            raise HostError(f"{' '.join(words)}: exit status {done.status}: {done.stderr}", place=self.name)
        return done

    async def start(self, command: Sequence[str], *, environment: Mapping[str, str] | None = None) -> Process:
        words = tuple(command)
        self.commands.append(words)
        process = _find_longest(self._processes, words)
        return process if process is not None else FakeProcess()

    async def read_file(self, path: str) -> str | None:
        return self.files.get(path)

    async def write_file(self, path: str, text: str) -> None:
        self.writes.append((path, text))
        self.files[path] = self.write_filter(path, text)

    async def put(self, local: Path, remote: str, mode: int = 0o644) -> None:
        self.files[remote] = await asyncio.to_thread(local.read_text, errors="replace")
        self.modes[remote] = mode

    async def get(self, remote: str, local: Path) -> None:
        if remote not in self.files:
            raise HostError(f"cannot copy {remote}: No such file or directory", place=self.name)
        await asyncio.to_thread(local.write_text, self.files[remote])

    @property
    def shares_files(self) -> bool:
        return self.local


class FakeProcess(Process):
    """A process that prints scripted lines and ends; ``written`` holds the lines that were written to its stdin."""

    def __init__(self, lines: Sequence[str] = (), status: int = 0, stderr: str = "") -> None:
        self.written: list[str] = []
        self.signals: list[int] = []
        self._lines = deque(lines)
        self._status = status
        self._stderr = stderr

    @property
    def pid(self) -> int | None:
        return None

    async def write_line(self, line: str) -> None:
        self.written.append(line)

    async def read_line(self, timeout_s: float | None = None) -> str | None:
        return self._lines.popleft() if self._lines else None

    async def close_stdin(self) -> None:
        self._lines.clear()

    async def wait(self, timeout_s: float | None = None) -> int:
        return self._status

    async def signal(self, number: int) -> None:
        self.signals.append(number)

    def stderr_tail(self) -> str:
        return self._stderr


def _words(prefix: str | Sequence[str]) -> tuple[str, ...]:
    return tuple(prefix.split()) if isinstance(prefix, str) else tuple(prefix)


def _find_longest(scripted: Mapping[tuple[str, ...], Any], command: tuple[str, ...]) -> Any:
    matching = [prefix for prefix in scripted if command[: len(prefix)] == prefix]
    return scripted[max(matching, key=len)] if matching else None


class NotedChanges(Changes):
    """``undos`` are those of all changes, in their order."""

    run_id = "run"

    def __init__(self) -> None:
        self.undos: list[Undo] = []

    async def make(self, host: Host, undo: Undo, apply: Callable[[], Awaitable[None]] = by_others) -> None:
        self.undos.append(undo)
        await apply()

    async def set_file(self, host: Host, path: str, value: str) -> None:
        await host.write_file(path, value)

    def before_undoing(self, end: Callable[[], Awaitable[None]]) -> None:
        raise NotImplementedError

    async def undo_all(self) -> list[str]:
        raise NotImplementedError


@dataclass
class FakeMonitors(Monitors):
    """``heard`` is what a run told it, in order."""

    heard: list[str] = field(default_factory=list)
    seen: PathChanges | None = None
    """What others changed in every sample."""

    async def begin_trial(self, number: int, duration_s: float | None) -> None:
        self.heard.append(f"trial {number}" if duration_s is None else f"trial {number} of {duration_s:g} s")

    async def end_trial(self) -> None:
        self.heard.append("end")

    async def watch(self) -> None:
        return

    async def changes(self) -> PathChanges | None:
        return self.seen

    async def begin_round(self, number: int) -> None:
        self.heard.append(f"round {number}")

    async def end_round(self) -> tuple[MachineCpu, ...]:
        self.heard.append("end")
        return ()

    async def close(self) -> None:
        self.heard.append("close")

    @property
    def plans(self) -> tuple[MonitorPlan, ...]:
        return ()


@dataclass
class FakePlayer(Player):
    """``outcome`` gives what comes of a job of the round with this number, ``bonded`` what is seen of its bonds."""

    outcome: Callable[[int, Job], JobOutcome]
    heard: list[RoundRequest] = field(default_factory=list)
    steered: list[tuple[str, tuple[int, ...] | None]] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    """Those that are there now."""
    own_folder: str = "nicbench-fake"
    prepared: list[Preparation] = field(default_factory=list)
    before: list[HostCommand | RestartServers] = field(default_factory=list)
    broken: Callable[[int], str | None] = lambda number: None
    """How a server of the DUT ended in the midst of the round of this number."""
    failed: str | None = None
    bonded: Callable[[RoundRequest], tuple[BondObservation, ...]] = lambda request: ()
    traced: Callable[[RoundRequest], tuple[SenderTrace, ...]] = lambda request: ()
    tabled: Callable[[RoundRequest], ConnectionTable | None] = lambda request: None

    async def require_tools(self, asked: Iterable[tuple[WorkloadChoice, JobSpec]]) -> None:
        """Every tool is there."""

    async def prepare(self, preparation: Preparation) -> None:
        self.prepared.append(preparation)

    async def run_before(self, command: HostCommand | RestartServers) -> None:
        self.before.append(command)

    async def rest(self, pause_s: float) -> None:
        """Returns at once."""

    async def play(self, number: int, request: RoundRequest, watch: Watch) -> tuple[JobOutcome, ...]:
        await watch.begin()
        self.heard.append(request)
        self.failed = self.broken(number)
        return tuple(self.outcome(number, job) for job in request.jobs)

    def server_failure(self) -> str | None:
        return self.failed

    def bonds(self) -> tuple[BondObservation, ...]:
        return self.bonded(self.heard[-1]) if self.heard else ()

    def senders(self) -> tuple[SenderTrace, ...]:
        return self.traced(self.heard[-1]) if self.heard else ()

    def connection_table(self) -> ConnectionTable | None:
        return self.tabled(self.heard[-1]) if self.heard else None

    async def make_file(self, endpoint: str, folder: str, purpose: str, size_bytes: int, *, filled: bool) -> str:
        path = f"{folder}/{endpoint}-{purpose}"
        self.files.append(path)
        return path

    async def remove_file(self, endpoint: str, path: str) -> None:
        self.files.remove(path)

    async def steer_interrupts(self, endpoint: str, cpus: tuple[int, ...] | None) -> None:
        self.steered.append((endpoint, cpus))

    async def counters(self) -> dict[str, dict[str, int]]:
        return {}
