"""A fact: one command or file, one pure parser, one file in ``facts/`` named after it.

To add one:

1. Write ``src/nicbench/system/inventory/facts/THEME/NAME.py`` with one subclass of
   ``nicbench.system.inventory.base.Fact``: its ``kind`` in inventory.json, a pure parser, and ``async read(host,
   devices)``. Where the host does not say, UnknownFactError with the reason.
2. ``shape`` says what the plain data is (``core/described.py``): a ``TypedDict`` for named parts, ``dict[str, T]``
   where the names are not ours (interfaces, sysctls), ``list[T]``. A name ends with its unit; what is to be called
   otherwise has a ``Label``, what is read best in one line ``OneLine``, what only some machines have
   ``NotEverywhere``. The report needs no more. ``subjects`` are the lines that it brings to the table of machines,
   each with its label, its place among the others and a function that tells it from the facts
   (``system/inventory/subjects.py`` has what these share).
3. Put recorded outputs into ``tests/system/inventory/golden``, and a line for the parser into
   ``test_hostile_text.py``.

Options are declared in the same way: a quantity of ``core/quantity.py`` knows its unit, another number is
``Annotated[int, Unit.FRAMES]``, and ``Field(title=...)`` is its label where its name in words is none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from nicbench.core.described import DescribedPlugin
from nicbench.core.errors import NicbenchError, UnknownFactError
from nicbench.core.machine import Controller
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
