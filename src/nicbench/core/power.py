"""What a machine draws, as its own meters say it: which meter, of what, over which window."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from nicbench.core.base import Frozen


class PowerPart(StrEnum):
    """What a meter measures, from the widest to the narrowest; a wider part contains the narrower ones."""

    MACHINE = "machine"
    """Everything behind the plug, as a management controller or ACPI reports it."""
    SUPPLIES = "supplies"
    """The input of the power supplies."""
    PLATFORM = "platform"
    """The domain ``psys`` of RAPL: packages, memory and what else stands on the board."""
    PACKAGES = "packages"
    """Processor packages. Their memory is not in them."""
    MEMORY = "memory"
    COMPONENT = "component"
    """A card or a regulator: contained in the machine, and in nothing else that is known."""

    @property
    def words(self) -> str:
        """The part as a table names it."""
        return _WORDS[self]


_WORDS = {
    PowerPart.MACHINE: "whole machine",
    PowerPart.SUPPLIES: "power supplies",
    PowerPart.PLATFORM: "platform",
    PowerPart.PACKAGES: "processor packages",
    PowerPart.MEMORY: "memory",
    PowerPart.COMPONENT: "component",
}


class PowerSource(Frozen):
    """One meter of a machine: by what it is read (``method``), what it measures, and its name there.

    ``averaging_s`` is the time over which a reading averages; ``averaging_is_told`` says whether the meter tells it, or
    it was taken from the options of the test. ``resolution_watts`` is the smallest step of a reading.
    """

    machine: str
    method: str
    part: PowerPart
    name: str
    counts_energy: bool
    averaging_s: float
    averaging_is_told: bool = True
    resolution_watts: float = 0.0
    has_dut: bool = True
    """Whether the DUT is on this machine."""

    @property
    def row(self) -> str:
        """What a table calls it: sources of one part and method are disjoint and make one row, except components."""
        words = f"{self.part.words} ({self.method})"
        return f"{words}: {self.name}" if self.part is PowerPart.COMPONENT else words


class PowerOver(Frozen):
    """What one source read over one window; ``watts`` is None where it said nothing that can be used, and ``why``."""

    source: PowerSource
    at_s: float
    """The middle of the window: seconds since 1970; in a simulated lab, of its own time."""
    window_s: float
    readings: int
    watts: float | None
    why: str | None = None


class PowerWish(Frozen):
    """What a test asks of meters: their methods in lower case, and the averaging time of those that tell none."""

    methods: tuple[str, ...]
    averaging_s: float


class PowerFacts(Frozen):
    """What is known before a test: the sources of all machines, and what was there but could not be read.

    ``is_one_machine``: tester and DUT share it, so that every figure is of both.
    """

    sources: tuple[PowerSource, ...] = ()
    unread: tuple[str, ...] = Field(default=())
    is_one_machine: bool = False
