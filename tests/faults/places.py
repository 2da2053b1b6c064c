"""Where a fault comes: the namespaces, ports and processes of a run, found from outside as somebody else would."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.commands import run_tried

MARK = "NICBENCH_TEST_FAULT"
"""Of every process that a case starts, and whatever these start."""
ENGINE, MONITOR, QEMU = (
    "nicbench-packet",
    "nicbench-monito",
    "qemu-system-x86",
)  # the kernel keeps 15 characters of a name


def command(*words: str, check: bool = True, given: str | None = None) -> str:
    """What a command prints."""
    done = run_tried(words, input=given)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr or done.stdout}")
    return done.stdout


def ip(*words: str, check: bool = True) -> str:
    return command("ip", *words, check=check)


def inside(namespace: str, *words: str, given: str | None = None) -> str:
    """Runs a command in a namespace."""
    return command("ip", "netns", "exec", namespace, *words, given=given)


def processes(mark: str, name: str, contains: str | None = None) -> list[int]:
    """Those of a case that bear this name, and this word among their arguments; zombies are none."""
    return [pid for pid, (comm, arguments) in all_processes(mark).items() if comm == name and _has(arguments, contains)]


def _has(arguments: list[str], word: str | None) -> bool:
    if word is None:
        return True
    return word[1:] not in arguments if word.startswith("!") else word in arguments


def all_processes(mark: str) -> dict[int, tuple[str, list[str]]]:
    """Every process of a case with its name and arguments."""
    found, wanted = {}, f"{MARK}={mark}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if wanted not in (folder / "environ").read_bytes().split(b"\0"):
                continue
            if (folder / "stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                continue
            arguments = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            found[int(folder.name)] = ((folder / "comm").read_text().strip(), arguments)
    return found


@dataclass
class Scene:
    """A case while it runs. ``mending`` is what makes the testbed whole again, last fault first."""

    mark: str
    folder: Path
    runs: Path
    draw: random.Random
    share: float
    """Which part of a sample has gone by when a fault comes in its midst."""
    controller: int = 0
    near: str = ""
    far: str = ""
    """Namespaces of the bench's own, of the tester and of the DUT."""
    mending: list[Callable[[], Any]] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    """What stands in the bench file in place of others."""
    wait: str = "10min"
    """How long the command waits for the machine."""

    @property
    def run(self) -> Path:
        """The run folder."""
        (path,) = (path for path in self.runs.iterdir() if path.is_dir() and path.name != "lost+found")
        return path

    def namespace(self, role: str) -> str:
        """That of the testbed whose name ends so; of a bench with namespaces of its own the one of that side."""
        if self.near:
            return self.near if role == "tester" else self.far
        (name,) = (name for name in _namespaces() if name.endswith(f"-{role}"))
        return name

    def last_port(self, role: str) -> str:
        """The port by which frames of the forward way leave the DUT, come back to the tester, or meet a server."""
        return self._ports(role)[-1]

    def first_port(self, role: str) -> str:
        return self._ports(role)[0]

    def _ports(self, role: str) -> list[str]:
        names = (link["ifname"] for link in json.loads(ip("-n", self.namespace(role), "-j", "link")))
        return sorted(name for name in names if name != "lo")

    def inside(self, role: str, *words: str, given: str | None = None) -> str:
        return inside(self.namespace(role), *words, given=given)

    def processes(self, name: str, contains: str | None = None) -> list[int]:
        return processes(self.mark, name, contains)

    def signal(self, number: int, name: str, contains: str | None = None) -> None:
        """Sends a signal to the processes of this name, which are there."""
        pids = self.processes(name, contains)
        assert pids, f"there is no {name} to send {signal.Signals(number).name} to: {all_processes(self.mark)}"
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def wait_s(self, least: float, most: float) -> None:
        """A time that is drawn."""
        time.sleep(self.draw.uniform(least, most))

    def mend(self) -> None:
        while self.mending:
            self.mending.pop()()


Inject = Callable[[Scene], None]
"""What is done to a run, or before it."""


def _namespaces() -> list[str]:
    return [line.split()[0] for line in ip("netns", "list").splitlines() if line.startswith("nb-")]
