"""A run of nicbench in a process of its own that tells where it is, so that a fault comes at a moment that was chosen.

It is forked, which spares the second that loading takes. The command is the real one, and so is its exit status. The
process waits for an answer where a fault is to come between two steps; at all others it goes on.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.run.simulated_bench import nothing_told

from nicbench.cli.main import main
from nicbench.core.events import Bus
from nicbench.hosts.owner import owner_mark
from nicbench.measure import learning, rounds, trials
from nicbench.stages import plan
from nicbench.testbed.testers import _packet_engine

PATIENCE_S = 200.0
OF_THE_TESTER = ("ceiling", "tester_latency")


@dataclass
class Ended:
    """How a command ended: its exit status, negative for a signal, and what it said."""

    status: int
    said: str


class Controller:
    """One command of nicbench that runs, ``steps`` being those that it told so far."""

    def __init__(self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str], gates: set[str]) -> None:
        self.log = folder / "said"
        self._told, telling = os.pipe()
        answered, self._answer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                os.close(self._told)
                os.close(self._answer)
                _speak_to(self.log)
                os.environ.update(environment)
                with _telling(telling, answered, gates):
                    status = main([*arguments])
            finally:
                os._exit(status)
        os.close(telling)
        os.close(answered)

    def steps(self) -> Iterator[str]:
        """Each step as it is told, until the process ends."""
        unread, end = b"", time.monotonic() + PATIENCE_S
        while select.select([self._told], [], [], max(end - time.monotonic(), 0.0))[0]:
            read = os.read(self._told, 4096)
            if not read:
                return
            *lines, unread = (unread + read).split(b"\n")
            yield from (line.decode() for line in lines)
        self.signal(signal.SIGKILL)
        raise TimeoutError(f"it neither went on nor ended within {PATIENCE_S:g} s:\n{self.log.read_text()}")

    def go_on(self) -> None:
        """Lets it go on from a gate."""
        with suppress(BrokenPipeError):
            os.write(self._answer, b"\n")

    def signal(self, number: int) -> None:
        """Sends a signal to it alone."""
        os.kill(self.pid, number)

    def end(self) -> Ended:
        """Waits for its end."""
        for _ in self.steps():
            self.go_on()
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self._told)
        os.close(self._answer)
        return Ended(status, self.log.read_text(errors="replace"))


def _speak_to(log: Path) -> None:
    nothing, said = os.open(os.devnull, os.O_RDONLY), os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream, descriptor in ((0, nothing), (1, said), (2, said)):
        os.dup2(descriptor, stream)
    sys.stdout, sys.stderr = (os.fdopen(stream, "w", buffering=1, closefd=False) for stream in (1, 2))


@contextmanager
def _telling(told: int, answered: int, gates: set[str]) -> Iterator[None]:
    """Steps are events of the bus, and the moments when frames or clients begin."""
    counts = {}

    def tell(step: str) -> None:
        counts[step] = counts.get(step, 0) + 1
        numbered = f"{step} {counts[step]}"
        os.write(told, f"{numbered}\n".encode())
        if numbered in gates:
            os.read(answered, 1)

    publish, send, begin = Bus.publish, trials.TrialMaker._send, rounds._Watch.begin

    def publish_and_tell(bus: Bus, event: Any) -> None:
        publish(bus, event)
        purpose = getattr(event, "purpose", None) or getattr(getattr(event, "trial", None), "request", None)
        if getattr(purpose, "purpose", purpose) not in OF_THE_TESTER:
            tell(event.event)

    async def send_and_tell(maker: Any, slot: Any, request: Any) -> Any:
        if request.purpose not in OF_THE_TESTER:
            tell("sending")
        return await send(maker, slot, request)

    async def begin_and_tell(watch: Any) -> None:
        await begin(watch)
        tell("sending")

    owner_mark.cache_clear()  # another process owns what it starts
    replaced = [
        (Bus, "publish", publish_and_tell),
        (trials.TrialMaker, "_send", send_and_tell),
        (rounds._Watch, "begin", begin_and_tell),
        # What costs time and is not what is tested: the inventory, and patience with what will not come.
        (plan, "collect", nothing_told),
        (learning, "UNTIL_FRAMES_COME_BACK_S", (0.1, 0.3, 0.5)),
        (_packet_engine, "GRACE_S", 3.0),
    ]
    for place, name, value in replaced:
        setattr(place, name, value)
    yield


def conduct(
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    at: str,
    delay_s: float | None,
    happens: Callable[[Controller], None],
) -> tuple[Ended, list[str]]:
    """Runs a command; at the step ``at`` something happens, ``delay_s`` after it, or while the command waits there.

    Gives the steps until then besides.
    """
    controller = Controller(arguments, folder, environment, {at} if delay_s is None else set())
    try:
        steps = []
        for step in controller.steps():
            steps.append(step)
            if step == at:
                time.sleep(delay_s or 0.0)
                happens(controller)
                controller.go_on()
                break
        return controller.end(), steps
    except BaseException:
        with suppress(ProcessLookupError):
            controller.signal(signal.SIGKILL)
            os.waitpid(controller.pid, 0)
        raise
