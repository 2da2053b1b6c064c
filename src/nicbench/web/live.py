"""A page of a run while it happens (``--live``): the server in a process of its own, out of the way, and what it cost.

The server has the lowest priority of the kernel (SCHED_IDLE) and runs on the CPUs that the run's own monitor is bound
to, which are those that do not measure, where there are such. It ends with the run, whose standard input it reads.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from nicbench.core.errors import NicbenchError
from nicbench.core.events import Bus, Event, Note, RunFinished
from nicbench.core.units import format_duration_s
from nicbench.store.confined import give_way
from nicbench.store.files import PLAN
from nicbench.store.folder import RunFolder

_START_S: Final = 20.0
_LAST_WORDS_S: Final = 5.0
_PLAN_S: Final = 2.0
"""How often to look for the plan, which names the CPUs: it is written once the tester has started."""
_USER_FIELD: Final = 11  # of /proc/PID/stat, counted from behind the command's name; proc(5): utime, then stime


class LivePage:
    """The server that was started; ``address`` is where its page is."""

    def __init__(self, process: subprocess.Popen[bytes], address: str) -> None:
        self._process = process
        self._began = time.monotonic()
        self.address = address

    def subscriber(self, bus: Bus) -> Callable[[Event], None]:
        """Returns what notes the server's cost before the run ends; it subscribes before the journal."""

        def note_cost(event: Event) -> None:
            if isinstance(event, RunFinished):
                bus.publish(Note(text=self._describe_cost()))

        return note_cost

    def _describe_cost(self) -> str:
        cost_s, elapsed_s = cpu_time_s(_server_of(self._process.pid)), time.monotonic() - self._began
        if cost_s is None:
            return "A live page was served beside this run, whose server ended before it."
        share = 100.0 * cost_s / elapsed_s if elapsed_s > 0.0 else 0.0
        return (
            f"A live page was served beside this run, at the lowest priority: its server used "
            f"{format_duration_s(cost_s)} of CPU time, {share:.1f} % of one CPU."
        )


@contextmanager
def live_page(folder: RunFolder, say: Callable[[str], None]) -> Iterator[LivePage | None]:
    """Serves the page of a run until the end of the block; None, and a word to the user, where that fails."""
    command = (sys.executable, "-m", "nicbench", "web", str(folder.path.parent), "--beside", folder.run_id)
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    try:
        address = _first_line(process)
        if address:
            say(f"live page: {address}runs/{folder.run_id}")
        else:
            say("warning: the live page could not be served; the run goes on without it")
        yield LivePage(process, address) if address else None
    finally:
        _end(process)


def _first_line(process: subprocess.Popen[bytes]) -> str:
    """Returns the address that the server prints; empty where it ends, or says nothing for too long."""
    stream = process.stdout
    if stream is None or not select.select([stream], [], [], _START_S)[0]:
        return ""
    return stream.readline().decode(errors="replace").strip()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the server by the end of its input; kills it where that does not help.

    The run is over, so the server gets the priority of other processes for its last words: at the lowest one a busy
    machine would not let it say them in time, and pages would lack the end of the run.
    """
    for pid in {process.pid, _server_of(process.pid)}:
        _raise_priority(pid)
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    try:
        process.wait(_LAST_WORDS_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _server_of(pid: int) -> int:
    """Returns the process that serves: where root called it is a child of the one that was started (``confined``)."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return pid
    return int(children[0]) if children else pid


def _raise_priority(pid: int) -> None:
    """Undoes `step_aside` for every thread of a process, as far as this user may."""
    with contextlib.suppress(OSError):
        for thread in map(int, os.listdir(f"/proc/{pid}/task")):
            with contextlib.suppress(OSError):
                os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, thread, 0)


def cpu_time_s(pid: int) -> float | None:
    """Returns the CPU time of a process with all its threads, in seconds; None where it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    if fields[0] in ("Z", "X"):
        return None
    return sum(map(int, fields[_USER_FIELD : _USER_FIELD + 2])) / float(os.sysconf("SC_CLK_TCK"))


# In the server's own process.


def step_aside(folder: Path) -> None:
    """Gives this process the lowest priority, and keeps it off the CPUs that measure as soon as the plan names them."""
    give_way()
    threading.Thread(target=_keep_off, args=(folder,), daemon=True, name="cpus").start()


def _keep_off(folder: Path) -> None:
    before = None
    while True:
        with contextlib.suppress(OSError, NicbenchError):
            stamp = (folder / PLAN).stat().st_mtime_ns
            if stamp != before:
                before = stamp
                run_on(free_cpus(folder))
        time.sleep(_PLAN_S)


def free_cpus(folder: Path) -> frozenset[int]:
    """Returns the CPUs to which the monitors of a run are bound; empty where they are bound to none."""
    plan = RunFolder(folder).plan()
    return frozenset(cpu for monitor in plan.monitors for cpu in monitor.cpus) if plan is not None else frozenset()


def run_on(cpus: frozenset[int]) -> None:
    """Binds every thread of this process to those of the CPUs that it may use, if there are any."""
    allowed = os.sched_getaffinity(0) & cpus
    for thread in os.listdir("/proc/self/task") if allowed else ():
        with contextlib.suppress(OSError):  # it ended meanwhile
            os.sched_setaffinity(int(thread), allowed)
