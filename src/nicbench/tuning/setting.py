"""A setting of a machine: read, written, compared. What the undo of a change needs of a tuning item.

It also compares values under /proc and /sys in whichever way the kernel prints them: text in, answer out.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from typing import ClassVar

from nicbench.core.base import Frozen
from nicbench.core.described import DescribedPlugin
from nicbench.core.errors import HostError
from nicbench.core.frozen import frozen
from nicbench.core.machine import Controller
from nicbench.core.plan import Values
from nicbench.hosts.base import Host

_SELECTED = re.compile(r"\[([^\]\s]+)\]")
_CPU_MASK_PATH = re.compile(r"(_cpus|_rxqs|smp_affinity|default_smp_affinity)$")
_HEX_MASK = re.compile(r"[0-9a-fA-F,]+")


def plain_value(text: str) -> str:
    """The value as one would write it: single spaces, and of ``always [madvise] never`` the selected word."""
    words = " ".join(text.split())
    selected = _SELECTED.findall(words)
    return selected[0] if len(selected) == 1 and " " in words else words


def same_value(path: str, one: str, other: str) -> bool:
    """Whether two texts of the same file mean the same. Masks of CPUs are read back padded and with commas."""
    first, second = plain_value(one), plain_value(other)
    if first == second:
        return True
    if _CPU_MASK_PATH.search(path) and _HEX_MASK.fullmatch(first) and _HEX_MASK.fullmatch(second):
        return _mask(first) == _mask(second)
    return False


def cpu_mask(cpus: tuple[int, ...]) -> str:
    """The mask of these CPUs as the kernel takes it: groups of 32 bits in hex, the highest first."""
    number = sum(1 << cpu for cpu in set(cpus))
    groups = [f"{number & 0xFFFFFFFF:x}"]
    while number := number >> 32:
        groups[-1] = groups[-1].zfill(8)
        groups.append(f"{number & 0xFFFFFFFF:x}")
    return ",".join(reversed(groups))


def values_in_words(values: Values | None) -> str:
    """A setting in a line: ``rx 4096, tx 4096``."""
    if values is None:
        return "-"
    return ", ".join(f"{key} {value if isinstance(value, str) else json.dumps(value)}" for key, value in values.items())


def _mask(text: str) -> int:
    return int("".join(group.zfill(8) for group in text.split(",")), 16)


@frozen
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
    """One setting with the ``options`` of the bench file; ``kind`` is its name in records."""

    kind: ClassVar[str]
    Options: ClassVar[type[Frozen]]

    def __init__(self, options: Frozen) -> None:
        self.options = options

    @abstractmethod
    async def read(self, place: Place) -> Values:
        """Reads the present setting: a flat dict of plain data, names with units. It changes nothing.

        CannotSetError where this place has no such setting.
        """

    async def read_checked(self, place: Place) -> Values:
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

    def is_same(self, key: str, one: object, other: object) -> bool:
        """Whether two values of a key mean the same."""
        return one == other

    def find_differing(self, one: Values, other: Values) -> Values:
        """The part of ``one`` that is not so in ``other``."""
        return {
            key: value for key, value in one.items() if key not in other or not self.is_same(key, value, other[key])
        }
