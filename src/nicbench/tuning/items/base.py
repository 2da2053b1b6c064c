"""A tuning item: reads a setting, says what it is to become, and writes it. The rest is done for it.

The driver (``tuning/tune.py``) records the old value before the change, verifies by reading back, and refuses or
reports what could not be set; ``tuning/undoing.py`` undoes it by the same ``read`` and ``write``, also from another
process after a crash. So an item holds nothing but what it was given.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from nicbench.errors import HostError
from nicbench.hosts.base import Host
from nicbench.model.base import Frozen
from nicbench.model.controller import Controller
from nicbench.model.tuning import Values
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo import RestoreSetting

Scope = Literal["machine", "namespace", "device"]


class Phase(IntEnum):
    """In which order items are applied: what another one would undo, or needs, comes first. Undone in reverse."""

    SERVICE = 1
    """Programs that would set again what others have set (tuned, irqbalance)."""
    MACHINE = 2
    """CPU, memory, kernel."""
    FUNCTION = 3
    """What makes interfaces, or resets an adapter: virtual functions, private flags, PCI."""
    LINK = 4
    """What takes the link down for a while: speed, FEC, MTU, flow control."""
    QUEUES = 5
    """Channels: how many queues there are."""
    RINGS = 6
    """What each queue has, once they are there: rings, coalescing, offloads."""
    STEERING = 7
    """Who works on each queue: IRQ affinity, RSS, RPS, XPS."""
    TRAFFIC = 8
    """What frames meet on their way: sysctls, qdiscs, packet filters."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a setting is: a host (a machine or a namespace), and of an item with the scope ``device`` which one."""

    host: Host
    device: str | None = None
    controller: Controller | None = None
    """The machine's management controller, where the bench file names one."""

    def __str__(self) -> str:
        return self.host.name if self.device is None else f"{self.host.name}, {self.device}"


class CannotSetError(Exception):
    """This place does not have the setting, or cannot take what is asked; the message is the reason.

    Written in the bench file, it refuses the run; of a profile, the item is skipped, and the reason is in the report.
    """


Device = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,62}$")]
"""An interface, or the PCI address of an adapter; it becomes part of paths and of commands."""


class DeviceOptions(Frozen):
    """Of an item with the scope ``device``: the interfaces of the test on that host, or those named here."""

    devices: tuple[Device, ...] = Field(default=(), max_length=64)


class NoOptions(Frozen):
    """Nothing to choose."""


# What a parser raises that meets the text of another version of a tool.
_NOT_UNDERSTOOD = (ValueError, LookupError, TypeError)


class Item(ABC):
    """``kind`` is its key in the bench file, ``Options`` the model of what is written there."""

    kind: ClassVar[str]
    Options: ClassVar[type[Frozen]]
    scope: ClassVar[Scope]
    """``machine``: once for the whole machine, outside of namespaces; ``namespace``: of the host's network namespace;
    ``device``: of each interface of the test there. The options of these derive from ``DeviceOptions``."""
    phase: ClassVar[Phase]
    alone: ClassVar[str | None] = None
    """The option that a value alone stands for: ``mtu: 9000`` for ``mtu: {bytes: 9000}``. Where it is the only one,
    keys and values are its value too: ``sysctls: {net.core.busy_poll: 50}``."""
    only_checks: ClassVar[bool] = False
    """Nothing is changed: the report says whether the machine is as it was asked for."""

    def __init__(self, options: Frozen) -> None:
        self.options = options

    @abstractmethod
    async def read(self, place: Place) -> Values:
        """The setting as it is: a flat dict of plain data, names with units. It changes nothing.

        CannotSetError where this place has no such setting.
        """

    @abstractmethod
    def wanted(self, now: Values) -> Values:
        """Of the keys of ``now`` those that are asked for, with the value that each will read as once it is set.

        CannotSetError where the place cannot take it (more than its maximum), with what it could.
        """

    async def now(self, place: Place) -> Values:
        """``read``, with a HostError where what a tool says is not understood."""
        try:
            return await self.read(place)
        except _NOT_UNDERSTOOD as error:
            message = f"{self.kind} is not understood: {type(error).__name__}: {error}"
            raise HostError(message, place=str(place)) from error

    async def write(self, place: Place, values: Values) -> None:
        """Sets these keys and no other, and returns when they hold. A failure is the HostError of what was run.

        The undo calls it with the recorded values.
        """
        raise CannotSetError(f"{self.kind} only checks")

    def same(self, key: str, one: object, other: object) -> bool:
        """Whether two values of a key mean the same."""
        return one == other

    async def apply(self, changes: Changes, place: Place, before: Values, asked: Values) -> None:
        """Writes, undo first. Only an item whose undo is another one (a process that is held) does this differently."""
        undo = RestoreSetting(
            item=self.kind,
            options=self.options.model_dump(mode="json"),
            device=place.device,
            before=before,
            asked=asked,
        )
        await changes.make(place.host, undo, lambda: self.write(place, asked))

    def differing(self, one: Values, other: Values) -> Values:
        """The part of ``one`` that is not so in ``other``."""
        return {key: value for key, value in one.items() if key not in other or not self.same(key, value, other[key])}
