"""What a diagram shows, without places: two columns of machines, whose ports are joined by links."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Direction(StrEnum):
    """Where the traffic of a link goes, in the diagram's sense."""

    RIGHT = "right"
    LEFT = "left"
    BOTH = "both"
    NONE = "none"
    """Not known, or none."""


@dataclass(frozen=True, slots=True)
class PortPart:
    """A port; ``lines`` stand below its name: driver, interface, address, speed, ports of a bond."""

    name: str
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MachinePart:
    """A machine or a network namespace; ``lines`` stand below its title."""

    title: str
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LinkPart:
    """One cable, real or not: from a port on the left to a port on the right, each with its machine."""

    left_machine: MachinePart
    left: PortPart
    right_machine: MachinePart
    right: PortPart
    label: str = ""
    direction: Direction = Direction.NONE


@dataclass(frozen=True, slots=True)
class Wiring:
    """``around`` says what holds all of it (one machine, one program); ``words`` describe the diagram as text."""

    links: tuple[LinkPart, ...]
    words: str
    around: str | None = None
