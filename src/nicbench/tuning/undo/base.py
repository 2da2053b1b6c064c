"""An undo: plain data in undo.json, so that another process can do it after a crash, and how it is done.

To add one:

1. Add a subclass of ``nicbench.tuning.undo.base.Undo`` to the file of its theme in ``src/nicbench/tuning/undo``: its
   fields, plain data that another process can act on after a crash, and ``kind: Literal["name"] = "name"``. Names of
   kinds and fields stay as they are: records of earlier versions are read.
2. ``async undo(self, host)`` undoes, also where it was done before, and never over what somebody else changed since:
   then it gives a sentence, and leaves it alone. HostError where it fails. As one shell command, a host by ssh can do
   it by itself once it hears nothing of us.
3. One that writes old values back derives from ``ValueUndo``: ``write_old`` is then foreseen before the change is
   made. ``ends_with_lease``, ``can_be_scripted`` and ``retried_after`` say what the dry run (``tuning/dry_undo.py``)
   and the order of undoing need to know of it.
4. Add one to ``tests/tuning/golden/undo.json``; a test compares the kinds in it with those that there are.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, SerializeAsAny, ValidationError

from nicbench.core.base import Frozen, why_of
from nicbench.core.plan import Values
from nicbench.core.registry import find
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import NetnsHost


class Undo(Frozen):
    """How one change is undone: the fields, the ``kind`` as a ``Literal``, and ``undo``.

    Names of kinds and fields are read from records of earlier versions: they stay.
    """

    kind: str

    retried_after: ClassVar[frozenset[str]] = frozenset()
    """Kinds that another entry of the record may have, after whose undo this one is tried again where it failed."""
    ends_with_lease: ClassVar[bool] = False
    """Whether the end of the lease on another machine undoes it: the script that lies there then need not."""
    outlasts_reboot: ClassVar[bool] = False
    """Whether what is to be undone is still there once the machine was rebooted, for it is on another one."""
    can_be_scripted: ClassVar[bool] = True
    """Whether a script on another machine may do it without nicbench, as far as a dry run can foresee it."""

    @abstractmethod
    async def undo(self, host: Host) -> str | None:
        """Undo it, also where that was done before, and never over what somebody else changed since.

        Gives a sentence where something was left alone on purpose. HostError where it failed.
        """

    async def read_values(self, host: Host) -> Values | None:
        """Read a setting after its undo, for tuning.json; None if its place is gone, or the undo is not of a
        setting.
        """
        return None

    def describe(self) -> str:
        """Describe it in a few words, for a message."""
        fields = self.model_dump(exclude={"kind"}, exclude_none=True)
        return f"{self.kind} {' '.join(f'{name}={value}' for name, value in fields.items())}"

    def describe_goal(self) -> str:
        """Describe what is so again afterwards, for the script that lies on another machine."""
        return self.describe()


class ValueUndo(Undo):
    """An undo that writes old values back: what it will do is known before the change is made."""

    @abstractmethod
    async def write_old(self, host: Host) -> None:
        """Write the old values, whatever is there now."""

    async def question(self, host: Host) -> None:
        """Read on ``host`` what must still be so for the values to be ours; nothing where the written files say it."""


async def undo_one(host: Host, undo: Undo) -> str | None:
    """Undo it, unless its machine or its namespace is gone, and everything with it."""
    if await host.machine.is_gone():
        return None
    network = host.network
    if isinstance(network, NetnsHost) and not await network.exists():
        return None
    return await undo.undo(host)


def _read(value: Any) -> Any:
    """The undo that plain data stands for, by its ``kind``."""
    if isinstance(value, Undo):
        return value
    kind = value.get("kind") if isinstance(value, dict) else None
    found = find("nicbench.tuning.undo", Undo).get(kind) if isinstance(kind, str) else None
    if found is None:
        raise ValueError(f"this nicbench does not know an undo of the kind {kind!r}: undo it with the one that ran")
    try:
        return found.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{kind}, {'.'.join(map(str, first['loc']))}: {why_of(first)}") from error


AnyUndo = Annotated[SerializeAsAny[Undo], BeforeValidator(_read)]
"""A field that holds an undo of whichever kind."""
