"""A fact: one command or file, one pure parser, one file in ``facts/`` named after it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from nicbench.core.controller import Controller
from nicbench.core.described import DescribedPlugin
from nicbench.core.errors import NicbenchError, UnknownFactError
from nicbench.hosts.base import Host

UNKNOWN = (UnknownFactError, NicbenchError)
"""What says itself why a fact is unknown."""

NOT_UNDERSTOOD = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""What a parser may raise on text it was not written for: the fact is null then, with this as the reason."""


class Fact(DescribedPlugin, ABC):
    """``kind`` is its name in inventory.json, ``shape`` what its plain data is: labels, units, free names."""

    kind: ClassVar[str]
    of_machine: ClassVar[bool] = False
    """Whether it is the same in every namespace: it is then read once, outside of them, where nothing is hidden."""

    inside: ClassVar[bool] = False
    """Whether it is of a container itself, and not of its network, which is seen from outside."""

    def __init__(self, controller: Controller | None = None) -> None:
        """``controller`` is the machine's management controller, where the bench file names one."""
        self.controller = controller

    @abstractmethod
    async def read(self, host: Host, devices: tuple[str, ...]) -> Any:
        """The fact as plain data, names with units. UnknownFactError, with the reason, where the host does not say.

        ``devices`` are the kernel interfaces of the test on this host.
        """
