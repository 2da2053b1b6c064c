"""An examination looks at one side of a machine and gives checks; those of a theme share a file in ``checks/``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.errors import NicbenchError, UsageError
from nicbench.core.registry import find
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.local import LocalHost
from nicbench.system.inventory.base import NOT_UNDERSTOOD
from nicbench.testbed.duts import l3fwd


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


# Runs every examination on a host and gives its checks; builds what no package holds and a DUT needs.  Checks stand
# in the order of the files' names. ``nicbench doctor --build l3fwd`` builds.


async def diagnose_this_machine() -> tuple[Check, ...]:
    """``diagnose`` for the machine that nicbench runs on."""
    return await diagnose(LocalHost("local"))


async def diagnose(host: Host) -> tuple[Check, ...]:
    """Never fails: what cannot even be looked at is a check that says so."""
    checks: list[Check] = []
    for kind, examination in find("nicbench.doctor.checks", Examination).items():
        try:
            checks += await examination().examine(host)
        except NicbenchError as error:
            checks.append(missing(kind.replace("_", " "), error.message, error.next_step))
        except (OSError, *NOT_UNDERSTOOD) as error:  # a machine stranger than anybody thought of
            checks.append(missing(kind.replace("_", " "), f"cannot be looked at: {error}"))
    return tuple(checks)


async def build_on_this_machine(name: str) -> str:
    """A sentence on what was built and where; UsageError where nothing is known by this name."""
    if name != "l3fwd":
        raise UsageError(f"nicbench cannot build {name}", place="--build", next_step="write --build l3fwd")
    done = await l3fwd.build(LocalHost())
    return f"built l3fwd from {l3fwd.PACKAGE} {done.sources} with DPDK {done.library}: {l3fwd.program()} ({done.patch})"
