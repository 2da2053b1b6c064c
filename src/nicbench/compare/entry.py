"""What is compared side by side: a configuration of a run or published results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from nicbench.core.plan import Plan
from nicbench.core.result import ImportOrigin, Result, ResultVerdict
from nicbench.core.turn import DEFAULT


class Origin(StrEnum):
    """Where the numbers of an entry come from."""

    MEASURED = "measured"
    SIMULATED = "simulated"
    IMPORTED = "imported"


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that is compared: a configuration of a run, or published results.

    ``results`` are those of every run of the configuration that counts; ``plan`` is the plan of this configuration
    alone. ``told`` has all settings that the run discloses, by machine (``read_settings``); it is empty for imported
    results. ``moment`` is the second at which the run began, as UTC text; None where it is unknown.
    """

    name: str
    run_id: str
    title: str
    results: tuple[Result, ...]
    configuration: str = DEFAULT
    verdict: ResultVerdict = ResultVerdict.VALID
    finished: bool = True
    troubles: tuple[str, ...] = ()
    """Sentences about files of the run folder that are no longer as the run left them."""
    plan: Plan | None = None
    imported: ImportOrigin | None = None
    data_set: str | None = None
    """The name of the built-in data set; None for results from elsewhere."""
    notes: tuple[str, ...] = ()
    """Remarks that the built-in data set makes about itself."""
    tags: tuple[str, ...] = ()
    moment: str | None = None
    machines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Network cards, processors and kernels of its machines, by the keys ``card``, ``processor`` and ``kernel``."""
    links: tuple[str, ...] = ()
    """The names that the source gives to the links of its results."""
    told: Mapping[str, Any] = field(default_factory=dict)
    is_named: bool = False
    """Whether the user chose the name."""

    @property
    def minute(self) -> str | None:
        """The minute at which the run began, as UTC text."""
        return None if self.moment is None else self.moment[: len("2026-01-31 12:00")]

    @property
    def origin(self) -> Origin:
        """Where the numbers come from; imported results count as imported even if they are results of a simulation."""
        if self.imported is not None:
            return Origin.IMPORTED
        return Origin.SIMULATED if self.plan is not None and self.plan.simulated else Origin.MEASURED

    @property
    def runs(self) -> int:
        """How many runs of the configuration count; what a source prints over all its runs is none of them."""
        return max(1, len({result.run_number for result in self.results} - {None}))

    @property
    def published(self) -> str | None:
        """The mark of imported results in every name: "published 2019", "published", "imported"; else None."""
        if self.imported is None:
            return None
        if self.imported.source is None and self.imported.year is None:
            return "imported"
        return f"published {self.imported.year}" if self.imported.year is not None else "published"
