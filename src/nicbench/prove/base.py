"""What is tried of a port, and what came of it. An ability is a plug-in of ``prove/abilities``.

To add one: a subclass of ``Ability`` in the file of its theme. ``kind`` is its name for ``--only`` and ``--without``,
``tries`` a sentence on what it does, ``changes`` what it changes meanwhile. ``prove`` yields a ``Finding`` for each
thing that a run may rely on. What it sets goes through ``changes``, and is undone when it has ended.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from typing import ClassVar

from nicbench.core.proof import Finding, Outcome
from nicbench.prove.loop import Loop
from nicbench.tuning.stack import UndoStack


class Ability(ABC):
    """A theme of things that runs rely on, tried with frames on a loop."""

    kind: ClassVar[str]
    order: ClassVar[int]
    """Abilities are tried in this order: drivers first, as all others send by one that works."""
    tries: ClassVar[str]
    """What is tried, in a sentence."""
    changes: ClassVar[str | None] = None
    """What changes at the port meanwhile; None where nothing does."""
    estimate_s: ClassVar[float]
    is_apart: ClassVar[bool] = False
    """Whether it makes ports of its own (``Loop.instead``), once the others have ended and theirs are given back."""

    @abstractmethod
    def prove(self, loop: Loop, changes: UndoStack) -> AsyncIterator[Finding]:
        """Yields what was found. An error of nicbench (``core.errors``) becomes a failed finding of the ability."""


def proven(name: str, seen: str, **figures: float | int | str) -> Finding:
    """A finding of something that was seen to work."""
    return Finding(name=name, outcome=Outcome.PROVEN, seen=seen, figures=figures)


def failed(name: str, seen: str, **figures: float | int | str) -> Finding:
    """A finding of something that was seen to be otherwise."""
    return Finding(name=name, outcome=Outcome.FAILED, seen=seen, figures=figures)


def absent(name: str, why: str) -> Finding:
    """A finding of something that the port does not have."""
    return Finding(name=name, outcome=Outcome.ABSENT, seen=why)


def untried(name: str, why: str) -> Finding:
    """A finding of something that was not tried."""
    return Finding(name=name, outcome=Outcome.UNTRIED, seen=why)
