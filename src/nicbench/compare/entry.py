"""What is compared side by side: a configuration of a run or published results, with a name that distinguishes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from nicbench.core.imported import ImportOrigin
from nicbench.core.plan import Plan
from nicbench.core.result import Result, ResultVerdict
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


LONGEST = 40
"""Maximum length in characters of a title that serves as a name."""


def name_entries(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Returns the entries with distinct names; a name that the user chose is kept.

    An entry is named after its configuration, where that has a name, else after its title, else after the time at which
    its run began, to the second where the minute is that of another; the run's id is added last, where names are still
    equal. The name of imported results says that they
    were not measured here, so that every table and figure shows it.
    """
    names = [entry.name if entry.is_named else _base_name(entry, entries) for entry in entries]
    for more in _MORE:
        counts = Counter(names)
        names = [
            name if counts[name] == 1 else _append_detail(name, more(entry), entry)
            for name, entry in zip(names, entries, strict=True)
        ]
    marked = [
        f"{name} ({entry.published})" if entry.published and not entry.is_named else name
        for name, entry in zip(names, entries, strict=True)
    ]
    return tuple(replace(entry, name=name) for entry, name in zip(entries, _number_copies(marked), strict=True))


def _base_name(entry: Entry, entries: Sequence[Entry]) -> str:
    if entry.configuration != DEFAULT:
        return entry.configuration
    if entry.imported is not None and entry.imported.device:
        return entry.imported.device
    alone = sum(other.title == entry.title for other in entries) == 1
    if alone and len(entry.title) <= LONGEST:
        return entry.title
    tags = [tag for tag in entry.tags if sum(tag in other.tags for other in entries) == 1]
    return tags[0] if tags else entry.minute or entry.title[:LONGEST]


_MORE: tuple[Callable[[Entry], str | None], ...] = (
    lambda entry: entry.minute,
    lambda entry: entry.moment,
    lambda entry: entry.run_id,
)


def _append_detail(name: str, more: str | None, entry: Entry) -> str:
    """Appends what tells the entry from others of this name; to a minute only the seconds are added."""
    if entry.is_named or more is None or more in name:
        return name
    if entry.minute is not None and name.endswith(entry.minute) and more == entry.moment:
        return name.removesuffix(entry.minute) + more
    return more if name == entry.moment else f"{name}, {more}"


def _number_copies(names: Sequence[str]) -> list[str]:
    """Numbers names that are still equal, because copies of one run folder have everything in common."""
    seen: Counter[str] = Counter()
    counts = Counter(names)
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if counts[name] == 1 else f"{name} #{seen[name]}")
    return found
