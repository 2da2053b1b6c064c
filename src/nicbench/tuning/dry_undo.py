"""A dry run of an undo on a host that is reached by ssh: what it would do there, for the script that lies there.

Undos are Python, and the host has none. So an undo is run against a host that passes questions on and only notes what
would change something. What is neither a known question nor a known change counts as a change: it is noted, never done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nicbench.core.errors import NicbenchError
from nicbench.core.frozen import frozen
from nicbench.core.registry import find
from nicbench.hosts import host_from_spec
from nicbench.hosts.base import Completed, Host, Process
from nicbench.tuning.setting import CannotSetError
from nicbench.tuning.undo.base import Undo, ValueUndo, undo_one

_ASKING = ("cat", "grep", "pgrep", "readlink", "test", "ls", "stat")
_ASKING_OPTIONS = (("ethtool", "-i"), ("ethtool", "-x"), ("ip", "-j"), ("ip", "netns", "pids"))
_ASKING_FILES = 'grep -sH ""'
# Everything of other kinds ends with its container, or is not ours to write a script for.
_SCRIPTED = ("ssh", "netns")


@frozen
class Change:
    """A command with what it reads; of a write to a file, the command that reads that file, and what it says now."""

    command: tuple[str, ...]
    text: str | None = None
    reading: tuple[str, ...] | None = None


@frozen
class Question:
    """A command that changes nothing, and its answer."""

    command: tuple[str, ...]
    answer: str


@dataclass
class DryUndo:
    """The changes that an undo makes, and what must still read like this for it to be ours to undo."""

    changes: list[Change] = field(default_factory=list)
    holds: list[Question] = field(default_factory=list)


async def dry_undo(host: Host, undo: Undo, *, applied: bool) -> DryUndo | None:
    """Before and after the change is made (``applied``); None where it cannot be foreseen."""
    dry = _DryHost(host.machine)
    there = _make_dry_host(host.spec(), host.name, dry)
    if there is None:
        return None
    found = DryUndo()
    try:
        if isinstance(undo, ValueUndo):
            await _act(dry, undo.write_old(there))
            if applied:
                dry.acting = False
                dry.questions.clear()
                await undo.question(there)
                found.holds = list(dry.questions)
        elif applied:
            await _act(dry, undo_one(there, undo))
        found.changes = dry.changes
        if applied:
            return await _judge_file(dry, found)
    except (CannotSetError, NicbenchError):
        return None
    return found if found.changes else None


async def _judge_file(dry: _DryHost, found: DryUndo) -> DryUndo | None:
    """A file that is written back must read as it does now; only what is set by commands depends on the questions."""
    dry.acting = False
    readings = [change.reading for change in found.changes if change.reading is not None]
    if len(readings) == len(found.changes):
        found.holds.clear()
    for reading in readings:
        answer = await dry.run(reading, check=False)
        found.holds.append(Question(reading, answer.stdout))
    # An answer that never is the same twice (a counter in it) says nothing of who changed what.
    for question in found.holds:
        if (await dry.run(question.command, check=False)).stdout != question.answer:
            return None
    return found if found.changes else None


async def _act(dry: _DryHost, undoing: Any) -> None:
    """What waits for its own effect waits in vain here: then everything has been noted."""
    try:
        await undoing
    except _WaitingError:
        return
    except NicbenchError:
        if not dry.changes:
            raise


def _make_dry_host(spec: Mapping[str, Any], name: str, dry: _DryHost) -> Host | None:
    if spec.get("kind") not in _SCRIPTED:
        return None
    if "inner" not in spec:
        return dry
    if _make_dry_host(spec["inner"], name, dry) is None:
        return None
    kind = find("nicbench.hosts.kinds", Host)[str(spec["kind"])]
    return kind.of_spec(spec, name, lambda inner: _make_dry_host(inner, name, dry) or host_from_spec(inner))


class _WaitingError(Exception):
    """The same question again, after a change that is only noted."""


class _DryHost(Host):
    """The machine, of which only the questions are real. While ``acting`` is off, everything is one."""

    kind = "dry-undo"

    def __init__(self, real: Host) -> None:
        self.name = real.name
        self.acting = True
        self.changes: list[Change] = []
        self.questions: list[Question] = []
        self._real = real
        self._asked: set[tuple[str, ...]] = set()

    def spec(self) -> dict[str, Any]:
        return self._real.spec()

    @classmethod
    def of_spec(cls, spec: Mapping[str, Any], name: str | None, make: Callable[[Mapping[str, Any]], Host]) -> Host:
        raise NotImplementedError("it is made of a host, for one undo")

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
        if not self.acting or _is_question(words):
            if self.changes and self.acting and words in self._asked:
                raise _WaitingError
            self._asked.add(words)
            done = await self._real.run(words, input_text=input_text, timeout_s=timeout_s, check=check)
            self.questions.append(Question(words, done.stdout))
            return done
        reading = (*words[: words.index("tee")], "cat", *words[words.index("tee") + 1 :]) if "tee" in words else None
        self.changes.append(Change(words, input_text, reading))
        self._asked.clear()
        return Completed(words, 0, "", "")

    async def start(self, command: Sequence[str], *, environment: Mapping[str, str] | None = None) -> Process:
        raise NotImplementedError("an undo starts nothing")

    async def read_file(self, path: str) -> str | None:
        done = await self.run(("cat", "--", path), check=False)
        return done.stdout if done.status == 0 else None

    async def write_file(self, path: str, text: str) -> None:
        await self.run(("tee", "--", path), input_text=text)


def _is_question(words: tuple[str, ...]) -> bool:
    if words[:3] == ("ip", "netns", "exec"):
        words = words[4:]
    if words[:1] and words[0] in _ASKING:
        return True
    if words[:2] == ("sh", "-c"):
        return words[2].startswith(_ASKING_FILES)
    return words[:2] in _ASKING_OPTIONS or words[:3] in _ASKING_OPTIONS
