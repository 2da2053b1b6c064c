"""A host that does nothing: scripted answers, files in memory, and a log of what it was asked. For tests.

Its name begins with an underscore so that no bench file can ask for it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nicbench.errors import HostError
from nicbench.hosts.base import Completed, Host, Process
from nicbench.model.base import Frozen

Answer = str | Completed | Callable[[tuple[str, ...]], "str | Completed"]


class FakeOptions(Frozen):
    """Nothing to choose."""


class FakeHost(Host):
    """Answers by the longest command prefix that was taught; what it was not taught succeeds with no output.

    ``commands`` is the log of everything that was run or started, ``files`` what it holds; ``write_filter`` may change
    what a write leaves behind, as a kernel does.
    """

    kind = "fake"
    Options = FakeOptions

    def __init__(self, name: str = "fake", files: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.files = dict(files or {})
        self.commands: list[tuple[str, ...]] = []
        self.modes: dict[str, int] = {}
        """Of files that were put there."""
        self.local = True
        """Whether it stands for this machine."""
        self.writes: list[tuple[str, str]] = []
        self.write_filter: Callable[[str, str], str] = lambda _path, text: text
        self._answers: dict[tuple[str, ...], Answer] = {}
        self._processes: dict[tuple[str, ...], FakeProcess] = {}

    def answer(self, prefix: str | Sequence[str], answer: Answer) -> None:
        """Teaches an answer: its stdout, a whole ``Completed``, or a function of the command."""
        self._answers[_words(prefix)] = answer

    def fail(self, prefix: str | Sequence[str], stderr: str, status: int = 1) -> None:
        """Teaches a failure."""
        words = _words(prefix)
        self._answers[words] = lambda command: Completed(command, status, "", stderr)

    def process(self, prefix: str | Sequence[str], process: FakeProcess) -> None:
        """Teaches what ``start`` gives."""
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
        answer = _longest(self._answers, words)
        if callable(answer):
            answer = answer(words)
        done = answer if isinstance(answer, Completed) else Completed(words, 0, answer or "", "")
        if check and done.status != 0:
            raise HostError(f"{' '.join(words)}: exit status {done.status}: {done.stderr}", place=self.name)
        return done

    async def start(self, command: Sequence[str], *, environment: Mapping[str, str] | None = None) -> Process:
        words = tuple(command)
        self.commands.append(words)
        process = _longest(self._processes, words)
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
    """Gives the scripted lines, then the end; ``written`` is what it was told."""

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


def _longest(taught: Mapping[tuple[str, ...], Any], command: tuple[str, ...]) -> Any:
    fitting = [prefix for prefix in taught if command[: len(prefix)] == prefix]
    return taught[max(fitting, key=len)] if fitting else None
