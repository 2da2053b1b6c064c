"""An entry of a comparison: one configuration of a run or of a published data set, with what is known of its making."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from nicbench.model.imported import Imported
from nicbench.model.plan import Plan
from nicbench.model.result import Result, ResultVerdict
from nicbench.model.turn import DEFAULT


class Origin(StrEnum):
    """Whose numbers they are."""

    MEASURED = "measured"
    SIMULATED = "simulated"
    IMPORTED = "imported"


@dataclass(frozen=True, slots=True)
class Entry:
    """``results`` are those of every run of the configuration that counts; ``plan`` is the configuration's own.

    ``told`` is everything that the run says of its settings, by machine (diff/told.py); empty of imported results.
    ``moment`` is when it was made, in UTC and in words; None where nobody says.
    """

    name: str
    run_id: str
    title: str
    results: tuple[Result, ...]
    configuration: str = DEFAULT
    verdict: ResultVerdict = ResultVerdict.VALID
    finished: bool = True
    troubles: tuple[str, ...] = ()
    """What of its files is not as the run left it, in words."""
    plan: Plan | None = None
    imported: Imported | None = None
    data_set: str | None = None
    """The name of the built-in data set."""
    notes: tuple[str, ...] = ()
    """What a data set says of itself."""
    tags: tuple[str, ...] = ()
    moment: str | None = None
    machines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Cards, processors and kernels of its machines, by these words."""
    links: tuple[str, ...] = ()
    """What a source calls the links of its results."""
    told: Mapping[str, Any] = field(default_factory=dict)
    is_named: bool = False
    """Whether the user gave the name."""

    @property
    def origin(self) -> Origin:
        """Imported results are nobody's measurement here, whatever they are of."""
        if self.imported is not None:
            return Origin.IMPORTED
        return Origin.SIMULATED if self.plan is not None and self.plan.simulated else Origin.MEASURED

    @property
    def runs(self) -> int:
        """How many runs of the configuration count."""
        return max(1, len({result.run_number for result in self.results}))

    @property
    def published(self) -> str | None:
        """How imported results are marked in every name: "published 2019", "imported"."""
        if self.imported is None:
            return None
        if self.imported.source is None and self.imported.year is None:
            return "imported"
        return f"published {self.imported.year}" if self.imported.year is not None else "published"
