"""An examination looks at one side of a machine and gives checks; those of a theme share a file in ``checks/``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.hosts.base import Host


class State(StrEnum):
    """``missing`` keeps nicbench from working, ``warning`` keeps it from working well."""

    OK = "ok"
    WARNING = "warning"
    MISSING = "missing"


class Check(Frozen):
    """One line of the doctor's answer; ``mend_command`` is exact where a command can fix it.

    ``details`` are for those who ask for them (``--verbose``, ``--json``): plain data by names in words, None where a
    value is not known.
    """

    name: str
    state: State
    text: str
    mend_command: str | None = None
    details: dict[str, Any] = Field(default_factory=dict)


class Examination(ABC):
    """Subclasses define ``kind`` and ``examine``. They run commands and read, and change nothing."""

    kind: ClassVar[str]

    @abstractmethod
    async def examine(self, host: Host) -> tuple[Check, ...]:
        """The checks of this side. An error of the host (nicbench.core.errors) becomes a check of its own."""


def ok(name: str, text: str, details: Mapping[str, Any] | None = None) -> Check:
    """A check that found what is needed."""
    return Check(name=name, state=State.OK, text=text, details=dict(details or {}))


def warning(name: str, text: str, mend_command: str | None = None, details: Mapping[str, Any] | None = None) -> Check:
    """A check that found something worse than it could be."""
    return Check(name=name, state=State.WARNING, text=text, mend_command=mend_command, details=dict(details or {}))


def missing(name: str, text: str, mend_command: str | None = None) -> Check:
    """A check that found something lacking."""
    return Check(name=name, state=State.MISSING, text=text, mend_command=mend_command)
