"""A DUT that nicbench runs as a process: starts, watches and queries it, and ends it with the run.

The process cannot outlive the controller: it is killed when the controller dies (hosts.base.Process), its input ends,
and the record of changes has its pid and start time, so that the end of a run or ``nicbench restore`` kills it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Mapping

from nicbench.core.errors import HostError, NotReadyError
from nicbench.hosts.base import Host, Process
from nicbench.hosts.owner import start_ticks_of_stat
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.processes import KillProcess

_MOST_LINES = 2000
_LAST_LINES = 8
_LAST_OUTPUT_CHARACTERS = 1500
_LONGEST_LINE = 240
_END_S = 5.0


class DutProcess:
    """A running DUT, called ``name`` in messages. Its output is always read, so that it never blocks on a full pipe."""

    def __init__(self, process: Process, host: Host, name: str) -> None:
        self.host = host
        self._process = process
        self._name = name
        self._lines: deque[str] = deque(maxlen=_MOST_LINES)
        self._read = 0  # lines read so far; `_lines` has the last of them
        self._mark = 0  # lines that `wait_for` has given
        self._status: int | None = None
        self._ended = False
        self._news = asyncio.Condition()
        self._reader = asyncio.create_task(self._collect())

    @classmethod
    async def start(
        cls,
        host: Host,
        changes: Changes,
        command: tuple[str, ...],
        name: str,
        environment: Mapping[str, str] | None = None,
        last_line: str | None = None,
    ) -> DutProcess:
        """Starts ``command`` and records how to kill it; at the end of the run ``last_line`` asks it to end."""
        started = cls(await host.start(command, environment=environment), host, name)
        changes.before_undoing(lambda: started.end(last_line))
        pid = started._process.pid
        stat = None if pid is None else await host.read_file(f"/proc/{pid}/stat")
        ticks = start_ticks_of_stat(stat) if stat else None
        if pid is not None and ticks is not None:
            # The undo comes after the start, when the pid is known; until here the process dies with the controller.
            await changes.make(host, KillProcess(pid=pid, start_ticks=ticks))
        return started

    @property
    def pid(self) -> int | None:
        """The process id of the program itself: wrappers in front of it have replaced themselves with it."""
        return self._process.pid

    @property
    def stderr(self) -> str:
        """The last part of what it wrote to stderr."""
        return self._process.stderr_tail()

    async def wait_for(self, wanted: Callable[[str], bool], within_s: float, what: str) -> list[str]:
        """The lines since the last call up to the first ``wanted`` one; HostError where that does not come in time."""
        seen = []
        mark = self._mark
        try:
            async with asyncio.timeout(within_s):
                while True:
                    oldest = self._read - len(self._lines)
                    for number in range(max(mark, oldest), self._read):
                        line = self._lines[number - oldest]
                        mark = number + 1
                        seen.append(line)
                        if wanted(line):
                            self._mark = mark
                            return seen
                    if self._ended:
                        raise HostError(f"the DUT {self._describe_exit()}", place=f"{self.host.name}, {self._name}")
                    async with self._news:
                        if self._read == mark and not self._ended:
                            await self._news.wait()
        except TimeoutError:
            raise HostError(
                f"the DUT {self._name} did not {what} within {within_s:g} s{self._last_output()}",
                place=self.host.name,
                next_step="run its command line, which is in plan.json, by hand to see more",
            ) from None

    async def write_line(self, line: str) -> None:
        """Writes a line to its input."""
        await self._process.write_line(line)

    async def waiting_ns(self) -> int | None:
        """The time in ns that all its threads were runnable but waited for a CPU; None where it is unknown."""
        if self.pid is None:
            return None
        shown = await self.host.run(("sh", "-c", 'cat /proc/"$1"/task/*/schedstat', "sh", str(self.pid)), check=False)
        return parse_waiting_ns(shown.stdout) if shown.status == 0 else None

    async def failure(self) -> str | None:
        """How it ended, with its last output; None while it runs."""
        stat = None if self.pid is None else await self.host.read_file(f"/proc/{self.pid}/stat")
        if stat is None or stat.rpartition(")")[2].split()[:1] == ["Z"]:  # proc(5): a zombie, dead but not reaped
            await asyncio.wait((self._reader,), timeout=_END_S)
        return self._describe_exit() if self._ended else None

    async def end(self, last_line: str | None = None) -> None:
        """Ends the process, by ``last_line`` where there is one, else by a signal, and waits until it is gone."""
        if last_line is not None and not self._ended:
            with contextlib.suppress(HostError):
                await self._process.write_line(last_line)
                await self._process.wait(_END_S)
        with contextlib.suppress(HostError):
            await self._process.signal(9)
            await self._process.wait(_END_S)
        await asyncio.wait((self._reader,), timeout=_END_S)

    async def _collect(self) -> None:
        try:
            while (line := await self._process.read_line()) is not None:
                self._lines.append(line.rstrip("\r"))
                self._read += 1
                await self._tell()
            self._status = await self._process.wait(_END_S)
        except HostError:
            pass  # an endless line, or a pipe that another process holds open: the DUT is of no use either way
        finally:
            self._ended = True
            await self._tell()

    async def _tell(self) -> None:
        async with self._news:
            self._news.notify_all()

    def _describe_exit(self) -> str:
        if self._status is None:
            how = "has ended"
        elif self._status < 0:
            how = f"was killed by signal {-self._status}"
        else:
            how = f"exited with status {self._status}"
        return f"{self._name} {how}{self._last_output()}"

    def _last_output(self) -> str:
        lines = [*list(self._lines)[-_LAST_LINES:], *self.stderr.splitlines()[-_LAST_LINES:]]
        text = "\n".join(cut for line in lines if (cut := _for_people(line)))[-_LAST_OUTPUT_CHARACTERS:]
        return f"; its last output: {text}" if text else ""


def _for_people(line: str) -> str:
    """The line, cut; empty for an answer of a protocol that does not report a failure."""
    line = line.strip()
    if line.startswith("{") and '"failed"' not in line:
        return ""
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}..."


def parse_waiting_ns(schedstat: str) -> int | None:
    """The time waited in ns: the sum of the second fields (Documentation/scheduler/sched-stats: time on a runqueue)."""
    waits = [int(fields[1]) for fields in (line.split() for line in schedstat.splitlines()) if len(fields) == 3]
    return sum(waits) if waits else None


async def require_programs(host: Host, programs: Mapping[str, str]) -> None:
    """NotReadyError, with the command that installs it, for the first program that the host lacks."""
    for program, next_step in programs.items():
        await require_program(host, program, next_step)


async def require_program(host: Host, program: str, next_step: str) -> None:
    """NotReadyError where the host has no such program."""
    if (await host.run(("sh", "-c", 'command -v "$1"', "sh", program), check=False)).status != 0:
        raise NotReadyError(f"there is no program {program}", place=host.name, next_step=next_step)
