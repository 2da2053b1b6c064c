"""A setting of a machine: read, written, compared. What the undo of a change needs of a tuning item."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from nicbench.core.base import Frozen
from nicbench.core.controller import Controller
from nicbench.core.described import DescribedPlugin
from nicbench.core.errors import HostError
from nicbench.core.tuning import Values
from nicbench.hosts.base import Host


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


# What a parser raises that meets the text of another version of a tool.
_NOT_UNDERSTOOD = (ValueError, LookupError, TypeError)


class Setting(DescribedPlugin, ABC):
    """One setting as it was asked for by ``options``; ``kind`` is its name in records."""

    kind: ClassVar[str]
    Options: ClassVar[type[Frozen]]

    def __init__(self, options: Frozen) -> None:
        self.options = options

    @abstractmethod
    async def read(self, place: Place) -> Values:
        """The setting as it is: a flat dict of plain data, names with units. It changes nothing.

        CannotSetError where this place has no such setting.
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

    def differing(self, one: Values, other: Values) -> Values:
        """The part of ``one`` that is not so in ``other``."""
        return {key: value for key, value in one.items() if key not in other or not self.same(key, value, other[key])}
